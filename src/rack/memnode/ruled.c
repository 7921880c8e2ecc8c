/* SPDX-License-Identifier: Apache-2.0 */
/* Allowances, tenants and drain, as a controller wants them. */
#include "ruled.h"
#include "spill.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/size.h"
#include "blocks.h"
#include "move.h"
#include "task.h"

static uint64_t used_of(const struct mem_tenant *t)
{
	return t->used_bytes + t->page_bytes;
}

static bool is_default(const struct mem_tenant *t)
{
	return strcmp(t->name, "default") == 0;
}

/* ---- what may be handed out --------------------------------------------- */

static int charge_alone(const struct mem_tenant *t, uint64_t more)
{
	uint64_t used = used_of(t);

	if (!t->quota_bytes ||
	    (more <= t->quota_bytes && used <= t->quota_bytes - more))
		return 0;
	return error_set(-EDQUOT,
			 "tenant %s uses %s of its %s; %s more do not fit",
			 t->name, SIZE_TEXT(used), SIZE_TEXT(t->quota_bytes),
			 SIZE_TEXT(more));
}

int ruled_charge(struct mem_node *node, struct mem_tenant *t, uint64_t more)
{
	uint64_t used = used_of(t);

	if (!t->is_ruled)
		return charge_alone(t, more);
	if (!more || !t->share.has_quota)
		return 0;
	if (!node->control.is_fresh ||
	    !node->control.is_fresh(node->control.ctx))
		return error_set(-EDQUOT,
				 "the controller does not answer, and without "
				 "it node %s hands out nothing of a quota",
				 node->name);
	if (up_share_may(&t->share, used, more))
		return 0;
	t->share.wish_bytes = used + more;
	return error_set(-EDQUOT,
			 "tenant %s uses %s here, of a quota of %s for the "
			 "rack; %s more do not fit",
			 t->name, SIZE_TEXT(used), SIZE_TEXT(t->quota_bytes),
			 SIZE_TEXT(more));
}

int ruled_admit(const struct mem_node *node)
{
	return node->is_drained ? error_set(-ENOSPC,
					    "node %s is drained: it takes "
					    "nothing new",
					    node->name)
				: 0;
}

/* Without the lock, which others need to grant it. */
static void pause_briefly(struct mem_node *node)
{
	uint64_t at = clock_mono_ns() + MEM_GRANT_LOOK_MS * 1000000ull;
	const struct timespec until = {.tv_sec = (time_t)(at / 1000000000),
				       .tv_nsec = (long)(at % 1000000000)};

	(void)pthread_cond_timedwait(&node->granted, &node->lock, &until);
}

bool ruled_await(struct mem_node *node, struct mem_tenant *t,
		 uint64_t deadline_ns)
{
	uint64_t need, refusals;
	bool has;

	lock_assert_mutex_held(&node->lock);
	if (!t || !t->share.wish_bytes || !node->control.wake)
		return false;
	need = t->share.wish_bytes;
	refusals = t->share.refusals;
	node->control.wake(node->control.ctx);
	while (!(has = t->share.limit_bytes >= need) && t->is_ruled &&
	       !t->life.ended && t->share.refusals == refusals &&
	       env_now_ns(node->env) < deadline_ns) {
		t->share.wish_bytes = u64_max(t->share.wish_bytes, need);
		pause_briefly(node);
	}
	t->share.wish_bytes = 0;
	return has && !t->life.ended;
}

int ruled_check(const struct mem_node *node, const struct mem_tenant *t)
{
	return t->is_ruled && !is_default(t) && node->control.wake
		       ? error_set(-EACCES,
				   "tenant %s belongs to the whole rack; ask "
				   "its controller, as 'aquifer tenant' does",
				   t->name)
		       : 0;
}

/* ---- the list of tenants ------------------------------------------------ */

/* A tenant of ours with that name that the controller does not mean. */
static bool is_conflict(const struct mem_tenant *t,
			const struct ruled_tokens *k)
{
	return t && !t->is_ruled && !is_default(t) &&
	       !ruled_tokens_have(k, &t->token);
}

static int settle(struct mem_node *node, struct mem_tenant *t,
		  const json_t *row, const struct ruled_tokens *k,
		  const struct ruled_narrows *less)
{
	const json_t *quota = json_object_get(row, "quota");
	bool lost = false;
	int err = tenant_limit_parse(node, row, t);

	if (err)
		return err;
	if (!is_default(t))
		lost = ruled_tokens_set(node, t, k);
	lost |= ruled_narrows_set(node, t, less);
	t->is_ruled = true;
	t->quota_bytes = (uint64_t)json_integer_value(quota);
	up_share_rule(&t->share, t->quota_bytes != 0, used_of(t));
	if (t->state == MEM_TENANT_NEW)
		t->state = MEM_TENANT_LIVE;
	if (lost) {
		log_info("memnode", "tenant %s has other tokens", t->name);
		ruled_shut_out(node, t);
	}
	return 0;
}

static int take_row(struct mem_node *node, const json_t *row)
{
	const char *name = NULL;
	struct ctl_token_hash none;
	struct mem_tenant *t;
	struct ruled_narrows less;
	struct ruled_tokens k;
	int err = json_is_object(row)
			  ? ctl_field_string(row, "name", true, &name)
			  : -EINVAL;

	if (!err)
		err = ruled_tokens_parse(node, row, &k);
	if (!err)
		err = ruled_narrows_parse(node, row, &less);
	if (err)
		return err;
	t = tenant_find(node, name);
	if (is_conflict(t, &k)) {
		(void)json_array_append_new(node->conflicts, json_string(name));
		log_warn("memnode",
			 "tenant %s has another token here than in the rest of "
			 "the rack: it stays as it is",
			 name);
		return 0;
	}
	if (t && t->state == MEM_TENANT_ENDING)
		return 0; /* the next list finds it gone */
	env_random(node->env, none.bytes, sizeof(none.bytes));
	if (!t)
		err = tenant_add(node, name, &none, &t);
	return err ? err : settle(node, t, row, &k, &less);
}

static bool is_listed(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *n = json_string_value(json_object_get(row, "name"));

		if (n && strcmp(n, name) == 0)
			return true;
	}
	return false;
}

static void strike(struct mem_node *node, const json_t *rows)
{
	for (unsigned i = 0; i < node->tenant_count; i++) {
		struct mem_tenant *t = node->tenants[i];

		/* Its memory is given back by the next tick. */
		if (t->is_ruled && !is_default(t) &&
		    t->state == MEM_TENANT_LIVE && !is_listed(rows, t->name)) {
			log_info("memnode", "tenant %s was removed", t->name);
			t->state = MEM_TENANT_ENDING;
		}
	}
}

static void take_list(struct mem_node *node, const json_t *rows)
{
	const json_t *row;
	size_t i;

	tenant_change_begin(node);
	(void)json_array_clear(node->conflicts);
	strike(node, rows);
	json_array_foreach(rows, i, row) if (take_row(node, row))
		log_warn("memnode", "the controller's tenant is left out: %s",
			 error_last());
	if (tenant_file_save(node))
		log_warn("memnode", "%s", error_last());
	tenant_change_end(node);
}

/* ---- what is said ------------------------------------------------------- */

static json_t *own_tenants(const struct mem_node *node)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < node->tenant_count; i++) {
		const struct mem_tenant *t = node->tenants[i];
		char hash[CTL_TOKEN_TEXT];

		if (t->is_ruled || is_default(t) || t->state != MEM_TENANT_LIVE)
			continue;
		ctl_token_hash_format(&t->token, hash);
		(void)json_array_append_new(
			rows, json_pack("{s:s, s:I, s:s, s:o}", "name", t->name,
					"quota", (json_int_t)t->quota_bytes,
					"token_sha256", hash, "limits",
					tenant_limit_json(t, true)));
	}
	return rows;
}

static json_t *shares(struct mem_node *node)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < node->tenant_count; i++) {
		struct mem_tenant *t = node->tenants[i];
		json_t *row = up_share_say(&t->share, t->name, used_of(t));

		(void)json_object_set_new(
			row, "regions",
			json_integer((json_int_t)t->taken[MEM_LIMIT_REGIONS]));
		(void)json_object_set_new(
			row, "connections",
			json_integer((json_int_t)t->taken[MEM_LIMIT_CONNS]));
		(void)json_array_append_new(rows, row);
	}
	return rows;
}

static void say_names(const struct mem_node *node, json_t *beat)
{
	json_t *rows = json_array();
	unsigned told = 0, hidden = 0;

	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];

		if (!r || (move_is_hidden(r) && ++hidden))
			continue;
		if (told == MEM_NAMES_TOLD)
			continue;
		told++;
		(void)json_array_append_new(
			rows, json_pack("{s:s, s:s, s:I}", "tenant",
					r->tenant->name, "name", r->name,
					"size", (json_int_t)r->size_bytes));
	}
	(void)json_object_set_new(beat, "names", rows);
	(void)json_object_set_new(
		beat, "names_complete",
		json_boolean(told + hidden == node->region_count));
}

/* ---- for uplink --------------------------------------------------------- */

void mem_node_control(struct mem_node *node, const struct mem_control *control)
{
	pthread_mutex_lock(&node->lock);
	node->control = *control;
	pthread_mutex_unlock(&node->lock);
}

void mem_node_joined(void *ctx)
{
	struct mem_node *node = ctx;

	pthread_mutex_lock(&node->lock);
	for (unsigned i = 0; i < node->tenant_count; i++)
		up_share_join(&node->tenants[i]->share,
			      used_of(node->tenants[i]));
	node->names_told = 0;
	node->has_joined = true;
	pthread_mutex_unlock(&node->lock);
}

void mem_node_say(void *ctx, json_t *beat)
{
	struct mem_node *node = ctx;
	uint64_t ops = 0;

	pthread_mutex_lock(&node->lock);
	(void)json_object_set_new(beat, "used",
				  json_integer((json_int_t)node->used_bytes));
	if (node->spill) {
		(void)json_object_set_new(
			beat, "spill",
			json_integer((json_int_t)spill_size(node->spill)));
		(void)json_object_set_new(
			beat, "spilled",
			json_integer((json_int_t)spill_used(node->spill)));
	}
	(void)json_object_set_new(beat, "regions",
				  json_integer(node->region_count));
	(void)json_object_set_new(beat, "connections",
				  json_integer(node->conn_count));
	/* Programs of this machine do theirs on mapped memory by themselves. */
	(void)!aqdv_get_counter(node->context, "served", &ops);
	(void)json_object_set_new(beat, "ops", json_integer((json_int_t)ops));
	/* What it has then is all that it will have. */
	(void)json_object_set_new(beat, "drained",
				  json_boolean(node->is_drained));
	if (node->drain_order)
		(void)json_object_set_new(
			beat, "drain_order",
			json_integer((json_int_t)node->drain_order));
	(void)json_object_set_new(beat, "shares", shares(node));
	(void)json_object_set_new(beat, "own", own_tenants(node));
	(void)json_object_set_new(beat, "conflicts",
				  json_deep_copy(node->conflicts));
	/* Names come with epochs, and go. What was not answered was perhaps
	 * not heard, and is said again. */
	node->names_now = node->last_epoch + 1ull + node->regions_gone;
	if (node->names_told != node->names_now)
		say_names(node, beat);
	mem_blocks_say(node, beat);
	mem_tasks_say(node, beat);
	move_say(node, beat);
	pthread_mutex_unlock(&node->lock);
}

void mem_node_hear(void *ctx, const json_t *answer)
{
	struct mem_node *node = ctx;
	const json_t *rows = json_object_get(answer, "shares"), *row;
	const json_t *tenants = json_object_get(answer, "tenants");
	struct mem_visit visit;
	size_t i;

	node_enter(node, &visit);
	node->is_drained = json_is_true(json_object_get(answer, "drain"));
	node->drain_order = (uint64_t)json_integer_value(
		json_object_get(answer, "drain_order"));
	node->names_told = json_is_true(json_object_get(answer, "wants_names"))
				   ? 0
				   : node->names_now;
	if (json_is_array(tenants))
		take_list(node, tenants);
	json_array_foreach(rows, i, row)
	{
		const char *name =
			json_string_value(json_object_get(row, "tenant"));
		struct mem_tenant *t = name ? tenant_find(node, name) : NULL;

		if (t && t->is_ruled)
			(void)up_share_hear(&t->share, row, used_of(t));
	}
	(void)pthread_cond_broadcast(&node->granted);
	mem_blocks_hear(node, answer);
	mem_tasks_hear(node, answer);
	move_hear(node, answer);
	node_leave(node, &visit);
}
