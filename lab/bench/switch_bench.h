/* SPDX-License-Identifier: Apache-2.0 */
/* The subjects of `bench switch`: traffic through the switch, and the same
 * without one. No process has a core or priority of its own: three of them
 * share the cores. */
#ifndef AQ_BENCH_SWITCH_BENCH_H
#define AQ_BENCH_SWITCH_BENCH_H

#include "side.h"

#define SWITCH_NAME "bench"

struct switch_param {
	uint32_t depth; /* under way; the first member, which ring3 reads */
	bool is_at_switch;
	const char *rack;
};

extern const struct side_ops switch_ring3_ops; /* bare rings */
extern const struct side_ops switch_pump_ops;  /* frames */
extern const struct side_ops switch_kv_ops;    /* a table */

#endif
