/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for names, and prints them. */
#include "cli_ns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli.h"

enum {
	DEPTH_MAX = 30, /* that is shown by the indent */
};

/* Before it goes into a URL, where dots would be taken for steps up. */
static bool is_path(const char *path)
{
	while (*path) {
		size_t len = strspn(path, "abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789-_.");

		if (!len || *path == '.' || *path == '-' ||
		    (path[len] && path[len] != '/'))
			return false;
		path += len + (path[len] == '/');
	}
	return true;
}

int cli_ns_path(const char *route, const char *path, char out[CLI_NS_PATH_MAX])
{
	const char *rest = path + (*path == '/');
	int len = snprintf(out, CLI_NS_PATH_MAX, "%s%s%s", route,
			   *rest ? "/" : "", rest);

	if (len < CLI_NS_PATH_MAX && is_path(rest))
		return CLI_GO;
	cli_error("a path has names with '/' between them: letters, digits, "
		  "'-', '_' and '.', not beginning with '-' or '.', and %d "
		  "characters at most; not '%.60s'",
		  CLI_NS_PATH_MAX - 16, path);
	return CLI_USAGE;
}

int cli_ns_ask(const char *method, const char *route, const char *path,
	       json_t *body, json_t **reply)
{
	char whole[CLI_NS_PATH_MAX];
	struct cli_admin m;
	int err, code = cli_ns_path(route, path, whole);

	*reply = NULL;
	if (code == CLI_GO && cli_admin_open_names(&m))
		code = CLI_FAILED;
	if (code != CLI_GO) {
		json_decref(body);
		return code;
	}
	err = cli_admin_ask(&m, 0, method, whole, body, reply);
	if (err)
		cli_error("%s", error_last());
	cli_admin_close(&m);
	return err ? CLI_FAILED : CLI_OK;
}

/* ---- printing ----------------------------------------------------------- */

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s && *s ? s : "-";
}

static uint64_t number(const json_t *row, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(row, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* "live 7.2 s" */
static void lease_words(const json_t *row, char out[40])
{
	const json_t *lease = json_object_get(row, "lease");
	const json_t *left = json_object_get(lease, "left_ms");

	if (left && json_integer_value(left))
		(void)snprintf(out, 40, "%s %.1f s", text(lease, "state"),
			       (double)json_integer_value(left) / 1000);
	else
		(void)snprintf(out, 40, "%s", text(lease, "state"));
}

static bool is_object(const json_t *row)
{
	return json_object_get(row, "blocks") != NULL;
}

void cli_ns_print_list(const json_t *names)
{
	const json_t *row;
	size_t i;

	printf("%-8s %-6s %-16s %6s %8s %8s  %s\n", "KIND", "STATE", "LEASE",
	       "BLOCKS", "BYTES", "USED", "PATH");
	json_array_foreach(names, i, row)
	{
		char lease[40], bytes[16] = "-", used[16] = "-";
		char blocks[24] = "-";

		lease_words(row, lease);
		if (is_object(row)) {
			(void)cli_rack_size(number(row, "bytes"), bytes);
			(void)cli_rack_size(number(row, "used"), used);
			(void)snprintf(
				blocks, sizeof(blocks), "%llu",
				(unsigned long long)number(row, "blocks"));
		}
		printf("%-8s %-6s %-16s %6s %8s %8s  %s\n", text(row, "kind"),
		       text(row, "state"), lease, blocks, bytes, used,
		       text(row, "path"));
	}
}

static void print_parents(const json_t *row)
{
	const json_t *parents = json_object_get(row, "parents"), *name;
	size_t i;

	if (json_array_size(parents) < 2)
		return;
	fputs(", after", stdout);
	json_array_foreach(parents, i, name)
		printf("%s %s", i ? "," : "", json_string_value(name));
}

static void print_row(const json_t *row, unsigned depth)
{
	unsigned deep = depth < DEPTH_MAX ? depth : DEPTH_MAX;
	char lease[40];

	lease_words(row, lease);
	printf("%*s%s%s  %s", (int)(2 * deep), "", text(row, "name"),
	       is_object(row) ? "" : "/", text(row, "kind"));
	if (is_object(row))
		printf(" %s, %llu block%s", text(row, "state"),
		       (unsigned long long)number(row, "blocks"),
		       number(row, "blocks") == 1 ? "" : "s");
	else
		printf(", lease %s", lease);
	print_parents(row);
	putchar('\n');
}

/* A task stands once, below the first of its parents. */
static void print_below(const json_t *below, const char *parent, unsigned depth)
{
	const json_t *rows = json_object_get(below, parent), *row;
	char key[24];
	size_t i;

	json_array_foreach(rows, i, row)
	{
		print_row(row, depth);
		(void)snprintf(key, sizeof(key), "%llu",
			       (unsigned long long)number(row, "id"));
		if (!is_object(row))
			print_below(below, key, depth + 1);
	}
}

void cli_ns_print_tree(const json_t *names)
{
	json_t *below = json_object(),
	       *row; /* rows by the id of their parent */
	uint64_t top = number(json_array_get(names, 0), "parent");
	char key[24];
	size_t i;

	json_array_foreach(names, i, row)
	{
		uint64_t parent = number(row, "parent");

		(void)snprintf(key, sizeof(key), "%llu",
			       (unsigned long long)parent);
		if (!json_object_get(below, key))
			(void)json_object_set_new(below, key, json_array());
		(void)json_array_append(json_object_get(below, key), row);
	}
	(void)snprintf(key, sizeof(key), "%llu", (unsigned long long)top);
	print_below(below, key, 0);
	json_decref(below);
}
