/* SPDX-License-Identifier: Apache-2.0 */
/* A client's memory: nodes of the chunks that it has for itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

enum {
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
	vlist_place_set(c, m, vlist_mine_pointer(c, i), true);
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
	c->later.entry = 0;
}

/* ---- chunks ------------------------------------------------------------- */

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
			int err = kit_read_now(&c->kit.main, at, c->seen,
					       VLIST_NODE_HEAD);

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

struct search {
	struct vlist_client *c;
	bool adopt;	/* those of the dead, not those that nobody has */
	uint64_t alive; /* the last owner that was found to be */
	int err;	/* what became of the chunk that it ended with */
};

enum {
	OVER = 1, /* ends kit_chunks_each */
};

static int try_chunk(void *user, uint64_t chunk, uint64_t word)
{
	struct search *s = user;
	struct vlist_client *c = s->c;
	bool gone = false;
	int err;

	if (s->adopt
		    ? !word || word == kit_own_word(&c->kit) || word == s->alive
		    : word != 0)
		return 0;
	if (s->adopt) {
		err = kit_owner_is_gone(&c->kit, word, &gone);
		if (err || !gone) {
			s->alive = word;
			return err;
		}
	}
	s->err = kit_swap_now(&c->kit.main, VLIST_POINT_CHUNK,
			      c->g.chunk_word_offset + chunk * 8, word,
			      kit_own_word(&c->kit));
	if (!s->err)
		s->err = add_nodes(c, chunk, word != 0);
	return s->err == -EAGAIN ? 0 : OVER; /* somebody else was faster */
}

/* -EAGAIN: none to be had. */
static int more_chunks(struct vlist_client *c, bool adopt)
{
	struct search s = {.c = c, .adopt = adopt, .err = -EAGAIN};
	int err = kit_grow(&c->mine, &c->mine_room,
			   c->mine_count + c->g.chunk_nodes, sizeof(*c->mine));

	if (!err)
		err = kit_chunks_each(&c->kit, c->g.chunk_word_offset,
				      c->g.chunk_count, &c->chunk_hint,
				      try_chunk, &s);
	return err == 0 || err == OVER ? s.err : err;
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
