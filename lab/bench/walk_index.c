/* SPDX-License-Identifier: Apache-2.0 */
/* Gets and sums of an ordered index, by walks on the memory node and by READs;
 * all through its library, one at a time. */
#include <aquifer/index.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "place.h"
#include "ticks.h"
#include "walk_bench.h"

enum {
	MEMORY = 48 << 20,
	KEY_BYTES = 32,
};

struct state {
	struct aq_rack *rack;
	struct aq_index *index;
	struct aq_index_client *client;
	struct rng rng;
	uint64_t keys;
	uint64_t span; /* keys in WALK_INDEX_LEAVES leaves */
};

static size_t make_key(uint64_t number, char key[KEY_BYTES])
{
	return (size_t)snprintf(key, KEY_BYTES, "key:%012llu",
				(unsigned long long)number);
}

int walk_index_fill(struct aq_rack *rack, uint64_t keys)
{
	const struct aq_index_options o = {.size_bytes = MEMORY};
	struct aq_index_client *c = NULL;
	struct aq_index *index = NULL;
	int err = aq_index_create(rack, WALK_INDEX, &o, &index);

	if (!err)
		err = aq_index_client_open(index, NULL, &c);
	for (uint64_t i = 0; i < keys && !err; i++) {
		le64 value = le64_put(i);
		char key[KEY_BYTES];

		err = aq_index_put(c, key, make_key(i, key), &value,
				   sizeof(value));
	}
	aq_index_client_close(c);
	aq_index_close(index);
	return err;
}

static int open_index(struct state *st, enum walk_index_way way)
{
	const struct aq_index_client_options o = {
		.flags = AQ_INDEX_NO_CACHE |
			 (way == WALK_INDEX_GET ? AQ_INDEX_WALK : 0)};
	struct aq_index_reduced all;
	struct aq_index_info info;
	int err = place_rack(&st->rack);

	if (!err)
		err = aq_index_open(st->rack, WALK_INDEX, &st->index);
	if (!err)
		err = aq_index_client_open(
			st->index,
			way == WALK_INDEX_GET || way == WALK_INDEX_GET_READS
				? &o
				: NULL,
			&st->client);
	if (!err)
		err = aq_index_reduce(st->client, &(struct aq_index_range){0},
				      AQ_INDEX_COUNT, &all);
	if (err)
		return err;
	aq_index_get_info(st->index, &info);
	st->keys = all.count;
	/* Keys came in order, so all leaves but the last are full. */
	st->span = (uint64_t)WALK_INDEX_LEAVES * info.entries_per_leaf;
	return st->keys < st->span ? -EINVAL : 0;
}

static int setup(struct side *s)
{
	const struct walk_index_param *p = s->param;
	struct state *st;

	if (s->role != SIDE_CLIENT)
		return 0;
	st = calloc(1, sizeof(*st));
	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	rng_init(&st->rng, 1);
	return open_index(st, p->way) ? side_fail(s, -EIO, aq_last_error()) : 0;
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	if (!st)
		return;
	aq_index_client_close(st->client);
	aq_index_close(st->index);
	aq_rack_close(st->rack);
	free(st);
}

static int get(struct state *st)
{
	uint64_t number = rng_below(&st->rng, st->keys);
	char key[KEY_BYTES];
	le64 value;
	size_t len;
	int err = aq_index_get(st->client, key, make_key(number, key), &value,
			       sizeof(value), &len);

	if (err)
		return err;
	return len == sizeof(value) && le64_get(value) == number ? 0 : -EBADMSG;
}

static int add(void *user, const void *key, size_t key_len, const void *value,
	       size_t len)
{
	uint64_t *sum = user;
	le64 word;

	memcpy(&word, value, sizeof(word));
	*sum += le64_get(word);
	return 0;
}

static int sum_up(struct state *st, bool by_scan)
{
	uint64_t leaves =
		(st->keys - st->span) / (st->span / WALK_INDEX_LEAVES);
	uint64_t first =
		rng_below(&st->rng, leaves + 1) * st->span / WALK_INDEX_LEAVES;
	uint64_t last = first + st->span, sum = 0;
	char from[KEY_BYTES], to[KEY_BYTES];
	struct aq_index_range range = {.from = from,
				       .from_len = make_key(first, from),
				       .to = to,
				       .to_len = make_key(last, to)};
	struct aq_index_reduced r = {0};
	int err;

	if (by_scan) {
		err = aq_index_scan(st->client, &range, add, &sum);
	} else {
		err = aq_index_reduce(st->client, &range, 0, &r);
		sum = (uint64_t)r.sum;
	}
	if (err)
		return err;
	return sum == (first + last - 1) * st->span / 2 ? 0 : -EBADMSG;
}

static int once(const struct side *s)
{
	const struct walk_index_param *p = s->param;

	return p->way == WALK_INDEX_GET || p->way == WALK_INDEX_GET_READS
		       ? get(s->state)
		       : sum_up(s->state, p->way == WALK_INDEX_REDUCE_SCAN);
}

int walk_bench_each(struct side *s, uint64_t window_ns,
		    int (*once_fn)(const struct side *s),
		    struct side_result *out)
{
	uint64_t end = side_end_ticks(s, window_ns);
	int err = 0;

	out->ops = 0;
	while (!err && bench_ticks() < end) {
		uint64_t begun = bench_ticks();

		err = once_fn(s);
		side_sample(s, 0, bench_ticks() - begun);
		out->ops++;
	}
	return err ? side_fail(s, err,
			       err == -EBADMSG ? "a wrong answer"
					       : aq_last_error())
		   : 0;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	return walk_bench_each(s, window_ns, once, out);
}

const struct side_ops walk_index_ops = {
	.setup = setup,
	.measure = measure,
	.teardown = teardown,
	.is_shared = true,
};
