/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lead knows outlives its process: segments and where they are,
 * members, what is lost. One JSON file beside that of the tenants, replaced as
 * a whole whenever something of it is not what it was, before anybody is told.
 * It is on the disk then: other nodes and the switch go on when the lead's
 * machine loses its power, and an older file would name copies that lack
 * stores. The node's lock is held meanwhile, as these changes are rare.
 *
 * A lead that finds the file was killed. It goes on with all segments that
 * another node has; what was in its own arena alone is gone, and those segments
 * are deleted as soon as no machine has a page of them. Machines stay members,
 * and do what they do when the switch was restarted. A lead that is stopped
 * ends all segments and removes the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "shared_priv.h"
#include "state_file.h"

enum {
	FILE_VERSION = 1,
	FILE_MAX = 8 << 20,
	PATH_BYTES = 512,
};

#define SUFFIX ".tenants.json"

/* Beside that of the tenants; false: nothing is kept. */
static bool path_of(const struct mem_node *node, char path[PATH_BYTES])
{
	size_t len = node->state_path ? strlen(node->state_path) : 0;

	if (!len || node->shared->lead[0])
		return false;
	if (len > strlen(SUFFIX) &&
	    strcmp(node->state_path + len - strlen(SUFFIX), SUFFIX) == 0)
		len -= strlen(SUFFIX);
	return snprintf(path, PATH_BYTES, "%.*s.shared.json", (int)len,
			node->state_path) < PATH_BYTES;
}

/* ---- to JSON --------------------------------------------------------------
 */

static json_t *part_json(const struct arena_part *p)
{
	return json_pack("[I, I]", (json_int_t)p->at, (json_int_t)p->bytes);
}

static json_t *allow_json(const struct mem_segment *g)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < g->allow_count; i++) {
		const struct mem_allow *a = &g->allow[i];

		(void)json_array_append_new(
			rows, json_pack("{s:s, s:I, s:I, s:i}", "tenant",
					a->tenant->name, "offset",
					(json_int_t)a->offset, "length",
					(json_int_t)a->length, "right",
					(int)a->right));
	}
	return rows;
}

static json_t *segment_json(const struct mem_segment *g)
{
	json_t *row = json_pack(
		"{s:s, s:s, s:I, s:i, s:i, s:o, s:o, s:I, s:I, s:I, s:i}",
		"tenant", g->tenant->name, "name", g->name, "id",
		(json_int_t)g->id, "node", g->node, "where", g->where, "part",
		part_json(&g->part), "there", part_json(&g->there), "va",
		(json_int_t)g->va, "size", (json_int_t)g->size_bytes, "length",
		(json_int_t)g->length_bytes, "users", g->users);

	(void)json_object_update_missing_new(
		row, json_pack("{s:b, s:b, s:b, s:b, s:s, s:i, s:o}", "goes_on",
			       g->goes_on, "unlinked", g->is_unlinked,
			       "leaving", g->is_leaving, "lost", g->is_lost,
			       "lost_by", g->lost_by, "copies", g->copies,
			       "allow", allow_json(g)));
	if (g->has_copy)
		(void)json_object_update_missing_new(
			row, json_pack("{s:i, s:o}", "copy_node", g->copy_node,
				       "copy", part_json(&g->copy)));
	return row;
}

static json_t *dirty_json(uint8_t node, const struct arena_part *part,
			  bool stays)
{
	return json_pack("{s:i, s:o, s:b}", "node", node, "part",
			 part_json(part), "stays", stays);
}

/* Parts that are taken and nobody's: also the place of a move, which is none
 * for who reads this. */
static json_t *dirties_json(const struct mem_shared *s)
{
	json_t *rows = json_array();

	for (uint8_t i = 1; i < COHERENCE_NODES; i++)
		for (unsigned k = 0; k < s->nodes[i].dirty_count; k++)
			(void)json_array_append_new(
				rows, dirty_json(i, &s->nodes[i].dirty[k].part,
						 s->nodes[i].dirty[k].stays));
	if (s->move.segment && s->move.node != MEM_SHARED_NODE)
		(void)json_array_append_new(
			rows,
			dirty_json(s->move.node, &s->move.part,
				   s->move.node == s->move.segment->node));
	return rows;
}

static json_t *nodes_json(const struct mem_shared *s)
{
	json_t *rows = json_array();

	for (unsigned i = 1; i < COHERENCE_NODES; i++)
		if (s->nodes[i].used)
			(void)json_array_append_new(
				rows,
				json_pack("{s:i, s:s, s:I, s:I, s:I}", "node",
					  (int)i, "name", s->nodes[i].name,
					  "id", (json_int_t)s->nodes[i].id,
					  "va", (json_int_t)s->nodes[i].va,
					  "size",
					  (json_int_t)s->nodes[i]
						  .arena.size_bytes));
	return rows;
}

static json_t *members_json(const struct mem_shared *s)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < COH_MACHINES_MAX; i++) {
		const struct mem_member *m = &s->members[i];

		if (m->used)
			(void)json_array_append_new(
				rows,
				json_pack("{s:i, s:s, s:s, s:I, s:b, s:b}",
					  "number", (int)i, "name", m->name,
					  "tenant",
					  m->tenant ? m->tenant->name : "",
					  "nonce", (json_int_t)m->nonce,
					  "connected", m->was_connected,
					  "going", m->is_going));
	}
	return rows;
}

static json_t *lost_json(const struct mem_shared *s)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < s->lost_count; i++)
		(void)json_array_append_new(
			rows, json_pack("[I, I]", (json_int_t)s->lost[i].page,
					(json_int_t)s->lost[i].count));
	return rows;
}

static json_t *to_json(const struct mem_shared *s)
{
	json_t *segments = json_array();

	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++)
		if (s->segments[i])
			(void)json_array_append_new(
				segments, segment_json(s->segments[i]));
	return json_pack("{s:i, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o}",
			 "version", FILE_VERSION, "term", (json_int_t)s->term,
			 "last_id", (json_int_t)s->last_id, "all_lost",
			 s->all_lost, "nodes", nodes_json(s), "segments",
			 segments, "members", members_json(s), "lost",
			 lost_json(s), "dirty", dirties_json(s));
}

/* ---- saving ---------------------------------------------------------------
 */

/* Else the memory of all segments ends with this process, and so do they. */
static bool has_others(const struct mem_shared *s)
{
	for (unsigned i = 1; i < COHERENCE_NODES; i++)
		if (s->nodes[i].used)
			return true;
	return false;
}

int shared_file_save(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	char path[PATH_BYTES];
	json_t *tree;
	char *text;
	int err;

	if (!s || !has_others(s) || !path_of(node, path))
		return 0;
	tree = to_json(s);
	text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
	json_decref(tree);
	if (!text)
		return error_set(-ENOMEM, "no memory left");
	if (s->saved && strcmp(s->saved, text) == 0) {
		free(text);
		return 0;
	}
	err = state_file_replace(path, text);
	if (err) {
		free(text);
		log_warn("memnode", "cannot save %s: %s", path, strerror(-err));
		return error_set(-ENOSPC, "cannot save %s: %s", path,
				 strerror(-err));
	}
	free(s->saved);
	s->saved = text;
	return 0;
}

void shared_note_call(struct mem_node *node, const struct ctl_request *request)
{
	size_t len = strlen(request->path);

	if (!node->shared || request->method == CTL_GET ||
	    (strncmp(request->path, "/v1/shared", 10) != 0 &&
	     strncmp(request->path, "/v1/tenants", 11) != 0) ||
	    (len > 5 && strcmp(request->path + len - 5, "/beat") == 0))
		return;
	(void)!shared_file_save(node); /* it has said what is wrong */
}

void shared_file_remove(struct mem_node *node)
{
	char path[PATH_BYTES];

	if (path_of(node, path))
		(void)unlink(path); /* perhaps there was none */
}

/* ---- loading --------------------------------------------------------------
 */

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

static const char *word(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static bool flag(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

static struct arena_part read_part(const json_t *row, const char *key)
{
	const json_t *pair = json_object_get(row, key);

	return (struct arena_part){
		(uint64_t)json_integer_value(json_array_get(pair, 0)),
		(uint64_t)json_integer_value(json_array_get(pair, 1))};
}

static int bad(const char *what)
{
	return error_set(-EBADMSG, "its %s make no sense", what);
}

static int load_nodes(struct mem_shared *s, const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		uint64_t at = number(row, "node");
		int err;

		if (!at || at >= COHERENCE_NODES || s->nodes[at].used)
			return bad("nodes");
		err = shared_node_restore(s, (uint8_t)at, word(row, "name"),
					  number(row, "id"), number(row, "va"),
					  number(row, "size"));
		if (err)
			return err;
	}
	return 0;
}

/* A part of an arena that is somebody's. */
static int claim(struct mem_shared *s, uint64_t node,
		 const struct arena_part *part)
{
	if (node >= COHERENCE_NODES || !s->nodes[node].used ||
	    arena_take_at(&s->nodes[node].arena, part))
		return bad("places");
	return 0;
}

/* Each place of it once. */
static int claim_places(struct mem_shared *s, struct mem_segment *g)
{
	int err = claim(s, g->node, &g->part);

	if (!err)
		g->tenant->used_bytes += g->part.bytes;
	if (!err && g->where != g->node) {
		err = claim(s, g->where, &g->there);
		g->tenant->used_bytes += err ? 0 : g->there.bytes;
	}
	if (!err && g->has_copy && g->copy_node != g->node) {
		err = claim(s, g->copy_node, &g->copy);
		g->tenant->used_bytes += err ? 0 : g->copy.bytes;
	}
	return err;
}

static void load_allows(struct mem_node *node, struct mem_segment *g,
			const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		struct mem_tenant *t = tenant_find(node, word(row, "tenant"));

		if (!t || g->allow_count == MEM_ALLOW_MAX)
			continue;
		g->allow[g->allow_count++] = (struct mem_allow){
			t, number(row, "offset"), number(row, "length"),
			(enum coh_right)(number(row, "right") % 3)};
	}
}

static void fill(struct mem_segment *g, const json_t *row)
{
	snprintf(g->name, sizeof(g->name), "%s", word(row, "name"));
	snprintf(g->lost_by, sizeof(g->lost_by), "%s", word(row, "lost_by"));
	g->id = number(row, "id");
	g->node = (uint8_t)number(row, "node");
	g->where = (uint8_t)number(row, "where");
	g->part = read_part(row, "part");
	g->there = read_part(row, "there");
	g->va = number(row, "va");
	g->size_bytes = number(row, "size");
	g->length_bytes = number(row, "length");
	g->users = (uint16_t)number(row, "users");
	g->copies = (uint8_t)number(row, "copies");
	g->is_unlinked = flag(row, "unlinked");
	g->is_leaving = flag(row, "leaving");
	g->is_lost = flag(row, "lost");
	g->goes_on = flag(row, "goes_on");
	g->has_copy = json_object_get(row, "copy");
	g->copy_node = (uint8_t)number(row, "copy_node");
	g->copy = read_part(row, "copy");
}

/* What was in this node's arena alone is gone with its memory: the segment is
 * deleted. */
static void judge(struct mem_shared *s, struct mem_segment *g)
{
	if (!g->part.bytes || g->where != MEM_SHARED_NODE || g->has_copy)
		return;
	if (!g->is_leaving)
		log_warn("memnode",
			 "segment %s of %s is gone: it was in the memory of "
			 "node %s, which was restarted",
			 g->name, g->tenant->name,
			 s->nodes[MEM_SHARED_NODE].name);
	g->is_leaving = true;
}

static int load_segments(struct mem_node *node, const json_t *rows)
{
	struct mem_shared *s = node->shared;
	const json_t *row;
	size_t i;
	int err = 0;

	json_array_foreach(rows, i, row)
	{
		struct mem_tenant *t = tenant_find(node, word(row, "tenant"));
		struct mem_segment *g = calloc(1, sizeof(*g));

		if (!g || !t || i >= MEM_SEGMENT_MAX) {
			free(g);
			return bad("segments");
		}
		g->tenant = t;
		fill(g, row);
		s->segments[i] = g;
		s->segment_count++;
		(void)!tenant_take(t, MEM_LIMIT_REGIONS, 1);
		load_allows(node, g, json_object_get(row, "allow"));
		err = g->part.bytes ? claim_places(s, g) : 0;
		if (err) { /* it has no place to give back */
			g->part = (struct arena_part){0};
			return err;
		}
		judge(s, g);
	}
	return err;
}

static void load_members(struct mem_node *node, const json_t *rows)
{
	struct mem_shared *s = node->shared;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		struct mem_member *m =
			&s->members[number(row, "number") % COH_MACHINES_MAX];

		*m = (struct mem_member){
			.used = true,
			.was_connected = flag(row, "connected"),
			.is_going = flag(row, "going"),
			.tenant = tenant_find(node, word(row, "tenant")),
			.nonce = number(row, "nonce"),
			.beat_ns = env_now_ns(node->env)};
		snprintf(m->name, sizeof(m->name), "%s", word(row, "name"));
		if (m->tenant)
			(void)!tenant_take(m->tenant, MEM_LIMIT_MACHINES, 1);
	}
}

static int load_dirty(struct mem_node *node, const json_t *rows)
{
	struct mem_shared *s = node->shared;
	const json_t *row;
	size_t i;
	int err = 0;

	json_array_foreach(rows, i, row)
	{
		struct arena_part part = read_part(row, "part");
		uint64_t at = number(row, "node");
		bool stays = flag(row, "stays");

		if (at == MEM_SHARED_NODE || at >= COHERENCE_NODES)
			return bad("places");
		err = stays ? 0 : claim(s, at, &part);
		if (err)
			return err;
		shared_node_scrub_part(node, (uint8_t)at, &part, stays);
	}
	return err;
}

static void load_lost(struct mem_shared *s, const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (s->lost_count < MEM_LOST_MAX)
			s->lost[s->lost_count++] = (struct coh_range){
				(uint64_t)json_integer_value(
					json_array_get(row, 0)),
				(uint32_t)json_integer_value(
					json_array_get(row, 1))};
	}
}

static int load_tree(struct mem_node *node, const json_t *tree)
{
	struct mem_shared *s = node->shared;
	int err;

	if (number(tree, "version") != FILE_VERSION)
		return error_set(-EPROTONOSUPPORT, "not version %d",
				 FILE_VERSION);
	s->term = (uint32_t)number(tree, "term");
	s->last_id = number(tree, "last_id");
	s->all_lost = flag(tree, "all_lost");
	err = load_nodes(s, json_object_get(tree, "nodes"));
	if (!err)
		err = load_segments(node, json_object_get(tree, "segments"));
	if (!err)
		err = load_dirty(node, json_object_get(tree, "dirty"));
	if (err)
		return err;
	shared_copy_forget(node, MEM_SHARED_NODE);
	load_members(node, json_object_get(tree, "members"));
	load_lost(s, json_object_get(tree, "lost"));
	return 0;
}

int shared_file_load(struct mem_node *node)
{
	char path[PATH_BYTES];
	json_error_t why;
	struct stat st;
	json_t *tree;
	int err;

	if (!path_of(node, path) || stat(path, &st) < 0)
		return 0;
	tree = st.st_size <= FILE_MAX
		       ? json_load_file(path, JSON_REJECT_DUPLICATES, &why)
		       : NULL;
	if (!tree)
		return error_set(-EBADMSG,
				 "%s cannot be read; without it, all segments "
				 "are gone",
				 path);
	err = load_tree(node, tree);
	json_decref(tree);
	return err ? error_prefix(err, "%s: ", path) : 0;
}
