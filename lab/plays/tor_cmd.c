/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim switch`: random verbs through the shipped switch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "figures/commands.h"
#include "rig/tor_net.h"
#include "tor_cmd.h"
#include "verbs_cmd.h"

enum {
	WORDS_MAX = 64,
};

static const char usage[] =
	"usage: aquifer sim switch [--program NAME[:OPTIONS]]... [OPTION...]\n"
	"The scenario of 'aquifer sim verbs' through the shipped switch: "
	"every\n"
	"frame passes it and its programs, and every effect is checked.\n"
	"  --program   a program on the path, in the order given; see\n"
	"              aquifer-switch(1)\n"
	"The other options are those of 'aquifer sim verbs'.\n"
	"       aquifer sim switch --figure NAME|all [--quick] [--json]\n"
	"A figure of SwordBox on the costs of hardware; any wrong NAME lists\n"
	"them.\n";

static int start(void *ctx, struct sim_net *net, uint64_t seed, void **state)
{
	struct scenario_tor *t;
	int err = scenario_tor_create(net, ctx, &t);

	if (!err)
		*state = t;
	return err;
}

static void done(void *ctx, void *state)
{
	scenario_tor_destroy(state);
}

/* A wrong program is said once, and not by every seed. */
static int check(const struct scenario_tor_config *cfg, uint64_t seed)
{
	struct scenario_tor *t;
	struct sim_net *net;
	struct sim *sim;
	int err = sim_create(seed, &sim);

	if (err)
		return err;
	err = sim_net_create(sim, &net);
	if (!err) {
		err = scenario_tor_create(net, cfg, &t);
		if (!err)
			scenario_tor_destroy(t);
		sim_net_destroy(net);
	}
	sim_destroy(sim);
	return err;
}

int scenario_tor_cmd(int argc, char **argv)
{
	struct scenario_tor_config cfg = {0};
	struct sim_verbs_hook hook = {
		.start = start, .done = done, .ctx = &cfg};
	char *rest[WORDS_MAX];
	int count = 0;
	int err;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			fputs(usage, stdout);
			return 0;
		}
		if (strcmp(argv[i], "--figure") == 0)
			return vfig_cmd(argc, argv);
		if (strcmp(argv[i], "--program") == 0 && i + 1 < argc &&
		    cfg.program_count < SCENARIO_TOR_PROGRAMS)
			cfg.programs[cfg.program_count++] = argv[++i];
		else if (count < WORDS_MAX)
			rest[count++] = argv[i];
	}
	err = check(&cfg, 1);
	if (err) {
		fprintf(stderr, "sim switch: %s\n",
			error_last_code() == err ? error_last()
						 : strerror(-err));
		return 2;
	}
	return sim_verbs_cmd_hooked(count, rest, &hook);
}
