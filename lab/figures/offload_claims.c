/* SPDX-License-Identifier: Apache-2.0 */
/* What the paper says about Cowbird's figures, beside what comes out. */
#include <math.h>
#include <string.h>

#include "offload_plan.h"
#include "sim/model.h"

enum {
	/* Around a record on the wire: preamble, Ethernet, IP, UDP, BTH, AETH,
	 * ICRC, FCS, gap. */
	FRAME_BYTES = 8 + 14 + 20 + 8 + 12 + 4 + 4 + 4 + 12,
	ANY = UINT16_MAX, /* record size */
};

/*
 * Could hardware carry what local memory serves at all? 95 % of the link, and
 * the READ rate of a NIC. Where not, far memory cannot keep up in any way.
 */
static bool fits(const struct offload_row *near)
{
	double far = near->res.mops * near->cfg.far_ppm / 1e6;

	return far * (double)model_connectx5.read_engine_ps <= 1e6 &&
	       far * (near->cfg.bytes + FRAME_BYTES) * 8 <= 95e3;
}

enum how {
	BELOW, /* by how many percent it is below the rival, at most */
	OVER,  /* how many times the rival, at least */
	ALL,   /* the same at worst */
	MOST,  /* the largest value, at most */
	TIMES, /* how many times the rival, at most */
	MORE,  /* how much more than the rival, at most */
};

/* The extreme over all thread counts, and all sizes up to this. */
static const struct extreme {
	const char *figure, *what, *way;
	enum how how;
	const char *rival, *column;
	uint32_t bytes;
	double paper;
	const char *unit, *note;
} extremes[] = {
	{"1", "below local memory, worst", "cow-8", BELOW, "local", "mops", ANY,
	 11.4, "%", "8 engine cores, where the link can do it"},
	{"1", "local memory over asynchronous verbs, best", "local", OVER,
	 "async", "mops", ANY, 10, "x", "\"an order-of-magnitude slowdown\""},
	{"2", "caller's time of a READ over a read", "sync", OVER, "cow",
	 "caller_ns", ANY, 10, "x", "\"an order of magnitude\"; median"},
	{"2", "caller's time of a READ over a read", "sync", OVER, "cow-warm",
	 "caller_ns", ANY, 10, "x", "\"an order of magnitude\"; code alone"},
	{"8", "8 and 64 B: below local memory, worst", "cow-8", BELOW, "local",
	 "mops", 64, 11.4, "%", "8 engine cores, where the NIC can do it"},
	{"8", "8 and 64 B: below local memory, worst", "cow-1", BELOW, "local",
	 "mops", 64, 11.4, "%", "one engine core: its processor"},
	{"8", "8 and 64 B: below local memory, worst", "p4", BELOW, "local",
	 "mops", 64, 11.4, "%", "the switch, where the NIC can do it"},
	{"8", "switch below spot engine, worst", "p4", BELOW, "cow-8", "mops",
	 ANY, 10, "%", "\"identical\"; 8 engine cores"},
	{"8", "over asynchronous verbs, best", "cow-8", OVER, "async", "mops",
	 ANY, 3.5, "x", "lists of 100, one price list"},
	{"8", "over asynchronous verbs, best", "cow-8", OVER, "async-each",
	 "mops", ANY, 3.5, "x", "a doorbell and a completion for each READ"},
	{"8", "8 and 64 B: over asynchronous verbs, worst", "cow-8", ALL,
	 "async", "mops", 64, 1, "x", "\"additional performance win\""},
	{"8", "asynchronous over synchronous verbs, best", "async", OVER,
	 "sync", "mops", ANY, 10, "x", "\"an order of magnitude\""},
	{"9", "below local memory, worst", "cow-8", BELOW, "local", "mops", ANY,
	 8, "%", "8 engine cores, where the link can do it"},
	{"9", "below local memory, worst", "cow-1", BELOW, "local", "mops", ANY,
	 8, "%", "one engine core: its processor"},
	{"9", "over asynchronous verbs, best", "cow-8", OVER, "async", "mops",
	 ANY, 1.4, "x", "lists of 100, one price list"},
	{"9", "over asynchronous verbs, best", "cow-8", OVER, "async-each",
	 "mops", ANY, 1.4, "x", "a doorbell and a completion for each READ"},
	{"9", "over synchronous verbs, best", "cow-8", OVER, "sync", "mops",
	 ANY, 9, "x", ""},
	{"9", "switch below spot engine, worst", "p4", BELOW, "cow-8", "mops",
	 ANY, 10, "%", "\"similar\"; 8 engine cores"},
	{"9", "switch over asynchronous verbs, best", "p4", OVER, "async",
	 "mops", ANY, 1.4, "x", ""},
	{"9", "switch below spot engine, worst", "p4-each", BELOW, "cow-8",
	 "mops", ANY, 10, "%", "fetch=1 tell=1, as the paper's"},
	{"10", "time in the communication library, worst", "cow-8", MOST, NULL,
	 "communication_share", ANY, 20, "%", "8 engine cores"},
	{"10", "time in the communication library, worst", "cow-1", MOST, NULL,
	 "communication_share", ANY, 20, "%", "one engine core: its processor"},
	{"10", "time in the communication library, worst", "p4", MOST, NULL,
	 "communication_share", ANY, 20, "%", "the switch"},
	{"11", "over Redy, best", "cow-8", OVER, "redy", "mops", ANY, 1.6, "x",
	 "modelled, 8 engine cores"},
	{"11", "over Redy, best", "cow-1", OVER, "redy", "mops", ANY, 1.6, "x",
	 "modelled, one engine core"},
	{"12", "over threads that block, best", "cow-8", OVER, "blocking",
	 "mops", ANY, 71, "x", "8 engine cores"},
	{"12", "over threads that block, best", "cow-1", OVER, "blocking",
	 "mops", ANY, 71, "x", "one engine core"},
	{"13", "batches of 100: median, any size", "cow-100", MOST, NULL,
	 "p50_us", ANY, 10, "us", ""},
	{"13", "batches of 100: p99, any size", "cow-100", MOST, NULL, "p99_us",
	 ANY, 20, "us", ""},
	{"13", "batches of 100: median over asynchronous READs'", "cow-100",
	 TIMES, "async-100", "p50_us", ANY, 1, "x", "\"much lower\""},
	{"13", "alone: more than a synchronous READ", "cow", MORE, "sync",
	 "p50_us", ANY, 4.4, "us",
	 "\"slightly\": 2 round trips, as they are here"},
};

/* The rival's point with the same size and threads. */
static const struct offload_row *rival_of(const struct figure_run *r,
					  const struct offload_row *x,
					  const char *rival)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct offload_row *y = figure_row(r, i);

		if (!strcmp(y->p.series, rival) && !y->p.err &&
		    y->cfg.bytes == x->cfg.bytes &&
		    y->cfg.threads == x->cfg.threads)
			return y;
	}
	return NULL;
}

static double extreme_of(const struct figure_run *r, const struct extreme *e)
{
	double best = e->how == ALL ? INFINITY : 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct offload_row *x = figure_row(r, i), *y = x;
		double v, under;

		if (strcmp(x->p.series, e->way) || x->cfg.bytes > e->bytes ||
		    x->p.err)
			continue;
		if (e->rival)
			y = rival_of(r, x, e->rival);
		/* Beside local memory: where that is possible. */
		if (!y || (y->cfg.device == FIG_LOCAL && !fits(y)))
			continue;
		v = figure_value(r, x, e->column);
		under = figure_value(r, y, e->column);
		v = e->how == BELOW ? 100 * (1 - v / under)
		    : e->how == OVER || e->how == ALL || e->how == TIMES
			    ? v / under
		    : e->how == MORE  ? v - under
		    : *e->unit == '%' ? 100 * v
				      : v;
		best = e->how == ALL ? fmin(v, best) : fmax(v, best);
	}
	return best;
}

/* Figure 1 is normalised to local memory. */
static void normalise(struct figure_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct offload_row *x = figure_row(r, i);
		const struct offload_row *near = rival_of(r, x, "local");

		x->of_local = near ? x->res.mops / near->res.mops : NAN;
	}
}

void offload_judge(struct figure_run *r)
{
	static const struct figure_claim link = {
		.what = "512 B, 16 threads: of the link's bandwidth",
		.published = 100,
		.least = 100,
		.unit = "%",
		.note = "\"fully utilize\""};
	const struct offload_row *full = figure_find(r, "512 B", "cow-8", 16);

	normalise(r);
	for (size_t i = 0; i < ARRAY_LEN(extremes); i++) {
		const struct extreme *e = &extremes[i];
		bool is_least = e->how == OVER || e->how == ALL;
		/* More than twice a published gain says that the rival is not
		 * the published one. */
		double most = e->how == OVER  ? e->paper * 2
			      : e->how == ALL ? 0
					      : e->paper;
		const struct figure_claim c = {.what = e->what,
					       .published = e->paper,
					       .least = is_least ? e->paper : 0,
					       .most = most,
					       .unit = e->unit,
					       .note = e->note};

		if (!strcmp(e->figure, r->figure->name))
			figure_claim_add(r, &c, extreme_of(r, e));
	}
	if (full && full->cfg.far_ppm == OFFLOAD_PROBE_FAR_PPM)
		figure_claim_add(r, &link,
				 full->res.mops *
					 (OFFLOAD_PROBE_FAR_PPM / 1e6) *
					 (512 + FRAME_BYTES) * 8 / 1e3);
}
