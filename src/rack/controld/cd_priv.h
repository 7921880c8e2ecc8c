/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a controller knows. Rows of the ledger are marked so; all else is soft.
 *
 *   node       NAME           kind, address, zone, incarnation, epoch, size,
 *                             drain
 *   tenant     NAME           quota, limits
 *   token      SHA-256        tenant or role, id, until
 *   token_narrow  SHA-256     tenant, id, until, path, rights: of another kind,
 *                             because who does not know it must not take it for
 *                             a whole token
 *   allowance  TENANT/NODE    bytes, version, open
 *   given      NODE/MOVE      number: which of its node's (given.c)
 *   look       SHA-256        see cd_page_priv.h
 *
 * Allowances. A node hands memory out within its allowance, which it knows by
 * the node's epoch (new with each join) and a version (new with each grant).
 * Within a version a node's own limit only goes down. So a report of a smaller
 * limit that names the epoch and version of the row is safe to believe, however
 * late it comes, and the row is never below what the node may use. Grants are
 * made only while the sum of all rows, also of nodes that are down, stays
 * within the quota. No clock is involved.
 *
 * A row that is `open` is the first of its kind at a node, or was made when a
 * tenant without a quota got one: the node may use more than the row says, and
 * its first report sets the row.
 */
#ifndef AQ_CD_PRIV_H
#define AQ_CD_PRIV_H

#include <jansson.h>

#include "control/ctl_rate.h"
#include "control/ctl_ticket.h"

#include "control/ctl_audit.h"
#include "control/ctl_token.h"
#include "controld.h"
#include "vault/vault.h"

enum cd_level {
	CD_LEVEL_ANY,	 /* no token; strangers learn little */
	CD_LEVEL_LOOK,	 /* any token, also one that may only look */
	CD_LEVEL_TENANT, /* anybody's token */
	CD_LEVEL_NODE,
	CD_LEVEL_ADMIN,
};

enum {
	CD_PAST = 64,
	CD_MARK_BITS = 40, /* the number in a mark; the rest: generation */
};

enum cd_role {
	CD_ROLE_NONE,
	CD_ROLE_TENANT,
	CD_ROLE_NODE,
	CD_ROLE_ADMIN,
	CD_ROLE_LOOK, /* may only look, at what its tenant may see or at all */
};

enum cd_kind {
	CD_MEMORY,
	CD_ENGINE,
	CD_SWITCH,
	CD_GATEWAY,
	CD_KINDS,
};

enum cd_state {
	CD_UP,
	CD_SUSPECT,
	CD_DOWN,
};

struct cd_node {
	/* The row. */
	char name[CD_NAME_MAX + 1];
	enum cd_kind kind;
	char address[CD_ADDRESS_MAX + 1];
	char zone[CD_NAME_MAX + 1];
	char incarnation[CTL_INCARNATION_TEXT];
	uint64_t epoch;
	uint64_t size_bytes;
	bool drain;
	/* Rows of their own: moves that it has given, with their numbers, and
	 * the last of these. */
	json_t *was_given;
	uint64_t gifts;
	/* Soft. */
	unsigned slot;
	enum cd_state state;
	bool has_beaten; /* since this leader leads */
	uint64_t seen_ns;
	uint64_t beat;	/* counts beats */
	bool is_broken; /* since then: the connection of its last beat */
	uint64_t broken_ns;
	bool has_left;	/* it has said goodbye */
	uint64_t order; /* counts what there is to say to it */
	uint64_t used_bytes;
	uint64_t regions;
	uint64_t connections;
	uint64_t promised_bytes; /* placed here since its last beat */
	uint64_t spill_bytes;	 /* of its spill tier, and what is taken */
	uint64_t spilled_bytes;
	/* Operations that its NIC has executed, when that was heard, and how
	 * many they are in a second. */
	uint64_t ops, ops_ns, ops_per_s;
	char tenants[32]; /* the list that it has made its own */
	json_t *names;	  /* [{"tenant", "name", "size"}] or NULL */
	bool names_complete;
	json_t *conflicts;    /* tenants that it has under another token */
	bool is_drained;      /* it has heard so, and takes nothing new */
	uint64_t drain_order; /* which its beats repeat; 0: the row's */
	bool lends;	      /* blocks, as its beats say */
	struct cd_lent *lent; /* its blocks; NULL: none (tree_priv.h) */
	json_t *links;	      /* what it offers to other nodes, or NULL */
	/* Moves from it that nobody has confirmed, those that were given up,
	 * copies there that wait for either, or NULL; regions on their way, and
	 * gone since its start. */
	json_t *given, *kept, *taken, *sealed;
	uint64_t moving, moved;
};

struct cd_share {
	/* The row. */
	uint64_t bytes;
	uint64_t version;
	bool open;
	/* Soft: what the node said last. */
	uint64_t used;
	uint64_t regions;
	uint64_t connections;
	uint64_t wish;	 /* that it waits for; 0: nothing */
	bool is_refused; /* its wish; it is told once */
	bool waits;	 /* its last beat had a wish */
	/* It was told that others wait, and has said since what it uses. */
	bool told, gave;
};

struct cd_token {
	struct ctl_token_hash hash;
	unsigned id;	  /* by which people name it */
	uint64_t until_s; /* time of day; 0: no end */
};

/* A token of a tenant that opens less than all it has: names at a path and
 * below it and no regions, or everything for reading, or both. */
struct cd_narrow {
	struct cd_token token;
	char path[CD_TOKEN_PATH_MAX + 1]; /* "": no path */
	bool reads;			  /* and changes nothing */
};

/* Of administrators and nodes. */
struct cd_role_token {
	enum cd_role role;
	struct cd_token token;
};

struct cd_tenant {
	char name[CD_NAME_MAX + 1];
	uint64_t quota; /* 0: none */
	json_t *limits; /* an object */
	unsigned token_count;
	struct cd_token token[CD_TOKENS_MAX];
	unsigned narrow_count;
	struct cd_narrow *narrow[CD_NARROW_MAX];
	struct ctl_bucket bucket; /* of its requests */
	bool has_row;		  /* all but "default" before it has a quota */
	bool squeeze; /* somebody waits for what others do not use */
	struct cd_share share[CD_NODES_MAX];
};

/* A staged change, in the order of time. */
struct cd_staged {
	struct cd_staged *next;
	uint64_t number;
	uint64_t group;
	char *kind, *key, *value;
};

struct cd_core {
	char name[CD_NAME_MAX + 1];
	struct env *env;
	struct ctl_token_hash admin, node_hash, default_hash;
	struct ctl_audit *audit;
	int (*keep_token)(void *ctx, bool is_admin, const char *token);
	void *keep_ctx;
	int (*open_page)(void *ctx, uint16_t *port);
	void *page_ctx;
	uint64_t start_ns;
	bool is_loaded;
	bool leads;
	uint64_t until_ns; /* for certain */
	uint64_t term;
	uint64_t joins; /* in this term */
	char leader[LEDGER_WHO_MAX];
	char why[200]; /* changes are refused */
	uint64_t wall_s;
	char vault[CD_VAULT_MAX];   /* "": none */
	struct vault_key vault_key; /* goes to nodes with tasks; never said */

	struct cd_node *node[CD_NODES_MAX];
	struct cd_tenant *tenant[CD_TENANTS_MAX];
	unsigned node_count, tenant_count;
	uint64_t tenants_version; /* in this term */
	unsigned role_token_count;
	struct cd_role_token role_token[CD_ROLE_TOKENS_MAX];

	struct cd_staged *first, **last;
	unsigned flight; /* changes of the transaction under way */
	uint64_t group;
	uint64_t staged, committed;
	/* Each failure ends a generation, and what was staged and not committed
	 * in it; the last ones are remembered for those who wait. */
	uint64_t generation;
	struct {
		uint64_t committed;
		enum cd_settled rest;
	} past[CD_PAST];
	char failure[200];

	uint64_t requests, refused, too_many, beats, commits, failures;
	struct ctl_origins origins; /* who asks without a token */
	/* For people who look; cd_page_priv.h. */
	struct cd_events *events;
	struct cd_history *history;
	struct cd_looks *looks;
	/* Rows that need others, by kind, while they are read. */
	json_t *late;
	struct cd_tree *tree;	/* names of elastic memory (tree_priv.h) */
	struct cd_scope *scope; /* of the request under way (tree_priv.h) */
};

/* ---- core.c, stage.c, rows.c -------------------------------------------- */

/* Whether it leads, and nobody else can. */
bool cd_core_is_sure(const struct cd_core *core);
/* Whether it changes nothing but the time of leases. */
bool cd_request_is_renewal(const struct ctl_request *request);
/* Each request and each tick is a group: a transaction has whole groups. */
void cd_stage_group(struct cd_core *core);
/* Stages a row; the value is taken over, NULL deletes it. */
void cd_stage(struct cd_core *core, const char *kind, const char *key,
	      json_t *value);
void cd_stage_node(struct cd_core *core, const struct cd_node *n);
void cd_stage_tenant(struct cd_core *core, const struct cd_tenant *t);
void cd_stage_token(struct cd_core *core, const struct cd_tenant *t,
		    const struct cd_token *k);
void cd_stage_share(struct cd_core *core, const struct cd_tenant *t,
		    const struct cd_node *n);
/* All that is staged and not committed is lost. */
void cd_stage_drop(struct cd_core *core, int err);

/* All rows have come. -EBADMSG. */
int cd_rows_end(struct cd_core *core) MUST_CHECK;

/* -EAGAIN: there are too many. */
int cd_node_add(struct cd_core *core, const char *name,
		struct cd_node **out) MUST_CHECK;
int cd_tenant_add(struct cd_core *core, const char *name,
		  struct cd_tenant **out) MUST_CHECK;
struct cd_node *cd_node_find(const struct cd_core *core, const char *name);
struct cd_tenant *cd_tenant_find(const struct cd_core *core, const char *name);
void cd_node_free(struct cd_core *core, struct cd_node *n);
void cd_tenant_free(struct cd_core *core, struct cd_tenant *t);

/* ---- node.c ------------------------------------------------------------- */

const char *cd_kind_name(enum cd_kind kind);
int cd_kind_parse(const char *text, enum cd_kind *out) MUST_CHECK;
const char *cd_state_name(const struct cd_node *n);
/* There is something to say to it, or to all. */
void cd_order(struct cd_node *n);
void cd_order_all(struct cd_core *core);
/* How many operations its NIC has executed, as it said now. */
void cd_node_ops(const struct cd_core *core, struct cd_node *n, uint64_t ops);
/* It has been heard of. */
void cd_node_seen(struct cd_core *core, struct cd_node *n);
/* 0: it hands out nothing any more; -EBUSY with words. */
int cd_node_is_gone(const struct cd_core *core,
		    const struct cd_node *n) MUST_CHECK;
/* Silence, and connections that are gone. */
void cd_nodes_tick(struct cd_core *core);
/* Of the last change of its drain, for this leader: only a beat that repeats it
 * tells that the node has heard of that one. */
uint64_t cd_node_drain_order(const struct cd_core *core,
			     const struct cd_node *n);

/* ---- given.c: regions that have moved ----------------------------------- */

int cd_given_check(const json_t *beat) MUST_CHECK;
int cd_given_row(struct cd_core *core, const char *key,
		 const json_t *row) MUST_CHECK;
/* Deletes the rows of a node that is forgotten. */
void cd_given_forget(struct cd_core *core, const struct cd_node *n);
void cd_given_hear(struct cd_core *core, struct cd_node *n, const json_t *beat);
/* Whether there is something to take or to drop that it may not know of. */
bool cd_given_is_due(const struct cd_core *core, const struct cd_node *n);
void cd_given_say(const struct cd_core *core, const struct cd_node *n,
		  json_t *answer);

/* ---- left.c ------------------------------------------------------------- */

/* Adds to the row of a node what is on it: regions as "left", as it said last,
 * and files and queues that have "blocks" there. Returns the row. */
json_t *cd_left_add(const struct cd_core *core, const struct cd_node *n,
		    json_t *row);

/* ---- share.c ------------------------------------------------------------ */

/* What all nodes may hand out to a tenant together. */
uint64_t cd_share_sum(const struct cd_core *core, const struct cd_tenant *t);
/* A node's report of its own limit. */
void cd_share_report(struct cd_core *core, struct cd_tenant *t,
		     struct cd_node *n, uint64_t version, uint64_t limit);
/* A node has begun to wait: what others said before may be old. */
void cd_share_ask_anew(struct cd_core *core, struct cd_tenant *t);
/* Serves the wishes of all nodes, as far as the quota goes. */
void cd_share_serve(struct cd_core *core, struct cd_tenant *t);
/* A quota has come to be, or is another one. */
void cd_share_requota(struct cd_core *core, struct cd_tenant *t,
		      uint64_t quota);

/* ---- place.c ------------------------------------------------------------ */

struct cd_wish {
	uint64_t size_bytes; /* of each copy */
	unsigned copies;
	bool is_block;		       /* only where blocks can be */
	const struct cd_block *beside; /* not with one of this chain, or NULL */
};

/* Chooses a node for each copy. -ENOSPC with words: how many there are. */
typedef int (*cd_place_fn)(const struct cd_core *core,
			   const struct cd_wish *wish,
			   struct cd_node *out[CD_COPIES_MAX]);
/* NULL: there is none of that name. */
cd_place_fn cd_place_policy(const char *name);

/* ---- handlers ----------------------------------------------------------- */

/* What a call's caller points to. */
struct cd_who {
	enum cd_role role;
	struct cd_tenant *tenant;	/* of that role; NULL: none */
	const struct cd_narrow *narrow; /* what its token is; NULL: whole */
	struct cd_held *held;		/* for beats */
	/* How its token's hash begins; zeros: there is none. */
	uint8_t by[CTL_TICKET_BY_BYTES];
};

/* Checks the body's members against those of the route. */
int cd_route_check_body(struct ctl_call *call) MUST_CHECK;

/* False: the caller has asked too often, and is told so. */
bool cd_rate_take(struct cd_core *core, const struct ctl_call *call,
		  const struct cd_who *who) MUST_CHECK;

/* Before a handler runs: it may end whom the caller is. */
void cd_audit_remember(const struct ctl_call *call, const struct cd_who *who,
		       struct cd_held *held);
/* What it is about, where the body says so. */
void cd_audit_name(const struct ctl_call *call, struct cd_held *held);
void cd_handle_status(void *ctx, struct ctl_call *call);
void cd_handle_metrics(void *ctx, struct ctl_call *call);
void cd_handle_node_join(void *ctx, struct ctl_call *call);
void cd_handle_node_beat(void *ctx, struct ctl_call *call);
void cd_handle_node_leave(void *ctx, struct ctl_call *call);
void cd_handle_node_list(void *ctx, struct ctl_call *call);
void cd_handle_node_get(void *ctx, struct ctl_call *call);
void cd_handle_node_drain(void *ctx, struct ctl_call *call);
void cd_handle_node_forget(void *ctx, struct ctl_call *call);
void cd_handle_name_get(void *ctx, struct ctl_call *call);
void cd_handle_place(void *ctx, struct ctl_call *call);
void cd_handle_tenant_create(void *ctx, struct ctl_call *call);
void cd_handle_tenant_list(void *ctx, struct ctl_call *call);
void cd_handle_tenant_get(void *ctx, struct ctl_call *call);
void cd_handle_tenant_patch(void *ctx, struct ctl_call *call);
void cd_handle_tenant_delete(void *ctx, struct ctl_call *call);
void cd_handle_token_patch(void *ctx, struct ctl_call *call);
void cd_handle_token_delete(void *ctx, struct ctl_call *call);
void cd_handle_token_create(void *ctx, struct ctl_call *call);
void cd_handle_token_list(void *ctx, struct ctl_call *call);
void cd_handle_token_renew(void *ctx, struct ctl_call *call);
void cd_handle_token_end(void *ctx, struct ctl_call *call);
void cd_handle_admin_token(void *ctx, struct ctl_call *call);
void cd_handle_audit(void *ctx, struct ctl_call *call);
void cd_handle_role_list(void *ctx, struct ctl_call *call);
void cd_handle_role_create(void *ctx, struct ctl_call *call);
void cd_handle_role_end(void *ctx, struct ctl_call *call);

/* Which run of a node it is. */
int cd_field_incarnation(const json_t *body, const char **out) MUST_CHECK;
/* The tenant that the path names. */
int cd_tenant_of_call(const struct cd_core *core, const struct ctl_call *call,
		      struct cd_tenant **out) MUST_CHECK;
bool cd_tenant_is_default(const struct cd_tenant *t);
/* `token` is shown, once; or NULL. */
void cd_reply_tenant(const struct cd_core *core, struct ctl_call *call,
		     unsigned status, const struct cd_tenant *t,
		     const char *token);

/* The body's "token", or a random one. */
int cd_token_pick(struct cd_core *core, const json_t *body,
		  char text[CTL_TOKEN_TEXT],
		  struct ctl_token_hash *hash) MUST_CHECK;
struct cd_tenant *cd_token_owner(const struct cd_core *core,
				 const struct ctl_token_hash *hash);
/* -EEXIST: somebody has it. */
int cd_token_check(const struct cd_core *core,
		   const struct ctl_token_hash *hash) MUST_CHECK;
void cd_token_add(struct cd_core *core, struct cd_tenant *t,
		  const struct ctl_token_hash *hash, uint64_t until_s);
void cd_token_end(struct cd_core *core, struct cd_tenant *t, unsigned at);
/* All of a tenant. */
void cd_tokens_end(struct cd_core *core, struct cd_tenant *t);
/* The number of its next token, of whichever kind. */
unsigned cd_token_next_id(const struct cd_tenant *t);
/* How long it counts, and not until when: clocks of machines differ. 0: without
 * an end. */
uint64_t cd_token_left_ms(const struct cd_core *core, const struct cd_token *k);
/* Whether its time is over. */
bool cd_token_is_over(const struct cd_core *core, const struct cd_token *k);

/* ---- narrow.c ----------------------------------------------------------- */

/* "path" and "rights" of a body or a row. -EINVAL. */
int cd_narrow_parse(const json_t *body, struct cd_narrow *out) MUST_CHECK;
/* Whether it opens less than a whole token. */
bool cd_narrow_is_less(const struct cd_narrow *n);
/* Adds one, with its row. -EAGAIN: there are too many; -ENOMEM. */
int cd_narrow_add(struct cd_core *core, struct cd_tenant *t,
		  const struct cd_narrow *wish) MUST_CHECK;
/* Of a row. */
int cd_narrow_row(struct cd_core *core, const char *key,
		  const json_t *row) MUST_CHECK;
void cd_narrow_end(struct cd_core *core, struct cd_tenant *t, unsigned at);
/* Without rows: the tenant goes. */
void cd_narrows_free(struct cd_tenant *t);
/* The one with that hash that is not over; NULL: none. Takes the same time
 * wherever they differ. */
const struct cd_narrow *cd_narrow_find(const struct cd_core *core,
				       const struct ctl_token_hash *hash,
				       struct cd_tenant **owner);
bool cd_narrow_has(const struct cd_core *core,
		   const struct ctl_token_hash *hash);
/* For people, without the hash. */
json_t *cd_narrow_describe(const struct cd_narrow *n);
/* For nodes: {"token", "left_ms", "regions", "rights"} of each. */
json_t *cd_narrows_json(const struct cd_core *core, const struct cd_tenant *t);
/* True: some are over, and gone. */
bool cd_narrows_tick(struct cd_core *core, struct cd_tenant *t);

const char *cd_role_name(enum cd_role role);
/* "admin" or "node". */
int cd_role_parse(const char *text, enum cd_role *out) MUST_CHECK;
void cd_role_stage(struct cd_core *core, const struct cd_role_token *r);
/* Of a token that is no tenant's and not over. */
enum cd_role cd_role_of(const struct cd_core *core,
			const struct ctl_token_hash *hash);
/* Tokens whose time is over. */
void cd_roles_tick(struct cd_core *core);

/* Takes over what a node brings along: tenants that nobody knows yet. */
void cd_tenant_adopt(struct cd_core *core, const json_t *rows);
/* The list of tenants for nodes, and its name. */
json_t *cd_tenants_json(const struct cd_core *core);
void cd_tenants_name(const struct cd_core *core, char out[32]);
/* The list has changed. */
void cd_tenants_changed(struct cd_core *core);
/* Tokens whose time is over. */
void cd_tokens_tick(struct cd_core *core);

json_int_t cd_int(uint64_t n);

#endif
