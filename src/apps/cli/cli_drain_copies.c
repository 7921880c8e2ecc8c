/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks with copies on a drained node: the controller moves them; here it is
 * looked at which are still there. */
#include <stdio.h>
#include <string.h>

#include "cli_drain.h"

enum {
	KEY_BYTES = 640, /* a tenant and a whole path */
};

uint64_t cli_drain_copies_note(json_t *copied, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "blocks"), *row;
	char key[KEY_BYTES];
	uint64_t n = 0;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (cli_drain_number(row, "copies") < 2)
			continue;
		n += cli_drain_number(row, "blocks");
		(void)snprintf(key, sizeof(key), "%s %s",
			       cli_drain_text(row, "tenant"),
			       cli_drain_text(row, "path"));
		(void)json_object_set(copied, key, (json_t *)(uintptr_t)row);
	}
	return n;
}

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
	return strcmp(cli_drain_text(a, key), cli_drain_text(b, key)) == 0;
}

static bool is_left(const json_t *answer, const json_t *copied)
{
	const json_t *rows = json_object_get(answer, "blocks"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (is_same(row, copied, "tenant") &&
		    is_same(row, copied, "path"))
			return true;
	}
	return false;
}

void cli_drain_copies_list(json_t *copied, const json_t *answer, json_t *moved,
			   bool as_json)
{
	const json_t *row;
	const char *key;

	json_object_foreach(copied, key, row)
	{
		const char *tenant = cli_drain_text(row, "tenant");
		const char *path = cli_drain_text(row, "path");

		if (is_left(answer, row))
			continue;
		(void)json_array_append_new(
			moved, json_pack("{s:s, s:s}", "tenant", tenant,
					 cli_drain_text(row, "kind"), path));
		if (!as_json)
			printf("blocks of %s of tenant %s: moved\n", path,
			       tenant);
	}
}
