/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces: made when a process attaches or forks, gone when its memory is. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "marks_priv.h"
#include "owner_priv.h"
#include "pager_priv.h"
#include "room_priv.h"
#include "uffd.h"

/* ---- accounts ------------------------------------------------------------ */

static void show_resident(struct pager *p)
{
	uint64_t buffers = atomic_load_explicit(&p->stats->buffered_pages,
						memory_order_relaxed);

	show(&p->stats->resident_pages, p->resident);
	show_peak(&p->stats->resident_peak, p->resident + buffers);
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

	run_page_set_state(e, RUN_RESIDENT);
	if (!run_set_has(&s->pages.touched, page))
		set_touched(p, s, page);
	if (!run_set_has(&s->pages.resident, page) &&
	    !run_set_has(&s->pages.held, page)) {
		run_set_add(&s->pages.resident, page);
		s->resident_count++;
		p->resident++;
		run_tiers_count(&p->tiers, e, 1);
		p->unplaced += !e->slot;
		show_resident(p);
	}
	/* Now it is certain. */
	run_set_del(&s->pages.vague, page);
	if (s->keeps_all)
		(void)!run_marks_keep(p, s, page, 1);
}

void run_space_hold(struct pager *p, struct space *s, uint64_t page, bool holds)
{
	struct run_set *from = holds ? &s->pages.resident : &s->pages.held;
	struct run_set *to = holds ? &s->pages.held : &s->pages.resident;
	uint64_t more = holds ? 1 : -1ull;

	if (!run_set_has(from, page))
		return;
	run_set_del(from, page);
	run_set_add(to, page);
	run_tiers_count(&p->tiers, &s->pages.page[page], holds ? -1 : 1);
	s->resident_count -= more;
	s->held_count += more;
	p->held += more;
}

void run_space_set_gone(struct pager *p, struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	run_space_hold(p, s, page, false);
	if (run_set_has(&s->pages.resident, page)) {
		run_set_del(&s->pages.resident, page);
		s->resident_count--;
		p->resident--;
		run_tiers_count(&p->tiers, e, -1);
		/* A slot is given and taken only while it is away. */
		p->unplaced -= !e->slot;
		show_resident(p);
	}
	e->is_demoted = 0;
	run_policy_left(e);
}

void run_space_set_untouched(struct pager *p, struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	run_space_set_gone(p, s, page);
	if (e->state == RUN_STAGED)
		run_writeback_forget(p, e->buffer_page);
	if (e->slot)
		run_room_put_slot(p, e->slot);
	run_page_set_state(e, RUN_UNTOUCHED);
	*e = (struct run_page){0};
	if (run_set_has(&s->pages.touched, page)) {
		run_set_del(&s->pages.touched, page);
		p->touched--;
	}
}

void run_space_discard(struct pager *p, struct space *s, uint64_t page,
		       uint64_t pages)
{
	uint64_t end = page + pages;

	run_set_for_each (at, &s->pages.touched, page, end) {
		if (run_set_has(&s->pages.resident, at) ||
		    run_set_has(&s->pages.held, at))
			run_set_add(&s->pages.vague, at);
		run_space_set_untouched(p, s, at);
		count(&p->stats->discarded, 1);
	}
}

void run_space_show_aliens(struct space *s)
{
	if (s->channel)
		atomic_store_explicit(&s->channel->has_aliens,
				      run_set_next(&s->pages.alien, 0) <
					      RUN_RANGE_PAGES,
				      memory_order_relaxed);
}

void run_space_forget(struct pager *p, struct space *s, uint64_t page,
		      uint64_t pages)
{
	run_space_discard(p, s, page, pages);
	run_set_del_range(&s->pages.vague, page, pages);
	run_marks_clear(p, s, page, pages);
	run_set_add_range(&s->pages.alien, page, pages);
	run_space_show_aliens(s);
}

/* ---- life ---------------------------------------------------------------- */

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
	*s = (struct space){.uffd = uffd,
			    .start = start,
			    .pid_place = RUN_PIDS_MAX,
			    .pidfd = -1};
	run_policy_space_init(&s->policy);
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

	run_events_end(p, s);
	/* Batches that nobody will finish. */
	for (; s->collected != s->posted; s->collected++) {
		struct leaving *l = &s->leaving[s->collected % RUN_BATCHES];

		if (l->kind == BATCH_DEMOTE)
			p->tiers.demoting -= l->count;
		else
			run_writeback_give_up(p, l->buffer);
	}
	run_set_for_each (at, &s->pages.touched, 0, RUN_RANGE_PAGES)
		run_space_set_untouched(p, s, at);
	run_marks_clear(p, s, 0, RUN_RANGE_PAGES);
	for (unsigned i = 0; i < p->waiting_count; i++)
		if (p->waiting[i].space != s)
			p->waiting[kept++] = p->waiting[i];
	p->waiting_count = kept;
	run_policy_space_gone(p, s);
	run_sample_space_gone(p, s);
	(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, s->uffd, NULL);
	(void)close(s->uffd);
	run_writeback_leave(p, s);
	run_share_put(s->share);
	run_owner_release(p, s);
	run_pages_release(&s->pages);
	free(s);
	show(&p->stats->far_pages, p->far.used);
}

static bool is_over(const struct space *s, bool only_left)
{
	if (s->is_dead)
		return true;
	return (!only_left || s->is_left) &&
	       !run_uffd_is_alive(s->uffd, s->start);
}

/* Looking costs some 10 us: of many processes, a few at a time. */
static void look_at_owners(struct pager *p)
{
	uint64_t n =
		atomic_load_explicit(&p->stats->spaces, memory_order_relaxed);
	unsigned turns = (unsigned)(1 + n / RUN_LOOKS);
	unsigned i = p->sweeps++;

	for (struct space *s = p->spaces; s; s = s->next)
		run_owner_look(p, s, i++ % turns == 0);
}

void run_spaces_sweep(struct pager *p, bool only_left)
{
	struct space **at = &p->spaces;

	show_spaces(p);
	if (!only_left)
		look_at_owners(p);
	while (*at) {
		struct space *s = *at;

		if (!is_over(s, only_left)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		run_space_destroy(p, s);
	}
	show_spaces(p);
}

void run_space_set_share(struct pager *p, struct space *s, struct share *share,
			 pid_t pid)
{
	s->share = run_share_get(share);
	s->channel = run_share_channel(share);
	run_space_show_aliens(s);
	run_owner_set(p, s, pid);
	run_reclaim_place(p);
}

/* ---- fork ---------------------------------------------------------------- */

/* Present pages were copied by the kernel (on write); for the others both have
 * the same slot. */
static void fork_page(struct pager *p, struct space *child,
		      const struct run_page *from, uint64_t page)
{
	struct run_page *e = &child->pages.page[page];

	*e = *from;
	e->is_demoted = 0;
	run_policy_left(e);
	if (e->slot)
		run_far_slot_get(&p->far, e->slot);
	set_touched(p, child, page);
	if (e->state == RUN_STAGED &&
	    run_writeback_is_dirty(p, from->buffer_page))
		run_room_copy(p, child, page, from->buffer_page);
	else if (e->state == RUN_STAGED)
		run_page_set_state(e, RUN_FAR); /* flushed before */
	else if (e->state == RUN_RESIDENT)
		run_space_set_resident(p, child, page);
	else if (e->state == RUN_LEAVING)
		/* The parent died over it. If the child has no copy either,
		 * there is none: it must not see zeros. */
		run_page_set_state(e, RUN_LOST);
}

/* What the kernel did with the mappings, as madvise told it to. */
static void fork_marks(struct space *child, const struct space *parent)
{
	static const enum run_mark same[] = {RUN_MARK_ALIEN, RUN_MARK_VAGUE,
					     RUN_MARK_WIPED};

	for (unsigned i = 0; i < ARRAY_LEN(same); i++) {
		const struct run_set *from = &parent->pages.set[same[i]];

		run_set_for_each (at, from, 0, RUN_RANGE_PAGES)
			run_set_add(&child->pages.set[same[i]], at);
	}
	run_set_for_each (at, &parent->pages.withheld, 0, RUN_RANGE_PAGES)
		run_set_add(&child->pages.alien, at);
}

/*
 * Between the kernel's copy and the reading of its event userfaultfd refuses
 * to map pages, so what the child lacks, its parent's table has as it was at
 * the moment of fork. But pages go on leaving the parent, by moves: the child
 * may have some that its table says are far or untouched. Then what is there
 * counts, not the table, and whoever maps a page must take -EEXIST for "it is
 * resident".
 */
int run_space_fork(struct pager *p, struct space *parent, int uffd)
{
	struct space *child;
	int err;

	run_writeback_flush(p, parent);
	err = run_space_create(p, uffd, parent->start, &child);
	if (err)
		return err;
	run_set_for_each (at, &parent->pages.touched, 0, RUN_RANGE_PAGES)
		if (!run_set_has(&parent->pages.wiped, at) &&
		    !run_set_has(&parent->pages.withheld, at))
			fork_page(p, child, &parent->pages.page[at], at);
	fork_marks(child, parent);
	child->policy = parent->policy;
	count(&p->stats->forks, 1);
	return 0;
}
