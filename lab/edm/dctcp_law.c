/* SPDX-License-Identifier: Apache-2.0 */
/* DCTCP's window, without any network around it. */
#include "edm_dctcp.h"

#include <float.h>
#include <math.h>

void edm_dctcp_init(struct edm_dctcp *d, uint32_t mss_bytes,
		    uint32_t window_bytes)
{
	*d = (struct edm_dctcp){
		.window_bytes = window_bytes,
		.threshold_bytes = DBL_MAX,
		.alpha = 1, /* RFC 8257: cautious at the first mark */
		.gain = 1.0 / 16,
		.mss_bytes = mss_bytes,
	};
}

static void window_set(struct edm_dctcp *d, double bytes)
{
	d->window_bytes = fmax(bytes, d->mss_bytes);
}

void edm_dctcp_ack(struct edm_dctcp *d, uint32_t bytes, bool marked,
		   uint64_t una, uint64_t nxt)
{
	d->acked_bytes += bytes;
	if (marked)
		d->marked_bytes += bytes;
	if (una >= d->window_end && d->acked_bytes) {
		double part = (double)d->marked_bytes / (double)d->acked_bytes;

		d->alpha = (1 - d->gain) * d->alpha + d->gain * part;
		d->acked_bytes = d->marked_bytes = 0;
		d->window_end = nxt;
	}
	if (marked) {
		if (una < d->cut_end)
			return;
		window_set(d, d->window_bytes * (1 - d->alpha / 2));
		d->threshold_bytes = d->window_bytes;
		d->cut_end = nxt;
	} else if (d->window_bytes < d->threshold_bytes) {
		d->window_bytes += bytes;
	} else {
		d->window_bytes +=
			(double)d->mss_bytes * bytes / d->window_bytes;
	}
}

void edm_dctcp_fast_retransmit(struct edm_dctcp *d, uint64_t nxt)
{
	window_set(d, d->window_bytes / 2);
	d->threshold_bytes = d->window_bytes;
	d->cut_end = nxt;
}

void edm_dctcp_timeout(struct edm_dctcp *d, uint64_t nxt)
{
	d->threshold_bytes = fmax(d->window_bytes / 2, 2.0 * d->mss_bytes);
	d->window_bytes = d->mss_bytes;
	d->cut_end = nxt;
}
