/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the way to other machines, which client/reach.h knows. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "cli_check.h"
#include "client/hail_ask.h"
#include "client/reach.h"

static const struct client_hail_patience patience = {.tries = 3, .try_ms = 300};

static void take(const struct client_reach_result *r,
		 struct cli_check_result *out)
{
	static const enum cli_check_state states[] = {
		[CLIENT_REACH_OK] = CLI_CHECK_OK,
		[CLIENT_REACH_WARN] = CLI_CHECK_WARN,
		[CLIENT_REACH_MISSING] = CLI_CHECK_MISSING,
	};

	cli_check_found(out, states[r->state], "%s", r->found);
	cli_check_fix(out, "%s", r->fix);
}

/* False: the settings are wrong, which is said. */
static bool settings(struct cli_check_result *out, struct config **config)
{
	if (config_open(NULL, config) == 0)
		return true;
	cli_check_found(out, CLI_CHECK_WARN, "settings: %.200s", error_last());
	return false;
}

void cli_check_roce_port(struct cli_check_result *out)
{
	struct client_reach_result r = {0};
	struct config *config;

	if (!settings(out, &config))
		return;
	client_reach_own_port(config, &patience, &r);
	config_destroy(config);
	take(&r, out);
}

void cli_check_roce_mtu(struct cli_check_result *out)
{
	struct client_reach_result r = {0};
	struct config *config;

	if (!settings(out, &config))
		return;
	client_reach_own_mtu(config, &r);
	config_destroy(config);
	take(&r, out);
}

int cli_check_peer_create(const char *host, struct client_reach **out)
{
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	err = client_reach_create(config, host, &patience, out);
	config_destroy(config);
	return err;
}

void cli_check_peer_run(struct client_reach *p, unsigned row,
			struct cli_check_result *out)
{
	struct client_reach_result r;

	client_reach_look(p, (enum client_reach_row)row, &r);
	take(&r, out);
}
