/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer down`: ends what `aquifer up` started, and nothing else. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_swap.h"

enum {
	STOP_MS = 10000,
};

struct victim {
	char name[CLIENT_NODE_NAME_MAX];
	struct cli_proc proc;
	bool is_alive;
};

/* All nodes with a pid file. */
static unsigned find_victims(const char *rundir,
			     struct victim victims[CLIENT_NODE_MAX])
{
	unsigned count = 0;
	DIR *dir = opendir(rundir);
	struct dirent *d;

	while (dir && count < CLIENT_NODE_MAX && (d = readdir(dir))) {
		struct victim *v = &victims[count];
		size_t len = strlen(d->d_name);

		if (len < 5 || len - 4 >= sizeof(v->name) ||
		    strcmp(d->d_name + len - 4, ".pid") != 0)
			continue;
		memcpy(v->name, d->d_name, len - 4);
		v->name[len - 4] = '\0';
		if (!client_node_name_is_valid(v->name) ||
		    swap_server_is_name(v->name))
			continue;
		v->is_alive = cli_proc_find(rundir, v->name, &v->proc) == 0;
		count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

static int end_one(const char *rundir, const struct victim *v, json_t *row)
{
	int how = v->is_alive ? cli_proc_wait(&v->proc, STOP_MS) : 0;

	cli_report_set(row, "name", "%s", v->name);
	if (how < 0) {
		cli_report_set(row, "state", "still up");
		cli_error("node %s (pid %d) cannot be ended: %s", v->name,
			  (int)v->proc.pid, strerror(-how));
		return how;
	}
	cli_proc_forget(rundir, v->name);
	cli_report_set(row, "state", "%s",
		       !v->is_alive ? "was gone"
		       : how	    ? "killed"
				    : "down");
	if (how)
		cli_error("node %s did not end within %d s and was killed",
			  v->name, STOP_MS / 1000);
	return 0;
}

static int end_all(const struct cli_rack *rack, bool as_json)
{
	struct victim victims[CLIENT_NODE_MAX];
	unsigned i, count = find_victims(rack->rundir, victims);
	json_t *tree = json_object(), *rows = json_array();
	int failed = 0;

	/* All at once, then wait for each: they end side by side. */
	for (i = 0; i < count; i++)
		if (victims[i].is_alive && cli_proc_end(&victims[i].proc))
			failed++;
	for (i = 0; i < count; i++) {
		json_t *row = json_object();

		failed += end_one(rack->rundir, &victims[i], row) != 0;
		(void)json_array_append_new(rows, row);
	}
	cli_report_set(tree, "rack", "%s", rack->name);
	(void)json_object_set_new(tree, "nodes", rows);
	if (cli_report_print(tree, as_json) != 0)
		return CLI_FAILED;
	return failed ? CLI_FAILED : CLI_OK;
}

/* Its pages would be lost, and the programs that have them with them. */
static int refuse_swap(const char *rundir)
{
	DIR *dir = opendir(rundir);
	struct cli_proc proc;
	struct dirent *d;
	bool is_found = false;

	while (dir && !is_found && (d = readdir(dir))) {
		char *dot = strrchr(d->d_name, '.');

		if (!swap_server_is_name(d->d_name) || !dot ||
		    strcmp(dot, ".pid") != 0)
			continue;
		*dot = '\0';
		is_found = cli_proc_find(rundir, d->d_name, &proc) == 0;
	}
	if (dir)
		closedir(dir);
	if (is_found)
		cli_error("this machine swaps to the rack (process %d); first "
			  "'aquifer swap off'",
			  (int)proc.pid);
	return is_found ? -EBUSY : 0;
}

int cmd_down(const struct cli_command *self, int argc, char **argv)
{
	struct cli_rack rack;
	bool as_json;
	int code = cli_rack_parse(self, argc, argv, false, &as_json, &rack);

	if (code != CLI_GO)
		return code;
	code = refuse_swap(rack.rundir) ? CLI_FAILED : end_all(&rack, as_json);
	cli_rack_close(&rack);
	return code;
}
