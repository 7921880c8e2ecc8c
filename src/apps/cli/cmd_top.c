/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer top`: a live view of the rack. It only reads: the nodes' status and
 * the processes' counter files. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_top.h"

enum {
	ASK_MS = 500,
	INTERVAL_MS = 1000,
};

struct top_args {
	bool json;
	bool once;
	uint32_t interval_ms;
};

static double rate(uint64_t count, uint64_t interval_ns)
{
	return interval_ns ? (double)count * 1e9 / (double)interval_ns : 0;
}

static void set_rate(json_t *row, const char *key, uint64_t count,
		     uint64_t interval_ns)
{
	(void)json_object_set_new(row, key,
				  json_real(rate(count, interval_ns)));
}

static json_t *client_row(const struct cli_top_process *p, uint64_t ns)
{
	json_t *row = json_object();

	(void)json_object_set_new(row, "pid", json_integer((json_int_t)p->pid));
	cli_report_set(row, "name", "%s", p->name);
	set_rate(row, "reads_per_s", p->reads, ns);
	set_rate(row, "writes_per_s", p->writes, ns);
	set_rate(row, "atomics_per_s", p->atomics, ns);
	set_rate(row, "errors_per_s", p->errors, ns);
	set_rate(row, "read_bytes_per_s", p->read_bytes, ns);
	set_rate(row, "write_bytes_per_s", p->write_bytes, ns);
	return row;
}

static json_t *switch_row(const struct cli_top_process *p, uint64_t ns)
{
	json_t *row = json_object();

	(void)json_object_set_new(row, "pid", json_integer((json_int_t)p->pid));
	set_rate(row, "frames_per_s", p->frames, ns);
	set_rate(row, "forwarded_per_s", p->forwarded, ns);
	set_rate(row, "program_drops_per_s", p->program_drops, ns);
	set_rate(row, "program_frames_per_s", p->program_frames, ns);
	return row;
}

static json_t *engine_row(const struct cli_top_process *p, uint64_t ns)
{
	json_t *row = client_row(p, ns);

	(void)json_object_del(row, "atomics_per_s");
	(void)json_object_set_new(row, "sessions",
				  json_integer((json_int_t)p->sessions));
	set_rate(row, "probes_per_s", p->probes, ns);
	set_rate(row, "publications_per_s", p->publications, ns);
	return row;
}

static json_t *node_row(const struct cli_rack *rack,
			const struct client_node *node,
			const struct cli_top_sample *d)
{
	json_t *row = json_object(), *status = NULL;
	struct cli_proc proc = {0};
	bool is_up = cli_rack_ask(rack, node, ASK_MS, &status) == 0;
	unsigned i;

	cli_report_set(row, "name", "%s", node->name);
	cli_report_set(row, "state", "%s", is_up ? "up" : "down");
	if (is_up) {
		(void)json_object_update(row, json_object_get(status, "pool"));
		(void)json_object_set(row, "connections",
				      json_object_get(status, "connections"));
		(void)json_object_set(row, "regions",
				      json_object_get(status, "regions"));
		json_decref(status);
	}
	if (cli_proc_find(rack->rundir, node->name, &proc))
		return row;
	(void)json_object_set_new(row, "pid", json_integer(proc.pid));
	for (i = 0; i < d->count; i++)
		if (d->process[i].pid == (uint64_t)proc.pid) {
			set_rate(row, "rx_bytes_per_s", d->process[i].rx_bytes,
				 d->at_ns);
			set_rate(row, "tx_bytes_per_s", d->process[i].tx_bytes,
				 d->at_ns);
			set_rate(row, "rx_frames_per_s",
				 d->process[i].rx_frames, d->at_ns);
		}
	return row;
}

static json_t *describe(struct cli_rack *rack, const struct cli_top_sample *d)
{
	json_t *tree = json_object(), *nodes = json_array();
	json_t *clients = json_array(), *total = json_object();
	json_t *switches = json_array();
	json_t *engines = json_array();
	struct cli_top_process all = {0};
	unsigned i;

	cli_rack_scan(rack);
	for (i = 0; i < rack->node_count; i++)
		(void)json_array_append_new(nodes,
					    node_row(rack, &rack->node[i], d));
	for (i = 0; i < d->count; i++) {
		const struct cli_top_process *p = &d->process[i];

		if (p->is_switch)
			(void)json_array_append_new(switches,
						    switch_row(p, d->at_ns));
		if (p->is_engine)
			(void)json_array_append_new(engines,
						    engine_row(p, d->at_ns));
		if (!p->is_client)
			continue;
		(void)json_array_append_new(clients, client_row(p, d->at_ns));
		all.reads += p->reads + p->writes + p->atomics;
		all.read_bytes += p->read_bytes;
		all.write_bytes += p->write_bytes;
		all.errors += p->errors;
	}
	set_rate(total, "operations_per_s", all.reads, d->at_ns);
	set_rate(total, "read_bytes_per_s", all.read_bytes, d->at_ns);
	set_rate(total, "write_bytes_per_s", all.write_bytes, d->at_ns);
	set_rate(total, "errors_per_s", all.errors, d->at_ns);
	(void)json_object_set_new(total, "latency_p50_ns",
				  json_integer((json_int_t)hist_percentile(
					  &d->latency, HIST_MEDIAN)));
	(void)json_object_set_new(total, "latency_p99_ns",
				  json_integer((json_int_t)hist_percentile(
					  &d->latency, HIST_P99)));
	cli_report_set(tree, "rack", "%s", rack->name);
	(void)json_object_set_new(tree, "interval_s",
				  json_real((double)d->at_ns / 1e9));
	(void)json_object_set_new(tree, "total", total);
	(void)json_object_set_new(tree, "nodes", nodes);
	(void)json_object_set_new(tree, "switches", switches);
	(void)json_object_set_new(tree, "clients", clients);
	(void)json_object_set_new(tree, "engines", engines);
	return tree;
}

/* ---- for people --------------------------------------------------------- */

static uint64_t number(const json_t *row, const char *key)
{
	double v = json_number_value(json_object_get(row, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "-";
}

static void print_total(const json_t *tree)
{
	const json_t *t = json_object_get(tree, "total");
	char r[16], w[16];

	printf("rack %s   %" PRIu64 " operations/s   read %s/s   "
	       "written %s/s   p50 %.1f us   p99 %.1f us   %" PRIu64
	       " errors/s\n\n",
	       text(tree, "rack"), number(t, "operations_per_s"),
	       cli_rack_size(number(t, "read_bytes_per_s"), r),
	       cli_rack_size(number(t, "write_bytes_per_s"), w),
	       (double)number(t, "latency_p50_ns") / 1e3,
	       (double)number(t, "latency_p99_ns") / 1e3,
	       number(t, "errors_per_s"));
}

static void print_switches(const json_t *switches)
{
	const json_t *row;
	size_t i;

	if (json_array_size(switches))
		printf("\n%8s %-16s %10s %12s %10s %12s\n", "PID", "SWITCH",
		       "FRAMES/s", "FORWARDED/s", "DROPPED/s", "MADE/s");
	json_array_foreach(switches, i, row)
		printf("%8" PRIu64 " %-16s %10" PRIu64 " %12" PRIu64
		       " %10" PRIu64 " %12" PRIu64 "\n",
		       number(row, "pid"), "", number(row, "frames_per_s"),
		       number(row, "forwarded_per_s"),
		       number(row, "program_drops_per_s"),
		       number(row, "program_frames_per_s"));
}

static void print_engines(const json_t *rows)
{
	char a[16], b[16];
	const json_t *row;
	size_t i;

	if (json_array_size(rows))
		printf("\n%8s %-10s %8s %10s %10s %8s %8s %10s %10s\n", "PID",
		       "ENGINE", "SESSIONS", "READS/s", "WRITES/s", "READ/s",
		       "WRITE/s", "PROBES/s", "TOLD/s");
	json_array_foreach(rows, i, row) printf(
		"%8" PRIu64 " %-10s %8" PRIu64 " %10" PRIu64 " %10" PRIu64
		" %8s %8s %10" PRIu64 " %10" PRIu64 "\n",
		number(row, "pid"), text(row, "name"), number(row, "sessions"),
		number(row, "reads_per_s"), number(row, "writes_per_s"),
		cli_rack_size(number(row, "read_bytes_per_s"), a),
		cli_rack_size(number(row, "write_bytes_per_s"), b),
		number(row, "probes_per_s"), number(row, "publications_per_s"));
}

static void print_tree(const json_t *tree)
{
	char a[16], b[16], c[16], d[16];
	const json_t *row;
	size_t i;

	print_total(tree);
	printf("%-16s %-6s %8s %8s %8s %12s %8s %8s\n", "NODE", "STATE", "USED",
	       "SIZE", "REGIONS", "CONNECTIONS", "RX/s", "TX/s");
	json_array_foreach(json_object_get(tree, "nodes"), i, row) printf(
		"%-16s %-6s %8s %8s %8" PRIu64 " %12" PRIu64 " %8s %8s\n",
		text(row, "name"), text(row, "state"),
		cli_rack_size(number(row, "used"), a),
		cli_rack_size(number(row, "size"), b), number(row, "regions"),
		number(row, "connections"),
		cli_rack_size(number(row, "rx_bytes_per_s"), c),
		cli_rack_size(number(row, "tx_bytes_per_s"), d));
	print_switches(json_object_get(tree, "switches"));
	print_engines(json_object_get(tree, "engines"));
	if (json_array_size(json_object_get(tree, "clients")))
		printf("\n%8s %-16s %10s %10s %10s %8s %8s %8s\n", "PID",
		       "CLIENT", "READS/s", "WRITES/s", "ATOMICS/s", "READ/s",
		       "WRITE/s", "ERRORS/s");
	json_array_foreach(json_object_get(tree, "clients"), i, row)
		printf("%8" PRIu64 " %-16s %10" PRIu64 " %10" PRIu64
		       " %10" PRIu64 " %8s %8s %8" PRIu64 "\n",
		       number(row, "pid"), text(row, "name"),
		       number(row, "reads_per_s"), number(row, "writes_per_s"),
		       number(row, "atomics_per_s"),
		       cli_rack_size(number(row, "read_bytes_per_s"), a),
		       cli_rack_size(number(row, "write_bytes_per_s"), b),
		       number(row, "errors_per_s"));
}

/* ---- the command -------------------------------------------------------- */

static int take_interval(void *args, const char *word)
{
	struct top_args *a = args;

	a->interval_ms = (uint32_t)(atof(word) * 1000);
	return a->interval_ms >= 10 && a->interval_ms <= 3600000
		       ? 0
		       : error_set(-EINVAL,
				   "--interval is from 0.01 to 3600 seconds");
}

const struct opt cmd_top_options[] = {
	OPT_FLAG(struct top_args, once, "once", "one look, after one interval"),
	OPT_CALL(take_interval, "interval", "SECONDS",
		 "between two looks (default 1)"),
	OPT_FLAG(struct top_args, json, "json", "a JSON object for each look"),
	OPT_END,
};

/* False when a signal ended the wait: whoever looks is done. */
static bool wait_interval(uint32_t ms, const sigset_t *ends)
{
	const struct timespec ts = {.tv_sec = ms / 1000,
				    .tv_nsec = (long)(ms % 1000) * 1000000};

	return sigtimedwait(ends, NULL, &ts) < 0;
}

static int run(struct cli_rack *rack, const struct top_args *a)
{
	struct cli_top_sample *s = calloc(3, sizeof(*s));
	bool is_screen = !a->json && !a->once && isatty(STDOUT_FILENO);
	unsigned now = 0;
	sigset_t ends;
	json_t *tree;
	int err = 0;

	if (!s)
		return -ENOMEM;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	cli_top_take(rack->rundir, &s[0]);
	while (!err && wait_interval(a->interval_ms, &ends)) {
		now = !now;
		cli_top_take(rack->rundir, &s[now]);
		cli_top_diff(&s[!now], &s[now], &s[2]);
		tree = describe(rack, &s[2]);
		if (is_screen)
			fputs("\033[H\033[J", stdout);
		if (a->json) {
			err = cli_report_print(tree, true);
		} else {
			print_tree(tree);
			json_decref(tree);
		}
		if (fflush(stdout) != 0 || a->once)
			break;
	}
	free(s);
	return err;
}

int cmd_top(const struct cli_command *self, int argc, char **argv)
{
	struct top_args a = {.interval_ms = INTERVAL_MS};
	struct cli_rack rack;
	int err, code = cli_parse(self, argc, argv, OPT_WORDS_NONE, &a, NULL);

	if (code != CLI_GO)
		return code;
	if (cli_rack_open(&rack, NULL, false))
		return CLI_FAILED;
	err = run(&rack, &a);
	cli_rack_close(&rack);
	return err ? CLI_FAILED : CLI_OK;
}
