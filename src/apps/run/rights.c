/* SPDX-License-Identifier: Apache-2.0 */
/* What the pager gives up. */
#include "rights.h"

#include <string.h>
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
	const char *own = config_string(config, "rack", "name");
	char rundir[RUNDIR_PATH_MAX], asked[RUNDIR_PATH_MAX] = "";
	int err = 0;

	confine_set_rack(c, config);
	/* Root hands the rack's directory over to who serves it. */
	if (c->user)
		err = rundir_make(own, rundir);
	if (!err)
		err = confine_add_rack(c, config, rundir);
	if (!err && rack && strcmp(rack, own) != 0)
		err = rundir_path(rack, asked);
	if (!err)
		err = confine_add(c, CONFINE_READ, asked);
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
