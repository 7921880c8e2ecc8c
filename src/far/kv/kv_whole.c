/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns a whole table: all its shards, and both generations. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "kv_client_priv.h"

/*
 * Cursors: a mark, so that none but the start is 0, the generation's name, the
 * shard and the row. One of a generation that is gone begins with the next.
 */
enum {
	ROW_BITS = 40,
	SHARD_BITS = 8,
};

#define CURSOR_MARK (1ull << 62)

struct place {
	uint32_t era;
	uint32_t shard;
	uint64_t row;
};

static uint64_t cursor_of(struct aq_kv_client *c, const struct place *p)
{
	uint64_t name = c->era[p->era]->g.name & 0xff;

	return CURSOR_MARK | name << (ROW_BITS + SHARD_BITS) |
	       (uint64_t)p->shard << ROW_BITS | p->row;
}

static int place_of(struct aq_kv_client *c, uint64_t cursor, struct place *p)
{
	uint32_t name = (uint32_t)(cursor >> (ROW_BITS + SHARD_BITS) & 0xff);

	*p = (struct place){0};
	if (cursor == 0)
		return 0;
	if (!(cursor & CURSOR_MARK))
		return error_set(-EINVAL, "this is no cursor of a table");
	for (p->era = 0; p->era < KV_ERAS_MAX && c->era[p->era]; p->era++)
		if ((c->era[p->era]->g.name & 0xff) == name)
			break;
	if (p->era == KV_ERAS_MAX || !c->era[p->era]) {
		p->era = 0; /* it is gone; all that it had is in this one */
		return 0;
	}
	p->shard = (uint32_t)(cursor >> ROW_BITS & ((1u << SHARD_BITS) - 1));
	p->row = cursor & ((1ull << ROW_BITS) - 1);
	if (p->shard >= c->era[p->era]->g.shard_count ||
	    p->row >= c->era[p->era]->g.rows)
		return error_set(-EINVAL, "the table has no such row");
	return 0;
}

/* Whether the shard's generation is the older one of two that count. */
static bool is_older(const struct aq_kv_client *c, const struct place *p)
{
	return p->era == 0 && c->era[1] &&
	       kv_state_phase(
		       kv_shard_master(&c->era[0]->shard[p->shard])->expect) ==
		       KV_PHASE_FROZEN;
}

struct filter {
	struct aq_kv_client *client;
	aq_kv_item_fn each;
	void *user;
};

/* What the next generation has an entry for will be seen there. */
static int each_older(const struct aq_kv_item *item, void *user)
{
	const struct filter *f = user;
	struct aq_kv_op op = {.key = item->key, .key_len = item->key_len};
	struct kv_route r = {0};
	bool has_entry;
	/* Not by way of the replica that is just being read. */
	int err = kv_client_route_next(
		f->client, kv_client_hash(f->client, item->key, item->key_len),
		&r);

	if (err)
		return err;
	err = kv_client_read_replica(f->client, r.replica, &op, NULL,
				     &has_entry);
	if (err && err != -ENOENT)
		return err;
	return has_entry ? 0 : f->each(item, f->user);
}

static int scan_part(struct aq_kv_client *c, struct place *p, uint64_t rows,
		     unsigned flags, aq_kv_item_fn each, void *user)
{
	struct filter f = {.client = c, .each = each, .user = user};
	struct kv_era *e = c->era[p->era];
	struct kv_replica *replica;
	int err = kv_shard_ready(c, e, p->shard);

	if (err)
		return err;
	replica = kv_shard_master(&e->shard[p->shard]);
	err = is_older(c, p) ? kv_replica_scan(replica, &p->row, rows, flags,
					       each_older, &f)
			     : kv_replica_scan(replica, &p->row, rows, flags,
					       each, user);
	c->answered_ns = replica->kit.polled_ns;
	if (err || p->row)
		return err;
	if (++p->shard < e->g.shard_count)
		return 0;
	p->shard = 0;
	/* A next one that nobody uses yet has nothing to show. */
	if (p->era + 1 < KV_ERAS_MAX && c->era[p->era + 1])
		p->era++;
	else
		p->era = KV_ERAS_MAX;
	return 0;
}

static int scan(struct aq_kv_client *c, uint64_t *cursor, uint64_t rows,
		unsigned flags, aq_kv_item_fn each, void *user)
{
	unsigned tries = 0;
	struct place p;
	int err = kv_client_begin(c);

	while (!err) {
		err = place_of(c, *cursor, &p);
		if (err)
			return err;
		err = scan_part(c, &p, rows,
				flags & (AQ_KV_SCAN_KEYS | AQ_KV_SCAN_EXPIRED),
				each, user);
		if (!err) {
			*cursor = p.era == KV_ERAS_MAX ? 0 : cursor_of(c, &p);
			return 0;
		}
		if (err == -ESTALE)
			err = KV_E_VIEW;
		err = kv_client_again(c, err, &tries);
	}
	return err;
}

struct weighing {
	aq_kv_item_fn each;
	void *user;
	uint64_t bytes;
};

static int weigh(const struct aq_kv_item *item, void *user)
{
	struct weighing *w = user;

	w->bytes += item->value_len;
	return w->each(item, w->user);
}

int aq_kv_scan(struct aq_kv_client *c, uint64_t *cursor, uint64_t rows,
	       unsigned flags, aq_kv_item_fn each, void *user)
{
	struct weighing w = {.each = each, .user = user};
	int err = scan(c, cursor, rows, flags, weigh, &w);

	/* What is above 0 comes from `each`. Whoever looks for what has expired
	 * tidies up, which is nobody's operation: `aquifer top` would show a
	 * thousand of them for a gateway without a client. */
	if (!(flags & AQ_KV_SCAN_EXPIRED))
		(void)kv_count(c, TALLY_SCANS, w.bytes, err > 0 ? 0 : err);
	return err;
}

/* ---- every shard -------------------------------------------------------- */

typedef int (*shard_fn)(struct kv_replica *replica, void *user);

static int each_shard(struct aq_kv_client *c, struct kv_era *e, shard_fn fn,
		      void *user)
{
	uint32_t s;
	int err = 0;

	for (s = 0; s < e->g.shard_count && !err; s++) {
		err = kv_shard_ready(c, e, s);
		if (!err)
			err = fn(kv_shard_master(&e->shard[s]), user);
	}
	return err;
}

static int add_count(struct kv_replica *replica, void *user)
{
	uint64_t *sum = user, n = 0;
	int err = kv_replica_count(replica, &n);

	*sum += n;
	return err;
}

/* While a table grows its two generations count most keys twice. */
int aq_kv_count(struct aq_kv_client *c, uint64_t *count)
{
	uint64_t sum[KV_ERAS_MAX];
	unsigned tries = 0, i;
	int err = kv_client_begin(c);

	while (!err) {
		memset(sum, 0, sizeof(sum));
		for (i = 0; i < KV_ERAS_MAX && c->era[i] && !err; i++)
			err = each_shard(c, c->era[i], add_count, &sum[i]);
		if (!err) {
			*count = u64_max(sum[0], sum[1]);
			return 0;
		}
		if (err == -ESTALE)
			err = KV_E_VIEW;
		err = kv_client_again(c, err, &tries);
	}
	return err;
}

static int check_replica(struct kv_replica *replica, void *user)
{
	struct aq_kv_report one;
	uint64_t *to = user;
	const uint64_t *from = (const uint64_t *)&one;
	int err = kv_replica_check(replica, &one);

	for (size_t i = 0; i < sizeof(one) / sizeof(*to) && !err; i++)
		to[i] += from[i];
	return err;
}

/* All copies, for what is wrong with them; keys and rows count once. */
static int check_seconds(struct aq_kv_client *c, struct kv_era *e,
			 struct aq_kv_report *r)
{
	uint64_t rows = r->rows, used = r->used, expired = r->expired;
	uint64_t in_rows = r->inline_entries, extents = r->extent_entries;
	uint64_t clients = r->clients;
	uint32_t s;
	int err = 0;

	for (s = 0; s < e->g.shard_count && !err; s++)
		if (kv_shard_second(&e->shard[s]))
			err = check_replica(kv_shard_second(&e->shard[s]), r);
	r->rows = rows;
	r->used = used;
	r->expired = expired;
	r->inline_entries = in_rows;
	r->extent_entries = extents;
	r->clients = clients;
	return err;
}

int aq_kv_check(struct aq_kv_client *c, struct aq_kv_report *report)
{
	unsigned tries = 0, i;
	int err = kv_client_begin(c);

	while (!err) {
		*report = (struct aq_kv_report){0};
		for (i = 0; i < KV_ERAS_MAX && c->era[i] && !err; i++) {
			err = each_shard(c, c->era[i], check_replica, report);
			if (!err)
				err = check_seconds(c, c->era[i], report);
		}
		if (!err) {
			/* A client has a slot in each. */
			report->clients /= c->era[0]->g.shard_count;
			return 0;
		}
		if (err == -ESTALE)
			err = KV_E_VIEW;
		err = kv_client_again(c, err, &tries);
	}
	return err;
}

static int reap_replica(struct kv_replica *replica, void *user)
{
	return kv_replica_reap(replica);
}

int aq_kv_repair(struct aq_kv_client *c)
{
	unsigned tries = 0, i;
	uint32_t s;
	int err = kv_client_begin(c);

	while (!err) {
		for (i = 0; i < KV_ERAS_MAX && c->era[i] && !err; i++) {
			struct kv_era *e = c->era[i];

			err = each_shard(c, e, reap_replica, NULL);
			for (s = 0; s < e->g.shard_count && !err; s++)
				if (kv_shard_second(&e->shard[s]))
					err = kv_replica_reap(
						kv_shard_second(&e->shard[s]));
		}
		if (!err)
			return 0;
		if (err == -ESTALE)
			err = KV_E_VIEW;
		err = kv_client_again(c, err, &tries);
	}
	return err;
}

int aq_kv_get_health(struct aq_kv_client *c, struct aq_kv_health *health)
{
	struct kv_era *e;
	uint32_t s;
	int err = kv_client_begin(c);

	if (!err)
		err = kv_client_look_around(c);
	if (err)
		return err;
	e = c->era[0];
	*health = (struct aq_kv_health){.generation = e->g.generation,
					.shards = e->g.shard_count,
					.copies = e->g.copy_count,
					.capacity = e->g.rows * e->g.entries *
						    e->g.shard_count};
	for (s = 0; s < e->g.shard_count; s++) {
		err = kv_shard_ready(c, e, s);
		if (err == -ESHUTDOWN)
			return err;
		if (err) {
			health->shards_lost++;
			continue;
		}
		health->shards_single +=
			e->g.copy_count > 1 && !e->shard[s].is_paired;
		health->is_growing |=
			kv_state_phase(kv_shard_master(&e->shard[s])->expect) !=
			KV_PHASE_STABLE;
	}
	return 0;
}

static bool has_single(struct aq_kv_client *c, void *user)
{
	struct aq_kv_health h;

	return aq_kv_get_health(c, &h) == 0 && h.shards_single;
}

int aq_kv_heal(struct aq_kv_client *c, bool *healed)
{
	struct aq_kv_options same = {0};
	struct aq_kv_health h;
	int err = aq_kv_get_health(c, &h);

	if (err)
		return err;
	if (h.shards_lost)
		return error_set(-EHOSTDOWN,
				 "%u of %u parts of the table have no copy "
				 "that answers, and cannot be made again",
				 h.shards_lost, h.shards);
	*healed = h.shards_single || h.is_growing;
	return *healed ? kv_client_resize(c, &same, has_single, NULL) : 0;
}
