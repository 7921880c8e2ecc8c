/* SPDX-License-Identifier: Apache-2.0 */
/* Where new memory goes. One function per policy; none of them chooses a node
 * that is drained, silent or too full, or one node for two copies. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "tree_priv.h"

static uint64_t taken(const struct cd_node *n)
{
	return n->used_bytes + n->promised_bytes;
}

static bool is_beside(const struct cd_node *n, const struct cd_block *b)
{
	for (; b; b = b->next)
		if (b->node == n)
			return true;
	return false;
}

static bool has_room(const struct cd_node *n, uint64_t bytes)
{
	return taken(n) <= n->size_bytes && n->size_bytes - taken(n) >= bytes;
}

/* What was placed there and does not fit into memory goes there, too. */
static bool has_spill(const struct cd_node *n, uint64_t bytes)
{
	uint64_t more = taken(n) > n->size_bytes ? taken(n) - n->size_bytes : 0;

	return n->spilled_bytes + more <= n->spill_bytes &&
	       n->spill_bytes - n->spilled_bytes - more >= bytes;
}

static bool fits(const struct cd_core *core, const struct cd_node *n,
		 const struct cd_wish *w, bool is_spilled)
{
	return n && !is_beside(n, w->beside) &&
	       (!w->is_block || cd_blocks_fit(core, n)) &&
	       n->kind == CD_MEMORY && n->state == CD_UP && !n->drain &&
	       n->has_beaten &&
	       (is_spilled ? has_spill(n, w->size_bytes)
			   : has_room(n, w->size_bytes));
}

/* Whether a has the smaller share in use; of equal ones the larger, then the
 * first by name, so that the choice can be repeated. */
static bool is_emptier(const struct cd_node *a, const struct cd_node *b)
{
	__uint128_t x = (__uint128_t)taken(a) * b->size_bytes;
	__uint128_t y = (__uint128_t)taken(b) * a->size_bytes;

	if (x != y)
		return x < y;
	if (a->size_bytes != b->size_bytes)
		return a->size_bytes > b->size_bytes;
	return strcmp(a->name, b->name) < 0;
}

static bool has_zone(struct cd_node *const *chosen, unsigned count,
		     const char *zone)
{
	for (unsigned i = 0; i < count; i++)
		if (zone[0] && strcmp(chosen[i]->zone, zone) == 0)
			return true;
	return false;
}

static bool is_chosen(struct cd_node *const *chosen, unsigned count,
		      const struct cd_node *n)
{
	for (unsigned i = 0; i < count; i++)
		if (chosen[i] == n)
			return true;
	return false;
}

/* Another zone wins over a smaller share, where zones count. */
static int choose_from(const struct cd_core *core, const struct cd_wish *w,
		       bool zones, bool is_spilled,
		       struct cd_node *out[CD_COPIES_MAX])
{
	for (unsigned k = 0; k < w->copies; k++) {
		struct cd_node *best = NULL;
		bool best_near = false;

		for (unsigned i = 0; i < CD_NODES_MAX; i++) {
			struct cd_node *n = core->node[i];
			bool near;

			if (!fits(core, n, w, is_spilled) ||
			    is_chosen(out, k, n))
				continue;
			near = zones && has_zone(out, k, n->zone);
			if (best &&
			    (near != best_near ? near : !is_emptier(n, best)))
				continue;
			best = n;
			best_near = near;
		}
		if (!best)
			return error_set(-ENOSPC,
					 "%u of %u copies of %s find no node: "
					 "the others are full, silent or "
					 "drained",
					 w->copies - k, w->copies,
					 SIZE_TEXT(w->size_bytes));
		out[k] = best;
	}
	return 0;
}

/* Memory first. A block without copies may lie in a spill tier. */
static int choose(const struct cd_core *core, const struct cd_wish *w,
		  bool zones, struct cd_node *out[CD_COPIES_MAX])
{
	int err = choose_from(core, w, zones, false, out);

	if (err != -ENOSPC || !w->is_block || w->copies != 1 || w->beside)
		return err;
	return choose_from(core, w, zones, true, out);
}

/* Copies in different zones where there are such. */
static int place_spread(const struct cd_core *core, const struct cd_wish *w,
			struct cd_node *out[CD_COPIES_MAX])
{
	return choose(core, w, true, out);
}

/* The least used share, whatever the zone. */
static int place_least(const struct cd_core *core, const struct cd_wish *w,
		       struct cd_node *out[CD_COPIES_MAX])
{
	return choose(core, w, false, out);
}

cd_place_fn cd_place_policy(const char *name)
{
	if (strcmp(name, "spread") == 0)
		return place_spread;
	return strcmp(name, "least") == 0 ? place_least : NULL;
}

void cd_handle_place(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_node *out[CD_COPIES_MAX] = {NULL};
	const char *policy = "spread";
	uint64_t copies = 1;
	struct cd_wish w = {0};
	cd_place_fn place;
	json_t *rows;
	int err = ctl_field_u64(call->body, "size", true, 1, INT64_MAX,
				&w.size_bytes);

	if (!err)
		err = ctl_field_u64(call->body, "copies", false, 1,
				    CD_COPIES_MAX, &copies);
	if (!err)
		err = ctl_field_string(call->body, "policy", false, &policy);
	place = err ? NULL : cd_place_policy(policy);
	if (!err && !place)
		err = error_set(-EINVAL, "\"policy\" is spread or least");
	w.copies = (unsigned)copies;
	if (!err)
		err = place(core, &w, out);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	rows = json_array();
	for (unsigned i = 0; i < w.copies; i++) {
		/* Until its next beat: not all who ask now go to one node. */
		out[i]->promised_bytes += w.size_bytes;
		(void)json_array_append_new(
			rows, json_pack("{s:s, s:s}", "name", out[i]->name,
					"address", out[i]->address));
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "nodes", rows));
}
