/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that does not answer is given up at once, so that clients are told
 * instead of waiting for each command; from then on it is looked for every
 * second, through another handle of the rack, which may be a new one. It is
 * made anew only where every node that the rack knows of answers and none has
 * it.
 */
#include "table.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "client.h"
#include "daemon/daemon.h"

enum {
	/* Another gateway may be making it, on a busy machine. */
	OPEN_PATIENCE_MS = 20000,
	OPEN_PAUSE_MS = 50,
	/* A rack that was lost is asked with little patience: clients wait. */
	SEARCH_DEADLINE_MS = 500,
	MISSES_MAX = 3,
};

struct handles {
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *client;
};

const char *table_status_name(enum table_status s)
{
	static const char *const names[] = {[TABLE_OK] = "ok",
					    [TABLE_DEGRADED] = "degraded",
					    [TABLE_LOST] = "lost"};

	return names[s];
}

static void handles_close(struct handles *h)
{
	aq_kv_client_close(h->client);
	aq_kv_close(h->kv);
	aq_rack_close(h->rack);
	*h = (struct handles){0};
}

static int open_client(struct handles *h)
{
	struct aq_kv_client_options o = {.depth = BATCH_OPS,
					 .flags = AQ_KV_DIRECT_READS |
						  AQ_KV_IS_REDIS};

	return aq_kv_client_open(h->kv, &o, &h->client);
}

static int open_or_make(struct handles *h, const struct redis_options *o,
			bool *is_new)
{
	struct aq_kv_options new = {.capacity = o->capacity,
				    .extent_bytes = o->extent_bytes};
	int err = aq_kv_open(h->rack, o->table, &h->kv);

	*is_new = err == -ENOENT;
	if (err == -ENOENT)
		err = aq_kv_create(h->rack, o->table, &new, &h->kv);
	if (!err)
		err = open_client(h);
	if (err) {
		aq_kv_close(h->kv);
		h->kv = NULL;
	}
	return err;
}

/* Another gateway is making it just now, or has taken back what it made. */
static bool is_in_the_making(int err)
{
	return err == -EBUSY || err == -EEXIST || err == -EBADMSG ||
	       err == -ENOENT;
}

static void take_over(struct gateway *g, const struct handles *h)
{
	struct handles old = {g->rack, g->kv, g->kv_client};

	g->rack = h->rack;
	g->kv = h->kv;
	g->kv_client = h->client;
	handles_close(&old);
}

int table_open(struct gateway *g, struct daemon *d)
{
	uint64_t until_ms = clock_mono_ms() + OPEN_PATIENCE_MS;
	struct handles h = {0};
	bool is_new;
	int err = aq_rack_open(NULL, &h.rack);

	if (!err)
		err = open_or_make(&h, g->options, &is_new);
	if (h.rack && is_in_the_making(err))
		log_info("redis", "waits for table %s: %s", g->options->table,
			 error_last());
	while (h.rack && is_in_the_making(err) && clock_mono_ms() < until_ms)
		err = daemon_is_ending(d, OPEN_PAUSE_MS)
			      ? error_set(-EINTR,
					  "stopped, still waiting for "
					  "table %s",
					  g->options->table)
			      : open_or_make(&h, g->options, &is_new);
	if (err) {
		handles_close(&h);
		return err;
	}
	take_over(g, &h);
	g->table.since_ms = clock_mono_ms();
	g->table.look_ms = g->table.since_ms + TABLE_LOOK_MS;
	return 0;
}

void table_close(struct gateway *g)
{
	static const struct handles none;

	take_over(g, &none);
}

/* ---- how it is ------------------------------------------------------------
 */

/* A line for each change, and no more. */
static void set_status(struct gateway *g, enum table_status s, const char *why)
{
	struct table_state *t = &g->table;

	if (s == t->status)
		return;
	t->losses += s == TABLE_LOST;
	t->status = s;
	t->since_ms = clock_mono_ms();
	(void)snprintf(t->why, sizeof(t->why), "%s", why);
	if (s == TABLE_OK)
		log_warn("redis", "table %s: %s", g->options->table, why);
	else
		log_warn("redis", "table %s is %s: %s", g->options->table,
			 table_status_name(s), why);
}

static void look(struct gateway *g)
{
	struct table_state *t = &g->table;
	struct aq_kv_health health;
	char why[TABLE_WHY_MAX];
	int err = aq_kv_count(g->kv_client, &t->keys);

	t->has_keys = !err;
	if (!err) {
		t->misses = 0;
		set_status(g, TABLE_OK, "all of it answers again");
		return;
	}
	(void)snprintf(why, sizeof(why), "%s", error_last());
	err = aq_kv_get_health(g->kv_client, &health);
	if (!err && health.shards_lost && health.shards_lost < health.shards)
		set_status(g, TABLE_DEGRADED, why);
	else if (err || health.shards_lost || ++t->misses >= MISSES_MAX)
		set_status(g, TABLE_LOST, why);
}

/* ---- and where, when it was lost ------------------------------------------
 */

static void search(struct gateway *g)
{
	struct handles h = {0};
	uint32_t deadline_ms = 0;
	bool is_new = false;
	int err = aq_rack_open(NULL, &h.rack);

	if (!err) {
		deadline_ms = aq_rack_deadline(h.rack);
		err = aq_rack_set_deadline(h.rack, SEARCH_DEADLINE_MS);
	}
	if (!err)
		err = open_or_make(&h, g->options, &is_new);
	/* The client has the deadline that the rack had when it was opened. */
	if (!err)
		err = aq_rack_set_deadline(h.rack, deadline_ms);
	if (!err) {
		aq_kv_client_close(h.client);
		h.client = NULL;
		err = open_client(&h);
	}
	if (err) {
		log_debug("redis", "table %s: %s", g->options->table,
			  error_last());
		(void)snprintf(g->table.why, sizeof(g->table.why), "%s",
			       error_last());
		handles_close(&h);
		return;
	}
	take_over(g, &h);
	g->table.makes += is_new;
	g->table.misses = 0;
	set_status(g, TABLE_OK,
		   is_new ? "it was gone with its rack and is made anew, empty"
			  : "it is back");
	reap_wake(g);
	group_found(g);
}

int table_turn(struct gateway *g)
{
	struct table_state *t = &g->table;
	bool is_found = t->status == TABLE_LOST && group_has_found(g);

	if (clock_mono_ms() < t->look_ms && !is_found)
		return 0;
	if (t->status != TABLE_LOST)
		look(g);
	if (t->status == TABLE_LOST && g->options->ends_when_lost)
		return error_set(-EHOSTDOWN, "table %s is lost: %s",
				 g->options->table, t->why);
	if (t->status == TABLE_LOST)
		search(g);
	t->look_ms = clock_mono_ms() + TABLE_LOOK_MS;
	return 0;
}
