/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants have on all nodes together, and the end of one. */
#include "cli_tenant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli_report.h"

enum {
	NAMES_BYTES = 400, /* of a line on stderr */
};

/* ---- ls ----------------------------------------------------------------- */

static json_int_t number(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static void add(json_t *row, const char *key, json_int_t more)
{
	(void)json_object_set_new(row, key,
				  json_integer(number(row, key) + more));
}

static json_t *row_of(json_t *rows, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(
		rows, i,
		row) if (strcmp(json_string_value(json_object_get(row, "name")),
				name) == 0) return row;
	row = json_pack("{s:s, s:n, s:i, s:i, s:i, s:[]}", "name", name,
			"quota", "used", 0, "regions", 0, "connections", 0,
			"nodes");
	(void)json_array_append_new(rows, row);
	return row;
}

/* A controller says at which nodes a tenant has something. */
static void add_nodes(json_t *nodes, json_t *at, const char *node)
{
	const char *name;
	json_t *v;

	if (!at)
		(void)json_array_append_new(nodes, json_string(node));
	json_object_foreach(at, name, v)(void)
		json_array_append_new(nodes, json_string(name));
}

/* What one node says of its tenants; rows are added up over all nodes. */
static void merge(json_t *rows, const json_t *answer, const char *node)
{
	static const char *const sums[] = {"used", "regions", "connections"};
	const json_t *list = json_object_get(answer, "tenants");
	json_t *one, *row, *quota;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *name =
			json_string_value(json_object_get(one, "name"));

		if (!name || json_is_true(json_object_get(one, "ending")))
			continue;
		row = row_of(rows, name);
		for (size_t k = 0; k < ARRAY_LEN(sums); k++)
			add(row, sums[k], number(one, sums[k]));
		quota = json_object_get(row, "quota");
		if (json_is_null(quota))
			(void)json_object_set(row, "quota",
					      json_object_get(one, "quota"));
		else if (json_integer_value(quota) != number(one, "quota"))
			(void)json_object_set_new(row, "quotas_differ",
						  json_true());
		add_nodes(json_object_get(row, "nodes"),
			  json_object_get(one, "at"), node);
	}
}

static const char *quota_text(const json_t *row, char out[16])
{
	uint64_t quota = (uint64_t)number(row, "quota");

	if (json_is_true(json_object_get(row, "quotas_differ")))
		return "differs";
	return quota ? cli_rack_size(quota, out) : "none";
}

static void print_rows(const json_t *rows, size_t nodes)
{
	char quota[16], used[16];
	const json_t *row;
	size_t i;

	printf("%-24s %8s %8s %8s %12s %s\n", "TENANT", "QUOTA", "USED",
	       "REGIONS", "CONNECTIONS", "NODES");
	json_array_foreach(rows, i, row)
	{
		size_t at = json_array_size(json_object_get(row, "nodes"));

		printf("%-24s %8s %8s %8" JSON_INTEGER_FORMAT
		       " %12" JSON_INTEGER_FORMAT " %zu%s\n",
		       json_string_value(json_object_get(row, "name")),
		       quota_text(row, quota),
		       cli_rack_size((uint64_t)number(row, "used"), used),
		       number(row, "regions"), number(row, "connections"), at,
		       at < nodes ? " (not on all)" : "");
	}
}

int cli_tenant_ls(void *args)
{
	const struct cli_tenant *a = args;
	json_t *rows = json_array(), *answer;
	struct cli_admin m;
	int code;

	if (cli_admin_open_rack(&m)) {
		json_decref(rows);
		return CLI_FAILED;
	}
	for (unsigned i = 0; i < m.rack.node_count; i++) {
		int err = cli_admin_ask(&m, i, "GET", "/v1/tenants", NULL,
					&answer);

		cli_admin_note(&m, i, err);
		if (!err)
			merge(rows, answer, m.rack.node[i].name);
		json_decref(answer);
	}
	code = cli_admin_has_nodes(&m);
	if (!code && json_array_size(m.failed))
		code = CLI_FAILED;
	if (!a->common.json)
		print_rows(rows, m.controllers ? 0 : json_array_size(m.done));
	else if (cli_report_print(json_pack("{s:O, s:O, s:O}", "tenants", rows,
					    "nodes", m.done, "failed",
					    m.failed),
				  true))
		code = CLI_FAILED;
	json_decref(rows);
	cli_admin_close(&m);
	return code;
}

/* ---- rm ----------------------------------------------------------------- */

/* What a tenant has, over all nodes. */
struct belongings {
	unsigned nodes; /* that know it */
	size_t regions;
	uint64_t bytes;
	json_t *names; /* "a (4M, node m0)" */
};

static void take_names(struct belongings *b, const json_t *answer,
		       const char *node)
{
	const json_t *row, *names = json_object_get(answer, "names");
	char size[16];
	size_t i;

	b->bytes += (uint64_t)number(answer, "used");
	json_array_foreach(names, i, row)
	{
		(void)json_array_append_new(
			b->names,
			json_sprintf(
				"%s (%s, node %s)",
				json_string_value(json_object_get(row, "name")),
				cli_rack_size((uint64_t)number(row, "size"),
					      size),
				node));
		b->regions++;
	}
}

/* Nodes that do not answer are noted as failed. */
static void look(struct cli_admin *m, const char *path, struct belongings *b)
{
	for (unsigned i = 0; i < m->rack.node_count; i++) {
		json_t *answer;
		int err = cli_admin_ask(m, i, "GET", path, NULL, &answer);

		if (!err) {
			b->nodes++;
			take_names(b, answer, m->rack.node[i].name);
		} else if (err != -ENOENT) {
			cli_admin_note(m, i, err);
		}
		json_decref(answer);
	}
}

static int refuse(const struct cli_tenant *a, const struct belongings *b)
{
	char names[NAMES_BYTES] = "", size[16];
	json_t *name;
	size_t i, used = 0;

	json_array_foreach(b->names, i, name)
	{
		int n = snprintf(names + used, sizeof(names) - used, "%s%s",
				 i ? ", " : ": ", json_string_value(name));

		if (n < 0 || (size_t)n >= sizeof(names) - used) {
			/* What is left out is in the number of regions. */
			(void)snprintf(names + used, sizeof(names) - used,
				       " ...");
			break;
		}
		used += (size_t)n;
	}
	cli_error("tenant %s has %zu region%s and uses %s%s; --force removes "
		  "it with all of that",
		  a->common.word[0], b->regions, b->regions == 1 ? "" : "s",
		  cli_rack_size(b->bytes, size), names);
	return CLI_FAILED;
}

static void remove_all(struct cli_admin *m, const char *path)
{
	for (unsigned i = 0; i < m->rack.node_count; i++) {
		json_t *reply;
		int err = cli_admin_ask(m, i, "DELETE", path, NULL, &reply);

		json_decref(reply);
		if (err != -ENOENT)
			cli_admin_note(m, i, err);
	}
}

static int rm(struct cli_admin *m, const struct cli_tenant *a, const char *path,
	      struct belongings *b)
{
	look(m, path, b);
	if (json_array_size(m->failed) && !a->force) {
		cli_error("not all nodes say what the tenant has there; "
			  "--force removes it from the others");
		return CLI_FAILED;
	}
	(void)json_array_clear(m->failed);
	if (!b->nodes && m->rack.node_count) {
		cli_error("there is no tenant %s", a->common.word[0]);
		return CLI_FAILED;
	}
	if ((b->regions || b->bytes) && !a->force)
		return refuse(a, b);
	remove_all(m, path);
	return cli_admin_report(m,
				json_pack("{s:s, s:b, s:I, s:I}", "name",
					  a->common.word[0], "removed", 1,
					  "regions", (json_int_t)b->regions,
					  "used_bytes", (json_int_t)b->bytes),
				a->common.json);
}

int cli_tenant_rm(void *args)
{
	const struct cli_tenant *a = args;
	struct belongings b = {.names = json_array()};
	char path[CLIENT_ADDRESS_MAX];
	struct cli_admin m;
	int code = CLI_USAGE;

	if (cli_admin_path(path, a->common.word[0], "") == 0)
		code = cli_admin_open_rack(&m) ? CLI_FAILED : CLI_GO;
	if (code == CLI_GO) {
		code = cli_admin_has_nodes(&m);
		if (!code)
			code = rm(&m, a, path, &b);
		cli_admin_close(&m);
	}
	json_decref(b.names);
	return code;
}
