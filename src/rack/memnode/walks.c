/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of walks that a node keeps, by tenant and hash. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/piece_name.h"
#include "walks_priv.h"

enum {
	/* Machine code for one instruction and what surrounds it, at most. */
	CODE_BYTES = 64,
};

static struct list *bucket_of(struct mem_walks *w, uint64_t hash)
{
	return &w->bucket[hash % MEM_WALK_BUCKETS];
}

struct mem_program *walks_find(struct mem_node *node,
			       const struct mem_tenant *tenant, uint64_t hash)
{
	const struct list *head = bucket_of(node->walks, hash), *at;

	lock_assert_mutex_held(&node->lock);
	for (at = head->next; at != head; at = at->next) {
		struct mem_program *p =
			container_of(at, struct mem_program, link);

		if (p->hash == hash && p->tenant == tenant)
			return p;
	}
	return NULL;
}

/* What a program takes of the node's memory, at most. */
static uint64_t cost_of(const struct mem_walks *w,
			const struct walk_image *image)
{
	return region_pages(
		sizeof(struct mem_program) + walk_image_bytes(image) +
		(w->config.has_jit ? (uint64_t)image->count * CODE_BYTES : 0));
}

static int make(struct mem_node *node, struct mem_tenant *tenant,
		const struct walk_image *image, struct mem_program **out)
{
	struct mem_walks *w = node->walks;
	const struct walk_options options = {
		.longest_max = w->config.longest,
		.interpret = !w->config.has_jit,
	};
	struct mem_program *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return error_set(-ENOMEM, "no memory for a walk");
	p->tenant = tenant;
	p->pd = tenant->pd;
	p->hash = image->hash;
	p->charged_bytes = cost_of(w, image);
	err = walk_program_open(image, &options, &p->program);
	if (!err) {
		err = space_charge(node, tenant, 0, p->charged_bytes);
		if (err)
			walk_program_close(p->program);
	}
	if (err)
		free(p);
	else
		*out = p;
	return err;
}

int walks_add(struct mem_node *node, struct mem_tenant *tenant,
	      const void *bytes, size_t len_bytes, struct mem_program **out,
	      bool *is_new)
{
	struct mem_walks *w = node->walks;
	struct walk_image image;
	struct mem_program *p = NULL;
	int err = walk_image_parse(bytes, len_bytes, &image);

	if (err)
		return error_prefix(-EINVAL, "the image of the walk: ");
	*out = walks_find(node, tenant, image.hash);
	*is_new = !*out;
	if (*out)
		return 0;
	if (w->count >= w->config.programs)
		return error_set(-EAGAIN, "this node has %u walks at most",
				 w->config.programs);
	err = tenant_take(tenant, MEM_LIMIT_WALKS, 1);
	if (err)
		return err;
	err = make(node, tenant, &image, &p);
	if (err) {
		tenant_give(tenant, MEM_LIMIT_WALKS, 1);
		return err;
	}
	lock_take(&w->lock);
	list_append(bucket_of(w, p->hash), &p->link);
	w->count++;
	lock_drop(&w->lock);
	*out = p;
	return 0;
}

static void destroy(struct mem_program *p)
{
	walk_program_close(p->program);
	free(p);
}

void walks_remove(struct mem_node *node, struct mem_program *p)
{
	struct mem_walks *w = node->walks;
	bool is_idle;

	lock_assert_mutex_held(&node->lock);
	lock_take(&w->lock);
	list_remove(&p->link);
	w->count--;
	p->ended = true;
	is_idle = p->users == 0;
	lock_drop(&w->lock);
	space_uncharge(node, p->tenant, 0, p->charged_bytes);
	tenant_give(p->tenant, MEM_LIMIT_WALKS, 1);
	if (is_idle)
		destroy(p);
}

void walks_each(struct mem_node *node, const struct mem_tenant *tenant,
		walks_fn each, void *ctx)
{
	for (unsigned i = 0; i < MEM_WALK_BUCKETS; i++) {
		struct list *head = &node->walks->bucket[i], *at, *next;

		for (at = head->next; at != head; at = next) {
			struct mem_program *p =
				container_of(at, struct mem_program, link);

			next = at->next;
			if (!tenant || p->tenant == tenant)
				each(ctx, p);
		}
	}
}

static void remove_one(void *ctx, struct mem_program *p)
{
	walks_remove(ctx, p);
}

void walks_tenant_end(struct mem_node *node, struct mem_tenant *tenant)
{
	if (node->walks)
		walks_each(node, tenant, remove_one, node);
}

void walks_reap(struct mem_node *node)
{
	struct mem_walks *w = node->walks;
	struct list dead;

	if (!w)
		return;
	lock_take(&w->lock);
	list_take(&w->dead, &dead);
	lock_drop(&w->lock);
	while (!list_is_empty(&dead)) {
		struct mem_program *p =
			container_of(dead.next, struct mem_program, link);

		list_remove(&p->link);
		destroy(p);
	}
}

/* ---- where regions are --------------------------------------------------- */

int walks_place(const struct mem_region *r, struct ibv_mr *mr)
{
	struct aqdv_place place = {.count = 1};
	struct piece_name piece;
	int err;

	/* A region of another making is one piece, whatever it is called. */
	if (piece_name_parse(r->name, &piece) == 0) {
		place.space = r->space;
		place.index = piece.index;
		place.count = piece.count;
		place.shift = piece.shift;
	}
	err = aqdv_set_place(mr, &place);
	return err == 0 || err == -EOPNOTSUPP
		       ? 0
		       : error_set(err, "region %s has no place: %s", r->name,
				   strerror(-err));
}
