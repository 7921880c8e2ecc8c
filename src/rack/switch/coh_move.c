/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages go to another memory node while they are used. From the beginning on,
 * what is given back in the range is written to both nodes, and acknowledged
 * when both have it; meanwhile each page is read at the old node and written at
 * the new one. A give-back that meets the copy of its page makes that begin
 * again: requests to a node are executed in order, so what is read then has it.
 *
 * When all pages are there both nodes have the same bytes for as long as the
 * move is not concluded: the keeper notes that the range has moved, and then
 * says so. If the switch dies in between, either node will do, and the keeper
 * knows which one it is. After that nothing is written to the old node; the
 * move ends when the last request there has been answered.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "base/plant.h"
#include "coh_ctl.h"

static bool has_range(const struct coh_move *v, uint64_t page)
{
	return page - v->page < v->count;
}

static uint64_t addr_there(const struct coh_move *v, uint64_t page)
{
	return v->addr + coh_va(page - v->page);
}

/* ---- copies ----------------------------------------------------------------
 */

static void read_page(struct coh *c, struct coh_copy *k)
{
	uint64_t addr;
	uint32_t node;

	k->is_again = false;
	k->used = !translate_find(&c->translate, coh_va(k->page), &node, &addr);
	if (k->used)
		coh_op_start_at(c, &k->op, node, addr, false);
	else /* nobody has it */
		c->move.state = COH_MOVE_FAILED;
}

static void begin_next(struct coh *c, struct coh_copy *k)
{
	struct coh_move *v = &c->move;

	k->used = v->state == COH_MOVE_COPIES && v->next < v->count;
	if (!k->used)
		return;
	k->page = v->page + v->next++;
	read_page(c, k);
}

static bool is_nothing(const uint8_t *bytes)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, COHERENCE_PAGE_BYTES - 1);
}

static bool is_quiet(const struct coh_move *v)
{
	for (unsigned i = 0; i < COH_COPIES; i++)
		if (v->copies[i].used)
			return false;
	return true;
}

/* It has come, or it is there. */
static void copy_done(struct coh *c, struct coh_op *op)
{
	struct coh_copy *k = container_of(op, struct coh_copy, op);
	struct coh_move *v = &c->move;

	if (op->has_failed && v->state == COH_MOVE_COPIES)
		v->state = COH_MOVE_FAILED;
	if (v->state == COH_MOVE_COPIES) {
		if (k->is_again) {
			read_page(c, k);
			return;
		}
		/* The new node has zeros already. */
		if (!op->is_write && !is_nothing(k->bytes)) {
			coh_op_start_at(c, op, v->node, addr_there(v, k->page),
					true);
			return;
		}
		v->copied++;
	}
	begin_next(c, k);
	if (v->state == COH_MOVE_COPIES && v->copied == v->count)
		v->state = COH_MOVE_SYNCED;
	if (v->state == COH_MOVE_ENDS && is_quiet(v))
		v->state = COH_MOVE_NONE;
}

bool coh_move_give(struct coh *c, uint64_t page, struct coh_op *op)
{
	struct coh_move *v = &c->move;

	if ((v->state != COH_MOVE_COPIES && v->state != COH_MOVE_SYNCED) ||
	    !has_range(v, page) || PLANTED(coh_move_old))
		return false;
	for (unsigned i = 0; i < COH_COPIES; i++)
		if (v->copies[i].used && v->copies[i].page == page)
			v->copies[i].is_again = true;
	coh_op_start_at(c, op, v->node, addr_there(v, page), true);
	return true;
}

void coh_move_failed(struct coh *c)
{
	if (c->move.state == COH_MOVE_COPIES ||
	    c->move.state == COH_MOVE_SYNCED)
		c->move.state = COH_MOVE_FAILED;
}

/* ---- control calls ---------------------------------------------------------
 */

/* What a place that the switch knows by one entry has at most. */
static uint64_t piece_of(uint64_t va, uint64_t size)
{
	uint64_t piece = 1ull << (63 - __builtin_clzll(size));

	while (piece > COHERENCE_PAGE_BYTES && va & (piece - 1))
		piece /= 2;
	return piece;
}

int coh_outlier_set(struct coh *c, uint64_t va, uint64_t size, uint32_t node,
		    uint64_t addr)
{
	uint64_t need = 0;
	int err = 0;

	for (uint64_t at = 0; at < size; at += piece_of(va + at, size - at))
		need++;
	if (c->translate.outlier_count + need > TRANSLATE_OUTLIERS)
		return error_set(-ENOSPC, "coherence: %d outliers at most",
				 TRANSLATE_OUTLIERS);
	for (uint64_t at = 0, piece; !err && at < size; at += piece) {
		uint32_t home;
		uint64_t there;

		piece = piece_of(va + at, size - at);
		translate_remove(&c->translate, va + at, piece);
		if (translate_find(&c->translate, va + at, &home, &there) ||
		    home != node || there != addr + at)
			err = translate_outlier(&c->translate, va + at, piece,
						node, addr + at);
	}
	return err;
}

void coh_outlier_clear(struct coh *c, uint64_t va, uint64_t size)
{
	for (uint64_t at = 0, piece; at < size; at += piece) {
		piece = piece_of(va + at, size - at);
		translate_remove(&c->translate, va + at, piece);
	}
}

/* Where a part of an arena is in its node. */
int coh_read_part(struct coh *c, struct tor_words *p, uint64_t size,
		  uint32_t *node, uint64_t *addr)
{
	uint64_t at, most;

	*node = tor_words_u32(p, "node", COHERENCE_NODES - 1);
	at = tor_words_u64(p, "at", UINT64_MAX);
	most = p->err || !c->nodes[*node].used
		       ? 0
		       : c->translate.node[*node].size_bytes;
	if (!p->err &&
	    (at >= most || size > most - at || at % COHERENCE_PAGE_BYTES))
		p->err = error_set(
			-EINVAL, "coherence: node %u has no such part", *node);
	*addr = p->err ? 0 : c->translate.node[*node].addr + at;
	return p->err;
}

static int begin(struct coh *c, const struct coh_range *r, uint64_t count,
		 uint32_t node, uint64_t addr)
{
	struct coh_move *v = &c->move;

	if (v->state != COH_MOVE_NONE)
		return error_set(-EBUSY, "coherence: something is being moved");
	if (c->nodes[node].tx.dead)
		return error_set(-EBUSY, "coherence: node %u does not answer",
				 node);
	v->page = r->page;
	v->count = count;
	v->next = v->copied = 0;
	v->node = node;
	v->addr = addr;
	v->state = COH_MOVE_COPIES;
	for (unsigned i = 0; i < COH_COPIES; i++) {
		struct coh_copy *k = &v->copies[i];

		k->op.bytes = k->bytes;
		k->op.done = copy_done;
		begin_next(c, k);
	}
	return 0;
}

int coh_move_begin(struct coh *c, struct tor_words *p)
{
	uint64_t count, last, addr = 0, there;
	struct coh_range r = coh_read_pages(p, &count);
	uint32_t node = 0, home;
	int err = p->err;

	if (!err)
		err = coh_read_part(c, p, coh_va(count), &node, &addr);
	if (!err)
		err = tor_words_end(p);
	if (!err && !c->has_begun)
		err = error_set(-EAGAIN, "coherence: no term has begun");
	if (err)
		return err;
	if (coh_pair_meets(c, r.page, count))
		return error_set(-EBUSY, "coherence: two nodes have that");
	last = r.page + count - 1;
	if (count > 1ull << (COHERENCE_NODE_SHIFT - COHERENCE_PAGE_SHIFT) ||
	    translate_find(&c->translate, coh_va(r.page), &home, &there) ||
	    translate_find(&c->translate, coh_va(last), &home, &there))
		return error_set(-EINVAL, "coherence: no memory is there");
	return begin(c, &r, count, node, addr);
}

/* The range has its new place from now on. One more READ at the old one tells
 * when all before it were answered. */
int coh_move_conclude(struct coh *c, struct tor_words *p)
{
	struct coh_move *v = &c->move;
	struct coh_copy *k = &v->copies[0];
	int err = tor_words_end(p);
	uint64_t addr;
	uint32_t node;

	if (err)
		return err;
	if (v->state != COH_MOVE_SYNCED || c->nodes[v->node].tx.dead)
		return error_set(-EBUSY, "coherence: nothing is ready to move");
	err = translate_find(&c->translate, coh_va(v->page), &node, &addr);
	ASSERT(!err);
	err = coh_outlier_set(c, coh_va(v->page), coh_va(v->count), v->node,
			      v->addr);
	if (err)
		return err;
	v->state = COH_MOVE_ENDS;
	k->used = true;
	coh_op_start_at(c, &k->op, node, addr, false);
	return 0;
}

int coh_move_pair(struct coh *c, struct tor_words *p)
{
	struct coh_move *v = &c->move;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (v->state != COH_MOVE_SYNCED || c->nodes[v->node].tx.dead)
		return error_set(-EBUSY, "coherence: nothing is ready to be a "
					 "pair");
	err = coh_pair_add(
		c, &(struct coh_pair){v->page, v->count, v->addr, v->node});
	if (!err)
		v->state = COH_MOVE_NONE;
	return err;
}

int coh_move_cancel(struct coh *c, struct tor_words *p)
{
	struct coh_move *v = &c->move;
	int err = tor_words_end(p);

	if (err || v->state == COH_MOVE_NONE)
		return err;
	v->state = is_quiet(v) ? COH_MOVE_NONE : COH_MOVE_ENDS;
	return 0;
}

void coh_move_show(const struct coh *c, struct json_out *out)
{
	static const char *const names[] = {
		[COH_MOVE_NONE] = "none",     [COH_MOVE_COPIES] = "copies",
		[COH_MOVE_SYNCED] = "synced", [COH_MOVE_FAILED] = "failed",
		[COH_MOVE_ENDS] = "ends",
	};

	json_out_string(out, "move", names[c->move.state]);
	json_out_u64(out, "move_va", coh_va(c->move.page));
	json_out_u64(out, "move_copied", c->move.copied);
}
