/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the settings in effect and shows where each came from. */
#include "cli_settings.h"

#include <errno.h>

#include "base/config.h"
#include "base/error.h"
#include "base/rundir.h"
#include "cli_report.h"

int cli_settings_load(const struct cli_args *args, struct config **out)
{
	struct config *config;
	int err = config_open(NULL, &config);

	if (err) {
		cli_error("%s", error_last());
		return err;
	}
	if (args->nic)
		err = config_set(config, "--nic", "nic", "mode", args->nic);
	if (err) {
		cli_error("%s", error_last());
		config_destroy(config);
		return err;
	}
	*out = config;
	return 0;
}

const char *cli_settings_nic(const struct config *config)
{
	return config_string(config, "nic", "mode");
}

void cli_settings_report(const struct config *config, json_t *tree)
{
	char path[RUNDIR_PATH_MAX];
	json_t *array = json_array();

	if (rundir_path(config_string(config, "rack", "name"), path) == 0)
		cli_report_set(tree, "runtime_directory", "%s", path);
	for (unsigned i = 0; i < config_key_count(); i++) {
		const struct config_key *key = config_key_at(i);
		json_t *row = json_object();

		cli_report_set(row, "name", "%s.%s", key->section, key->key);
		cli_report_set(row, "value", "%s", config_text_at(config, i));
		cli_report_set(row, "source", "%s", config_where_at(config, i));
		(void)json_array_append_new(array, row);
	}
	(void)json_object_set_new(tree, "settings", array);
}
