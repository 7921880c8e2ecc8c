/* SPDX-License-Identifier: Apache-2.0 */
/* Draws operations and records. */
#include "ycsb.h"

#include <errno.h>
#include <math.h>

enum {
	/* Terms of the zeta sum that are added one by one; the rest is an
	 * integral with two correction terms, right to 12 digits. */
	ZETA_EXACT = 10000,
	PPM = 1000000,
};

/* sum of i^-theta for i in 1..n */
static double zeta(uint64_t n, double theta)
{
	uint64_t exact = u64_min(n, ZETA_EXACT);
	double a = (double)exact, b = (double)n;
	double sum = 0;

	for (uint64_t i = exact; i >= 1; i--)
		sum += pow((double)i, -theta);
	if (n == exact)
		return sum;
	/* Euler and Maclaurin, from a (already in the sum) to b. */
	sum += (pow(b, 1 - theta) - pow(a, 1 - theta)) / (1 - theta);
	sum += (pow(b, -theta) - pow(a, -theta)) / 2;
	sum -= theta * (pow(b, -theta - 1) - pow(a, -theta - 1)) / 12;
	return sum;
}

/* Of x^-theta, up to a constant, and the x for a value of it. */
static double integral(const struct ycsb_keys *k, double x)
{
	return pow(x, 1 - k->theta) / (1 - k->theta);
}

static double integral_inverse(const struct ycsb_keys *k, double y)
{
	return pow(y * (1 - k->theta), 1 / (1 - k->theta));
}

int ycsb_keys_init(struct ycsb_keys *k, enum ycsb_dist dist, uint64_t count,
		   double theta)
{
	struct ycsb_keys v = {.dist = dist, .count = count, .theta = theta};

	if (count < 1 || count >> 62)
		return -EINVAL;
	if (dist == YCSB_ZIPFIAN) {
		if (!(theta > 0) || !(theta < 1))
			return -EINVAL;
		v.zetan = zeta(count, theta);
		v.low = integral(&v, 1.5) - 1;
		v.high = integral(&v, (double)count + 0.5);
		v.accept = 2 - integral_inverse(&v, integral(&v, 2.5) -
							    pow(2, -theta));
	} else if (dist != YCSB_UNIFORM) {
		return -EINVAL;
	}
	/* At least 2, so that the permutation's halves have a bit each. */
	v.bits = 2;
	while (v.bits < 62 && count > 1ull << v.bits)
		v.bits++;
	*k = v;
	return 0;
}

/* A number from 1 to count. */
static uint64_t draw_zipfian(const struct ycsb_keys *k, struct rng *r)
{
	double u, x, rank;

	do {
		u = k->high + rng_double(r) * (k->low - k->high);
		x = integral_inverse(k, u);
		rank = floor(x + 0.5);
		if (rank < 1)
			rank = 1;
		if (rank > (double)k->count)
			rank = (double)k->count;
	} while (rank - x > k->accept &&
		 u < integral(k, rank + 0.5) - pow(rank, -k->theta));
	return (uint64_t)rank;
}

uint64_t ycsb_keys_rank(const struct ycsb_keys *k, struct rng *r)
{
	if (k->dist == YCSB_UNIFORM)
		return rng_below(r, k->count);
	return draw_zipfian(k, r) - 1;
}

/* A permutation of [0, 2^bits): each step can be undone. */
static uint64_t permute(uint64_t v, unsigned bits)
{
	uint64_t mask = (1ull << bits) - 1;
	unsigned half = (bits + 1) / 2;

	v = (v * 0x9e3779b97f4a7c15ull + 0x3243f6a8885a308dull) & mask;
	v ^= v >> half;
	v = (v * 0xd6e8feb86659fd93ull) & mask;
	v ^= v >> half;
	v = (v * 0xa0761d6478bd642full) & mask;
	return v ^ v >> half;
}

uint64_t ycsb_keys_scatter(const struct ycsb_keys *k, uint64_t rank)
{
	/* Walking along a cycle of the permutation until it is back inside
	 * [0, count) is a permutation of that; two steps at the average. */
	do
		rank = permute(rank, k->bits);
	while (rank >= k->count);
	return rank;
}

double ycsb_keys_mass(const struct ycsb_keys *k, uint64_t top)
{
	if (top >= k->count)
		return 1;
	if (k->dist == YCSB_UNIFORM)
		return (double)top / (double)k->count;
	return top ? zeta(top, k->theta) / k->zetan : 0;
}

void ycsb_init(struct ycsb *y, enum ycsb_mix mix, const struct ycsb_keys *keys,
	       uint64_t seed, uint64_t stream)
{
	static const uint32_t read_ppm[] = {
		[YCSB_A] = PPM / 2,
		[YCSB_B] = PPM / 100 * 95,
		[YCSB_C] = PPM,
		[YCSB_F] = PPM / 2,
	};

	*y = (struct ycsb){
		.keys = keys,
		.read_ppm = read_ppm[mix],
		.other = mix == YCSB_F ? YCSB_RMW : YCSB_UPDATE,
	};
	rng_init_stream(&y->rng, seed, stream);
}

struct ycsb_op ycsb_next(struct ycsb *y)
{
	struct ycsb_op op = {.kind = YCSB_READ};

	if (y->read_ppm < PPM && !rng_chance_ppm(&y->rng, y->read_ppm))
		op.kind = y->other;
	op.record = ycsb_keys_rank(y->keys, &y->rng);
	if (y->keys->dist == YCSB_ZIPFIAN)
		op.record = ycsb_keys_scatter(y->keys, op.record);
	return op;
}

uint64_t ycsb_key(uint64_t record)
{
	/* Odd factors and shifts of at least half the width can be undone, so
	 * this is one to one. */
	record = (record + 1) * 0x9e3779b97f4a7c15ull;
	record ^= record >> 32;
	return record * 0xd6e8feb86659fd93ull;
}
