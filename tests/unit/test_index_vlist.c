/* SPDX-License-Identifier: Apache-2.0 */
/* A version-list store over a quiet network: every operation, every limit, and
 * memory that is collected. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "index/vlist.h"
#include "rig/stage.h"
#include "sim/sim.h"

enum {
	CLIENTS = 4,
	VALUE_MAX = 40,
};

struct rig {
	struct rig_stage *stage;
	struct rig_host *node, *host;
	struct rig_region *region;
	struct vlist_geometry g;
	struct client_link *conn[64];
	unsigned conns;
	void (*fn)(struct rig *r);
	bool is_done;
};

static int remote_fence(void *ctx, const char *conn)
{
	return 0;
}

static int remote_is_alive(void *ctx, const char *conn)
{
	return conn[0] != 'x';
}

static void remote_close(void *ctx, struct kit_remote *remote)
{
	rig_link_close(remote->link);
}

/* Clients with a name of x are taken for dead. */
static struct kit_remote remote_open(struct rig *r, const char *name)
{
	struct kit_remote p = {.fence = remote_fence,
			       .is_alive = remote_is_alive,
			       .close = remote_close,
			       .ctx = r,
			       .addr = r->region->addr,
			       .size_bytes = r->region->size_bytes,
			       .rkey = r->region->rkey};

	snprintf(p.conn, sizeof(p.conn), "%s", name);
	assert_int_equal(rig_link_open(r->host, r->region, NULL, &p.link), 0);
	return p;
}

static struct vlist_client *client(struct rig *r, const char *name)
{
	struct vlist_config cfg = {.deadline_ms = 50};
	struct kit_remote p = remote_open(r, name);
	struct vlist_client *c;

	assert_int_equal(vlist_client_create(&p, &r->g, &cfg, &c), 0);
	return c;
}

static void fiber(void *arg)
{
	struct rig *r = arg;
	struct kit_remote p = remote_open(r, "maker");

	assert_int_equal(vlist_format(&p, &r->g), 0);
	remote_close(r, &p);
	r->fn(r);
	r->is_done = true;
	sim_stop(rig_stage_sim(r->stage));
}

static void play(const struct vlist_options *o, void (*fn)(struct rig *r))
{
	struct rig_stage_config cfg = {.seed = 1};
	struct rig r = {.fn = fn};

	cfg.link.latency_ps = SIM_US;
	assert_int_equal(vlist_geometry_make(o, &r.g), 0);
	assert_int_equal(rig_stage_create(&cfg, &r.stage), 0);
	assert_int_equal(rig_host_add(r.stage, "node", &r.node), 0);
	assert_int_equal(rig_host_add(r.stage, "host", &r.host), 0);
	assert_int_equal(
		rig_region_create(r.node, r.g.size_bytes, false, &r.region), 0);
	assert_int_equal(rig_host_spawn(r.host, "test", fiber, &r), 0);
	(void)sim_run_until(rig_stage_sim(r.stage), 100 * SIM_S);
	assert_true(r.is_done);
	rig_stage_destroy(r.stage);
}

static const struct vlist_options small = {.keys = 40,
					   .versions = 64,
					   .value_max = VALUE_MAX,
					   .clients = CLIENTS,
					   .failure_ms = 5,
					   .chunk_nodes = 8};

/* ---- one key ------------------------------------------------------------ */

static void check_get(struct vlist_client *c, uint64_t key, const char *want)
{
	char buf[VALUE_MAX];
	size_t len = 0;
	int err = vlist_get(c, key, buf, sizeof(buf), &len);

	if (!want) {
		assert_int_equal(err, -ENOENT);
		return;
	}
	assert_int_equal(err, 0);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(buf, want, len);
}

static void put(struct vlist_client *c, uint64_t key, const char *value)
{
	assert_int_equal(vlist_put(c, key, value, strlen(value)), 0);
}

static void one_key(struct rig *r)
{
	struct vlist_client *a = client(r, "a"), *b = client(r, "b");
	char buf[VALUE_MAX + 1] = {0};
	size_t len;

	check_get(a, 7, NULL);
	put(a, 7, "one");
	check_get(b, 7, "one");
	put(b, 7, "");
	check_get(a, 7, "");
	put(a, 7, "three");
	put(a, 7, "four");
	/* Two versions behind what it remembers. */
	check_get(b, 7, "four");
	assert_true(vlist_client_stats(b)->chases >= 2);
	assert_int_equal(vlist_get(b, 7, buf, 2, &len), -EMSGSIZE);
	assert_int_equal(len, 4);
	assert_memory_equal(buf, "four", 2);
	assert_int_equal(vlist_del(b, 7), 0);
	check_get(a, 7, NULL);
	put(a, 7, "six");
	check_get(b, 7, "six");
	assert_int_equal(vlist_put(a, 7, buf, sizeof(buf)), -EMSGSIZE);
	assert_int_equal(vlist_put(a, UINT64_MAX, "x", 1), -EINVAL);
	assert_int_equal(vlist_get(a, UINT64_MAX, buf, 1, &len), -EINVAL);
	vlist_client_destroy(a);
	vlist_client_destroy(b);
}

static void writes_reads_deletes(void **state)
{
	play(&small, one_key);
}

/* ---- memory ------------------------------------------------------------- */

static void many_versions(struct rig *r)
{
	struct vlist_client *a = client(r, "a"), *b = client(r, "b");
	struct vlist_report report;
	char text[16];

	for (int i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "v%d", i);
		put(i % 3 ? a : b, (uint64_t)i % 5, text);
	}
	check_get(a, 4, "v1999");
	assert_true(vlist_client_stats(a)->collected > 1000);
	/* Keys that one client writes once and the other again. */
	for (uint64_t i = 0; i < 400; i++) {
		put(a, 10 + i % 20, "a");
		put(b, 10 + i % 20, "b");
	}
	assert_true(vlist_client_stats(a)->scans > 0);
	assert_int_equal(vlist_check(a, &report), 0);
	assert_int_equal(report.keys, 25);
	assert_int_equal(report.present, 25);
	assert_true(report.versions >= 25 && report.versions <= 64);
	assert_int_equal(report.clients, 2);
	assert_int_equal(report.bad_entries + report.bad_nodes + report.loops,
			 0);
	vlist_client_destroy(a);
	vlist_client_destroy(b);
}

static void old_versions_are_collected(void **state)
{
	play(&small, many_versions);
}

static void fill_up(struct rig *r)
{
	struct vlist_client *a = client(r, "a");
	uint64_t key = 0;
	int err;

	do
		err = vlist_put(a, key++, "live", 4);
	while (!err);
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(key, r->g.node_count + 1);
	/* A change needs a place beside what is there. */
	assert_int_equal(vlist_put(a, 0, "more", 4), -ENOSPC);
	check_get(a, 0, "live");
	vlist_client_destroy(a);
}

static void a_full_store_says_so(void **state)
{
	play(&small, fill_up);
}

static void inherit(struct rig *r)
{
	struct vlist_client *a = client(r, "a"), *b;

	for (uint64_t key = 0; key < 10; key++)
		put(a, key, "a");
	assert_int_equal(vlist_client_stats(a)->chunks, 2);
	vlist_client_destroy(a);
	b = client(r, "b");
	for (uint64_t i = 0; i < 100; i++)
		put(b, i % 10, "b");
	assert_true(vlist_client_stats(b)->adopted > 0);
	check_get(b, 9, "b");
	vlist_client_destroy(b);
}

static void memory_of_those_who_left_is_used(void **state)
{
	struct vlist_options o = small;

	o.versions = 16;
	play(&o, inherit);
}

/* ---- clients ------------------------------------------------------------ */

static void too_many(struct rig *r)
{
	struct vlist_client *c[CLIENTS], *d, *e;
	struct vlist_config cfg = {.deadline_ms = 50};
	struct kit_remote p;

	for (unsigned i = 0; i < CLIENTS; i++)
		c[i] = client(r, i ? "c" : "xdead");
	/* The dead one's place is given to another. */
	d = client(r, "d");
	assert_true(vlist_client_stats(d)->fenced == 1);
	p = remote_open(r, "late");
	assert_int_equal(vlist_client_create(&p, &r->g, &cfg, &e), -EAGAIN);
	remote_close(r, &p);
	vlist_client_destroy(d);
	vlist_client_abandon(c[0]);
	for (unsigned i = 1; i < CLIENTS; i++)
		vlist_client_destroy(c[i]);
}

static void places_for_clients_are_limited(void **state)
{
	play(&small, too_many);
}

/* ---- layout ------------------------------------------------------------- */

static void words_and_heads(void **state)
{
	struct vlist_geometry g, h;
	struct vlist_head head;
	struct vlist_options o = small;
	uint64_t p;

	assert_int_equal(vlist_geometry_make(&o, &g), 0);
	p = vlist_pointer(vlist_node_at(&g, 3), 77);
	assert_true(vlist_pointer_is_sane(&g, p));
	assert_int_equal(vlist_offset(p), vlist_node_at(&g, 3));
	assert_int_equal(vlist_generation(p), 77);
	assert_false(vlist_is_pointer(vlist_end_of(p)));
	assert_int_equal(vlist_end_of(p) | VLIST_LINK, p);
	assert_false(vlist_pointer_is_sane(&g, vlist_end_of(p)));
	assert_false(vlist_pointer_is_sane(&g, p + 2));
	assert_false(vlist_pointer_is_sane(
		&g, vlist_pointer(vlist_node_at(&g, g.node_count), 1)));
	assert_false(vlist_pointer_is_sane(&g, vlist_pointer(0, 1)));

	vlist_head_put(&g, &head);
	assert_int_equal(vlist_head_get(&head, g.size_bytes, &h), 0);
	assert_memory_equal(&g, &h, sizeof(g));
	assert_int_equal(vlist_head_get(&head, g.size_bytes - 1, &h), -EBADMSG);
	for (size_t i = 0; i < sizeof(head); i++) {
		((uint8_t *)&head)[i] ^= 0x10;
		assert_true(vlist_head_get(&head, g.size_bytes, &h) < 0);
		((uint8_t *)&head)[i] ^= 0x10;
	}
	o.keys = 0;
	assert_int_equal(vlist_geometry_make(&o, &g), -EINVAL);
	o = small;
	o.value_max = VLIST_VALUE_MAX + 1;
	assert_int_equal(vlist_geometry_make(&o, &g), -EMSGSIZE);
	o = small;
	o.clients = VLIST_CLIENTS_MAX + 1;
	assert_int_equal(vlist_geometry_make(&o, &g), -EINVAL);
}

/* ---- slots -------------------------------------------------------------- */

/* One that stops at a request for its slot, and another that comes then. */
struct sleeper {
	struct rig *r;
	unsigned points, stop_at;
	struct vlist_client *other;
};

static struct sleeper sleeper;

static bool sleeper_point(void *ctx, int point)
{
	struct sleeper *s = ctx;

	if (point == VLIST_POINT_SLOT && ++s->points == s->stop_at)
		s->other = client(s->r, "other");
	return false;
}

static void sleep_once(struct rig *r)
{
	struct vlist_config cfg = {
		.deadline_ms = 50, .crash = sleeper_point, .ctx = &sleeper};
	struct vlist_config plain = {.deadline_ms = 50};
	struct kit_remote late = remote_open(r, "x late"), p;
	struct vlist_client *c = NULL, *third = NULL;
	int err;

	sleeper.r = r;
	err = vlist_client_create(&late, &r->g, &cfg, &c);
	assert_true(err == 0 || err == -EAGAIN);
	if (sleeper.other) {
		/* It is alive, whatever the late one has written since. */
		p = remote_open(r, "third");
		assert_int_equal(vlist_client_create(&p, &r->g, &plain, &third),
				 -EAGAIN);
		remote_close(r, &p);
	}
	if (err)
		remote_close(r, &late);
	vlist_client_destroy(c);
	vlist_client_destroy(sleeper.other);
}

/* The late one wrote its name over that of the client that had the slot by
 * then; when the late one was gone, the slot was taken from the other. */
static void a_slot_keeps_its_name(void **state)
{
	struct vlist_options one = small;
	unsigned stop_at = 1;

	one.clients = 1;
	do {
		sleeper = (struct sleeper){.stop_at = stop_at};
		play(&one, sleep_once);
	} while (sleeper.points >= stop_at++);
	assert_true(stop_at > 3);
}

/* ---- what clients of one process know together --------------------------- */

static struct vlist_client *member(struct rig *r, const char *name,
				   struct vlist_places *places)
{
	struct vlist_config cfg = {
		.deadline_ms = 50, .shortcut = true, .places = places};
	struct kit_remote p = remote_open(r, name);
	struct vlist_client *c;

	assert_int_equal(vlist_client_create(&p, &r->g, &cfg, &c), 0);
	return c;
}

static uint64_t trips_of_get(struct vlist_client *c, uint64_t key,
			     const char *want)
{
	uint64_t before = vlist_client_stats(c)->trips;

	check_get(c, key, want);
	return vlist_client_stats(c)->trips - before;
}

static void play_together(struct rig *r)
{
	struct vlist_places *places;
	struct vlist_client *a, *b, *alone = client(r, "alone");

	assert_int_equal(vlist_places_create(64, &places), 0);
	a = member(r, "a", places);
	b = member(r, "b", places);
	put(a, 7, "one");
	/* Who knows nothing searches the index first. */
	assert_int_equal(trips_of_get(b, 7, "one"), 1);
	assert_int_equal(trips_of_get(alone, 7, "one"), 2);
	for (unsigned i = 0; i < 6; i++)
		put(a, 7, "two");
	assert_int_equal(trips_of_get(b, 7, "two"), 1);
	/* Others of the machine do not send anybody back. */
	check_get(a, 7, "two");
	put(alone, 7, "three");
	check_get(b, 7, "three");
	assert_int_equal(trips_of_get(a, 7, "three"), 1);
	vlist_client_destroy(a);
	vlist_client_destroy(b);
	vlist_client_destroy(alone);
	vlist_places_destroy(places);
}

static void clients_of_a_process_share_places(void **state)
{
	play(&small, play_together);
}

/* ---- moving the entry -----------------------------------------------------
 */

static void play_moving(struct rig *r)
{
	struct vlist_client *c = client(r, "a");
	const struct vlist_stats *s;

	put(c, 3, "first");
	for (unsigned i = 0; i < 30; i++) {
		uint64_t before = vlist_client_stats(c)->trips;

		put(c, 3, "again");
		/* All chunks are taken by then. */
		s = vlist_client_stats(c);
		if (i >= 16)
			assert_int_equal(s->trips - before, 1);
	}
	s = vlist_client_stats(c);
	assert_true(s->heads >= 5);
	assert_true(s->collected >= 20);
	vlist_client_destroy(c);
}

static void an_entry_is_moved_without_a_round_trip(void **state)
{
	struct vlist_options few = small;

	few.versions = 16;
	few.clients = 1;
	play(&few, play_moving);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_of_a_process_share_places),
		cmocka_unit_test(an_entry_is_moved_without_a_round_trip),
		cmocka_unit_test(a_slot_keeps_its_name),
		cmocka_unit_test(words_and_heads),
		cmocka_unit_test(writes_reads_deletes),
		cmocka_unit_test(old_versions_are_collected),
		cmocka_unit_test(a_full_store_says_so),
		cmocka_unit_test(memory_of_those_who_left_is_used),
		cmocka_unit_test(places_for_clients_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
