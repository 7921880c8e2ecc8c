/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer tier`: memory of several speeds. */
#include "cli_tier.h"

const struct opt cmd_tier_options[] = {
	CLI_TIER_PROBE_OPTIONS,
	CLI_TIER_COST_OPTIONS,
	OPT_FLAG(struct cli_tier_args, common.json, "json", "print JSON"),
	OPT_END,
};

int cmd_tier(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"probe", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_tier_probe,
		 "measure every tier of this machine and of the rack"},
		{"cost", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_tier_cost,
		 "what servers with CXL memory save, by a model"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct cli_tier_args a = {0};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
