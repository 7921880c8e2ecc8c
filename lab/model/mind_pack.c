/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States as few bits, the same for states that mean the same. One function
 * walks over all that a state is; it writes or reads. Machines are written in
 * an order; the smallest of all orders is the state's own. Sequence numbers
 * become labels in the order in which they are met, and of the serial of a get
 * only counts whether it is the one that its lane carries now.
 */
#include <string.h>

#include "mind_world.h"

enum {
	LABELS_MAX = 16,
	NOW = 1, /* serial of the get that a lane carries */
};

struct codec {
	struct mind_world *w;
	struct mind_packed *packed;
	bool writes;
	uint32_t bit;
	uint8_t place[MIND_MACHINES_MAX]; /* of a machine, in this order */
	uint8_t at_place[MIND_MACHINES_MAX];
	uint32_t label[LABELS_MAX];
	uint32_t label_count;
};

/* ---- bits ---------------------------------------------------------------- */

static uint64_t put(struct codec *c, uint64_t value, uint32_t bits)
{
	uint32_t word = c->bit / 64, shift = c->bit % 64;

	ASSERT(word < MIND_WORDS_MAX && value < 1ull << bits);
	if (shift + bits > 64) { /* never across words */
		c->bit += 64 - shift;
		return put(c, value, bits);
	}
	c->bit += bits;
	if (c->writes)
		c->packed->word[word] |= value << shift;
	else
		value = c->packed->word[word] >> shift & ((1ull << bits) - 1);
	return value;
}

#define FIELD(c, field, bits) \
	((field) = (__typeof__(field))put(c, (uint64_t)(field), bits))

static void machine_bits(struct codec *c, uint16_t *set)
{
	uint16_t out = 0;

	for (uint32_t i = 0; i < c->w->config->machines; i++) {
		uint8_t from = c->at_place[i];

		out |= (uint16_t)(put(c, *set >> from & 1, 1) << from);
	}
	*set = out;
}

/* A machine, or COH_NOBODY. */
static void machine_number(struct codec *c, uint8_t *machine)
{
	bool none = *machine == COH_NOBODY;
	uint64_t n = put(c, none ? 3 : c->place[*machine], 2);

	*machine = n == 3 ? COH_NOBODY : c->at_place[n];
}

static void slot_number(struct codec *c, uint16_t *slot)
{
	uint8_t lanes = c->w->dir.lanes;
	bool none = *slot == COH_SLOT_NONE;
	uint8_t machine = (uint8_t)(none ? COH_NOBODY : *slot / lanes);
	uint64_t lane = none ? 0 : *slot % lanes;

	machine_number(c, &machine);
	lane = put(c, lane, 1);
	*slot = machine == COH_NOBODY ? COH_SLOT_NONE
				      : (uint16_t)(machine * lanes + lane);
}

/* A queue of slots: in their order, ended by none. */
static void slot_queue(struct codec *c, uint16_t *first, uint16_t *last)
{
	struct coh_dir_slot *slots = c->w->slots;
	uint16_t at = *first, before = COH_SLOT_NONE;

	for (;;) {
		uint16_t next;

		slot_number(c, &at);
		if (before == COH_SLOT_NONE)
			*first = at;
		else
			slots[before].next = at;
		if (at == COH_SLOT_NONE)
			break;
		next = slots[at].next;
		before = at;
		at = next;
	}
	*last = before;
}

static void sequence(struct codec *c, uint32_t *seq)
{
	uint32_t i = 0;

	while (i < c->label_count && c->label[i] != *seq)
		i++;
	if (c->writes && i == c->label_count) {
		ASSERT(i < LABELS_MAX);
		c->label[c->label_count++] = *seq;
	}
	*seq = (uint32_t)put(c, c->writes ? i : 0, 4);
}

/* ---- parts --------------------------------------------------------------- */

/* That of a message about a region, which has one size unless it is split. */
static void range(struct codec *c, struct coh_range *r, uint32_t region)
{
	const struct mind_config *k = c->w->config;
	uint32_t pages = mind_unit_pages(k);

	r->page = (uint64_t)region * pages;
	if (k->split)
		FIELD(c, r->count, 2);
	else
		r->count = pages;
}

static void inval(struct codec *c, const struct mind_machine *m,
		  struct coh_inval *v, uint32_t region)
{
	const struct mind_config *k = c->w->config;

	v->term = c->w->dir.term;
	range(c, &v->range, region);
	sequence(c, &v->seq);
	FIELD(c, v->to, 1);
	FIELD(c, v->target, 1);
	for (uint32_t i = 0; i < k->pages; i++) {
		bool now = m->lanes[i].right != COH_NONE &&
			   v->granted[i] == m->lanes[i].serial;

		now = put(c, now, 1);
		v->granted[i] = c->writes ? v->granted[i] : now ? NOW : 0;
	}
}

/* The machine's job of that region, if it is at the place of another. */
static void sort_job(struct mind_machine *m, const struct mind_config *k,
		     uint32_t region)
{
	for (uint32_t i = 0; i < mind_region_count(k); i++) {
		struct coh_cache_job job = m->jobs[i];

		if (job.state == COH_JOB_FREE ||
		    job.inval.range.page / mind_unit_pages(k) != region)
			continue;
		m->jobs[i] = m->jobs[region];
		m->jobs[region] = job;
		return;
	}
}

static void sort_leave(struct mind_machine *m, const struct mind_config *k,
		       uint32_t region)
{
	for (uint32_t i = 0; i < mind_region_count(k); i++) {
		struct coh_cache_leave leave = m->leaves[i];

		if (!leave.range.count ||
		    leave.range.page / mind_unit_pages(k) != region)
			continue;
		m->leaves[i] = m->leaves[region];
		m->leaves[region] = leave;
		return;
	}
}

static void region(struct codec *c, struct mind_machine *m, uint32_t r)
{
	const struct mind_config *k = c->w->config;
	bool leaves;

	FIELD(c, m->jobs[r].state, 2);
	if (m->jobs[r].state != COH_JOB_FREE) {
		inval(c, m, &m->jobs[r].inval, r);
		FIELD(c, m->jobs[r].at, 2);
	}
	leaves = put(c, m->leaves[r].range.count != 0, 1);
	m->leaves[r].range = mind_leave_range(k, r);
	if (!leaves)
		m->leaves[r].range.count = 0;
	FIELD(c, m->has_inval[r], 1);
	if (m->has_inval[r])
		inval(c, m, &m->inval[r], r);
	FIELD(c, m->has_fin[r], 1);
	if (m->has_fin[r]) {
		range(c, &m->fin[r].range, r);
		m->fin[r].term = c->w->dir.term;
		sequence(c, &m->fin[r].seq);
	}
	FIELD(c, m->evict[r].way, 2);
}

static void page(struct codec *c, struct mind_machine *m, uint32_t p)
{
	struct coh_cache_page *page = &m->pages[p];

	FIELD(c, page->right, 2);
	FIELD(c, page->dirty, 1);
	FIELD(c, page->giving, 1);
	FIELD(c, page->leaving, 1);
	FIELD(c, page->get, 2);
	FIELD(c, m->fresh[p], 1);
	FIELD(c, m->want[p], 2);
	FIELD(c, m->give[p].way, 2);
	FIELD(c, m->give[p].fresh, 1);
	if (c->w->config->copies) {
		FIELD(c, m->has_failed[p][0], 1);
		FIELD(c, m->has_failed[p][1], 1);
		FIELD(c, m->is_held[p], 1);
	}
	m->cache.giving += c->writes ? 0 : page->giving;
}

static void lane(struct codec *c, uint8_t machine, uint8_t l)
{
	struct mind_machine *m = &c->w->machine[machine];
	struct coh_cache_lane *lane = &m->lanes[l];
	uint16_t at = (uint16_t)(machine * c->w->dir.lanes + l);
	struct coh_dir_slot *s = &c->w->slots[at];
	bool now = s->granted == lane->serial && lane->right != COH_NONE;

	FIELD(c, lane->right, 2);
	FIELD(c, lane->page, 1);
	lane->serial = c->writes ? lane->serial : NOW;
	FIELD(c, m->get[l].way, 3);
	FIELD(c, m->get[l].fresh, 1);
	if (m->get[l].way == MIND_THERE) {
		FIELD(c, m->asked[l].right, 2);
		FIELD(c, m->asked[l].page, 1);
		m->asked[l].machine = machine;
		m->asked[l].lane = l;
		m->asked[l].serial = c->writes ? m->asked[l].serial : NOW;
	}
	now = put(c, now, 1);
	s->granted = c->writes ? s->granted : now ? NOW : 0;
	FIELD(c, s->state, 3);
	if (s->state == COH_SLOT_FREE)
		return;
	FIELD(c, s->right, 2);
	FIELD(c, s->page, 1);
	if (s->state == COH_SLOT_HOLDING)
		FIELD(c, c->w->held[at], 1);
	s->serial = c->writes ? s->serial : NOW;
}

static void machine(struct codec *c, uint8_t i)
{
	struct mind_machine *m = &c->w->machine[i];
	const struct mind_config *k = c->w->config;

	FIELD(c, m->alive, 1);
	if (!m->alive && k->entries > 1)
		FIELD(c, m->gone_at, 1);
	FIELD(c, m->cache.link, 2);
	FIELD(c, m->clean.way, 2);
	if (m->cache.link == COH_CACHE_CLEANS)
		FIELD(c, m->cache.at, 2);
	m->cache.term = c->w->dir.term;
	for (uint8_t p = 0; p < k->pages; p++) {
		page(c, m, p);
		lane(c, i, p);
	}
	for (uint32_t r = 0; r < mind_region_count(k); r++) {
		sort_job(m, k, r);
		sort_leave(m, k, r);
	}
	for (uint32_t r = 0; r < mind_region_count(k); r++)
		region(c, m, r);
}

static void memory(struct codec *c, uint8_t n, uint32_t p)
{
	struct mind_world *w = c->w;

	FIELD(c, w->memory[n][p], 1);
	FIELD(c, w->queue_len[n][p], 3);
	for (uint8_t i = 0; i < w->queue_len[n][p]; i++) {
		struct mind_request *q = &w->queue[n][p][i];

		FIELD(c, q->write, 1);
		machine_number(c, &q->machine);
		FIELD(c, q->lane, 1);
		FIELD(c, q->fresh, 1);
	}
}

static void nodes(struct codec *c)
{
	struct mind_world *w = c->w;

	for (uint8_t n = 0; n < mind_node_count(w->config); n++)
		for (uint32_t p = 0; p < w->config->pages; p++)
			memory(c, n, p);
	if (!w->config->copies)
		return;
	FIELD(c, w->is_away[0], 1);
	FIELD(c, w->is_away[1], 1);
	FIELD(c, w->counts, 2);
	FIELD(c, w->kept_counts, 2);
	FIELD(c, w->differs, 1);
	FIELD(c, w->node_may_die, 1);
}

static void entry(struct codec *c, struct coh_dir_entry *e)
{
	FIELD(c, e->state, 3);
	if (e->state == COH_DIR_FREE)
		return;
	FIELD(c, e->page, 1);
	if (c->w->config->split)
		FIELD(c, e->order, 1);
	else
		e->order = (uint8_t)__builtin_ctz(c->w->dir.region_pages);
	machine_bits(c, &e->sharers);
	machine_bits(c, &e->waiting);
	slot_number(c, &e->asker);
	machine_number(c, &e->gainer);
	FIELD(c, e->owned, 1);
	slot_queue(c, &e->first, &e->last);
	if (e->waiting)
		sequence(c, &e->seq);
}

/* Counts and lists of the directory, which follow from its entries. */
static void rebuild(struct coh_dir *d)
{
	d->free = d->buckets[0] = COH_ENTRY_NONE;
	d->recalls = d->lost_count = d->room_count = d->used = 0;
	memset(d->order_count, 0, sizeof(d->order_count));
	for (uint32_t i = d->entry_count; i--;) {
		struct coh_dir_entry *e = &d->entries[i];
		uint32_t *list =
			e->state == COH_DIR_FREE ? &d->free : &d->buckets[0];

		e->next = *list;
		*list = i;
		if (e->state != COH_DIR_FREE) {
			d->order_count[e->order]++;
			d->used++;
		}
		d->recalls += e->state == COH_DIR_RECALL;
		d->lost_count += e->state == COH_DIR_LOST;
	}
	for (uint16_t s = d->first; s != COH_SLOT_NONE; s = d->slots[s].next)
		d->room_count++;
}

static void walk(struct codec *c)
{
	struct mind_world *w = c->w;
	uint32_t term = (uint32_t)put(c, w->dir.term - 1, 1) + 1;

	w->dir.term = term;
	FIELD(c, w->machine_may_die, 1);
	FIELD(c, w->switch_may_die, 1);
	machine_bits(c, &w->dir.members);
	machine_bits(c, &w->dir.unclean);
	FIELD(c, w->dir.lost, 1);
	machine_bits(c, &w->kept);
	FIELD(c, w->kept_lost, 1);
	FIELD(c, w->doubt, 1);
	for (uint32_t r = 0; r < mind_region_count(w->config); r++)
		FIELD(c, w->kept_region_lost[r], 1);
	for (uint32_t i = 0; i < w->dir.entry_count; i++)
		entry(c, &w->entries[i]);
	slot_queue(c, &w->dir.first, &w->dir.last);
	nodes(c);
	for (uint32_t i = 0; i < w->config->machines; i++)
		machine(c, c->at_place[i]);
}

/* ---- orders -------------------------------------------------------------- */

static const uint8_t orders[6][MIND_MACHINES_MAX] = {
	{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0},
};

static void set_order(struct codec *c, unsigned n)
{
	memcpy(c->at_place, orders[n], sizeof(c->at_place));
	for (uint8_t i = 0; i < MIND_MACHINES_MAX; i++)
		c->place[c->at_place[i]] = i;
}

void mind_pack(const struct mind_world *w, struct mind_packed *packed)
{
	static const unsigned order_count[] = {1, 1, 2, 6};
	struct mind_world copy;
	struct mind_packed one;

	/* Writing sorts jobs, and leaves all else as it is. */
	mind_world_copy(&copy, w);
	for (unsigned n = 0; n < order_count[w->config->machines]; n++) {
		struct codec c = {.w = &copy, .packed = &one, .writes = true};

		memset(&one, 0, sizeof(one));
		set_order(&c, n);
		walk(&c);
		if (!n || memcmp(&one, packed, sizeof(one)) < 0)
			*packed = one;
	}
}

void mind_unpack(const struct mind_config *config,
		 const struct mind_packed *packed, struct mind_world *w)
{
	struct mind_packed from = *packed;
	struct codec c = {.w = w, .packed = &from};

	mind_world_init(w, config);
	for (uint32_t i = 0; i < config->entries; i++)
		w->entries[i] = (struct coh_dir_entry){0};
	set_order(&c, 0);
	walk(&c);
	w->dir.seq = LABELS_MAX;
	rebuild(&w->dir);
}
