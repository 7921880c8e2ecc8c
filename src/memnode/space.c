/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spaces: pages of clients, in frames that all clients of one page size share.
 * The node's pool is charged for half of what it has left when the first client
 * comes, and gets it back when the last has gone; tenants are charged for all
 * that their clients could hold.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "log.h"
#include "mem_priv.h"

const char *space_role_name(unsigned role)
{
	if (role >= MEM_ROLE_CHAIN)
		return frame_chain_name(role - MEM_ROLE_CHAIN);
	return role == MEM_ROLE_SERVER ? "server" : "";
}

/* ---- frames ------------------------------------------------------------- */

static int make_frames(struct mem_node *node, uint32_t page_bytes,
		       struct mem_frames *f)
{
	uint64_t bytes = (node->pool_bytes - node->used_bytes) / 2;
	int err = frame_pool_create(bytes, page_bytes, &f->pool);

	if (err)
		return err;
	f->charged_bytes = region_pages(frame_pool_count(f->pool) * page_bytes);
	node->used_bytes += f->charged_bytes;
	return 0;
}

static int find_frames(struct mem_node *node, uint32_t page_bytes,
		       struct mem_frames **out)
{
	struct mem_frames *unused = NULL;
	int err = 0;

	for (unsigned i = 0; i < MEM_FRAME_SIZES; i++) {
		struct mem_frames *f = &node->frames[i];

		if (!f->pool) {
			unused = f;
		} else if (frame_pool_frame_bytes(f->pool) == page_bytes) {
			*out = f;
			return 0;
		}
	}
	if (!unused)
		return error_set(-EAGAIN, "pages of %d sizes are in use",
				 MEM_FRAME_SIZES);
	err = make_frames(node, page_bytes, unused);
	if (!err)
		*out = unused;
	return err;
}

static void put_frames(struct mem_node *node, struct mem_frames *f)
{
	if (f->space_count)
		return;
	frame_pool_destroy(f->pool);
	node->used_bytes -= f->charged_bytes;
	node->bytes_scrubbed += f->charged_bytes;
	*f = (struct mem_frames){0};
}

/* ---- spaces ------------------------------------------------------------- */

/* What the tenant may still have, in frames. */
static uint64_t budget_of(const struct mem_tenant *t, uint32_t page_bytes)
{
	if (!t->quota_bytes)
		return UINT64_MAX;
	if (t->used_bytes + t->page_bytes >= t->quota_bytes)
		return 0;
	return (t->quota_bytes - t->used_bytes - t->page_bytes) / page_bytes;
}

int space_create(struct mem_node *node, struct mem_conn *owner,
		 uint64_t page_count, uint32_t page_bytes, uint32_t depth,
		 enum space_kind kind)
{
	struct frame_space_options o = {
		.pd = owner->tenant->pd,
		.entries = page_count,
		.budget = u64_min(page_count,
				  budget_of(owner->tenant, page_bytes)),
		.depth = depth,
		.is_pieces = kind == SPACE_PIECES,
		.is_sparse = kind == SPACE_SPARSE,
	};
	struct mem_frames *f = NULL;
	struct mem_space *s;
	int err;

	if (owner->space || owner->role != MEM_ROLE_PLAIN)
		return error_set(-EEXIST, "the connection has pages already");
	/* Chains take frames without asking. But none is in two entries, and
	 * no entry has two, so who has room for all of them has enough. */
	if (o.budget < page_count)
		return error_set(-EDQUOT,
				 "tenant %s has %" PRIu64 " pages left, not "
				 "%" PRIu64,
				 owner->tenant->name, o.budget, page_count);
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, "no memory for pages");
	err = find_frames(node, page_bytes, &f);
	if (!err) {
		err = frame_space_create(f->pool, &o, &s->space);
		if (err)
			put_frames(node, f);
	}
	if (err) {
		free(s);
		return err;
	}
	s->frames = f;
	f->space_count++;
	s->charged_bytes = page_count * page_bytes;
	owner->tenant->page_bytes += s->charged_bytes;
	owner->space = s;
	owner->owns_space = true;
	return 0;
}

void space_end(struct mem_node *node, struct mem_conn *owner)
{
	struct mem_space *s = owner->space;
	uint64_t used;

	for (unsigned i = 0; i < MEM_CONN_MAX; i++)
		if (node->conns[i] && node->conns[i]->space == s)
			conn_end(node, node->conns[i], MEM_END_CLOSED);
	used = frame_space_used(s->space);
	log_info("memnode", "%" PRIu64 " pages of tenant %s come back", used,
		 owner->tenant->name);
	frame_space_destroy(s->space);
	s->space = NULL;
	owner->tenant->page_bytes -= s->charged_bytes;
	s->frames->space_count--;
	put_frames(node, s->frames);
	life_end(node, &s->life);
}

/* ---- connections -------------------------------------------------------- */

static int open_chain(struct mem_node *node, struct mem_conn *c)
{
	int err;

	if (!node->page_pd)
		node->page_pd = ibv_alloc_pd(node->context);
	if (!node->page_pd)
		return error_set(-errno, "no protection domain is left");
	err = frame_chain_create(c->space->space, node->page_pd,
				 c->role - MEM_ROLE_CHAIN, c->without,
				 &c->chain);
	if (!err)
		c->qp = frame_chain_qp(c->chain);
	return err;
}

int space_conn_open(struct mem_node *node, struct mem_conn *c)
{
	int err;

	if (c->role >= MEM_ROLE_CHAIN)
		return open_chain(node, c);
	err = page_thread_start(node);
	if (!err)
		err = frame_guest_create(node->server, c->space->space,
					 &c->guest);
	if (!err)
		c->qp = frame_guest_qp(c->guest);
	return err;
}

int space_conn_start(struct mem_conn *c)
{
	return c->chain ? frame_chain_start(c->chain)
			: frame_guest_arm(c->guest);
}

void space_conn_close(struct mem_conn *c)
{
	int why = c->chain ? frame_chain_why(c->chain) : 0;

	if (why)
		log_info("memnode", "the %s chain of tenant %s stopped: %s",
			 space_role_name(c->role), c->tenant->name,
			 frame_why_text(why));
	if (c->chain)
		frame_chain_destroy(c->chain);
	else
		frame_guest_destroy(c->guest);
	c->qp = NULL;
}

bool space_conn_is_broken(struct mem_conn *c)
{
	return c->chain && frame_chain_is_broken(c->chain);
}

/*
 * Whether a client with memory of its own uses more than it was given. It may
 * be given more, or give some back, while we count, so it must be so twice.
 */
static bool is_greedy(struct mem_space *s)
{
	uint32_t page_bytes = frame_pool_frame_bytes(s->frames->pool);
	uint64_t before = frame_space_used(s->space);
	uint64_t touched = frame_space_touched_bytes(s->space);
	uint64_t after = frame_space_used(s->space);

	if (touched > u64_max(before, after) * page_bytes + MEM_SPARSE_SLACK)
		s->over++;
	else
		s->over = 0;
	return s->over > 1;
}

void space_tick(struct mem_node *node)
{
	for (unsigned i = 0; i < MEM_FRAME_SIZES; i++)
		if (node->frames[i].pool)
			(void)frame_pool_mend(node->frames[i].pool);
	/* It cannot have too many; who has nevertheless loses the chain that
	 * takes them, or, with memory of its own, all of it. */
	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		struct mem_conn *c = node->conns[i];

		if (c && ((c->role == MEM_ROLE_CHAIN + PAGE_CHAIN_UNMAPPED &&
			   frame_space_is_over(c->space->space)) ||
			  (c->owns_space && is_greedy(c->space))))
			conn_end(node, c, MEM_END_BUDGET);
	}
}
