/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as a member: terms of the switch, leases, its beginning and its
 * end; and the invariants of its pages. */
#include <string.h>

#include "base/plant.h"
#include "cache_priv.h"

void coh_cache_go_clean(struct coh_cache *c, struct coh_cache_out *out)
{
	struct coh_range all = coh_cache_whole(c);

	if (c->link != COH_CACHE_CLEANS)
		return;
	if ((!coh_cache_give_on(c, &all, &c->at, out) || c->giving) &&
	    !PLANTED(mind_clean_early))
		return;
	coh_cache_unmap(c, &all, out);
	c->link = COH_CACHE_CLEANED;
	coh_cache_push(out, COH_CACHE_CLEAN)->term = c->term;
}

void coh_cache_cut(struct coh_cache *c)
{
	for (uint32_t i = 0; i < c->page_count; i++) {
		c->pages[i].giving = c->pages[i].leaving = false;
		c->pages[i].get = COH_NONE;
	}
	for (uint8_t i = 0; i < c->lane_count; i++)
		c->lanes[i].right = COH_NONE;
	for (uint8_t i = 0; i < c->job_count; i++)
		c->jobs[i].state = COH_JOB_FREE;
	for (uint8_t i = 0; i < c->leave_count; i++)
		c->leaves[i].range.count = 0;
	c->giving = 0;
	c->link = COH_CACHE_CUT;
}

void coh_cache_connect(struct coh_cache *c, uint32_t term, bool was_member,
		       struct coh_cache_out *out)
{
	struct coh_range all = coh_cache_whole(c);

	out->count = 0;
	ASSERT(c->link == COH_CACHE_CUT);
	c->term = term;
	c->at = 0;
	/* Lanes are new, and the switch counts their gets from the first one.
	 */
	for (uint8_t i = 0; i < c->lane_count; i++)
		c->lanes[i].serial = 0;
	c->link = was_member ? COH_CACHE_CLEANS : COH_CACHE_MEMBER;
	if (!was_member)
		return;
	coh_cache_protect(c, &all, out);
	coh_cache_go_clean(c, out);
}

void coh_cache_cleaned(struct coh_cache *c)
{
	if (c->link == COH_CACHE_CLEANED)
		c->link = COH_CACHE_MEMBER;
	else
		c->stray++;
}

void coh_cache_suspend(struct coh_cache *c, struct coh_cache_out *out)
{
	out->count = 0;
	c->suspended = true;
	coh_cache_push(out, COH_CACHE_HIDE);
}

void coh_cache_resume(struct coh_cache *c, struct coh_cache_out *out)
{
	out->count = 0;
	c->suspended = false;
	coh_cache_push(out, COH_CACHE_UNHIDE);
}

void coh_cache_expelled(struct coh_cache *c, struct coh_cache_out *out)
{
	struct coh_range all = coh_cache_whole(c);

	out->count = 0;
	coh_cache_cut(c);
	coh_cache_unmap(c, &all, out);
	coh_cache_push_range(out, COH_CACHE_FAIL, all.page, all.count);
	c->suspended = false;
}

void coh_cache_init(struct coh_cache *c)
{
	ASSERT(c->lane_count <= COH_LANES_MAX &&
	       c->job_count <= COH_CACHE_JOBS_MAX);
	memset(c->pages, 0, sizeof(*c->pages) * c->page_count);
	memset(c->lanes, 0, sizeof(*c->lanes) * c->lane_count);
	coh_cache_cut(c);
	c->term = c->at = 0;
	c->suspended = false;
	c->stray = 0;
}

const char *coh_cache_check(const struct coh_cache *c)
{
	uint32_t giving = 0;

	for (uint32_t i = 0; i < c->page_count; i++) {
		const struct coh_cache_page *p = &c->pages[i];

		giving += p->giving;
		if (p->right == COH_WRITE && !p->dirty)
			return "a page that can be written is not dirty";
		if (p->dirty && p->right == COH_NONE)
			return "a dirty page is not there";
		if (p->giving && (!p->dirty || p->right == COH_WRITE))
			return "a page that is given back is clean or written";
		if (p->leaving && !p->giving)
			return "a page leaves and is not given back";
		if (p->get != COH_NONE && p->get <= p->right)
			return "a page is asked for that is here";
	}
	return giving == c->giving ? NULL : "give-backs are miscounted";
}
