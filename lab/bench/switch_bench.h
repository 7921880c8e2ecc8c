/* SPDX-License-Identifier: Apache-2.0 */
/* The subjects of `bench switch`: traffic through the switch, and the same
 * without one. No process has a core or priority of its own: three of them
 * share the cores. */
#ifndef AQ_BENCH_SWITCH_BENCH_H
#define AQ_BENCH_SWITCH_BENCH_H

#include <sys/types.h>

#include "side.h"

#define SWITCH_NAME    "bench"
#define SWITCH_FORWARD "bench-forward"
#define SWITCH_SWORD   "bench-swordbox" /* with that program */
#define SWITCH_STEER   "bench-steer"

enum {
	SWITCH_CONN_DEPTH = 16, /* operations under way on a connection */
};

struct switch_param {
	uint32_t depth; /* under way; the first member, which ring3 reads */
	bool is_at_switch;
	const char *rack;
	/* Of subjects with a program. */
	const char *name; /* of the switch */
	const pid_t *pid; /* the same */
	unsigned number;  /* of the subject at that switch */
	bool has_program;
	bool is_moved;	  /* swordbox: whole connections */
	bool is_one_list; /* steer: all append to the same list */
};

/* Frames from a client to a server and back, through the switch `name`. Two
 * such pairs of one rack have different numbers, 0 to 9. */
struct switch_pump {
	struct plug *plug;
	uint32_t peer_slot;
};
int switch_pump_open(struct side *s, const char *rack, const char *name,
		     unsigned number, struct switch_pump *out)
	__attribute__((warn_unused_result));
void switch_pump_close(struct switch_pump *p);
int switch_pump_serve(struct side *s, const struct switch_pump *pump)
	__attribute__((warn_unused_result));
int switch_pump_measure(struct side *s, const struct switch_pump *pump,
			uint32_t depth, uint64_t window_ns,
			struct side_result *out)
	__attribute__((warn_unused_result));

extern const struct side_ops switch_ring3_ops; /* bare rings */
extern const struct side_ops switch_pump_ops;  /* frames */
extern const struct side_ops switch_kv_ops;    /* a table */
extern const struct side_ops switch_sword_ops; /* compare-and-swaps */
extern const struct side_ops switch_steer_ops; /* appends */

#endif
