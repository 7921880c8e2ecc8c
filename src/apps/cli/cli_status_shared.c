/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory in `aquifer status`: what the node that leads knows. */
#include <inttypes.h>
#include <stdio.h>

#include "cli_rack.h"
#include "cli_status.h"

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n < 0 ? 0 : (uint64_t)n;
}

static void print_one(const char *name, const json_t *shared)
{
	const json_t *c = json_object_get(shared, "counters");
	const char *why = json_string_value(json_object_get(shared, "why"));
	const char *lead = json_string_value(json_object_get(shared, "lead"));
	const json_t *nodes = json_object_get(shared, "nodes"), *row;
	char used[16], size[16];
	size_t i;

	if (lead) {
		printf("\nshared memory of node %s: %s, which node %s has in "
		       "use%s%s\n",
		       name, cli_rack_size(number(shared, "size"), size), lead,
		       why ? "; not ready: " : "", why ? why : "");
		return;
	}
	printf("\nshared memory of node %s: %s of %s, term %" PRIu64 "%s%s\n",
	       name, cli_rack_size(number(shared, "used"), used),
	       cli_rack_size(number(shared, "extent"), size),
	       number(shared, "term"), why ? "; not ready: " : "",
	       why ? why : "");
	json_array_foreach(nodes, i, row) if (json_array_size(nodes) > 1)
		printf("  at node %s: %s of %s%s\n",
		       json_string_value(json_object_get(row, "name")),
		       cli_rack_size(number(row, "used"), used),
		       cli_rack_size(number(row, "size"), size),
		       json_is_true(json_object_get(row, "here"))
			       ? ""
			       : ", which does not answer");
	if (c)
		printf("  its switch: %" PRIu64 " directory entries in use, "
		       "%" PRIu64 " gets, %" PRIu64 " invalidations, "
		       "%" PRIu64 " pages given back, %" PRIu64
		       " false invalidations\n",
		       number(c, "directory_used"), number(c, "gets"),
		       number(c, "invals"), number(c, "gives"),
		       number(c, "false_invals"));
}

void cli_status_print_shared(const json_t *nodes)
{
	const json_t *row;
	size_t i;

	json_array_foreach(nodes, i, row)
	{
		const json_t *shared = json_object_get(row, "shared");

		if (shared)
			print_one(
				json_string_value(json_object_get(row, "name")),
				shared);
	}
}
