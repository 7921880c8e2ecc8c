/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A play: shipped code in the simulator, a seed that decides what goes wrong,
 * and checks of what came out. This header is all that plays have in common:
 * the table that describes one, its command line, its result, and one run.
 *
 * How to add a play NAME:
 *  1. In NAME_play.h, list its counts (PLAY_COUNTS) and declare its options: a
 *     struct that begins with struct play_options.
 *  2. In NAME_play.c, write its moves. `open` makes the world from the seed:
 *     play_stage_open, hosts, fibers. What goes wrong calls play_fail. Clients
 *     of a store use play_client.h: they come, die, sleep, record what they saw
 *     and come back. Who needs to drive the clock has `perform`, who has more
 *     to check than the history has `judge`; `close` gives back what `open`
 *     took beside stage and history.
 *  3. Fill in a struct play. Counts with the names of judge_counts (play.c)
 *     are counted by themselves. Bugs that it must find are rows of
 *     base/plant.h.
 *  4. Name the table in lab/main/sim_main.c and describe it in
 *     man/aquifer-sim.1.scd.
 * The command line, --help, --json, seeds in processes of their own, replay of
 * a seed, hash and exit code come with the table.
 */
#ifndef AQ_PLAYS_PLAY_H
#define AQ_PLAYS_PLAY_H

#include <stdio.h>

#include "base/opt.h"
#include "rig/stage.h"
#include "sim/batch.h"
#include "sim/lin.h"
#include "sim/net_fabric.h"
#include "sim/plants.h"

enum {
	PLAY_COUNTS_MAX = 64,
	PLAY_POINTS_MAX = 32, /* places to die */
	PLAY_CLIENTS_MAX = 8,
	PLAY_VALUE_MAX = 4096,
};

struct play;
struct play_client;
struct play_store;
struct kit_remote;
struct json_out;
struct figure_system;

/* ---- options ------------------------------------------------------------ */

/* What only the command line has. */
struct play_line {
	const struct play *play;
	const struct sim_fabric_choice *fabrics; /* what --fabric may name */
	const char *kind;
	char **words; /* all of it; ends with NULL */
	struct sim_batch batch;
	uint32_t jobs;
	bool json, trace, lists_bugs;
};

/* What every play takes; the head of a play's own options. */
struct play_options {
	struct play_line line;
	uint64_t seed;
	enum plant bug;
	uint64_t scale; /* percent of the usual operations; 0: 100 */
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
	const char *pcap_file, *history_file;
	/* Files for one seed, or NULL: frames as text, delivered frames, and
	 * what clients saw, for `aquifer sim check`. */
	FILE *trace, *pcap, *history;
};

/* Rows that several plays have. */
#define PLAY_OPTION_SCALE                                                 \
	OPT_U64(struct play_options, scale, "scale", "PERCENT", 1, 10000, \
		"more or fewer operations than usual")
#define PLAY_OPTION_FABRIC                           \
	OPT_CALL(play_take_fabric, "fabric", "NAME", \
		 "what carries the frames: ethernet, edm, edm64 or cxl")
#define PLAY_OPTION_PCAP                                         \
	OPT_TEXT(struct play_options, pcap_file, "pcap", "FILE", \
		 "one seed: write the delivered frames")
int play_take_fabric(void *to, const char *value);

/* ---- results ------------------------------------------------------------ */

/* A line of the result. */
struct play_count {
	const char *name, *help;
};

/* Declares struct TYPE, the counts of LIST(X) with X(name, help). */
#define PLAY_COUNT_FIELD(name, help) uint64_t name;
#define PLAY_COUNT_ROW(name, help)   {#name, help},
#define PLAY_COUNTS(type, LIST)                                   \
	struct type {                                             \
		LIST(PLAY_COUNT_FIELD)                            \
	};                                                        \
	STATIC_ASSERT(sizeof(struct type) <= 8 * PLAY_COUNTS_MAX, \
		      "too many counts")

struct play_result {
	unsigned violations;		 /* 0: all checks held */
	char first[SIM_BATCH_FIRST_MAX]; /* the first one, in words */
	uint64_t hash;
	uint64_t count[PLAY_COUNTS_MAX];   /* the play's struct of counts */
	uint64_t died_at[PLAY_POINTS_MAX]; /* before which requests */
};

/* The result of many seeds. */
struct play_sum {
	struct sim_batch_sum batch;
	uint64_t hash; /* of one seed: its own; of several: of all, any order */
	uint64_t count[PLAY_COUNTS_MAX];
	uint64_t hit[PLAY_COUNTS_MAX]; /* in how many runs each was not 0 */
	uint64_t died_at[PLAY_POINTS_MAX];
};

/* ---- one run ------------------------------------------------------------ */

/* The head of a play's world: one seed that is being played. */
struct play_run {
	const struct play *play;
	const struct play_options *opt;
	struct play_result *res;
	struct rig_stage *stage; /* NULL: it has none */
	struct sim *sim;
	struct sim_net *net;
	struct rng rand;
	struct lin_history *history; /* NULL: none is checked */
	enum sim_end end;
	struct play_store *store; /* NULL: clients make their own remotes */
	struct play_client *client[PLAY_CLIENTS_MAX];
	unsigned client_count;
	void (*trouble)(void *run); /* a fiber beside the clients, or NULL */
	unsigned running;	    /* clients that have not finished */
	unsigned ops;		    /* of each client */
	uint64_t next_value;
};

/* One violation; only the first one's words are kept. */
void PRINTF(2, 3) COLD play_fail(struct play_run *r, const char *fmt, ...);
/* The count of that name, or NULL. */
uint64_t *play_count(struct play_run *r, const char *name);
/* Creates the stage, with trace, fabric and, if it is 0, seed as the options
 * say. */
int play_stage_open(struct play_run *r,
		    struct rig_stage_config *cfg) MUST_CHECK;
/* Draws what a network does wrong; a maximum of 0 draws nothing. */
struct sim_faults play_draw_faults(struct rng *rand, uint32_t loss_max,
				   uint32_t dup_max, uint32_t reorder_max,
				   uint32_t corrupt_max);

static inline uint64_t play_now_ns(const struct play_run *r)
{
	return sim_now_ns(r->sim);
}

/* ---- the table ---------------------------------------------------------- */

/* What clients of a store do; see play_client.h. */
struct play_moves {
	uint32_t failure_ms; /* a client silent for this long is dead */
	/* Bytes of value number `id`, at least 8. */
	size_t (*value_bytes)(const struct play_run *r, uint64_t id);
	int (*open)(struct play_client *c);
	void (*close)(struct play_client *c); /* also of one that crashed */
	bool (*is_crashed)(const struct play_client *c);
	void (*step)(struct play_client *c); /* one operation */
	/* Operations on key number `key`, as play_get, play_put and play_del
	 * call them: 0, -ENOENT, or what play_ended knows. */
	int (*get)(struct play_client *c, unsigned key, uint8_t *buf,
		   size_t *len);
	int (*put)(struct play_client *c, unsigned key, const uint8_t *value,
		   size_t len);
	int (*del)(struct play_client *c, unsigned key);
	bool del_tells; /* -ENOENT where there is no such key */
	/* Makes the store, before all others; remote: of the run's store, if it
	 * has one. */
	int (*format)(struct play_run *r, struct kit_remote *remote);
	/* Makes faults while clients work, or NULL. */
	void (*meanwhile)(struct play_run *r);
	/* After all other clients: checks whether the store is whole. */
	int (*check)(struct play_client *c);
	uint64_t frames_max; /* more count as a livelock; 0: no limit */
};

struct play {
	const char *name;     /* of `aquifer sim NAME` */
	const char *kind;     /* of --kind, where several plays have a name */
	const char *summary;  /* one line */
	const char *about;    /* what it does and what must hold, for --help */
	const char *footnote; /* of --help, or NULL */
	const struct play_count *counts;
	unsigned count_count;
	const enum plant *bugs;	   /* that it must find; ends with PLANT_none */
	const struct opt *options; /* or NULL */
	size_t options_bytes;
	const char *(*point_name)(unsigned point); /* NULL behind the last */
	/* `aquifer sim NAME --figure ...` or --costs, or NULL. */
	const struct figure_system *figures;
	/* Called before the first seed: 0, or -errno with error_set. It may
	 * change which seeds are run. */
	int (*prepare)(struct play_options *opt, struct sim_batch *batch);
	/* Prints more of the result; NULL for j: as text. */
	void (*report)(const struct play_options *opt, struct json_out *j);
	/* Plays one seed without a world: 0, or -errno. */
	int (*run)(const struct play_options *opt, struct play_result *res);
	/* The world: zeroed bytes that begin with struct play_run. */
	size_t world_bytes;
	uint64_t limit_ps;
	bool has_history;
	enum lin_model model;
	struct play_moves moves;
	int (*open)(struct play_run *r);
	void (*perform)(struct play_run *r); /* NULL: until limit_ps */
	int (*judge)(struct play_run *r);    /* after history and counts */
	void (*close)(struct play_run *r);   /* after any end, also of open */
};

/* One seed: 0, or -errno when it could not be played; what was found is in
 * `res`. Sets the process's verbs provider meanwhile: one at a time. */
int play_seed(const struct play *play, const struct play_options *opt,
	      struct play_result *res) MUST_CHECK;
/* The same, for a `run` that plays several worlds: nothing is planted. */
int play_world(const struct play *play, const struct play_options *opt,
	       struct play_result *res) MUST_CHECK;
/* Plays many seeds in processes of their own; the caller sets from, to, jobs,
 * one and stop_at_first. -errno when processes could not be started. */
int play_seeds(const struct play *play, const struct play_options *opt,
	       struct sim_batch *batch, struct play_sum *sum) MUST_CHECK;

enum play_exit {
	PLAY_FINE = 0,
	PLAY_FOUND = 1, /* a violation, or a planted bug was not found */
	PLAY_USAGE = 2, /* wrong arguments, or it cannot run */
};

/* `aquifer sim NAME`; argv[0] is the name. --kind chooses among plays with the
 * same name; `plays` ends with NULL. `fabrics`: what --fabric may name. */
int play_cmd(const struct play *const *plays,
	     const struct sim_fabric_choice *fabrics, int argc, char **argv);

#endif
