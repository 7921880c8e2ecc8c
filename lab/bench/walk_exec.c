/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations on hot data: a hash chain, a B+ tree and a reduction over its
 * leaves, by the ready walks and by C functions of the same meaning. */
#include "walk_exec.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/rng.h"
#include "stats.h"
#include "walk/program.h"
#include "walk/ready.h"
#include "walk_native.h"

enum {
	CHAIN = 48,
	FANOUT = WALK_TREE_KEYS,
	LEAVES = 81, /* below nine inner nodes and a root */
	KEYS = LEAVES * FANOUT,
	QUERIES = 256,
	ROUNDS = 31,
	ROUND_NS = 200 * 1000,
	MEMORY_BYTES = 256 << 10,
	FIRST = 4096,
};

/* ---- structures -------------------------------------------------------------
 */

struct bed {
	uint8_t *memory;
	uint64_t chain, tree; /* where they start */
	uint64_t used;
	struct rng rng;
};

static void *take(struct bed *b, size_t bytes, uint64_t *at)
{
	*at = b->used;
	b->used += (bytes + 63) & ~(size_t)63;
	ASSERT(b->used + FIRST <= MEMORY_BYTES);
	return b->memory + *at;
}

static void make_chain(struct bed *b)
{
	for (uint64_t i = CHAIN; i-- > 0;) {
		uint64_t at;
		struct walk_node *n = take(b, sizeof(*n), &at);

		*n = (struct walk_node){i, i * 3, b->chain};
		b->chain = at;
	}
}

/* Key k has the value k * 3. Three levels; all nodes are full. */
static void make_tree(struct bed *b)
{
	uint64_t level[LEAVES], at, first = 0;
	struct walk_tree_node *before = NULL;
	uint32_t count = LEAVES;

	for (uint64_t l = 0; l < LEAVES; l++) {
		struct walk_tree_node *n = take(b, sizeof(*n), &level[l]);

		n->is_leaf = 1;
		n->count = FANOUT;
		for (uint64_t i = 0; i < FANOUT; i++) {
			n->keys[i] = l * FANOUT + i;
			n->values[i] = n->keys[i] * 3;
		}
		if (before)
			before->next = level[l];
		before = n;
	}
	/* Nine children have eight keys between them. */
	for (uint64_t span = FANOUT; count > 1; span *= FANOUT) {
		for (uint32_t i = 0; i < count / FANOUT; i++) {
			struct walk_tree_node *n = take(b, sizeof(*n), &at);

			n->count = FANOUT - 1;
			for (uint32_t k = 0; k < FANOUT; k++) {
				n->children[k] = level[i * FANOUT + k];
				if (k)
					n->keys[k - 1] =
						first + (i * FANOUT + k) * span;
			}
			level[i] = at;
		}
		count /= FANOUT;
	}
	b->tree = level[0];
}

/* ---- measuring
 * --------------------------------------------------------------- */

struct kind {
	const char *ratio;
	const struct aq_walk_shape *shape;
	walk_run_fn native;
};

static const struct kind kinds[WALK_EXEC_KINDS] = {
	{"exec_hot_vs_native_hash", &walk_list_shape, walk_native_find},
	{"exec_hot_vs_native_tree", &walk_tree_find_shape, walk_native_tree},
	{"exec_hot_vs_native_reduce", &walk_tree_reduce_shape,
	 walk_native_reduce},
};

union pad {
	struct walk_find_pad find;
	struct aq_walk_reduce reduce;
};

/* One walk; adds its iterations, and what it found to *sum. */
static uint64_t walk(const struct bed *b, const struct kind *k,
		     const struct walk_program *program, walk_run_fn run,
		     uint64_t draw, uint64_t *sum)
{
	const uint32_t lo = (uint32_t)(program ? program->image.load_lo : 0);
	union pad p = {.find = {.key = draw % KEYS}};
	uint64_t at = b->tree, n = 0;
	struct walk_end end;

	if (k->native == walk_native_find) {
		at = b->chain;
		p.find.key = CHAIN - 1;
	} else if (k->native == walk_native_reduce) {
		p.reduce = (struct aq_walk_reduce){.low = 100, .high = 600};
	}
	do {
		end = run(program, b->memory + at + lo, (uint8_t *)&p);
		at = end.next;
		n++;
	} while (end.step == WALK_STEP_NEXT);
	*sum += k->native == walk_native_reduce ? p.reduce.sum : p.find.value;
	return n;
}

/* Of this thread: others that share the core do not count. */
static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ns per iteration of one round. */
static double round_ns(const struct bed *b, const struct kind *k,
		       const struct walk_program *program, walk_run_fn run,
		       const uint64_t *draws, uint64_t *sum)
{
	const uint64_t start = cpu_now_ns();
	uint64_t n = 0, now = start;

	*sum = 0;
	for (uint32_t i = 0; i < QUERIES || now - start < ROUND_NS; i++) {
		uint64_t other;

		n += walk(b, k, program, run, draws[i % QUERIES],
			  i < QUERIES ? sum : &other);
		if (i % 32 == 31)
			now = cpu_now_ns();
	}
	return (double)(cpu_now_ns() - start) / (double)n;
}

static int measure(const struct bed *b, const struct kind *k,
		   struct walk_exec_times *out)
{
	const struct walk_options no = {.interpret = true};
	struct walk_program *way[3] = {NULL};
	double ns[3][ROUNDS];
	uint64_t draws[QUERIES], sum[3];
	struct walk_build *build = NULL;
	struct walk_image image;
	struct rng r;
	int err = walk_ready(k->shape, 0, &build, &image);

	rng_init(&r, 7);
	for (uint32_t i = 0; i < QUERIES; i++)
		draws[i] = rng_u64(&r);
	if (!err)
		err = walk_program_open(&image, NULL, &way[1]);
	if (!err)
		err = walk_program_open(&image, &no, &way[2]);
	for (int i = 0; !err && i < ROUNDS; i++) {
		for (int w = 0; w < 3; w++)
			ns[w][i] = round_ns(b, k, way[w],
					    w ? way[w]->run : k->native, draws,
					    &sum[w]);
		if (sum[1] != sum[0] || sum[2] != sum[0])
			err = error_set(-EPROTO, "%s: the ways do not agree",
					k->ratio);
	}
	if (!err)
		*out = (struct walk_exec_times){
			.ratio = k->ratio,
			.native_ns = stats_median(ns[0], ROUNDS),
			.translated_ns = stats_median(ns[1], ROUNDS),
			.interpreted_ns = stats_median(ns[2], ROUNDS),
			.is_translated = walk_program_is_translated(way[1]),
		};
	walk_program_close(way[1]);
	walk_program_close(way[2]);
	walk_build_destroy(build);
	return err;
}

int bench_walk_exec(struct walk_exec_times times[WALK_EXEC_KINDS])
{
	struct bed b = {.memory = calloc(1, MEMORY_BYTES), .used = FIRST};
	int err = 0;

	if (!b.memory)
		return error_set(-ENOMEM, "no memory for %d bytes of nodes",
				 MEMORY_BYTES);
	make_chain(&b);
	make_tree(&b);
	for (int i = 0; !err && i < WALK_EXEC_KINDS; i++)
		err = measure(&b, &kinds[i], &times[i]);
	free(b.memory);
	return err;
}
