/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of <aquifer/index.h>: to the kind that the index is of. */
#include <errno.h>

#include "base/bytes.h"
#include "base/error.h"
#include "index_priv.h"
#include "tree_priv.h"
#include "vlist_priv.h"

/* The key of an index of versions. */
static int number_of(const void *key, size_t key_len, uint64_t *number)
{
	if (key_len != sizeof(be64))
		return error_set(-EINVAL,
				 "keys of this index are numbers of 8 bytes");
	*number = be64_get(*(const be64 *)key);
	return 0;
}

/* ---- counting ------------------------------------------------------------ */

/* An operation has ended; that a key is not there is an answer. */
static int count(struct aq_index_client *c, enum tally_count what,
		 uint64_t bytes, int err)
{
	const struct kit_client *k = c->tree ? &c->tree->kit : &c->vlist->kit;
	bool is_read = what == TALLY_READS || what == TALLY_SCANS;

	if (!c->tally)
		return err;
	if (err < 0 && err != -ENOENT && err != -EMSGSIZE) {
		tally_done(c->tally, TALLY_ERRORS);
		return err;
	}
	tally_done(c->tally, what);
	c->tally->count[is_read ? TALLY_READ_BYTES : TALLY_WRITE_BYTES] +=
		bytes;
	hist_record(&c->tally->latency, kit_took_ns(k));
	return err;
}

/* ---- operations ---------------------------------------------------------- */

static int get(struct aq_index_client *c, const void *key, size_t key_len,
	       void *buf, size_t buf_bytes, size_t *len)
{
	uint64_t n = 0;
	int err;

	if (c->tree)
		return tree_get(c->tree, key, key_len, buf, buf_bytes, len);
	err = number_of(key, key_len, &n);
	return err ? err : vlist_get(c->vlist, n, buf, buf_bytes, len);
}

int aq_index_get(struct aq_index_client *c, const void *key, size_t key_len,
		 void *buf, size_t buf_bytes, size_t *len)
{
	int err = get(c, key, key_len, buf, buf_bytes, len);

	return count(c, TALLY_READS, err ? 0 : *len, err);
}

static int put(struct aq_index_client *c, const void *key, size_t key_len,
	       const void *value, size_t value_len)
{
	uint64_t n = 0;
	int err;

	if (c->tree)
		return tree_put(c->tree, key, key_len, value, value_len);
	err = number_of(key, key_len, &n);
	return err ? err : vlist_put(c->vlist, n, value, value_len);
}

int aq_index_put(struct aq_index_client *c, const void *key, size_t key_len,
		 const void *value, size_t value_len)
{
	return count(c, TALLY_WRITES, value_len,
		     put(c, key, key_len, value, value_len));
}

static int del(struct aq_index_client *c, const void *key, size_t key_len)
{
	uint64_t n = 0;
	int err;

	if (c->tree)
		return tree_del(c->tree, key, key_len);
	err = number_of(key, key_len, &n);
	return err ? err : vlist_del(c->vlist, n);
}

int aq_index_del(struct aq_index_client *c, const void *key, size_t key_len)
{
	return count(c, TALLY_DELETES, 0, del(c, key, key_len));
}

struct weighing {
	aq_index_pair_fn each;
	void *user;
	uint64_t bytes;
};

static int weigh(void *user, const void *key, size_t key_len, const void *value,
		 size_t value_len)
{
	struct weighing *w = user;

	w->bytes += value_len;
	return w->each(w->user, key, key_len, value, value_len);
}

static struct tree_range range_of(const struct aq_index_range *range)
{
	return (struct tree_range){.from = range->from,
				   .from_len = range->from_len,
				   .to = range->to,
				   .to_len = range->to_len,
				   .is_after = range->is_after};
}

int aq_index_scan(struct aq_index_client *c, const struct aq_index_range *range,
		  aq_index_pair_fn each, void *user)
{
	struct tree_range r = range_of(range);
	struct weighing w = {.each = each, .user = user};
	int err;

	if (!c->tree && (range->from_len || range->to))
		return error_set(-EOPNOTSUPP,
				 "an index of versions has no order, so a scan "
				 "gives all keys; for ranges make one of kind "
				 "tree");
	err = c->tree ? tree_scan(c->tree, &r, weigh, &w)
		      : vlist_each(c->vlist, weigh, &w);
	return count(c, TALLY_SCANS, w.bytes, err);
}

int aq_index_reduce(struct aq_index_client *c,
		    const struct aq_index_range *range, uint32_t flags,
		    struct aq_index_reduced *out)
{
	struct tree_range r = range_of(range);
	struct tree_reduced reduced;
	int err;

	if (flags & ~(uint32_t)AQ_INDEX_COUNT)
		return error_set(-EINVAL, "unknown flags: %#x", flags);
	if (!c->tree)
		return error_set(-EOPNOTSUPP,
				 "an index of versions has no ranges to add "
				 "up; make one of kind tree");
	err = tree_reduce(c->tree, &r, flags & AQ_INDEX_COUNT, &reduced);
	if (!err)
		*out = (struct aq_index_reduced){
			.count = reduced.count,
			.sum = (int64_t)reduced.sum,
			.min = reduced.min,
			.max = reduced.max,
			.sum_is_cut = reduced.sum_high !=
				      (uint64_t)((int64_t)reduced.sum >> 63)};
	return count(c, TALLY_SCANS, 0, err);
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
					       .reconnects = t->reconnects,
					       .walks = t->walks,
					       .walks_short = t->walks_short};
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
			.unfinished = r.unnamed + r.dead + r.stale,
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
