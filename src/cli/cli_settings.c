/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the settings in effect. */
#include "cli_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"

int cli_settings_load(const struct cli_args *args, struct cli_settings *out)
{
	const char *env = getenv("AQUIFER_NIC");

	if (args->nic)
		out->nic = args->nic;
	else if (env && *env)
		out->nic = env;
	else
		out->nic = "auto";
	return 0;
}

void cli_settings_release(struct cli_settings *settings)
{
}

void cli_settings_report(const struct cli_settings *settings, json_t *tree)
{
	cli_report_set(tree, "setting_nic", "%s", settings->nic);
}
