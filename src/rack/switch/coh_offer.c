/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas of memory nodes that do not keep the members. Such a node offers its
 * arena with a connection of its own; the keeper takes it, under a number and
 * an address, in this term. The node looks here for parts that shall be zeros
 * again, because something else will be there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "coh_ctl.h"

static struct coh_offer *find(struct coh *c, const char *name)
{
	for (unsigned i = 0; i < COHERENCE_NODES; i++)
		if (c->offers[i].used && strcmp(c->offers[i].name, name) == 0)
			return &c->offers[i];
	return NULL;
}

static const char *read_name(struct tor_words *p, const char *key)
{
	const char *name = tor_words_get(p, key);

	if (!p->err && (!name || !*name || strlen(name) >= COH_KEEPER_TEXT ||
			strcspn(name, "\"\\") != strlen(name)))
		p->err = error_set(-EINVAL,
				   "coherence: %s is a name of up to %d "
				   "characters",
				   key, COH_KEEPER_TEXT - 1);
	return p->err ? "" : name;
}

struct coh_offer *coh_offer_read(struct coh *c, struct tor_words *p)
{
	const char *name = read_name(p, "offer");
	uint64_t id = tor_words_u64(p, "id", UINT64_MAX);
	struct coh_offer *o = find(c, name);

	if (!p->err && (!o || o->id != id || o->is_taken))
		p->err = error_set(-ENOENT,
				   "coherence: %s does not offer that arena",
				   name);
	return p->err ? NULL : o;
}

int coh_offer_make(struct coh *c, struct tor_words *p)
{
	struct coh_offer new = {.used = true}, *o;
	const char *name = read_name(p, "name");
	int err;

	new.id = tor_words_u64(p, "id", UINT64_MAX);
	coh_read_at(p, &new.at);
	snprintf(new.name, sizeof(new.name), "%s", name);
	err = tor_words_end(p);
	if (err)
		return err;
	if (!c->has_begun)
		return error_set(-EAGAIN, "coherence: no term has begun");
	if (!new.at.size_bytes || new.at.size_bytes % COHERENCE_PAGE_BYTES)
		return error_set(-EINVAL, "coherence: an arena is whole pages");
	o = find(c, new.name);
	for (unsigned i = 0; !o && i < COHERENCE_NODES; i++)
		if (!c->offers[i].used)
			o = &c->offers[i];
	if (!o)
		return error_set(-ENOSPC, "coherence: %d nodes at most",
				 COHERENCE_NODES);
	*o = new;
	coh_count(c, COH_C_offers);
	return 0;
}

/* The first `done` are zeros. */
static void scrubbed(struct coh_node *n, uint32_t done)
{
	done = u32_min(done, n->scrub_count);
	n->scrub_count -= done;
	memmove(n->scrub, n->scrub + done, n->scrub_count * sizeof(*n->scrub));
}

int coh_offer_look(struct coh *c, struct tor_words *p, struct json_out *out)
{
	const struct coh_offer *o = find(c, read_name(p, "name"));
	uint64_t id = tor_words_u64(p, "id", UINT64_MAX);
	uint64_t done = tor_words_opt(p, "done", COH_SCRUBS, 0);
	uint64_t term = tor_words_opt(p, "term", UINT32_MAX, 0);
	bool is_known = o && o->id == id;
	struct coh_node *n =
		is_known && o->is_taken ? &c->nodes[o->node] : NULL;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (n && term == c->dir.term)
		scrubbed(n, (uint32_t)done);
	if (!out)
		return 0;
	json_out_bool(out, "begun", c->has_begun);
	json_out_u64(out, "term", c->dir.term);
	json_out_string(out, "by", c->keeper);
	json_out_bool(out, "known", is_known);
	json_out_bool(out, "taken", n);
	json_out_bool(out, "lost", n && n->tx.dead);
	json_out_array(out, "scrub");
	for (uint32_t i = 0; n && i < n->scrub_count; i++) {
		json_out_object(out, NULL);
		json_out_u64(out, "at", n->scrub[i].at);
		json_out_u64(out, "size", n->scrub[i].size_bytes);
		json_out_close(out);
	}
	json_out_close(out);
	return 0;
}

int coh_offer_scrub(struct coh *c, struct tor_words *p)
{
	uint32_t i = tor_words_u32(p, "node", COHERENCE_NODES - 1);
	uint64_t at = tor_words_u64(p, "at", UINT64_MAX);
	uint64_t size = tor_words_u64(p, "size", UINT64_MAX);
	int err = tor_words_end(p);
	struct coh_node *n;
	uint64_t most;

	if (err)
		return err;
	n = &c->nodes[i];
	most = n->used ? c->translate.node[i].size_bytes : 0;
	if (!size || at >= most || size > most - at ||
	    (at | size) % COHERENCE_PAGE_BYTES)
		return error_set(-EINVAL, "coherence: node %u has no such part",
				 i);
	if (n->tx.dead || n->scrub_count == COH_SCRUBS)
		return error_set(-EBUSY, "coherence: node %u has enough to do",
				 i);
	n->scrub[n->scrub_count++] = (struct coh_scrub){at, size};
	return 0;
}

void coh_offer_show(const struct coh *c, struct json_out *out)
{
	json_out_array(out, "offers");
	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		const struct coh_offer *o = &c->offers[i];

		if (!o->used)
			continue;
		json_out_object(out, NULL);
		json_out_string(out, "name", o->name);
		json_out_u64(out, "id", o->id);
		json_out_u64(out, "size", o->at.size_bytes);
		json_out_bool(out, "taken", o->is_taken);
		json_out_u64(out, "node", o->node);
		json_out_close(out);
	}
	json_out_close(out);
}
