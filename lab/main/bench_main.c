/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench NAME`: the benchmarks, by name; without one, their list. They
 * link the rooms as they are shipped. */
#include <string.h>

#include "bench/bench.h"
#include "bench/mind_bench.h"
#include "bench/run_bench.h"
#include "cli/cli.h"

enum {
	BENCHES_MAX = 16,
	WORK_ARGS = 6, /* itself, --work, and what is to be done */
	PASS_ARGS = 4,
};

int main(int argc, char **argv)
{
	static const struct cli_command self = {
		.name = "bench",
		.summary = "measure, beside peers in the same run",
		.usage = "NAME [OPTION...]",
	};
	static char *help[] = {"bench", "--help", NULL};
	struct cli_entry table[BENCHES_MAX] = {{0}};

	/* What `bench paging` and `bench mind` start this program as. */
	if (argc == WORK_ARGS && strcmp(argv[1], "--work") == 0)
		return run_work_from(argv + 2);
	if (argc == PASS_ARGS && strcmp(argv[1], "--mind-pass") == 0)
		return mind_pass_from(argv + 2);
	for (unsigned i = 0; bench_all[i] && i + 1 < BENCHES_MAX; i++)
		table[i] = (struct cli_entry){bench_all[i]->name, bench_cmd,
					      bench_all[i]->summary};
	return cli_flush(argc > 1 ? cli_group_run(&self, table, argc, argv)
				  : cli_group_run(&self, table, 2, help));
}
