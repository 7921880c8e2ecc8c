/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of tenants that a controller rules: several of one tenant, each
 * perhaps with an end. The controller says how long such a one is good for, and
 * the node counts by its own clock; so it ends also while the controller is
 * away, and clocks of machines need not agree. What was made with a token that
 * is gone ends with it, and nothing else.
 */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "ruled.h"

static bool is_over(const struct mem_token *k, uint64_t now_ns)
{
	return k->until_ns && k->until_ns <= now_ns;
}

/* No early end: the time tells nothing about which one it was. */
bool ruled_has_token(const struct mem_tenant *t,
		     const struct ctl_token_hash *token, uint64_t now_ns)
{
	bool found = false;

	for (unsigned i = 0; i < t->more_count; i++)
		found |= ctl_token_hash_equal(&t->more[i].hash, token) &&
			 !is_over(&t->more[i], now_ns);
	return found;
}

static bool is_valid(const struct mem_tenant *t,
		     const struct ctl_token_hash *token, uint64_t now_ns)
{
	return ctl_token_hash_equal(&t->token, token) ||
	       ruled_has_token(t, token, now_ns);
}

bool ruled_keeps(const struct mem_tenant *t, const struct mem_conn *c,
		 uint64_t now_ns)
{
	return c->narrow_id ? narrow_is_live(&t->narrows, c->narrow_id, now_ns)
			    : is_valid(t, &c->token, now_ns);
}

/* ---- lists -------------------------------------------------------------- */

/* Those that have an end are not kept: nobody knows how long the node will have
 * been down. They come back with the controller's list. */
json_t *ruled_tokens_json(const struct mem_tenant *t)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < t->more_count; i++) {
		char hash[CTL_TOKEN_TEXT];

		if (t->more[i].until_ns)
			continue;
		ctl_token_hash_format(&t->more[i].hash, hash);
		(void)json_array_append_new(rows, json_string(hash));
	}
	return rows;
}

static int parse_hashes(const json_t *rows, struct ruled_tokens *out)
{
	const json_t *row;
	size_t i;

	*out = (struct ruled_tokens){0};
	json_array_foreach(rows, i, row)
	{
		int err = out->count < MEM_TENANT_TOKENS && json_is_string(row)
				  ? ctl_token_hash_parse(
					    json_string_value(row),
					    &out->token[out->count].hash)
				  : -EINVAL;

		if (err)
			return error_set(-EINVAL, "\"tokens\" has hashes");
		out->count++;
	}
	return 0;
}

int ruled_tokens_parse(const struct mem_node *node, const json_t *row,
		       struct ruled_tokens *out)
{
	const json_t *left = json_object_get(row, "tokens_left_ms");
	int err = parse_hashes(json_object_get(row, "tokens"), out);

	for (unsigned i = 0; !err && i < out->count; i++) {
		const json_t *v = json_array_get(left, i);
		json_int_t ms = json_integer_value(v);

		if (!json_is_integer(v) || ms < 0 ||
		    ms > MEM_TOKEN_DAYS_MAX * 86400000ll)
			err = error_set(-EINVAL,
					"\"tokens_left_ms\" has numbers");
		else if (ms)
			out->token[i].until_ns =
				env_now_ns(node->env) + (uint64_t)ms * 1000000;
	}
	return err;
}

int ruled_load(struct mem_tenant *t, const json_t *row)
{
	struct ruled_tokens k;
	int err = parse_hashes(json_object_get(row, "more_sha256"), &k);

	if (err)
		return err;
	t->more_count = k.count;
	memcpy(t->more, k.token, sizeof(k.token));
	t->is_ruled = json_is_true(json_object_get(row, "ruled"));
	up_share_rule(&t->share, t->is_ruled && t->quota_bytes,
		      t->used_bytes + t->page_bytes);
	return 0;
}

bool ruled_tokens_have(const struct ruled_tokens *k,
		       const struct ctl_token_hash *token)
{
	bool found = false;

	for (unsigned i = 0; i < k->count; i++)
		found |= ctl_token_hash_equal(&k->token[i].hash, token);
	return found;
}

bool ruled_tokens_set(struct mem_node *node, struct mem_tenant *t,
		      const struct ruled_tokens *k)
{
	bool lost = !ruled_tokens_have(k, &t->token) && !t->is_tokenless;
	unsigned first = 0;

	for (unsigned i = 0; i < t->more_count; i++)
		lost |= !ruled_tokens_have(k, &t->more[i].hash);
	/* The tenant's own token, which is written down, has no end. */
	while (first < k->count && k->token[first].until_ns)
		first++;
	t->more_count = 0;
	for (unsigned i = 0; i < k->count; i++)
		if (i != first)
			t->more[t->more_count++] = k->token[i];
	if (first < k->count)
		t->token = k->token[first].hash;
	else /* nobody knows what has this hash */
		env_random(node->env, t->token.bytes, sizeof(t->token.bytes));
	t->is_tokenless = first == k->count;
	return lost;
}

/* ---- what ends with them ------------------------------------------------ */

void ruled_shut_out(struct mem_node *node, struct mem_tenant *t)
{
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < MEM_NARROW_MAX; i++) {
		const struct mem_narrow *n = &t->narrows.row[i];

		/* The tenant has made these; the controller's are its own. */
		if (n->id && !is_valid(t, &n->by, now_ns))
			(void)narrow_end(&t->narrows, n->id);
	}
	switch_walk_tenant_changed(node, t);
	tenant_end_conns(node, t, true);
}

/* Takes out what is over. */
static bool has_ended(struct mem_tenant *t, uint64_t now_ns)
{
	unsigned kept = 0, before = t->more_count;

	for (unsigned i = 0; i < before; i++)
		if (!is_over(&t->more[i], now_ns))
			t->more[kept++] = t->more[i];
	t->more_count = kept;
	return kept != before;
}

void ruled_tick(struct mem_node *node)
{
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < node->tenant_count; i++) {
		struct mem_tenant *t = node->tenants[i];

		if (!has_ended(t, now_ns))
			continue;
		log_info("memnode", "a token of tenant %s has ended", t->name);
		ruled_shut_out(node, t);
		return; /* the list may be another one now */
	}
}
