/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that go without being named: those that have expired, a part of the
 * table at a time between the commands, and all of them for FLUSHALL.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "client.h"

enum {
	REAP_ROWS = 8,
	REAP_KEYS = 256, /* twice what so many rows can have */
	REAP_PARTS = 8,	 /* turns for the whole table, if it is not large */
	REAP_ROWS_MAX = 1024, /* of a turn: a few milliseconds */
	REAP_PAUSE_MS = 5000, /* after an error */
	IS_FULL = 1,	      /* what a scan ends with */
};

/* The keys of a few rows. */
struct doomed {
	uint64_t now_ms; /* 0: all of them */
	bool has_end;	 /* one of them will expire */
	uint32_t count;
	size_t key_len[REAP_KEYS];
	char key[REAP_KEYS][AQ_KV_KEY_MAX];
};

static int doom(const struct aq_kv_item *item, void *user)
{
	struct doomed *d = user;

	d->has_end |= item->expire_at_ms != 0;
	if (d->now_ms &&
	    (!item->expire_at_ms || item->expire_at_ms > d->now_ms))
		return 0;
	/* A scan that had to begin anew shows its keys once more. */
	if (d->count == REAP_KEYS)
		return IS_FULL;
	memcpy(d->key[d->count], item->key, item->key_len);
	d->key_len[d->count++] = item->key_len;
	return 0;
}

static int delete_expired(struct aq_kv_change *kv, void *user)
{
	/* Set anew meanwhile: then it stays. */
	kv->verdict = kv->value ? AQ_KV_KEEP : AQ_KV_DELETE;
	return 0;
}

static int delete_doomed(struct gateway *g, const struct doomed *d)
{
	int err = 0;

	for (uint32_t i = 0; i < d->count && !err; i++) {
		err = d->now_ms ? aq_kv_modify(g->kv_client, d->key[i],
					       d->key_len[i], delete_expired,
					       NULL)
				: aq_kv_del(g->kv_client, d->key[i],
					    d->key_len[i]);
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

/* What is deleted does not move what is still to be seen. A scan that found too
 * many has not moved the cursor: it is repeated without those. */
static int reap_rows(struct gateway *g, uint64_t *cursor, struct doomed *d)
{
	int err, scan;

	do {
		d->count = 0;
		scan = aq_kv_scan(g->kv_client, cursor, REAP_ROWS,
				  AQ_KV_SCAN_KEYS | AQ_KV_SCAN_EXPIRED, doom,
				  d);
		err = scan == 0 || scan == IS_FULL ? delete_doomed(g, d) : scan;
	} while (!err && scan == IS_FULL);
	return err;
}

int reap_all(struct gateway *g)
{
	struct doomed d; /* large: only what is read is written */
	uint64_t cursor = 0;
	int err;

	d.now_ms = 0;
	d.has_end = false;
	do
		err = reap_rows(g, &cursor, &d);
	while (!err && cursor);
	return err;
}

void reap_wake(struct gateway *g)
{
	g->reaper.is_awake = true;
	g->reaper.has_end = true; /* also if this pass is past it */
}

static int reap_part(struct gateway *g, uint64_t now_ms)
{
	struct aq_kv_info info;
	struct doomed d;
	uint64_t rows;
	int err;

	aq_kv_get_info(g->kv, &info);
	rows = u64_min(info.rows / REAP_PARTS + REAP_ROWS, REAP_ROWS_MAX);
	d.now_ms = now_ms;
	d.has_end = false;
	do {
		err = reap_rows(g, &g->reaper.cursor, &d);
		rows -= u64_min(rows, REAP_ROWS);
	} while (!err && g->reaper.cursor && rows);
	g->reaper.has_end |= d.has_end;
	return err;
}

void reap_turn(struct gateway *g)
{
	struct reaper *r = &g->reaper;
	uint64_t now_ms;

	if (!r->is_awake || g->table.status == TABLE_LOST)
		return;
	now_ms = clock_mono_ms();
	if (now_ms < r->next_ms)
		return;
	r->next_ms = now_ms + REAP_MS;
	if (reap_part(g, clock_real_ms())) {
		log_info("redis", "expired keys stay for now: %s",
			 aq_last_error());
		r->cursor = 0;
		r->next_ms += REAP_PAUSE_MS;
	} else if (r->cursor == 0) {
		/* Where nothing will expire: until somebody sets an end. */
		r->is_awake = r->has_end;
		r->has_end = false;
	}
}
