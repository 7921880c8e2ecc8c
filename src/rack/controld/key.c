/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of tickets. A new one is made every day; it signs when all nodes have
 * heard of it, and the one before stays until the last ticket that it has
 * signed is over. Seeds are rows, so that every leader signs alike.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hex.h"
#include "tree_priv.h"

static void key_name(uint32_t id, char out[32])
{
	(void)snprintf(out, 32, "ticket-key-%010u", id);
}

static void make_key(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;
	struct cd_key *k = &tree->key[tree->key_count];
	char name[32], seed[2 * CTL_TICKET_SEED_BYTES + 1];

	k->id = tree->key_count ? k[-1].id + 1 : 1;
	k->made_s = core->wall_s;
	env_random(core->env, k->seed, sizeof(k->seed));
	ctl_ticket_public(k->seed, k->public);
	tree->key_count++;
	key_name(k->id, name);
	hex_write(seed, k->seed, sizeof(k->seed));
	cd_stage(core, "rack", name,
		 json_pack("{s:s, s:I}", "seed", seed, "made",
			   cd_int(k->made_s)));
	memset(seed, 0, sizeof(seed));
	cd_order_all(core);
}

/* Whether a key that is this old signs. */
static bool is_known(const struct cd_core *core, const struct cd_key *k)
{
	return core->wall_s >= k->made_s + CD_KEY_NEWS_S;
}

/* The newest one that nodes know; without such a one the oldest. */
static const struct cd_key *signer(const struct cd_core *core)
{
	const struct cd_tree *tree = core->tree;

	for (unsigned i = tree->key_count; i-- > 1;)
		if (is_known(core, &tree->key[i]))
			return &tree->key[i];
	return tree->key_count ? &tree->key[0] : NULL;
}

void cd_keys_tick(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;
	const struct cd_key *newest =
		tree->key_count ? &tree->key[tree->key_count - 1] : NULL;
	char name[32];

	if ((!newest || core->wall_s >= newest->made_s + CD_KEY_LIFE_S) &&
	    tree->key_count < CD_KEYS_MAX)
		make_key(core);
	if (tree->key_count < 2 ||
	    core->wall_s < tree->key[1].made_s + CD_KEY_NEWS_S +
				   2 * (uint64_t)CD_TICKET_S)
		return;
	key_name(tree->key[0].id, name);
	cd_stage(core, "rack", name, NULL);
	tree->key_count--;
	memmove(&tree->key[0], &tree->key[1],
		tree->key_count * sizeof(tree->key[0]));
	cd_order_all(core);
}

json_t *cd_keys_json(const struct cd_core *core)
{
	char text[2 * CTL_TICKET_KEY_BYTES + 1];
	json_t *rows = json_array();

	for (unsigned i = 0; i < core->tree->key_count; i++) {
		const struct cd_key *k = &core->tree->key[i];

		hex_write(text, k->public, sizeof(k->public));
		(void)json_array_append_new(rows, json_pack("{s:I, s:s}", "id",
							    (json_int_t)k->id,
							    "key", text));
	}
	return rows;
}

int cd_key_sign(const struct cd_core *core, const struct cd_object *o,
		uint8_t rights, const uint8_t by[CTL_TICKET_BY_BYTES],
		char out[CTL_TICKET_TEXT], uint64_t *end_s)
{
	static const uint8_t kinds[CD_OBJECT_KINDS] = {
		[CD_FILE] = CTL_TICKET_FILE,
		[CD_QUEUE] = CTL_TICKET_QUEUE,
		[CD_EKV] = CTL_TICKET_EKV,
	};
	const struct cd_key *k = signer(core);
	uint8_t bytes[CTL_TICKET_BYTES];
	struct ctl_ticket t = {
		.object = o->id,
		.end_s = cd_scope_end_s(core, core->wall_s + CD_TICKET_S),
		.rights = rights,
		.kind = kinds[o->kind],
	};

	if (!k)
		return error_set(-EAGAIN, "the controller has no key for "
					  "tickets yet; try again");
	t.key_id = k->id;
	memcpy(t.by, by, sizeof(t.by));
	(void)snprintf(t.tenant, sizeof(t.tenant), "%s",
		       o->prefix->job->tenant);
	ctl_ticket_sign(&t, k->seed, bytes);
	hex_write(out, bytes, sizeof(bytes));
	*end_s = t.end_s;
	return 0;
}
