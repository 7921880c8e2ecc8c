/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench NAME`: the benchmarks, by name. They link the rooms as they
 * are shipped. */
#include "bench/bench.h"
#include "cli/cli.h"

static const struct cli_entry benches[] = {
	{"verbs", bench_verbs_cmd, "the NIC beside a raw ring, UCX and memcpy"},
	{"edm", bench_edm_cmd, "the simulated memory fabric and its promises"},
	{"offload", bench_offload_cmd,
	 "far records by an engine, verbs, messages, a file"},
	{"switch", bench_switch_cmd,
	 "the switch beside a bare forwarder, READs through it"},
	{"fair", bench_fair_cmd,
	 "a tenant beside another one who floods the memory node"},
	{"paging", bench_paging_cmd,
	 "far pages beside plain READs and WRITEs; programs on them"},
	{"kv", bench_kv_cmd,
	 "the key-value table: fill, round trips, speed beside Redis"},
	{NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct cli_command self = {
		.name = "bench",
		.summary = "measure, beside peers in the same run",
		.usage = "NAME [OPTION...]",
	};

	return cli_flush(cli_group_run(&self, benches, argc, argv));
}
