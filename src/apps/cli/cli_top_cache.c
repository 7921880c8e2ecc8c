/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of shared memory of this machine, in `aquifer top` and `status`. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli_rack.h"
#include "cli_top.h"

enum {
	KEY_BYTES = 32,
};

/* Columns, and where a process has their number. */
static const struct {
	const char *key, *head;
	size_t offset;
} columns[] = {
	{"faults", "FAULTS", offsetof(struct cli_top_process, faults)},
	{"gets_read", "READ", offsetof(struct cli_top_process, gets_read)},
	{"gets_write", "WRITE", offsetof(struct cli_top_process, gets_write)},
	{"refused", "REFUSED", offsetof(struct cli_top_process, refused)},
	{"invalidations", "INVALS", offsetof(struct cli_top_process, invals)},
	{"given_back", "GIVEN", offsetof(struct cli_top_process, gives)},
	{"evictions", "EVICTED", offsetof(struct cli_top_process, evictions)},
};

static const char *key_of(unsigned i, bool is_rate, char out[KEY_BYTES])
{
	(void)snprintf(out, KEY_BYTES, "%s%s", columns[i].key,
		       is_rate ? "_per_s" : "");
	return out;
}

static json_t *row_of(const struct cli_top_process *p, const uint64_t *ns)
{
	json_t *row = json_object();
	char key[KEY_BYTES];

	(void)json_object_set_new(row, "pid", json_integer((json_int_t)p->pid));
	(void)json_object_set_new(row, "cached_bytes",
				  json_integer((json_int_t)p->cached_bytes));
	for (unsigned i = 0; i < ARRAY_LEN(columns); i++) {
		const char *at = (const char *)p + columns[i].offset;
		uint64_t v = *(const uint64_t *)(const void *)at;
		json_t *number =
			ns ? json_real(*ns ? (double)v * 1e9 / (double)*ns : 0)
			   : json_integer((json_int_t)v);

		(void)json_object_set_new(row, key_of(i, ns != NULL, key),
					  number);
	}
	return row;
}

json_t *cli_top_caches(const struct cli_top_sample *s, const uint64_t *ns)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < s->process_count; i++)
		if (s->process[i].is_cache)
			(void)json_array_append_new(rows,
						    row_of(&s->process[i], ns));
	return rows;
}

json_t *cli_top_caches_of(const char *rundir)
{
	struct cli_top_sample *s = calloc(1, sizeof(*s));
	json_t *rows;

	if (!s)
		return json_array();
	cli_top_take(rundir, s);
	rows = cli_top_caches(s, NULL);
	cli_top_release(s);
	free(s);
	return rows;
}

void cli_top_print_caches(const json_t *rows, bool is_rate)
{
	char key[KEY_BYTES], size[16];
	const json_t *row;
	size_t i;

	if (!json_array_size(rows))
		return;
	printf("\n%8s %-13s %8s", "PID", "SHARED MEMORY", "CACHED");
	for (unsigned k = 0; k < ARRAY_LEN(columns); k++) {
		(void)snprintf(key, sizeof(key), "%s%s", columns[k].head,
			       is_rate ? "/s" : "");
		printf(" %10s", key);
	}
	printf("\n");
	json_array_foreach(rows, i, row)
	{
		json_int_t pid =
			json_integer_value(json_object_get(row, "pid"));
		json_int_t bytes = json_integer_value(
			json_object_get(row, "cached_bytes"));

		printf("%8lld %-13s %8s", (long long)pid, "cache",
		       cli_rack_size((uint64_t)bytes, size));
		for (unsigned k = 0; k < ARRAY_LEN(columns); k++)
			printf(" %10.0f",
			       json_number_value(json_object_get(
				       row, key_of(k, is_rate, key))));
		printf("\n");
	}
}
