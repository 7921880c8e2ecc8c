/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim NAME`: plays, figures and checkers of the simulator, by name. */
#include <string.h>

#include "claims/claims.h"
#include "cli/cli.h"
#include "edm/edm.h"
#include "edm/edm_net.h"
#include "figures/commands.h"
#include "model/mind_cmd.h"
#include "plays/control_play.h"
#include "plays/elastic_play.h"
#include "plays/hostile_play.h"
#include "plays/kv_play.h"
#include "plays/mind_play.h"
#include "plays/offload_play.h"
#include "plays/page_play.h"
#include "plays/sword_play.h"
#include "plays/tree_play.h"
#include "plays/verbs_play.h"
#include "plays/vlist_play.h"
#include "plays/walk_play.h"
#include "sim/lin_file.h"

/* Of one name, the first is what it means without --kind. */
static const struct play *const plays[] = {
	&verbs_play, &offload_play, &kv_play,	&vlist_play,   &tree_play,
	&sword_play, &switch_play,  &page_play, &hostile_play, &walk_play,
	&mind_play,  &elastic_play, NULL,
};

static int paging(int argc, char **argv)
{
	return paging_figure_cmd(edm_net_choices, argc, argv);
}

static const struct cli_entry others[] = {
	{"paging", paging,
	 "far paging with many clients, beside the ODRP paper's figures"},
	{"control", control_play_cmd,
	 "controllers that fail over, nodes, quotas, on virtual time"},
	{"tier", tier_figure_cmd,
	 "memory tiers, beside the figures of the chapter on CXL"},
	{"check", sim_check_cmd, "is a recorded history linearizable"},
	{"nic-model", model_figure_cmd,
	 "the host cost model beside the published figures"},
	{"edm", sim_edm_cmd,
	 "the memory fabric in the Ethernet PHY, and rivals"},
	{"claims", sim_claims_cmd,
	 "every published claim, its value here, and what shows it"},
	{NULL, NULL, NULL},
};

static int play(int argc, char **argv)
{
	/* The model check has options of its own. */
	for (int i = 1; i < argc && !strcmp(argv[0], mind_play.name); i++)
		if (!strcmp(argv[i], "--model"))
			return mind_model_cmd(argc, argv);
	return play_cmd(plays, edm_net_choices, argc, argv);
}

int main(int argc, char **argv)
{
	static const struct cli_command self = {
		.name = "sim",
		.summary = "run the simulator",
		.usage = "NAME [OPTION...]",
	};
	struct cli_entry table[ARRAY_LEN(plays) + ARRAY_LEN(others)];
	struct cli_entry *at = table;

	for (unsigned i = 0; plays[i]; i++)
		if (!i || strcmp(plays[i]->name, plays[i - 1]->name) != 0)
			*at++ = (struct cli_entry){plays[i]->name, play,
						   plays[i]->summary};
	memcpy(at, others, sizeof(others));
	return cli_flush(cli_group_run(&self, table, argc, argv));
}
