/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fabrics below the simulator's network: what a lone frame and a lone READ
 * take, order and room under load, faults over each, a switch that dies in the
 * middle; then the play "verbs" with all its checks over some seeds. SEEDS
 * in the environment sets their number.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "edm/edm_net.h"
#include "edm/edm_timing.h"
#include "play_test.h"
#include "plays/read_alone.h"
#include "plays/verbs_play.h"

enum {
	PORTS = 4,
	FRAMES = 400,
	FRAME_BYTES = 100,
	LONG_BYTES = 1100,
	QUEUE = 8,
	SEEDS = 12,
};

struct world {
	struct sim *sim;
	struct sim_net *net;
	struct sim_port *port[PORTS];
	uint32_t next[PORTS][PORTS]; /* [to][from]: number that comes next */
	uint64_t last_ps;
	unsigned got;
	unsigned overtakes;
	unsigned rooms;
};

struct end {
	struct world *w;
	unsigned index;
};

static void port_addr(unsigned i, struct env_addr *a)
{
	*a = (struct env_addr){
		.ip = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}};
}

static void on_rx(void *ctx, struct sim_frame *f)
{
	struct end *e = ctx;
	struct world *w = e->w;
	unsigned from = f->bytes[40];
	uint32_t number;

	memcpy(&number, f->bytes + 44, 4);
	/* A fault may have hit any byte; only whole frames are counted. */
	if (from < PORTS) {
		w->overtakes += number < w->next[e->index][from];
		w->next[e->index][from] = number + 1;
	}
	w->last_ps = sim_now_ps(w->sim);
	w->got++;
	sim_frame_free(w->net, f);
}

static void on_room(void *ctx)
{
	((struct end *)ctx)->w->rooms++;
}

static const struct sim_port_ops port_ops = {on_rx, on_room};

static void world_attach(struct world *w, const struct sim_link *link,
			 struct end *ends)
{
	for (unsigned i = 0; i < PORTS; i++) {
		struct env_addr a;

		port_addr(i, &a);
		ends[i] = (struct end){w, i};
		assert_int_equal(sim_port_attach(w->net, &a, link, &port_ops,
						 &ends[i], &w->port[i]),
				 0);
	}
}

/* NULL configuration: one of the choices. */
static void world_open(struct world *w, const struct sim_fabric_choice *fabric,
		       const struct edm_config *c, const struct sim_faults *bad,
		       struct end *ends)
{
	struct sim_link link = {.latency_ps = 500 * SIM_NS,
				.bits_per_s = 100000000000,
				.queue_frames = QUEUE};

	memset(w, 0, sizeof(*w));
	if (bad)
		link.faults = *bad;
	assert_int_equal(sim_create(7, &w->sim), 0);
	assert_int_equal(sim_net_create(w->sim, &w->net), 0);
	if (c)
		assert_int_equal(edm_net_plug(w->net, c), 0);
	else
		assert_int_equal(sim_fabric_plug(fabric, w->net, PORTS), 0);
	world_attach(w, &link, ends);
}

static void world_close(struct world *w)
{
	sim_net_destroy(w->net);
	sim_destroy(w->sim);
}

/* False: the queue is full. */
static bool put(struct world *w, unsigned from, unsigned to, uint32_t number,
		uint32_t bytes)
{
	struct sim_frame *f = sim_port_tx_begin(w->port[from], bytes);

	if (!f)
		return false;
	memset(f->bytes, 0, bytes);
	f->bytes[12] = 0x08;
	memcpy(f->bytes + 30, (uint8_t[]){10, 0, 0, (uint8_t)(to + 1)}, 4);
	f->bytes[40] = (uint8_t)from;
	memcpy(f->bytes + 44, &number, 4);
	sim_port_tx_end(w->port[from], f, bytes, 0);
	return true;
}

static const struct sim_fabric_choice *choice(const char *name)
{
	const struct sim_fabric_choice *c =
		sim_fabric_find(edm_net_choices, name);

	assert_non_null(c);
	return c;
}

/* ---- alone -----------------------------------------------------------------
 */

static void test_lone_frame(void **state)
{
	struct end ends[PORTS];
	struct edm_config c;
	struct world w;
	uint64_t start_ps;

	edm_net_config(EDM_PROTO_EDM, PORTS, &c);
	world_open(&w, choice("edm"), NULL, NULL, ends);
	start_ps = sim_now_ps(w.sim);
	assert_true(put(&w, 1, 2, 0, FRAME_BYTES));
	sim_run_until(w.sim, sim_now_ps(w.sim) + SIM_MS);
	assert_int_equal(w.got, 1);
	assert_int_equal(w.last_ps - start_ps,
			 edm_timing_alone_ps(&c, EDM_WRITE, FRAME_BYTES));
	world_close(&w);
}

static uint64_t read_ps(const char *name, uint32_t bytes)
{
	uint64_t ps = 0;

	assert_int_equal(sim_read_alone_ps(choice(name), bytes, &ps), 0);
	return ps;
}

/* A READ is two frames: a request of 74 bytes, an answer of 62 and the data.
 * Over EDM it is EDM's own: a request of BTH and RETH, an answer of BTH, AETH
 * and the data, and no notification or grant of its own. */
static void test_lone_read(void **state)
{
	const struct sim_fabric_choice *eth = choice("ethernet");
	struct edm_config c;
	struct edm_path path;
	uint64_t wire_ps = (74 + 24 + 62 + 64 + 24) * 80, own_ps;

	edm_net_config(EDM_PROTO_EDM, 2, &c);
	own_ps = edm_timing_alone_ps(&c, EDM_READ, 12 + 4 + 64) +
		 (edm_blocks(c.md, 12 + 16) -
		  edm_request_blocks(c.md, EDM_READ)) *
			 edm_block_ps(c.gbps);
	assert_int_equal(read_ps("edm", 64), own_ps);
	/* Stored and forwarded: every frame's bits count twice. */
	assert_int_equal(read_ps("ethernet", 64),
			 2 * wire_ps + 4 * eth->link.latency_ps +
				 2 * eth->switch_ps);
	/* The constants are those of Table 1's raw Ethernet. */
	c.proto = EDM_PROTO_IRD;
	edm_path_init(&path, &c);
	assert_int_equal(eth->link.latency_ps, path.link_ps);
	assert_int_equal(eth->switch_ps, path.switch_ps);
	/* CXL is the shortest way, the switch of Ethernet the longest. */
	assert_true(read_ps("cxl", 64) < read_ps("edm", 64));
	assert_true(read_ps("edm", 64) < read_ps("ethernet", 64));
	assert_true(read_ps("edm", 4096) > read_ps("edm", 64));
	assert_int_equal(sim_read_alone_ps(eth, 4097, &wire_ps), -EINVAL);
}

/* ---- under load ------------------------------------------------------------
 */

/* Everybody to everybody as fast as the queues take it. */
static void flood(struct world *w)
{
	uint32_t number[PORTS][PORTS] = {{0}};
	unsigned put_count = 0;
	uint64_t step = 0;

	while (put_count < FRAMES) {
		for (unsigned from = 0; from < PORTS; from++) {
			unsigned to =
				(from + 1 + (unsigned)step % (PORTS - 1)) %
				PORTS;

			if (put(w, from, to, number[to][from],
				step % 3 ? FRAME_BYTES : LONG_BYTES)) {
				number[to][from]++;
				put_count++;
			}
		}
		step++;
		sim_run_until(w->sim, sim_now_ps(w->sim) + 20 * SIM_NS);
	}
	sim_run_until(w->sim, sim_now_ps(w->sim) + SIM_MS);
}

static void test_order_and_room(void **state)
{
	for (const struct sim_fabric_choice *c = edm_net_choices; c->name;
	     c++) {
		struct end ends[PORTS];
		struct world w;

		world_open(&w, c, NULL, NULL, ends);
		flood(&w);
		assert_int_equal(w.got, sim_net_stats(w.net)->sent);
		assert_int_equal(w.overtakes, 0);
		/* The queues were full, and said so when they were not. */
		assert_true(sim_net_stats(w.net)->queue_full > 0);
		assert_true(w.rooms > 0);
		for (unsigned i = 0; i < PORTS; i++)
			assert_true(sim_port_has_room(w.port[i]));
		world_close(&w);
	}
}

static void test_faults(void **state)
{
	const struct sim_faults bad = {.loss_ppm = 100000,
				       .dup_ppm = 100000,
				       .reorder_ppm = 100000,
				       .corrupt_ppm = 100000,
				       .reorder_max_ps = 5 * SIM_US};

	for (const struct sim_fabric_choice *c = edm_net_choices; c->name;
	     c++) {
		struct end ends[PORTS];
		const struct sim_net_stats *st;
		struct world w;

		world_open(&w, c, NULL, &bad, ends);
		flood(&w);
		st = sim_net_stats(w.net);
		assert_true(st->lost && st->duplicated && st->reordered &&
			    st->corrupted);
		/* Every frame is accounted for, whatever struck it. */
		assert_int_equal(st->delivered + st->lost + st->no_route +
					 st->cut,
				 st->sent + st->duplicated);
		assert_int_equal(w.got, st->delivered);
		world_close(&w);
	}
}

static void test_cut_and_nowhere(void **state)
{
	for (const struct sim_fabric_choice *c = edm_net_choices; c->name;
	     c++) {
		struct end ends[PORTS];
		const struct sim_net_stats *st;
		struct world w;

		world_open(&w, c, NULL, NULL, ends);
		st = sim_net_stats(w.net);
		assert_true(put(&w, 0, 77, 0, FRAME_BYTES));
		sim_net_set_cut(w.port[0], w.port[1], true);
		assert_true(put(&w, 0, 1, 0, FRAME_BYTES));
		sim_port_set_down(w.port[3], true);
		assert_true(put(&w, 0, 3, 0, FRAME_BYTES));
		assert_true(put(&w, 0, 0, 0, FRAME_BYTES));
		assert_true(put(&w, 0, 2, 0, FRAME_BYTES));
		sim_run_until(w.sim, sim_now_ps(w.sim) + SIM_MS);
		assert_int_equal(st->no_route, 1);
		assert_int_equal(st->cut, 2);
		assert_int_equal(w.got, 2); /* to oneself, and to 2 */
		assert_true(sim_port_has_room(w.port[0]));
		world_close(&w);
	}
}

/* ---- failures inside the fabric --------------------------------------------
 */

static void test_switch_dies(void **state)
{
	struct end ends[PORTS];
	struct edm_config c;
	struct world w;

	edm_net_config(EDM_PROTO_EDM, PORTS, &c);
	/* The clock of a simulation does not start at 0. */
	world_open(&w, NULL, NULL, NULL, ends);
	c.fail_switch_ps = sim_now_ps(w.sim) + SIM_US;
	world_close(&w);
	world_open(&w, NULL, &c, NULL, ends);
	flood(&w);
	assert_true(w.got > 0);
	assert_true(sim_net_stats(w.net)->lost > 0);
	assert_int_equal(w.got + sim_net_stats(w.net)->lost,
			 sim_net_stats(w.net)->sent);
	world_close(&w);
	/* With a mirror nothing is lost and nothing is late. */
	c.mirror = true;
	world_open(&w, NULL, &c, NULL, ends);
	flood(&w);
	assert_int_equal(w.got, sim_net_stats(w.net)->sent);
	assert_int_equal(w.overtakes, 0);
	world_close(&w);
}

static void test_lost_control_blocks(void **state)
{
	struct end ends[PORTS];
	struct edm_config c;
	struct world w;

	edm_net_config(EDM_PROTO_EDM, PORTS, &c);
	c.loss_ppm = 20000;
	c.timer_ps = 5 * SIM_US;
	world_open(&w, NULL, &c, NULL, ends);
	flood(&w);
	assert_int_equal(w.got, sim_net_stats(w.net)->sent);
	world_close(&w);
}

static void test_limits(void **state)
{
	struct end ends[PORTS];
	struct env_addr a;
	struct edm_config c;
	struct world w;
	struct sim_port *more;

	world_open(&w, choice("edm"), NULL, NULL, ends);
	port_addr(PORTS, &a);
	assert_int_equal(sim_port_attach(w.net, &a, sim_port_link(w.port[0]),
					 &port_ops, NULL, &more),
			 -ENOSPC);
	/* Not under frames that are on their way. */
	assert_int_equal(sim_fabric_plug(choice("cxl"), w.net, PORTS), -EBUSY);
	edm_net_config(EDM_PROTO_EDM, 2000, &c);
	assert_int_equal(edm_net_plug(w.net, &c), -EINVAL);
	assert_null(sim_fabric_find(edm_net_choices, "token ring"));
	world_close(&w);
}

/* ---- the shipped NIC over each fabric --------------------------------------
 */

static void test_verbs(void **state)
{
	static struct play_sum sum;
	const struct verbs_play_counts *n = (const void *)sum.count;
	const struct verbs_play_counts *hit = (const void *)sum.hit;
	uint64_t hash[2] = {0, 0}, seeds = play_test_seeds(SEEDS);

	for (const struct sim_fabric_choice *c = edm_net_choices; c->name;
	     c++) {
		struct verbs_play_options opt = {.common.fabric = c};

		play_test_hold(&verbs_play, &opt.common, seeds, &sum);
		/* Each kind of fault in each run. */
		assert_true(hit->lost == seeds && hit->duplicated == seeds);
		assert_true(hit->reordered == seeds && hit->corrupted == seeds);
		assert_true(n->path_full > 0);
		assert_true(n->reads && n->cas);
		/* Three fabrics, three different runs of the same seeds. */
		assert_true(sum.hash != hash[0] && sum.hash != hash[1]);
		hash[1] = hash[0];
		hash[0] = sum.hash;
	}
}

static uint64_t hash_of(const struct sim_fabric_choice *c, uint64_t seed)
{
	struct verbs_play_options opt = {.common.seed = seed,
					 .common.fabric = c};
	static struct play_result res;

	assert_int_equal(play_seed(&verbs_play, &opt.common, &res), 0);
	assert_int_equal(res.violations, 0);
	return res.hash;
}

static void test_same_seed_same_hash(void **state)
{
	for (const struct sim_fabric_choice *c = edm_net_choices; c->name;
	     c++) {
		uint64_t hash = hash_of(c, 3);

		assert_int_equal(hash, hash_of(c, 3));
		assert_int_not_equal(hash, hash_of(c, 4));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lone_frame),
		cmocka_unit_test(test_lone_read),
		cmocka_unit_test(test_order_and_room),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_cut_and_nowhere),
		cmocka_unit_test(test_switch_dies),
		cmocka_unit_test(test_lost_control_blocks),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_same_seed_same_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
