/* SPDX-License-Identifier: Apache-2.0 */
/* Far memory by a message to a server and one back, one request at a time. */
#ifndef AQ_BENCH_TWO_SIDED_H
#define AQ_BENCH_TWO_SIDED_H

#include "hlog/hlog_device.h"

/* The link's other end is redy_serve(); the link stays the caller's. */
int two_sided_create(struct client_link *link, uint64_t size_bytes,
		     uint32_t read_max, struct hlog_device **out) MUST_CHECK;

#endif
