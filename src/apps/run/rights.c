/* SPDX-License-Identifier: Apache-2.0 */
/* What the pager gives up. */
#include "rights.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/rundir.h"
#include "confine/confine.h"

/* Under sudo rack.ini may be in the home of who called it, whom we do not
 * become. */
static bool is_others(const char *path)
{
	struct stat st;

	return path[0] && stat(path, &st) == 0 && st.st_uid != geteuid();
}

static int confine_in(struct confine *c, const struct config *config,
		      const char *rack)
{
	char rundir[RUNDIR_PATH_MAX];
	int err;

	if (!rack)
		rack = config_string(config, "rack", "name");
	confine_set_rack(c, config);
	/* As root, who hands the directory over to whom we become. */
	err = confine_add_rack(c, config, rack, rundir);
	c->others_files = geteuid() == 0 && is_others(c->config_path);
	return err ? err : confine_start(c);
}

int run_confine(const char *rack)
{
	struct confine c = {0};
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	err = confine_in(&c, config, rack);
	config_destroy(config);
	return err;
}
