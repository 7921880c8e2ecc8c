/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache server without a rack: its own code for programs, segments, objects,
 * faults and pages, on the kernel's sockets, files and userfaultfds. The lead,
 * the switch behind the NIC and the keeper are here instead of lead.c, nic.c
 * and keeper.c. The switch grants what it is asked for, or refuses; the lead
 * says what the input tells it to.
 */
#ifndef AQ_FUZZ_SHD_WORLD_H
#define AQ_FUZZ_SHD_WORLD_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "sharedd/shd_priv.h"

enum {
	WORLD_PAGES = 1024,
	WORLD_WANTS = 16,
	WORLD_DONES = 256,
};

/* Of the one world that there is: the server's functions have no other way. */
struct shd_lead {
	struct shd_want want[WORLD_WANTS];
	struct shd_got got[WORLD_WANTS];
	unsigned wants, gots;
};

struct world {
	struct shd s;
	struct shd_lead lead;
	struct shd_keeper keeper;
	uint64_t counters[SHD_COUNTER_COUNT], cached_bytes;
	struct sockaddr_un at;
	socklen_t at_len;
	struct shd_done done[WORLD_DONES];
	unsigned done_begin, done_end;
	bool refuses;
	uint8_t room[SHD_GIVES][COHERENCE_PAGE_BYTES];
};

static struct world *world_now;

/* ---- the lead ------------------------------------------------------------ */

int shd_lead_want(struct shd_lead *l, const struct shd_want *want)
{
	if (l->wants == WORLD_WANTS)
		return -EAGAIN;
	l->want[l->wants++] = *want;
	return 0;
}

bool shd_lead_got(struct shd_lead *l, struct shd_got *out)
{
	if (!l->gots)
		return false;
	*out = l->got[0];
	memmove(l->got, l->got + 1, --l->gots * sizeof(*out));
	return true;
}

void shd_lead_connect(struct shd_lead *l, const struct shd_ends *ends)
{
	(void)l;
	(void)ends;
}

int shd_lead_start(struct shd_lead *l)
{
	(void)l;
	return 0;
}

int shd_lead_fd(const struct shd_lead *l)
{
	(void)l;
	return -1;
}

void shd_lead_news(struct shd_lead *l, struct shd_news *out)
{
	(void)l;
	*out = (struct shd_news){0};
}

/* ---- the switch ---------------------------------------------------------- */

static void world_done(enum shd_done_kind kind, uint32_t index)
{
	ASSERT(world_now->done_end - world_now->done_begin < WORLD_DONES);
	world_now->done[world_now->done_end++ % WORLD_DONES] =
		(struct shd_done){.kind = kind, .index = index};
}

void shd_nic_get(struct shd_nic *n, const struct coh_get *get)
{
	(void)n;
	world_now->s.lane_lost[get->lane] = world_now->refuses;
	world_done(SHD_DONE_LANE, get->lane);
}

void *shd_nic_give_room(struct shd_nic *n, uint32_t *slot)
{
	for (*slot = 0; *slot < SHD_GIVES; ++*slot)
		if (!n->give_page[*slot])
			return world_now->room[*slot];
	return NULL;
}

void shd_nic_give(struct shd_nic *n, uint32_t slot, uint64_t page)
{
	n->give_page[slot] = page;
	world_done(SHD_DONE_GIVE, slot);
}

uint64_t shd_nic_given(struct shd_nic *n, uint32_t slot)
{
	uint64_t page = n->give_page[slot];

	n->give_page[slot] = 0;
	return page;
}

void shd_nic_say(struct shd_nic *n, const struct coh_record *r,
		 enum shd_done_kind kind, uint32_t index)
{
	(void)n;
	(void)r;
	world_done(kind, index);
}

const void *shd_nic_landing(const struct shd_nic *n, uint32_t lane)
{
	static const uint8_t page[COHERENCE_PAGE_BYTES] = {1};

	(void)n;
	(void)lane;
	return page;
}

bool shd_nic_next(struct shd_nic *n, struct shd_done *out)
{
	(void)n;
	if (world_now->done_begin == world_now->done_end)
		return false;
	*out = world_now->done[world_now->done_begin++ % WORLD_DONES];
	return true;
}

int shd_nic_renew(struct shd_nic *n, struct shd_ends *ends)
{
	(void)n;
	(void)ends;
	return 0;
}

int shd_nic_connect(struct shd_nic *n, const struct shd_place *place,
		    const struct shd_ends *ends)
{
	(void)n;
	(void)place;
	(void)ends;
	return 0;
}

void shd_nic_cut(struct shd_nic *n)
{
	memset(n->give_page, 0, sizeof(n->give_page));
	world_now->done_begin = world_now->done_end;
}

void shd_nic_arm(struct shd_nic *n)
{
	(void)n;
}

void shd_nic_disarm(struct shd_nic *n)
{
	(void)n;
}

/* ---- the keeper ---------------------------------------------------------- */

int shd_keeper_read(struct shd_keeper *k, pid_t pid, uint64_t addr,
		    uint64_t out[2])
{
	struct iovec to = {out, 16}, from = {(void *)(uintptr_t)addr, 16};

	(void)k;
	return process_vm_readv(pid, &to, 1, &from, 1, 0) == 16 ? 0 : -EFAULT;
}

int shd_keeper_add(struct shd_keeper *k, int file)
{
	(void)k;
	(void)file;
	return 0;
}

void shd_keeper_remove(struct shd_keeper *k, int file)
{
	(void)k;
	(void)file;
}

/* ---- beginning and end --------------------------------------------------- */

static int world_listen(struct world *w)
{
	struct shd *s = &w->s;

	w->at = (struct sockaddr_un){.sun_family = AF_UNIX};
	w->at_len = sizeof(w->at);
	s->listen = socket(AF_UNIX,
			   SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The kernel chooses a name. */
	if (s->listen < 0 ||
	    bind(s->listen, (struct sockaddr *)&w->at, sizeof(sa_family_t)) ||
	    listen(s->listen, 16) ||
	    getsockname(s->listen, (struct sockaddr *)&w->at, &w->at_len))
		return -errno;
	s->on_listen.kind = SHD_WATCH_LISTEN;
	return shd_watch_add(s, s->listen, &s->on_listen);
}

static void world_close(struct world *w)
{
	struct shd *s = &w->s;

	while (!list_is_empty(&s->programs))
		shd_attach_end(s, container_of(s->programs.next,
					       struct shd_program, node));
	shd_attach_free(s);
	while (!list_is_empty(&s->segments))
		shd_segment_destroy(s, container_of(s->segments.next,
						    struct shd_segment, node));
	shd_object_stop(s);
	shd_futex_stop(s);
	(void)close(s->listen);
	(void)close(s->own_uffd);
	(void)close(s->epoll);
	free(s->cache.pages);
	free(s->holds);
	free(s->touched);
	free(w);
	world_now = NULL;
}

/* NULL: this machine has no userfaultfds. */
static struct world *world_open(uint64_t page_max)
{
	struct world *w = calloc(1, sizeof(*w));
	struct shd *s;

	ASSERT(w);
	s = &w->s;
	s->own_uffd = shd_mem_own_uffd();
	if (s->own_uffd < 0) {
		free(w);
		return NULL;
	}
	world_now = w;
	s->lead = &w->lead;
	s->keeper = &w->keeper;
	s->device = -1;
	s->c = w->counters;
	s->cached_bytes = &w->cached_bytes;
	s->page_max = page_max;
	list_init(&s->segments);
	list_init(&s->programs);
	list_init(&s->ended);
	list_init(&s->listeners);
	list_init(&s->objects);
	s->cache = (struct coh_cache){
		.pages = calloc(WORLD_PAGES, sizeof(*s->cache.pages)),
		.lanes = s->lanes,
		.jobs = s->jobs,
		.leaves = s->leaves,
		.first_page = coherence_arena(0) >> COHERENCE_PAGE_SHIFT,
		.page_count = WORLD_PAGES,
		.lane_count = COHERENCE_LANES,
		.job_count = COH_CACHE_JOBS_MAX,
		.leave_count = SHD_LEAVES};
	s->holds = calloc(WORLD_PAGES, sizeof(*s->holds));
	s->touched = calloc(WORLD_PAGES / COH_REGION_PAGES_MAX + 1,
			    sizeof(*s->touched));
	ASSERT(s->cache.pages && s->holds && s->touched);
	coh_cache_init(&s->cache);
	coh_cache_connect(&s->cache, 1, false, &s->out);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	ASSERT(s->epoll >= 0);
	ASSERT(!shd_object_start(s) && !shd_futex_start(s) && !world_listen(w));
	return w;
}

#endif
