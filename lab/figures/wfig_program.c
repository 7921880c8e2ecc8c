/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of the applications: ready ones, and one that adds to chains. */
#include "walk/ready.h"
#include "wfig_count.h"
#include "wfig_data.h"

static struct aq_walk_shape shape_of(enum wfig_app app)
{
	const struct aq_walk_shape chain = {.kind = AQ_WALK_LIST_FIND,
					    .key_bytes = 8,
					    .value_at = 8,
					    .value_bytes = 8,
					    .next_at = 16};
	const struct aq_walk_shape tree = {
		.kind = app == WFIG_RANGE ? AQ_WALK_BPLUS_SCAN
					  : AQ_WALK_BPLUS_REDUCE,
		.key_at = offsetof(struct wfig_node, entry),
		.key_bytes = 8,
		.key_stride = 16,
		.value_at = offsetof(struct wfig_node, entry) + 8,
		.value_bytes = 8,
		.value_stride = 16,
		.next_at = offsetof(struct wfig_node, next),
		.count_at = offsetof(struct wfig_node, count),
		.count_bytes = 8,
		.fanout = WFIG_TREE_KEYS,
		.child_at = offsetof(struct wfig_node, child),
		.child_stride = 8,
		.leaf_at = offsetof(struct wfig_node, is_leaf),
		.leaf_bytes = 8,
		.leaf_mask = 1,
		.leaf_value = 1,
		.scan_pairs = app == WFIG_RANGE ? WFIG_SCAN_PAIRS : 0,
	};

	return app == WFIG_WEB ? chain : tree;
}

/* To the end of a chain; there the pad's pointer becomes the last one. */
static int open_append(struct wfig_data *d)
{
	const int32_t next = offsetof(struct wfig_chain_node, next);
	struct walk_build *b =
		walk_build_create("append", 0, sizeof(struct wfig_chain_node),
				  sizeof(uint64_t), WALK_STORES);
	const int last = walk_build_label(b);
	struct walk_image image;
	int err;

	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, next);
	walk_build_jump_imm(b, WALK_OP_JEQI, 1, 0, last);
	walk_build_op(b, WALK_OP_NEXT, 0, 1, 0, 0);
	walk_build_place(b, last);
	walk_build_op(b, WALK_OP_LDP8, 2, 0, 0, 0);
	walk_build_op(b, WALK_OP_STN8, 0, 2, 0, next);
	walk_build_op(b, WALK_OP_RET, 0, 0, 0, 0);
	err = walk_build_end(b, 0, &image, NULL);
	if (!err)
		err = walk_program_open(&image, NULL, &d->append);
	if (!err)
		err = wfig_count_open(&image, &d->append_counted);
	walk_build_destroy(b);
	return err;
}

const struct walk_program *wfig_data_program(const struct wfig_data *d,
					     uint64_t hash)
{
	if (hash == d->program->image.hash)
		return d->counted;
	return d->append && hash == d->append->image.hash ? d->append_counted
							  : NULL;
}

int wfig_programs_open(struct wfig_data *d)
{
	struct walk_build *build;
	struct walk_image image;
	int err;

	d->shape = shape_of(d->cfg.app);
	err = walk_ready(&d->shape, 0, &build, &image);
	if (err)
		return err;
	err = walk_program_open(&image, NULL, &d->program);
	if (!err)
		err = wfig_count_open(&image, &d->counted);
	walk_build_destroy(build);
	if (!err && d->cfg.app == WFIG_WEB)
		err = open_append(d);
	return err;
}
