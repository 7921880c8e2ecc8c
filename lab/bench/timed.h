/* SPDX-License-Identifier: Apache-2.0 */
/* A device around another that takes the time spent inside it. One thread. */
#ifndef AQ_BENCH_TIMED_H
#define AQ_BENCH_TIMED_H

#include "hlog/hlog_device.h"

/* In ticks, without the cost of the clock itself. */
struct timed_ticks {
	double inside; /* all calls */
	double empty;  /* the part in polls that brought nothing */
	double clock;  /* reading the clock */
};

/* `inner` stays the caller's. */
int timed_create(struct hlog_device *inner,
		 struct hlog_device **out) MUST_CHECK;
void timed_reset(struct hlog_device *dev);
struct timed_ticks timed_read(const struct hlog_device *dev, double tick_step);

#endif
