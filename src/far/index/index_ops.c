/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of <aquifer/index.h>: to the kind that the index is of. */
#include <errno.h>

#include "base/bytes.h"
#include "base/error.h"
#include "index_priv.h"

/* The key of an index of versions. */
static int number_of(const void *key, size_t key_len, uint64_t *number)
{
	if (key_len != sizeof(be64))
		return error_set(-EINVAL,
				 "keys of this index are numbers of 8 bytes");
	*number = be64_get(*(const be64 *)key);
	return 0;
}

int aq_index_get(struct aq_index_client *c, const void *key, size_t key_len,
		 void *buf, size_t buf_bytes, size_t *len)
{
	uint64_t n = 0;
	int err;

	if (c->tree)
		return tree_get(c->tree, key, key_len, buf, buf_bytes, len);
	err = number_of(key, key_len, &n);
	return err ? err : vlist_get(c->vlist, n, buf, buf_bytes, len);
}

int aq_index_put(struct aq_index_client *c, const void *key, size_t key_len,
		 const void *value, size_t value_len)
{
	uint64_t n = 0;
	int err;

	if (c->tree)
		return tree_put(c->tree, key, key_len, value, value_len);
	err = number_of(key, key_len, &n);
	return err ? err : vlist_put(c->vlist, n, value, value_len);
}

int aq_index_del(struct aq_index_client *c, const void *key, size_t key_len)
{
	uint64_t n = 0;
	int err;

	if (c->tree)
		return tree_del(c->tree, key, key_len);
	err = number_of(key, key_len, &n);
	return err ? err : vlist_del(c->vlist, n);
}

int aq_index_scan(struct aq_index_client *c, const struct aq_index_range *range,
		  aq_index_pair_fn each, void *user)
{
	struct tree_range r = {.from = range->from,
			       .from_len = range->from_len,
			       .to = range->to,
			       .to_len = range->to_len,
			       .is_after = range->is_after};

	if (!c->tree)
		return error_set(-EOPNOTSUPP,
				 "an index of versions has no order to scan; "
				 "make one of kind tree");
	return tree_scan(c->tree, &r, each, user);
}

void aq_index_client_stats(const struct aq_index_client *c,
			   struct aq_index_stats *out)
{
	if (c->tree) {
		const struct tree_stats *t = tree_client_stats(c->tree);

		*out = (struct aq_index_stats){.gets = t->gets,
					       .puts = t->puts,
					       .deletes = t->deletes,
					       .scans = t->scans,
					       .get_trips = t->get_trips,
					       .put_trips = t->put_trips,
					       .delete_trips = t->delete_trips,
					       .scan_trips = t->scan_trips,
					       .leaves_scanned = t->leaves,
					       .torn = t->torn,
					       .splits = t->splits,
					       .lock_fails = t->lock_fails,
					       .handed = t->handed,
					       .fenced = t->fenced,
					       .mended = t->mended,
					       .reconnects = t->reconnects};
	} else {
		const struct vlist_stats *v = vlist_client_stats(c->vlist);

		*out = (struct aq_index_stats){.gets = v->gets,
					       .puts = v->puts,
					       .get_trips = v->trips,
					       .fenced = v->fenced,
					       .reconnects = v->reconnects};
	}
}

static int check_tree(struct tree_client *c, struct aq_index_report *out)
{
	struct tree_report r;
	int err = tree_check(c, &r);

	if (!err)
		*out = (struct aq_index_report){
			.keys = r.keys,
			.levels = r.levels,
			.leaves = r.leaves,
			.inner_nodes = r.inner,
			.bad_nodes = r.bad_nodes,
			.bad_entries = r.bad_entries + r.bad_children,
			.bad_links = r.bad_links,
			.unfinished = r.unnamed + r.dead,
			.locks_held = r.locks_held,
			.clients = r.clients,
			.chunks = r.chunks,
			.chunks_taken = r.chunks_taken};
	return err;
}

int aq_index_check(struct aq_index_client *c, struct aq_index_report *out)
{
	struct vlist_report r;
	int err;

	if (c->tree)
		return check_tree(c->tree, out);
	err = vlist_check(c->vlist, &r);
	if (!err)
		*out = (struct aq_index_report){.keys = r.present,
						.versions = r.versions,
						.bad_nodes = r.bad_nodes,
						.bad_entries = r.bad_entries,
						.bad_links = r.loops,
						.clients = r.clients,
						.chunks = r.chunks,
						.chunks_taken = r.chunks_taken};
	return err;
}
