/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides of reaching; reach.h has the argument. */
#include "reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "cable.h"
#include "core/nic_limits.h"
#include "reach_call.h"

enum {
	WORD_BYTES = 8,
	STRIKE = 4, /* one late answer is forgiven for so many prompt ones */
	STRIKES_MAX = 2 * STRIKE,
	SPINS = 4096,
	NAP_NS = 50000,
	NAPS_PER_LOOK = 20, /* at the states of the peer's threads */
};

#define SPAN_MIN_NS 20000000ull
#define SPAN_MAX_NS 1000000000ull

/* ---- the owner ---------------------------------------------------------- */

void reach_life_begin(struct os_host *h)
{
	h->reach.is_able = bell_live(&h->bell) && reach_call_is_able();
}

void reach_life_end(struct os_host *h)
{
	bell_die(&h->bell);
}

/* Pids and thread states must mean the same to both. */
static bool is_in_our_pid_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return pid > 0 && stat("/proc/self/ns/pid", &ours) == 0 &&
	       stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

bool reach_give(struct cable *c, const struct nic_mr_attr *attr,
		struct cable_map_rep *rep)
{
	struct os_host *h = c->path.host;

	if (!h->reach.is_able || !attr->is_watched || c->uid != geteuid() ||
	    !is_in_our_pid_namespace(c->pid))
		return false;
	rep->access = (uint32_t)attr->access;
	rep->iova = attr->iova;
	rep->length = attr->length;
	rep->addr = (uintptr_t)attr->addr;
	rep->word = CABLE_MAP_REACH;
	/* REACH-2, with reach_bar: who has the epoch that it has made sees the
	 * bar, too. */
	rep->generation = atomic_load_explicit(&h->bell.page->epoch,
					       memory_order_acquire);
	if (atomic_load_explicit(&h->reach.is_barred, memory_order_relaxed))
		return false;
	h->reach.is_given = c->has_reach = true;
	h->stats->reach_grants++;
	return true;
}

/* Whether this thread, of which that is the state, may be inside a call. */
static bool may_run(const char *task, const char *tid)
{
	char path[96], text[256];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%.20s/stat", task, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT && errno != ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false; /* it has just ended */
	text[n] = '\0';
	state = strrchr(text, ')');
	return !state || !state[1] || !strchr("TZXx", state[2]);
}

/* A process that is stopped, or gone, is in no call. One that is traced may be
 * stopped at the beginning of a call, so that does not count. */
static bool process_may_run(pid_t pid)
{
	struct dirent *e;
	bool may = false;
	char task[48];
	DIR *d;

	snprintf(task, sizeof(task), "/proc/%d/task", (int)pid);
	d = opendir(task);
	if (!d)
		return errno != ENOENT && errno != ESRCH;
	while (!may && (e = readdir(d)))
		may = e->d_name[0] != '.' && may_run(task, e->d_name);
	closedir(d);
	return may;
}

/* A process's last thread closes its sockets, behind all its calls. Its pid may
 * be another's by now. */
static bool has_hung_up(int sock)
{
	struct pollfd p = {.fd = sock};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* Until what the peer does now has ended. */
static void await(const struct cable *c)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	const struct bell_page *page = c->peer.page;
	uint64_t seen = bell_page_reaches(page);

	if (!(seen & 1))
		return;
	for (unsigned i = 0; bell_page_reaches(page) == seen; i++) {
		if (i < SPINS) {
			atomic_signal_fence(memory_order_relaxed);
			continue;
		}
		if ((i - SPINS) % NAPS_PER_LOOK == NAPS_PER_LOOK - 1 &&
		    (has_hung_up(c->sock) || !process_may_run(c->pid)))
			return;
		nanosleep(&nap, NULL);
	}
}

void reach_revoke(struct os_host *h)
{
	if (LIKELY(!h->reach.is_given))
		return;
	h->reach.is_given = false;
	bell_next_epoch(&h->bell);
	for (struct cable *c = h->cables; c; c = c->next) {
		if (!c->has_reach)
			continue;
		c->has_reach = false;
		await(c);
	}
	h->stats->reach_revokes++;
}

void reach_bar(struct os_host *h)
{
	atomic_store_explicit(&h->reach.is_barred, true, memory_order_relaxed);
	bell_next_epoch(&h->bell); /* REACH-2 */
}

void reach_unbar(struct os_host *h)
{
	atomic_store_explicit(&h->reach.is_barred, false, memory_order_relaxed);
}

/* ---- the user ----------------------------------------------------------- */

bool reach_map_is_valid(const struct reach_map *m)
{
	const struct bell_page *page = m->cable->peer.page;

	return bell_page_epoch(page) == m->epoch &&
	       bell_page_life(page) == m->life;
}

struct reach_map *reach_map_create(struct cable *c,
				   const struct cable_map_rep *rep)
{
	uint32_t life = bell_page_life(c->peer.page);
	struct reach_map *m;

	if (!c->path.host->reach.is_able || c->is_unreachable ||
	    c->uid != geteuid() || c->pid <= 0 || !life ||
	    life & BELL_LIFE_DIED || rep->length == 0 ||
	    rep->iova + rep->length < rep->iova ||
	    rep->addr + rep->length < rep->addr)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	*m = (struct reach_map){
		.d = {.iova = rep->iova,
		      .length = rep->length,
		      .access = rep->access},
		.cable = c,
		.addr = rep->addr,
		.epoch = rep->generation,
		.life = life,
	};
	return m;
}

bool reach_is_wanted(struct env *env, uint32_t len_bytes)
{
	struct os_host *h = host_of_env(env);

	return len_bytes >= NIC_REACH_LARGE ||
	       (h->reach.until_ns && host_now(h) < h->reach.until_ns);
}

/* Programs poll the end of what is written to them: its last bytes follow all
 * others. The kernel copies each piece by one string operation, and the stores
 * of two are not reordered. */
static unsigned split_tail(struct iovec far[2], uint64_t addr, uint64_t len)
{
	uint64_t tail = (addr + len - 1) % WORD_BYTES + 1;

	far[0] = (struct iovec){(void *)(uintptr_t)addr, len};
	if (tail >= len)
		return 1;
	far[0].iov_len = len - tail;
	far[1] = (struct iovec){(void *)(uintptr_t)(addr + len - tail), tail};
	return 2;
}

/*
 * Words that a program stores whole are read whole, and are written whole. The
 * kernel's copy (rep movsb, or eight bytes at a time) keeps to that only if
 * both sides begin at a word: with a READ that does not, one of some hundred
 * thousand words was seen torn.
 */
static bool is_whole_words(uint64_t far, const struct env_piece *near,
			   unsigned count)
{
	if (far % WORD_BYTES)
		return false;
	for (unsigned i = 0; i < count; i++)
		if ((uintptr_t)near[i].addr % WORD_BYTES ||
		    (i + 1 < count && near[i].len_bytes % WORD_BYTES))
			return false;
	return true;
}

int reach_copy(struct env *env, const struct env_direct *d,
	       enum env_direct_op op, uint64_t offset,
	       const struct env_piece *near, unsigned count)
{
	struct os_host *h = host_of_env(env);
	struct reach_map *m = container_of(d, struct reach_map, d);
	const struct bell_page *page = m->cable->peer.page;
	struct reach_gate gate = {{&page->epoch, bell_page_life_word(page)},
				  {m->epoch, m->life}};
	struct iovec here[NIC_SGE_MAX + 1], far[2];
	unsigned far_count = 1;
	uint64_t len = 0;
	long n;

	if (!h->reach.is_able || !is_whole_words(m->addr + offset, near, count))
		return -EAGAIN;
	for (unsigned i = 0; i < count; i++) {
		here[i] = (struct iovec){near[i].addr, near[i].len_bytes};
		len += near[i].len_bytes;
	}
	if (op == ENV_DIRECT_WRITE)
		far_count = split_tail(far, m->addr + offset, len);
	else
		far[0] = (struct iovec){(void *)(uintptr_t)(m->addr + offset),
					len};
	bell_reach_begin(&h->bell);
	n = reach_call(&gate,
		       op == ENV_DIRECT_WRITE ? SYS_process_vm_writev
					      : SYS_process_vm_readv,
		       m->cable->pid, here, count, far, far_count);
	bell_reach_end(&h->bell);
	if (LIKELY(n == (long)len))
		return 0;
	/* By frames, then; what is wrong is found there. A part that was
	 * written is written again. */
	if (n != -EAGAIN && n != -EFAULT && n < 0)
		m->cable->is_unreachable = true;
	return -EAGAIN;
}

void reach_note_late(struct os_host *h, uint64_t now_ns)
{
	struct reach *r = &h->reach;
	bool again;

	r->strikes += STRIKE;
	if (r->strikes < STRIKES_MAX)
		return;
	/* Longer each time it happens again soon. */
	again = now_ns < r->until_ns + 2 * r->span_ns;
	r->span_ns = again ? u64_min(2 * r->span_ns, SPAN_MAX_NS) : SPAN_MIN_NS;
	r->until_ns = now_ns + r->span_ns;
	r->strikes = 0;
}
