/* SPDX-License-Identifier: Apache-2.0 */
/* DCQCN's rate, without any network around it. */
#include "edm_dcqcn.h"

#include <math.h>

#include "edm_units.h"

void edm_dcqcn_params(struct edm_dcqcn_params *p, uint32_t gbps, bool vendor)
{
	double bps = gbps * 1e9;

	if (vendor) {
		*p = (struct edm_dcqcn_params){
			.line_bps = bps,
			.min_bps = 1e9,
			.additive_bps = 20e6 * gbps / 100,
			.hyper_bps = 200e6 * gbps / 100,
			.gain = 1.0 / 256,
			.alpha_ps = 1 * EDM_US,
			.increase_ps = 300 * EDM_US,
			.byte_count = UINT64_MAX,
			.cut_ps = 4 * EDM_US,
			.fast_steps = 1,
		};
		return;
	}
	*p = (struct edm_dcqcn_params){
		.line_bps = bps,
		.min_bps = 10e6,
		.additive_bps = 40e6,
		.hyper_bps = 400e6,
		.gain = 1.0 / 256,
		.alpha_ps = 55 * EDM_US,
		.increase_ps = 55 * EDM_US,
		.byte_count = 10000000,
		.cut_ps = 50 * EDM_US,
		.fast_steps = 5,
	};
}

void edm_dcqcn_init(struct edm_dcqcn *d, const struct edm_dcqcn_params *p)
{
	*d = (struct edm_dcqcn){
		.rate_bps = p->line_bps,
		.target_bps = p->line_bps,
		.alpha = 1,
	};
}

/* Fast recovery halves the distance to the target; later the target moves too,
 * faster when both the timer and the byte counter have run often. */
static void increase(struct edm_dcqcn *d, const struct edm_dcqcn_params *p)
{
	uint32_t low = u32_min(d->time_steps, d->byte_steps);
	uint32_t high = u32_max(d->time_steps, d->byte_steps);

	if (low > p->fast_steps)
		d->target_bps += p->hyper_bps;
	else if (high > p->fast_steps)
		d->target_bps += p->additive_bps;
	d->target_bps = fmin(d->target_bps, p->line_bps);
	d->rate_bps = (d->rate_bps + d->target_bps) / 2;
	if (d->rate_bps > p->line_bps * 0.999) {
		d->rate_bps = d->target_bps = p->line_bps;
		d->limited = false;
	}
}

void edm_dcqcn_advance(struct edm_dcqcn *d, const struct edm_dcqcn_params *p,
		       uint64_t now_ps)
{
	if (!d->limited)
		return;
	while (d->alpha_at_ps + p->alpha_ps <= now_ps) {
		d->alpha_at_ps += p->alpha_ps;
		d->alpha *= 1 - p->gain;
	}
	while (d->limited && d->increase_at_ps + p->increase_ps <= now_ps) {
		d->increase_at_ps += p->increase_ps;
		d->time_steps++;
		increase(d, p);
	}
}

void edm_dcqcn_notified(struct edm_dcqcn *d, const struct edm_dcqcn_params *p,
			uint64_t now_ps)
{
	edm_dcqcn_advance(d, p, now_ps);
	if (d->cut_at_ps && now_ps < d->cut_at_ps + p->cut_ps)
		return;
	d->cut_at_ps = now_ps;
	d->target_bps = d->rate_bps;
	d->rate_bps = fmax(d->rate_bps * (1 - d->alpha / 2), p->min_bps);
	d->alpha = (1 - p->gain) * d->alpha + p->gain;
	d->alpha_at_ps = d->increase_at_ps = now_ps;
	d->time_steps = d->byte_steps = 0;
	d->sent_bytes = 0;
	d->limited = true;
}

void edm_dcqcn_sent(struct edm_dcqcn *d, const struct edm_dcqcn_params *p,
		    uint32_t bytes)
{
	if (!d->limited)
		return;
	d->sent_bytes += bytes;
	if (d->sent_bytes < p->byte_count)
		return;
	d->sent_bytes -= p->byte_count;
	d->byte_steps++;
	increase(d, p);
}
