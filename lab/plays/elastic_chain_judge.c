/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what the clients of a chain were told can be true. */
#include <string.h>

#include "elastic_chain_priv.h"

/* One that was over before the other began. */
static bool is_before(const struct ec_op *a, const struct ec_op *b)
{
	return a->ended && a->ended < b->begun;
}

static struct ec_node *reader(struct ec *w)
{
	struct ec_client c = {0};

	ec_map(w, &c);
	return &w->node[c.reader];
}

/* ---- files --------------------------------------------------------------- */

static const struct ec_op *append_of(const struct ec *w, uint32_t id)
{
	for (unsigned i = 0; i < w->op_count; i++)
		if (w->op[i].id == id)
			return &w->op[i];
	return NULL;
}

static void judge_records(struct ec *w)
{
	const struct blk_block *b = &reader(w)->block;
	static uint8_t want[EC_VALUE_MAX];
	static bool seen[EC_OPS + 1];
	uint64_t at = 0;

	memset(seen, 0, sizeof(seen));
	while (at < b->file.end) {
		const uint8_t *bytes = b->mem + BLOCK_HEAD_BYTES + at;
		const struct ec_op *op;
		uint32_t id;

		memcpy(&id, bytes, 4);
		op = id && id <= w->ids ? append_of(w, id) : NULL;
		if (op)
			ec_fill(id, want);
		if (!op || memcmp(want, bytes, ec_length(id)) != 0) {
			play_fail(w->run, "a copy: no record at %llu",
				  (unsigned long long)at);
			return;
		}
		if (seen[id])
			play_fail(w->run, "a copy: record %u is there twice",
				  id);
		if (op->status == BLOCK_OK && op->value != at)
			play_fail(w->run, "a copy: record %u is elsewhere", id);
		seen[id] = true;
		at += ec_length(id);
	}
	for (unsigned i = 0; i < w->op_count; i++)
		if (w->op[i].opcode == BLOCK_APPEND &&
		    w->op[i].status == BLOCK_OK && !seen[w->op[i].id])
			play_fail(w->run, "a copy: record %u is lost",
				  w->op[i].id);
}

/* Ends that were seen, and where records lie, never go back. */
static void judge_ends(struct ec *w)
{
	for (unsigned i = 0; i < w->op_count; i++) {
		const struct ec_op *a = &w->op[i];
		uint64_t least = a->opcode == BLOCK_APPEND
					 ? a->value + ec_length(a->id)
					 : a->value;

		for (unsigned k = 0; k < w->op_count; k++) {
			const struct ec_op *b = &w->op[k];

			if (a->status != BLOCK_OK || b->status != BLOCK_OK ||
			    !is_before(a, b) || b->value >= least)
				continue;
			play_fail(w->run, "an old end of a file: %llu < %llu",
				  (unsigned long long)b->value,
				  (unsigned long long)least);
			return;
		}
	}
}

/* ---- queues -------------------------------------------------------------- */

static const struct ec_op *get_of(struct ec *w, uint32_t id)
{
	const struct ec_op *found = NULL;

	for (unsigned i = 0; i < w->op_count; i++) {
		const struct ec_op *op = &w->op[i];

		if (op->opcode != BLOCK_GET || op->status != BLOCK_OK ||
		    op->got != id)
			continue;
		if (found)
			play_fail(w->run, "a copy: item %u is delivered twice",
				  id);
		if (!op->is_whole)
			play_fail(w->run, "a copy: item %u is damaged", id);
		found = op;
	}
	return found;
}

/* What is left is got by one more session. */
static void drain(struct ec *w, const struct ec_op **got)
{
	static struct ec_op late;
	struct blk_block *b = &reader(w)->block;
	uint8_t session[BLOCK_SESSION_BYTES] = {99};
	struct blk_request r = {.session = session,
				.opcode = BLOCK_GET,
				.inside_room = BLOCK_INSIDE_MAX,
				.buffer_bytes = EC_VALUE_MAX};
	struct blk_answer a;
	uint32_t id;

	late = (struct ec_op){.begun = UINT32_MAX, .ended = UINT32_MAX};
	for (;;) {
		r.acked = r.sequence++;
		if (blk_begin(b, &r, &a) || a.status != BLOCK_OK)
			return;
		memcpy(&id, a.data, 4);
		if (!id || id > w->ids || got[id])
			play_fail(w->run, "a copy: item %u is there again", id);
		else
			got[id] = &late;
	}
}

static void judge_queue(struct ec *w)
{
	static const struct ec_op *got[EC_OPS + 1];

	memset(got, 0, sizeof(got));
	for (uint32_t id = 1; id <= w->ids; id++)
		got[id] = get_of(w, id);
	drain(w, got);
	for (unsigned i = 0; i < w->op_count; i++) {
		const struct ec_op *a = &w->op[i];

		if (a->opcode != BLOCK_PUT || a->status != BLOCK_OK)
			continue;
		if (!got[a->id]) {
			play_fail(w->run, "a copy: item %u is lost", a->id);
			return;
		}
		for (unsigned k = 0; k < w->op_count; k++) {
			const struct ec_op *b = &w->op[k];

			if (b->opcode == BLOCK_PUT && got[b->id] &&
			    is_before(a, b) &&
			    is_before(got[b->id], got[a->id]))
				play_fail(w->run,
					  "a copy: item %u before item %u",
					  b->id, a->id);
			if (b->opcode == BLOCK_GET &&
			    b->status == BLOCK_EMPTY && is_before(a, b) &&
			    is_before(b, got[a->id]))
				play_fail(w->run, "a copy: empty, with item %u",
					  a->id);
		}
	}
}

/* ---- stores -------------------------------------------------------------- */

/* Versions order all that happened to a key: what was seen never goes back. */
static void judge_key(struct ec *w, const struct ec_op *a,
		      const struct ec_op *b)
{
	if (a->key != b->key || a->key == EC_KEYS - 1 ||
	    b->status == BLOCK_NO_ROOM)
		return;
	if (is_before(a, b) && a->status == BLOCK_OK &&
	    (b->status != BLOCK_OK || b->value < a->value ||
	     (b->opcode == BLOCK_KV_PUT && b->value == a->value)))
		play_fail(w->run, "a copy: key %u is old", a->key);
	if (a->status == BLOCK_OK && b->status == BLOCK_OK && a != b &&
	    a->opcode == BLOCK_KV_PUT && a->value == b->value &&
	    (b->opcode == BLOCK_KV_PUT || b->got != a->id || !b->is_whole))
		play_fail(w->run, "a copy: key %u has another value", a->key);
}

static void judge_number(struct ec *w)
{
	unsigned added = 0, refused = 0;
	uint64_t most = 0;

	for (unsigned i = 0; i < w->op_count; i++) {
		const struct ec_op *op = &w->op[i];

		if (op->opcode != BLOCK_KV_ADD)
			continue;
		added += op->status == BLOCK_OK;
		refused += op->status != BLOCK_OK;
		most = u64_max(most, op->status == BLOCK_OK ? op->value : 0);
	}
	if (most != added)
		play_fail(w->run,
			  "a copy: %u ones were added and make %llu (%u "
			  "refused)",
			  added, (unsigned long long)most, refused);
}

void ec_judge(struct ec *w)
{
	ec_judge_ears(w);
	if (w->kind == BLOCK_FILE) {
		judge_records(w);
		judge_ends(w);
	} else if (w->kind == BLOCK_QUEUE) {
		judge_queue(w);
	} else {
		judge_number(w);
		for (unsigned i = 0; i < w->op_count; i++)
			for (unsigned k = 0; k < w->op_count; k++)
				judge_key(w, &w->op[i], &w->op[k]);
	}
}
