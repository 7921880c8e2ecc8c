/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node is made of. node->lock guards everything here. It is let go only
 * while memory is made or given back, or tenants are written to their file,
 * which takes long; a region is `busy` meanwhile, and no other thread touches
 * it.
 *
 * Ending and freeing are two things. *_end takes effect at once: the object can
 * no longer be found, its queue pairs and keys are gone, `life.ended` is set.
 * But its memory stays until every thread that was inside the node when it
 * ended, with or without the lock, has left: node_leave is the only place that
 * frees (life.c). So a pointer that a request or a tick got from the node stays
 * valid until that request or tick is over. Code that kept a pointer across a
 * call that may end objects, or that drops the lock, must check `life.ended`
 * before it uses anything else of the object.
 */
#ifndef AQ_MEM_PRIV_H
#define AQ_MEM_PRIV_H

#include <aquifer/aqdv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/awake.h"
#include "base/list.h"
#include "block/blk_server.h"
#include "claim.h"
#include "control/ctl_audit.h"
#include "control/ctl_bond.h"
#include "control/ctl_http.h"
#include "control/ctl_rate.h"
#include "control/ctl_switch.h"
#include "control/ctl_token.h"
#include "mem_limits.h"
#include "memnode.h"
#include "narrow.h"
#include "pageframe/pframe_chain.h"
#include "pageframe/pframe_server.h"
#include "uplink/up_share.h"
#include "vault/vault.h"

enum mem_level {
	MEM_LEVEL_ANY,	   /* no token */
	MEM_LEVEL_METRICS, /* no token on the unix socket, any on TCP */
	MEM_LEVEL_TENANT,
	MEM_LEVEL_TENANT_QUIET, /* changes nothing worth an audit line */
	MEM_LEVEL_ADMIN,
};

/* The first member of everything that ends. */
struct mem_life {
	struct list node; /* of the node's ended objects */
	uint64_t ended_at;
	bool ended;
};

/* A request or a tick inside the node; lives on its stack. */
struct mem_visit {
	struct list node;
	uint64_t number;
};

/* What a tenant may have beside bytes of the pool. */
enum mem_limit {
	MEM_LIMIT_DEVICE, /* bytes of the NIC's own memory */
	MEM_LIMIT_REGIONS,
	MEM_LIMIT_CONNS,
	MEM_LIMIT_SERVERS, /* connections that the processor answers */
	MEM_LIMIT_GRANTS,
	MEM_LIMIT_SESSIONS,
	MEM_LIMIT_WALKS,    /* programs of walks */
	MEM_LIMIT_MACHINES, /* that share memory */
	MEM_LIMIT_REQUESTS, /* of HTTP, in a second */
	MEM_LIMIT_COUNT,
};

/* Its token opens nothing unless it is live. */
enum mem_tenant_state {
	MEM_TENANT_LIVE,
	MEM_TENANT_NEW,	    /* is being written to the file */
	MEM_TENANT_LEAVING, /* is being taken out of the file */
	MEM_TENANT_ENDING,  /* is not in the file; what it has ends */
};

/* A token beside a tenant's own. */
struct mem_token {
	struct ctl_token_hash hash;
	uint64_t until_ns; /* 0: no end */
};

struct mem_tenant {
	struct mem_life life;
	enum mem_tenant_state state;
	char name[MEM_TENANT_NAME_MAX + 1];
	struct ctl_token_hash token;
	/* At this node, or if it is ruled in the rack; 0: only the pool is the
	 * limit. */
	uint64_t quota_bytes;
	/* By the controller: whether it is, its allowance here, and tokens
	 * beside the first one. */
	bool is_ruled;
	bool is_tokenless; /* `token` is nobody's */
	struct up_share share;
	unsigned more_count;
	struct mem_token more[MEM_TENANT_TOKENS];
	uint64_t used_bytes;
	/* Bytes of all pages of its clients, and of their tables and
	 * buffers. */
	uint64_t page_bytes;
	unsigned space_count; /* also those being made and given back */
	unsigned block_count; /* the same */
	struct ibv_pd *pd;
	/* Of its chains alone: no queue pair in it gives a client any right
	 * but to send. Or NULL. */
	struct ibv_pd *page_pd;
	uint64_t limit[MEM_LIMIT_COUNT];
	uint64_t taken[MEM_LIMIT_COUNT]; /* of requests: ever */
	bool is_set[MEM_LIMIT_COUNT];	 /* by the administrator */
	struct ctl_bucket bucket;	 /* of requests */
	struct mem_narrows narrows;	 /* tokens that it has handed on */
	struct mem_claims claims;	 /* names of its next regions */
	uint32_t domain;		 /* of shared memory; 0: none yet */
	struct ibv_qp *hop; /* takes walks from a switch; or NULL */
	uint32_t hop_qkey;
};

/* What the switch is told about a region. */
enum mem_declared_kind {
	MEM_DECLARED_NOT,
	MEM_DECLARED_ATOMICS, /* it replaces atomics; the region has one key */
	MEM_DECLARED_STORE,   /* a version-list store, which it steers */
};

struct mem_declared {
	enum mem_declared_kind kind;
	uint64_t nodes_at, nodes, node_bytes; /* of a store */
};

/* A region on its way to another node (move.h). */
enum mem_stage {
	MEM_STAGE_HOME,	    /* it is not */
	MEM_STAGE_LEAVING,  /* from here; nobody changes it */
	MEM_STAGE_GONE,	    /* it is the other node's, and ends here */
	MEM_STAGE_ARRIVING, /* here; it is no region yet */
	MEM_STAGE_SEALED,   /* the same, and all of it has arrived */
};

struct mem_move {
	enum mem_stage stage;
	uint64_t id;	   /* of all regions that move together */
	uint64_t until_ns; /* or who moves it is gone; not of SEALED */
	/* SEALED and ARRIVING: where it comes from, and which run of it. */
	char from[MEM_NODE_NAME_MAX + 1];
	char from_run[CTL_INCARNATION_TEXT];
};

struct mem_region {
	struct mem_life life;
	struct mem_tenant *tenant;
	uint64_t birth; /* random; stays with it when it moves */
	struct mem_move move;
	char name[MEM_REGION_NAME_MAX + 1];
	/* "kv users": it is changed and deleted with that only, or by force;
	 * "": it stands for itself. */
	char part_of[MEM_PART_NAME_MAX + 1];
	uint16_t id;
	uint32_t epoch;
	uint64_t size_bytes;
	uint64_t charged_bytes; /* whole pages */
	bool busy;
	/* The connection that it ends with; 0: it stays until it is deleted. */
	uint64_t owner_nonce;
	uint32_t owner_slot;
	struct mem_declared declared;
	uint32_t space; /* its number at the switch, for walks; 0: none */
	uint64_t device_bytes; /* of the NIC's own memory */
	bool from_aqdv;	       /* else from mmap, for a NIC that is not ours */
	struct ibv_dm *dm;     /* the NIC's own memory; addr is NULL then */
	bool can_bind;	       /* windows; else there is the whole key only */
	void *addr;
	struct ibv_mr *mr;
};

struct mem_grant {
	struct mem_life life;
	struct list node; /* in its connection */
	uint64_t id;
	struct mem_region *region;
	struct ibv_mw *mw; /* NULL: the region's own key */
};

enum mem_end {
	MEM_END_CLOSED, /* by the client */
	MEM_END_SILENT, /* no heartbeat */
	MEM_END_GONE,	/* the process at the other end ended */
	MEM_END_BROKEN, /* the queue pair is in the error state */
	MEM_END_FENCED, /* a successor of its session came */
	MEM_END_TENANT, /* its tenant was removed, or has another token */
	MEM_END_STOP,	/* the node stops */
	MEM_END_BUDGET, /* its pages are more than it may have */
	MEM_END_COUNT,
};

/* Where a connection of a session ended. */
struct mem_final {
	char conn[CTL_BOND_TEXT];
	uint32_t psn;  /* that it expected next */
	bool was_used; /* it had executed something */
};

/*
 * What outlives a connection: the name under which the next one continues, and
 * how far the last one got. A client gives the name; a session has at most one
 * connection at a time.
 */
struct mem_session {
	struct mem_life life;
	struct list node; /* of the node's sessions */
	struct mem_tenant *tenant;
	char id[MEM_SESSION_CHARS + 1];
	struct mem_conn *conn; /* NULL: none now */
	bool was_used;	       /* a connection of it has executed something */
	unsigned final_count;
	struct mem_final final[MEM_FINALS]; /* the oldest first */
	uint64_t ended_ns;
};

/* Page frames of one size, for all clients with that page size. Each client
 * adds some when it connects; those in circulation are charged to the pool. */
struct mem_pframes {
	struct pframe_pool *pool;
	uint64_t charged_bytes;
	uint64_t pending_bytes; /* the part for those being added */
	unsigned space_count;	/* while there is one, the pool stays */
};

/* One client's pages. They end with the connection that asked for them, and so
 * do the other connections that work on them. */
struct mem_space {
	struct mem_life life;
	struct list node; /* of the node's ended ones */
	struct mem_node *of;
	struct mem_tenant *tenant;
	struct mem_pframes *pframes;
	struct pframe_space *space; /* NULL: it could not be made */
	uint64_t page_bytes; /* charged to the tenant; what is made of page
			      * frames is charged to the node as page frames */
	uint64_t own_bytes;  /* its tables, charged to both */
	/* Buffers of its chains, charged to both until it ends: one that comes
	 * in place of another finds its room, however full the node is. */
	uint64_t chain_bytes;
	uint64_t chain_used; /* by those that there are now */
	uint64_t added;	     /* page frames */
	unsigned over;	     /* ticks in a row with more than it may have */
};

/* What a connection is for. */
enum mem_role {
	MEM_ROLE_PLAIN,	 /* one-sided operations on regions */
	MEM_ROLE_SERVER, /* requests for pages, answered by the processor */
	MEM_ROLE_CHAIN,	 /* the same, answered by the NIC: enum page_chain */
	MEM_ROLE_COUNT = MEM_ROLE_CHAIN + PAGE_CHAIN_COUNT,
	/* Messages about blocks, and READs of them. */
	MEM_ROLE_BLOCKS = MEM_ROLE_COUNT,
};

struct mem_conn {
	struct mem_life life;
	struct mem_tenant *tenant;
	unsigned role;		 /* enum mem_role, and which chain */
	unsigned without;	 /* enum page_without */
	uint32_t patience_ms;	 /* with its silence */
	struct mem_space *space; /* or NULL */
	bool owns_space;
	uint64_t page_bytes; /* buffers for messages about pages */
	uint64_t walk_bytes; /* the pads of walks; charged */
	/* The owner of qp, or NULL: */
	struct pframe_guest *guest;
	struct pframe_chain *chain;
	struct blk_guest *visitor;
	struct mem_session *session; /* or NULL */
	char client[MEM_CLIENT_NAME_MAX + 1];
	uint64_t nonce;
	uint32_t slot;
	bool read_only;
	uint64_t narrow_id; /* of the token that it was made with; 0: a whole
			       one */
	struct ctl_token_hash token; /* that token */
	struct ibv_qp *qp;
	union ibv_gid own_gid;
	union ibv_gid client_gid;
	uint32_t client_qpn;
	uint32_t client_psn; /* of its first request */
	uint64_t seen_ns;
	struct list grants;
	unsigned grant_count;
};

enum {
	MEM_STATUS_COUNT = 20, /* distinct ones per route that are counted */
	MEM_ROUTE_MAX = 64,
};

/* Requests of one route, by status; a place whose count is 0 is free. */
struct mem_request_count {
	unsigned status[MEM_STATUS_COUNT];
	uint64_t count[MEM_STATUS_COUNT];
};

/* The switch that the node's NIC is plugged into, if there is one. */
struct mem_switch {
	struct ctl_switch ctl;
	char run[CTL_SWITCH_RUN_TEXT]; /* of the switch that knows us */
	bool has_sword;
	bool has_steer;
	bool has_walk;
	bool answers;
	json_int_t given_up;   /* shared connections, of all, when we looked */
	struct ibv_qp *shared; /* swordbox works through it; or NULL */
	uint64_t look_ns;      /* when to look at it again */
	unsigned late_region;  /* where to look for pieces it has not taken */
	unsigned late_count;
	char late[MEM_LATE_MAX][MEM_LATE_BYTES];
};

/* A region that another node has now. */
struct mem_given {
	uint64_t id; /* of the move; 0: none */
	/* The name is not free before the other node has it. */
	uint64_t until_ns;
	char tenant[MEM_TENANT_NAME_MAX + 1];
	char name[MEM_REGION_NAME_MAX + 1];
	char to[MEM_NODE_NAME_MAX + 1];
};

struct mem_taken {
	uint64_t id, until_ns;
};

struct mem_node {
	pthread_mutex_t lock;
	uint64_t visits;    /* so far */
	struct list inside; /* visits, the oldest first */
	struct list ended;  /* lives, in the order of their ends */
	char name[MEM_NODE_NAME_MAX + 1];
	char *state_path;
	struct env *env;
	uint64_t start_ns;
	struct awake awake;
	/* Tells this run of the node from any other one. */
	char incarnation[CTL_INCARNATION_TEXT];
	uint64_t pool_bytes;
	uint64_t used_bytes;
	struct spill *spill;	 /* where blocks go without room; or NULL */
	struct mem_stock *stock; /* memory for blocks that come */
	bool has_numa;		 /* the pool lies on NUMA node `numa` */
	uint32_t numa;
	uint64_t total[MEM_LIMIT_COUNT]; /* that all tenants share */
	struct ctl_token_hash admin;
	struct ctl_origins origins; /* of callers without a tenant */
	struct ctl_audit *audit;    /* or NULL */
	struct mem_census *census;  /* has a lock of its own; or NULL */
	uint32_t last_epoch;
	uint16_t last_region_id;

	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_device_attr device;
	enum ibv_mtu mtu;
	uint32_t nic_caps; /* AQDV_CAP_* */
	bool has_auth;	   /* packets of all connections carry a MAC */
	int (*keep_token)(void *ctx, bool is_admin, const char *token);
	void *keep_ctx;

	/* Tenants change one at a time: their file is written without the
	 * lock. */
	bool is_changing;
	pthread_cond_t changed;
	struct mem_tenant *tenants[MEM_TENANT_MAX];
	struct mem_region *regions[MEM_REGION_MAX];
	struct mem_conn *conns[MEM_CONN_MAX];
	unsigned tenant_count;
	unsigned region_count;
	unsigned conn_count;
	unsigned grant_count;
	struct list sessions;
	unsigned session_count;
	struct mem_pframes pframes[MEM_PFRAME_SIZES];
	struct list ended_spaces;     /* to be given back without the lock */
	struct pframe_server *server; /* or NULL */
	pthread_t server_thread;
	atomic_bool server_stops;

	/* The controller, if there is one (ruled.h). */
	struct mem_control control;
	bool has_joined; /* since its start */
	bool is_drained;
	uint64_t drain_order; /* as it was told; 0: not yet */
	json_t *conflicts;    /* names of tenants */
	/* Counts changes: when names were last told, and in the beat under
	 * way. */
	uint64_t names_told, names_now;
	uint64_t regions_gone;
	pthread_cond_t granted;

	/* Regions that have moved away: how many since its start, and those of
	 * which nobody has said that the other node took them (move.h). */
	uint64_t given_count;
	struct mem_given given[MEM_GIVEN_MAX];
	/* Moves that were given up here, the last ones: none of them gives
	 * anything any more. */
	uint64_t kept[MEM_GIVEN_MAX];
	unsigned kept_next;
	/* Moves whose regions were taken here lately: who gave them need not
	 * remember them. */
	struct mem_taken taken[MEM_GIVEN_MAX];
	unsigned taken_next;

	struct mem_switch at_switch;
	struct mem_shared *shared; /* coherent shared memory; or NULL */
	struct mem_walk_config walk_config;
	struct mem_walks *walks;   /* NULL: the NIC knows none */
	struct mem_blocks *blocks; /* NULL: nobody has asked yet (blocks.h) */
	struct mem_tasks *tasks;   /* the same (task.h) */
	struct vault_place vault;  /* that orders may name; "": none */

	struct mem_request_count requests[MEM_ROUTE_MAX];
	uint64_t conns_started;
	uint64_t conns_ended[MEM_END_COUNT];
	uint64_t bytes_scrubbed;
};

/* ---- life.c ------------------------------------------------------------- */

/* Takes the lock. */
void node_enter(struct mem_node *node, struct mem_visit *visit);
/* Drops the lock, and frees objects that no thread can know any more. */
void node_leave(struct mem_node *node, struct mem_visit *visit);
/* The object can no longer be found. */
void life_end(struct mem_node *node, struct mem_life *life);
/* The second half of life_end, for ended objects that take long to free. */
void life_bury(struct mem_node *node, struct mem_life *life);

/* ---- tenant.c, tenant_file.c -------------------------------------------- */

struct mem_tenant *tenant_find(const struct mem_node *node, const char *name);
/* Finds a tenant of any state by its token, in constant time. */
struct mem_tenant *tenant_of_token(const struct mem_node *node,
				   const struct ctl_token_hash *token);
/* The same for a token that a tenant has handed on. */
struct mem_tenant *tenant_of_narrow(struct mem_node *node,
				    const struct ctl_token_hash *token,
				    struct mem_narrow **out);
/* Its state is MEM_TENANT_NEW. */
int tenant_add(struct mem_node *node, const char *name,
	       const struct ctl_token_hash *token,
	       struct mem_tenant **out) MUST_CHECK;
/* It must have no regions and no connections any more. */
void tenant_remove(struct mem_node *node, struct mem_tenant *tenant);
/* Ends what an ending tenant has, and then the tenant, unless a region is busy;
 * the tick then tries again. Drops the lock for a while. */
void tenant_end(struct mem_node *node, struct mem_tenant *tenant);
/* Every tick. */
void tenant_tick(struct mem_node *node);
/* Ends its connections, or only those whose token counts no more. May let the
 * lock go, so that others come in. */
void tenant_end_conns(struct mem_node *node, struct mem_tenant *tenant,
		      bool only_lost);
/* Call these around a change of tenants and its tenant_file_save. _begin may
 * wait for another change, without the lock. */
void tenant_change_begin(struct mem_node *node);
void tenant_change_end(struct mem_node *node);

int tenant_file_load(struct mem_node *node) MUST_CHECK;
/* Saves all tenants but those that leave. Drops the lock for a while. -ENOSPC:
 * the file could not be written, and its contents are uncertain. */
int tenant_file_save(struct mem_node *node) MUST_CHECK;

/* ---- tenant_limit.c ------------------------------------------------------ */

void tenant_limit_init(struct mem_node *node);
void tenant_limit_default(const struct mem_node *node, struct mem_tenant *t,
			  bool is_default);
const char *tenant_limit_name(enum mem_limit kind);
/* -EAGAIN or, of bytes, -EDQUOT: the tenant has too much. */
int tenant_take(struct mem_tenant *t, enum mem_limit kind,
		uint64_t amount) MUST_CHECK;
void tenant_give(struct mem_tenant *t, enum mem_limit kind, uint64_t amount);
/* Of a file: what is more than this node has by now, with other settings or
 * another NIC, becomes all that it has. */
void tenant_limit_cut(const struct mem_node *node, json_t *row);
/* "limits" of a body, all of them or none. */
int tenant_limit_parse(const struct mem_node *node, const json_t *body,
		       struct mem_tenant *t) MUST_CHECK;
json_t *tenant_limit_json(const struct mem_tenant *t, bool only_set);

/* ---- handle_narrow.c: what a token that was handed on opens ---------------
 */

int narrow_check_route(const struct ctl_route *route) MUST_CHECK;
/* -ENOENT: it is not one of its regions; -EACCES: it may only read. Without
 * such a token everything is allowed. */
int narrow_check_region(const struct ctl_call *call, const char *name,
			bool writes) MUST_CHECK;

/* ---- rate.c ---------------------------------------------------------------
 */

/* Whether who asks may be served now; else *wait_ns says when. */
bool rate_take(struct mem_node *node, const struct ctl_call *call,
	       uint64_t *wait_ns) MUST_CHECK;

/* ---- region.c ----------------------------------------------------------- */

struct mem_region *region_find(const struct mem_node *node,
			       const struct mem_tenant *tenant,
			       const char *name);
/* These let the lock go for a while. */
int region_create(struct mem_node *node, struct mem_tenant *tenant,
		  const char *name, uint64_t size_bytes, bool on_device,
		  struct mem_region **out) MUST_CHECK;
int region_resize(struct mem_node *node, struct mem_region *region,
		  uint64_t size_bytes) MUST_CHECK;
int region_delete(struct mem_node *node, struct mem_region *region) MUST_CHECK;
/* Deletes those whose owner is gone; lets the lock go for a while. */
void region_expire(struct mem_node *node);
/* What the pool is charged for a region of that size. */
uint64_t region_pages(uint64_t size_bytes);

/* ---- conn.c, grant.c ---------------------------------------------------- */

struct conn_peer {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
	bool read_only;
	uint64_t narrow_id;
	struct ctl_token_hash token;
	const char *client;
	unsigned role;		/* enum mem_role, and which chain */
	struct mem_conn *owner; /* of the pages, for all but plain ones */
	unsigned without;	/* enum page_without */
	uint32_t patience_ms;	/* that it asks for */
	uint32_t walk_depth;	/* walks at a time; 0: none */
	uint32_t walk_bytes;	/* of the pad of each */
	uint8_t block_session[BLOCK_SESSION_BYTES]; /* of MEM_ROLE_BLOCKS */
};

struct conn_answer {
	union ibv_gid gid;
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
	uint8_t ack_timeout;		       /* as of queue pairs */
	uint8_t auth_key[AQDV_AUTH_KEY_BYTES]; /* only if node->has_auth */
};

int conn_create(struct mem_node *node, struct mem_tenant *tenant,
		const struct conn_peer *peer, struct conn_answer *answer,
		struct mem_conn **out) MUST_CHECK;
void conn_end(struct mem_node *node, struct mem_conn *conn, enum mem_end why);
/* -EINVAL: not an id; -ESTALE: it ended. */
int conn_find(const struct mem_node *node, const struct mem_tenant *tenant,
	      const char *id, struct mem_conn **out) MUST_CHECK;
const char *conn_end_name(enum mem_end why);

/* ---- space.c, space_conn.c, page_thread.c ------------------------------- */

enum space_kind {
	SPACE_PFRAMES, /* reached by messages only */
	SPACE_PIECES,  /* page frames with a key each */
	SPACE_SPARSE,  /* memory of the client's own, charged by the page */
};
/* The owner must not have a space yet. Drops the lock for a while; on success
 * the owner is still there. */
int space_create(struct mem_node *node, struct mem_conn *owner,
		 uint64_t page_count, uint32_t page_bytes, uint32_t depth,
		 enum space_kind kind) MUST_CHECK;
/* Called when the owner ends: also ends the other connections of the space.
 * What takes long is left to space_reap. */
void space_end(struct mem_node *node, struct mem_conn *owner);
/* Gives back spaces that have ended; drops the lock for a while. Called after
 * every request and tick. */
void space_reap(struct mem_node *node);
/* Charges the tenant, and the pool for the part that is not page frames. */
int space_charge(struct mem_node *node, struct mem_tenant *tenant,
		 uint64_t page_bytes, uint64_t own_bytes) MUST_CHECK;
void space_uncharge(struct mem_node *node, struct mem_tenant *tenant,
		    uint64_t page_bytes, uint64_t own_bytes);
/* The queue pair of a connection that works on a space, in the state RESET. */
int space_conn_open(struct mem_node *node, struct mem_conn *c) MUST_CHECK;
/* The queue pair is connected: starts its work. */
int space_conn_start(struct mem_conn *c) MUST_CHECK;
/* Also destroys the queue pair. */
void space_conn_close(struct mem_conn *c);
/* "server" and so on; "" for plain ones. */
const char *space_role_name(unsigned role);
/* A chain that has stopped by itself. */
bool space_conn_is_broken(struct mem_conn *c);
/* Every tick; lets the lock go for a while. */
void space_tick(struct mem_node *node);

/* Starts the processor's part, if it does not run. */
int page_thread_start(struct mem_node *node) MUST_CHECK;
void page_thread_stop(struct mem_node *node);

/* ---- session.c ---------------------------------------------------------- */

/* Finds or makes the session. Its connection, if there is one, has ended on
 * return and has no effect any more. -EINVAL, -EAGAIN. */
int session_take(struct mem_node *node, struct mem_tenant *tenant,
		 const char *id, struct mem_session **out) MUST_CHECK;
/* The connection of a session ends: remembers how far it got. */
void session_note_end(struct mem_node *node, struct mem_conn *conn);
/* Forgets sessions without connection: expired, or all of a tenant (not
 * NULL). */
void session_expire(struct mem_node *node, const struct mem_tenant *tenant);

struct grant_wish {
	int access;
	uint64_t offset;
	uint64_t length;
	bool revocable; /* never the region's own key */
};

int grant_create(struct mem_node *node, struct mem_conn *conn,
		 struct mem_region *region, const struct grant_wish *wish,
		 struct mem_grant **out) MUST_CHECK;
void grant_end(struct mem_node *node, struct mem_conn *conn,
	       struct mem_grant *grant);
/* Ends every grant of the region, of all connections; windows end. */
void grant_revoke_region(struct mem_node *node, struct mem_region *region);

/* ---- walks.c, walk_host.c: see walks_priv.h ------------------------------ */

/* Its programs; it has no connection any more. */
void walks_tenant_end(struct mem_node *node, struct mem_tenant *tenant);
/* Every request and tick: gives programs back that ended while walks executed
 * them. */
void walks_reap(struct mem_node *node);
/* Says to the NIC which part of a striped region this memory is. */
int walks_place(const struct mem_region *r, struct ibv_mr *mr) MUST_CHECK;
/* For /v1/status: what walks may do and cost here; NULL: there are none. */
json_t *walks_describe(const struct mem_node *node);

/* ---- declare.c: what the switch is told ---------------------------------- */

/* The node's NIC is plugged into the switch with this control socket. */
int declare_open(struct mem_node *node, const char *path) MUST_CHECK;
void declare_close(struct mem_node *node);
/* Every tick, without the lock: a switch that was restarted is told everything
 * anew. */
void declare_tick(struct mem_node *node);
/* Call it before the client is told of the connection. */
int declare_conn(struct mem_node *node, const struct mem_conn *c) MUST_CHECK;
void declare_conn_end(struct mem_node *node, const struct mem_conn *c);
/* Call it before any client has a key. */
int declare_region(struct mem_node *node, struct mem_region *r) MUST_CHECK;
/* It has another key. */
void declare_region_anew(struct mem_node *node, struct mem_region *r);
/* Called without the lock, before the region's memory is used again. */
void declare_region_end(struct mem_node *node, const struct mem_region *r);

/* ---- switch_walk.c --------------------------------------------------------
 */

/* It has another token: who has the former one is not let in by others. */
void switch_walk_tenant_changed(struct mem_node *node,
				const struct mem_tenant *t);
/* It has no regions any more. */
void switch_walk_tenant_end(struct mem_node *node, struct mem_tenant *t);

/* ---- shared.c, lead.c: coherent shared memory (shared_priv.h) -------------
 */

int shared_open(struct mem_node *node,
		const struct mem_node_config *c) MUST_CHECK;
void shared_close(struct mem_node *node);
/* Its segments, rights and machines end. Call it until it has no regions. */
void shared_tenant_end(struct mem_node *node, struct mem_tenant *t);
/* A request was executed, and not answered yet. */
void shared_note_call(struct mem_node *node, const struct ctl_request *request);
/* For /v1/status; NULL: there is none. */
json_t *shared_describe(const struct mem_node *node, bool sees_all);
struct ctl_metrics;
void shared_metrics(struct ctl_metrics *m, const struct mem_node *node);
/* Of cache servers on this host, whoever leads. */
void shared_caches_metrics(struct ctl_metrics *m, const char *rundir);
/* The switch has answered: tells it what it does not know, and learns what it
 * has found out. */
void lead_look(struct mem_node *node, const json_t *hello);
/* When to look again. */
uint64_t shared_look_ms(const struct mem_node *node);

/* ---- what routes call (handle_*.c) -------------------------------------- */

/* The connection in the path; this counts as a sign of life of its client. */
int handle_find_conn(struct mem_node *node, struct ctl_call *call,
		     struct mem_conn **out) MUST_CHECK;

void handle_status(void *ctx, struct ctl_call *call);
void handle_metrics(void *ctx, struct ctl_call *call);
void handle_claim_create(void *ctx, struct ctl_call *call);
void handle_claim_delete(void *ctx, struct ctl_call *call);
void handle_move_create(void *ctx, struct ctl_call *call);
void handle_move_list(void *ctx, struct ctl_call *call);
void handle_move_patch(void *ctx, struct ctl_call *call);
void handle_move_give(void *ctx, struct ctl_call *call);
void handle_move_take(void *ctx, struct ctl_call *call);
void handle_move_delete(void *ctx, struct ctl_call *call);
json_t *handle_region_describe(const struct mem_node *node,
			       const struct mem_region *r);
void handle_region_create(void *ctx, struct ctl_call *call);
void handle_region_list(void *ctx, struct ctl_call *call);
void handle_region_get(void *ctx, struct ctl_call *call);
void handle_region_patch(void *ctx, struct ctl_call *call);
void handle_region_delete(void *ctx, struct ctl_call *call);
void handle_connect(void *ctx, struct ctl_call *call);
void handle_conn_list(void *ctx, struct ctl_call *call);
void handle_conn_heartbeat(void *ctx, struct ctl_call *call);
void handle_heartbeat(void *ctx, struct ctl_call *call);
void handle_disconnect(void *ctx, struct ctl_call *call);
void handle_grant_list(void *ctx, struct ctl_call *call);
void handle_grant_create(void *ctx, struct ctl_call *call);
void handle_grant_delete(void *ctx, struct ctl_call *call);
void handle_pages_create(void *ctx, struct ctl_call *call);
void handle_pages_mapped(void *ctx, struct ctl_call *call);
void handle_pages_get(void *ctx, struct ctl_call *call);
/* The tenant that the path names. */
int tenant_of_call(const struct mem_node *node, const struct ctl_call *call,
		   struct mem_tenant **out) MUST_CHECK;
json_t *tenant_describe(const struct mem_tenant *t);
/* A token that the administrator brings makes the tenant the same on several
 * nodes; without one the node makes it. */
int tenant_pick_token(struct mem_node *node, const json_t *body,
		      char text[CTL_TOKEN_TEXT]) MUST_CHECK;
typedef void (*tenant_undo_fn)(struct mem_node *node, struct mem_tenant *t,
			       const void *before);
/* Saves what was just changed. If that fails it is undone, and what was before
 * is saved: the file may be half-way. */
int tenant_save_or(struct mem_node *node, tenant_undo_fn undo,
		   struct mem_tenant *t, const void *before) MUST_CHECK;
void handle_segment_create(void *ctx, struct ctl_call *call);
void handle_segment_list(void *ctx, struct ctl_call *call);
void handle_segment_get(void *ctx, struct ctl_call *call);
void handle_segment_get_of(void *ctx, struct ctl_call *call);
void handle_segment_allow(void *ctx, struct ctl_call *call);
void handle_segment_repair(void *ctx, struct ctl_call *call);
void handle_segment_move(void *ctx, struct ctl_call *call);
void handle_segment_delete(void *ctx, struct ctl_call *call);
void handle_shared_check(void *ctx, struct ctl_call *call);
void handle_held_check(void *ctx, struct ctl_call *call);
void handle_member_join(void *ctx, struct ctl_call *call);
void handle_member_connect(void *ctx, struct ctl_call *call);
void handle_member_beat(void *ctx, struct ctl_call *call);
void handle_member_leave(void *ctx, struct ctl_call *call);
void handle_object_open(void *ctx, struct ctl_call *call);
void handle_object_close(void *ctx, struct ctl_call *call);
void handle_object_resize(void *ctx, struct ctl_call *call);
void handle_object_unlink(void *ctx, struct ctl_call *call);
void handle_member_list(void *ctx, struct ctl_call *call);
void handle_walk_create(void *ctx, struct ctl_call *call);
void handle_walk_list(void *ctx, struct ctl_call *call);
void handle_walk_get(void *ctx, struct ctl_call *call);
void handle_walk_delete(void *ctx, struct ctl_call *call);
void handle_tenant_create(void *ctx, struct ctl_call *call);
void handle_tenant_get(void *ctx, struct ctl_call *call);
void handle_tenant_list(void *ctx, struct ctl_call *call);
void handle_tenant_patch(void *ctx, struct ctl_call *call);
void handle_tenant_delete(void *ctx, struct ctl_call *call);
void handle_token_patch(void *ctx, struct ctl_call *call);
void handle_narrow_create(void *ctx, struct ctl_call *call);
void handle_narrow_list(void *ctx, struct ctl_call *call);
void handle_narrow_delete(void *ctx, struct ctl_call *call);
void handle_token_delete(void *ctx, struct ctl_call *call);
void handle_admin_token_patch(void *ctx, struct ctl_call *call);

/* node.c: the table, for the metrics. */
extern const struct ctl_route node_routes[];
extern const unsigned node_route_count;
extern const struct ctl_routes mem_routes;

#endif
