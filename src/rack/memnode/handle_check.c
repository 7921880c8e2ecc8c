/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/shared/check: whether the switch and this node say the same about shared
 * memory, and whether the switch's directory holds together. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "shared_priv.h"

enum {
	WORDS_BYTES = 200,
};

PRINTF(2, 3)
static void wrong(json_t *list, const char *fmt, ...)
{
	char words[WORDS_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	(void)json_array_append_new(list, json_string(words));
}

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* The row of an array whose member `key` is that number, or NULL. */
static const json_t *find_row(const json_t *show, const char *list,
			      const char *key, uint64_t value)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(show, list), i,
			   row) if (number(row, key) == value) return row;
	return NULL;
}

static void check_term(const struct mem_node *node, const json_t *show,
		       json_t *list)
{
	const struct mem_shared *s = node->shared;
	const char *by = json_string_value(json_object_get(show, "by"));

	if (number(show, "term") != s->term)
		wrong(list, "the switch has term %" PRIu64 ", the node %u",
		      number(show, "term"), s->term);
	if (!by || strcmp(by, node->name) != 0)
		wrong(list, "the switch's term is kept by '%.40s'",
		      by ? by : "");
}

/* What a segment takes of a node: its address, and its memory. */
static uint64_t bytes_at(const struct mem_segment *g, unsigned node)
{
	if (!g->part.bytes)
		return 0;
	return (g->node == node ? g->part.bytes : 0) +
	       (g->where == node && g->where != g->node ? g->there.bytes : 0) +
	       (g->has_copy && g->copy_node == node && g->copy_node != g->node
			? g->copy.bytes
			: 0);
}

static void check_pairs(const struct mem_shared *s, const json_t *show,
			json_t *list)
{
	uint64_t pairs = 0;

	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++)
		pairs += s->segments[i] && s->segments[i]->has_copy;
	if (number(show, "pairs") != pairs)
		wrong(list,
		      "%" PRIu64 " segments have two copies at the switch, "
		      "%" PRIu64 " are noted",
		      number(show, "pairs"), pairs);
}

/* Where the switch reads and writes it. */
static int check_segment(struct mem_node *node, const struct mem_segment *g,
			 json_t *list)
{
	char line[96];
	json_t *found = NULL;
	int err;

	snprintf(line, sizeof(line), "tell coherence find va=%" PRIu64, g->va);
	err = shared_ask(node, line, &found);
	if (!err && number(found, "node") != g->where)
		wrong(list,
		      "segment %s is at node %s, and the switch has it at "
		      "%" PRIu64,
		      g->name, node->shared->nodes[g->where].name,
		      number(found, "node"));
	json_decref(found);
	return err;
}

/* Numbers, addresses and who answers; and that no two segments of a node have
 * one place. */
static void check_node(const struct mem_shared *s, unsigned i,
		       const json_t *show, json_t *list)
{
	const struct mem_shared_node *n = &s->nodes[i];
	const json_t *row = find_row(show, "nodes", "node", i);
	uint64_t bytes = 0;

	if (!n->used && row)
		wrong(list, "the switch has a memory node %u that nobody knows",
		      i);
	if (!n->used)
		return;
	if (!row || number(row, "size") != n->arena.size_bytes ||
	    number(row, "va") != n->va)
		wrong(list, "the switch does not know the memory of node %s",
		      n->name);
	else if (json_is_true(json_object_get(row, "lost")) == n->is_here)
		wrong(list, "the switch has given the memory of node %s %s",
		      n->name, n->is_here ? "up" : "not up");
	for (unsigned k = 0; k < MEM_SEGMENT_MAX; k++)
		bytes += s->segments[k] ? bytes_at(s->segments[k], i) : 0;
	for (unsigned k = 0; k < n->dirty_count; k++)
		bytes += n->dirty[k].stays ? 0 : n->dirty[k].part.bytes;
	if (s->move.segment && s->move.node == i && s->move.segment->node != i)
		bytes += s->move.part.bytes;
	if (bytes != n->arena.taken_bytes)
		wrong(list,
		      "of node %s %" PRIu64 " bytes are taken, and segments "
		      "have %" PRIu64,
		      n->name, n->arena.taken_bytes, bytes);
}

static void check_member(const struct mem_shared *s, unsigned i,
			 const json_t *show, json_t *list)
{
	const struct mem_member *m = &s->members[i];
	const json_t *row = find_row(show, "machines", "machine", i);
	bool is_there = number(show, "members") >> i & 1;
	bool is_unclean = number(show, "unclean") >> i & 1;

	if (!m->used && (is_there || row))
		wrong(list, "the switch has a machine %u that nobody knows", i);
	if (!m->used || m->is_going)
		return;
	if (!is_there)
		wrong(list, "machine %u is no member at the switch", i);
	if (m->is_connected && (!row || number(row, "lanes") != m->lanes))
		wrong(list, "machine %u does not have its %u lanes", i,
		      m->lanes);
	if (!m->is_connected && (row || !is_unclean))
		wrong(list,
		      "machine %u has not connected in this term, and "
		      "the switch takes it for clean",
		      i);
}

static void check_lost(const struct mem_shared *s, const json_t *show,
		       json_t *list)
{
	size_t there = json_array_size(json_object_get(show, "lost"));

	if (there != s->lost_count)
		wrong(list, "%zu regions are lost at the switch, %u are noted",
		      there, s->lost_count);
	for (unsigned i = 0; i < s->lost_count; i++) {
		uint64_t va = s->lost[i].page << COHERENCE_PAGE_SHIFT;

		if (!find_row(show, "lost", "va", va))
			wrong(list,
			      "the region at 0x%" PRIx64
			      " is lost, and the switch does not know",
			      va);
	}
}

static int check(struct mem_node *node, json_t *list)
{
	json_t *show = NULL, *own = NULL;
	const char *words;
	/* What the switch found out a moment ago is no contradiction. */
	int err = lead_take_news(node);

	if (!err)
		err = shared_ask(node, "tell coherence show", &show);
	if (!err)
		err = shared_ask(node, "tell coherence check", &own);
	if (!err) {
		words = json_string_value(json_object_get(own, "wrong"));
		if (!words || *words)
			wrong(list, "directory: %s", words ? words : "?");
		check_term(node, show, list);
		for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
			check_member(node->shared, i, show, list);
		for (unsigned i = 0; i < COHERENCE_NODES; i++)
			check_node(node->shared, i, show, list);
		for (unsigned i = 0; !err && i < MEM_SEGMENT_MAX; i++)
			if (node->shared->segments[i] &&
			    node->shared->segments[i]->part.bytes)
				err = check_segment(
					node, node->shared->segments[i], list);
		check_lost(node->shared, show, list);
		check_pairs(node->shared, show, list);
	}
	json_decref(show);
	json_decref(own);
	return err;
}

void handle_shared_check(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	json_t *list = json_array();
	int err = shared_check(node);

	if (!err)
		err = check(node, list);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:O, s:I}", "wrong", list, "term",
					 (json_int_t)node->shared->term));
	json_decref(list);
}
