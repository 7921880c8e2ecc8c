/* SPDX-License-Identifier: Apache-2.0 */
/* Regions on their way to another node: the states of move.h. */
#include "move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "memory_priv.h"

/* ---- who may use what ---------------------------------------------------- */

static const struct mem_given *given_find(const struct mem_node *node,
					  const struct mem_tenant *tenant,
					  const char *name)
{
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++) {
		const struct mem_given *g = &node->given[i];

		if (g->id && g->until_ns > now_ns &&
		    strcmp(g->tenant, tenant->name) == 0 &&
		    strcmp(g->name, name) == 0)
			return g;
	}
	return NULL;
}

static int check_there(const struct mem_node *node,
		       const struct mem_tenant *tenant, const char *name,
		       const struct mem_region *r)
{
	const struct mem_given *g = r ? NULL : given_find(node, tenant, name);

	if (g)
		return error_set(-EBUSY, "region %s was moved to node %s",
				 g->name, g->to);
	if (!r)
		return error_set(-ENOENT, "there is no region %.63s", name);
	if (r->busy)
		return error_set(-EBUSY,
				 "region %s is being made, changed or deleted",
				 r->name);
	return 0;
}

int move_check(const struct mem_node *node, const struct mem_tenant *tenant,
	       const char *name, const struct mem_region *r)
{
	int err = check_there(node, tenant, name, r);

	if (err || r->move.stage == MEM_STAGE_HOME)
		return err;
	if (r->move.stage > MEM_STAGE_GONE)
		return error_set(-ENOENT, "there is no region %s", r->name);
	return error_set(-EBUSY, "region %s is being moved to another node",
			 r->name);
}

int move_check_grant(const struct mem_node *node, const struct ctl_call *call,
		     const char *name, const struct mem_region *r,
		     const struct grant_wish *wish)
{
	uint64_t id = 0;
	int err = move_field_id(call->body, "move", false, &id);

	if (!err && !id)
		return move_check(node, call->caller, name, r);
	if (!err)
		err = check_there(node, call->caller, name, r);
	if (err)
		return err;
	if (r->move.id == id && !call->scope &&
	    ((r->move.stage == MEM_STAGE_LEAVING &&
	      wish->access == IBV_ACCESS_REMOTE_READ) ||
	     (r->move.stage == MEM_STAGE_ARRIVING && wish->revocable)))
		return 0;
	return error_set(-EACCES,
			 "region %s does not leave by this move, to be read, "
			 "nor arrives, to be written with a key that ends",
			 r->name);
}

/* ---- what is said -------------------------------------------------------- */

int move_parse_id(const char *what, const char *text, uint64_t *out)
{
	if (strlen(text) != CTL_INCARNATION_TEXT - 1 ||
	    strspn(text, "0123456789abcdef") != CTL_INCARNATION_TEXT - 1)
		return error_set(-EINVAL, "\"%s\" has %d hex digits", what,
				 CTL_INCARNATION_TEXT - 1);
	*out = strtoull(text, NULL, 16);
	return *out ? 0 : error_set(-EINVAL, "\"%s\" is not 0", what);
}

int move_field_id(const json_t *body, const char *name, bool required,
		  uint64_t *out)
{
	const char *text = NULL;
	int err = ctl_field_string(body, name, required, &text);

	*out = 0;
	return err || !text ? err : move_parse_id(name, text, out);
}

int move_arrival_parse(const struct mem_node *node, const json_t *body,
		       struct mem_move *move, uint64_t *birth)
{
	const char *from = NULL;
	uint64_t ms = 0, run = 0;
	int err = move_field_id(body, "move", false, &move->id);

	*move = (struct mem_move){.stage = MEM_STAGE_HOME, .id = move->id};
	*birth = 0;
	if (err || !move->id)
		return err;
	move->stage = MEM_STAGE_ARRIVING;
	err = move_field_id(body, "birth", true, birth);
	if (!err)
		err = ctl_field_string(body, "from", true, &from);
	if (!err && !ctl_name_is_valid(from, MEM_NODE_NAME_MAX))
		err = error_set(-EINVAL, "\"from\" is a node's name");
	if (!err)
		err = move_field_id(body, "from_run", true, &run);
	if (!err)
		err = ctl_field_u64(body, "ms", true, 1, MEM_MOVE_MS_MAX, &ms);
	if (err)
		return err;
	(void)snprintf(move->from, sizeof(move->from), "%s", from);
	ctl_incarnation_format(run, move->from_run);
	move->until_ns = env_now_ns(node->env) + ms * 1000000;
	return 0;
}

/* ---- leaving ------------------------------------------------------------- */

int move_none(uint64_t id)
{
	return error_set(-ENOENT, "there is no move %016" PRIx64, id);
}

int move_may_leave(const struct mem_region *r)
{
	if (r->busy || r->move.stage != MEM_STAGE_HOME)
		return error_set(-EBUSY, "region %s is being changed or moved",
				 r->name);
	if (r->owner_nonce)
		return error_set(-EOPNOTSUPP,
				 "region %s belongs to a program that runs, "
				 "and goes with it",
				 r->name);
	if (r->declared.kind != MEM_DECLARED_NOT)
		return error_set(-EOPNOTSUPP,
				 "the switch knows region %s and its node",
				 r->name);
	if (!r->can_bind)
		return error_set(-EOPNOTSUPP,
				 "the NIC has no windows on its own memory, so "
				 "region %s cannot be read while it leaves",
				 r->name);
	return 0;
}

static struct memory memory_of(const struct mem_region *r)
{
	return (struct memory){.addr = r->addr,
			       .mr = r->mr,
			       .size_bytes = r->size_bytes,
			       .from_aqdv = r->from_aqdv,
			       .dm = r->dm,
			       .can_bind = r->can_bind};
}

/* All keys end, and there is another one: to read, which is the mover's, or
 * with all rights. The region is busy meanwhile; what it was before stays if
 * this fails. */
static int change_key(struct mem_node *node, struct mem_region *r,
		      bool only_read)
{
	struct memory old = memory_of(r);
	struct ibv_mr *mr = NULL;
	int err;

	r->busy = true;
	pthread_mutex_unlock(&node->lock);
	err = memory_register(r->tenant->pd, &old, only_read, &mr);
	if (!err && !only_read) {
		err = walks_place(r, mr);
		if (err)
			(void)ibv_dereg_mr(mr); /* nobody has it */
	}
	pthread_mutex_lock(&node->lock);
	if (!err) {
		grant_revoke_region(node, r);
		pthread_mutex_unlock(&node->lock);
		if (only_read)
			declare_region_end(node, r);
		memory_close(&old);
		memory_settle(&old);
		pthread_mutex_lock(&node->lock);
		r->mr = mr;
		r->epoch = ++node->last_epoch;
	}
	r->busy = false;
	return err;
}

static bool was_given(const struct mem_node *node,
		      const struct mem_tenant *tenant, uint64_t id)
{
	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++)
		if (node->given[i].id == id &&
		    strcmp(node->given[i].tenant, tenant->name) == 0)
			return true;
	return false;
}

static bool was_kept(const struct mem_node *node, uint64_t id)
{
	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++)
		if (node->kept[i] == id)
			return true;
	return false;
}

/* One that was pushed out by later ones is settled by the next drain. */
static void note_kept(struct mem_node *node, const struct mem_region *r)
{
	if (was_kept(node, r->move.id) ||
	    was_given(node, r->tenant, r->move.id))
		return;
	node->kept[node->kept_next] = r->move.id;
	node->kept_next = (node->kept_next + 1) % MEM_GIVEN_MAX;
}

int move_may_begin(const struct mem_node *node, const struct mem_tenant *tenant,
		   uint64_t id)
{
	/* To a controller that knows only the run before, a copy from this one
	 * would be all that is left of a node that was started anew. */
	if (!node->has_joined)
		return error_set(-EAGAIN,
				 "no controller has heard of this run of node "
				 "%s yet",
				 node->name);
	return was_kept(node, id) || was_given(node, tenant, id)
		       ? error_set(-ESTALE,
				   "move %016" PRIx64
				   " is over; another one has another number",
				   id)
		       : 0;
}

/* A leaving one is as it was before, with other keys. */
static int stay(struct mem_node *node, struct mem_region *r)
{
	int err = change_key(node, r, false);

	if (err)
		return err;
	note_kept(node, r);
	r->move = (struct mem_move){.stage = MEM_STAGE_HOME};
	declare_region_anew(node, r);
	return 0;
}

int move_leave(struct mem_node *node, uint64_t id, uint64_t until_ns,
	       struct mem_region *const *regions, unsigned count)
{
	char words[ERROR_TEXT_MAX];
	int err = 0;

	lock_assert_mutex_held(&node->lock);
	/* First all of them: while the lock is free nobody else takes one. */
	for (unsigned i = 0; i < count; i++)
		regions[i]->move = (struct mem_move){.stage = MEM_STAGE_LEAVING,
						     .id = id,
						     .until_ns = until_ns};
	for (unsigned i = 0; i < count && !err; i++)
		err = regions[i]->life.ended || regions[i]->busy
			      ? error_set(-EBUSY, "region %s is being deleted",
					  regions[i]->name)
			      : change_key(node, regions[i], true);
	if (!err)
		return 0;
	(void)snprintf(words, sizeof(words), "%s", error_last());
	/* The tick brings back what is left of it. */
	for (unsigned i = 0; i < count; i++)
		if (!regions[i]->life.ended)
			regions[i]->move.until_ns = 0;
	return error_set(err, "%s", words);
}

/* ---- the end ------------------------------------------------------------- */

/* The next region of the move in that stage that nobody else has in hand. */
static struct mem_region *next_of(const struct mem_node *node,
				  const struct mem_tenant *tenant, uint64_t id,
				  enum mem_stage stage)
{
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];

		if (r && r->tenant == tenant && r->move.id == id &&
		    r->move.stage == stage && !r->busy)
			return r;
	}
	return NULL;
}

/* What was given and not taken yet is all that is known of a region, so it is
 * not forgotten. */
static struct mem_given *given_place(struct mem_node *node)
{
	struct mem_given *g = node->given;

	while (g < node->given + MEM_GIVEN_MAX && g->id)
		g++;
	return g < node->given + MEM_GIVEN_MAX ? g : NULL;
}

/* Nor can one tenant take all places: each has a quarter. */
static bool given_has_room(const struct mem_node *node,
			   const struct mem_tenant *tenant, unsigned count)
{
	unsigned all = 0, own = 0;

	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++) {
		const struct mem_given *g = &node->given[i];

		all += g->id != 0;
		own += g->id && strcmp(g->tenant, tenant->name) == 0;
	}
	return count <= MEM_GIVEN_MAX - all && own + count <= MEM_GIVEN_MAX / 4;
}

static void note_given(struct mem_node *node, const struct mem_region *r,
		       const char *to)
{
	struct mem_given *g = given_place(node);

	ASSERT(g); /* move_give has looked */
	node->given_count++;
	*g = (struct mem_given){.id = r->move.id,
				.until_ns = env_now_ns(node->env) +
					    MEM_GIVEN_MS * 1000000ull};
	(void)snprintf(g->tenant, sizeof(g->tenant), "%s", r->tenant->name);
	(void)snprintf(g->name, sizeof(g->name), "%s", r->name);
	(void)snprintf(g->to, sizeof(g->to), "%s", to);
}

static void tell_news(struct mem_node *node)
{
	if (node->control.wake)
		node->control.wake(node->control.ctx);
}

int move_give(struct mem_node *node, const struct mem_tenant *tenant,
	      uint64_t id, const char *to)
{
	unsigned count = 0;
	struct mem_region *r;

	lock_assert_mutex_held(&node->lock);
	if (was_given(node, tenant, id))
		return 0;
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		r = node->regions[i];
		if (!r || r->tenant != tenant || r->move.id != id ||
		    r->move.stage != MEM_STAGE_LEAVING)
			continue;
		if (r->busy || !r->move.until_ns)
			return error_set(-EBUSY, "region %s is being changed",
					 r->name);
		count++;
	}
	if (!count)
		return move_none(id);
	if (!given_has_room(node, tenant, count))
		return error_set(-EAGAIN, "regions that were moved away have "
					  "not been taken");
	while ((r = next_of(node, tenant, id, MEM_STAGE_LEAVING))) {
		note_given(node, r, to);
		r->move.stage = MEM_STAGE_GONE;
	}
	/* That was it; from here on the lock is let go. */
	while ((r = next_of(node, tenant, id, MEM_STAGE_GONE))) {
		log_info("memnode", "region %s has moved to node %s", r->name,
			 to);
		if (region_delete(node, r))
			log_warn("memnode", "%s", error_last());
	}
	tell_news(node);
	return 0;
}

static void note_taken(struct mem_node *node, uint64_t id)
{
	node->taken[node->taken_next] = (struct mem_taken){
		id, env_now_ns(node->env) + MEM_TAKEN_MS * 1000000ull};
	node->taken_next = (node->taken_next + 1) % MEM_GIVEN_MAX;
}

int move_take(struct mem_node *node, const struct mem_tenant *tenant,
	      uint64_t id)
{
	struct mem_region *r;
	bool any = false;

	lock_assert_mutex_held(&node->lock);
	while ((r = next_of(node, tenant, id, MEM_STAGE_SEALED))) {
		/* The mover's key ends; and with another epoch the controller
		 * is told the name. */
		grant_revoke_region(node, r);
		r->epoch = ++node->last_epoch;
		r->move = (struct mem_move){.stage = MEM_STAGE_HOME};
		declare_region_anew(node, r);
		log_info("memnode", "region %s has moved here", r->name);
		any = true;
	}
	if (!any)
		return move_none(id);
	note_taken(node, id);
	tell_news(node);
	return 0;
}

/* Not as long as whoever moved them may ask once more whether it was given. */
void move_settled(struct mem_node *node, uint64_t id)
{
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++)
		if (node->given[i].id == id && node->given[i].until_ns < now_ns)
			node->given[i] = (struct mem_given){0};
}

int move_end(struct mem_node *node, const struct mem_tenant *tenant,
	     uint64_t id)
{
	static const enum mem_stage here[] = {MEM_STAGE_ARRIVING,
					      MEM_STAGE_SEALED};
	struct mem_region *r;
	bool any = false;
	int err = 0;

	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++)
		if (node->given[i].id == id &&
		    strcmp(node->given[i].tenant, tenant->name) == 0) {
			node->given[i] = (struct mem_given){0};
			any = true;
		}
	while (!err && (r = next_of(node, tenant, id, MEM_STAGE_LEAVING))) {
		any = true;
		err = stay(node, r);
	}
	for (unsigned i = 0; i < ARRAY_LEN(here); i++)
		while (!err && (r = next_of(node, tenant, id, here[i]))) {
			any = true;
			err = region_delete(node, r);
		}
	return err || any ? err : move_none(id);
}

void move_tick(struct mem_node *node)
{
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];
		int err = 0;

		if (!r || r->busy || now_ns < r->move.until_ns)
			continue;
		if (r->move.stage == MEM_STAGE_LEAVING) {
			log_warn("memnode",
				 "nothing was heard of who moves region %s: it "
				 "stays here",
				 r->name);
			err = stay(node, r);
		} else if (r->move.stage == MEM_STAGE_ARRIVING) {
			log_warn("memnode",
				 "nothing was heard of who moves region %s "
				 "here: it ends",
				 r->name);
			err = region_delete(node, r);
		}
		if (err)
			log_warn("memnode", "%s", error_last());
	}
}
