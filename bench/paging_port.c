/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements over one port, in a process of its own: rates with a deep
 * queue, latencies one at a time, the node's processor time, and the chain
 * without its optimisations; all in turns. */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "kv_bench.h"
#include "offload_bench.h"
#include "paging_bench.h"
#include "paging_far.h"
#include "rng.h"
#include "subject.h"

enum {
	ROUNDS_MAX = 101,
	NAIVE_STEPS = 5,
	MIX_OPS = 20000,
	POOL_SLACK = 64 << 20,
};

/* One number per round. */
struct series {
	const char *name;
	double value[ROUNDS_MAX];
	unsigned count;
};

enum series_id {
	S_READ_RATE,
	S_WRITE_RATE,
	S_LOAD_RATE,
	S_MAPPED_RATE,
	S_TWO_LOAD_RATE,
	S_TWO_STORE_RATE,
	S_STATIC_LOAD_RATE,
	S_STATIC_LOAD_NS,
	S_STATIC_STORE_NS,
	S_READ_NS,
	S_WRITE_NS,
	S_LOAD_NS,
	S_MAPPED_NS,
	S_UNMAPPED_NS,
	S_INVALIDATE_NS,
	S_TWO_LOAD_NS,
	S_TWO_STORE_NS,
	S_READ_CPU,
	S_READ_OWN_CPU,
	S_CHAIN_CPU,
	S_CHAIN_OWN_CPU,
	S_TWO_CPU,
	S_NAIVE_NS,
	S_LOAD_RATE_RATIO = S_NAIVE_NS + NAIVE_STEPS,
	S_STORE_RATE_RATIO,
	S_LOAD_RATIO,
	S_MAPPED_RATIO,
	S_UNMAPPED_RATIO,
	S_CPU_RATIO,
	S_COUNT,
};

static const char *const series_names[S_COUNT] = {
	[S_READ_RATE] = "read4k_rate",
	[S_WRITE_RATE] = "write4k_rate",
	[S_LOAD_RATE] = "load_rate",
	[S_MAPPED_RATE] = "mapped_rate",
	[S_TWO_LOAD_RATE] = "two_sided_load_rate",
	[S_TWO_STORE_RATE] = "two_sided_store_rate",
	[S_STATIC_LOAD_RATE] = "static_load_rate",
	[S_STATIC_LOAD_NS] = "static_load_ns",
	[S_STATIC_STORE_NS] = "static_store_ns",
	[S_READ_NS] = "read4k_ns",
	[S_WRITE_NS] = "write4k_ns",
	[S_LOAD_NS] = "load_ns",
	[S_MAPPED_NS] = "mapped_ns",
	[S_UNMAPPED_NS] = "unmapped_ns",
	[S_INVALIDATE_NS] = "invalidate_ns",
	[S_TWO_LOAD_NS] = "two_sided_load_ns",
	[S_TWO_STORE_NS] = "two_sided_store_ns",
	[S_READ_CPU] = "node_cpu_ns_read4k",
	[S_READ_OWN_CPU] = "client_cpu_ns_read4k",
	[S_CHAIN_OWN_CPU] = "client_cpu_ns_chain",
	[S_CHAIN_CPU] = "node_cpu_ns_chain",
	[S_TWO_CPU] = "node_cpu_ns_two_sided",
	[S_NAIVE_NS] = "unmapped_naive_ns",
	[S_NAIVE_NS + 1] = "unmapped_with_decision_ns",
	[S_NAIVE_NS + 2] = "unmapped_with_address_ns",
	[S_NAIVE_NS + 3] = "unmapped_with_recycle_ns",
	[S_NAIVE_NS + 4] = "unmapped_with_swap_ns",
	[S_LOAD_RATE_RATIO] = "load_rate_vs_read4k",
	[S_STORE_RATE_RATIO] = "mapped_rate_vs_write4k",
	[S_LOAD_RATIO] = "load_lat_vs_read4k",
	[S_MAPPED_RATIO] = "mapped_lat_vs_write4k",
	[S_UNMAPPED_RATIO] = "unmapped_lat_vs_write4k",
	[S_CPU_RATIO] = "engine_cpu_chain_vs_two_sided",
};

/* What is left out at each step: the first has none of the four. */
static const unsigned naive[NAIVE_STEPS] = {0xf, 0xe, 0xc, 0x8, 0x0};

struct run {
	const struct paging_plan *plan;
	struct paging_far far;
	struct page_store *chain, *two, *fixed, *step[NAIVE_STEPS];
	struct series series[S_COUNT];
	json_t *out;
};

const char *paging_port_name(enum paging_port port)
{
	return port == PAGING_UDP ? "udp" : "shm";
}

static void add(struct run *r, unsigned id, double value)
{
	struct series *s = &r->series[id];

	if (s->count < ROUNDS_MAX)
		s->value[s->count++] = value;
}

static double last(const struct run *r, unsigned id)
{
	const struct series *s = &r->series[id];

	return s->count ? s->value[s->count - 1] : 0;
}

static void add_ratio(struct run *r, unsigned id, unsigned ours, unsigned peer)
{
	if (last(r, peer) > 0)
		add(r, id, last(r, ours) / last(r, peer));
}

static double rate(const struct far_window *w)
{
	return (double)w->ops * 1e9 / (double)w->wall_ns;
}

/* ---- one round ---------------------------------------------------------- */

static int round_rates(struct run *r)
{
	const struct paging_plan *p = r->plan;
	struct far_window w;
	int err = far_raw(&r->far, PAGE_LOAD, FAR_DEPTH, p->window_ms, &w);

	add(r, S_READ_RATE, rate(&w));
	add(r, S_READ_CPU, (double)w.node_cpu_ns / (double)w.ops);
	add(r, S_READ_OWN_CPU, (double)w.client_cpu_ns / (double)w.ops);
	if (!err)
		err = far_pages(&r->far, r->chain, PAGE_LOAD, FAR_DEPTH,
				p->window_ms, &w);
	add(r, S_LOAD_RATE, rate(&w));
	add(r, S_CHAIN_CPU, (double)w.node_cpu_ns / (double)w.ops);
	add(r, S_CHAIN_OWN_CPU, (double)w.client_cpu_ns / (double)w.ops);
	if (!err)
		err = far_pages(&r->far, r->two, PAGE_LOAD, FAR_DEPTH,
				p->window_ms, &w);
	add(r, S_TWO_LOAD_RATE, rate(&w));
	add(r, S_TWO_CPU, (double)w.node_cpu_ns / (double)w.ops);
	if (!err)
		err = far_raw(&r->far, PAGE_STORE, FAR_DEPTH, p->window_ms, &w);
	add(r, S_WRITE_RATE, rate(&w));
	if (!err)
		err = far_pages(&r->far, r->chain, PAGE_STORE, FAR_DEPTH,
				p->window_ms, &w);
	add(r, S_MAPPED_RATE, rate(&w));
	if (!err)
		err = far_pages(&r->far, r->two, PAGE_STORE, FAR_DEPTH,
				p->window_ms, &w);
	add(r, S_TWO_STORE_RATE, rate(&w));
	if (!err)
		err = far_pages(&r->far, r->fixed, PAGE_LOAD, FAR_DEPTH,
				p->window_ms, &w);
	add(r, S_STATIC_LOAD_RATE, rate(&w));
	add_ratio(r, S_LOAD_RATE_RATIO, S_LOAD_RATE, S_READ_RATE);
	add_ratio(r, S_STORE_RATE_RATIO, S_MAPPED_RATE, S_WRITE_RATE);
	add_ratio(r, S_CPU_RATIO, S_CHAIN_CPU, S_TWO_CPU);
	return err;
}

static int one_by_one(struct run *r, struct page_store *s, enum page_kind kind,
		      unsigned id)
{
	struct far_window w;
	int err = s ? far_pages(&r->far, s, kind, 1, r->plan->window_ms, &w)
		    : far_raw(&r->far, kind, 1, r->plan->window_ms, &w);

	if (!err)
		add(r, id, (double)w.median_ns);
	return err;
}

static int round_latencies(struct run *r)
{
	const struct {
		struct page_store *s;
		enum page_kind kind;
		unsigned id;
	} steps[] = {
		{NULL, PAGE_LOAD, S_READ_NS},
		{r->fixed, PAGE_LOAD, S_STATIC_LOAD_NS},
		{r->fixed, PAGE_STORE, S_STATIC_STORE_NS},
		{r->chain, PAGE_LOAD, S_LOAD_NS},
		{r->two, PAGE_LOAD, S_TWO_LOAD_NS},
		{NULL, PAGE_STORE, S_WRITE_NS},
		{r->chain, PAGE_STORE, S_MAPPED_NS},
		{r->chain, PAGE_INVALIDATE, S_INVALIDATE_NS},
		{r->chain, PAGE_STORE, S_UNMAPPED_NS},
		{r->two, PAGE_STORE, S_TWO_STORE_NS},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !err; i++)
		err = one_by_one(r, steps[i].s, steps[i].kind, steps[i].id);
	add_ratio(r, S_LOAD_RATIO, S_LOAD_NS, S_READ_NS);
	add_ratio(r, S_MAPPED_RATIO, S_MAPPED_NS, S_WRITE_NS);
	add_ratio(r, S_UNMAPPED_RATIO, S_UNMAPPED_NS, S_WRITE_NS);
	return err;
}

static int round_naive(struct run *r)
{
	struct far_window w;
	int err = 0;

	for (unsigned i = 0; i < NAIVE_STEPS && !err; i++) {
		err = one_by_one(r, r->step[i], PAGE_STORE, S_NAIVE_NS + i);
		if (!err)
			err = far_pages(&r->far, r->step[i], PAGE_INVALIDATE,
					FAR_DEPTH, 0, &w);
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

static int open_all(struct run *r)
{
	struct far_window w;
	int err = far_open(&r->far, r->plan->pages);

	if (!err)
		err = far_store(&r->far, PAGE_CHAIN, 0, &r->chain);
	if (!err)
		err = far_store(&r->far, PAGE_TWO_SIDED, 0, &r->two);
	if (!err)
		err = far_store(&r->far, PAGE_STATIC, 0, &r->fixed);
	for (unsigned i = 0; i < NAIVE_STEPS && !err; i++)
		err = far_store(&r->far, PAGE_CHAIN, naive[i], &r->step[i]);
	if (!err)
		err = far_pages(&r->far, r->fixed, PAGE_STORE, FAR_DEPTH, 0,
				&w);
	if (!err)
		err = far_pages(&r->far, r->chain, PAGE_STORE, FAR_DEPTH, 0,
				&w);
	if (!err)
		err = far_pages(&r->far, r->two, PAGE_STORE, FAR_DEPTH, 0, &w);
	return err;
}

static void close_all(struct run *r)
{
	page_store_close(r->chain);
	page_store_close(r->two);
	page_store_close(r->fixed);
	for (unsigned i = 0; i < NAIVE_STEPS; i++)
		page_store_close(r->step[i]);
	far_close(&r->far);
}

static int measure(struct run *r)
{
	int err = open_all(r);

	for (unsigned i = 0; i < r->plan->rounds && !err; i++) {
		err = round_rates(r);
		if (!err)
			err = round_latencies(r);
		if (!err)
			err = round_naive(r);
	}
	if (!err)
		err = utilisation(r, PAGE_CHAIN, "utilisation");
	if (!err)
		err = utilisation(r, PAGE_STATIC, "utilisation_static");
	for (unsigned i = 0; i < S_COUNT; i++)
		json_object_set_new(
			r->out, series_names[i],
			json_real(kv_bench_median(r->series[i].value,
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

static int child(const struct paging_plan *plan, enum paging_port port,
		 FILE *to)
{
	/* Frames of all stores, each of which is full at some time. */
	uint64_t bytes = (plan->pages * 10 * FAR_BYTES + POOL_SLACK) * 2;
	struct run *r = calloc(1, sizeof(*r));
	struct offload_rack *rack;
	int err;

	if (!r)
		return -ENOMEM;
	r->plan = plan;
	r->out = json_object();
	choose_port(port, false);
	err = offload_rack_start(bytes, &rack);
	if (err) {
		fprintf(stderr, "aquifer bench paging: no rack: %s\n",
			strerror(-err));
		return err;
	}
	choose_port(port, true);
	(void)guard_pin(GUARD_CPU_CLIENT);
	(void)guard_enter_nice();
	r->far.node = offload_rack_world(rack)->pid[0];
	err = measure(r);
	if (err)
		fprintf(stderr, "aquifer bench paging: %s: %s\n",
			strerror(-err), aq_last_error());
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
	int fd[2], status;
	json_error_t why;
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
		int err = to ? child(plan, port, to) : -errno;

		if (to)
			fclose(to);
		_exit(err ? 1 : 0);
	}
	close(fd[1]);
	from = fdopen(fd[0], "r");
	*out = from ? json_loadf(from, 0, &why) : NULL;
	if (from)
		fclose(from);
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return *out && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
