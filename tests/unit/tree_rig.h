/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered index over a quiet network, for tests. Include cmocka.h before
 * it. */
#ifndef TREE_RIG_H
#define TREE_RIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "index/tree.h"
#include "rig/stage.h"
#include "sim/sim.h"

enum {
	CLIENTS = 6,
	KEY_MAX = 12,
	VALUE_MAX = 16,
	CONNS = 1024,
};

struct rig {
	struct rig_stage *stage;
	struct rig_host *node, *host;
	struct rig_region *region, *locks;
	struct tree_geometry g;
	struct client_link *conn[CONNS];
	unsigned conns;
	unsigned countdown; /* requests until a client dies; 0: never */
	unsigned busy;
	void (*fn)(struct rig *r);
	bool is_done;
};

static inline int remote_fence(void *ctx, const char *conn)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct rig *r = ctx;

	return -ibv_modify_qp(rig_link_far_qp(r->conn[atoi(conn)]), &err,
			      IBV_QP_STATE);
}

static inline int remote_is_alive(void *ctx, const char *conn)
{
	return 1;
}

static inline struct kit_remote remote_open(struct rig *r)
{
	struct kit_remote p = {.fence = remote_fence,
			       .is_alive = remote_is_alive,
			       .ctx = r,
			       .addr = r->region->addr,
			       .size_bytes = r->region->size_bytes,
			       .rkey = r->region->rkey,
			       .lock_addr = r->locks->addr,
			       .lock_rkey = r->locks->rkey};

	assert_true(r->conns < CONNS);
	assert_int_equal(rig_link_open(r->host, r->region, NULL, &p.link), 0);
	snprintf(p.conn, sizeof(p.conn), "%u", r->conns);
	r->conn[r->conns++] = p.link;
	return p;
}

static inline bool crash(void *ctx, int point)
{
	struct rig *r = ctx;

	return r->countdown && !--r->countdown;
}

static inline struct tree_client *client_with(struct rig *r, bool dies,
					      struct tree_locals *locals)
{
	struct tree_config cfg = {.deadline_ms = 200,
				  .locals = locals,
				  .crash = dies ? crash : NULL,
				  .ctx = r};
	struct kit_remote p = remote_open(r);
	struct tree_client *c;

	assert_int_equal(tree_client_create(&p, &r->g, &cfg, &c), 0);
	return c;
}

static inline struct tree_client *client(struct rig *r)
{
	return client_with(r, false, NULL);
}

static inline void fiber(void *arg)
{
	struct rig *r = arg;
	struct kit_remote p = remote_open(r);

	assert_int_equal(tree_format(&p, &r->g), 0);
	r->fn(r);
	r->is_done = true;
	sim_stop(rig_stage_sim(r->stage));
}

static inline void play(const struct tree_options *o, void (*fn)(struct rig *r))
{
	struct rig_stage_config cfg = {.seed = 1};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fn = fn;
	cfg.link.latency_ps = SIM_US;
	assert_int_equal(tree_geometry_make(o, &r->g), 0);
	assert_int_equal(rig_stage_create(&cfg, &r->stage), 0);
	assert_int_equal(rig_host_add(r->stage, "node", &r->node), 0);
	assert_int_equal(rig_host_add(r->stage, "host", &r->host), 0);
	assert_int_equal(
		rig_region_create(r->node, r->g.size_bytes, false, &r->region),
		0);
	assert_int_equal(
		rig_region_create(r->node, r->g.lock_bytes, false, &r->locks),
		0);
	assert_int_equal(rig_host_spawn(r->host, "test", fiber, r), 0);
	(void)sim_run_until(rig_stage_sim(r->stage), 1000 * SIM_S);
	assert_true(r->is_done);
	rig_stage_destroy(r->stage);
	free(r);
}

/* Six entries in a leaf, five in an inner node. */
static const struct tree_options small = {.size_bytes = 256 * 320,
					  .node_bytes = 320,
					  .key_max = KEY_MAX,
					  .value_max = VALUE_MAX,
					  .clients = CLIENTS,
					  .failure_ms = 5,
					  .chunk_nodes = 8};

static inline void check_whole(struct tree_client *c, uint64_t keys)
{
	struct tree_report r;

	assert_int_equal(tree_check(c, &r), 0);
	if (tree_report_is_bad(&r))
		fail_msg("%d bad nodes, %d entries, %d links, %d children",
			 (int)r.bad_nodes, (int)r.bad_entries, (int)r.bad_links,
			 (int)r.bad_children);
	if (keys != UINT64_MAX)
		assert_int_equal(r.keys, keys);
}

static inline void put(struct tree_client *c, const char *key,
		       const char *value)
{
	int err = tree_put(c, key, strlen(key), value, strlen(value));

	if (err)
		fail_msg("put %s: %d, %s", key, err, error_last());
}

static inline void check_get(struct tree_client *c, const char *key,
			     const char *want)
{
	char buf[VALUE_MAX];
	size_t len = 0;
	int err = tree_get(c, key, strlen(key), buf, sizeof(buf), &len);

	assert_int_equal(err, want ? 0 : -ENOENT);
	if (!want)
		return;
	assert_int_equal(len, strlen(want));
	assert_memory_equal(buf, want, len);
}

static inline const char *number(unsigned i, char out[KEY_MAX])
{
	snprintf(out, KEY_MAX, "k%05u", i);
	return out;
}

#endif
