/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the applications, and operations on it. */
#include "walk_app.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	OBJECT_WORDS = WALK_OBJECT_BYTES / 8,
};

static uint64_t objects_at(const struct walk_app *a)
{
	return align_up(a->list.bytes, WALK_OBJECT_BYTES);
}

static int init_tree(struct walk_app *a, uint64_t megabytes)
{
	bool is_tsv = a->kind == WALK_APP_TSV;
	int err = walk_tree_size(&a->tree,
				 is_tsv ? &walk_tree_streams : &walk_tree_rows,
				 megabytes);

	/* Every scan ends at a leaf whose key is too large. */
	return err || is_tsv ? err
			     : ycsb_keys_init(&a->names, YCSB_ZIPFIAN,
					      a->tree.count[0] - WALK_SCAN_ROWS,
					      YCSB_THETA);
}

int walk_app_init(struct walk_app *a, enum walk_app_kind kind,
		  uint64_t megabytes)
{
	*a = (struct walk_app){.kind = kind};
	if (kind != WALK_APP_WEB) {
		a->bytes = WALK_FIRST + (megabytes << 20);
		return init_tree(a, megabytes);
	}
	walk_list_size(&a->list, megabytes);
	a->bytes = objects_at(a) + a->list.chains * WALK_OBJECT_BYTES;
	return ycsb_keys_init(&a->names, YCSB_ZIPFIAN, a->list.chains,
			      YCSB_THETA);
}

/* The object of a chain's last name; no two words of an object are equal. */
static void fill_objects(struct walk_app *a)
{
	uint64_t *word = (uint64_t *)(void *)(a->memory + objects_at(a));

	for (uint64_t chain = 0; chain < a->list.chains; chain++)
		for (uint64_t i = 0; i < OBJECT_WORDS; i++)
			*word++ = chain * OBJECT_WORDS + i;
}

int walk_app_map(struct walk_app *a)
{
	a->memory = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED)
		return -errno;
	if (a->kind != WALK_APP_WEB) {
		a->tree.memory = a->memory;
		walk_tree_fill(&a->tree);
		return 0;
	}
	a->list.memory = a->memory;
	walk_list_fill(&a->list);
	fill_objects(a);
	return 0;
}

/* The operation as a walk, and as a function of the same meaning. */
static const struct {
	const struct aq_walk_shape *shape;
	uint32_t pad_bytes;
	walk_run_fn native;
} operations[WALK_APP_KINDS] = {
	[WALK_APP_WEB] = {&walk_list_shape, sizeof(struct walk_find_pad),
			  walk_native_find},
	[WALK_APP_TSV] = {&walk_tree_reduce_shape,
			  sizeof(struct aq_walk_reduce), walk_native_reduce},
	[WALK_APP_RANGE] = {&walk_row_scan_shape, sizeof(struct walk_scan_pad),
			    walk_native_scan},
};

const struct aq_walk_shape *walk_app_shape(const struct walk_app *a)
{
	return operations[a->kind].shape;
}

uint32_t walk_app_pad_bytes(const struct walk_app *a)
{
	return operations[a->kind].pad_bytes;
}

void walk_app_draw(const struct walk_app *a, struct rng *r,
		   struct walk_app_query *q)
{
	struct walk_query name;
	uint64_t drawn;

	if (a->kind == WALK_APP_TSV) {
		walk_tree_window(&a->tree, r, q);
		return;
	}
	drawn = ycsb_keys_scatter(&a->names, ycsb_keys_rank(&a->names, r));
	if (a->kind == WALK_APP_RANGE) {
		walk_tree_scan(&a->tree, drawn, q);
		return;
	}
	name = walk_list_query(&a->list, drawn);
	q->start = name.start;
	q->value = name.value;
	q->pad.find = (struct walk_find_pad){.key = name.key};
}

void walk_app_follow(const struct walk_app *a, struct walk_app_query *q)
{
	struct walk_end end = {q->start, WALK_STEP_NEXT};

	while (end.step == WALK_STEP_NEXT)
		end = operations[a->kind].native(NULL, a->memory + end.next,
						 (uint8_t *)&q->pad);
}

bool walk_app_found(const struct walk_app *a, const struct walk_app_query *q)
{
	if (a->kind == WALK_APP_TSV)
		return q->pad.reduce.count == q->count &&
		       q->pad.reduce.sum == q->sum;
	if (a->kind == WALK_APP_RANGE)
		return walk_tree_scanned(q);
	return q->pad.find.found == 1 && q->pad.find.value == q->value;
}

static uint64_t chain_of(const struct walk_app_query *q)
{
	return ~q->pad.find.value / WALK_CHAIN;
}

uint64_t walk_app_object_at(const struct walk_app *a,
			    const struct walk_app_query *q)
{
	return objects_at(a) + chain_of(q) * WALK_OBJECT_BYTES;
}

bool walk_app_object_is(const struct walk_app_query *q,
			const uint8_t object[WALK_OBJECT_BYTES])
{
	uint64_t first, last;

	memcpy(&first, object, sizeof(first));
	memcpy(&last, object + WALK_OBJECT_BYTES - sizeof(last), sizeof(last));
	return first == chain_of(q) * OBJECT_WORDS &&
	       last == first + OBJECT_WORDS - 1;
}
