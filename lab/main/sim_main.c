/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim NAME`: plays and figures of the simulator, by name. */
#include "cli/cli.h"
#include "edm/edm.h"
#include "edm/edm_net.h"
#include "figures/paging_cmd.h"
#include "plays/hostile_play.h"
#include "plays/kv_play.h"
#include "plays/offload_play.h"
#include "plays/sword_play.h"
#include "plays/tor_cmd.h"
#include "plays/verbs_cmd.h"
#include "plays/vlist_play.h"
#include "sim/lin_file.h"
#include "sim/model_check.h"

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

int main(int argc, char **argv)
{
	static const struct cli_command self = {
		.name = "sim",
		.summary = "run the simulator",
		.usage = "NAME [OPTION...]",
	};

	return cli_flush(cli_group_run(&self, scenarios, argc, argv));
}
