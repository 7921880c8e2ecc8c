/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YCSB on memory of two nodes: records of 1 KB at fixed places, a get reads
 * one, a put writes a field of 100 B. Keys are drawn evenly, and every get is
 * compared with what was put last. Local memory takes EDM_DRAM_PS, and so does
 * the other node's behind the fabric.
 */
#include "edm_kv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "edm_constants.h"
#include "edm_memory.h"

enum {
	KEYS = 256,
	RECORD = 1024,
	FIELD = 100,
	COMPUTE = 0,
	MEMORY = 1,
	SCRATCH = KEYS * RECORD, /* of the compute node: one record */
	BYTES = SCRATCH + RECORD,
};

struct kv {
	struct edm_memory *m;
	struct rng rng;
	uint32_t version[KEYS];
	bool is_remote[KEYS];
};

static void field_make(uint32_t key, uint32_t version, uint8_t *out)
{
	for (uint32_t i = 0; i < FIELD; i++)
		out[i] = (uint8_t)(key * 31 + version * 7 + i);
}

static void fill(struct kv *kv, double remote)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		kv->is_remote[k] = (uint32_t)((k + 1) * remote + 1e-9) >
				   (uint32_t)(k * remote + 1e-9);
		for (uint16_t node = COMPUTE; node <= MEMORY; node++) {
			uint8_t *at = edm_memory_at(kv->m, node) + k * RECORD;

			memset(at, (int)k, RECORD);
			field_make(k, 0, at);
		}
	}
}

/* Its time in the fabric; -EIO: the memory did not answer. */
static int far(struct kv *kv, uint32_t key, bool is_put, uint64_t *ps)
{
	struct edm_request r = {.op = is_put ? EDM_WRITE : EDM_READ,
				.src = COMPUTE,
				.dst = MEMORY,
				.local = SCRATCH,
				.remote = (uint64_t)key * RECORD,
				.bytes = is_put ? FIELD : RECORD};
	struct edm_completion done;
	int rc = edm_memory_post(kv->m, &r);

	if (rc)
		return rc;
	if (!edm_memory_poll(kv->m, EDM_NEVER, &done) || done.null)
		return -EIO;
	*ps = done.end_ps - done.start_ps;
	return 0;
}

static bool is_right(const struct kv *kv, uint32_t key, const uint8_t *record)
{
	uint8_t want[RECORD];

	memset(want, (int)key, RECORD);
	field_make(key, kv->version[key], want);
	return !memcmp(record, want, RECORD);
}

static int request(struct kv *kv, uint32_t key, bool is_put, uint64_t *ps,
		   struct edm_kv_result *out)
{
	uint8_t *home = edm_memory_at(kv->m, COMPUTE);
	uint8_t *record = kv->is_remote[key] ? home + SCRATCH
					     : home + (size_t)key * RECORD;
	int rc = 0;

	*ps = 0;
	if (is_put)
		field_make(key, ++kv->version[key], record);
	if (kv->is_remote[key])
		rc = far(kv, key, is_put, ps);
	*ps += EDM_DRAM_PS;
	if (!is_put && !rc)
		out->wrong += !is_right(kv, key, record);
	return rc;
}

static int requests(struct kv *kv, const struct edm_kv_config *c,
		    struct edm_kv_result *out)
{
	double sum = 0, square = 0, remote = 0;

	for (uint32_t i = 0; i < c->requests; i++) {
		uint32_t key = (uint32_t)rng_below(&kv->rng, KEYS);
		bool is_put = rng_double(&kv->rng) < c->writes;
		uint64_t ps;
		int rc = request(kv, key, is_put, &ps, out);
		double ns = (double)ps / 1000;

		if (rc)
			return rc;
		remote += kv->is_remote[key];
		sum += ns;
		square += ns * ns;
	}
	out->mean_ns = sum / c->requests;
	out->remote = remote / c->requests;
	out->deviation_ns = sqrt(
		fmax(0, square / c->requests - out->mean_ns * out->mean_ns));
	return 0;
}

int edm_kv_run(const struct edm_kv_config *c, struct edm_kv_result *out)
{
	struct kv *kv = calloc(1, sizeof(*kv));
	struct edm_config fabric;
	int rc;

	if (!kv)
		return -ENOMEM;
	*out = (struct edm_kv_result){0};
	edm_config_init(&fabric);
	fabric.nodes = 2;
	fabric.proto = c->proto;
	fabric.gbps = c->gbps;
	fabric.framing = EDM_FRAMING_WIRE;
	fabric.seed = c->seed;
	rng_init_stream(&kv->rng, c->seed, 7);
	rc = edm_memory_create(&fabric, BYTES, &kv->m);
	if (!rc) {
		fill(kv, c->remote);
		rc = requests(kv, c, out);
		edm_memory_destroy(kv->m);
	}
	free(kv);
	return rc;
}
