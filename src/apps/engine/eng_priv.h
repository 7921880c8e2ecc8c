/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine's process is made of. eng->lock guards everything but the
 * workers, and each worker's lock what it serves, which its loop holds while it
 * works. Who changes sessions (HTTP requests, ticks) has all of them, taken by
 * eng_enter in this order; loops let go for those that announce themselves in
 * `waiting`.
 */
#ifndef AQ_ENG_PRIV_H
#define AQ_ENG_PRIV_H

#include <aquifer/aqdv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/awake.h"
#include "control/ctl_audit.h"
#include "control/ctl_bond.h"
#include "control/ctl_http.h"
#include "control/ctl_rate.h"
#include "control/ctl_switch.h"
#include "control/ctl_token.h"
#include "eng_limits.h"
#include "engined.h"
#include "offload/engine.h"

enum {
	ENG_QPS = 2 + 2 * OFFLOAD_NODES_MAX, /* queue pairs of a session */
	ENG_GID_TEXT = 33,
};

enum eng_level {
	ENG_LEVEL_ANY,	   /* no token */
	ENG_LEVEL_METRICS, /* no token on the unix socket */
	ENG_LEVEL_CLIENT,
};

/* One queue pair, or an end of the switch. */
struct eng_qp {
	struct ibv_qp *qp; /* NULL: it is the switch's */
	uint32_t qpn;
	uint32_t psn;
};

/* The other end of a queue pair. */
struct eng_far {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
	bool has_auth; /* packets carry a MAC by this key */
	uint8_t auth_key[AQDV_AUTH_KEY_BYTES];
};

struct eng;

/* A thread that moves data; the first one is the process's own. */
struct eng_worker {
	struct eng *eng;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* a session was started */
	pthread_t thread;
	bool has_thread;
	struct ibv_cq *cq;
	struct offload_engine *core;
	unsigned session_count; /* open ones, under eng->lock */
	unsigned idle;
	uint64_t counter[OFFLOAD_C_COUNT];
};

struct eng_session {
	uint64_t nonce;
	uint32_t slot;
	char client[ENG_CLIENT_NAME_MAX + 1];
	uint64_t opened_ns;
	uint64_t seen_ns;
	uint32_t node_count;
	uint64_t within_ms; /* a node that is silent is given up; 0: default */
	bool can_auth;	    /* the application's NIC can use a MAC */
	struct eng_far application;
	struct eng_qp ring;
	struct eng_qp node[OFFLOAD_NODES_MAX][2]; /* reads, writes */
	bool is_started;
	struct eng_worker *worker;    /* NULL: at the switch */
	struct offload_session *core; /* NULL: not started, or at the switch */
	struct offload_session_config config;
	/* At a switch. */
	uint32_t id;	  /* its number there */
	bool is_told;	  /* the switch may know it */
	uint64_t told_ns; /* when it had been told everything */
	uint32_t pending; /* as it said last */
	int err;
};

/* A session of the switch that this process has not declared. */
struct eng_stray {
	uint32_t id;
	uint64_t seen_ns; /* for the first time */
	bool is_there;
};

/* The switch whose program moves the data. Only the thread of eng_switch_tick
 * uses what is behind `run`. */
struct eng_switch {
	struct ctl_switch ctl;
	char name[ENG_NAME_MAX + 1];
	enum ibv_mtu mtu;
	char run[CTL_SWITCH_RUN_TEXT]; /* that knows our sessions */
	uint64_t hello_ns;	       /* when to ask for all of it again */
	uint64_t changes; /* of its sessions when they were listed last */
	bool is_silent;	  /* and this was said */
	unsigned stray_count;
	struct eng_stray stray[ENG_STRAY_MAX];
};

struct eng {
	pthread_mutex_t lock;
	_Atomic uint32_t waiting;
	atomic_bool is_ending; /* for the loops; carries no other data */
	char name[ENG_NAME_MAX + 1];
	char incarnation[CTL_INCARNATION_TEXT];
	struct ctl_token_hash token;
	struct ctl_audit *audit; /* or NULL */
	/* How often callers ask; beside the lock above, which strangers must
	 * not be able to take often. */
	pthread_mutex_t rate_lock;
	struct ctl_origins origins;
	uint64_t start_ns;
	struct awake awake;

	struct eng_switch *at_switch; /* or NULL: this process moves data */
	uint32_t batch;		      /* unless an application asks */
	uint32_t flush_us;
	struct ibv_context *context;
	struct ibv_pd *pd;
	bool has_auth;	 /* nic.auth = psk: applications must use a MAC */
	bool can_auth;	 /* our NIC can use a MAC */
	bool can_gather; /* ... and can ask for walks */
	enum ibv_mtu mtu;
	const struct client_clock *clock;
	struct counter_file *counters;
	uint64_t *counter;  /* OFFLOAD_C_COUNT: of all workers together */
	uint64_t *sessions; /* a gauge */

	struct eng_worker *worker;
	unsigned worker_count;
	bool is_shared; /* by several workers */
	struct eng_session *session[ENG_SESSION_MAX];
	unsigned session_count;
	unsigned session_max;
	uint64_t sessions_started;
	uint64_t sessions_lost; /* ended without a word from the application */
};

/* ---- eng_qp.c ----------------------------------------------------------- */

int eng_qp_open(struct eng *eng, struct ibv_cq *cq, uint32_t depth,
		struct eng_qp *out) MUST_CHECK;
/* Moves the queue pair to RTS. A peer that does not answer is given up within
 * that time; 0: within about a second. */
int eng_qp_connect(struct eng *eng, struct eng_qp *q, const struct eng_far *far,
		   uint64_t within_ms) MUST_CHECK;
void eng_qp_close(struct eng_qp *q);

/* ---- eng_worker.c ------------------------------------------------------- */

/* All locks, and no loop works meanwhile. */
void eng_enter(struct eng *eng);
void eng_leave(struct eng *eng);
/* o->threads of them; none has a thread yet. */
int eng_workers_open(struct eng *eng, const struct eng_options *o) MUST_CHECK;
void eng_workers_close(struct eng *eng);
/* For a new session: the one with the fewest. */
struct eng_worker *eng_worker_choose(struct eng *eng);
/* Adds up what they counted. */
void eng_workers_count(struct eng *eng);
/* Threads for all but the first, which is for the caller's loop. */
int eng_workers_start(struct eng *eng) MUST_CHECK;
/* Ends their loops. */
void eng_workers_join(struct eng *eng);
/* Works until `look`, which is called at each tick, is false. */
void eng_worker_loop(struct eng_worker *w, bool (*look)(void *ctx), void *ctx);

/* ---- eng_session.c ------------------------------------------------------ */

int eng_session_open(struct eng *eng, struct eng_session *wish,
		     struct eng_session **out) MUST_CHECK;
/* Starts a session whose s->config is complete. */
int eng_session_start(struct eng *eng, struct eng_session *s) MUST_CHECK;
void eng_session_end(struct eng *eng, struct eng_session *s);
/* -EINVAL: not an id; -ESTALE: it ended. */
int eng_session_find(struct eng *eng, const char *id,
		     struct eng_session **out) MUST_CHECK;
/* 0, or why it is no longer served. */
int eng_session_err(const struct eng_session *s);
unsigned eng_session_pending(const struct eng_session *s);
/* Ends sessions that are not used any more. */
void eng_tick(struct eng *eng);

/* ---- eng_switch.c: sessions in a switch ---------------------------------- */

/* Fills eng->at_switch; the switch must be there and have the program. */
int eng_switch_open(struct eng *eng, const struct daemon *d) MUST_CHECK;
/* Numbers for the switch's ends. */
/* Numbers of the switch's ends that no session here has: these, or the next. */
uint32_t eng_switch_free_qpn(const struct eng *eng, uint32_t wish);
int eng_switch_session_open(struct eng *eng, struct eng_session *s) MUST_CHECK;
/* Tells the switch everything about the session. */
int eng_switch_session_start(struct eng *eng, struct eng_session *s,
			     struct eng_far far[OFFLOAD_NODES_MAX][2])
	MUST_CHECK;
void eng_switch_session_end(struct eng *eng, struct eng_session *s);

/* ---- eng_watch.c: what the switch says ----------------------------------- */

/* Asks the switch, then does what eng_tick does. Takes the lock itself, and not
 * while it asks. */
void eng_switch_tick(struct eng *eng);
/* Takes the answer to `show`, which was asked for at that time. */
void eng_switch_learn(struct eng *eng, const json_t *show, uint64_t asked_ns);

/* ---- eng_parse.c -------------------------------------------------------- */

int eng_parse_far(const json_t *tree, struct eng_far *out) MUST_CHECK;
int eng_parse_open(const json_t *body, struct eng_session *out) MUST_CHECK;
/* The rest of config, and the other ends of all nodes' queue pairs. */
int eng_parse_start(const json_t *body, struct eng_session *s,
		    struct eng_far far[OFFLOAD_NODES_MAX][2]) MUST_CHECK;

/* ---- eng_handle.c, eng_status.c ----------------------------------------- */

extern const char *const eng_counter_names[OFFLOAD_C_COUNT];
extern const char *const eng_counter_help[OFFLOAD_C_COUNT];
void eng_handle_status(void *ctx, struct ctl_call *call);
void eng_handle_metrics(void *ctx, struct ctl_call *call);

#endif
