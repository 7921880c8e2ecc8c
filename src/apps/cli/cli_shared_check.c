/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer shared check`: what the node that leads finds when it compares
 * itself with the switch, and then this machine's cache. Whatever that may do
 * with a page the directory must know. Both are looked at one after the other,
 * while they are used, so only a contradiction that stays is one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli_report.h"
#include "cli_shared.h"
#include "sharedd/sharedd.h"

enum {
	PIECE_BYTES = 2 << 20, /* the largest region, and as many small ones */
	PIECES = 8,	       /* of a request: the node does nothing else */
	TRIES = 5,
	PAUSE_NS = 20 * 1000 * 1000,
};

/* Some rows: what is wrong of them is appended. */
static int ask_rows(const struct shd_held *h, json_t *held, json_t *wrong)
{
	json_t *answer;
	int err = cli_shared_ask("POST", "/v1/shared/check",
				 json_pack("{s:I, s:I, s:O}", "machine",
					   (json_int_t)h->machine, "term",
					   (json_int_t)h->term, "held", held),
				 &answer);

	if (err)
		return err;
	(void)json_array_extend(wrong, json_object_get(answer, "wrong"));
	json_decref(answer);
	(void)json_array_clear(held);
	return 0;
}

static int compare(const struct shd_held *h, json_t *wrong)
{
	json_t *held = json_array();
	int err = 0;

	for (uint32_t i = 0; !err && i < h->row_count; i++) {
		const struct shd_held_row *r = &h->row[i];

		for (uint64_t at = r->va, end = r->va + r->size_bytes, next;
		     !err && at < end; at = next) {
			next = at + PIECE_BYTES - at % PIECE_BYTES;
			next = next < end ? next : end;
			(void)json_array_append_new(
				held, json_pack("[I, I, I]", (json_int_t)at,
						(json_int_t)(next - at),
						(json_int_t)r->writes));
			if (json_array_size(held) == PIECES)
				err = ask_rows(h, held, wrong);
		}
	}
	if (!err && json_array_size(held))
		err = ask_rows(h, held, wrong);
	json_decref(held);
	return err;
}

/* The words that are in both. */
static json_t *in_both(json_t *a, const json_t *b)
{
	json_t *out = json_array(), *x;
	const json_t *y;
	size_t i, k;

	json_array_foreach(a, i, x) json_array_foreach(b, k, y)
	{
		if (json_equal(x, y))
			(void)json_array_append(out, x);
	}
	return out;
}

/* *bytes: what the cache has. */
static int look_once(const char *rack, json_t *wrong, uint64_t *bytes)
{
	struct shd_held *h;
	int err = shd_held_ask(rack, &h);

	*bytes = 0;
	if (err || !h)
		return err;
	if (h->wrong[0])
		(void)json_array_append_new(
			wrong, json_sprintf("machine %u's cache: %s",
					    h->machine, h->wrong));
	for (uint32_t i = 0; i < h->row_count; i++)
		*bytes += h->row[i].size_bytes;
	err = compare(h, wrong);
	free(h);
	return err;
}

int cli_shared_check_cache(json_t *wrong, uint64_t *bytes)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	char rack[CLI_SHARED_RACK_MAX];
	json_t *left = NULL;
	int err = cli_shared_rack(rack);

	for (unsigned i = 0; !err && i < TRIES; i++) {
		json_t *found = json_array(), *both;

		err = look_once(rack, found, bytes);
		both = left ? in_both(left, found) : json_incref(found);
		json_decref(found);
		json_decref(left);
		left = both;
		if (err || !json_array_size(left))
			break;
		(void)nanosleep(&pause, NULL);
	}
	if (!err && left)
		(void)json_array_extend(wrong, left);
	json_decref(left);
	return err;
}
