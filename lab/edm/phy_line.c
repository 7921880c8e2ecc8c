/* SPDX-License-Identifier: Apache-2.0 */
/* The line: every bit error hits the scrambled stream, as on a cable. */
#include "phy_line.h"

#include <math.h>
#include <string.h>

/* Bits before the next error: geometric, so an error costs one draw and the
 * bits between cost nothing. */
static uint64_t draw_gap(struct edm_line *l)
{
	double u, gap;

	if (l->error_rate <= 0)
		return UINT64_MAX;
	if (l->error_rate >= 1)
		return 0;
	u = 1 - rng_double(&l->rng); /* (0, 1] */
	gap = floor(log(u) / log1p(-l->error_rate));
	return gap >= 1e18 ? UINT64_MAX : (uint64_t)gap;
}

void edm_line_init(struct edm_line *l, double error_rate, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	rng_init_stream(&l->rng, seed, 66);
	l->error_rate = error_rate;
	/* The ends start with registers that have nothing in common. */
	l->tx.past = UINT64_MAX;
	l->next_error = draw_gap(l);
}

unsigned edm_line_carry(struct edm_line *l, const struct wire_block *in,
			struct wire_block *out)
{
	struct wire_block b = {edm_scramble(&l->tx, in->payload), in->sync};
	unsigned flips = 0;

	while (l->next_error < WIRE_BLOCK_BITS) {
		if (l->next_error < 2)
			b.sync ^= (uint8_t)(1u << l->next_error);
		else
			b.payload ^= UINT64_C(1) << (l->next_error - 2);
		flips++;
		l->next_error += 1 + u64_min(draw_gap(l), UINT64_MAX / 2);
	}
	if (l->error_rate > 0)
		l->next_error -= WIRE_BLOCK_BITS;
	l->bits += WIRE_BLOCK_BITS;
	l->errors += flips;
	edm_lock_feed(&l->lock, b.sync);
	out->payload = edm_descramble(&l->rx, b.payload);
	out->sync = b.sync;
	return flips;
}
