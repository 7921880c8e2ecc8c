/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of a controller that open a part of what a tenant has: its regions for
 * reading, or none of them, and connections for blocks. They count as long as
 * they are in the controller's list, and until their time is over by the node's
 * own clock.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "ruled.h"

static int parse_one(uint64_t now_ns, const json_t *row, struct mem_narrow *n)
{
	const char *token = NULL, *regions = NULL, *rights = NULL;
	uint64_t ms = 0;
	int err = json_is_object(row)
			  ? ctl_field_string(row, "token", true, &token)
			  : error_set(-EINVAL, "\"narrow\" has objects");

	if (!err)
		err = ctl_token_hash_parse(token, &n->token);
	if (!err)
		err = ctl_field_string(row, "regions", true, &regions);
	if (!err && regions[0] && !narrow_regions_are_valid(regions))
		err = error_set(-EINVAL, "\"regions\" names none");
	if (!err)
		err = ctl_field_string(row, "rights", true, &rights);
	if (!err && strcmp(rights, "r") != 0 && strcmp(rights, "rw") != 0)
		err = error_set(-EINVAL, "\"rights\" is \"r\" or \"rw\"");
	if (!err)
		err = ctl_field_u64(row, "left_ms", true, 0,
				    MEM_TOKEN_DAYS_MAX * 86400000ull, &ms);
	if (err)
		return err;
	n->is_ruled = true;
	n->may_write = rights[1] == 'w';
	n->until_ns = ms ? now_ns + ms * 1000000 : UINT64_MAX;
	(void)snprintf(n->regions, sizeof(n->regions), "%s", regions);
	return 0;
}

int ruled_narrows_parse(const struct mem_node *node, const json_t *row,
			struct ruled_narrows *out)
{
	const json_t *rows = json_object_get(row, "narrow"), *one;
	size_t i;
	int err = 0;

	*out = (struct ruled_narrows){0};
	if (json_array_size(rows) > MEM_NARROW_RULED_MAX)
		return error_set(-EINVAL, "\"narrow\" has %d rows at most",
				 MEM_NARROW_RULED_MAX);
	json_array_foreach(rows, i, one)
	{
		err = parse_one(env_now_ns(node->env), one,
				&out->row[out->count++]);
		if (err)
			return err;
	}
	return 0;
}

static bool opens_the_same(const struct mem_narrow *a,
			   const struct mem_narrow *b)
{
	return a->may_write == b->may_write &&
	       strcmp(a->regions, b->regions) == 0;
}

static const struct mem_narrow *find(const struct ruled_narrows *k,
				     const struct ctl_token_hash *token)
{
	for (unsigned i = 0; i < k->count; i++)
		if (ctl_token_hash_equal(&k->row[i].token, token))
			return &k->row[i];
	return NULL;
}

bool ruled_narrows_set(struct mem_node *node, struct mem_tenant *t,
		       const struct ruled_narrows *k)
{
	uint64_t now_ns = env_now_ns(node->env), id;
	bool lost = false;

	for (unsigned i = MEM_NARROW_MAX; i < MEM_NARROW_ROWS; i++) {
		struct mem_narrow *n = &t->narrows.row[i];
		const struct mem_narrow *same =
			n->id ? find(k, &n->token) : NULL;

		if (!n->id || (same && opens_the_same(n, same)))
			continue;
		(void)narrow_end(&t->narrows, n->id); /* it is there */
		lost = true;
	}
	for (unsigned i = 0; i < k->count; i++) {
		struct mem_narrow *n =
			narrow_find(&t->narrows, &k->row[i].token, now_ns);

		/* Its connections stay, so its number does. */
		if (n && n->is_ruled) {
			n->until_ns = k->row[i].until_ns;
			continue;
		}
		/* The tenant has made the same one here: it goes. */
		lost |= n && narrow_end(&t->narrows, n->id);
		if (narrow_make(&t->narrows, &k->row[i], now_ns, &id))
			log_warn("memnode", "%s", error_last());
	}
	return lost;
}
