/* SPDX-License-Identifier: Apache-2.0 */
/* Ten programs in all places, in turns: rows, and what they are judged by. */
#include "users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload_bench.h"
#include "place.h"
#include "run_plan.h"
#include "stats.h"

enum {
	ROUNDS = 3,
	ROUNDS_MAX = 9,
	POOL_MIB = 1024,
	TOUCH_MIB = 128,
	TOUCHES = 60000,
	QUICK_PROGRAMS = 2,
};
#define MIB (1ull << 20)

static const char *const place_names[USERS_PLACES] = {
	[USERS_PLAIN] = "plain",	  [USERS_ALL] = "all-here",
	[USERS_HALF] = "half-here",	  [USERS_ZRAM_HALF] = "zram-half",
	[USERS_QUARTER] = "quarter-here", [USERS_ZRAM_QUARTER] = "zram-quarter",
};

struct cell {
	double ns[ROUNDS_MAX];
	double loads[ROUNDS_MAX];
	unsigned count;
	const char *missing;
};

struct user {
	const struct users_program *program;
	struct users_size size;
	uint64_t output;
	struct cell cell[USERS_PLACES];
};

struct users {
	struct bench *b;
	char dir[64];
	struct user user[USERS_PROGRAMS];
	unsigned count;
	unsigned rounds;
	double touch_ns; /* a fault of the bench's own work */
};

/* ---- runs --------------------------------------------------------------- */

/* The program's size comes from the first two places of the first round. */
static void run_cell(struct users *u, struct user *p, enum users_place place)
{
	struct cell *c = &p->cell[place];
	struct users_run r;

	if (c->missing)
		return;
	if (place > USERS_ALL && !p->size.heap_bytes) {
		c->missing = "a run with all of it here";
		return;
	}
	if (users_spawn(p->program->command, u->dir, place, &p->size, &r,
			&c->missing) != 0)
		return;
	c->missing = NULL;
	if (place == USERS_PLAIN) {
		p->output = r.output;
		p->size.rss_bytes = r.size.rss_bytes;
	} else if (place == USERS_ALL) {
		p->size.heap_bytes = r.size.heap_bytes;
	}
	if (r.output != p->output) {
		c->missing = "the output that it has without Aquifer";
		return;
	}
	c->ns[c->count] = (double)r.ns;
	c->loads[c->count++] = (double)r.loads;
}

static void run_all(struct users *u)
{
	for (unsigned i = 0; i < u->count; i++) {
		bench_progress(u->b, "users, %s", u->user[i].program->name);
		for (unsigned k = 0; k < u->rounds; k++)
			for (unsigned place = 0; place < USERS_PLACES; place++)
				run_cell(u, &u->user[i],
					 (enum users_place)place);
	}
}

/* What a fault takes where everything has its core. */
static int measure_touch(struct users *u)
{
	struct run_group g = {
		.work = {RUN_WORK_TOUCH,
			 (u->b->quick ? TOUCH_MIB / 8 : TOUCH_MIB) * MIB,
			 u->b->quick ? TOUCHES / 30 : TOUCHES, 0},
	};
	struct offload_rack *rack;
	int err;

	g.local_bytes = g.work.bytes / 4;
	run_group_add(&g, RUN_PLACE_DIRECT, 0);
	err = offload_rack_start(POOL_MIB * MIB, &rack);
	if (err)
		return err;
	bench_progress(u->b, "users, touches");
	run_group_run(&g, u->rounds);
	offload_rack_stop(rack);
	u->touch_ns =
		g.cell[0].missing ? 0 : run_group_median(&g, &g.cell[0]) * 1e3;
	return 0;
}

static int measure(struct users *u)
{
	struct offload_rack *rack;
	int err = measure_touch(u);

	if (!err)
		err = offload_rack_start_anywhere(POOL_MIB * MIB, &rack);
	if (err)
		return err;
	run_all(u);
	offload_rack_stop(rack);
	return 0;
}

/* ---- rows --------------------------------------------------------------- */

static double median_ns(const struct cell *c)
{
	double v[ROUNDS_MAX];

	memcpy(v, c->ns, sizeof(v));
	return c->missing ? 0 : stats_median(v, c->count);
}

static double median_loads(const struct cell *c)
{
	double v[ROUNDS_MAX];

	memcpy(v, c->loads, sizeof(v));
	return c->missing ? 0 : stats_median(v, c->count);
}

/* What faults make it slower by, for each that waited; 0: there were none. */
static double fault_ns(const struct user *p)
{
	const struct cell *far = &p->cell[USERS_QUARTER];
	const struct cell *here = &p->cell[USERS_ALL];
	double loads = median_loads(far);

	return far->missing || here->missing || loads < 1
		       ? 0
		       : (median_ns(far) - median_ns(here)) / loads;
}

static void add_rows(struct bench *b, const struct user *p)
{
	for (unsigned i = 0; i < USERS_PLACES; i++) {
		const struct cell *c = &p->cell[i];
		char why[160];
		json_t *row;

		if (c->missing) {
			snprintf(why, sizeof(why), "needs %s", c->missing);
			bench_row_failed(b, "users", p->program->name, "s",
					 why);
			continue;
		}
		row = bench_row(b, "users", p->program->name,
				median_ns(c) / 1e9, "s", place_names[i]);
		json_object_update_new(
			row,
			json_pack("{s:s, s:I, s:I}", "place", place_names[i],
				  "bytes", (json_int_t)p->size.heap_bytes,
				  "loads", (json_int_t)median_loads(c)));
	}
	if (fault_ns(p) > 0)
		(void)bench_row(b, "users", p->program->name, fault_ns(p) / 1e3,
				"us/fault",
				"longer than with all of it here, a quarter "
				"here");
}

/* ---- verdicts ----------------------------------------------------------- */

/* All ratios of programs in two places; returns how many. */
static unsigned list_ratios(const struct users *u, enum users_place ours,
			    enum users_place theirs, double *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < u->count; i++) {
		double a = median_ns(&u->user[i].cell[ours]);
		double b = median_ns(&u->user[i].cell[theirs]);

		if (a > 0 && b > 0)
			out[n++] = a / b;
	}
	return n;
}

static double largest(const double *v, unsigned count)
{
	double most = 0;

	for (unsigned i = 0; i < count; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

/* A program that is missing could be the worst one. */
static void judge(struct users *u, const char *name, double value,
		  unsigned measured, unsigned wanted)
{
	if (measured < wanted)
		bench_void(u->b, name, "%u of %u runs could not be measured",
			   wanted - measured, wanted);
	else
		bench_ratio_add(u->b, name, value);
}

/* The kernel ends programs in a cgroup that it cannot swap fast enough, so some
 * have no rival; the others are judged if they are most. */
static void judge_zram(struct users *u)
{
	double v[2 * USERS_PROGRAMS];
	unsigned n = list_ratios(u, USERS_HALF, USERS_ZRAM_HALF, v);

	n += list_ratios(u, USERS_QUARTER, USERS_ZRAM_QUARTER, v + n);
	(void)bench_row(u->b, "users", "zram_rivals", n, "runs",
			"that did not fail, of two per program");
	judge(u, "run_apps_vs_zram_worst", largest(v, n), n, 2 * u->count);
	judge(u, "run_apps_vs_zram", stats_median(v, n), n, u->count + 1);
}

static void judge_faults(struct users *u)
{
	double v[USERS_PROGRAMS];
	unsigned n = 0, wanted = 0;

	for (unsigned i = 0; i < u->count; i++) {
		const char *name = u->user[i].program->name;
		double ns = fault_ns(&u->user[i]);

		if (strcmp(name, "perl") != 0 && strcmp(name, "clang++") != 0)
			continue;
		wanted++;
		if (ns > 0 && u->touch_ns > 0)
			v[n++] = ns / u->touch_ns;
	}
	(void)bench_row(u->b, "users", "touch", u->touch_ns / 1e3, "us/fault",
			"random touches, everything on its core");
	judge(u, "run_fault_user_vs_bench", largest(v, n), n,
	      u32_max(wanted, 1));
}

static void report(struct users *u)
{
	double v[USERS_PROGRAMS];
	unsigned n;

	for (unsigned i = 0; i < u->count; i++)
		add_rows(u->b, &u->user[i]);
	judge_faults(u);
	judge_zram(u);
	n = list_ratios(u, USERS_ALL, USERS_PLAIN, v);
	judge(u, "run_local_vs_plain", largest(v, n), n, u->count);
}

/* ---- all of it ---------------------------------------------------------- */

static void choose(struct users *u)
{
	const char *only = bench_word(u->b, "program");

	for (unsigned i = 0; i < USERS_PROGRAMS; i++) {
		const struct users_program *p = &users_programs[i];

		if (only ? strcmp(only, p->name) != 0
			 : u->b->quick && i >= QUICK_PROGRAMS)
			continue;
		u->user[u->count++].program = p;
	}
}

int users_rows(struct bench *b)
{
	struct users *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return bench_fail(b, -ENOMEM, "no memory");
	u->b = b;
	u->rounds = u32_min(b->rounds, b->has_rounds ? ROUNDS_MAX : ROUNDS);
	choose(u);
	if (!u->count)
		err = bench_fail(b, -EINVAL,
				 "there is no program %s in the list",
				 bench_word(b, "program"));
	else
		err = place_make(u->dir, "users");
	if (!err && u->count) {
		err = users_write_inputs(u->dir, b->quick);
		if (!err)
			err = measure(u);
		if (!err)
			report(u);
		else
			err = bench_fail(b, err, "users: %s", strerror(-err));
		place_remove(u->dir);
	}
	free(u);
	return err;
}
