/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in effect: option over environment over rack.ini. */
#ifndef AQ_CLI_SETTINGS_H
#define AQ_CLI_SETTINGS_H

#include <jansson.h>

#include "cli.h"

struct cli_settings {
	const char *nic; /* soft, hw or auto */
};

/* Says on stderr what is wrong when it fails. */
int cli_settings_load(const struct cli_args *args,
		      struct cli_settings *out) MUST_CHECK;
void cli_settings_release(struct cli_settings *settings);

/* Adds every setting with its source to the report. */
void cli_settings_report(const struct cli_settings *settings, json_t *tree);

#endif
