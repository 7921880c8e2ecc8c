/* SPDX-License-Identifier: Apache-2.0 */
/* A client's memory: nodes of the chunks that it has for itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

enum {
	WORDS_AT_ONCE = VLIST_STAGE_BYTES / 8,
	FREE_SHARE = 8, /* collecting is of use if it frees so much of all */
};

uint64_t vlist_mine_pointer(const struct vlist_client *c, uint32_t i)
{
	return vlist_pointer(c->mine[i].offset, c->mine[i].generation);
}

void vlist_node_give(struct vlist_client *c, uint32_t i)
{
	struct vlist_mine *m = &c->mine[i];

	m->state = VLIST_MINE_FREE;
	m->next = VLIST_NONE;
	if (c->free_last == VLIST_NONE)
		c->free_first = i;
	else
		c->mine[c->free_last].next = i;
	c->free_last = i;
	c->free_count++;
}

void vlist_node_committed(struct vlist_client *c, struct vlist_memo *m,
			  uint32_t i)
{
	struct vlist_mine *n = &c->mine[i];

	n->state = VLIST_MINE_USED;
	n->older = m->newest;
	n->older_generation = m->newest_generation;
	m->newest = i;
	m->newest_generation = n->generation;
	vlist_memo_place(c, m, vlist_mine_pointer(c, i));
}

void vlist_collect_older(struct vlist_client *c, uint32_t i)
{
	uint32_t at = c->mine[i].older;
	uint32_t generation = c->mine[i].older_generation;

	c->mine[i].older = VLIST_NONE;
	while (at != VLIST_NONE && c->mine[at].generation == generation &&
	       c->mine[at].state == VLIST_MINE_USED) {
		uint32_t older = c->mine[at].older;

		generation = c->mine[at].older_generation;
		vlist_node_give(c, at);
		c->stats.collected++;
		at = older;
	}
}

void vlist_pool_forget(struct vlist_client *c)
{
	for (uint32_t i = 0; i <= c->memo_mask; i++)
		c->memo[i].newest = VLIST_NONE;
	c->mine_count = c->free_count = c->scan_at = 0;
	c->free_first = c->free_last = VLIST_NONE;
	c->ride.stage = VLIST_GATHER_IDLE;
}

/* ---- chunks ------------------------------------------------------------- */

static int make_room(struct vlist_client *c)
{
	uint32_t room = c->mine_count + c->g.chunk_nodes;
	struct vlist_mine *p;

	if (room <= c->mine_room)
		return 0;
	p = realloc(c->mine, room * sizeof(*p));
	if (!p)
		return error_set(-ENOMEM, "no memory for a client");
	c->mine = p;
	c->mine_room = room;
	return 0;
}

/* Nodes of the chunk; of one that somebody had before, the uses they have. */
static int add_nodes(struct vlist_client *c, uint64_t chunk, bool had_owner)
{
	uint32_t first = c->mine_count;

	for (uint32_t i = 0; i < c->g.chunk_nodes; i++) {
		uint64_t at =
			vlist_node_at(&c->g, chunk * c->g.chunk_nodes + i);
		struct vlist_mine *m = &c->mine[first + i];

		*m = (struct vlist_mine){.offset = at, .older = VLIST_NONE};
		if (had_owner) {
			int err =
				vlist_read_now(c, at, c->seen, VLIST_NODE_HEAD);

			if (err)
				return err;
			m->generation =
				vlist_generation(le64_get(c->seen->self));
			m->key = le64_get(c->seen->key);
			m->state = VLIST_MINE_LIMBO;
		}
		c->mine_count++;
		if (!m->generation)
			vlist_node_give(c, first + i);
	}
	c->stats.chunks++;
	if (!had_owner)
		return 0;
	c->stats.adopted++;
	return vlist_sweep(c);
}

static int take_chunk(struct vlist_client *c, uint64_t chunk, uint64_t word)
{
	uint64_t mine = vlist_owner_word(c->slot, c->epoch), old;
	int err = vlist_cas_now(c, VLIST_POINT_CHUNK,
				c->g.chunk_word_offset + chunk * 8, word, mine,
				&old);

	if (err)
		return err;
	return old == word ? add_nodes(c, chunk, word != 0) : -EAGAIN;
}

/* Looks at `count` chunks from `first` on; -EAGAIN: none to be had. */
static int search(struct vlist_client *c, uint64_t first, uint32_t count,
		  bool adopt)
{
	const uint64_t *word = (const uint64_t *)c->stage;
	uint64_t own = vlist_owner_word(c->slot, c->epoch), alive = own;
	int err = vlist_read_now(c, c->g.chunk_word_offset + first * 8,
				 c->stage, count * 8);
	/* From anywhere, so that those who start together do not all want the
	 * same one. */
	uint32_t start = (uint32_t)rng_below(&c->rng, count);

	for (uint32_t k = 0; !err && k < count; k++) {
		uint32_t i = (start + k) % count;
		bool gone = false;

		if (!word[i] && !adopt) {
			err = take_chunk(c, first + i, 0);
			if (err != -EAGAIN)
				return err;
			err = 0;
			continue;
		}
		if (!adopt || !word[i] || word[i] == own || word[i] == alive)
			continue;
		err = vlist_is_gone(c, (uint32_t)word[i] - 1,
				    (uint32_t)(word[i] >> 32), &gone);
		if (err)
			return err;
		if (!gone) {
			alive = word[i];
			continue;
		}
		err = take_chunk(c, first + i, word[i]);
		return err;
	}
	return err ? err : -EAGAIN;
}

static int more_chunks(struct vlist_client *c, bool adopt)
{
	uint64_t pieces =
		(c->g.chunk_count + WORDS_AT_ONCE - 1) / WORDS_AT_ONCE;
	int err = make_room(c);

	for (uint64_t i = 0; !err && i < pieces; i++) {
		uint64_t piece = (c->chunk_hint + i) % pieces;
		uint64_t first = piece * WORDS_AT_ONCE;
		uint64_t n = u64_min(WORDS_AT_ONCE, c->g.chunk_count - first);

		err = search(c, first, (uint32_t)n, adopt);
		c->chunk_hint = piece;
		if (err != -EAGAIN)
			return err;
		err = 0;
	}
	return err ? err : -EAGAIN;
}

/* Half of what would be this client's if all took the same. */
static uint64_t fair_share(const struct vlist_client *c)
{
	return c->g.node_count / c->g.client_count / 2;
}

bool vlist_pool_may_grow(const struct vlist_client *c)
{
	return c->mine_count + c->g.chunk_nodes <= fair_share(c);
}

/* Memory that nobody has, up to a fair share; then what is old, more of what
 * nobody has, and that of the dead. */
static int make_free(struct vlist_client *c)
{
	int err = -EAGAIN;

	if (vlist_pool_may_grow(c))
		err = more_chunks(c, false);
	if (err == -EAGAIN)
		err = vlist_scan(c);
	if (!err && c->free_count < 1 + c->mine_count / FREE_SHARE)
		err = more_chunks(c, false);
	while ((!err || err == -EAGAIN) && !c->free_count) {
		err = more_chunks(c, true);
		if (err)
			break;
	}
	if (err == -EAGAIN && !c->free_count)
		err = vlist_sweep(c);
	if (err == -EAGAIN)
		err = 0;
	if (!err && !c->free_count)
		err = error_set(-ENOSPC,
				"no memory is left for another version");
	return err;
}

int vlist_node_take(struct vlist_client *c, uint64_t key, uint32_t *out)
{
	struct vlist_mine *m;
	uint32_t i;
	int err = c->free_count ? 0 : make_free(c);

	if (err)
		return err;
	i = c->free_first;
	m = &c->mine[i];
	c->free_first = m->next;
	if (c->free_first == VLIST_NONE)
		c->free_last = VLIST_NONE;
	c->free_count--;
	m->generation =
		(m->generation + 1) & ((1u << VLIST_GENERATION_BITS) - 1);
	m->generation += m->generation == 0;
	m->key = key;
	m->older = VLIST_NONE;
	m->state = VLIST_MINE_BUSY;
	*out = i;
	return 0;
}
