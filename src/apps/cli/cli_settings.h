/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in effect: option over environment over rack.ini. */
#ifndef AQ_CLI_SETTINGS_H
#define AQ_CLI_SETTINGS_H

#include <jansson.h>

#include "cli.h"

struct config;

/* Reads everything and lays the options over it. Says on stderr what is wrong
 * when it fails. Release with config_destroy. */
int cli_settings_load(const struct cli_args *args,
		      struct config **out) MUST_CHECK;

/* soft, hw or auto; lives as long as the config. */
const char *cli_settings_nic(const struct config *config);

/* Adds every setting with its source, and the runtime directory. */
void cli_settings_report(const struct config *config, json_t *tree);

#endif
