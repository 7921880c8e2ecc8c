/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped table as one of the stores of a figure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "kv_fig_priv.h"

enum {
	DEADLINE_MS = 1000,
	DEADLINE_FAILURES = 20, /* or so many failure times */
	SPARE_SLOTS = 64,
	VALUE_MAX = 2048,
	KEY_BYTES = 4,
};

/* ---- connections -------------------------------------------------------- */

static int remote_fence(void *ctx, const char *name)
{
	struct kvf_client *c = ctx;
	struct rig_conn *conn = rig_conn_find(c->f->conns, name);

	return conn ? rig_conn_fence(conn) : 0;
}

static int remote_is_alive(void *ctx, const char *name)
{
	struct kvf_client *c = ctx;

	return rig_conn_is_alive(c->f->conns, name);
}

static int remote_open(struct kvf_client *c, struct kit_remote *remote)
{
	struct client_link_options o = {.send_depth = 256,
					.rights = CLIENT_LINK_ALL};
	struct kvf *f = c->f;
	struct rig_conn *conn;
	int err = rig_conn_open(f->conns, c->host, f->table, &o, remote->conn,
				sizeof(remote->conn), &conn);

	if (err)
		return err;
	remote->link = conn->link;
	remote->addr = f->table->addr;
	remote->rkey = f->table->rkey;
	remote->lock_addr = f->locks->addr;
	remote->lock_rkey = f->locks->rkey;
	return 0;
}

/* What a dead client has sent may still arrive. */
static void remote_close(void *ctx, struct kit_remote *remote)
{
	struct kvf_client *c = ctx;

	rig_conn_close(&c->f->conns->at[atoi(remote->conn)],
		       c->kv && kv_client_is_crashed(c->kv));
}

static int remote_renew(void *ctx, struct kit_remote *remote)
{
	remote_close(ctx, remote);
	return remote_open(ctx, remote);
}

/* ---- the table before the start ----------------------------------------- */

static const uint8_t *row_of(void *ctx, uint64_t row, bool *usable)
{
	struct kvf *f = ctx;

	*usable = true;
	return f->table->mem + kv_row_at(&f->g, row);
}

static uint8_t *step_entry(struct kvf *f, const struct kv_step *s)
{
	return kv_entry(&f->g, f->table->mem + kv_row_at(&f->g, s->row),
			(unsigned)s->entry);
}

static int insert_here(struct kvf *f, struct kv_search *search, uint32_t key,
		       const uint8_t *value)
{
	enum aq_kv_search how =
		f->cfg.independent ? AQ_KV_SEARCH_DFS : AQ_KV_SEARCH_BFS;
	struct kv_view view = {row_of, f};
	struct kv_place place;
	struct kv_path path;
	unsigned i;

	kv_place_of(&f->g, kv_hash_key(&f->g, &key, KEY_BYTES), &place);
	if (kv_search_run(search, &f->g, &view, &place, how, &path))
		return error_set(-ENOSPC, "the table cannot be so full");
	for (i = path.count; i-- > 1;)
		memcpy(step_entry(f, &path.step[i]),
		       step_entry(f, &path.step[i - 1]), f->g.entry_bytes);
	kv_entry_inline(&f->g, step_entry(f, &path.step[0]), &key, KEY_BYTES,
			value, f->cfg.value_bytes, 0);
	return 0;
}

/* With the shipped search, in the node's memory. */
static int fill(struct kvf *f)
{
	struct kv_search *search = kv_search_create();
	uint8_t value[VALUE_MAX] = {1};
	uint64_t i;
	int err = search ? 0 : -ENOMEM;

	for (i = 0; i < f->records && !err; i++)
		err = insert_here(f, search, (uint32_t)i, value);
	for (i = 0; i < f->g.rows && !err; i++)
		kv_row_seal(&f->g, f->table->mem + kv_row_at(&f->g, i), 0);
	kv_search_destroy(search);
	return err;
}

static bool is_inline(const struct kvf *f)
{
	return kv_fits_inline(&f->g, KEY_BYTES, f->cfg.value_bytes, 0);
}

/* Each death takes one until it is repaired: three failure times, at most. */
static uint32_t slots_of_dead(const struct kvf *f)
{
	return f->cfg.failures ? SPARE_SLOTS + f->cfg.failures * 3 *
						       f->cfg.failure_ms / 1000
			       : 1;
}

static int prepare(struct kvf *f)
{
	struct aq_kv_options o = {
		.capacity = f->cfg.capacity,
		.entry_bytes = f->cfg.entry_bytes,
		.rows_per_lock = f->cfg.rows_per_lock,
		.hash = f->cfg.independent ? AQ_KV_HASH_INDEPENDENT
					   : AQ_KV_HASH_DEPENDENT,
		.clients = f->cfg.clients + slots_of_dead(f),
		.chunk_bytes = 65536,
		.extent_bytes =
			u64_max(f->cfg.clients * 6ull * 65536,
				3 * f->records * (f->cfg.value_bytes + 64ull)),
		.failure_ms = f->cfg.failure_ms,
		.flags = f->cfg.word_locks ? AQ_KV_WORD_LOCKS : 0,
		.seed = f->cfg.seed};
	int err = kv_geometry_make(&o, &f->g);

	f->conns = calloc(1, sizeof(*f->conns));
	if (!f->conns)
		return -ENOMEM;
	if (!err)
		err = rig_region_create(f->node[0], f->g.size_bytes, false,
					&f->table);
	if (!err)
		err = rig_region_create(f->node[0], f->g.lock_bytes, true,
					&f->locks);
	return err || !is_inline(f) ? err : fill(f);
}

static void release(struct kvf *f)
{
	free(f->conns);
}

/* ---- clients ------------------------------------------------------------ */

static bool crash(void *ctx, int point)
{
	struct kvf_client *c = ctx;

	if (!c->in_change || !c->doom || --c->doom)
		return false;
	c->f->res->deaths++;
	return true;
}

static int connect_one(struct kvf_client *c)
{
	struct kv_client_config cfg = {
		.options = {.deadline_ms = u32_max(
				    DEADLINE_MS,
				    DEADLINE_FAILURES * c->f->cfg.failure_ms),
			    .depth = 1,
			    .search = c->f->cfg.independent ? AQ_KV_SEARCH_DFS
							    : AQ_KV_SEARCH_BFS},
		.crash = c->f->cfg.failures ? crash : NULL,
		.whole_locks = c->f->cfg.whole_locks,
		.ctx = c,
		.rng_seed = rng_u64(&c->rng) | 1};
	struct kit_remote remote = {.fence = remote_fence,
				    .is_alive = remote_is_alive,
				    .renew = remote_renew,
				    .close = remote_close,
				    .ctx = c};
	int err = remote_open(c, &remote);

	if (err)
		return err;
	err = kv_client_create(&remote, &c->f->g, &cfg, &c->kv);
	if (err) {
		c->kv = NULL;
		remote_close(c, &remote);
	}
	return err;
}

static int put(struct kvf_client *c, uint64_t record)
{
	uint8_t value[VALUE_MAX] = {0};
	uint32_t key = (uint32_t)record;
	uint64_t id = rng_u64(&c->rng);

	/* No two are the same. */
	memcpy(value, &id, sizeof(id));
	return aq_kv_put(c->kv, &key, KEY_BYTES, value, c->f->cfg.value_bytes,
			 NULL);
}

/* Values beside the index were not there before: each client brings some. */
static int open_one(struct kvf_client *c)
{
	int err = connect_one(c);
	uint64_t i;

	for (i = c->index; !err && !is_inline(c->f) && i < c->f->records;
	     i += c->f->cfg.clients)
		err = put(c, i);
	return err;
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	uint32_t key = (uint32_t)record;
	uint8_t buf[VALUE_MAX];
	size_t len;

	return aq_kv_get(c->kv, &key, KEY_BYTES, buf, sizeof(buf), &len);
}

static void note(struct kvf_client *c, const struct aq_kv_stats *a,
		 const struct aq_kv_stats *b)
{
	struct kvf *f = c->f;

	if (!f->is_measuring)
		return;
	hist_record(&f->trips, b->insert_trips - a->insert_trips +
				       b->update_trips - a->update_trips);
	hist_record(&f->lock_tries, b->lock_tries - a->lock_tries);
	f->searches_failed += b->searches_failed - a->searches_failed;
	f->searches += b->inserts - a->inserts + b->searches_failed -
		       a->searches_failed;
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	struct aq_kv_stats a, b;
	int err;

	if (c->f->cfg.forgets)
		kv_client_forget(c->kv);
	aq_kv_client_stats(c->kv, &a);
	c->in_change = true;
	err = put(c, record);
	c->in_change = false;
	if (kv_client_is_crashed(c->kv)) {
		kv_client_destroy(c->kv);
		c->kv = NULL;
		c->doom = 0;
		if (connect_one(c))
			c->f->err = -EIO;
		return err;
	}
	aq_kv_client_stats(c->kv, &b);
	if (!err)
		note(c, &a, &b);
	return err;
}

static void close_one(struct kvf_client *c)
{
	c->doom = 0;
	kv_client_destroy(c->kv);
	c->kv = NULL;
}

const struct kvf_ops kvf_table_ops = {
	.name = "table",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
