/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer tier probe`: what to measure, a line of progress, and what came out.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/size.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_tier.h"
#include "probe/probe.h"
#include "tier/spec.h"
#include "tier/sysfs.h"

enum {
	WORD_MAX = 32,
};

/* ---- what is asked ------------------------------------------------------ */

struct question {
	struct probe_options o;
	struct cli_rack rack;
	struct probe_far_node node[CLIENT_NODE_MAX];
	bool has_rack;
};

static int read_words(const struct cli_tier_args *a, struct probe_options *o)
{
	uint64_t node;
	int err = 0;

	o->node = -1;
	o->threads = a->threads;
	o->is_far_only = a->is_far;
	if (a->node && a->is_far)
		return error_set(-EINVAL, "--node or --far, not both");
	if (a->node) {
		if (tier_sysfs_number(a->node, TIER_NODE_MAX, &node))
			return error_set(-EINVAL,
					 "--node: value '%.40s' is not "
					 "allowed; it is a number from 0 to %d",
					 a->node, TIER_NODE_MAX);
		o->node = (int64_t)node;
	}
	o->has_mix = a->mix != NULL;
	if (a->mix)
		err = tier_ratio_parse(a->mix, &o->mix);
	return err ? error_prefix(err, "--mix: ") : 0;
}

/* What frames to that node go through. */
static const char *frames_word(const struct cli_rack *rack,
			       const struct client_node *node)
{
	const char *port = config_string(rack->config, "nic", "port");

	if (strcmp(port, "auto") != 0)
		return port;
	return strncmp(node->address, "unix:", 5) == 0 ? "cable" : "udp";
}

/* A rack that is not there is nothing to measure, unless it was asked for. */
static int open_rack(struct question *q)
{
	int err;

	if (q->o.node >= 0)
		return 0;
	if (cli_rack_open(&q->rack, NULL, false))
		return CLI_FAILED; /* it has said why */
	q->has_rack = true;
	if (!q->rack.node_count && !q->o.is_far_only)
		return 0;
	err = aq_rack_open(NULL, &q->o.rack);
	if (err)
		return q->o.is_far_only ? err : 0;
	for (unsigned i = 0; i < q->rack.node_count; i++)
		q->node[i] = (struct probe_far_node){
			q->rack.node[i].name,
			frames_word(&q->rack, &q->rack.node[i])};
	q->o.far_node = q->node;
	q->o.far_count = q->rack.node_count;
	return 0;
}

static void close_rack(struct question *q)
{
	aq_rack_close(q->o.rack);
	if (q->has_rack)
		cli_rack_close(&q->rack);
}

/* ---- progress ----------------------------------------------------------- */

static void show_progress(void *ctx, const char *tier, const char *what,
			  unsigned step, unsigned steps)
{
	(void)fprintf(stderr, "\r%s: %s, %u of %u\033[K", tier, what, step + 1,
		      steps);
}

/* ---- for programs ------------------------------------------------------- */

/* "numa", or the last word of the name. */
static const char *way_word(const struct probe_tier *t)
{
	return t->way == PROBE_NUMA ? "numa" : strrchr(t->name, ' ') + 1;
}

static double peak_of(const struct probe_tier *t)
{
	return t->curve.count
		       ? fmax(tier_curve_peak_gbs(&t->curve), t->rate[0].gbs)
		       : t->rate[0].gbs;
}

static json_t *facts_json(const struct probe_facts *f)
{
	json_t *tree = json_pack(
		"{s:I, s:I, s:b, s:I, s:I}", CLI_FIELD(*f, size_bytes),
		CLI_FIELD(*f, free_bytes), "has_cpus", f->has_cpus,
		CLI_FIELD(*f, cpu_node), CLI_FIELD(*f, distance));

	if (f->memory_tier)
		(void)json_object_set_new(tree, "memory_tier",
					  json_integer(f->memory_tier));
	if (f->hmat_read_ns || f->hmat_read_mbs)
		(void)json_object_set_new(
			tree, "hmat",
			json_pack("{s:I, s:I, s:I, s:I}", "read_ns",
				  (json_int_t)f->hmat_read_ns, "write_ns",
				  (json_int_t)f->hmat_write_ns, "read_mbs",
				  (json_int_t)f->hmat_read_mbs, "write_mbs",
				  (json_int_t)f->hmat_write_mbs));
	return tree;
}

static json_t *rates_json(const struct probe_tier *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->rate_count; i++)
		(void)json_array_append_new(
			list,
			json_pack("{s:I, s:I, s:f}", "reads",
				  (json_int_t)t->rate[i].mix.top, "writes",
				  (json_int_t)t->rate[i].mix.slow, "gbs",
				  t->rate[i].gbs));
	return list;
}

static json_t *curve_json(const struct probe_tier *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->curve.count; i++)
		(void)json_array_append_new(
			list,
			json_pack("{s:f, s:f}", "gbs", t->curve.point[i].gbs,
				  "ns", t->curve.point[i].ns));
	return json_pack("{s:I, s:I, s:I, s:o}", "reads",
			 (json_int_t)t->curve_mix.top, "writes",
			 (json_int_t)t->curve_mix.slow, "threads",
			 (json_int_t)t->curve_threads, "points", list);
}

static json_t *tier_json(const struct probe_tier *t)
{
	json_t *tree =
		json_pack("{s:s, s:s}", "name", t->name, "way", way_word(t));

	if (t->way == PROBE_NUMA) {
		(void)json_object_set_new(tree, "node", json_integer(t->node));
		(void)json_object_set_new(tree, "system",
					  facts_json(&t->facts));
	}
	if (t->err) {
		cli_report_set(tree, "error", "%s", t->why);
		return tree;
	}
	(void)json_object_set_new(
		tree, "idle_ns",
		json_pack("{s:f, s:f, s:f, s:I}", "p50", t->idle.p50_ns, "p90",
			  t->idle.p90_ns, "p99", t->idle.p99_ns, "samples",
			  (json_int_t)t->idle.samples));
	(void)json_object_set_new(tree, "arena_bytes",
				  json_integer((json_int_t)t->arena_bytes));
	if (t->huge_share >= 0)
		(void)json_object_set_new(tree, "huge_share",
					  json_real(t->huge_share));
	(void)json_object_set_new(tree, "threads", json_integer(t->threads));
	(void)json_object_set_new(tree, "bandwidth", rates_json(t));
	(void)json_object_set_new(tree, "peak_gbs", json_real(peak_of(t)));
	if (t->curve.count) {
		(void)json_object_set_new(
			tree, "knee_gbs",
			json_real(tier_curve_knee_gbs(&t->curve)));
		(void)json_object_set_new(tree, "curve", curve_json(t));
	}
	(void)json_object_set_new(tree, "cpu_share", json_real(t->share));
	return tree;
}

static int print_json(const struct probe_report *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->count; i++)
		(void)json_array_append_new(list, tier_json(&r->tier[i]));
	return cli_report_print(json_pack("{s:o, s:f, s:b}", "tiers", list,
					  "cpu_share", r->share, "trusted",
					  probe_is_quiet(r)),
				true);
}

/* ---- for people --------------------------------------------------------- */

static void print_head(const struct probe_tier *t)
{
	printf("%-24s %9s %9s", "tier", "idle ns", "p99 ns");
	for (unsigned i = 0; i < t->rate_count; i++) {
		char mix[WORD_MAX];

		(void)snprintf(mix, sizeof(mix), "%u:%u", t->rate[i].mix.top,
			       t->rate[i].mix.slow);
		printf(" %7s", mix);
	}
	printf(" %8s %8s\n", "peak", "knee");
}

static void print_tier(const struct probe_tier *t)
{
	if (t->err) {
		printf("%-24s %s\n", t->name, t->why);
		return;
	}
	printf("%-24s %9.1f %9.1f", t->name, t->idle.p50_ns, t->idle.p99_ns);
	for (unsigned i = 0; i < t->rate_count; i++)
		printf(" %7.2f", t->rate[i].gbs);
	printf(" %8.2f", peak_of(t));
	if (t->curve.count)
		printf(" %8.2f\n", tier_curve_knee_gbs(&t->curve));
	else
		printf(" %8s\n", "-");
}

static void print_facts(const struct probe_tier *t)
{
	const struct probe_facts *f = &t->facts;

	printf("%s: %s, %s free", t->name, SIZE_TEXT(f->size_bytes),
	       SIZE_TEXT(f->free_bytes));
	if (f->has_cpus)
		printf(", has processors");
	else
		printf(", no processors, measured from node %u", f->cpu_node);
	printf(", distance %u", f->distance);
	if (f->memory_tier)
		printf(", kernel's memory tier %u", f->memory_tier);
	if (f->hmat_read_ns || f->hmat_read_mbs)
		printf("; the firmware says %u ns and %.1f GB/s",
		       f->hmat_read_ns, f->hmat_read_mbs / 1e3);
	else
		printf("; the firmware says nothing (no HMAT)");
	if (!t->err && t->huge_share >= 0)
		printf("; %.0f %% huge pages", 100 * t->huge_share);
	putchar('\n');
}

static void print_curve(const struct probe_tier *t)
{
	if (!t->curve.count) {
		printf("%s: no latency at a load, which takes two processors\n",
		       t->name);
		return;
	}
	printf("%s, %u:%u, %u thread%s, ns at GB/s:", t->name, t->curve_mix.top,
	       t->curve_mix.slow, t->curve_threads,
	       t->curve_threads == 1 ? "" : "s");
	for (unsigned i = 0; i < t->curve.count; i++)
		printf(" %.0f@%.2f", t->curve.point[i].ns,
		       t->curve.point[i].gbs);
	putchar('\n');
}

static int print_text(const struct probe_report *r)
{
	printf("Latency of one load at a time, in ns; bandwidth in GB/s by "
	       "reads:writes;\nthe knee is where latency is half more than "
	       "idle.\n\n");
	for (unsigned i = 0; i < r->count; i++)
		if (!r->tier[i].err) {
			print_head(&r->tier[i]);
			break;
		}
	for (unsigned i = 0; i < r->count; i++)
		print_tier(&r->tier[i]);
	putchar('\n');
	for (unsigned i = 0; i < r->count; i++) {
		if (r->tier[i].way == PROBE_NUMA)
			print_facts(&r->tier[i]);
		if (!r->tier[i].err)
			print_curve(&r->tier[i]);
	}
	if (!probe_is_quiet(r))
		printf("\nThis machine is too busy to trust these numbers: a "
		       "measuring thread had %.0f %% of its\ntime. Run the "
		       "probe again when less is going on.\n",
		       100 * r->share);
	return cli_output_check();
}

/* ---- the run ------------------------------------------------------------ */

static int measure(struct question *q, struct probe_report *report)
{
	sigset_t ends, before;
	bool has_line = isatty(STDERR_FILENO) == 1;
	int err;

	if (has_line)
		q->o.progress = show_progress;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &ends, &before);
	err = probe_run(&q->o, report);
	if (has_line)
		(void)fputs("\r\033[K", stderr);
	return err;
}

static bool is_any(const struct probe_report *r)
{
	return r->count && !r->tier[0].err;
}

static int run_and_print(struct question *q, bool as_json)
{
	struct probe_report *report = calloc(1, sizeof(*report));
	int err;

	if (!report)
		return error_set(-ENOMEM, "no memory for the probe");
	err = measure(q, report);
	if (!err && !is_any(report))
		err = error_set(report->tier[0].err, "%s: %s",
				report->tier[0].name, report->tier[0].why);
	if (!err)
		err = as_json ? print_json(report) : print_text(report);
	free(report);
	return err;
}

int cli_tier_probe(void *args)
{
	const struct cli_tier_args *a = args;
	struct question q = {.has_rack = false};
	int err = read_words(a, &q.o);

	if (!err)
		err = open_rack(&q);
	if (!err)
		err = run_and_print(&q, a->common.json);
	close_rack(&q);
	if (err == -EINTR) {
		/* What was made is deleted; the signal may end it now. */
		sigset_t none;

		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
	}
	/* Not being there is no wrong word. */
	if (err == -ENODEV) {
		cli_error_last(err);
		return CLI_FAILED;
	}
	return err;
}
