/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/shared/check: a machine says what its cache has, and this node looks
 * whether the switch's directory knows: who may read is among a region's
 * sharers, and who may write is the only one.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "shared_priv.h"

enum {
	PIECES_MAX = 8,
	PIECE_BYTES = COH_REGION_PAGES_MAX * COHERENCE_PAGE_BYTES,
};

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

static const char *judge(const json_t *found, unsigned machine, bool writes)
{
	const char *state = json_string_value(json_object_get(found, "state"));
	uint64_t sharers = number(found, "sharers"), bit = 1ull << machine;

	if (!state)
		return "says nothing";
	if (writes && (strcmp(state, "S") == 0 || sharers != bit))
		return "has not given it to write";
	return sharers & bit ? NULL : "has not given it";
}

/* One region after the other. */
static int check_piece(struct mem_node *node, unsigned machine, uint64_t va,
		       uint64_t end, bool writes, json_t *wrong)
{
	while (va < end) {
		json_t *found = NULL;
		const char *words;
		char line[64];
		uint64_t next;
		int err;

		snprintf(line, sizeof(line), "tell coherence find va=%" PRIu64,
			 va);
		err = shared_ask(node, line, &found);
		if (err)
			return err;
		words = judge(found, machine, writes);
		next = number(found, "va") + number(found, "size");
		json_decref(found);
		if (words)
			(void)json_array_append_new(
				wrong,
				json_sprintf("machine %u has the page at "
					     "0x%llx to %s, and the switch %s",
					     machine, (unsigned long long)va,
					     writes ? "write" : "read", words));
		va = next > va ? next : va + COHERENCE_PAGE_BYTES;
	}
	return 0;
}

static int check_row(struct mem_node *node, unsigned machine, const json_t *row,
		     json_t *wrong)
{
	json_int_t va = json_integer_value(json_array_get(row, 0));
	json_int_t size = json_integer_value(json_array_get(row, 1));
	json_int_t writes = json_integer_value(json_array_get(row, 2));

	if (va < 0 || size <= 0 || size > PIECE_BYTES ||
	    va % COHERENCE_PAGE_BYTES || size % COHERENCE_PAGE_BYTES)
		return error_set(-EINVAL,
				 "\"held\" has pieces of up to %d bytes: "
				 "[address, size, 1 to write or 0]",
				 PIECE_BYTES);
	return check_piece(node, machine, (uint64_t)va, (uint64_t)(va + size),
			   writes != 0, wrong);
}

/* What a machine has of a former term it will give back, and the directory does
 * not know it yet. */
static int find(const struct mem_node *node, const struct ctl_call *call,
		uint64_t *machine, bool *is_now)
{
	const struct mem_member *m;
	uint64_t term = 0;
	int err = ctl_field_u64(call->body, "machine", true, 0,
				COH_MACHINES_MAX - 1, machine);

	if (!err)
		err = ctl_field_u64(call->body, "term", true, 0, UINT32_MAX,
				    &term);
	if (err)
		return err;
	m = &node->shared->members[*machine];
	if (!m->used || m->tenant != call->caller)
		return error_set(-ENOENT, "there is no machine %u of yours",
				 (unsigned)*machine);
	*is_now = m->is_connected && !m->is_going &&
		  term == node->shared->term && !node->shared->all_lost;
	return 0;
}

static int check(struct mem_node *node, const struct ctl_call *call,
		 json_t *wrong)
{
	const json_t *held = json_object_get(call->body, "held"), *row;
	uint64_t machine = 0;
	bool is_now = false;
	size_t i;
	int err = shared_check(node);

	if (!err)
		err = find(node, call, &machine, &is_now);
	if (!err &&
	    (!json_is_array(held) || json_array_size(held) > PIECES_MAX))
		err = error_set(-EINVAL, "\"held\" has up to %d pieces",
				PIECES_MAX);
	if (err || !is_now)
		return err;
	json_array_foreach(held, i, row)
	{
		err = check_row(node, (unsigned)machine, row, wrong);
		if (err)
			return err;
	}
	return 0;
}

void handle_held_check(void *ctx, struct ctl_call *call)
{
	json_t *wrong = json_array();
	int err = check(ctx, call, wrong);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:O}", "wrong", wrong));
	json_decref(wrong);
}
