/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this room's files share: racks, regions, threads and connections.
 *
 * A connection belongs to one thread and one node: a queue pair here, one
 * there. A view is one thread's copy of a region's map with the keys of its
 * pieces, so that operations take no lock.
 */
#ifndef AQ_CLIENT_PRIV_H
#define AQ_CLIENT_PRIV_H

#include <aquifer/aqdv.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/tally.h"
#include "client.h"
#include "heartbeat_plan.h"
#include "keepalive.h"
#include "link.h"
#include "verbs_api.h"

struct client_conn;
struct client_thread;

enum client_op_kind {
	CLIENT_READ,
	CLIENT_WRITE,
	CLIENT_CAS,
	CLIENT_FAA,
};

/* One request of at most CLIENT_SLOT_BYTES, between a slot of the thread's
 * staging memory and a piece. */
struct client_op {
	enum client_op_kind kind;
	uint32_t slot;
	uint32_t len_bytes;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
};

/*
 * err, as of client_wc_errno: 0, -ESTALE (the key is dead), -EHOSTDOWN (no
 * answer), -EREMOTEIO, -ECANCELED (another request of the connection failed
 * before), -EIO.
 */
struct client_done {
	uint32_t slot;
	int err;
};

/* How nodes are reached: client_transport_verbs() in the product; unit tests
 * have a rack in memory. */
struct client_transport {
	client_http_fn http; /* NULL: libcurl */
	uint64_t (*now_ns)(void *ctx);
	void (*relax)(void *ctx);
	/* Makes staging memory and what a thread's connections share. */
	int (*thread_open)(struct client_thread *t);
	void (*thread_close)(struct client_thread *t);
	/* conn_open connects; conn_close forgets requests that are under way:
	 * when it returns, nothing writes to the staging memory any more. */
	int (*conn_open)(struct client_conn *conn, uint64_t deadline_ns);
	void (*conn_close)(struct client_conn *conn);
	int (*post)(struct client_conn *conn, const struct client_op *op);
	/* How many were done, at most max; -errno. */
	int (*poll)(struct client_thread *t, struct client_done *done,
		    unsigned max);
	/* Gives the device back; may be NULL. */
	void (*rack_close)(struct aq_rack *rack);
};

const struct client_transport *client_transport_verbs(void);

/* An engine with sessions of this process. */
struct client_engine {
	struct client_node node;
	char token[CLIENT_TOKEN_MAX];
	uint32_t bonds; /* 0: the entry is free */
};

/* Why nothing was heard of a node. */
struct client_why {
	uint64_t until_ms; /* these words hold until then */
	char words[CLIENT_REACH_WORDS];
};

struct aq_rack {
	/* Set before the rack is handed out. */
	const struct client_transport *transport;
	void *transport_ctx;
	char name[33];
	char rundir[256];
	pthread_key_t key; /* this thread's struct client_thread */
	/* One byte, 1 in the process that opened the rack; the kernel clears
	 * it in a child. */
	const uint8_t *is_own;
	struct config *config;

	char token[CLIENT_TOKEN_MAX];
	_Atomic uint32_t deadline_ms;

	pthread_mutex_t lock; /* taken after a region's lock */
	/* Appended under the lock; NODES-1 publishes, so readers need none. */
	struct client_node node[CLIENT_NODE_MAX];
	_Atomic uint32_t node_count;
	struct list threads; /* by client_thread.link */
	uint32_t ending;     /* threads that are leaving, see thread_end.c */
	struct list bonds;   /* by client_bond.link, the connected ones */
	uint64_t region_serial;
	struct counter_file *counters;
	uint32_t tally_count; /* ever */
	/* What a node calls who has the token; "": none has said it yet. */
	char tenant[CLIENT_TENANT_NAME_MAX];
	uint8_t slot_used[CLIENT_REGION_MAX];
	/* The handles closed last, so that calls with them can be refused. */
	struct aq_region *closed[CLIENT_CLOSED_KEPT];
	uint32_t closed_count; /* ever */

	struct client_why why[CLIENT_NODE_MAX]; /* under the lock */
	/* Until when the controller is left alone; only a hint. */
	_Atomic uint64_t control_off_ns;
	_Atomic unsigned control_at; /* that answered last */
	/* What controllers were asked with; NULL: it is in use, or there is
	 * none. Of that process; under the lock. */
	struct client_http *control_http;
	pid_t control_by;

	/* The NIC, opened by the first operation; under the lock. */
	const struct client_verbs *verbs;
	struct client_verbs system_verbs; /* what it points to for hardware */
	struct ibv_context *context;
	struct ibv_pd *pd;

	/* The thread that keeps connections alive; under the lock. */
	pthread_t heartbeat_thread;
	bool has_heartbeat;
	bool is_closing;
	uint32_t heartbeat_ms;
	struct client_http_set *heartbeat_set;
	struct client_engine engine[CLIENT_NODE_MAX];
	/* The thread of the keepalives; under the lock. */
	pthread_t keep;
	pthread_cond_t keepalive_wake;
	bool is_keeping;
	struct list keepalives;		  /* by client_keepalive.link */
	struct client_keepalive *keeping; /* its tick runs now */
};

struct aq_region {
	struct aq_rack *rack;
	char name[CLIENT_REGION_NAME_MAX];
	unsigned flags;
	uint32_t slot;	 /* of slot_used, and of the threads' views */
	uint64_t serial; /* tells successive users of a slot apart */
	/* Odd is never used; bumped with every change of the map. V0 stores,
	 * V1 loads. */
	_Atomic uint32_t version;
	_Atomic uint64_t size_bytes; /* a copy for aq_region_size */
	pthread_mutex_t lock;
	struct client_map map; /* under the lock */
	bool is_stale;	       /* under the lock: for ever */
	bool is_closed;	       /* under the lock; is_stale, too */
};

/* What a thread counts beside its tally. */
enum client_counter {
	CLIENT_C_REFRESHES,
	CLIENT_C_CONNECTS,
	CLIENT_C_COUNT,
};

/* Owned by its thread, except where it says otherwise. */
struct client_conn {
	struct client_thread *thread;
	uint32_t node; /* index in the rack */
	uint32_t generation;
	bool is_open;
	uint32_t busy; /* requests under way */
	struct client_bond bond;
	struct ibv_qp *qp;
	/* Address of the node's NIC, "" where it is not reached by UDP. */
	char peer[CLIENT_PEER_MAX];
};

struct client_grant {
	uint32_t generation; /* of the connection; 0: none */
	uint32_t rkey;
	uint64_t addr;
	char id[CLIENT_ID_MAX];
};

struct client_view {
	uint64_t serial;
	uint32_t version;
	struct client_map map;
	struct client_grant grant[CLIENT_NODE_MAX];
};

struct client_thread {
	struct aq_rack *rack;
	struct list link;    /* under the rack's lock */
	struct list sibling; /* of the same thread, see thread_end.c */
	struct client_http *http;
	struct client_caller caller;
	bool is_open; /* the part below */
	uint8_t *staging;
	void *transport; /* of a test */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct client_conn conn[CLIENT_NODE_MAX];
	struct client_view *view[CLIENT_REGION_MAX];
	uint64_t *counters; /* CLIENT_C_COUNT */
	struct tally *tally;
};

/* ---- rack.c ------------------------------------------------------------- */

int client_rack_open(const char *name, const struct client_transport *tr,
		     void *ctx, struct aq_rack **out) MUST_CHECK;
/* -ESTALE in a child of the process that opened the rack. */
int client_rack_check(const struct aq_rack *rack) MUST_CHECK;
/* The calls of client_clock_real. */
uint64_t client_real_now_ns(void *ctx);
void client_real_relax(void *ctx);
uint64_t client_rack_now_ns(const struct aq_rack *rack);
uint64_t client_rack_deadline_ns(const struct aq_rack *rack);
/* The same, unless the caller has a deadline of its own, which is not 0. */
static inline uint64_t client_rack_until_ns(const struct aq_rack *rack,
					    uint64_t deadline_ns)
{
	return deadline_ns ? deadline_ns : client_rack_deadline_ns(rack);
}
/* Milliseconds until then, at least 1. */
uint32_t client_rack_left_ms(const struct aq_rack *rack, uint64_t deadline_ns);
/* The deadline of the first of `parts` nodes that are asked in turn. It is that
 * node's share of the time that is left, so that a node that hangs leaves time
 * for the others. */
uint64_t client_rack_share_ns(const struct aq_rack *rack, uint64_t deadline_ns,
			      uint32_t parts);
/* The settings, if they describe this rack; else NULL: the nodes and engines
 * that rack.ini lists belong to the rack that it names. */
const struct config *client_rack_listed(const struct aq_rack *rack);
/* Looks for nodes that were not there before. */
void client_rack_rescan(struct aq_rack *rack);
uint32_t client_rack_nodes(const struct aq_rack *rack);

/* ---- control.c ---------------------------------------------------------- */

/* The nodes and those that the controller knows; how many. */
unsigned client_control_scan(struct aq_rack *rack,
			     struct client_node nodes[CLIENT_NODE_MAX],
			     unsigned count);
/* The node that has a region of one piece, as far as the controller knows. */
bool client_control_find(struct aq_rack *rack, const char *region,
			 uint32_t *node);
/* Nodes for so many pieces of that size, by the controller's choice. */
bool client_control_place(struct aq_rack *rack, uint64_t size_bytes,
			  uint32_t copies, uint32_t *nodes);

/* ---- thread_end.c ------------------------------------------------------- */

/* The context ends with this thread, unless its rack is closed before. */
int client_thread_watch_end(struct client_thread *t) MUST_CHECK;
/* For who closes the rack: waits for threads that are leaving it, and takes
 * what the others have. */
void client_threads_take(struct aq_rack *rack, struct list *threads);

/* ---- thread.c ----------------------------------------------------------- */

/* This thread's; made by the first call. */
int client_thread_get(struct aq_rack *rack,
		      struct client_thread **out) MUST_CHECK;
/* The part that carries data: opens the NIC. */
int client_thread_open(struct client_thread *t) MUST_CHECK;
/* By who took it: client_threads_take, or the end of its thread. */
void client_thread_destroy(struct client_thread *t);
int client_thread_call(struct client_thread *t, uint32_t node,
		       const char *method, const char *path, json_t *body,
		       uint64_t deadline_ns, json_t **reply) MUST_CHECK;

/* Sends a request whose failure is ignored: the node would notice itself. */
void client_thread_tell(struct client_thread *t, uint32_t node,
			const char *method, const char *path,
			uint64_t deadline_ns);

/* ---- tally.c ------------------------------------------------------------ */

/* Gives the thread what it counts in; the rack's lock is held. */
int client_tally_thread(struct client_thread *t) MUST_CHECK;
/* And takes it back. */
void client_tally_thread_end(struct client_thread *t);
/* Notes what a node calls this client. */
void client_tally_name(struct aq_rack *rack, const char *tenant);

/* ---- conn.c ------------------------------------------------------------- */

/* Connects if necessary. */
int client_conn_ready(struct client_thread *t, uint32_t node,
		      uint64_t deadline_ns,
		      struct client_conn **out) MUST_CHECK;
void client_conn_close(struct client_conn *conn);
/* Makes the view the region's current one. */
int client_view_ready(struct client_thread *t, struct aq_region *region,
		      uint64_t deadline_ns,
		      struct client_view **out) MUST_CHECK;
/* Makes sure that the view has a key for the piece on that connection. -ESTALE:
 * the region changed; refresh it. */
int client_view_grant(struct client_view *v, struct aq_region *region,
		      uint32_t piece, struct client_conn *conn,
		      uint64_t deadline_ns) MUST_CHECK;

/* ---- region.c ----------------------------------------------------------- */

/* Takes the lock before the deadline. */
int client_region_lock(struct aq_region *region,
		       uint64_t deadline_ns) MUST_CHECK;
/* Asks the nodes what became of the region. -ESTALE: it is gone. */
int client_region_refresh(struct aq_region *region, struct client_thread *t,
			  uint64_t deadline_ns) MUST_CHECK;

/* Why a region with is_stale cannot be used; the lock is held. */
int client_region_dead(const struct aq_region *region) MUST_CHECK;
/* Frees the handles that were kept after they were closed. */
void client_region_free_closed(struct aq_rack *rack);

/* -EINVAL with words for a bad name. */
int client_name_check(const char *name) MUST_CHECK;
int client_region_handle(struct aq_rack *rack, const char *name, unsigned flags,
			 const struct client_map *map,
			 struct aq_region **out) MUST_CHECK;

/* ---- follow.c ----------------------------------------------------------- */

/* Waits a little, if there is time: for somebody else, who is moving or
 * changing a region. */
bool client_follow_nap(const struct aq_rack *rack, uint64_t deadline_ns);
/* Whether all nodes are asked again after such an answer: while it is on its
 * way, and once where nobody has it, as it may have passed between two
 * questions. *looks begins as 0. */
bool client_follow_again(const struct aq_rack *rack, int err, unsigned *looks,
			 uint64_t deadline_ns);
/* What became of a piece that was known: it is still at its node, or has moved
 * to another one, which is waited for. -ESTALE with words: it is gone; *out is
 * changed on success only. */
int client_piece_follow(struct client_thread *t, const char *name,
			const struct client_piece *old, uint64_t deadline_ns,
			struct client_piece *out) MUST_CHECK;

/* ---- region_find.c ------------------------------------------------------ */

/* The map of a region by its name; -ENOENT. */
int client_region_find(struct client_thread *t, const char *name,
		       uint64_t deadline_ns, struct client_map *map) MUST_CHECK;
void client_map_stat(const struct client_map *map, struct aq_region_stat *out);

/* ---- piece.c: regions of one node --------------------------------------- */

int client_piece_create(struct client_thread *t, uint32_t node,
			const char *name, uint64_t size_bytes,
			const struct aq_region_options *o, uint64_t deadline_ns,
			struct client_piece *out) MUST_CHECK;
int client_piece_stat(struct client_thread *t, uint32_t node, const char *name,
		      uint64_t deadline_ns,
		      struct client_piece *out) MUST_CHECK;
/* force: also a region that is a part of something. */
int client_piece_resize(struct client_thread *t, uint32_t node,
			const char *name, uint64_t size_bytes, bool force,
			uint64_t deadline_ns,
			struct client_piece *out) MUST_CHECK;
int client_piece_delete(struct client_thread *t, uint32_t node,
			const char *name, bool force,
			uint64_t deadline_ns) MUST_CHECK;

typedef int (*client_piece_fn)(uint32_t node, const char *name,
			       const struct client_piece *piece, void *user);
/* All regions of one node; stops when `each` returns other than 0. */
int client_piece_each(struct client_thread *t, uint32_t node,
		      uint64_t deadline_ns, client_piece_fn each,
		      void *user) MUST_CHECK;

struct client_node_status {
	uint64_t free_bytes;
};

/* -EPROTONOSUPPORT: another major version. */
int client_node_ask(struct client_thread *t, uint32_t node,
		    uint64_t deadline_ns,
		    struct client_node_status *out) MUST_CHECK;

/* ---- heartbeat.c -------------------------------------------------------- */

void client_heartbeat_stop(struct aq_rack *rack);

/* ---- heartbeat_target.c: what is said to one node or engine ------------- */

/* A node or an engine; the heartbeat thread's. */
struct heartbeat_target {
	struct client_http *http;
	struct client_node node;
	char token[CLIENT_TOKEN_MAX];
	json_t *ids; /* of the next request, or NULL */
	char *text;
	struct client_http_request request;
};

/* What the heartbeat thread has. */
struct heartbeat {
	struct aq_rack *rack;
	struct heartbeat_plan plan;
	struct heartbeat_target target[HEARTBEAT_TARGETS];
};

/* A heartbeat_name_fn; the lock is held. */
bool heartbeat_name(void *ctx, uint32_t index, const struct client_bond *bond);
/* Makes the request from the bonds that were named. */
int heartbeat_prepare(struct heartbeat *b, uint32_t index) MUST_CHECK;
/* The request has ended: marks the bonds that are lost. */
void heartbeat_finish(struct heartbeat *b, uint32_t index, int err,
		      const struct client_http_reply *reply);

/* ---- keepalive.c -------------------------------------------------------- */

void client_keep_stop(struct aq_rack *rack);

/* ---- verbs_conn.c, join.c ----------------------------------------------- */

/* Opens the NIC; under the rack's lock. */
int client_device_open(struct aq_rack *rack) MUST_CHECK;

/* What a node says about its end of a connection. */
struct client_far {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
	uint8_t ack_timeout; /* as of queue pairs */
	bool has_masked_atomics;
	uint32_t heartbeat_ms;
	struct client_auth auth;
};

/* Moves a fresh queue pair to INIT; `access` is what the node may do. */
int client_join_init(const struct client_verbs *v, struct ibv_qp *qp,
		     unsigned access) MUST_CHECK;
/* Connects it to a node: random packet numbers, the request, RTR and RTS, and
 * the heartbeat. bond->id is set as soon as the node knows us. `more` are
 * further members of the request, or NULL. */
int client_join(struct client_thread *t, struct ibv_qp *qp, uint32_t rd_atomic,
		json_t *more, bool has_heartbeat, uint64_t deadline_ns,
		struct client_bond *bond, struct client_far *far) MUST_CHECK;
/* The address of the node's NIC in words; "" where it is not reached by UDP. */
void client_join_peer(const struct aq_rack *rack, const struct client_far *far,
		      char peer[CLIENT_PEER_MAX]);
/* Tells the node that the connection has ended; stops no heartbeat. */
void client_join_end(struct client_thread *t, struct client_bond *bond);

/* ---- link.c, link_key.c ------------------------------------------------- */

struct client_link_inside {
	struct client_link link; /* what its user sees */
	struct aq_rack *rack;
	bool owns_cq;
	bool has_heartbeat;
	struct client_bond bond;
};

/* Reads a node's answer to a request for a key. */
int client_key_take(const json_t *reply, struct client_key *out) MUST_CHECK;

#endif
