/* SPDX-License-Identifier: Apache-2.0 */
/* Which works run in which places, in turns; medians, ratios, and their bounds.
 */
#include "run_bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv_bench.h"
#include "offload_bench.h"

enum {
	ROUNDS_MAX = 21,
	GROUP_MAX = 16,
	COUNTED_PART = 10, /* of the touches: counting needs no more */
};
#define MIB (1ull << 20)

/* One work in one place. */
struct cell {
	enum run_place place;
	unsigned part; /* of the count: slow places do less; 0: all */
	double ns[ROUNDS_MAX];
	unsigned count;
	const char *missing;
};

/* One work in some places, in turns. */
struct group {
	struct run_work work;
	uint64_t local_bytes;
	struct cell cell[RUN_PLACE_COUNT];
	unsigned cells;
	unsigned rounds_max;   /* 0: as many as asked for ... */
	unsigned rounds_times; /* ... so many times */
};

static void add_cell(struct group *g, enum run_place place, unsigned part)
{
	g->cell[g->cells++] = (struct cell){.place = place, .part = part};
}

static void run_cell(const struct group *g, struct cell *c, unsigned round)
{
	struct run_work w = g->work;
	uint64_t ns;

	if (c->missing)
		return;
	w.seed = 1 + round;
	if (c->part)
		w.count /= c->part;
	if (run_work_spawn(&w, c->place, g->local_bytes, &ns, &c->missing) == 0)
		c->missing = NULL;
	if (!c->missing)
		c->ns[c->count++] = (double)ns * (c->part ? c->part : 1);
}

/* It takes minutes: whoever watches is told where it is. */
static void show_progress(const struct group *g, const struct cell *c,
			  unsigned round, unsigned rounds)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%-14s %-16s round %u of %u\033[K",
			run_work_name(g->work.kind), run_place_name(c->place),
			round + 1, rounds);
}

static void run_group(struct group *g, unsigned rounds)
{
	if (g->rounds_times)
		rounds = u32_min(rounds * g->rounds_times, ROUNDS_MAX);
	if (g->rounds_max && rounds > g->rounds_max)
		rounds = g->rounds_max;
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned k = 0; k < g->cells; k++) {
			show_progress(g, &g->cell[k], i, rounds);
			run_cell(g, &g->cell[k], i);
		}
}

static double median(const struct cell *c)
{
	return c->missing ? 0 : kv_bench_median((double *)c->ns, c->count);
}

static const struct cell *cell_of(const struct group *g, enum run_place place)
{
	for (unsigned i = 0; i < g->cells; i++)
		if (g->cell[i].place == place)
			return &g->cell[i];
	return NULL;
}

/* ---- the plan ----------------------------------------------------------- */

struct plan {
	struct group group[GROUP_MAX];
	unsigned groups;
};

/* The order of the groups on the cable. */
enum {
	GROUP_TOUCH,
	GROUP_FLOOR,
	GROUP_SORT,
	GROUP_APPS, /* and all after it */
};

static struct group *add_group(struct plan *p, enum run_work_kind kind,
			       uint64_t mib, uint64_t local_mib, uint64_t count)
{
	struct group *g = &p->group[p->groups++];

	*g = (struct group){.work = {kind, mib * MIB, count, 0},
			    .local_bytes = local_mib * MIB};
	return g;
}

static void make_plan(struct plan *p, bool quick)
{
	struct group *g = add_group(p, RUN_WORK_TOUCH, quick ? 32 : 512,
				    quick ? 8 : 128, quick ? 2000 : 300000);

	add_cell(g, RUN_PLACE_CABLE, 0);
	add_cell(g, RUN_PLACE_ZRAM, 0);
	add_cell(g, RUN_PLACE_DIRECT, 0);
	add_cell(g, RUN_PLACE_CHAIN, 0);
	add_cell(g, RUN_PLACE_DISK, 10);
	g = add_group(p, RUN_WORK_FLOOR, quick ? 8 : 128, quick ? 8 : 128,
		      quick ? 2048 : 200000);
	add_cell(g, RUN_PLACE_LOCAL, 0);
	g = add_group(p, RUN_WORK_SORT, quick ? 8 : 1024, quick ? 4 : 512, 0);
	/* Half a minute each: long enough to be its own median. */
	g->rounds_max = quick ? 0 : 1;
	add_cell(g, RUN_PLACE_CABLE, 0);
	add_cell(g, RUN_PLACE_LOCAL, 0);
	add_cell(g, RUN_PLACE_DIRECT, 0);
	for (unsigned k = RUN_WORK_SORT; k < RUN_WORK_COUNT; k++) {
		uint64_t count = k == RUN_WORK_ETC ? (quick ? 1000 : 20000)
						   : (quick ? 300 : 1500);
		/* Streams need much to take a second, and jumps little. */
		uint64_t mib = quick			? 4
			       : k <= RUN_WORK_PAGERANK ? 96
			       : k == RUN_WORK_BETWEEN	? 12
							: 24;

		g = add_group(p, (enum run_work_kind)k, mib, mib / 2, count);
		/* Of a second each: single runs swing by a sixth. */
		g->rounds_times = quick ? 1 : 3;
		add_cell(g, RUN_PLACE_CHAIN, 0);
		add_cell(g, RUN_PLACE_CABLE, 0);
	}
}

/* On a rack of its own: the port is the rack's. */
static void make_udp_plan(struct plan *p, bool quick)
{
	struct group *g = add_group(p, RUN_WORK_TOUCH, quick ? 32 : 512,
				    quick ? 8 : 128, quick ? 500 : 30000);

	add_cell(g, RUN_PLACE_UDP, 0);
	g = add_group(p, RUN_WORK_SORT, quick ? 4 : 128, quick ? 2 : 64, 0);
	add_cell(g, RUN_PLACE_UDP, 0);
	add_cell(g, RUN_PLACE_LOCAL, 0);
}

/* ---- counts ------------------------------------------------------------- */

/* The touches of which far bytes are counted. */
static const enum run_place counted_places[] = {RUN_PLACE_CABLE,
						RUN_PLACE_CHAIN};

struct counts {
	struct run_counted c[ARRAY_LEN(counted_places)];
	bool is_there[ARRAY_LEN(counted_places)];
};

static void count_touches(const struct group *g, bool quick, struct counts *out)
{
	struct run_work w = g->work;

	if (!quick)
		w.count /= COUNTED_PART;
	w.seed = 1;
	for (size_t i = 0; i < ARRAY_LEN(counted_places); i++)
		out->is_there[i] = run_count(&w, counted_places[i],
					     g->local_bytes, &out->c[i]) == 0;
}

/* `counts`: of the first group; NULL: none. */
static int run_plan(struct plan *p, bool is_udp, bool quick, unsigned rounds,
		    struct counts *counts)
{
	struct offload_rack *rack;
	int err;

	setenv("AQUIFER_NIC_PORT", is_udp ? "udp" : "auto", 1);
	if (is_udp)
		setenv("AQUIFER_NIC_ADDRESS", "127.0.93.2", 1);
	err = offload_rack_start((quick ? 256 : 2560) * MIB, &rack);
	if (err) {
		fprintf(stderr, "aquifer bench paging: no rack: %s\n",
			strerror(-err));
		return err;
	}
	if (is_udp)
		setenv("AQUIFER_NIC_ADDRESS", "127.0.93.1", 1);
	for (unsigned i = 0; i < p->groups; i++)
		run_group(&p->group[i], rounds);
	if (counts)
		count_touches(&p->group[0], quick, counts);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	offload_rack_stop(rack);
	unsetenv("AQUIFER_NIC_ADDRESS");
	unsetenv("AQUIFER_NIC_PORT");
	return 0;
}

/* ---- the report --------------------------------------------------------- */

static bool is_per_fault(const struct group *g)
{
	return g->work.kind == RUN_WORK_TOUCH || g->work.kind == RUN_WORK_FLOOR;
}

/* Microseconds of one fault, or seconds of all of it. */
static double per_unit(const struct group *g, double ns)
{
	double missing = 1 - (double)g->local_bytes / (double)g->work.bytes;

	if (!is_per_fault(g))
		return ns / 1e9;
	if (g->work.kind == RUN_WORK_FLOOR)
		missing = 1;
	return ns / 1e3 / (double)g->work.count / missing;
}

static void add_rows(json_t *rows, const struct group *g)
{
	const char *unit = is_per_fault(g) ? "us/fault" : "s";

	for (unsigned i = 0; i < g->cells; i++) {
		const struct cell *c = &g->cell[i];
		json_t *row = json_pack("{s:s, s:I, s:I, s:s}", "work",
					run_work_name(g->work.kind), "bytes",
					(json_int_t)g->work.bytes, "local",
					(json_int_t)g->local_bytes, "place",
					run_place_name(c->place));

		if (c->missing)
			json_object_set_new(row, "void",
					    json_sprintf("no %s", c->missing));
		else
			json_object_update_new(row,
					       json_pack("{s:f, s:s}", "median",
							 per_unit(g, median(c)),
							 "unit", unit));
		json_array_append_new(rows, row);
	}
}

/* Ours through theirs; 0: one of them did not take place. */
static double ratio(const struct group *g, enum run_place ours,
		    enum run_place theirs)
{
	const struct cell *a = cell_of(g, ours), *b = cell_of(g, theirs);

	return a && b && !a->missing && !b->missing ? median(a) / median(b) : 0;
}

/* 1 if it misses its bound. most 0: it has none. */
static unsigned judge(json_t *verdicts, const char *name, double value,
		      double most, const char *missing)
{
	json_t *v = json_pack("{s:s, s:f}", "must", most ? "<=" : "none",
			      "bound", most);

	json_object_set_new(verdicts, name, v);
	if (value == 0) {
		json_object_set_new(v, "void", json_sprintf("no %s", missing));
		return 0;
	}
	json_object_set_new(v, "value", json_real(value));
	json_object_set_new(v, "kept", json_boolean(!most || value <= most));
	return most && value > most;
}

static const char *missing_of(const struct group *g)
{
	for (unsigned i = 0; i < g->cells; i++)
		if (g->cell[i].missing)
			return g->cell[i].missing;
	return "";
}

/* All applications, or none: the worst of some is not what is asked. */
static unsigned judge_apps(const struct plan *p, json_t *verdicts)
{
	const char *missing = NULL;
	double worst = 0;

	for (unsigned i = GROUP_APPS; i < p->groups; i++) {
		double r =
			ratio(&p->group[i], RUN_PLACE_CHAIN, RUN_PLACE_CABLE);

		if (r == 0)
			missing = run_work_name(p->group[i].work.kind);
		worst = r > worst ? r : worst;
	}
	return judge(verdicts, "app_chain_vs_static_worst", missing ? 0 : worst,
		     1.15, missing);
}

static void add_counts(json_t *rows, const struct group *g,
		       const struct counts *counts)
{
	for (size_t i = 0; i < ARRAY_LEN(counted_places); i++) {
		const struct run_counted *c = &counts->c[i];

		if (!counts->is_there[i])
			continue;
		json_array_append_new(
			rows,
			json_pack("{s:s, s:I, s:I, s:s, s:I, s:I, s:I, s:I, "
				  "s:I, s:I, s:I}",
				  "work", run_work_name(g->work.kind), "bytes",
				  (json_int_t)g->work.bytes, "local",
				  (json_int_t)g->local_bytes, "place",
				  run_place_name(counted_places[i]), "faults",
				  (json_int_t)c->faults, "loads",
				  (json_int_t)c->loads, "first_touches",
				  (json_int_t)c->first_touches,
				  "second_chances",
				  (json_int_t)c->second_chances, "stored",
				  (json_int_t)c->stored, "far_in_bytes",
				  (json_int_t)c->far_in_bytes, "far_out_bytes",
				  (json_int_t)c->far_out_bytes));
	}
}

/* Bytes that the node's NIC sent for pages / faults that waited for one x page
 * size: 1, and nothing near it. */
static unsigned judge_counts(const struct counts *counts, json_t *verdicts)
{
	static const char *const names[] = {"far_bytes_vs_faults",
					    "far_bytes_vs_faults_chain"};
	unsigned missed = 0;

	for (size_t i = 0; i < ARRAY_LEN(counted_places); i++) {
		const struct run_counted *c = &counts->c[i];
		bool kept = counts->is_there[i] && run_counted_is_exact(c);
		double value = c->loads ? (double)c->far_in_bytes /
						  (double)c->loads / 4096
					: 0;

		json_object_set_new(verdicts, names[i],
				    json_pack("{s:s, s:f, s:f, s:b}", "must",
					      "==", "bound", 1.0, "value",
					      value, "kept", kept));
		missed += !kept;
	}
	return missed;
}

static unsigned judge_all(const struct plan *p, json_t *verdicts)
{
	const struct group *fault = &p->group[GROUP_TOUCH];
	const struct group *floor = &p->group[GROUP_FLOOR];
	const struct group *sort = &p->group[GROUP_SORT];
	const struct cell *zram = cell_of(fault, RUN_PLACE_ZRAM);
	unsigned missed = 0;

	missed += judge(verdicts, "fault_elapsed_vs_zram",
			ratio(fault, RUN_PLACE_CABLE, RUN_PLACE_ZRAM), 0.75,
			missing_of(fault));
	/* What is left for far memory, if anything. */
	(void)judge(verdicts, "fault_floor_vs_zram",
		    zram->missing || floor->cell[0].missing
			    ? 0
			    : per_unit(floor, median(&floor->cell[0])) /
				      per_unit(fault, median(zram)),
		    0, zram->missing ? zram->missing : missing_of(floor));
	(void)judge(verdicts, "fault_elapsed_direct_vs_zram",
		    ratio(fault, RUN_PLACE_DIRECT, RUN_PLACE_ZRAM), 0,
		    missing_of(fault));
	missed += judge(verdicts, "quicksort50_vs_local",
			ratio(sort, RUN_PLACE_CABLE, RUN_PLACE_LOCAL), 1.5,
			missing_of(sort));
	(void)judge(verdicts, "quicksort50_direct_vs_local",
		    ratio(sort, RUN_PLACE_DIRECT, RUN_PLACE_LOCAL), 0,
		    missing_of(sort));
	return missed + judge_apps(p, verdicts);
}

int run_rows(const struct run_rows_plan *plan, json_t **rows, json_t *verdicts)
{
	unsigned rounds = plan->rounds < ROUNDS_MAX ? plan->rounds : ROUNDS_MAX;
	struct plan *p = calloc(2, sizeof(*p));
	struct counts counts = {0};
	int err = p ? 0 : -ENOMEM, missed = 0;

	*rows = json_array();
	if (!err) {
		make_plan(&p[0], plan->quick);
		make_udp_plan(&p[1], plan->quick);
	}
	for (unsigned i = 0; i < 2 && !err; i++) {
		err = run_plan(&p[i], i == 1, plan->quick, rounds,
			       i == 0 ? &counts : NULL);
		for (unsigned k = 0; k < p[i].groups && !err; k++)
			add_rows(*rows, &p[i].group[k]);
	}
	if (!err) {
		add_counts(*rows, &p[0].group[0], &counts);
		missed = (int)(judge_all(&p[0], verdicts) +
			       judge_counts(&counts, verdicts));
	}
	free(p);
	return err ? err : missed;
}

static void print_counts(const json_t *row)
{
	printf("%10lld faults: %lld from far memory (%lld bytes), %lld first "
	       "touches, %lld came back in time; %lld stored (%lld bytes)\n",
	       json_integer_value(json_object_get(row, "faults")),
	       json_integer_value(json_object_get(row, "loads")),
	       json_integer_value(json_object_get(row, "far_in_bytes")),
	       json_integer_value(json_object_get(row, "first_touches")),
	       json_integer_value(json_object_get(row, "second_chances")),
	       json_integer_value(json_object_get(row, "stored")),
	       json_integer_value(json_object_get(row, "far_out_bytes")));
}

void run_rows_print(const json_t *rows)
{
	const json_t *row, *why;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		printf("%-14s %5lldM %4lldM here  %-16s ",
		       json_string_value(json_object_get(row, "work")),
		       json_integer_value(json_object_get(row, "bytes")) >> 20,
		       json_integer_value(json_object_get(row, "local")) >> 20,
		       json_string_value(json_object_get(row, "place")));
		why = json_object_get(row, "void");
		if (why)
			printf("void: %s\n", json_string_value(why));
		else if (json_object_get(row, "loads"))
			print_counts(row);
		else
			printf("%10.3f %s\n",
			       json_number_value(
				       json_object_get(row, "median")),
			       json_string_value(json_object_get(row, "unit")));
	}
}
