/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of `aquifer top` as lines for people. */
#include <inttypes.h>
#include <stdio.h>

#include "cli_rack.h"
#include "cli_top.h"

static uint64_t number(const json_t *row, const char *key)
{
	double v = json_number_value(json_object_get(row, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s && *s ? s : "-";
}

static double microseconds(const json_t *row, const char *key)
{
	return (double)number(row, key) / 1e3;
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
	       microseconds(t, "latency_p50_ns"),
	       microseconds(t, "latency_p99_ns"), number(t, "errors_per_s"));
}

static void print_nodes(const json_t *nodes)
{
	char a[16], b[16], c[16], d[16];
	const json_t *row;
	size_t i;

	printf("%-16s %-6s %8s %8s %8s %12s %8s %8s\n", "NODE", "STATE", "USED",
	       "SIZE", "REGIONS", "CONNECTIONS", "RX/s", "TX/s");
	json_array_foreach(nodes, i, row)
	{
		if (!json_object_get(row, "size")) {
			printf("%-16s %-6s %8s %8s %8s %12s %8s %8s\n",
			       text(row, "name"), text(row, "state"), "-", "-",
			       "-", "-", "-", "-");
			continue;
		}
		printf("%-16s %-6s %8s %8s %8" PRIu64 " %12" PRIu64
		       " %8s %8s\n",
		       text(row, "name"), text(row, "state"),
		       cli_rack_size(number(row, "used"), a),
		       cli_rack_size(number(row, "size"), b),
		       number(row, "regions"), number(row, "connections"),
		       cli_rack_size(number(row, "rx_bytes_per_s"), c),
		       cli_rack_size(number(row, "tx_bytes_per_s"), d));
	}
}

static void print_switches(const json_t *switches)
{
	const json_t *row;
	size_t i;

	if (json_array_size(switches))
		printf("\n%8s %-16s %10s %12s %10s %12s\n", "PID", "SWITCH",
		       "FRAMES/s", "FORWARDED/s", "DROPPED/s", "MADE/s");
	json_array_foreach(switches, i, row) printf(
		"%8" PRIu64 " %-16s %10" PRIu64 " %12" PRIu64 " %10" PRIu64
		" %12" PRIu64 "\n",
		number(row, "pid"), text(row, "name"),
		number(row, "frames_per_s"), number(row, "forwarded_per_s"),
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

/* ---- clients ------------------------------------------------------------- */

/* What every line of clients ends with. */
static void print_rates(const json_t *row)
{
	uint64_t other = number(row, "atomics_per_s") +
			 number(row, "deletes_per_s") +
			 number(row, "scans_per_s");
	char a[16], b[16];

	printf(" %9" PRIu64 " %9" PRIu64 " %8" PRIu64
	       " %8s %8s %7.1f %8.1f %8" PRIu64 "\n",
	       number(row, "reads_per_s"), number(row, "writes_per_s"), other,
	       cli_rack_size(number(row, "read_bytes_per_s"), a),
	       cli_rack_size(number(row, "write_bytes_per_s"), b),
	       microseconds(row, "latency_p50_ns"),
	       microseconds(row, "latency_p99_ns"),
	       number(row, "errors_per_s"));
}

static void print_rates_head(void)
{
	printf(" %9s %9s %8s %8s %8s %7s %8s %8s\n", "READS/s", "WRITES/s",
	       "OTHER/s", "READ/s", "WRITE/s", "P50 us", "P99 us", "ERRORS/s");
}

static void print_kinds(const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (!json_array_size(rows))
		return;
	printf("\n%-8s %7s", "KIND", "CLIENTS");
	print_rates_head();
	json_array_foreach(rows, i, row)
	{
		printf("%-8s %7" PRIu64, text(row, "kind"),
		       number(row, "clients"));
		print_rates(row);
	}
}

static void print_tenants(const json_t *rows)
{
	const json_t *row;
	size_t i;

	/* One tenant is what the first line says already. */
	if (json_array_size(rows) < 2)
		return;
	printf("\n%-16s", "TENANT");
	print_rates_head();
	json_array_foreach(rows, i, row)
	{
		printf("%-16s", text(row, "tenant"));
		print_rates(row);
	}
}

static void print_clients(const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (!json_array_size(rows))
		return;
	printf("\n%8s %-15s %-6s %-16s", "PID", "CLIENT", "KIND", "OF");
	print_rates_head();
	json_array_foreach(rows, i, row)
	{
		printf("%8" PRIu64 " %-15s %-6s %-16s", number(row, "pid"),
		       text(row, "name"), text(row, "kind"),
		       text(row, "object"));
		print_rates(row);
	}
}

void cli_top_print(const json_t *tree)
{
	print_total(tree);
	print_nodes(json_object_get(tree, "nodes"));
	print_switches(json_object_get(tree, "switches"));
	print_engines(json_object_get(tree, "engines"));
	cli_top_print_caches(json_object_get(tree, "caches"), true);
	print_kinds(json_object_get(tree, "kinds"));
	print_tenants(json_object_get(tree, "tenants"));
	print_clients(json_object_get(tree, "clients"));
}
