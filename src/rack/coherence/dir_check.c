/* SPDX-License-Identifier: Apache-2.0 */
/* The directory's invariants, and the names of its states. */
#include "dir_priv.h"

const char *coh_dir_state_name(enum coh_dir_state state)
{
	static const char *const names[] = {
		[COH_DIR_FREE] = "I",	       [COH_DIR_SHARED] = "S",
		[COH_DIR_MODIFIED] = "M",      [COH_DIR_TO_SHARED] = "toS",
		[COH_DIR_TO_MODIFIED] = "toM", [COH_DIR_RECALL] = "rec",
		[COH_DIR_LOST] = "L",
	};

	return names[state];
}

static bool is_waiting_for_fins(const struct coh_dir_slot *s)
{
	return s->state == COH_SLOT_ASKING || s->state == COH_SLOT_FETCHING ||
	       s->state == COH_SLOT_HOLDING;
}

static const char *check_entry(const struct coh_dir *d,
			       const struct coh_dir_entry *e)
{
	bool one = e->sharers && !(e->sharers & (e->sharers - 1));

	if (coh_dir_lookup(d, e->page) != e)
		return "an entry is not found by its region";
	if (coh_pool_is_covered(d, e))
		return "a region is inside another one";
	if (e->state == COH_DIR_MODIFIED && !one)
		return "a modified region has not one owner";
	if (e->state == COH_DIR_SHARED && !e->sharers)
		return "a region that nobody has keeps an entry";
	if (is_busy(e) != (e->waiting != 0))
		return "a region is busy and waits for nobody, or the reverse";
	if (e->waiting & ~e->sharers)
		return "a FIN is waited for from who has no copy";
	if (e->owned && e->waiting != e->sharers)
		return "a region is owned by several machines";
	if (!is_busy(e) && e->first != COH_SLOT_NONE)
		return "somebody waits for a region that is not busy";
	if (!is_busy(e) &&
	    (e->asker != COH_SLOT_NONE || e->gainer != COH_NOBODY))
		return "a region that is not busy is asked for";
	if (e->asker != COH_SLOT_NONE &&
	    (!is_waiting_for_fins(&d->slots[e->asker]) ||
	     slot_machine(d, e->asker) != e->gainer))
		return "who asks for a region does not wait for it";
	return NULL;
}

const char *coh_dir_check(const struct coh_dir *d)
{
	uint32_t lost = 0, recalls = 0, asking = 0, askers = 0, used = 0;

	for (uint32_t i = 0; i < d->entry_count; i++) {
		const struct coh_dir_entry *e = &d->entries[i];
		const char *wrong;

		if (e->state == COH_DIR_FREE)
			continue;
		wrong = check_entry(d, e);
		if (wrong)
			return wrong;
		used++;
		lost += e->state == COH_DIR_LOST;
		recalls += e->state == COH_DIR_RECALL;
		asking += e->asker != COH_SLOT_NONE;
	}
	for (uint32_t i = 0; i < (uint32_t)(d->machines * d->lanes); i++)
		askers += is_waiting_for_fins(&d->slots[i]);
	if (asking != askers)
		return "a get waits for FINs of no region";
	if (lost != d->lost_count || recalls != d->recalls || used != d->used)
		return "entries are miscounted";
	if (d->unclean & ~d->members)
		return "a machine that is no member shall clean";
	return NULL;
}
