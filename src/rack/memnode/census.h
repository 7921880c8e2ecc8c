/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients of this machine did, for /metrics: the tallies that they keep in
 * the rack's runtime directory (base/tally.h), added up by kind, object and
 * tenant. Sums never fall when a client ends, as Prometheus wants it, so the
 * census remembers what it has seen of each.
 *
 * A client says what it likes about itself, also whose it is. All that is read
 * is bounded, and nothing but the text of metrics depends on it. Any thread;
 * the lock is its own, and no other one is taken under it.
 */
#ifndef AQ_MEM_CENSUS_H
#define AQ_MEM_CENSUS_H

#include "base/base.h"

struct ctl_metrics;
struct mem_census;

/* `rundir` is the rack's. -ENOMEM. */
int census_create(const char *rundir, struct mem_census **out) MUST_CHECK;
void census_destroy(struct mem_census *c);

/* Looks at the files now and then, for as long as somebody asks for metrics: so
 * that clients that end between two questions are not forgotten. */
void census_tick(struct mem_census *c, uint64_t now_ns);
/* Looks, unless it did so lately. Of that tenant only; NULL: of all. */
void census_metrics(struct mem_census *c, struct ctl_metrics *m,
		    const char *tenant, uint64_t now_ns);
/* Where it looks. */
const char *census_rundir(const struct mem_census *c);

#endif
