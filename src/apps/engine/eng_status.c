/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/status, /metrics, and the counters' names. */
#include <aquifer/aqdv.h>
#include <unistd.h>

#include "base/release.h"
#include "control/ctl_metrics.h"
#include "eng_priv.h"

const char *const eng_counter_names[OFFLOAD_C_COUNT] = {
	[OFFLOAD_C_PROBES] = "probes",
	[OFFLOAD_C_PROBES_EMPTY] = "probes_empty",
	[OFFLOAD_C_FETCHES] = "fetches",
	[OFFLOAD_C_READS] = "reads",
	[OFFLOAD_C_WRITES] = "writes",
	[OFFLOAD_C_READ_BYTES] = "read_bytes",
	[OFFLOAD_C_WRITE_BYTES] = "write_bytes",
	[OFFLOAD_C_ERRORS] = "errors",
	[OFFLOAD_C_PUBLICATIONS] = "publications",
	[OFFLOAD_C_CONFLICTS] = "conflicts",
	[OFFLOAD_C_SKIPPED] = "skipped",
	[OFFLOAD_C_GATHERS] = "gathers",
	[OFFLOAD_C_BROKEN] = "broken",
};

const char *const eng_counter_help[OFFLOAD_C_COUNT] = {
	[OFFLOAD_C_PROBES] = "looks at applications' rings",
	[OFFLOAD_C_PROBES_EMPTY] = "looks that found nothing new",
	[OFFLOAD_C_FETCHES] = "batches of requests fetched",
	[OFFLOAD_C_READS] = "reads begun",
	[OFFLOAD_C_WRITES] = "writes begun",
	[OFFLOAD_C_READ_BYTES] = "bytes read",
	[OFFLOAD_C_WRITE_BYTES] = "bytes written",
	[OFFLOAD_C_ERRORS] = "requests refused or failed",
	[OFFLOAD_C_PUBLICATIONS] = "times progress was told",
	[OFFLOAD_C_CONFLICTS] = "waits for an overlapping request",
	[OFFLOAD_C_SKIPPED] = "writes that a predecessor had done",
	[OFFLOAD_C_GATHERS] = "requests to nodes that fetch many reads",
	[OFFLOAD_C_BROKEN] = "sessions that ended by a fault",
};

static uint64_t uptime_s(const struct eng *eng)
{
	return (client_clock_now_ns(eng->clock) - eng->start_ns) / 1000000000;
}

/* Operations on memory that the NIC has mapped; 0 where it maps none. */
static uint64_t direct_ops(const struct eng *eng)
{
	uint64_t n = 0;

	if (eng->context)
		(void)!aqdv_get_counter(eng->context, "direct_ops", &n);
	return n;
}

void eng_handle_status(void *ctx, struct ctl_call *call)
{
	struct eng *eng = ctx;
	json_t *counters = json_object(), *tree;

	eng_workers_count(eng);
	for (unsigned i = 0; i < OFFLOAD_C_COUNT; i++)
		(void)json_object_set_new(
			counters, eng_counter_names[i],
			json_integer((json_int_t)eng->counter[i]));
	tree = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:I, s:o}",
			 "engine", eng->name, "version", AQ_RELEASE, "proto",
			 CTL_PROTO, "incarnation", eng->incarnation, "pid",
			 (json_int_t)getpid(), "uptime_s",
			 (json_int_t)uptime_s(eng), "sessions",
			 (int)eng->session_count, "sessions_max",
			 (int)eng->session_max, "direct_ops",
			 (json_int_t)direct_ops(eng), "counters", counters);
	if (eng->at_switch)
		(void)json_object_set_new(tree, "switch",
					  json_string(eng->at_switch->name));
	else
		(void)json_object_set_new(tree, "threads",
					  json_integer(eng->worker_count));
	ctl_reply_json(call->reply, 200, tree);
}

void eng_handle_metrics(void *ctx, struct ctl_call *call)
{
	struct eng *eng = ctx;
	struct ctl_metrics m;
	size_t text_bytes;
	char *text;
	int err = ctl_metrics_init(&m);

	if (!err) {
		eng_workers_count(eng);
		ctl_metrics_build(&m);
		ctl_metrics_one(
			&m, CTL_METRIC_GAUGE, "aquifer_engine_uptime_seconds",
			"Time since the engine started.", uptime_s(eng));
		ctl_metrics_one(&m, CTL_METRIC_GAUGE, "aquifer_engine_sessions",
				"Application threads that are attached.",
				eng->session_count);
		ctl_metrics_one(
			&m, CTL_METRIC_GAUGE, "aquifer_engine_sessions_max",
			"Application threads that it takes.", eng->session_max);
		ctl_metrics_one(&m, CTL_METRIC_COUNTER,
				"aquifer_engine_sessions_started_total",
				"Sessions ever started.",
				eng->sessions_started);
		ctl_metrics_one(&m, CTL_METRIC_COUNTER,
				"aquifer_engine_sessions_lost_total",
				"Sessions whose application was lost.",
				eng->sessions_lost);
		ctl_metrics_one(&m, CTL_METRIC_COUNTER,
				"aquifer_engine_direct_operations_total",
				"Operations on memory that is mapped here.",
				direct_ops(eng));
		ctl_metrics_family(&m, CTL_METRIC_COUNTER,
				   "aquifer_engine_events_total",
				   "What the engine did.");
		for (unsigned i = 0; i < OFFLOAD_C_COUNT; i++) {
			const char *labels[] = {"counter",
						eng_counter_names[i]};

			ctl_metrics_sample(&m, eng->counter[i], labels, 1);
		}
		err = ctl_metrics_end(&m, &text, &text_bytes);
	}
	if (err)
		ctl_reply_error(call->reply, err, "no memory for the metrics");
	else
		ctl_reply_text(call->reply, text, text_bytes, CTL_METRICS_TYPE);
}
