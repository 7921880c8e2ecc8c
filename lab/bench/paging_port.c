/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements over one port, in a process of its own: rates with a deep
 * queue, latencies one at a time, the node's processor time, and the chain
 * without its optimisations; all in turns, in many short windows, so that what
 * else the machine does hits all of them alike.
 *
 * On the direct port memory is mapped and chains have nothing to do; the pages
 * are those of the mode that is made for it.
 */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "offload_bench.h"
#include "paging_bench.h"
#include "paging_far.h"
#include "place.h"
#include "shield.h"
#include "stats.h"
#include "subject.h"

enum {
	NAIVE_STEPS = 5,
	MIX_OPS = 20000,
	POOL_SLACK = 16 << 20,
	TURNOVER_PART = 8, /* of all pages: given back and stored anew */
};

/* One number per round. */
struct series {
	double value[BENCH_ROUNDS_MAX];
	unsigned count;
};

/* All series: one number per round, and its name in the report. Those of the
 * chain that is built up step by step follow each other. */
#define SERIES(X)                                     \
	X(READ_RATE, "read4k_rate")                   \
	X(WRITE_RATE, "write4k_rate")                 \
	X(LOAD_RATE, "load_rate")                     \
	X(MAPPED_RATE, "mapped_rate")                 \
	X(TWO_LOAD_RATE, "two_sided_load_rate")       \
	X(TWO_STORE_RATE, "two_sided_store_rate")     \
	X(STATIC_LOAD_RATE, "static_load_rate")       \
	X(STATIC_LOAD_NS, "static_load_ns")           \
	X(STATIC_STORE_NS, "static_store_ns")         \
	X(READ_NS, "read4k_ns")                       \
	X(WRITE_NS, "write4k_ns")                     \
	X(LOAD_NS, "load_ns")                         \
	X(MAPPED_NS, "mapped_ns")                     \
	X(UNMAPPED_NS, "unmapped_ns")                 \
	X(INVALIDATE_NS, "invalidate_ns")             \
	X(TWO_LOAD_NS, "two_sided_load_ns")           \
	X(TWO_STORE_NS, "two_sided_store_ns")         \
	X(READ_CPU, "node_cpu_ns_read4k")             \
	X(READ_OWN_CPU, "client_cpu_ns_read4k")       \
	X(CHAIN_CPU, "node_cpu_ns_chain")             \
	X(CHAIN_OWN_CPU, "client_cpu_ns_chain")       \
	X(TWO_CPU, "node_cpu_ns_two_sided")           \
	X(NAIVE_NS, "unmapped_naive_ns")              \
	X(NAIVE_NS_1, "unmapped_with_decision_ns")    \
	X(NAIVE_NS_2, "unmapped_with_address_ns")     \
	X(NAIVE_NS_3, "unmapped_with_recycle_ns")     \
	X(NAIVE_NS_4, "unmapped_with_swap_ns")        \
	X(LOAD_RATE_RATIO, "load_rate_vs_read4k")     \
	X(STORE_RATE_RATIO, "mapped_rate_vs_write4k") \
	X(LOAD_RATIO, "load_lat_vs_read4k")           \
	X(MAPPED_RATIO, "mapped_lat_vs_write4k")      \
	X(UNMAPPED_RATIO, "unmapped_lat_vs_write4k")  \
	X(CPU_RATIO, "engine_cpu_chain_vs_two_sided") \
	X(FALL_RATIO, "with_decision_vs_naive")       \
	X(FALL_RATIO_1, "with_address_vs_decision")   \
	X(FALL_RATIO_2, "with_recycle_vs_address")    \
	X(FALL_RATIO_3, "with_swap_vs_recycle")

enum series_id {
	S_NONE,
#define X(id, name) S_##id,
	SERIES(X)
#undef X
	S_COUNT,
};

static const char *const series_names[S_COUNT] = {
#define X(id, name) [S_##id] = name,
	SERIES(X)
#undef X
};

/* What is left out at each step: the first has none of the four. */
static const unsigned naive[NAIVE_STEPS] = {0xf, 0xe, 0xc, 0x8, 0x0};

struct run {
	const struct paging_plan *plan;
	enum paging_port port;
	uint64_t pframes; /* of the node, at most */
	struct paging_far far;
	/* `two` and `step` are not there on the direct port. */
	struct page_store *pages, *two, *fixed, *step[NAIVE_STEPS];
	struct series series[S_COUNT];
	json_t *out;
};

const char *paging_port_name(enum paging_port port)
{
	static const char *const names[PAGING_PORT_COUNT] = {
		[PAGING_SHM] = "shm",
		[PAGING_UDP] = "udp",
		[PAGING_DIRECT] = "direct",
	};

	return names[port];
}

static void add(struct run *r, unsigned id, double value)
{
	struct series *s = &r->series[id];

	if (id != S_NONE && s->count < BENCH_ROUNDS_MAX)
		s->value[s->count++] = value;
}

/* Of the two of this round. */
static void add_ratio(struct run *r, unsigned id, unsigned ours, unsigned peer)
{
	const struct series *a = &r->series[ours], *b = &r->series[peer];

	if (a->count && b->count && b->value[b->count - 1] > 0)
		add(r, id, a->value[a->count - 1] / b->value[b->count - 1]);
}

static void add_ratios(struct run *r)
{
	add_ratio(r, S_LOAD_RATE_RATIO, S_LOAD_RATE, S_READ_RATE);
	add_ratio(r, S_STORE_RATE_RATIO, S_MAPPED_RATE, S_WRITE_RATE);
	add_ratio(r, S_CPU_RATIO, S_CHAIN_CPU, S_TWO_CPU);
	add_ratio(r, S_LOAD_RATIO, S_LOAD_NS, S_READ_NS);
	add_ratio(r, S_MAPPED_RATIO, S_MAPPED_NS, S_WRITE_NS);
	add_ratio(r, S_UNMAPPED_RATIO, S_UNMAPPED_NS, S_WRITE_NS);
	for (unsigned i = 1; i < NAIVE_STEPS; i++)
		add_ratio(r, S_FALL_RATIO + i - 1, S_NAIVE_NS + i,
			  S_NAIVE_NS + i - 1);
}

/* ---- one round ---------------------------------------------------------- */

/* One window, and the series that it adds to. */
struct step {
	bool is_raw;
	struct page_store *s; /* NULL: raw, or not on this port */
	enum page_kind kind;
	unsigned id; /* a rate, or the time of one at a time */
	unsigned node_cpu, own_cpu;
};

static int run_step(struct run *r, const struct step *t, unsigned depth)
{
	unsigned ms = r->plan->window_ms;
	struct far_window w;
	int err;

	if (!t->s && !t->is_raw)
		return 0;
	err = t->s ? far_pages(&r->far, t->s, t->kind, depth, ms, 0, &w)
		   : far_raw(&r->far, t->kind, depth, ms, &w);
	if (err || w.ops == 0)
		return err ? err : -EIO;
	add(r, t->id,
	    depth == 1 ? (double)w.median_ns
		       : (double)w.ops * 1e9 / (double)w.wall_ns);
	add(r, t->node_cpu, (double)w.node_cpu_ns / (double)w.ops);
	add(r, t->own_cpu, (double)w.client_cpu_ns / (double)w.ops);
	return 0;
}

/* Forwards and backwards in turn: who comes behind whom counts for nothing. */
static int run_steps(struct run *r, const struct step *steps, size_t count,
		     unsigned depth, unsigned round)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = run_step(r, &steps[round % 2 ? count - 1 - i : i], depth);
	return err;
}

static int round_rates(struct run *r, unsigned round)
{
	const struct step steps[] = {
		{true, NULL, PAGE_LOAD, S_READ_RATE, S_READ_CPU,
		 S_READ_OWN_CPU},
		{false, r->pages, PAGE_LOAD, S_LOAD_RATE, S_CHAIN_CPU,
		 S_CHAIN_OWN_CPU},
		{false, r->two, PAGE_LOAD, S_TWO_LOAD_RATE, S_TWO_CPU, 0},
		{true, NULL, PAGE_STORE, S_WRITE_RATE, 0, 0},
		{false, r->pages, PAGE_STORE, S_MAPPED_RATE, 0, 0},
		{false, r->two, PAGE_STORE, S_TWO_STORE_RATE, 0, 0},
		{false, r->fixed, PAGE_LOAD, S_STATIC_LOAD_RATE, 0, 0},
	};

	return run_steps(r, steps, ARRAY_LEN(steps), FAR_DEPTH, round);
}

/* Gives some pages back and stores them anew, one after the other. */
static int turn_over(struct run *r, struct page_store *s, unsigned depth,
		     unsigned invalidate, unsigned unmapped)
{
	uint64_t count = r->plan->pages / TURNOVER_PART, from = r->far.next;
	struct far_window w;
	int err = far_pages(&r->far, s, PAGE_INVALIDATE, depth, 0, count, &w);

	if (!err)
		add(r, invalidate, (double)w.median_ns);
	r->far.next = from;
	if (!err)
		err = far_pages(&r->far, s, PAGE_STORE, 1, 0, count, &w);
	if (!err)
		add(r, unmapped, (double)w.median_ns);
	return err;
}

static int round_latencies(struct run *r, unsigned round)
{
	const struct step steps[] = {
		{false, r->fixed, PAGE_LOAD, S_STATIC_LOAD_NS, 0, 0},
		{false, r->two, PAGE_LOAD, S_TWO_LOAD_NS, 0, 0},
		{true, NULL, PAGE_LOAD, S_READ_NS, 0, 0},
		{false, r->pages, PAGE_LOAD, S_LOAD_NS, 0, 0},
		{true, NULL, PAGE_STORE, S_WRITE_NS, 0, 0},
		{false, r->pages, PAGE_STORE, S_MAPPED_NS, 0, 0},
		{false, r->two, PAGE_STORE, S_TWO_STORE_NS, 0, 0},
		{false, r->fixed, PAGE_STORE, S_STATIC_STORE_NS, 0, 0},
	};
	int err = run_steps(r, steps, ARRAY_LEN(steps), 1, round);

	return err ? err
		   : turn_over(r, r->pages, 1, S_INVALIDATE_NS, S_UNMAPPED_NS);
}

static int round_naive(struct run *r, unsigned round)
{
	int err = 0;

	for (unsigned i = 0; i < NAIVE_STEPS && !err; i++) {
		unsigned k = round % 2 ? NAIVE_STEPS - 1 - i : i;

		err = turn_over(r, r->step[k], FAR_DEPTH, S_NONE,
				S_NAIVE_NS + k);
	}
	return err;
}

/* ---- all ---------------------------------------------------------------- */

/* Stores and invalidates at random; then what is used of what is held. */
static int utilisation(struct run *r, enum page_mode mode, const char *name)
{
	struct page_store *s;
	struct page_stats st;
	struct rng rng;
	int err = far_store(&r->far, mode, 0, &s);

	if (err)
		return err;
	rng_init(&rng, 1);
	for (unsigned i = 0; i < MIX_OPS && !err; i++) {
		uint64_t page = rng_below(&rng, r->plan->pages);

		err = rng_below(&rng, 2) ? page_put(s, page, r->far.buf)
					 : page_drop(s, page);
	}
	page_store_stats(s, &st);
	if (st.allocated_bytes)
		json_object_set_new(
			r->out, name,
			json_real((double)st.used_pages * FAR_BYTES /
				  (double)st.allocated_bytes));
	page_store_close(s);
	return err;
}

/* A store with all its pages. */
static int open_store(struct run *r, enum page_mode mode, unsigned without,
		      struct page_store **out)
{
	struct far_window w;
	int err = far_store(&r->far, mode, without, out);

	return err ? err
		   : far_pages(&r->far, *out, PAGE_STORE, FAR_DEPTH, 0,
			       r->plan->pages, &w);
}

/* The node takes memory for a page frame when it is first used, which is what
 * the first store to it then costs; and all have their turn. */
static int use_all_pframes(struct run *r)
{
	uint64_t used = 0;
	struct far_window w;
	int err = 0;

	for (; used < r->pframes && !err; used += r->plan->pages) {
		err = far_pages(&r->far, r->pages, PAGE_INVALIDATE, FAR_DEPTH,
				0, r->plan->pages, &w);
		if (!err)
			err = far_pages(&r->far, r->pages, PAGE_STORE,
					FAR_DEPTH, 0, r->plan->pages, &w);
	}
	return err;
}

static int open_all(struct run *r)
{
	bool direct = r->port == PAGING_DIRECT;
	int err = far_open(&r->far, r->plan->pages, direct);

	if (!err)
		err = open_store(r, direct ? PAGE_SPARSE : PAGE_CHAIN, 0,
				 &r->pages);
	if (!err)
		err = open_store(r, PAGE_STATIC, 0, &r->fixed);
	if (err || direct)
		return err;
	err = open_store(r, PAGE_TWO_SIDED, 0, &r->two);
	for (unsigned i = 0; i < NAIVE_STEPS && !err; i++)
		err = open_store(r, PAGE_CHAIN, naive[i], &r->step[i]);
	/* One round shows only that it works. */
	return err || r->plan->rounds == 1 ? err : use_all_pframes(r);
}

static void close_all(struct run *r)
{
	page_store_close(r->pages);
	page_store_close(r->two);
	page_store_close(r->fixed);
	for (unsigned i = 0; i < NAIVE_STEPS; i++)
		page_store_close(r->step[i]);
	far_close(&r->far);
}

static int measure(struct run *r)
{
	bool direct = r->port == PAGING_DIRECT;
	int err = open_all(r);

	for (unsigned i = 0; i < r->plan->rounds && !err; i++) {
		err = round_rates(r, i);
		if (!err)
			err = round_latencies(r, i);
		if (!err && !direct)
			err = round_naive(r, i);
		add_ratios(r);
	}
	if (!err)
		err = utilisation(r, direct ? PAGE_SPARSE : PAGE_CHAIN,
				  "utilisation");
	if (!err)
		err = utilisation(r, PAGE_STATIC, "utilisation_static");
	for (unsigned i = 0; i < S_COUNT; i++)
		if (r->series[i].count)
			json_object_set_new(
				r->out, series_names[i],
				json_real(stats_median(r->series[i].value,
						       r->series[i].count)));
	return err;
}

/* ---- the process -------------------------------------------------------- */

static void choose_port(enum paging_port port, bool is_client)
{
	setenv("AQUIFER_NIC_PORT", port == PAGING_UDP ? "udp" : "cable", 1);
	if (port == PAGING_UDP)
		setenv("AQUIFER_NIC_ADDRESS",
		       is_client ? "127.0.92.1" : "127.0.92.2", 1);
}

/* The reason, instead of numbers. */
static int tell(FILE *to, int err, const char *what, const char *why)
{
	json_t *o =
		json_pack("{s:o}", "error", json_sprintf("%s: %s", what, why));

	(void)json_dumpf(o, to, 0);
	json_decref(o);
	return err;
}

static int child(const struct paging_plan *plan, enum paging_port port,
		 FILE *to)
{
	/* Page frames of all stores, each of which is full at some time. */
	uint64_t bytes = (plan->pages * 10 * FAR_BYTES + POOL_SLACK) * 2;
	struct run *r = calloc(1, sizeof(*r));
	struct offload_rack *rack;
	int err;

	if (!r)
		return -ENOMEM;
	r->plan = plan;
	r->port = port;
	r->pframes = bytes / 2 / FAR_BYTES;
	r->out = json_object();
	choose_port(port, false);
	err = offload_rack_start(bytes, &rack);
	if (err)
		return tell(to, err, "no rack", strerror(-err));
	choose_port(port, true);
	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	r->far.node = offload_rack_world(rack)->pid[0];
	err = measure(r);
	if (err)
		(void)tell(to, err, strerror(-err), aq_last_error());
	else
		(void)json_dumpf(r->out, to, 0);
	close_all(r);
	offload_rack_stop(rack);
	json_decref(r->out);
	free(r);
	return err;
}

int paging_measure(const struct paging_plan *plan, enum paging_port port,
		   json_t **out)
{
	int fd[2], err;
	FILE *from;
	pid_t pid;

	if (pipe(fd))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		FILE *to = fdopen(fd[1], "w");

		err = to ? child(plan, port, to) : -errno;

		if (to)
			fclose(to);
		_exit(err ? 1 : 0);
	}
	close(fd[1]);
	from = fdopen(fd[0], "r");
	*out = from ? json_loadf(from, 0, NULL) : NULL;
	if (from)
		fclose(from);
	err = place_wait(pid);
	return *out ? err : -EIO;
}
