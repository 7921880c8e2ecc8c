/* SPDX-License-Identifier: Apache-2.0 */
/* Control calls about regions of shared memory. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "coh_ctl.h"

enum {
	/* One recall for each get is always possible; more are not. */
	RECALLS_MAX = COH_MACHINES_MAX * COH_LANES_MAX / 2,
};

struct coh_range coh_read_pages(struct tor_words *p, uint64_t *count)
{
	uint64_t va = tor_words_u64(p, "va", UINT64_MAX);
	uint64_t size = tor_words_u64(p, "size", UINT64_MAX);

	if (!p->err && (va % COHERENCE_PAGE_BYTES || !size ||
			size % COHERENCE_PAGE_BYTES || va + size < va))
		p->err = error_set(-EINVAL, "coherence: va and size are whole "
					    "pages");
	*count = size >> COHERENCE_PAGE_SHIFT;
	return (struct coh_range){va >> COHERENCE_PAGE_SHIFT,
				  (uint32_t)u64_min(*count, UINT32_MAX)};
}

/* The pages that a call is about; `count` may be more than the range has. */
static int read_region(const struct coh *c, struct tor_words *p,
		       struct coh_range *r, uint64_t *count)
{
	int err;

	*r = coh_read_pages(p, count);
	err = tor_words_end(p);
	if (!err && !c->has_begun)
		err = error_set(-EAGAIN, "coherence: no term has begun");
	return err;
}

/* The entry of a call's first page, or NULL. */
static int read_entry(struct coh *c, struct tor_words *p,
		      struct coh_dir_entry **out)
{
	struct coh_range r;
	uint64_t count;
	int err = read_region(c, p, &r, &count);

	*out = err ? NULL
		   : (struct coh_dir_entry *)(uintptr_t)coh_dir_find(&c->dir,
								     r.page);
	return err;
}

static int not_clean(int err)
{
	return error_set(err, "coherence: machines of a former term are not "
			      "clean");
}

int coh_region_lost(struct coh *c, struct tor_words *p)
{
	struct coh_range r;
	uint64_t count;
	int err = read_region(c, p, &r, &count);

	if (!err)
		coh_dir_set_lost(&c->dir, &r);
	return err;
}

int coh_region_repair(struct coh *c, struct tor_words *p)
{
	struct coh_range r;
	uint64_t count;
	int err = read_region(c, p, &r, &count);

	if (err)
		return err;
	err = coh_dir_repair(&c->dir, r.page, &c->out);
	if (err)
		return not_clean(err);
	coh_act(c, NULL, NULL);
	return 0;
}

int coh_region_recall(struct coh *c, struct tor_words *p)
{
	struct coh_range r;
	uint64_t count;
	int err = read_region(c, p, &r, &count);

	if (err)
		return err;
	if (c->dir.recalls >= RECALLS_MAX)
		return error_set(-EBUSY, "coherence: many are being recalled");
	coh_dir_recall(&c->dir, r.page, &c->out);
	coh_act(c, NULL, NULL);
	return 0;
}

int coh_region_split(struct coh *c, struct tor_words *p)
{
	struct coh_dir_entry *e;
	int err = read_entry(c, p, &e);

	if (!err && (!e || !coh_dir_split(&c->dir, e)))
		err = error_set(-EBUSY, "coherence: cannot be split");
	return err;
}

int coh_region_join(struct coh *c, struct tor_words *p)
{
	struct coh_dir_entry *e;
	int err = read_entry(c, p, &e);

	if (!err && (!e || !coh_dir_merge(&c->dir, e)))
		err = error_set(-EBUSY, "coherence: cannot be joined");
	return err;
}

/* ---- a range that ends -----------------------------------------------------
 */

static void clear_entry(struct coh *c, const struct coh_dir_entry *e)
{
	uint64_t page = e->page;

	if (e->state == COH_DIR_LOST) {
		/* All machines are clean. */
		if (coh_dir_repair(&c->dir, page, &c->out))
			return;
		coh_act(c, NULL, NULL);
	}
	if (c->dir.recalls >= RECALLS_MAX)
		return;
	coh_dir_recall(&c->dir, page, &c->out);
	coh_act(c, NULL, NULL);
}

/* ---- what counts after a loss ----------------------------------------------
 */

/* The first one that ends behind the page. */
static uint32_t last_at(const struct coh *c, uint64_t page)
{
	uint32_t i = 0;

	while (i < c->dir.goes_on_count &&
	       c->goes_on[i].page + c->goes_on[i].count <= page)
		i++;
	return i;
}

static bool meets(const struct coh *c, uint32_t i, uint64_t page,
		  uint64_t count)
{
	return i < c->dir.goes_on_count && c->goes_on[i].page < page + count;
}

int coh_region_last(struct coh *c, struct tor_words *p)
{
	struct coh_range r;
	uint64_t count;
	int err = read_region(c, p, &r, &count);
	uint32_t i;

	if (err)
		return err;
	i = last_at(c, r.page);
	if (meets(c, i, r.page, count)) /* it was said */
		return c->goes_on[i].page == r.page &&
				       c->goes_on[i].count == count
			       ? 0
			       : error_set(-EEXIST,
					   "coherence: said of another range");
	if (c->dir.goes_on_count == COH_PAIRS || count > UINT32_MAX)
		return error_set(-ENOSPC, "coherence: %d ranges at most",
				 COH_PAIRS);
	memmove(c->goes_on + i + 1, c->goes_on + i,
		(c->dir.goes_on_count - i) * sizeof(*c->goes_on));
	c->goes_on[i] = r;
	c->dir.goes_on_count++;
	return 0;
}

static void forget_last(struct coh *c, uint64_t page, uint64_t count)
{
	for (uint32_t i = last_at(c, page); meets(c, i, page, count);) {
		c->dir.goes_on_count--;
		memmove(c->goes_on + i, c->goes_on + i + 1,
			(c->dir.goes_on_count - i) * sizeof(*c->goes_on));
	}
}

int coh_region_clear(struct coh *c, struct tor_words *p, struct json_out *out)
{
	struct coh_range r;
	uint64_t count, left = 0;
	int err = read_region(c, p, &r, &count);

	if (err)
		return err;
	/* They may still give back what they have of it. And what is lost as a
	 * whole is repaired as a whole. */
	if (c->dir.unclean || c->dir.lost)
		return not_clean(-EBUSY);
	for (uint32_t i = 0; i < c->dir.entry_count; i++) {
		const struct coh_dir_entry *e = &c->dir.entries[i];

		if (e->state == COH_DIR_FREE || e->page < r.page ||
		    e->page - r.page >= count)
			continue;
		clear_entry(c, e);
		left += e->state != COH_DIR_FREE;
	}
	/* What will be there next is where its arena is. */
	if (!left) {
		forget_last(c, r.page, count);
		coh_pair_clear(c, r.page, count);
		coh_outlier_clear(c, coh_va(r.page), coh_va(count));
	}
	if (out)
		json_out_u64(out, "left", left);
	return 0;
}

static bool is_gaining(const struct coh_dir_entry *e)
{
	return e->state == COH_DIR_TO_SHARED && e->gainer != COH_NOBODY;
}

int coh_region_find(const struct coh *c, struct tor_words *p,
		    struct json_out *out)
{
	uint64_t va = tor_words_u64(p, "va", UINT64_MAX);
	const struct coh_dir_entry *e;
	uint64_t addr;
	uint32_t node;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (!c->has_begun)
		return error_set(-EAGAIN, "coherence: no term has begun");
	e = coh_dir_find(&c->dir, va >> COHERENCE_PAGE_SHIFT);
	if (!out)
		return 0;
	json_out_string(out, "state",
			coh_dir_state_name(e ? (enum coh_dir_state)e->state
					     : COH_DIR_FREE));
	/* Who is answered before the owner's FIN has it already. */
	json_out_u64(out, "sharers",
		     e ? e->sharers | (is_gaining(e) ? 1u << e->gainer : 0)
		       : 0);
	json_out_u64(out, "va", e ? coh_va(e->page) : va);
	json_out_u64(out, "size", e ? coh_va(coh_dir_pages(e)) : 0);
	if (!translate_find(&c->translate, va, &node, &addr))
		json_out_u64(out, "node", node);
	return 0;
}
