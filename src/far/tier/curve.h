/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency of a memory at a load: points from idle to the most that it moves.
 * The probe measures such curves, and models of tiers are made of published
 * ones.
 */
#ifndef AQ_TIER_CURVE_H
#define AQ_TIER_CURVE_H

#include "base/base.h"

enum {
	TIER_CURVE_MAX = 16, /* points */
};

/* The knee is where latency is this many times that of idle memory. */
#define TIER_KNEE_FACTOR 1.5

struct tier_point {
	double gbs; /* 10^9 bytes a second */
	double ns;  /* of a load that waits for nothing else */
};

/* At least one point; bandwidth does not fall from one to the next, once
 * tier_curve_sort has run. */
struct tier_curve {
	struct tier_point point[TIER_CURVE_MAX];
	unsigned count;
};

/* Brings measured points into order. */
void tier_curve_sort(struct tier_curve *c);
double tier_curve_idle_ns(const struct tier_curve *c);
double tier_curve_peak_gbs(const struct tier_curve *c);
/*
 * Through all points, between them smooth and never beyond them (monotone cubic
 * interpolation, Fritsch and Butland's tangents). Not on straight lines:
 * latency grows faster and faster with load, so between points that are far
 * apart a line is far above it. Below the first point its latency, and from the
 * peak on the last one's, which is the highest that was seen.
 */
double tier_curve_ns(const struct tier_curve *c, double gbs);
/* Bandwidth from which latency is above TIER_KNEE_FACTOR of idle, between
 * points on a straight line; the peak where it never is. */
double tier_curve_knee_gbs(const struct tier_curve *c);

#endif
