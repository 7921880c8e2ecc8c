/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: blocks with copies on several nodes (block/blk_chain.h). Here it is
 * decided who is a member. Each change has an epoch, which is in the rows of
 * all members; nodes hear of it when it is committed.
 *
 *  - A member whose node is down is cut out, if another full one is heard of at
 *    this moment: one that is silent only for a moment may be gone, and is no
 *    reason to give up another one.
 *  - Where there are fewer than there are to be, or one is on a node that is to
 *    be emptied, another node joins. When it says that it has all it counts.
 *  - Then the one on the node that is to be emptied is cut out.
 *
 * Members are in the order of their generations, so who joins is last.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/plant.h"
#include "vault_priv.h"

static struct cd_block *first_of(const struct cd_object *o, uint64_t number)
{
	for (unsigned i = 0; i < o->block_count; i++)
		if (o->block[i]->number == number)
			return o->block[i];
	return NULL;
}

bool cd_chain_survives(const struct cd_block *b)
{
	if (!b->identity)
		return false;
	for (const struct cd_block *k = first_of(b->object, b->number); k;
	     k = k->next)
		if (k != b && k->is_full)
			return true;
	return !b->is_full;
}

bool cd_chain_is_up(const struct cd_block *b)
{
	if (!b->identity)
		return b->node->state != CD_DOWN;
	for (; b; b = b->next)
		if (b->is_full && b->node->state != CD_DOWN)
			return true;
	return false;
}

void cd_chain_bump(struct cd_core *core, struct cd_block *first)
{
	uint64_t epoch = cd_id_take(core);

	first->object->epoch = epoch;
	for (struct cd_block *b = first; b; b = b->next) {
		b->epoch = epoch;
		b->since = b->since ? b->since : epoch;
		b->node->lent->has_chain_news = true;
		cd_stage_block(core, b);
	}
}

int cd_chain_make(struct cd_core *core, struct cd_object *o, uint64_t number)
{
	const struct cd_wish wish = {.size_bytes = o->block_bytes,
				     .copies = o->copies,
				     .is_block = true};
	struct cd_node *node[CD_COPIES_MAX] = {NULL};
	struct cd_block *first = NULL, *b;
	int err = cd_place_policy("spread")(core, &wish, node);

	for (unsigned i = 0; i < o->copies && !err; i++) {
		err = cd_block_make(core, node[i], o, number,
				    first ? first->identity : 0, &b);
		if (err)
			break;
		b->is_full = true;
		first = first ? first : b;
	}
	/* Fewer than wanted are more than none; others join. */
	if (first)
		cd_chain_bump(core, first);
	return first ? 0 : err;
}

void cd_chain_leave(struct cd_core *core, struct cd_object *o, uint64_t number)
{
	struct cd_block *first = first_of(o, number);

	if (first && first->identity)
		cd_chain_bump(core, first);
}

/* ---- who is a member ---------------------------------------------------- */

static bool is_heard(const struct cd_block *b)
{
	return b->node->state == CD_UP && !b->node->is_broken &&
	       b->node->has_beaten && b->is_made;
}

static void cut(struct cd_core *core, struct cd_block *b, const char *why)
{
	struct cd_object *o = b->object;
	uint64_t number = b->number;

	log_info("controld", "block %llu of %s is cut out at node %s: %s",
		 (unsigned long long)number, o->name, b->node->name, why);
	cd_block_release(core, b, true);
	cd_chain_leave(core, o, number);
}

/* True: the chain has changed. */
static bool cut_one(struct cd_core *core, struct cd_block *first)
{
	unsigned full = 0, staying = 0;
	const struct cd_object *o = first->object;

	for (struct cd_block *b = first; b; b = b->next) {
		full += b->is_full && is_heard(b);
		staying += b->is_full && is_heard(b) && !b->node->drain;
	}
	for (struct cd_block *b = first; b; b = b->next) {
		bool is_down = b->node->state == CD_DOWN;
		bool is_spare = b->is_full && is_heard(b) && b->node->drain &&
				staying >= o->copies;

		if (!is_down && !is_spare)
			continue;
		if (b->is_full && full - is_heard(b) == 0 &&
		    !PLANTED(ctl_cut_last))
			continue;
		cut(core, b, is_down ? "it is down" : "it is to be emptied");
		return true;
	}
	return false;
}

static bool admit(struct cd_core *core, struct cd_block *first)
{
	struct cd_block *last = first;

	while (last->next)
		last = last->next;
	if (last->is_full || last->said_epoch != last->epoch ||
	    (!last->is_whole && !PLANTED(ctl_admit_early)))
		return false;
	last->is_full = true;
	log_info("controld", "block %llu of %s has a copy at node %s",
		 (unsigned long long)last->number, last->object->name,
		 last->node->name);
	cd_chain_bump(core, first);
	return true;
}

static void join(struct cd_core *core, struct cd_block *first)
{
	struct cd_object *o = first->object;
	const struct cd_wish wish = {.size_bytes = o->block_bytes,
				     .copies = 1,
				     .is_block = true,
				     .beside = first};
	struct cd_node *node[CD_COPIES_MAX] = {NULL};
	struct cd_block *b;
	unsigned count = 0, staying = 0;

	for (b = first; b; b = b->next) {
		if (!b->is_full || !is_heard(b) || b->said_epoch != b->epoch)
			return; /* one thing at a time */
		count++;
		staying += !b->node->drain;
	}
	if (staying >= o->copies || count == CD_CHAIN_MAX)
		return;
	if (cd_place_policy("spread")(core, &wish, node) ||
	    cd_block_make(core, node[0], o, first->number, first->identity,
			  &b)) {
		error_clear(); /* there may be room later */
		return;
	}
	cd_chain_bump(core, first);
}

void cd_chains_tick(struct cd_core *core)
{
	const struct cd_ids *all = &core->tree->objects;

	if (!core->tree->has_copies)
		return;
	for (size_t i = 0; i < all->count; i++) {
		struct cd_object *o = all->row[i].thing;

		if (o->copies < 2 ||
		    (o->state != CD_READY && o->state != CD_FLUSHING))
			continue;
		for (unsigned k = 0; k < o->block_count; k++) {
			/* What goes to the vault needs no new copies, but must
			 * not wait for a node that is down. */
			if (!cut_one(core, o->block[k]) &&
			    o->state == CD_READY && !admit(core, o->block[k]))
				join(core, o->block[k]);
			cd_stage_part(core);
		}
	}
}

/* ---- beats -------------------------------------------------------------- */

static bool is_row(const json_t *row, size_t numbers)
{
	for (size_t i = 0; i < numbers; i++) {
		const json_t *v = json_array_get(row, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0)
			return false;
	}
	return json_array_size(row) >= numbers;
}

int cd_chains_check(const json_t *beat)
{
	const json_t *rows = json_object_get(beat, "chained"), *row;
	const json_t *links = json_object_get(beat, "links");
	size_t i;

	if ((rows && !json_is_array(rows)) || (links && !json_is_array(links)))
		return error_set(-EINVAL,
				 "\"chained\" and \"links\" are lists");
	if (json_array_size(rows) > CD_SAID_MAX ||
	    json_array_size(links) > CD_NODES_MAX)
		return error_set(-E2BIG,
				 "\"chained\" or \"links\" is too long");
	json_array_foreach(rows, i, row)
	{
		if (!is_row(row, 4))
			return error_set(-EINVAL,
					 "\"chained\" has lists of numbers");
	}
	json_array_foreach(links, i, row)
	{
		if (!json_is_string(json_object_get(row, "peer")) ||
		    json_string_length(json_object_get(row, "peer")) >
			    CD_NAME_MAX)
			return error_set(-EINVAL, "\"links\" has objects with "
						  "a \"peer\"");
	}
	return 0;
}

static uint64_t at(const json_t *row, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(row, i));
}

/* Those that it wants to be connected to are told at once. */
static void take_links(struct cd_core *core, struct cd_node *n,
		       const json_t *links)
{
	const json_t *row;
	size_t i;

	if (!links || (n->links && json_equal(n->links, links)))
		return;
	json_decref(n->links);
	n->links = json_deep_copy(links);
	json_array_foreach(links, i, row)
	{
		struct cd_node *peer = cd_node_find(
			core, json_string_value(json_object_get(row, "peer")));

		if (peer)
			cd_order(peer);
	}
}

void cd_chains_hear(struct cd_core *core, struct cd_node *n, const json_t *beat)
{
	const json_t *rows = json_object_get(beat, "chained"), *row;
	size_t i;

	take_links(core, n, json_object_get(beat, "links"));
	json_array_foreach(rows, i, row)
	{
		struct cd_block *b =
			at(row, 0) < CD_BLOCKS_MAX
				? cd_block_at(n, (unsigned)at(row, 0),
					      at(row, 1))
				: NULL;

		if (!b || !b->object || !b->identity)
			continue;
		b->said_epoch = at(row, 2);
		b->is_whole = at(row, 3);
		if (!b->is_full && b->is_whole && b->said_epoch == b->epoch)
			(void)admit(core, first_of(b->object, b->number));
	}
}

static json_t *config_json(const struct cd_block *b)
{
	const struct cd_block *first = first_of(b->object, b->number), *k;
	json_t *members = json_array();
	bool is_fresh = false;
	int full = 0;

	for (k = first; k; k = k->next) {
		full += k->is_full;
		is_fresh |= !k->is_full && k->since == k->epoch;
		(void)json_array_append_new(
			members,
			json_pack("[s, i, I]", k->node->name, (int)k->index,
				  cd_int(k->generation)));
	}
	return json_pack("{s:i, s:I, s:I, s:i, s:b, s:o}", "index",
			 (int)b->index, "generation", cd_int(b->generation),
			 "epoch", cd_int(b->epoch), "full", full, "fresh",
			 is_fresh, "members", members);
}

/* What others offer to this node. */
static json_t *links_json(const struct cd_core *core, const struct cd_node *n)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_node *p = core->node[i];
		const json_t *row;
		size_t k;

		if (!p || p == n || p->state == CD_DOWN)
			continue;
		json_array_foreach(p->links, k, row)
		{
			json_t *copy;

			if (strcmp(json_string_value(
					   json_object_get(row, "peer")),
				   n->name) != 0)
				continue;
			copy = json_deep_copy(row);
			(void)json_object_set_new(copy, "peer",
						  json_string(p->name));
			(void)json_array_append_new(out, copy);
		}
	}
	return out;
}

void cd_chains_say(struct cd_core *core, struct cd_node *n, json_t *answer)
{
	struct cd_lent *lent = n->lent;
	json_t *rows = json_array();

	for (unsigned i = 0, seen = 0; lent && seen < lent->count; i++) {
		const struct cd_block *b = lent->block[i];

		seen += b != NULL;
		if (b && b->object && b->identity &&
		    b->said_epoch != b->epoch &&
		    json_array_size(rows) < CD_ORDERS_MAX)
			(void)json_array_append_new(rows, config_json(b));
	}
	if (lent)
		lent->has_chain_news = false;
	if (json_array_size(rows))
		(void)json_object_set(answer, "chains", rows);
	json_decref(rows);
	rows = links_json(core, n);
	if (json_array_size(rows))
		(void)json_object_set(answer, "links", rows);
	json_decref(rows);
}

json_t *cd_chain_json(const struct cd_block *first)
{
	json_t *rows = json_array();

	for (const struct cd_block *b = first; b; b = b->next)
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:i, s:I, s:b, s:b}", "node",
				  b->node->name, "address", b->node->address,
				  "index", (int)b->index, "generation",
				  cd_int(b->generation), "full", b->is_full,
				  "down", b->node->state == CD_DOWN));
	return rows;
}
