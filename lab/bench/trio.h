/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes on a way: a client that measures, a switch, a server. Several
 * trios exist at a time and take turns; one whose turn it is not sleeps. No
 * process has a special priority or core: three of them share what there is.
 */
#ifndef AQ_BENCH_TRIO_H
#define AQ_BENCH_TRIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	TRIO_SHARED_BYTES = 4 << 20,
	TRIO_SAMPLES = 1 << 16,
	TRIO_WHY_BYTES = 160,
	TRIO_SLOTS_CLIENT = 101, /* of the two ends at the switch */
	TRIO_SLOTS_SERVER = 102,
};

/* What the client found in a round. */
struct trio_result {
	uint64_t ops; /* round trips, or READs */
	uint64_t elapsed_ns;
	double p50_ns; /* of one outstanding */
};

/* Shared by all of a trio. */
struct trio_page {
	atomic_uint round; /* the conductor: do this one */
	atomic_uint done;  /* the client: this one is done */
	atomic_uint ready; /* sides that are set up */
	atomic_uint awake; /* it is this trio's turn */
	atomic_uint quit;
	atomic_uint failed;
	uint64_t window_ns;
	uint32_t depth;
	struct trio_result result;
	char why[TRIO_WHY_BYTES];
	uint32_t samples[TRIO_SAMPLES];
};

struct trio;

/* What the processes do; NULL: there is no such process, or the switch is the
 * real one. */
struct trio_ops {
	const char *name;
	const char *what;
	bool uses_switch;
	/* Runs until page->quit; naps while !page->awake. */
	int (*forward)(struct trio *t);
	int (*serve)(struct trio *t);
	int (*setup)(struct trio *t); /* the client's */
	int (*measure)(struct trio *t, uint64_t window_ns, uint32_t depth,
		       struct trio_result *out);
};

struct trio {
	const struct trio_ops *ops;
	uint32_t depth;
	struct trio_page *page;
	uint8_t *shared; /* TRIO_SHARED_BYTES */
	pid_t pid[3];
	int peer_fd[2]; /* between client and server, for set-up */
	const char *rack;
	const char *switch_name;
	double ticks_per_ns;
	void *state;
};

/* 0 or -errno; page->why has the words. */
int trio_start(struct trio *t, const struct trio_ops *ops, uint32_t depth,
	       const char *rack, const char *switch_name)
	__attribute__((warn_unused_result));
int trio_round(struct trio *t, uint64_t window_ns, struct trio_result *out)
	__attribute__((warn_unused_result));
void trio_stop(struct trio *t);

/* For the processes. */
static inline bool trio_quits(const struct trio *t)
{
	return atomic_load_explicit(&t->page->quit, memory_order_relaxed) != 0;
}

/* Between rounds: sleeps a little. True: go on now. */
bool trio_awake(const struct trio *t);
void trio_nap(void); /* a millisecond */
void trio_ready(struct trio *t);
int trio_fail(struct trio *t, int rc, const char *what);

extern const struct trio_ops trio_ring3;     /* bare rings */
extern const struct trio_ops trio_pump;	     /* frames through the switch */
extern const struct trio_ops trio_read;	     /* READs through the switch */
extern const struct trio_ops trio_cable;     /* READs without it */
extern const struct trio_ops trio_kv_switch; /* a table, through the switch */
extern const struct trio_ops trio_kv_cable;  /* and without it */

#endif
