/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The five applications' distributions as the EDM authors published them with
 * their traces: packets of 1,460 bytes at given points of the cumulative
 * distribution, linear between them.
 */
#include "edm_sizes.h"

#include <math.h>

enum {
	PACKET_BYTES = 1460,
	POINTS = 7,
	YCSB_READ_BYTES = 1024,
	YCSB_WRITE_BYTES = 100,
	GRID = 2000,
};

static const double level[POINTS] = {0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
static const double packets[EDM_SIZES_COUNT][POINTS] = {
	[EDM_SIZES_HADOOP] = {4, 4, 4, 4, 88, 167, 920},
	[EDM_SIZES_SPARK] = {4, 4, 4, 4, 13, 220, 930},
	[EDM_SIZES_SPARKSQL] = {4, 4, 7, 7, 83, 140, 980},
	[EDM_SIZES_GRAPHLAB] = {4, 4, 4, 4, 88, 167, 1080},
	[EDM_SIZES_MEMCACHED] = {4, 4, 4, 4, 64, 296, 1216},
};

static uint32_t application_bytes(enum edm_sizes which, double u)
{
	const double *p = packets[which];
	double x = p[POINTS - 1];

	for (unsigned i = 1; i < POINTS; i++) {
		if (u <= level[i]) {
			x = p[i - 1] + (p[i] - p[i - 1]) * (u - level[i - 1]) /
					       (level[i] - level[i - 1]);
			break;
		}
	}
	return (uint32_t)lround(x) * PACKET_BYTES;
}

static uint32_t bytes_at(const struct edm_config *c, enum edm_op op, double u)
{
	if (op == EDM_RMW)
		return EDM_RMW_REPLY_BYTES;
	switch (c->sizes) {
	case EDM_SIZES_FIXED:
	case EDM_SIZES_COUNT:
		return c->fixed_bytes;
	case EDM_SIZES_YCSB:
		return op == EDM_READ ? YCSB_READ_BYTES : YCSB_WRITE_BYTES;
	case EDM_SIZES_HADOOP:
	case EDM_SIZES_SPARK:
	case EDM_SIZES_SPARKSQL:
	case EDM_SIZES_GRAPHLAB:
	case EDM_SIZES_MEMCACHED:
		break;
	}
	return application_bytes(c->sizes, u);
}

uint32_t edm_sizes_draw(const struct edm_config *c, enum edm_op op,
			struct rng *r)
{
	return bytes_at(c, op, rng_double(r));
}

uint32_t edm_sizes_max(const struct edm_config *c)
{
	if (c->trace)
		return UINT32_MAX; /* not known beforehand */
	return u32_max(bytes_at(c, EDM_READ, 1), bytes_at(c, EDM_WRITE, 1));
}

double edm_sizes_expect(const struct edm_config *c,
			double (*fn)(const struct edm_config *c, enum edm_op op,
				     uint32_t bytes))
{
	const double share[] = {
		[EDM_WRITE] = c->write_ppm / 1e6,
		[EDM_READ] = 1 - c->write_ppm / 1e6 - c->rmw_ppm / 1e6,
		[EDM_RMW] = c->rmw_ppm / 1e6,
	};
	double sum = 0;

	for (int op = EDM_WRITE; op <= EDM_RMW; op++) {
		double mean = 0;

		if (share[op] <= 0)
			continue;
		for (unsigned i = 0; i < GRID; i++)
			mean += fn(
				c, (enum edm_op)op,
				bytes_at(c, (enum edm_op)op, (i + 0.5) / GRID));
		sum += share[op] * mean / GRID;
	}
	return sum;
}

static double bytes_of(const struct edm_config *c, enum edm_op op,
		       uint32_t bytes)
{
	return bytes;
}

double edm_sizes_mean(const struct edm_config *c)
{
	return edm_sizes_expect(c, bytes_of);
}
