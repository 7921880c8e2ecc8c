/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that sleep on a word of shared memory. In the kernel FUTEX_WAIT asks
 * for the page to write, so that sleepers on two machines would take it from
 * each other for ever; and a wake reaches one machine only. So a filter
 * (launch.c) hands the futex calls on the window of shared memory to us.
 *
 * A WAIT is held while the word has the expected value in a copy of the page to
 * read. Who changes the word on another machine takes that copy away: after a
 * pause we get it again, and let those go whose word has another value. The
 * pause is 50 us, and doubles up to 5 ms while the word is the same. A WAKE
 * lets threads of this machine go; others see the word. A wake without a change
 * of the word therefore stays on its machine (docs/mind.md).
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "shd_priv.h"

enum {
	PAUSE_NS = 50000,
	PAUSE_MAX_NS = 5000000,
};

struct shd_listener {
	struct list node;
	struct shd_watch on;
	int fd;
};

struct shd_waiter {
	struct shd_listener *listener;
	uint64_t id; /* of the call */
	uint64_t page;
	uint64_t addr;	/* of the word */
	uint32_t value; /* that it must have */
	uint32_t bits;
	struct shd_deadline until;
	uint64_t look_ns; /* when to ask for the page; 0: it is here */
	uint64_t pause_ns;
};

int shd_futex_start(struct shd *s)
{
	s->waiters = calloc(SHD_WAITERS, sizeof(*s->waiters));
	return s->waiters ? 0 : error_set(-ENOMEM, "no memory");
}

static void end_listener(struct shd *s, struct shd_listener *l)
{
	for (unsigned i = 0; i < s->waiter_count;)
		if (s->waiters[i].listener == l)
			s->waiters[i] = s->waiters[--s->waiter_count];
		else
			i++;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, l->fd, NULL);
	(void)close(l->fd);
	list_remove(&l->node);
	s->listener_count--;
	free(l);
}

void shd_futex_stop(struct shd *s)
{
	struct list *next;

	for (struct list *l = s->listeners.next; l != &s->listeners; l = next) {
		next = l->next;
		end_listener(s, container_of(l, struct shd_listener, node));
	}
	free(s->waiters);
}

int shd_futex_listen(struct shd *s, pid_t pid, uint64_t addr, int fd)
{
	struct shd_listener *l = calloc(1, sizeof(*l));
	uint64_t words[2];
	int err = l ? 0 : -ENOMEM;

	if (s->listener_count == SHD_LISTENERS)
		err = -ENFILE;
	/* The keeper would wait for a page that only we can bring. */
	if (!err)
		err = shd_is_shared(addr)
			      ? -EINVAL
			      : shd_keeper_read(s->keeper, pid, addr, words);
	if (!err) {
		l->fd = fd;
		l->on.kind = SHD_WATCH_LISTENER;
		err = shd_watch_add(s, fd, &l->on);
	}
	if (err) {
		free(l);
		(void)close(fd);
		return err;
	}
	list_append(&s->listeners, &l->node);
	s->listener_count++;
	return 0;
}

/* ---- letting go ---------------------------------------------------------- */

/* False: the thread has gone on by itself, or is dead. */
static bool respond(const struct shd_listener *l, uint64_t id, int64_t value)
{
	struct seccomp_notif_resp r = {.id = id,
				       .val = value < 0 ? 0 : value,
				       .error = value < 0 ? (int)value : 0};

	return ioctl(l->fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0;
}

static bool let_go(struct shd *s, unsigned i, int64_t value)
{
	struct shd_waiter w = s->waiters[i];

	s->waiters[i] = s->waiters[--s->waiter_count];
	shd_count(s, SHD_C_wakes);
	return respond(w.listener, w.id, value);
}

/* The word, if its page is here. */
static bool read_word(struct shd *s, const struct shd_waiter *w, uint32_t *out)
{
	uint64_t missing;

	return shd_shared_read(s, w->addr, out, sizeof(*out), &missing) == 0;
}

/* Whether it still has to wait, now that its page is here; it is gone else. */
static bool is_same(struct shd *s, unsigned i)
{
	struct shd_waiter *w = &s->waiters[i];
	uint32_t value;

	if (!read_word(s, w, &value))
		return true;
	if (value != w->value) {
		(void)let_go(s, i, 0);
		return false;
	}
	/* Its deadline may still be elsewhere. */
	w->look_ns = w->until.is_awaited;
	w->pause_ns = u64_min(2 * w->pause_ns, PAUSE_MAX_NS);
	return true;
}

/* The page of its deadline may be here: false if it is gone, because that is
 * none. */
static bool learn_deadline(struct shd *s, unsigned i)
{
	struct shd_waiter *w = &s->waiters[i];
	int err = shd_deadline_read(s, &w->until);

	if (!err) {
		w->look_ns = 1;	 /* at the word, once more */
		s->futex_ns = 1; /* it is due sooner than was known */
	}
	if (!err || err == -EAGAIN)
		return true;
	(void)let_go(s, i, err);
	return false;
}

void shd_futex_came(struct shd *s, uint64_t page)
{
	for (unsigned i = 0; i < s->waiter_count;) {
		const struct shd_waiter *w = &s->waiters[i];

		if (w->until.is_awaited && w->until.page == page &&
		    !learn_deadline(s, i))
			continue;
		if (w->page != page || is_same(s, i))
			i++;
	}
}

void shd_futex_left(struct shd *s, const struct coh_range *r)
{
	uint64_t now_ns = s->waiter_count ? clock_mono_ns() : 0;

	for (unsigned i = 0; i < s->waiter_count; i++)
		if (coh_range_has(r, s->waiters[i].page))
			s->waiters[i].look_ns = now_ns + s->waiters[i].pause_ns;
}

void shd_futex_lost(struct shd *s, const struct coh_range *r)
{
	for (unsigned i = 0; i < s->waiter_count;) {
		const struct shd_waiter *w = &s->waiters[i];

		if (coh_range_has(r, w->page) ||
		    (w->until.is_awaited && coh_range_has(r, w->until.page)))
			(void)let_go(s, i, -EFAULT);
		else
			i++;
	}
}

/* Asks for the page of one whose pause is over, or first for that of its
 * deadline. */
static void ask(struct shd *s, unsigned *i)
{
	const struct shd_waiter *w = &s->waiters[*i];
	bool is_awaited = w->until.is_awaited;
	uint64_t page = is_awaited ? w->until.page : w->page;
	const struct shd_segment *g = shd_segment_of(s, page);

	/* Its program has unmapped it. */
	if (!g || !g->users) {
		(void)let_go(s, *i, -EFAULT);
		return;
	}
	switch (coh_cache_touch(&s->cache, page, COH_READ, &s->out)) {
	case COH_TOUCH_HIT:
		if (is_awaited ? learn_deadline(s, *i) : is_same(s, *i))
			++*i;
		return;
	case COH_TOUCH_SENT:
		shd_act(s, -1);
		break;
	case COH_TOUCH_LATER:
		break;
	}
	++*i;
}

void shd_futex_run(struct shd *s, uint64_t now_ns)
{
	s->futex_ns = 0;
	for (unsigned i = 0; i < s->waiter_count && !s->is_over;) {
		struct shd_waiter *w = &s->waiters[i];
		uint64_t at_ns;

		if (w->until.ns && w->until.ns <= now_ns) {
			(void)let_go(s, i, -ETIMEDOUT);
			continue;
		}
		/* While the get is under way its completion wakes us. */
		at_ns = w->look_ns > now_ns ? w->look_ns : UINT64_MAX;
		if (w->until.ns)
			at_ns = u64_min(at_ns, w->until.ns);
		if (at_ns != UINT64_MAX &&
		    (!s->futex_ns || at_ns < s->futex_ns))
			s->futex_ns = at_ns;
		if (w->look_ns && w->look_ns <= now_ns)
			ask(s, &i);
		else
			i++;
	}
}

void shd_futex_look(struct shd *s)
{
	for (unsigned i = 0; i < s->waiter_count;) {
		struct shd_waiter *w = &s->waiters[i];

		if (ioctl(w->listener->fd, SECCOMP_IOCTL_NOTIF_ID_VALID,
			  &w->id) == 0)
			i++;
		else
			*w = s->waiters[--s->waiter_count];
	}
}

static struct shd_hold *hold_of(struct shd *s, uint64_t page)
{
	return &s->holds[page - s->cache.first_page];
}

/* ---- calls --------------------------------------------------------------- */

/* 0: it is held. */
static int64_t wait(struct shd *s, struct shd_listener *l,
		    const struct seccomp_notif *n, struct shd_waiter *w)
{
	uint32_t value;
	int err;

	if (s->waiter_count == SHD_WAITERS)
		return -EAGAIN; /* it looks again by itself */
	if (!w->bits)
		return -EINVAL;
	err = shd_deadline_find(s, n, &w->until);
	if (err)
		return err;
	w->listener = l;
	w->id = n->id;
	w->value = (uint32_t)n->data.args[2];
	w->pause_ns = PAUSE_NS;
	if (!read_word(s, w, &value))
		w->look_ns = 1;
	else if (value != w->value)
		return -EAGAIN;
	if (w->until.is_awaited)
		w->look_ns = 1;
	shd_count(s, SHD_C_sleeps);
	shd_hold_sleeps(hold_of(s, w->page));
	s->waiters[s->waiter_count++] = *w;
	return 0;
}

/* A page may be mapped at several addresses. */
static bool is_same_word(const struct shd_waiter *a, const struct shd_waiter *b)
{
	return a->addr % COHERENCE_PAGE_BYTES == b->addr % COHERENCE_PAGE_BYTES;
}

static int64_t wake(struct shd *s, const struct seccomp_notif *n,
		    const struct shd_waiter *word)
{
	uint32_t most = (uint32_t)n->data.args[2], woken = 0;
	struct shd_hold *h = hold_of(s, word->page);

	if (!word->bits)
		return -EINVAL;
	if (shd_hold_wakes(h, shd_us(clock_mono_ns())) && h->clock)
		shd_hold_start(h, h->clock);
	for (unsigned i = 0; i < s->waiter_count && woken < most;) {
		const struct shd_waiter *w = &s->waiters[i];

		if (w->page == word->page && is_same_word(w, word) &&
		    w->bits & word->bits)
			woken += let_go(s, i, 0);
		else
			i++;
	}
	return woken;
}

static void take(struct shd *s, struct shd_listener *l,
		 const struct seccomp_notif *n)
{
	uint64_t at = (n->data.args[0] - COHERENCE_BASE) %
		      (1ull << COHERENCE_NODE_SHIFT);
	struct shd_waiter w = {.page = s->cache.first_page +
				       (at >> COHERENCE_PAGE_SHIFT),
			       .addr = n->data.args[0],
			       .bits = FUTEX_BITSET_MATCH_ANY};
	unsigned command = (unsigned)n->data.args[1] & FUTEX_CMD_MASK;
	int64_t result;

	if (at % sizeof(uint32_t) || !shd_segment_of(s, w.page)) {
		(void)respond(l, n->id,
			      at % sizeof(uint32_t) ? -EINVAL : -EFAULT);
		return;
	}
	if (command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE_BITSET)
		w.bits = (uint32_t)n->data.args[5];
	switch (command) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		result = wait(s, l, n, &w);
		if (result)
			(void)respond(l, n->id, result);
		break;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		(void)respond(l, n->id, wake(s, n, &w));
		break;
	default:
		(void)respond(l, n->id, -ENOSYS);
	}
}

void shd_futex_read(struct shd *s, struct shd_watch *w, uint32_t events)
{
	struct shd_listener *l = container_of(w, struct shd_listener, on);
	struct seccomp_notif n;

	memset(&n, 0, sizeof(n));
	if (events & EPOLLIN) {
		if (ioctl(l->fd, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0)
			take(s, l, &n);
		else if (errno != ENOENT && errno != EINTR)
			end_listener(s, l); /* it is none */
	} else if (events & (EPOLLHUP | EPOLLERR)) {
		/* No process is left that could ask. */
		end_listener(s, l);
	}
}
