/* SPDX-License-Identifier: Apache-2.0 */
/* Gets of a table whose values are in extents: by a walk, and by READs of the
 * rows and then of the extent; one at a time. */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "place.h"
#include "walk_bench.h"

enum {
	KEYS = 4000,
	KEY_BYTES = 24,
	VALUE_BYTES = 512,
};

#define TABLE "walk512"

struct state {
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *client;
	struct rng rng;
};

static size_t make_key(uint64_t number, char key[KEY_BYTES])
{
	return (size_t)snprintf(key, KEY_BYTES, "key:%012llu",
				(unsigned long long)number);
}

static void make_value(uint64_t number, uint8_t value[VALUE_BYTES])
{
	memset(value, (uint8_t)number, VALUE_BYTES);
	memcpy(value, &number, sizeof(number));
}

int walk_kv_fill(struct aq_rack *rack)
{
	const struct aq_kv_options o = {.capacity = 2 * KEYS,
					.extent_bytes = 8 << 20,
					.flags = AQ_KV_FIXED};
	uint8_t value[VALUE_BYTES];
	struct aq_kv_client *c = NULL;
	struct aq_kv *kv = NULL;
	int err = aq_kv_create(rack, TABLE, &o, &kv);

	if (!err)
		err = aq_kv_client_open(kv, NULL, &c);
	for (uint64_t i = 0; i < KEYS && !err; i++) {
		char key[KEY_BYTES];

		make_value(i, value);
		err = aq_kv_put(c, key, make_key(i, key), value, VALUE_BYTES,
				NULL);
	}
	aq_kv_client_close(c);
	aq_kv_close(kv);
	return err;
}

static int setup(struct side *s)
{
	const struct walk_kv_param *p = s->param;
	const struct aq_kv_client_options o = {.flags = p->is_walk ? AQ_KV_WALK
								   : 0};
	struct state *st;
	int err;

	if (s->role != SIDE_CLIENT)
		return 0;
	st = calloc(1, sizeof(*st));
	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	rng_init(&st->rng, 1);
	err = place_rack(&st->rack);
	if (!err)
		err = aq_kv_open(st->rack, TABLE, &st->kv);
	if (!err)
		err = aq_kv_client_open(st->kv, &o, &st->client);
	return err ? side_fail(s, err, aq_last_error()) : 0;
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	if (!st)
		return;
	aq_kv_client_close(st->client);
	aq_kv_close(st->kv);
	aq_rack_close(st->rack);
	free(st);
}

static int get(const struct side *s)
{
	struct state *st = s->state;
	uint8_t value[VALUE_BYTES], want[VALUE_BYTES];
	uint64_t number = rng_below(&st->rng, KEYS);
	char key[KEY_BYTES];
	size_t len;
	int err = aq_kv_get(st->client, key, make_key(number, key), value,
			    sizeof(value), &len);

	if (err)
		return err;
	make_value(number, want);
	return len == VALUE_BYTES && memcmp(value, want, len) == 0 ? 0
								   : -EBADMSG;
}

/* That each took the way it is named for; the first of few may take one more
 * round trip, so it is walks that are counted. */
static int check_way(struct side *s, const struct state *st)
{
	const struct walk_kv_param *p = s->param;
	struct aq_kv_stats stats;

	aq_kv_client_stats(st->client, &stats);
	return (2 * stats.walks > stats.gets) == p->is_walk
		       ? 0
		       : side_fail(s, -EBADMSG, "gets took another way");
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	int err = walk_bench_each(s, window_ns, get, out);

	return err ? err : check_way(s, s->state);
}

const struct side_ops walk_kv_ops = {
	.setup = setup,
	.measure = measure,
	.teardown = teardown,
	.is_shared = true,
};
