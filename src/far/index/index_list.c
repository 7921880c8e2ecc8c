/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes of a rack, from the names of their regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "index_priv.h"

enum {
	PREFIX_BYTES = 3,      /* "it-" */
	COUNT_KEYS_MAX = 8192, /* more keys of a tree are estimated */
	STOPPED = 1,
	/* A store of versions is read as a whole, if that is quick. */
	COUNT_BYTES_MAX = 64 << 20,
};

bool aq_index_owns_region(const char *region, char name[AQ_INDEX_NAME_MAX + 1])
{
	size_t len = strlen(region);

	if (len <= PREFIX_BYTES || len > PREFIX_BYTES + AQ_INDEX_NAME_MAX ||
	    region[0] != 'i' || !strchr("tlv", region[1]) || region[2] != '-')
		return false;
	memcpy(name, region + PREFIX_BYTES, len - PREFIX_BYTES + 1);
	return true;
}

/* ---- keys --------------------------------------------------------------- */

static int count_pair(void *user, const void *key, size_t key_len,
		      const void *value, size_t value_len)
{
	uint64_t *count = user;

	return ++*count == COUNT_KEYS_MAX ? STOPPED : 0;
}

/* Beyond a number of keys a tree is not walked to its end: then as many keys
 * are taken for granted as if all memory that clients have taken were leaves
 * like those at the beginning. */
static int count_tree(struct aq_index_client *c, struct aq_index_listed *out)
{
	struct aq_index_range all = {0};
	struct aq_index_stats stats;
	uint64_t nodes = 0;
	int err = aq_index_scan(c, &all, count_pair, &out->keys);

	if (err != STOPPED)
		return err;
	aq_index_client_stats(c, &stats);
	err = tree_nodes_taken(c->tree, &nodes);
	out->is_estimate = true;
	out->keys =
		u64_max(out->keys,
			nodes * out->keys / u64_max(stats.leaves_scanned, 1));
	return err;
}

static int count_keys(struct aq_index_client *c,
		      const struct aq_index_info *info,
		      struct aq_index_listed *out)
{
	struct aq_index_report r;
	int err;

	if (info->kind == AQ_INDEX_TREE) {
		err = count_tree(c, out);
		out->has_keys = !err;
		return err;
	}
	if (info->size_bytes > COUNT_BYTES_MAX)
		return 0;
	err = aq_index_check(c, &r);
	out->has_keys = !err;
	out->keys = err ? 0 : r.keys;
	return err;
}

static int look(struct aq_rack *rack, struct aq_index_listed *out)
{
	struct aq_index_client *c = NULL;
	struct aq_index_info info;
	struct aq_index *index;
	int err = aq_index_open(rack, out->name, &index);

	if (err)
		return err;
	aq_index_get_info(index, &info);
	out->kind = info.kind;
	err = aq_index_client_open(index, NULL, &c);
	if (!err)
		err = count_keys(c, &info, out);
	aq_index_client_close(c);
	aq_index_close(index);
	return err;
}

/* ---- the list ----------------------------------------------------------- */

struct listing {
	struct listed {
		char name[AQ_INDEX_NAME_MAX + 1];
		bool is_versions;
		uint64_t size_bytes;
	} * row;
	uint32_t count, room;
};

static int note_region(const char *region, const struct aq_region_stat *stat,
		       void *user)
{
	struct listing *l = user;
	struct listed one = {.is_versions = region[1] == 'v',
			     .size_bytes = stat->size_bytes};
	uint32_t i;
	int err;

	if (!aq_index_owns_region(region, one.name) ||
	    kit_name_check("an index", one.name))
		return 0;
	for (i = 0; i < l->count; i++)
		if (strcmp(l->row[i].name, one.name) == 0) {
			l->row[i].is_versions |= one.is_versions;
			l->row[i].size_bytes += one.size_bytes;
			return 0;
		}
	err = kit_grow(&l->row, &l->room, l->count + 1, sizeof(*l->row));
	if (!err)
		l->row[l->count++] = one;
	return err;
}

static int by_name(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int aq_index_each(struct aq_rack *rack, aq_index_listed_fn each, void *user)
{
	struct listing l = {0};
	int err = aq_region_each(rack, note_region, &l), one = 0;

	if (!err && l.count)
		qsort(l.row, l.count, sizeof(l.row[0]), by_name);
	for (uint32_t i = 0; i < l.count && !err; i++) {
		struct aq_index_listed out = {
			.name = l.row[i].name,
			.kind = l.row[i].is_versions ? AQ_INDEX_VERSIONS
						     : AQ_INDEX_TREE,
			.size_bytes = l.row[i].size_bytes};

		/* When a node answers and its memory does not there is no way
		 * to any, and one wait for that is enough. */
		if (one != -EHOSTDOWN)
			one = look(rack, &out);
		if (one == -EHOSTDOWN)
			out.condition = AQ_INDEX_UNKNOWN;
		else if (one == -ENOENT || one == -EBADMSG)
			out.condition = AQ_INDEX_DAMAGED;
		err = each(&out, user);
	}
	free(l.row);
	return err;
}
