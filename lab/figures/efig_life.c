/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of jobs comes and goes: so many bytes are needed in each second as the
 * generated workload needs, scaled to a peak that can be played.
 * A queue gets and loses items, a store keys whose slots are as popular as Zipf
 * has it; files are written one after the other, each for a while, and are
 * given back when their leases end.
 */
#include "efig_life.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "efig_costs.h"
#include "efig_ekv.h"
#include "efig_work.h"
#include "sim/ycsb.h"

enum {
	BLOCKS_MAX = 1024,
	FILES_MAX = 256,
	BUCKETS = 512, /* of slots */
	KEYS_MAX = 1 << 16,
	START_S = 5,
	STEPS = 16, /* in a second: what is written comes bit by bit */
};

struct file {
	bool is_on; /* somebody renews it */
	char path[64];
	struct efig_place *block;
	unsigned blocks;
	double bytes;
	uint64_t sequence;
};

struct life {
	const struct efig_life_config *c;
	struct efig_rack *rack;
	struct rng rng;
	double used;
	/* A queue. */
	struct efig_place block[BLOCKS_MAX];
	unsigned first, blocks; /* that it has */
	uint64_t puts, gets;
	/* A store. */
	struct efig_ekv kv;
	struct ycsb_keys zipf;
	uint64_t *key;
	unsigned keys;
	uint64_t next_key;
	/* Files, the oldest first. */
	struct file file[FILES_MAX];
	unsigned oldest, newest;
};

static bool make(struct life *l, const char *path, const char *kind)
{
	char full[80];

	(void)snprintf(full, sizeof(full), "/v1/ns%s", path);
	return efig_rack_ask(l->rack, 0, CTL_POST, full,
			     json_pack("{s:s, s:I}", "kind", kind,
				       "block_bytes",
				       (json_int_t)l->c->block_bytes),
			     NULL) == 201;
}

static struct blk_answer ask(struct blk_block *b, enum block_opcode opcode,
			     uint64_t sequence, uint32_t bytes)
{
	static const uint8_t session[BLOCK_SESSION_BYTES] = {1};
	struct blk_request q = {.session = session,
				.opcode = opcode,
				.sequence = sequence,
				.acked = sequence - 1,
				.arg = opcode == BLOCK_APPEND ? b->file.start
							      : 0,
				.length = bytes,
				.buffer_bytes = UINT32_MAX};
	struct blk_answer a = {.status = BLOCK_STALE};

	if (blk_begin(b, &q, &a))
		blk_finish(b, &q, &a);
	return a;
}

/* ---- files --------------------------------------------------------------- */

static bool file_append(struct life *l, struct file *f, uint32_t bytes)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned count;
		struct efig_place *list;
		struct blk_block *b =
			f->blocks ? efig_rack_block(l->rack,
						    &f->block[f->blocks - 1])
				  : NULL;

		if (b && ask(b, BLOCK_APPEND, ++f->sequence, bytes).status ==
				 BLOCK_OK) {
			f->bytes += bytes;
			l->used += bytes;
			return true;
		}
		list = realloc(f->block, (f->blocks + 1) * sizeof(*list));
		if (!list)
			return false;
		f->block = list;
		if (efig_rack_grow(l->rack, 0, f->path,
				   f->blocks
					   ? (int64_t)list[f->blocks - 1].number
					   : -1,
				   &list[f->blocks], 1, &count))
			return false;
		f->blocks++;
		f->sequence = 0;
	}
	return false;
}

static bool file_begin(struct life *l)
{
	struct file *f = &l->file[l->newest % FILES_MAX];
	char folder[40], full[80];

	if (l->newest - l->oldest == FILES_MAX)
		return false;
	(void)snprintf(folder, sizeof(folder), "/f%u", l->newest);
	*f = (struct file){.is_on = true};
	(void)snprintf(f->path, sizeof(f->path), "%s/o", folder);
	(void)snprintf(full, sizeof(full), "/v1/ns%s", folder);
	l->newest++;
	return efig_rack_ask(l->rack, 0, CTL_POST, full,
			     json_pack("{s:s, s:I, s:s}", "kind", "folder",
				       "lease_ms", (json_int_t)l->c->lease_ms,
				       "on_expiry", "drop"),
			     NULL) == 201 &&
	       make(l, f->path, "file");
}

/* A file has up to four and a half blocks; then the next one begins. */
static bool file_more(struct life *l, double bytes)
{
	while (bytes >= 1) {
		struct file *f = &l->file[(l->newest - 1) % FILES_MAX];
		uint32_t n =
			(uint32_t)fmin(bytes, (double)efig_costs.item_bytes);

		if (l->newest == l->oldest ||
		    f->bytes + n > 4.5 * (double)l->c->block_bytes) {
			if (!file_begin(l))
				return false;
			continue;
		}
		if (!file_append(l, f, n))
			return false;
		bytes -= n;
	}
	return true;
}

/* The oldest is not needed: nobody renews it any more. */
static void file_less(struct life *l, double bytes)
{
	while (l->oldest < l->newest) {
		struct file *f = &l->file[l->oldest % FILES_MAX];

		if (f->bytes > bytes)
			break;
		bytes -= f->bytes;
		l->used -= f->bytes;
		free(f->block);
		*f = (struct file){0};
		l->oldest++;
	}
}

static void file_renew(struct life *l)
{
	json_t *paths = json_array();
	char path[40];

	for (unsigned i = l->oldest; i < l->newest; i++) {
		(void)snprintf(path, sizeof(path), "/f%u", i);
		(void)json_array_append_new(paths, json_string(path));
	}
	(void)efig_rack_ask(l->rack, 0, CTL_POST, "/v1/renew",
			    json_pack("{s:o}", "paths", paths), NULL);
}

/* ---- queues -------------------------------------------------------------- */

static bool queue_put(struct life *l, uint32_t bytes)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned last = (l->first + l->blocks - 1) % BLOCKS_MAX, count;
		struct blk_block *b =
			l->blocks ? efig_rack_block(l->rack, &l->block[last])
				  : NULL;

		if (b &&
		    ask(b, BLOCK_PUT, ++l->puts, bytes).status == BLOCK_OK) {
			l->used += bytes;
			return true;
		}
		/* As a client does: no more goes into it. */
		if (b)
			(void)ask(b, BLOCK_SEAL, ++l->puts, 0);
		if (l->blocks == BLOCKS_MAX ||
		    efig_rack_grow(
			    l->rack, 0, "/f/q",
			    l->blocks ? (int64_t)l->block[last].number : -1,
			    &l->block[(l->first + l->blocks) % BLOCKS_MAX], 1,
			    &count))
			return false;
		l->blocks++;
	}
	return false;
}

static bool queue_get(struct life *l)
{
	while (l->blocks) {
		struct efig_place *p = &l->block[l->first % BLOCKS_MAX];
		struct blk_block *b = efig_rack_block(l->rack, p);
		struct blk_answer a;

		if (!b)
			return false;
		a = ask(b, BLOCK_GET, ++l->puts, 0);
		if (a.status == BLOCK_OK) {
			l->used -= a.length;
			return true;
		}
		if (a.status != BLOCK_DRAINED)
			return false;
		efig_rack_drained(l->rack, p);
		l->first = (l->first + 1) % BLOCKS_MAX;
		l->blocks--;
	}
	return false;
}

/* ---- stores -------------------------------------------------------------- */

/* A key in one of the slots that Zipf has chosen. */
static uint64_t zipf_key(struct life *l)
{
	uint64_t bucket =
		ycsb_keys_scatter(&l->zipf, ycsb_keys_rank(&l->zipf, &l->rng));

	while (efig_ekv_slot(++l->next_key) / (BLOCK_KV_SLOTS / BUCKETS) !=
	       bucket % BUCKETS)
		;
	return l->next_key;
}

static bool store_put(struct life *l, uint32_t bytes)
{
	uint64_t key = zipf_key(l);

	if (l->keys == KEYS_MAX || !efig_ekv_put(&l->kv, key, bytes))
		return false;
	l->key[l->keys++] = key;
	l->used += bytes;
	return true;
}

static bool store_delete(struct life *l, uint32_t bytes)
{
	unsigned at;

	if (!l->keys)
		return false;
	at = (unsigned)rng_below(&l->rng, l->keys);
	if (!efig_ekv_delete(&l->kv, l->key[at]))
		return false;
	l->key[at] = l->key[--l->keys];
	l->used -= bytes;
	return true;
}

/* ---- time ---------------------------------------------------------------- */

/* Makes what there is what is needed. False: the rack has no room. */
static bool follow(struct life *l, double needed)
{
	uint32_t item = (uint32_t)efig_costs.item_bytes;

	if (l->c->structure == EFIG_FILE) {
		if (needed < l->used)
			file_less(l, l->used - needed);
		return needed < l->used + 1 || file_more(l, needed - l->used);
	}
	while (l->used + item <= needed)
		if (!(l->c->structure == EFIG_QUEUE ? queue_put(l, item)
						    : store_put(l, item)))
			return false;
	while (l->used > needed)
		if (!(l->c->structure == EFIG_QUEUE ? queue_get(l)
						    : store_delete(l, item)))
			break;
	return true;
}

/* What all tenants need in each second of a part of the window, as a share of
 * the peak there. */
static int demand(const struct efig_life_config *c, double *share,
		  unsigned seconds)
{
	struct efig_work w;
	double most = 0;
	int err = efig_work_make(&w, 1, c->seed);

	if (err)
		return err;
	memset(share, 0, seconds * sizeof(*share));
	for (unsigned i = 0; i < w.jobs; i++)
		efig_work_demand(&w.job[i], share, seconds);
	for (unsigned s = 0; s < seconds; s++)
		most = fmax(most, share[s]);
	for (unsigned s = 0; s < seconds; s++)
		share[s] /= fmax(most, 1);
	efig_work_free(&w);
	return 0;
}

static int play(struct life *l, const double *share, unsigned seconds,
		struct efig_life_result *out)
{
	double used = 0, allocated = 0, from, to;
	double peak = (double)efig_costs.life_peak_mib * 1048576;
	unsigned steps = STEPS;
	uint64_t renewed = 0;

	for (unsigned i = 0; i < seconds * steps; i++) {
		uint64_t now = START_S * 1000000000ull +
			       (uint64_t)i * 1000000000 / steps;

		efig_rack_run(l->rack, now);
		if (l->c->structure == EFIG_FILE &&
		    now - renewed >= l->c->lease_ms * 1000000 / 3) {
			renewed = now;
			file_renew(l);
		}
		from = share[i / steps];
		to = i / steps + 1 < seconds ? share[i / steps + 1] : from;
		from += (to - from) * (i % steps) / steps;
		if (!follow(l, from * peak))
			return -EPROTO;
		used += l->used;
		allocated += (double)efig_rack_allocated(l->rack);
		out->used_mb = l->used / 1e6;
		out->allocated_mb = (double)efig_rack_allocated(l->rack) / 1e6;
	}
	out->surplus = allocated / fmax(used, 1) - 1;
	out->moves = (double)l->kv.moved.moves;
	return 0;
}

static int begin(struct life *l)
{
	struct efig_rack_config config = {.nodes = 4,
					  .tenants = 1,
					  .node_bytes = efig_costs.life_peak_mib
							<< 20,
					  .seed = l->c->seed};
	int err = efig_rack_open(&config, &l->rack);

	if (err)
		return err;
	if (efig_rack_ask(l->rack, 0, CTL_POST, "/v1/ns/f",
			  json_pack("{s:s, s:s}", "kind", "folder", "on_expiry",
				    "keep"),
			  NULL) != 201)
		return -EPROTO;
	if (l->c->structure == EFIG_QUEUE)
		return make(l, "/f/q", "queue") ? 0 : -EPROTO;
	if (l->c->structure == EFIG_FILE)
		return 0;
	l->key = calloc(KEYS_MAX, sizeof(*l->key));
	l->kv = (struct efig_ekv){.rack = l->rack,
				  .path = "/f/kv",
				  .high = l->c->high,
				  .low = 50};
	err = l->key ? ycsb_keys_init(&l->zipf, YCSB_ZIPFIAN, BUCKETS, 0.99)
		     : -ENOMEM;
	return err ? err : efig_ekv_open(&l->kv, l->c->block_bytes);
}

int efig_life_run(const struct efig_life_config *c,
		  struct efig_life_result *out)
{
	unsigned seconds = (unsigned)c->seconds;
	double *share = calloc(seconds, sizeof(*share));
	struct life *l = calloc(1, sizeof(*l));
	int err = share && l ? demand(c, share, seconds) : -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (!err) {
		l->c = c;
		rng_init(&l->rng, c->seed);
		err = begin(l);
	}
	if (!err)
		err = play(l, share, seconds, out);
	if (l) {
		for (unsigned i = 0; i < FILES_MAX; i++)
			free(l->file[i].block);
		efig_ekv_close(&l->kv);
		free(l->key);
		if (l->rack)
			efig_rack_close(l->rack);
	}
	free(l);
	free(share);
	return err;
}
