/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that two memory nodes have. What is given back there is written to
 * both, and acknowledged when both have it; so either will do for a READ. When
 * one of them does not answer, READs go to the other at once, and a give-back
 * that only that one has is held: if it were acknowledged and the switch died,
 * nobody would know which of the two has the last bytes. It is acknowledged
 * when the keeper has noted which node the range has from now on, and said so
 * (`single`).
 *
 * The first node of a pair is the one that translation says.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "base/plant.h"
#include "coh_ctl.h"

/* ---- the table, by page ----------------------------------------------------
 */

/* The first one that ends behind the page. */
static uint32_t place_of(const struct coh *c, uint64_t page)
{
	uint32_t low = 0, high = c->pair_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->pairs[mid].page + c->pairs[mid].count <= page)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct coh_pair *find(const struct coh *c, uint64_t page)
{
	uint32_t i = place_of(c, page);

	return i < c->pair_count && c->pairs[i].page <= page ? &c->pairs[i]
							     : NULL;
}

static int add(struct coh *c, const struct coh_pair *pair)
{
	uint32_t i = place_of(c, pair->page), node;
	uint64_t addr;

	if (i < c->pair_count && c->pairs[i].page < pair->page + pair->count)
		return error_set(-EEXIST, "coherence: two nodes have that");
	if (c->pair_count == COH_PAIRS)
		return error_set(-ENOSPC, "coherence: %d pairs at most",
				 COH_PAIRS);
	if (translate_find(&c->translate, coh_va(pair->page), &node, &addr) ||
	    node == pair->node)
		return error_set(-EINVAL,
				 "coherence: a pair is two nodes that are "
				 "there");
	memmove(c->pairs + i + 1, c->pairs + i,
		(c->pair_count - i) * sizeof(*c->pairs));
	c->pairs[i] = *pair;
	c->pair_count++;
	return 0;
}

static void drop(struct coh *c, uint32_t i)
{
	c->pair_count--;
	memmove(c->pairs + i, c->pairs + i + 1,
		(c->pair_count - i) * sizeof(*c->pairs));
}

bool coh_pair_meets(const struct coh *c, uint64_t page, uint64_t count)
{
	uint32_t i = place_of(c, page);

	return i < c->pair_count && c->pairs[i].page < page + count;
}

/* ---- pages -----------------------------------------------------------------
 */

static bool is_dead(const struct coh *c, uint32_t node)
{
	return c->nodes[node].tx.dead;
}

static uint64_t addr_at(const struct coh_pair *pair, uint64_t page)
{
	return pair->addr + coh_va(page - pair->page);
}

int coh_pair_place(const struct coh *c, uint64_t page, uint32_t *node,
		   uint64_t *addr)
{
	int err = translate_find(&c->translate, coh_va(page), node, addr);
	const struct coh_pair *pair;

	if (err || !is_dead(c, *node))
		return err;
	pair = find(c, page);
	if (pair && coh_copies_read((bool[]){true, is_dead(c, pair->node)})) {
		*node = pair->node;
		*addr = addr_at(pair, page);
	}
	return 0;
}

bool coh_pair_read_again(struct coh *c, struct coh_op *op, uint64_t page)
{
	uint64_t addr;
	uint32_t node;

	if (coh_pair_place(c, page, &node, &addr) || is_dead(c, node))
		return false;
	coh_op_start_at(c, op, node, addr, false);
	return true;
}

bool coh_pair_give(struct coh *c, uint64_t page, struct coh_op *op)
{
	const struct coh_pair *pair = find(c, page);

	if (!pair || PLANTED(coh_pair_one))
		return false;
	coh_op_start_at(c, op, pair->node, addr_at(pair, page), true);
	return true;
}

/* ---- give-backs that are written ------------------------------------------
 */

enum coh_give_fate coh_pair_fate(const struct coh *c, const struct coh_give *g)
{
	const bool has_failed[COH_TWO] = {g->op.has_failed,
					  g->second.has_failed};
	uint8_t one = 0;
	uint64_t addr;
	uint32_t node;

	if (!g->has_second)
		return g->op.has_failed ? COH_GIVE_VOID : COH_GIVE_KEPT;
	if (find(c, g->page))
		return coh_copies_fate(has_failed,
				       (bool[]){is_dead(c, g->op.node),
						is_dead(c, g->second.node)});
	/* The range has one place now. */
	if (!translate_find(&c->translate, coh_va(g->page), &node, &addr))
		one = node == g->second.node;
	return coh_copies_fate_alone(has_failed, one);
}

bool coh_pair_holds(const struct coh_machine *m)
{
	for (unsigned k = 0; k < COH_GIVES; k++)
		if (m->gives[k].is_held)
			return true;
	return false;
}

bool coh_pair_writes(const struct coh_machine *m)
{
	if (PLANTED(coh_gone_early))
		return false;
	for (unsigned k = 0; k < COH_GIVES; k++)
		if (m->gives[k].used && m->gives[k].has_second)
			return true;
	return false;
}

bool coh_pair_waits(const struct coh *c)
{
	for (unsigned i = 0; i < c->opt.machines; i++)
		if (coh_pair_holds(&c->machines[i]))
			return true;
	return false;
}

void coh_pair_look(struct coh *c)
{
	for (unsigned i = 0; i < c->opt.machines; i++)
		for (unsigned k = 0; k < COH_GIVES; k++)
			if (c->machines[i].gives[k].is_held)
				coh_give_settle(c, &c->machines[i].gives[k]);
	for (unsigned i = 0; i < c->opt.machines; i++)
		if (c->machines[i].is_broken)
			coh_machine_due(&c->machines[i]);
}

/* ---- control calls ---------------------------------------------------------
 */

static int read_pair(struct coh *c, struct tor_words *p, struct coh_pair *out)
{
	uint64_t count, addr = 0;
	struct coh_range r = coh_read_pages(p, &count);
	uint32_t node = 0;
	int err = p->err;

	if (!err)
		err = coh_read_part(c, p, coh_va(count), &node, &addr);
	if (!err)
		err = tor_words_end(p);
	if (!err && !c->has_begun)
		err = error_set(-EAGAIN, "coherence: no term has begun");
	*out = (struct coh_pair){r.page, count, addr, node};
	return err;
}

/* Both have the same there: nothing, or what they had in a former term. */
int coh_pair_declare(struct coh *c, struct tor_words *p)
{
	struct coh_pair pair;
	int err = read_pair(c, p, &pair);

	return err ? err : add(c, &pair);
}

int coh_pair_add(struct coh *c, const struct coh_pair *pair)
{
	return add(c, pair);
}

/* The keeper has noted that the range is there, and nowhere else. */
int coh_pair_single(struct coh *c, struct tor_words *p)
{
	struct coh_pair one;
	uint32_t i;
	int err = read_pair(c, p, &one);

	if (err)
		return err;
	i = place_of(c, one.page);
	if (i == c->pair_count || c->pairs[i].page != one.page ||
	    c->pairs[i].count != one.count)
		return error_set(-ENOENT, "coherence: no two nodes have that");
	err = coh_outlier_set(c, coh_va(one.page), coh_va(one.count), one.node,
			      one.addr);
	if (err)
		return err;
	drop(c, i);
	coh_pair_look(c);
	return 0;
}

void coh_pair_clear(struct coh *c, uint64_t page, uint64_t count)
{
	while (coh_pair_meets(c, page, count))
		drop(c, place_of(c, page));
}

void coh_pair_show(const struct coh *c, struct json_out *out)
{
	uint64_t held = 0;

	for (unsigned i = 0; i < c->opt.machines; i++)
		for (unsigned k = 0; k < COH_GIVES; k++)
			held += c->machines[i].gives[k].is_held;
	json_out_u64(out, "pairs", c->pair_count);
	json_out_u64(out, "held", held);
}
