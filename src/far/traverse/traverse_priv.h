/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this room's files share. A job is one walk that is under way. A place is
 * a region as the jobs of one struct aq_walks use it: its map, and a lane to
 * each of its pieces, which is a connection with a key.
 *
 * A job is at an offset of its region. Either the memory node that has the
 * bytes there is asked to walk on from there (there.c), or they are read and
 * the program runs here (here.c); both give the same pad, and a job may change
 * from node to node at any time.
 */
#ifndef AQ_TRAVERSE_PRIV_H
#define AQ_TRAVERSE_PRIV_H

#include <aquifer/aqdv.h>
#include <aquifer/walk.h>
#include <pthread.h>
#include <string.h>

#include "client/keepalive.h"
#include "client/link.h"
#include "traverse_limits.h"
#include "walk/program.h"

struct aq_walk {
	struct aq_rack *rack;
	struct walk_program *program;
	uint8_t *image;
	size_t image_bytes;
	uint32_t flags;
	uint32_t iterations;
	pthread_mutex_t lock; /* of aq_walk_run; taken before a region's */
	struct aq_walks *own; /* what that runs in, or NULL */
};

/* What a node says about walks. */
struct node_facts {
	bool has_walks;
	uint32_t iterations; /* of one request */
	uint32_t step_ps;    /* of an instruction; 0: not known */
	uint32_t load_ns[TRAVERSE_LOADS];
};

struct lane {
	struct client_link *link; /* NULL: closed */
	uint32_t piece;
	struct node_facts facts;
	bool is_mapped;	 /* loads are enough */
	uint32_t probes; /* for that */
	uint32_t busy;	 /* jobs with a request under way */
	int err;	 /* why it is broken; 0: it is not */
	/* By a walk that was refused. A node begins walks of one connection in
	 * the order of their requests, so those behind it had no effect. */
	bool has_refused;
};

struct place {
	struct aq_region *region; /* NULL: the entry is free */
	uint64_t version;	  /* of the shape */
	uint32_t jobs;
	uint64_t used; /* the larger, the later */
	struct client_shape shape;
	struct lane lane[CLIENT_NODE_MAX];
	/* More to the same pieces, for walks that the switch carries on. */
	struct lane forward[TRAVERSE_FORWARDS];
	bool has_no_more; /* a node refused another one */
};

enum {
	NO_PIECE = CLIENT_NODE_MAX,
};

enum job_state {
	JOB_FREE,
	JOB_POSTED, /* a request is under way */
	JOB_RETRY,  /* its lane is broken; to be tried again */
	JOB_ENDED,  /* the caller does not know yet */
};

struct job {
	enum job_state state;
	struct aq_walk *walk;
	struct place *place;
	struct lane *lane;   /* of the request under way, or the last one */
	uint8_t *area;	     /* registered: result, pad, window or write */
	uint32_t generation; /* tells its completions from older ones */
	uint32_t attempts;   /* that failed */
	uint32_t installs;   /* since a node last executed something of it */
	uint64_t left;	     /* iterations */
	uint64_t deadline_ns;
	uint64_t start;
	void *pad; /* the caller's */
	uint32_t pad_bytes;
	uint32_t send_bytes; /* of the pad, for the next request */
	uint32_t has_bytes;  /* of it in the area; what follows reads as 0 */
	uint32_t idle;	     /* requests in a row that made no iteration */
	/* What is to be written before it begins, in the place of the window;
	 * 0 bytes: nothing, or it was. */
	uint64_t write_at;
	uint32_t write_bytes;
	bool has_stored;   /* a request of it may have changed something */
	bool is_forwarded; /* the switch may carry on what is under way */
	bool stays;	   /* nor is it to any more: that failed */
	uint32_t piece;	   /* where it ran last; NO_PIECE: not known */
	struct aq_walk_result result;
	char words[TRAVERSE_WORDS]; /* of its failure; the last member */
};

struct aq_walks {
	struct aq_rack *rack;
	struct client_device device;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t depth;
	uint32_t pending;   /* jobs that are not free */
	uint32_t ended;	    /* of these, how many the caller may take */
	uint32_t retries;   /* of these, how many wait for a lane */
	uint64_t until_ns;  /* for what is asked of nodes now: the job's */
	uint64_t looked_ns; /* when silent lanes were last looked for */
	uint64_t uses;
	bool has_switch; /* that carries walks on, says the configuration */
	struct job *job;
	struct place place[TRAVERSE_PLACES];
};

/* ---- plan.c -------------------------------------------------------------- */

struct plan_facts {
	uint32_t flags; /* enum aq_walk_flags */
	bool stores;
	bool is_mapped;
	uint32_t longest;
	uint32_t load_bytes;
	struct node_facts node;
	uint32_t pieces;
	bool has_switch; /* that carries walks on */
	bool has_window; /* the keys are windows, which it does not */
};

/* How it changes from node to node: AQ_WALK_CROSS_*; 0: there is one node. */
uint32_t plan_cross(const struct plan_facts *f);
/* Where to run. -EOPNOTSUPP with words: not where it was told to. */
int plan_decide(const struct plan_facts *f,
		struct aq_walk_plan *out) MUST_CHECK;
/* Of a load of that many bytes, by the measured sizes. */
double plan_load_ns(const uint32_t load_ns[TRAVERSE_LOADS], uint32_t bytes);

/* ---- lane.c -------------------------------------------------------------- */

/* The place of a region, as it is now. */
int place_get(struct aq_walks *w, struct aq_region *region,
	      struct place **out) MUST_CHECK;
void place_close(struct place *p);
/* The lane to the piece that has `len_bytes` from that offset, connected, and
 * what they are called there. -EFAULT: there is no such piece; -ESTALE: the
 * region is another one than the place knows. */
int lane_find(struct aq_walks *w, struct place *p, uint64_t at,
	      uint32_t len_bytes, struct lane **out,
	      uint64_t *offset) MUST_CHECK;
/* In place of a lane that is in use, one to the same piece that is not. False:
 * there is none. */
bool lane_find_free(struct aq_walks *w, struct place *p, struct lane **lane);
void lane_close(struct lane *lane);
/* Whether loads are enough by now. */
bool lane_is_mapped(const struct place *p, struct lane *lane);

/* ---- install.c ----------------------------------------------------------- */

/* Both by until_ns. */
int install(const struct aq_walks *w, const struct aq_walk *walk,
	    struct lane *lane) MUST_CHECK;
int facts_ask(const struct aq_walks *w, uint32_t node,
	      struct node_facts *out) MUST_CHECK;

/* ---- here.c, there.c ----------------------------------------------------- */

/* Goes on until the job waits for an answer, or has ended. */
void here_go(struct aq_walks *w, struct job *j);
void here_take(struct aq_walks *w, struct job *j);
void there_go(struct aq_walks *w, struct job *j);
void there_take(struct aq_walks *w, struct job *j);

/* ---- job.c ------------------------------------------------------------- */

/* The window of the node that the job is at, as an offset of the region. */
static inline uint64_t job_window(const struct job *j)
{
	return j->result.at +
	       (uint64_t)(int64_t)j->walk->program->image.load_lo;
}

static inline uint8_t *job_pad(const struct job *j)
{
	return j->area + AQDV_WALK_RESULT_BYTES;
}

static inline uint8_t *job_node(const struct job *j)
{
	return j->area + TRAVERSE_PAD_ROOM;
}

/* Puts zeros where nothing is of the pad. */
static inline void job_pad_fill(struct job *j)
{
	const uint32_t all = j->walk->program->image.pad_bytes;

	if (j->has_bytes < all)
		memset(job_pad(j) + j->has_bytes, 0, all - j->has_bytes);
	j->has_bytes = all;
}

uint64_t job_wr_id(const struct aq_walks *w, const struct job *j);
/* A request of the job is under way on that lane. */
void job_posted(struct job *j, struct lane *lane);
/* It has ended; err has its words already, or is 0. */
void job_end(struct aq_walks *w, struct job *j, int err);
/* A pointer that leads nowhere, or a bound that the program checks. */
void job_fault(struct aq_walks *w, struct job *j);
void job_loop(struct aq_walks *w, struct job *j);
/* Whether its time is over; it has ended then. */
bool job_is_late(struct aq_walks *w, struct job *j);
/* Its request has failed, and with it its lane. */
void job_failed(struct aq_walks *w, struct job *j, int err);
/* Its lane is broken, and others have requests there: it waits for them. */
void job_wait(struct aq_walks *w, struct job *j);
/* There is no lane to where it stands; err is lane_find's. */
void job_no_lane(struct aq_walks *w, struct job *j, struct lane *lane, int err);
/* Goes on from where it stands. */
void job_go(struct aq_walks *w, struct job *j);
/* Tries again what waits for a lane, once nobody uses that any more. */
void job_retry(struct aq_walks *w, struct job *j);
/* Ends jobs whose lanes are silent; looks now and then only. */
void jobs_look_for_silence(struct aq_walks *w);

/* ---- walks.c, run.c ------------------------------------------------------ */

/* What begins: as for aq_walks_submit_after, where `write` may be NULL. */
struct walks_begin {
	struct aq_walk *walk;
	struct aq_region *region;
	const struct aq_walk_write *write;
	uint64_t start;
	const void *pad; /* its first bytes go with the request */
	size_t send_bytes;
	void *back; /* where it goes in the end; NULL: it stays in the area */
	size_t back_bytes;
	uint64_t until_ns; /* 0: for as long as the rack allows */
	void *user;
};

int walks_submit(struct aq_walks *w, const struct walks_begin *b) MUST_CHECK;
/* The same, and waits for it, in a queue that has nothing else under way. */
int walks_run(struct aq_walks *w, const struct walks_begin *b,
	      struct aq_walk_result *result) MUST_CHECK;

/* What is known of a walk on that region without asking a node. */
struct plan_facts walks_facts(const struct aq_walks *w,
			      const struct aq_walk *walk,
			      const struct place *p);
/* aq_walks_poll, which reads the clock when nothing has come; without may_look
 * it does not, nor does it find out then that a node is silent. */
int walks_poll(struct aq_walks *w, struct aq_walk_result *results,
	       unsigned max_count, bool may_look) MUST_CHECK;
/* Of what begins now. */
uint64_t walks_deadline_ns(const struct aq_walks *w);
/* Where a walk that starts there runs. -EFAULT: it starts nowhere. */
int walks_plan(struct aq_walks *w, const struct aq_walk *walk, struct place *p,
	       uint64_t start, struct aq_walk_plan *plan) MUST_CHECK;

#endif
