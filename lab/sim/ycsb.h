/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads of the Yahoo! Cloud Serving Benchmark: which operation comes
 * next, and on which record. Shared by all benchmarks of stores. Seeded: the
 * same numbers on every machine.
 *
 * The popularity of records is uniform or Zipfian; a Zipfian one is scrambled:
 * popular records lie anywhere among the others. Where the original hashes a
 * rank and takes the remainder, this is a permutation, so no two ranks fall on
 * one record and the skew is exactly the one asked for.
 */
#ifndef AQ_YCSB_H
#define AQ_YCSB_H

#include "base/base.h"
#include "base/rng.h"

enum ycsb_mix {
	YCSB_A, /* 50 % reads, 50 % updates */
	YCSB_B, /* 95 % reads, 5 % updates */
	YCSB_C, /* reads only */
	YCSB_F, /* 50 % reads, 50 % read-modify-writes */
};

enum ycsb_dist {
	YCSB_UNIFORM,
	YCSB_ZIPFIAN,
};

enum ycsb_op_kind {
	YCSB_READ,
	YCSB_UPDATE,
	YCSB_RMW,
};

#define YCSB_THETA 0.99 /* the usual skew */

/* Which records are popular. Not changed by drawing: threads may share it. */
struct ycsb_keys {
	enum ycsb_dist dist;
	uint64_t count;
	/* For a Zipfian distribution. Ranks are drawn by rejection-inversion
	 * (Hoermann and Derflinger, 1996), which is exact for any count; the
	 * usual formula is off by more than a tenth for some ranks. */
	double theta;
	double zetan;
	double low, high; /* of the integral over the law */
	double accept;	  /* below it no second look is needed */
	unsigned bits;	  /* of the permutation's domain */
};

/* count >= 1; theta is in (0, 1) and without meaning for YCSB_UNIFORM.
 * -EINVAL. */
int ycsb_keys_init(struct ycsb_keys *k, enum ycsb_dist dist, uint64_t count,
		   double theta) MUST_CHECK;

/* A random rank; 0 is the most popular. A uniform distribution has no order,
 * and the rank is the record. */
uint64_t ycsb_keys_rank(const struct ycsb_keys *k, struct rng *r);
/* Where the record of that rank lies in [0, count). */
uint64_t ycsb_keys_scatter(const struct ycsb_keys *k, uint64_t rank);
/* The share of accesses that goes to the `top` most popular records. */
double ycsb_keys_mass(const struct ycsb_keys *k, uint64_t top);

/* One thread's sequence. */
struct ycsb {
	const struct ycsb_keys *keys;
	uint32_t read_ppm;
	enum ycsb_op_kind other;
	struct rng rng;
};

struct ycsb_op {
	enum ycsb_op_kind kind;
	uint64_t record; /* in [0, count) */
};

/* `stream` numbers the threads of a run. `keys` must outlive it. */
void ycsb_init(struct ycsb *y, enum ycsb_mix mix, const struct ycsb_keys *keys,
	       uint64_t seed, uint64_t stream);
struct ycsb_op ycsb_next(struct ycsb *y);

/* The 8-byte key of a record; no two records share one. */
uint64_t ycsb_key(uint64_t record);

#endif
