/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim NAME`: the simulator's scenarios, by name. */
#include "cli.h"
#include "edm.h"
#include "edm_net.h"
#include "hostile_play.h"
#include "kv_play.h"
#include "lin_file.h"
#include "model_check.h"
#include "offload_play.h"
#include "paging_cmd.h"
#include "sword_play.h"
#include "tor_cmd.h"
#include "verbs_cmd.h"
#include "vlist_play.h"

static int verbs(int argc, char **argv)
{
	return sim_verbs_cmd(argc, argv, edm_net_choices);
}

static int offload(int argc, char **argv)
{
	return scenario_offload_cmd(argc, argv, edm_net_choices);
}

static int kv(int argc, char **argv)
{
	return kv_play_cmd(argc, argv, edm_net_choices);
}

static const struct cli_entry scenarios[] = {
	{"verbs", verbs, "the NIC over a faulty network, every byte checked"},
	{"offload", offload,
	 "asynchronous far memory while engines are killed"},
	{"kv", kv, "a key-value table whose clients die or sleep"},
	{"paging", paging_figure_cmd,
	 "far paging with many clients, beside the ODRP paper's figures"},
	{"check", sim_check_cmd, "is a recorded history linearizable"},
	{"switch", scenario_tor_cmd,
	 "verbs through the programmable switch and its programs"},
	{"swordbox", sword_play_cmd,
	 "atomics replaced by the switch, histories checked"},
	{"index", vlist_play_cmd,
	 "a version-list store, with and without steering by the switch"},
	{"hostile", hostile_play_cmd,
	 "one tenant does its worst, the others keep data and pace"},
	{"nic-model", sim_model_cmd,
	 "the host cost model beside the published figures"},
	{"edm", sim_edm_cmd,
	 "the memory fabric in the Ethernet PHY, and rivals"},
	{NULL, NULL, NULL},
};

int cmd_sim(const struct cli_command *self, int argc, char **argv)
{
	return cli_group_run(self, scenarios, argc, argv);
}
