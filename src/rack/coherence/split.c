/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded splitting: which regions are split and joined in an epoch. */
#include "split.h"

void coh_split_init(struct coh_split *s)
{
	*s = (struct coh_split){.c = COH_SPLIT_C_ONE};
}

static bool are_few(const struct coh_dir *d)
{
	return (uint64_t)(d->entry_count - d->used) * 5 < d->entry_count;
}

static void begin(struct coh_split *s, const struct coh_dir *d)
{
	uint64_t entries = u64_max(d->entry_count / 10, 1);
	uint64_t t = s->sum * COH_SPLIT_C_ONE / (entries * s->c);

	s->threshold = (uint32_t)u64_min(u64_max(t, are_few(d)), UINT32_MAX);
	s->sum = 0;
}

/* Joining takes an epoch for each size. While entries are recalled because
 * there is none, regions that are new begin larger. */
static void size_new(struct coh_split *s, struct coh_dir *d)
{
	uint64_t recalls = d->counters[COH_DIR_C_recalls];
	bool was_full = (recalls - s->recalls) * 20 > d->entry_count;

	s->recalls = recalls;
	if (was_full)
		d->new_pages = u32_min(d->new_pages * 2, COH_REGION_PAGES_MAX);
	else if ((uint64_t)d->used * 2 < d->entry_count)
		d->new_pages = u32_max(d->new_pages / 2, d->region_pages);
}

static void end(struct coh_split *s, struct coh_dir *d)
{
	s->at = 0;
	s->epochs++;
	size_new(s, d);
	if ((uint64_t)d->used * 100 > (uint64_t)d->entry_count * 95)
		s->c = u32_max(s->c / 2, 1);
	else if ((uint64_t)d->used * 100 < (uint64_t)d->entry_count * 80)
		s->c = u32_min(s->c * 2, COH_SPLIT_C_MAX);
}

static void look(struct coh_split *s, struct coh_dir *d,
		 struct coh_dir_entry *e)
{
	uint32_t f = e->false_invals;
	const struct coh_dir_entry *right;

	s->sum += f;
	e->false_invals = 0;
	if (f > s->threshold) {
		if (d->used + 3 <= d->entry_count)
			s->splits += coh_dir_split(d, e);
		return;
	}
	if (!are_few(d) && s->threshold < COH_SPLIT_CALM)
		return;
	right = coh_dir_find(d, e->page + coh_dir_pages(e));
	if (f + (right ? right->false_invals : 0) < s->threshold)
		s->joins += coh_dir_merge(d, e);
}

bool coh_split_step(struct coh_split *s, struct coh_dir *d)
{
	uint32_t end_at = u32_min(s->at + COH_SPLIT_STEP, d->entry_count);

	if (!s->at)
		begin(s, d);
	for (; s->at < end_at; s->at++)
		if (d->entries[s->at].state != COH_DIR_FREE)
			look(s, d, &d->entries[s->at]);
	if (s->at < d->entry_count)
		return false;
	end(s, d);
	return true;
}
