/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control law. The window doubles per round trip until something happens,
 * then grows by a few packets per round trip. It shrinks, once per round trip:
 *
 *  - to 4/5 when the network marks (ECN),
 *  - by an eighth when answers queue for milliseconds,
 *  - to half when more than three packets in a hundred are lost, when loss
 *    comes with queueing, and after a timeout.
 *
 * Rare loss without queueing is no congestion (a bad link, a full buffer of a
 * process that was not scheduled): it ends the doubling and nothing else. Who
 * halves for each loss gets, at one percent, a window of a dozen packets
 * whatever the link could carry.
 */
#include "congestion.h"

#include "wire/wire.h"

void congestion_init(struct congestion *c, uint32_t window_max,
		     uint32_t first_psn)
{
	*c = (struct congestion){.on = window_max != 0};
	if (!c->on)
		return;
	c->slow_start = true;
	c->window_max = window_max < CONGESTION_WINDOW_MIN
				? CONGESTION_WINDOW_MIN
				: window_max;
	c->window = u32_min(CONGESTION_WINDOW_START, c->window_max);
	c->seen_psn = first_psn;
}

static void shrink_to(struct congestion *c, uint32_t window, uint32_t floor)
{
	floor = u32_min(floor, c->window);
	c->window = window < floor ? floor : window;
	c->slow_start = false;
	c->gained = 0;
}

static void grow(struct congestion *c, uint32_t answered)
{
	if (c->slow_start) {
		c->window = u32_min(c->window + answered, c->window_max);
		return;
	}
	c->gained += answered;
	if (c->gained >= c->window) {
		c->gained = 0;
		c->window = u32_min(c->window + CONGESTION_STEP, c->window_max);
	}
}

bool congestion_answered(struct congestion *c, uint32_t una_psn,
			 uint32_t in_flight)
{
	int32_t answered = wire_psn_diff(una_psn, c->seen_psn);

	if (answered <= 0)
		return false;
	c->seen_psn = una_psn;
	c->backoff = 0;
	c->since_loss += (uint32_t)answered;
	if (c->recovering && wire_psn_diff(una_psn, c->recover_psn) >= 0)
		c->recovering = false;
	/* A window that is not used says nothing about the network. */
	if (!c->recovering && in_flight + (uint32_t)answered >= c->window / 2)
		grow(c, (uint32_t)answered);
	if (!c->timing || wire_psn_diff(una_psn, c->timed_psn) <= 0)
		return false;
	c->timing = false;
	return true;
}

static bool is_queueing(const struct congestion *c, uint64_t rtt_ns)
{
	return c->min_rtt_ns &&
	       rtt_ns > 2 * c->min_rtt_ns + CONGESTION_QUEUE_NS;
}

/* Round trip and its deviation as in RFC 6298. */
void congestion_sample(struct congestion *c, uint64_t now_ns)
{
	uint64_t rtt_ns = now_ns - c->timed_ns;
	uint64_t off_ns;

	if (!c->min_rtt_ns || rtt_ns < c->min_rtt_ns ||
	    now_ns - c->min_rtt_at_ns > CONGESTION_MIN_RTT_NS) {
		c->min_rtt_ns = rtt_ns;
		c->min_rtt_at_ns = now_ns;
	}
	if (c->srtt_ns == 0) {
		c->srtt_ns = rtt_ns;
		c->rttvar_ns = rtt_ns / 2;
		return;
	}
	off_ns =
		rtt_ns > c->srtt_ns ? rtt_ns - c->srtt_ns : c->srtt_ns - rtt_ns;
	c->rttvar_ns = (3 * c->rttvar_ns + off_ns) / 4;
	c->srtt_ns = (7 * c->srtt_ns + rtt_ns) / 8;
	/* One sample per round trip, so one reaction. */
	if (is_queueing(c, rtt_ns) && is_queueing(c, c->srtt_ns))
		shrink_to(c, c->window - c->window / 8, CONGESTION_DELAY_FLOOR);
}

static void start_recovery(struct congestion *c, uint32_t next_psn)
{
	c->recovering = true;
	c->recover_psn = next_psn;
	c->timing = false;
}

void congestion_lost(struct congestion *c, uint32_t next_psn, bool timeout)
{
	bool heavy;

	if (!c->on)
		return;
	if (timeout && c->backoff < CONGESTION_BACKOFF_MAX)
		c->backoff++;
	if (!c->recovering || timeout) {
		c->loss_interval =
			c->loss_interval
				? (7 * c->loss_interval + c->since_loss) / 8
				: u32_min(c->since_loss, 1u << 16);
		c->since_loss = 0;
		heavy = c->loss_interval < CONGESTION_INTERVAL_HEAVY ||
			is_queueing(c, c->srtt_ns);
		/* The first timeout may be the loss of a lone packet. */
		if (heavy || (timeout && c->backoff > 1))
			shrink_to(c, c->window / 2, CONGESTION_WINDOW_MIN);
		c->slow_start = false;
	}
	start_recovery(c, next_psn);
}

bool congestion_marked(struct congestion *c, uint32_t next_psn)
{
	if (!c->on || c->recovering)
		return false;
	shrink_to(c, c->window - c->window / 5, CONGESTION_WINDOW_MIN);
	start_recovery(c, next_psn);
	return true;
}

uint64_t congestion_rto_ns(const struct congestion *c)
{
	uint64_t rto_ns = CONGESTION_RTO_START_NS;

	if (c->srtt_ns)
		rto_ns = u64_max(c->srtt_ns + 4 * c->rttvar_ns,
				 CONGESTION_RTO_MIN_NS);
	return rto_ns << c->backoff;
}
