/* SPDX-License-Identifier: Apache-2.0 */
/* A table and its clients on the looped host, without a rack. */
#ifndef AQ_TEST_KV_RIG_H
#define AQ_TEST_KV_RIG_H

#include "kit_rig.h"

#include "kv/kv.h"

struct rig {
	struct kit_rig far;
	struct kv_geometry g;
};

static void rig_make(struct rig *r, const struct aq_kv_options *o)
{
	struct kit_remote remote;
	struct kv_geometry again;

	assert_int_equal(kv_geometry_make(o, &r->g), 0);
	kit_rig_make(&r->far, r->g.size_bytes, r->g.lock_bytes);
	remote = rig_remote(&r->far);
	assert_int_equal(kv_format(&remote, &r->g, 0), 0);
	assert_int_equal(kv_probe(&remote, r->g.size_bytes, &again), 0);
	assert_memory_equal(&again, &r->g, sizeof(again));
	rig_close(&r->far, &remote);
}

static struct aq_kv_client *rig_client(struct rig *r,
				       const struct kv_client_config *config)
{
	static const struct kv_client_config none = {.rng_seed = 1};
	struct kit_remote remote = rig_remote(&r->far);
	struct aq_kv_client *c = NULL;

	assert_int_equal(
		kv_client_create(&remote, &r->g, config ? config : &none, &c),
		0);
	return c;
}

static void rig_check_with(struct aq_kv_client *c, uint64_t used)
{
	struct aq_kv_report p;

	assert_int_equal(aq_kv_check(c, &p), 0);
	assert_int_equal(p.bad_rows, 0);
	assert_int_equal(p.bad_entries, 0);
	assert_int_equal(p.duplicates, 0);
	assert_int_equal(p.locks_held, 0);
	assert_int_equal(p.bad_extents, 0);
	assert_int_equal(p.leaked_extents, 0);
	assert_int_equal(p.shared_extents, 0);
	if (used != UINT64_MAX)
		assert_int_equal(p.used, used);
}

#endif
