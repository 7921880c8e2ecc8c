/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer down`: ends what `aquifer up` started, and nothing else. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config_named.h"
#include "cli.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_swap.h"
#include "cli_top.h"

enum {
	STOP_MS = 10000,
	ASK_MS = 1000,
};

enum kind {
	KIND_NODE,
	KIND_ENGINE,
	KIND_SWITCH,
	KIND_CONTROL,
	KIND_COUNT,
};

static const char *const kind_names[KIND_COUNT] = {
	[KIND_NODE] = "nodes",
	[KIND_ENGINE] = "engines",
	[KIND_SWITCH] = "switches",
	[KIND_CONTROL] = "controllers",
};

struct victim {
	char name[CLIENT_NODE_NAME_MAX];
	struct cli_proc proc;
	bool is_alive;
	enum kind kind;
};

static enum kind kind_of(const struct cli_rack *rack, const char *name)
{
	char path[RUNDIR_PATH_MAX + CLIENT_NODE_NAME_MAX + 16];
	unsigned i;

	for (i = 0; i < config_named_count(rack->config, "switch"); i++)
		if (strcmp(config_named_name(rack->config, "switch", i),
			   name) == 0)
			return KIND_SWITCH;
	/* The lock on its name, which they leave behind. */
	snprintf(path, sizeof(path), "%s/%s.control.lock", rack->rundir, name);
	if (access(path, F_OK) == 0)
		return KIND_CONTROL;
	snprintf(path, sizeof(path), "%s/%s.engine.lock", rack->rundir, name);
	return access(path, F_OK) == 0 ? KIND_ENGINE : KIND_NODE;
}

/* All with a pid file. */
static unsigned find_victims(const struct cli_rack *rack,
			     struct victim victims[CLIENT_NODE_MAX])
{
	const char *rundir = rack->rundir;
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
		v->kind = kind_of(rack, v->name);
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

/* What ends with the nodes, as they say themselves. */
static json_t *find_losses(const struct cli_rack *rack,
			   const struct victim *victims, unsigned count)
{
	json_int_t regions = 0, bytes = 0;
	unsigned i, k;

	for (i = 0; i < rack->node_count; i++) {
		json_t *status = NULL;

		for (k = 0; k < count; k++)
			if (victims[k].is_alive &&
			    victims[k].kind == KIND_NODE &&
			    strcmp(victims[k].name, rack->node[i].name) == 0)
				break;
		if (k == count ||
		    cli_rack_ask(rack, &rack->node[i], ASK_MS, &status))
			continue;
		regions +=
			json_integer_value(json_object_get(status, "regions"));
		bytes += json_integer_value(json_object_get(
			json_object_get(status, "pool"), "used"));
		json_decref(status);
	}
	return json_pack("{s:I, s:I}", "regions", regions, "bytes", bytes);
}

/* For people: what they might not have meant to end. */
static void print_losses(const json_t *losses, const json_t *clients)
{
	json_int_t bytes = json_integer_value(json_object_get(losses, "bytes"));
	json_int_t regions =
		json_integer_value(json_object_get(losses, "regions"));
	const json_t *row;
	char size[16];
	size_t i;

	json_array_foreach(clients, i, row)
	{
		const char *object =
			json_string_value(json_object_get(row, "object"));

		printf("%s (process %lld, %s%s%s) was connected\n",
		       json_string_value(json_object_get(row, "name")),
		       (long long)json_integer_value(
			       json_object_get(row, "pid")),
		       json_string_value(json_object_get(row, "kind")),
		       *object ? " " : "", object);
	}
	if (regions || bytes)
		printf("%lld region%s and %s of data are lost; memory nodes "
		       "keep nothing\n",
		       (long long)regions, regions == 1 ? "" : "s",
		       cli_rack_size((uint64_t)bytes, size));
}

static int end_all(const struct cli_rack *rack, bool as_json)
{
	struct victim victims[CLIENT_NODE_MAX];
	unsigned i, count = find_victims(rack, victims);
	json_t *tree = json_object(), *rows[KIND_COUNT];
	json_t *clients = cli_top_clients(rack->rundir);
	json_t *losses = find_losses(rack, victims, count);
	int err, failed = 0;

	for (i = 0; i < KIND_COUNT; i++)
		rows[i] = json_array();

	/* All at once, then wait for each: they end side by side. */
	for (i = 0; i < count; i++)
		if (victims[i].is_alive && cli_proc_end(&victims[i].proc))
			failed++;
	for (i = 0; i < count; i++) {
		json_t *row = json_object();

		failed += end_one(rack->rundir, &victims[i], row) != 0;
		(void)json_array_append_new(rows[victims[i].kind], row);
	}
	cli_report_set(tree, "rack", "%s", rack->name);
	for (i = 0; i < KIND_COUNT; i++)
		if (i == KIND_NODE || json_array_size(rows[i]) ||
		    (as_json && i != KIND_CONTROL))
			(void)json_object_set(tree, kind_names[i], rows[i]);
	if (as_json) {
		(void)json_object_set(tree, "clients", clients);
		(void)json_object_set(tree, "lost", losses);
	}
	err = cli_report_print(tree, as_json);
	if (!err && !as_json)
		print_losses(losses, clients);
	for (i = 0; i < KIND_COUNT; i++)
		json_decref(rows[i]);
	json_decref(clients);
	json_decref(losses);
	return err || failed ? CLI_FAILED : CLI_OK;
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
