/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conductor's view of a subject: two or three processes that it starts,
 * gives rounds to, and ends. Owned by one thread; every wait has a deadline.
 */
#ifndef AQ_BENCH_SUBJECT_H
#define AQ_BENCH_SUBJECT_H

#include <sys/types.h>

#include "side.h"

enum {
	SUBJECT_SETUP_MS = 60 * 1000, /* a gigabyte of records, beside others */
	SUBJECT_ROUND_SLACK_MS = 20 * 1000, /* beyond the window */
	SUBJECT_END_MS = 2 * 1000,
};

struct subject_desc {
	const char *name;
	const char *what; /* for people */
	/* Either code in this program ... */
	const struct side_ops *ops;
	const void *param;
	/* (with a NIC that reaches the other side by UDP, at an address of its
	 * own, and drops so many packets of a million) ... */
	bool udp;
	uint32_t loss_ppm;
	/* (with a NIC that is plugged into the switch of this name) ... */
	const char *at_switch;
	/* (without a core or priority of its own: more processes than cores) */
	bool is_plain;
	/* ... or a mode of the UCX helper, with the transports it may use. */
	const char *ucx_mode;
	const char *ucx_tls;
};

enum {
	SUBJECT_OTHERS_MAX = 6,
};

/* Processes that serve all subjects of a run, and what else is read before and
 * after each round. */
struct subject_world {
	pid_t pid[SUBJECT_OTHERS_MAX];
	unsigned pid_count;
	/* Numbers that only grow; their differences over the round go to
	 * more[SIDE_MORE_MAX - SUBJECT_READ_MAX ...] of the result. */
	void (*read)(void *ctx, double out[]);
	void *ctx;
};

enum {
	/* Differences of read(), and CPU shares of the processes before
	 * them. */
	SUBJECT_READ_MAX = 8,
	SUBJECT_CPU_MAX = 3,
	SUBJECT_MORE_READ = SIDE_MORE_MAX - SUBJECT_READ_MAX,
	SUBJECT_MORE_CPU = SUBJECT_MORE_READ - SUBJECT_CPU_MAX,
};

struct subject {
	const struct subject_world *world; /* NULL: none */
	const struct subject_desc *desc;
	pid_t pid[SIDE_ROLES]; /* 0: not running */
	int ctl_fd[SIDE_ROLES];
	int role_count;
	struct side_page *page;
	enum side_role failed_side;
	char why[SIDE_WHY_BYTES + 160];
	uint32_t shield; /* enum shield_kind: the weakest of all sides */
};

/* Starts all sides and waits until they are ready. `helper` is the path of the
 * UCX helper or NULL. On failure subj->why says what happened. */
int subject_start(struct subject *subj, const struct subject_desc *desc,
		  const char *helper, const struct subject_world *world)
	__attribute__((warn_unused_result));

/* Runs one round. *foreign_cores gets the foreign load. */
int subject_round(struct subject *subj, uint64_t window_ns,
		  struct side_result *out, double *foreign_cores)
	__attribute__((warn_unused_result));

/* Ends all sides, by force if they do not leave; safe after any failure. */
void subject_stop(struct subject *subj);

#endif
