/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer walk run`, `plan`, `list` and `drop`. */
#include "cli_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "cli_report.h"
#include "client/keepalive.h"
#include "client/link.h"

/* ---- words --------------------------------------------------------------- */

static int parse_start(const char *word, uint64_t *start)
{
	char *end;

	errno = 0;
	*start = strtoull(word, &end, 0);
	return errno == 0 && end != word && *end == '\0' && word[0] != '-'
		       ? 0
		       : error_set(-EINVAL,
				   "START is an offset in the region, 4096 or "
				   "0x1000, not '%.40s'",
				   word);
}

static int read_pad(const char *path, uint8_t pad[AQ_WALK_PAD_MAX], size_t *len)
{
	FILE *f = fopen(path, "re");
	bool is_long;
	int err;

	if (!f)
		return error_set(-errno, "%s: %s; check the path", path,
				 strerror(errno));
	*len = fread(pad, 1, AQ_WALK_PAD_MAX, f);
	is_long = *len == AQ_WALK_PAD_MAX && fgetc(f) != EOF;
	err = ferror(f) ? error_set(-EIO, "%s cannot be read", path) : 0;
	(void)fclose(f); /* it was only read */
	return is_long ? error_set(-EINVAL, "%s has more than %d bytes", path,
				   AQ_WALK_PAD_MAX)
		       : err;
}

static int parse_pad(const char *word, uint8_t pad[AQ_WALK_PAD_MAX],
		     size_t *len)
{
	*len = 0;
	if (!word)
		return 0;
	if (word[0] == '@')
		return read_pad(word + 1, pad, len);
	*len = strlen(word) / 2;
	if (*len <= AQ_WALK_PAD_MAX && hex_read(word, pad, *len))
		return 0;
	return error_set(-EINVAL,
			 "--pad has two hexadecimal digits for each of up to "
			 "%d bytes, or is @FILE",
			 AQ_WALK_PAD_MAX);
}

/* The file and the region that the words name. What is wrong with the words is
 * said before a rack is looked for. */
static int open_both(struct cli_walk_args *a, struct aq_walk **walk,
		     struct aq_region **region)
{
	bool by_switch = a->cross && strcmp(a->cross, "switch") == 0;
	const struct aq_walk_options o = {
		.flags = (a->is_here ? AQ_WALK_HERE : 0u) |
			 (a->is_there ? AQ_WALK_THERE : 0u) |
			 (by_switch  ? AQ_WALK_CROSS_SWITCH
			  : a->cross ? AQ_WALK_CROSS_BOUNCE
				     : 0u),
		.iterations = a->iterations,
	};
	int err;

	if (a->is_here && a->is_there)
		return error_set(-EINVAL, "--here or --there, not both");
	if (a->cross && !by_switch && strcmp(a->cross, "bounce") != 0)
		return error_set(-EINVAL,
				 "--cross is switch or bounce, not '%.32s'",
				 a->cross);
	err = aq_rack_open(NULL, &a->common.rack);
	if (err)
		return err;
	err = aq_walk_load(a->common.rack, a->common.word[0], &o, walk);
	if (err)
		return err;
	err = aq_region_open(a->common.rack, a->common.word[1], 0, region);
	if (err)
		aq_walk_close(*walk);
	return err;
}

static const char *cross_word(uint32_t cross)
{
	if (cross == 0)
		return "one node";
	return cross == AQ_WALK_CROSS_SWITCH ? "switch" : "bounce";
}

static const char *where_word(uint32_t where)
{
	return where == AQ_WALK_HERE ? "here" : "there";
}

/* ---- run ----------------------------------------------------------------- */

static int run(const struct cli_walk_args *a, struct aq_walk *walk,
	       struct aq_region *region, uint64_t start,
	       uint8_t pad[AQ_WALK_PAD_MAX], size_t len)
{
	char text[2 * AQ_WALK_PAD_MAX + 1];
	struct aq_walk_result r;
	struct aq_walk_info info;
	int err = 0;

	aq_walk_info(walk, &info);
	if (len > info.pad_bytes)
		err = error_set(-EINVAL, "walk %s has a pad of %u bytes",
				info.name, info.pad_bytes);
	if (!err)
		err = aq_walk_run(walk, region, start, pad, info.pad_bytes, &r);
	if (err)
		return err;
	hex_write(text, pad, info.pad_bytes);
	return cli_report_print(
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s}", "walk",
			  info.name, "where", where_word(r.where), "iterations",
			  (json_int_t)r.iterations, "at", (json_int_t)r.at,
			  "requests", (json_int_t)r.requests, "crossings",
			  (json_int_t)r.crossings, "carried",
			  (json_int_t)r.carried, "pad", text),
		a->common.json);
}

int cli_walk_run(void *args)
{
	uint8_t pad[AQ_WALK_PAD_MAX] = {0};
	struct cli_walk_args *a = args;
	struct aq_region *region;
	struct aq_walk *walk;
	uint64_t start;
	size_t len;
	int err = parse_start(a->common.word[2], &start);

	if (!err)
		err = parse_pad(a->pad, pad, &len);
	if (!err)
		err = open_both(a, &walk, &region);
	if (err)
		return err;
	err = run(a, walk, region, start, pad, len);
	aq_walk_close(walk);
	aq_region_close(region);
	return err;
}

/* ---- plan ---------------------------------------------------------------- */

int cli_walk_plan(void *args)
{
	struct cli_walk_args *a = args;
	struct aq_walk_plan plan;
	struct aq_walk_info info;
	struct aq_region *region;
	struct aq_walk *walk;
	int err = open_both(a, &walk, &region);

	if (err)
		return err;
	aq_walk_info(walk, &info);
	err = aq_walk_plan(walk, region, &plan);
	if (!err)
		err = cli_report_print(
			json_pack("{s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:f, "
				  "s:f, s:f, s:i}",
				  "walk", info.name, "where",
				  where_word(plan.where), "why", plan.why,
				  "nodes", (int)plan.nodes, "cross",
				  cross_word(plan.cross), "longest",
				  (int)info.longest, "load_bytes",
				  (int)info.load_bytes, "compute_ns",
				  plan.compute_ns, "load_ns", plan.load_ns,
				  "eta", plan.eta, "iterations",
				  (int)plan.iterations),
			a->common.json);
	aq_walk_close(walk);
	aq_region_close(region);
	return err;
}

/* ---- list and drop ------------------------------------------------------- */

typedef int (*node_fn)(struct aq_rack *rack, const struct client_node *node,
		       const json_t *walks, void *user);

static int call(struct aq_rack *rack, const struct client_node *node,
		const char *method, const char *path, json_t **reply)
{
	const struct client_caller *caller;
	int err = client_keep_caller(rack, &caller);

	return err ? err
		   : client_call(caller, node, method, path, NULL,
				 aq_rack_deadline(rack), CLIENT_LIST_MAX,
				 reply);
}

/* What each node has. The first failure is returned, after all were asked. */
static int each_node(struct aq_rack *rack, node_fn each, void *user)
{
	uint32_t count = client_link_node_count(rack);
	int first = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct client_node *node = client_keep_node(rack, i);
		json_t *reply = NULL;
		int err = call(rack, node, "GET", "/v1/walks", &reply);

		if (!err)
			err = each(rack, node, json_object_get(reply, "walks"),
				   user);
		json_decref(reply);
		if (err && first)
			cli_error_last(err);
		else if (err)
			first = err;
	}
	return first;
}

static const char *text_of(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "-";
}

static long long number_of(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static int take_rows(struct aq_rack *rack, const struct client_node *node,
		     const json_t *walks, void *user)
{
	json_t *row;
	size_t i;

	json_array_foreach(walks, i, row)
	{
		cli_report_set(row, "node", "%s", node->name);
		(void)json_array_append(user, row);
	}
	return 0;
}

static void print_rows(const json_t *rows)
{
	const json_t *row;
	size_t i;

	printf("%-16s %-24s %-12s %7s %6s %10s %12s\n", "WALK", "NAME", "NODE",
	       "LONGEST", "LOADS", "RUNS", "ITERATIONS");
	json_array_foreach(rows, i, row)
		printf("%-16s %-24s %-12s %7lld %6lld %10lld %12lld\n",
		       text_of(row, "hash"), text_of(row, "name"),
		       text_of(row, "node"), number_of(row, "longest"),
		       number_of(row, "load_bytes"), number_of(row, "runs"),
		       number_of(row, "iterations"));
}

int cli_walk_list(void *args)
{
	const struct cli_walk_args *a = args;
	json_t *rows = json_array();
	int err = each_node(a->common.rack, take_rows, rows);

	if (!err && a->common.json)
		err = cli_report_print(json_pack("{s:O}", "walks", rows), true);
	else if (!err)
		print_rows(rows);
	json_decref(rows);
	return err;
}

struct drop {
	const char *word; /* hash or name */
	json_int_t count;
};

static int drop_rows(struct aq_rack *rack, const struct client_node *node,
		     const json_t *walks, void *user)
{
	struct drop *d = user;
	const json_t *row;
	int err = 0;
	size_t i;

	json_array_foreach(walks, i, row)
	{
		const char *hash = text_of(row, "hash");
		char path[64];
		json_t *reply = NULL;
		int one;

		if (strcmp(hash, d->word) != 0 &&
		    strcmp(text_of(row, "name"), d->word) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "/v1/walks/%.16s", hash);
		one = call(rack, node, "DELETE", path, &reply);
		json_decref(reply);
		d->count += !one;
		err = err ? err : one;
	}
	return err;
}

int cli_walk_drop(void *args)
{
	const struct cli_walk_args *a = args;
	struct drop d = {.word = a->common.word[0]};
	int err = each_node(a->common.rack, drop_rows, &d);

	if (!err && !d.count)
		err = error_set(-ENOENT,
				"no node has a walk %s; `aquifer walk list` "
				"shows those that there are",
				d.word);
	return err || !a->common.json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:I}", "walk",
						    d.word, "dropped", d.count),
					  true);
}
