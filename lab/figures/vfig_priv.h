/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a point share. */
#ifndef AQ_RIG_VFIG_PRIV_H
#define AQ_RIG_VFIG_PRIV_H

#include "base/hist.h"
#include "base/rng.h"
#include "rig/stage.h"
#include "rig/tor_steer.h"
#include "rig/trip.h"
#include "vfig.h"

struct vfig;

struct vfig_thread {
	struct vfig *f;
	unsigned index;
	struct rig_host *host;
	struct client_link *link;
	struct vlist_client *store;
	struct rig_trip trip; /* of the system without a store */
	struct rng rng;
	/* Since the measurement began. */
	uint64_t attempts, done;
	uint64_t before; /* attempts by then */
};

struct vfig {
	const struct vfig_config *cfg;
	struct vfig_result *res;
	struct rig_stage *stage;
	struct rig_host *node;
	struct rig_host *hosts[VFIG_HOSTS];
	struct rig_region *region;
	struct rig_steer steer;
	struct vlist_geometry g;
	struct vlist_places *places[VFIG_HOSTS]; /* of each machine's threads */
	double cumulative[VFIG_KEYS];		 /* of the distribution */
	struct vfig_thread *thread;
	unsigned ready;
	uint64_t bytes_before;
	bool is_measuring;
	struct hist reads, writes;
	struct hist trips[2][VFIG_TRIPS]; /* of each */
};

uint64_t vfig_key(const struct vfig *f, struct rng *r);

/* ---- vfig_cas.c ---------------------------------------------------------- */

int vfig_cas_run(const struct vfig_config *cfg,
		 struct vfig_result *res) MUST_CHECK;

/* ---- vfig_fusee.c -------------------------------------------------------- */

uint64_t vfig_fusee_bytes(const struct vfig_config *cfg);
int vfig_fusee_open(struct vfig_thread *t) MUST_CHECK;
int vfig_fusee_get(struct vfig_thread *t, uint64_t key) MUST_CHECK;
int vfig_fusee_put(struct vfig_thread *t, uint64_t key) MUST_CHECK;
void vfig_fusee_close(struct vfig_thread *t);

#endif
