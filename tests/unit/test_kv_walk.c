/* SPDX-License-Identifier: Apache-2.0 */
/* Gets of a table by walks: one round trip for values of every size that fits,
 * the usual way for the others, keys that others change between two nodes of a
 * walk, and rows with any bytes in them. */
#include "kv_rig.h"

#include "base/rng.h"
#include "kv/kv_program.h"
#include "walk/program.h"

enum {
	VALUE_MAX = 4000,
	/* So long that nobody has to look at the state again. */
	FAILURE_MS = 60000,
	ITERATIONS = 8, /* two rows, an extent and the state are four */
};

struct table {
	struct rig rig; /* the first: remotes point to it */
	struct walk_program *program[KV_WALKS];
	struct aq_kv_client *plain, *walking;
	void (*between)(struct table *t); /* two nodes of a walk; or NULL */
	struct rng rng;
	unsigned walks;
	uint8_t value[VALUE_MAX];
};

static int run_walk(void *ctx, const void *geometry, struct kit_walk *walk)
{
	struct table *t = ctx;
	const struct walk_program *program = t->program[walk->which];
	const struct walk_image *image = &program->image;
	enum walk_step step = WALK_STEP_NEXT;
	uint64_t at = walk->start;

	assert_ptr_not_equal(geometry, NULL);
	assert_int_equal(walk->pad_bytes, image->pad_bytes);
	memset((uint8_t *)walk->pad + walk->send_bytes, 0,
	       walk->pad_bytes - walk->send_bytes);
	t->walks++;
	walk->trips = 1;
	walk->back = walk->pad;
	for (unsigned i = 0; i < ITERATIONS && step == WALK_STEP_NEXT; i++) {
		if (at > t->rig.g.size_bytes ||
		    image->load_bytes > t->rig.g.size_bytes - at)
			return -EFAULT;
		if (t->between && i)
			t->between(t);
		step = walk_program_step(program, t->rig.far.main + at,
					 walk->pad, &at);
	}
	return step == WALK_STEP_DONE ? 0 : -ECANCELED;
}

static void open_table(struct table *t, const struct aq_kv_options *o)
{
	const struct kv_client_config config = {
		.options = {.flags = AQ_KV_WALK}, .rng_seed = 2};
	struct walk_build *build = NULL;
	struct kit_remote remote;
	struct walk_image image;

	memset(t, 0, sizeof(*t));
	rng_init(&t->rng, 5);
	rig_make(&t->rig, o);
	for (unsigned i = 0; i < KV_WALKS; i++) {
		assert_int_equal(kv_program_make(&t->rig.g, (enum kv_walk)i,
						 &build, &image),
				 0);
		assert_int_equal(
			walk_program_open(&image, NULL, &t->program[i]), 0);
		walk_build_destroy(build);
	}
	t->plain = rig_client(&t->rig, NULL);
	remote = rig_remote(&t->rig.far);
	remote.walk = run_walk;
	assert_int_equal(
		kv_client_create(&remote, &t->rig.g, &config, &t->walking), 0);
}

static void close_table(struct table *t)
{
	rig_check_with(t->plain, UINT64_MAX);
	kv_client_destroy(t->walking);
	kv_client_destroy(t->plain);
	for (unsigned i = 0; i < KV_WALKS; i++)
		walk_program_close(t->program[i]);
	kit_rig_break(&t->rig.far);
}

static void put(struct table *t, unsigned key, uint8_t fill, size_t len)
{
	char name[16];
	int n = snprintf(name, sizeof(name), "key%u", key);

	memset(t->value, fill, len);
	assert_int_equal(
		aq_kv_put(t->plain, name, (size_t)n, t->value, len, NULL), 0);
}

/* The value's length, or -1; all its bytes are the same. */
static long get(struct table *t, unsigned key, uint8_t *fill)
{
	uint8_t buf[VALUE_MAX];
	char name[16];
	int n = snprintf(name, sizeof(name), "key%u", key);
	size_t len;
	int err =
		aq_kv_get(t->walking, name, (size_t)n, buf, sizeof(buf), &len);

	if (err == -ENOENT)
		return -1;
	assert_int_equal(err, 0);
	for (size_t i = 1; i < len; i++)
		assert_int_equal(buf[i], buf[0]);
	if (len)
		*fill = buf[0];
	return (long)len;
}

/* ---- sizes --------------------------------------------------------------- */

static void sizes(void **state)
{
	static const struct {
		size_t len;
		unsigned trips;
	} rows[] = {{0, 1},    {8, 1},	  {40, 1},   {80, 1},	    {512, 1},
		    {1000, 1}, {1900, 1}, {2100, 2}, {VALUE_MAX, 2}};
	const struct aq_kv_options o = {.capacity = 1000,
					.clients = 8,
					.failure_ms = FAILURE_MS,
					.extent_bytes = 1 << 20};
	struct aq_kv_stats before, after;
	struct table t;

	open_table(&t, &o);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		put(&t, i, (uint8_t)(i + 1), rows[i].len);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t fill = 0;

		/* The first shows how long values are. */
		(void)get(&t, i, &fill);
		aq_kv_client_stats(t.walking, &before);
		assert_int_equal(get(&t, i, &fill), rows[i].len);
		assert_int_equal(fill, rows[i].len ? i + 1 : 0);
		aq_kv_client_stats(t.walking, &after);
		assert_int_equal(after.get_trips - before.get_trips,
				 rows[i].trips);
		assert_int_equal(after.walks - before.walks, 1);
	}
	assert_int_equal(get(&t, 1000, NULL), -1);
	close_table(&t);
}

/* So many keys that most are in either row, in rows of several sizes. */
static void full_rows(void **state)
{
	static const struct {
		uint32_t entry, row;
	} rows[] = {{32, 8}, {64, 0}, {120, 8}};
	enum {
		KEYS = 900
	};

	for (unsigned k = 0; k < ARRAY_LEN(rows); k++) {
		const struct aq_kv_options o = {.capacity = 1000,
						.clients = 8,
						.failure_ms = FAILURE_MS,
						.entry_bytes = rows[k].entry,
						.entries_per_row = rows[k].row,
						.extent_bytes = 4 << 20,
						.flags = AQ_KV_FIXED};
		struct aq_kv_stats s;
		struct table t;

		open_table(&t, &o);
		for (unsigned i = 0; i < KEYS; i++)
			put(&t, i, (uint8_t)i, 100 + i % 400);
		for (unsigned i = 0; i < KEYS; i++) {
			uint8_t fill = 0;

			assert_int_equal(get(&t, i, &fill), 100 + i % 400);
			assert_int_equal(fill, (uint8_t)i);
		}
		aq_kv_client_stats(t.walking, &s);
		assert_int_equal(s.gets, KEYS);
		assert_int_equal(s.walks, KEYS);
		assert_int_equal(s.get_trips, KEYS);
		close_table(&t);
	}
}

/* ---- changes meanwhile --------------------------------------------------- */

static void change(struct table *t)
{
	unsigned key = (unsigned)rng_below(&t->rng, 4);
	char name[16];
	int n = snprintf(name, sizeof(name), "key%u", key);

	if (rng_below(&t->rng, 3) == 0)
		(void)!aq_kv_del(t->plain, name, (size_t)n);
	else
		put(t, key, (uint8_t)rng_below(&t->rng, 256),
		    300 + 100 * rng_below(&t->rng, 4));
}

/* A value that somebody stored, whole, or none. */
static void while_it_changes(void **state)
{
	const struct aq_kv_options o = {.capacity = 100,
					.clients = 8,
					.failure_ms = FAILURE_MS,
					.extent_bytes = 1 << 20};
	struct aq_kv_stats s;
	struct table t;

	open_table(&t, &o);
	t.between = change;
	for (unsigned i = 0; i < 400; i++) {
		uint8_t fill;
		long len = get(&t, i % 4, &fill);

		assert_true(len == -1 ||
			    (len >= 300 && len <= 600 && len % 100 == 0));
	}
	aq_kv_client_stats(t.walking, &s);
	/* Some were in time, some were not and were read. */
	assert_true(s.walks > 300 && s.get_trips > 410);
	close_table(&t);
}

/* ---- bytes of any kind --------------------------------------------------- */

/* A row that leads anywhere ends in an error of the walk, or in bytes that the
 * client would judge; the program stays in its windows (ASan looks on). */
static void any_rows(void **state)
{
	const struct aq_kv_options o = {.capacity = 200,
					.clients = 8,
					.failure_ms = FAILURE_MS,
					.extent_bytes = 1 << 20};
	struct table t;
	uint8_t *pad;

	open_table(&t, &o);
	pad = malloc(kv_pad_bytes(&t.rig.g, KV_WALK_LONG));
	assert_non_null(pad);
	for (unsigned i = 0; i < 2000; i++) {
		struct kv_pad *p = (struct kv_pad *)pad;
		uint64_t at =
			kv_row_at(&t.rig.g, rng_below(&t.rng, t.rig.g.rows));
		uint8_t *row = t.rig.far.main + at, *entry = row;
		uint8_t before[KV_ROW_BYTES_MAX];
		struct kit_walk walk = {
			.which = KV_WALK_LONG,
			.start = at,
			.pad = pad,
			.pad_bytes = kv_pad_bytes(&t.rig.g, KV_WALK_LONG),
			.send_bytes = sizeof(*p)};
		int err;

		memcpy(before, row, t.rig.g.row_bytes);
		rng_fill(&t.rng, row, t.rig.g.row_bytes);
		entry[0] |= KV_E_USED | KV_E_EXTENT;
		if (i & 1) /* somewhere inside */
			memset(entry + 12, 0, 2);
		rng_fill(&t.rng, pad, kv_pad_bytes(&t.rig.g, KV_WALK_LONG));
		*p = (struct kv_pad){.key_len = entry[1]};
		memcpy(&p->hash, entry + 16, sizeof(p->hash));
		err = run_walk(&t.rig.far, &t.rig.g, &walk);
		assert_true(err == 0 || err == -EFAULT);
		assert_true(err || p->rows == 1);
		memcpy(row, before, t.rig.g.row_bytes);
	}
	free(pad);
	close_table(&t);
}

static void without_extents(void **state)
{
	const struct aq_kv_options o = {.capacity = 100, .entry_bytes = 24};
	struct walk_build *build = NULL;
	struct walk_image image;
	struct kv_geometry g;

	assert_int_equal(kv_geometry_make(&o, &g), 0);
	assert_int_equal(kv_program_make(&g, KV_WALK_SHORT, &build, &image),
			 -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(full_rows),
		cmocka_unit_test(while_it_changes),
		cmocka_unit_test(any_rows),
		cmocka_unit_test(without_extents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
