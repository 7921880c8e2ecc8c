/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cache share. */
#ifndef AQ_COHERENCE_CACHE_PRIV_H
#define AQ_COHERENCE_CACHE_PRIV_H

#include "cache.h"

static inline bool coh_cache_has(const struct coh_cache *c, uint64_t page)
{
	return page - c->first_page < c->page_count;
}

static inline struct coh_cache_page *coh_cache_page_at(
	const struct coh_cache *c, uint64_t page)
{
	return &c->pages[page - c->first_page];
}

static inline struct coh_range coh_cache_whole(const struct coh_cache *c)
{
	return (struct coh_range){c->first_page, c->page_count};
}

struct coh_cache_action *coh_cache_push(struct coh_cache_out *out,
					enum coh_cache_action_kind kind);
void coh_cache_push_range(struct coh_cache_out *out,
			  enum coh_cache_action_kind kind, uint64_t page,
			  uint32_t count);
/* No more stores to the range. */
void coh_cache_protect(struct coh_cache *c, const struct coh_range *r,
		       struct coh_cache_out *out);
/* Nothing of the range is here any more. */
void coh_cache_unmap(struct coh_cache *c, const struct coh_range *r,
		     struct coh_cache_out *out);
/* Gives back what is dirty from *at on, as many as may be under way. Returns
 * whether it came to the end of the range. */
bool coh_cache_give_on(struct coh_cache *c, const struct coh_range *r,
		       uint32_t *at, struct coh_cache_out *out);
/* Cleans on, if the machine does. */
void coh_cache_go_clean(struct coh_cache *c, struct coh_cache_out *out);

#endif
