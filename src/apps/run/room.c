/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that far memory does not take, because it is full or lost: they go from
 * their buffer back to their program. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "aquifer/aquifer.h"
#include "base/clock.h"
#include "base/log.h"
#include "pager_priv.h"
#include "room_priv.h"
#include "uffd.h"

#define SAY_NS 10000000000ull

void run_room_put_slot(struct pager *p, uint32_t slot)
{
	if (run_far_slot_put(&p->far, slot))
		overflow_freed(&p->overflow);
}

uint64_t run_room_budget(struct pager *p)
{
	/* A try: what was refused may be taken now. */
	if (p->overflow.is_full &&
	    overflow_is_due(&p->overflow, clock_mono_ns()))
		run_far_retry(&p->far);
	return overflow_budget(&p->overflow);
}

void run_room_say(struct pager *p)
{
	int64_t room = run_far_room(&p->far);

	if (room < 0 || (uint64_t)room >= p->options.local_bytes)
		return;
	(void)fprintf(stderr,
		      "aquifer: run: the rack has room for %" PRId64
		      "M only, less than what is local; %s\n",
		      room >> 20,
		      p->options.overflow_bytes
			      ? "what does not fit stays in local memory"
			      : "who needs more gets SIGBUS");
}

static void say_full(struct pager *p, int err)
{
	char lost[sizeof(p->far.lost)];

	uint64_t now = clock_mono_ns();

	/* Where others come and go, full and not full may follow each other
	 * quickly. */
	if (p->said_ns && now - p->said_ns < SAY_NS)
		return;
	p->said_ns = now;
	p->has_said_full = true;
	run_far_lost(&p->far, false, lost, sizeof(lost));
	if (lost[0])
		(void)fprintf(stderr,
			      "aquifer: run: memory node %s is lost; what has "
			      "no other place stays in local memory\n",
			      lost);
	else
		(void)fprintf(stderr,
			      "aquifer: run: the rack takes no more pages "
			      "(%s); what does not fit stays in local memory\n",
			      aq_strerror(err));
}

/* The mender asks the rack while we are full, because that may take long. */
static void show_wanted(struct pager *p, bool is_likely)
{
	atomic_store_explicit(&p->far.wants_room, p->overflow.is_full,
			      memory_order_relaxed);
	if (is_likely || !p->overflow.is_full)
		atomic_store_explicit(&p->far.may_grow, is_likely,
				      memory_order_relaxed);
}

void run_room_result(struct pager *p, uint64_t placed, uint64_t refused,
		     int err)
{
	bool was_full = p->overflow.is_full;

	/* Nodes that give pages out one by one set more aside for who asks. */
	if (refused && !was_full && p->far.mode != PAGE_STATIC) {
		show_wanted(p, true);
		run_far_retry(&p->far);
		if (!p->far.grow_err)
			return;
	}
	overflow_result(&p->overflow, clock_mono_ns(), placed, refused);
	show_wanted(p, false);
	if (!was_full && p->overflow.is_full)
		say_full(p, err);
	if (was_full && !p->overflow.is_full && p->has_said_full) {
		p->has_said_full = false;
		(void)fprintf(stderr, "aquifer: run: the rack takes pages "
				      "again\n");
	}
	run_room_settle(p);
}

bool run_room_is_spent(const struct pager *p)
{
	/* Buffers are empty when nothing leaves: their part is a reserve for
	 * who has just been told that there is no more. */
	uint64_t buffers = (uint64_t)p->writeback.count * RUN_BATCH_PAGES;

	return overflow_is_spent(&p->overflow,
				 p->policy.limit_pages + p->policy.slack_pages +
					 buffers,
				 run_policy_load(p)) &&
	       !run_batches_pages(p) && !run_writeback_is_storing(p);
}

void run_room_settle(struct pager *p)
{

	uint64_t all = p->policy.limit_pages + p->policy.slack_pages;

	overflow_settle(&p->overflow, p->policy.limit_pages,
			run_policy_load(p));
	if (p->resident > all)
		show_peak(&p->stats->over_peak, p->resident - all);
	run_room_tell(p);
}

/* Who asks for memory hears that there is none a little before who touches it
 * is killed. */
void run_room_tell(struct pager *p)
{
	bool is_full;

	if (p->overflow.extra_max == OVERFLOW_NO_LIMIT)
		return;
	is_full = overflow_is_spent(
		&p->overflow, p->policy.limit_pages + p->policy.slack_pages,
		p->unplaced + 2 * p->overflow.step);
	for (struct space *s = p->spaces; s; s = s->next)
		if (s->channel)
			atomic_store_explicit(&s->channel->is_full, is_full,
					      memory_order_relaxed);
}

void run_room_complain(struct pager *p, const struct space *s)
{
	if (!p->has_failed_some)
		(void)fprintf(stderr,
			      "aquifer: run: far memory is full (%s), and so "
			      "is what --local and --overflow allow: process "
			      "%d gets SIGBUS\n",
			      aq_strerror(p->far.grow_err ? p->far.grow_err
							  : -ENOSPC),
			      (int)s->pid);
	p->has_failed_some = true;
}

void run_room_copy(struct pager *p, struct space *child, uint64_t page,
		   uint32_t buffer_page)
{
	struct run_page *e = &child->pages.page[page];
	int err;

	if (p->tiers.is_on)
		(void)run_tiers_aim(p, child, page, 1);
	err = run_uffd_copy(child->uffd, run_space_addr(child, page),
			    run_writeback_bytes(p, buffer_page), 1);
	/* It may have left its parent after the fork: then the child has it. */
	if (err > 0 || err == -EEXIST) {
		run_space_set_resident(p, child, page);
		return;
	}
	/* Touching it is SIGBUS, which is not zeros. */
	run_page_set_state(e, RUN_LOST);
	if (err == -ESRCH)
		child->is_dead = true;
	else
		log_err("run", "no memory for a page of a forked process");
}

/* True: the page is not the buffer's any more. */
static bool give_back(struct pager *p, uint32_t buffer_page, struct space *s,
		      uint64_t page)
{
	struct run_page *e = &s->pages.page[page];
	int err;

	/* A batch under way drops all that is in its stretches; and a child
	 * whose fork was read would lack what comes now. */
	if (s->is_dead || s->events.count || run_batch_covers(s, page))
		return false;
	if (p->tiers.is_on)
		run_tiers_aim_at(p, e->is_slow ? TIER_SLOW : TIER_TOP);
	err = run_uffd_copy(s->uffd, run_space_addr(s, page),
			    run_writeback_bytes(p, buffer_page), 1);
	if (err == -ENOENT) {
		/* The program took the addresses away. */
		run_space_discard(p, s, page, 1);
		return true;
	}
	if (err < 0 && err != -EEXIST)
		return false;
	run_writeback_forget(p, buffer_page);
	run_space_set_resident(p, s, page);
	e->is_returned = 1;
	count(&p->stats->returned, 1);
	return true;
}

bool run_room_return(struct pager *p, struct wb_buffer *t)
{
	uint32_t first = (uint32_t)(t - p->writeback.buffer) * RUN_BATCH_PAGES;
	bool all = true;

	for (unsigned i = 0; i < RUN_BATCH_PAGES; i++) {
		const struct wb_page *tp = &t->page[i];

		if (tp->space && tp->is_dirty)
			all &= give_back(p, first + i, tp->space, tp->page);
	}
	return all;
}
