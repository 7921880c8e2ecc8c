/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's pages: touched, answered, given back, taken away. */
#include <errno.h>

#include "base/plant.h"
#include "cache_priv.h"

struct coh_cache_action *coh_cache_push(struct coh_cache_out *out,
					enum coh_cache_action_kind kind)
{
	struct coh_cache_action *a;

	ASSERT(out->count < COH_CACHE_OUT_MAX);
	a = &out->action[out->count++];
	*a = (struct coh_cache_action){.kind = kind};
	return a;
}

void coh_cache_push_range(struct coh_cache_out *out,
			  enum coh_cache_action_kind kind, uint64_t page,
			  uint32_t count)
{
	coh_cache_push(out, kind)->range = (struct coh_range){page, count};
}

/* The part of a range that is ours. */
static struct coh_range clip(const struct coh_cache *c,
			     const struct coh_range *r)
{
	uint64_t end = c->first_page + c->page_count;
	uint64_t from = u64_max(r->page, c->first_page);
	uint64_t to = u64_min(r->page + r->count, end);

	return (struct coh_range){from, to > from ? (uint32_t)(to - from) : 0};
}

enum coh_right coh_cache_right(const struct coh_cache *c, uint64_t page)
{
	return c->suspended ? COH_NONE
			    : (enum coh_right)coh_cache_page_at(c, page)->right;
}

/* ---- pages --------------------------------------------------------------- */

void coh_cache_protect(struct coh_cache *c, const struct coh_range *r,
		       struct coh_cache_out *out)
{
	bool can_write = false;

	for (uint32_t i = 0; i < r->count; i++) {
		struct coh_cache_page *p = coh_cache_page_at(c, r->page + i);

		can_write |= p->right == COH_WRITE;
		if (p->right == COH_WRITE && !PLANTED(mind_late_protect))
			p->right = COH_READ;
	}
	/* What may be read only is protected since it came. */
	if (can_write)
		coh_cache_push_range(out, COH_CACHE_PROTECT, r->page, r->count);
}

void coh_cache_unmap(struct coh_cache *c, const struct coh_range *r,
		     struct coh_cache_out *out)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct coh_cache_page *p = coh_cache_page_at(c, r->page + i);

		p->right = COH_NONE;
		p->dirty = p->leaving = false;
	}
	coh_cache_push_range(out, COH_CACHE_UNMAP, r->page, r->count);
}

/* False: there are too many give-backs under way. */
static bool give(struct coh_cache *c, uint64_t page, struct coh_cache_out *out)
{
	struct coh_cache_page *p = coh_cache_page_at(c, page);

	if (!p->dirty || p->giving)
		return true;
	if (c->giving == COH_CACHE_GIVES_MAX)
		return false;
	p->giving = true;
	c->giving++;
	coh_cache_push_range(out, COH_CACHE_GIVE, page, 1);
	return true;
}

bool coh_cache_give_on(struct coh_cache *c, const struct coh_range *r,
		       uint32_t *at, struct coh_cache_out *out)
{
	while (*at < r->count && give(c, r->page + *at, out))
		++*at;
	return *at == r->count;
}

static bool is_giving(const struct coh_cache *c, const struct coh_range *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (coh_cache_page_at(c, r->page + i)->giving)
			return true;
	return false;
}

/* ---- INVALs -------------------------------------------------------------- */

bool coh_cache_is_named(const struct coh_cache *c,
			const struct coh_inval *inval)
{
	for (uint8_t i = 0; i < c->lane_count; i++)
		if (c->lanes[i].right != COH_NONE &&
		    c->lanes[i].serial == inval->granted[i] &&
		    coh_range_has(&inval->range, c->lanes[i].page) &&
		    !PLANTED(mind_ignore_granted))
			return true;
	return false;
}

static void run_job(struct coh_cache *c, struct coh_cache_job *job,
		    struct coh_cache_out *out)
{
	struct coh_range r = clip(c, &job->inval.range);
	struct coh_cache_action *a;
	bool all;

	if (job->state == COH_JOB_WAITS) {
		if (coh_cache_is_named(c, &job->inval))
			return;
		job->state = COH_JOB_GIVES;
		coh_cache_protect(c, &r, out);
		if (coh_range_has(&r, job->inval.target))
			(void)give(c, job->inval.target, out); /* or later */
	}
	all = coh_cache_give_on(c, &r, &job->at, out) && !is_giving(c, &r);
	if (!all && !PLANTED(mind_fin_early))
		return;
	if (job->inval.to == COH_NONE)
		coh_cache_unmap(c, &r, out);
	a = coh_cache_push(out, COH_CACHE_FIN);
	a->fin = (struct coh_fin){job->inval.range, job->inval.term,
				  job->inval.seq};
	job->state = COH_JOB_FREE;
}

static void run_jobs(struct coh_cache *c, struct coh_cache_out *out)
{
	for (uint8_t i = 0; i < c->job_count; i++)
		if (c->jobs[i].state != COH_JOB_FREE)
			run_job(c, &c->jobs[i], out);
}

void coh_cache_inval(struct coh_cache *c, const struct coh_inval *inval,
		     struct coh_cache_out *out)
{
	out->count = 0;
	/* Of another switch, or longer than a region: nobody waits for it. */
	if (inval->term != c->term || c->link == COH_CACHE_CUT ||
	    inval->to == COH_WRITE ||
	    inval->range.count > COH_REGION_PAGES_MAX) {
		c->stray++;
		return;
	}
	for (uint8_t i = 0; i < c->job_count; i++) {
		if (c->jobs[i].state != COH_JOB_FREE)
			continue;
		c->jobs[i] = (struct coh_cache_job){.inval = *inval,
						    .state = COH_JOB_WAITS};
		run_job(c, &c->jobs[i], out);
		return;
	}
	/* More than there are receives cannot come. */
	c->stray++;
}

/* ---- gets ---------------------------------------------------------------- */

static bool is_left(const struct coh_cache *c, uint64_t page)
{
	for (uint8_t i = 0; i < c->leave_count; i++)
		if (coh_range_has(&c->leaves[i].range, page) &&
		    !PLANTED(mind_get_beside_evict))
			return true;
	return false;
}

enum coh_touch coh_cache_touch(struct coh_cache *c, uint64_t page,
			       enum coh_right right, struct coh_cache_out *out)
{
	struct coh_cache_page *p = coh_cache_page_at(c, page);
	struct coh_cache_action *a;
	uint8_t i = 0;

	out->count = 0;
	ASSERT(coh_cache_has(c, page) && right != COH_NONE);
	if (coh_cache_right(c, page) >= right)
		return COH_TOUCH_HIT;
	while (i < c->lane_count && c->lanes[i].right != COH_NONE)
		i++;
	if (i == c->lane_count || c->suspended || p->right >= right ||
	    p->get != COH_NONE || c->link != COH_CACHE_MEMBER ||
	    (p->giving && !PLANTED(mind_get_beside_give)) || is_left(c, page))
		return COH_TOUCH_LATER;
	c->lanes[i].page = page;
	c->lanes[i].serial++;
	c->lanes[i].right = (uint8_t)right;
	p->get = (uint8_t)right;
	a = coh_cache_push(out, COH_CACHE_GET);
	a->get = (struct coh_get){c->machine, i, right, c->lanes[i].serial,
				  page};
	return COH_TOUCH_SENT;
}

/* The lane's page, with the lane free again; NULL: it carries none. */
static struct coh_cache_page *end_get(struct coh_cache *c, uint8_t lane)
{
	struct coh_cache_page *p;

	if (lane >= c->lane_count || c->lanes[lane].right == COH_NONE) {
		c->stray++;
		return NULL;
	}
	p = coh_cache_page_at(c, c->lanes[lane].page);
	c->lanes[lane].right = COH_NONE;
	p->get = COH_NONE;
	return p;
}

void coh_cache_answer(struct coh_cache *c, uint8_t lane,
		      struct coh_cache_out *out)
{
	uint8_t right = lane < c->lane_count ? c->lanes[lane].right : COH_NONE;
	struct coh_cache_page *p = end_get(c, lane);
	struct coh_cache_action *a;

	out->count = 0;
	if (!p)
		return;
	p->right = right;
	p->dirty = right == COH_WRITE;
	p->leaving = false;
	a = coh_cache_push(out, COH_CACHE_MAP);
	a->range = (struct coh_range){c->lanes[lane].page, 1};
	a->right = (enum coh_right)right;
	run_jobs(c, out);
}

void coh_cache_refused(struct coh_cache *c, uint8_t lane,
		       struct coh_cache_out *out)
{
	out->count = 0;
	if (!end_get(c, lane))
		return;
	coh_cache_push_range(out, COH_CACHE_FAIL, c->lanes[lane].page, 1);
	run_jobs(c, out);
}

/* ---- give-backs and leaving ---------------------------------------------- */

void coh_cache_given(struct coh_cache *c, uint64_t page,
		     struct coh_cache_out *out)
{
	struct coh_cache_page *p;
	struct coh_range one = {page, 1};

	out->count = 0;
	if (!coh_cache_has(c, page) || !coh_cache_page_at(c, page)->giving) {
		c->stray++;
		return;
	}
	p = coh_cache_page_at(c, page);
	p->giving = p->dirty = false;
	c->giving--;
	if (p->leaving)
		coh_cache_unmap(c, &one, out);
	run_jobs(c, out);
	coh_cache_go_clean(c, out);
}

int coh_cache_evict(struct coh_cache *c, uint64_t page,
		    struct coh_cache_out *out)
{
	struct coh_cache_page *p = coh_cache_page_at(c, page);
	struct coh_range one = {page, 1};

	out->count = 0;
	ASSERT(coh_cache_has(c, page));
	if (p->right == COH_NONE || p->get != COH_NONE || p->giving ||
	    c->link != COH_CACHE_MEMBER)
		return -EBUSY;
	if (!p->dirty) {
		coh_cache_unmap(c, &one, out);
		return 0;
	}
	if (c->giving == COH_CACHE_GIVES_MAX)
		return -EBUSY;
	p->leaving = true;
	coh_cache_protect(c, &one, out);
	(void)give(c, page, out); /* there is room for it */
	return 0;
}

int coh_cache_flush(struct coh_cache *c, uint64_t page,
		    struct coh_cache_out *out)
{
	const struct coh_cache_page *p = coh_cache_page_at(c, page);
	struct coh_range one = {page, 1};

	out->count = 0;
	ASSERT(coh_cache_has(c, page));
	if (!p->dirty)
		return 0;
	if (p->giving || c->giving == COH_CACHE_GIVES_MAX ||
	    c->link != COH_CACHE_MEMBER)
		return -EBUSY;
	coh_cache_protect(c, &one, out);
	(void)give(c, page, out); /* there is room for it */
	return -EBUSY;
}

int coh_cache_leave(struct coh_cache *c, const struct coh_range *range,
		    struct coh_cache_out *out)
{
	struct coh_range r = clip(c, range);
	struct coh_cache_action *a;
	uint8_t i = 0;

	out->count = 0;
	while (i < c->leave_count && c->leaves[i].range.count)
		i++;
	if (i == c->leave_count || c->link != COH_CACHE_MEMBER ||
	    range->count > COH_REGION_PAGES_MAX)
		return -EBUSY;
	for (uint8_t k = 0; k < c->job_count; k++)
		if (c->jobs[k].state != COH_JOB_FREE &&
		    coh_range_meets(&c->jobs[k].inval.range, range))
			return -EBUSY;
	for (uint32_t k = 0; k < r.count; k++) {
		const struct coh_cache_page *p =
			coh_cache_page_at(c, r.page + k);

		if (p->right != COH_NONE || p->get != COH_NONE || p->giving)
			return -EBUSY;
	}
	c->leaves[i].range = *range;
	a = coh_cache_push(out, COH_CACHE_EVICT);
	a->range = *range;
	a->index = i;
	return 0;
}

void coh_cache_left(struct coh_cache *c, uint8_t index)
{
	if (index < c->leave_count && c->leaves[index].range.count)
		c->leaves[index].range.count = 0;
	else
		c->stray++;
}
