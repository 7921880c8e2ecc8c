/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces: made when a process attaches or forks, gone when its memory is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "log.h"
#include "pager_priv.h"
#include "uffd.h"

/* ---- accounts ----------------------------------------------------------- */

static void show_resident(struct pager *p)
{
	uint64_t trays = atomic_load_explicit(&p->stats->tray_pages,
					      memory_order_relaxed);

	show(&p->stats->resident_pages, p->resident);
	show_peak(&p->stats->resident_peak, p->resident + trays);
}

static void set_touched(struct pager *p, struct space *s, uint64_t page)
{
	run_set_add(&s->pages.touched, page);
	p->touched++;
	show_peak(&p->stats->heap_peak, p->touched);
}

void run_space_set_resident(struct pager *p, struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	e->state = RUN_RESIDENT;
	if (!run_set_has(&s->pages.touched, page))
		set_touched(p, s, page);
	if (!run_set_has(&s->pages.resident, page)) {
		run_set_add(&s->pages.resident, page);
		s->resident_count++;
		p->resident++;
		p->unplaced += !e->slot;
		show_resident(p);
	}
}

/* It has no memory anywhere: as if it had never been touched. */
static void make_untouched(struct pager *p, struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	if (e->state == RUN_STAGED)
		run_tray_forget(p, e->tray_page);
	if (e->slot)
		run_room_put_slot(p, e->slot);
	*e = (struct run_page){0};
	if (run_set_has(&s->pages.touched, page)) {
		run_set_del(&s->pages.touched, page);
		p->touched--;
	}
}

void run_space_set_gone(struct pager *p, struct space *s, uint64_t page,
			enum run_state state)
{
	struct run_page *e = &s->pages.page[page];

	if (run_set_has(&s->pages.resident, page)) {
		run_set_del(&s->pages.resident, page);
		s->resident_count--;
		p->resident--;
		/* A slot is given and taken only while it is away. */
		p->unplaced -= !e->slot;
		show_resident(p);
	}
	e->heat = 0;
	if (state == RUN_UNTOUCHED)
		make_untouched(p, s, page);
	else
		e->state = state & 7u;
}

void run_space_discard(struct pager *p, struct space *s, uint64_t page,
		       uint64_t pages)
{
	uint64_t end = page + pages;

	for (uint64_t at = run_set_next(&s->pages.touched, page); at < end;
	     at = run_set_next(&s->pages.touched, at + 1)) {
		run_space_set_gone(p, s, at, RUN_UNTOUCHED);
		count(&p->stats->discarded, 1);
	}
}

/* ---- life --------------------------------------------------------------- */

static void show_spaces(struct pager *p)
{
	uint64_t n = 0;

	for (struct space *s = p->spaces; s; s = s->next)
		n++;
	show(&p->stats->spaces, n);
}

int run_space_create(struct pager *p, int uffd, uint64_t start,
		     struct space **out)
{
	struct space *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	*s = (struct space){
		.uffd = uffd, .start = start, .pid_place = RUN_PIDS_MAX};
	run_hand_init(&s->hand);
	err = run_pages_init(&s->pages, RUN_RANGE_PAGES);
	if (err)
		goto err_free;
	err = run_pager_watch(p, uffd, s);
	if (err)
		goto err_pages;
	s->next = p->spaces;
	p->spaces = s;
	show_spaces(p);
	count(&p->stats->spaces_ever, 1);
	*out = s;
	return 0;
err_pages:
	run_pages_release(&s->pages);
err_free:
	free(s);
	return err;
}

void run_space_destroy(struct pager *p, struct space *s)
{
	unsigned kept = 0;

	/* Batches that nobody will finish. */
	for (; s->collected != s->posted; s->collected++) {
		struct leaving *l = &s->leaving[s->collected % RUN_BATCHES];

		p->trays.tray[l->tray].state = TRAY_FREE;
	}
	for (uint64_t at = run_set_next(&s->pages.touched, 0);
	     at < RUN_RANGE_PAGES; at = run_set_next(&s->pages.touched, at + 1))
		run_space_set_gone(p, s, at, RUN_UNTOUCHED);
	for (unsigned i = 0; i < p->waiting_count; i++)
		if (p->waiting[i].space != s)
			p->waiting[kept++] = p->waiting[i];
	p->waiting_count = kept;
	if (p->evict_next == s)
		p->evict_next = NULL;
	(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, s->uffd, NULL);
	(void)close(s->uffd);
	run_trays_leave(p, s);
	run_share_put(s->share);
	if (s->pid_place < RUN_PIDS_MAX)
		atomic_store_explicit(&p->shared->pid[s->pid_place], 0,
				      memory_order_relaxed);
	run_pages_release(&s->pages);
	free(s);
	show(&p->stats->far_pages, p->far.used);
}

void run_spaces_sweep(struct pager *p)
{
	struct space **at = &p->spaces;

	show_spaces(p);
	while (*at) {
		struct space *s = *at;

		if (!s->is_dead && run_uffd_is_alive(s->uffd, s->start)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		run_space_destroy(p, s);
	}
	show_spaces(p);
}

static void publish_pid(struct pager *p, struct space *s, pid_t pid)
{
	s->pid = pid;
	for (unsigned i = 0; i < RUN_PIDS_MAX; i++) {
		if (atomic_load_explicit(&p->shared->pid[i],
					 memory_order_relaxed))
			continue;
		atomic_store_explicit(&p->shared->pid[i], pid,
				      memory_order_relaxed);
		s->pid_place = i;
		return;
	}
}

void run_space_set_share(struct pager *p, struct space *s, struct share *share,
			 pid_t pid)
{
	s->share = run_share_get(share);
	s->channel = run_share_channel(share);
	publish_pid(p, s, pid);
	run_porter_place(p);
}

/* ---- fork --------------------------------------------------------------- */

/* Present pages were copied by the kernel (on write); for the others both have
 * the same slot. */
static void fork_page(struct pager *p, struct space *child,
		      const struct run_page *from, uint64_t page)
{
	struct run_page *e = &child->pages.page[page];

	*e = *from;
	e->heat = 0;
	if (e->slot)
		run_far_slot_get(&p->far, e->slot);
	set_touched(p, child, page);
	if (e->state == RUN_STAGED && run_tray_is_dirty(p, from->tray_page))
		run_room_copy(p, child, page, from->tray_page);
	else if (e->state == RUN_STAGED)
		e->state = RUN_FAR; /* flushed before */
	else if (e->state == RUN_RESIDENT || e->state == RUN_LEAVING)
		run_space_set_resident(p, child, page);
}

/*
 * Between the kernel's copy and the reading of its event userfaultfd refuses
 * to protect pages, so no eviction began since, and what was under way cannot
 * have changed a page: the table is that of the moment of fork.
 */
int run_space_fork(struct pager *p, struct space *parent, int uffd)
{
	struct space *child;
	int err;

	if (!run_evict_finish(p, parent))
		log_warn("run", "process %d does not answer while it forks",
			 (int)parent->pid);
	run_trays_flush(p, parent);
	err = run_space_create(p, uffd, parent->start, &child);
	if (err)
		return err;
	for (uint64_t at = run_set_next(&parent->pages.touched, 0);
	     at < RUN_RANGE_PAGES;
	     at = run_set_next(&parent->pages.touched, at + 1))
		fork_page(p, child, &parent->pages.page[at], at);
	child->hand = parent->hand;
	count(&p->stats->forks, 1);
	return 0;
}
