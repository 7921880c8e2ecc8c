/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of elastic far memory: roots of tenants, what lies below them, and the
 * blocks that objects have on nodes.
 *
 *   rack    ids            next: below it ids were given away
 *   rack    ticket-key-N   seed, made
 *   job     TENANT/NAME    id, plan, lease_ms, keep, flush, copies
 *   prefix  ID             name, parents
 *   object  ID             prefix, name, kind, block_bytes, bound, lost,
 *                          state, image (vault_priv.h)
 *   block   NODE/INDEX     generation, object, number, bytes, run; identity,
 *                          epoch, since, full of one with copies (chain.c)
 *
 * A root is a job with a plan (tasks have parents, their names are unique in
 * it) or a tree of folders. Its own prefix has the job's id. A row whose owner
 * is not there is litter, and is struck off by who leads: so the making of a
 * large plan ends with the row of its job, and the end of anything begins with
 * its own row.
 *
 * Leases are soft. Their clock runs only while this controller leads and is
 * sure of it, so nobody loses anything by time in which he could not renew.
 *
 * A block is lent by a node, which has it from "make" until "free"; both are
 * orders in the answers of beats, told until they are acknowledged. That it is
 * made, and what is used of it, is soft. A block whose run (the incarnation of
 * its node) is over is gone, and its object is lost.
 */
#ifndef AQ_CD_TREE_PRIV_H
#define AQ_CD_TREE_PRIV_H

#include "cd_priv.h"
#include "control/ctl_ticket.h"

enum {
	CD_STEP_MAX = 63, /* characters of a name */
	CD_TASKS_MAX = 10000,
	CD_PLAN_BYTES = 4 << 20, /* of a request */
	CD_PARENTS_MAX = 64,
	CD_JOBS_MAX = 1024,	  /* of one tenant */
	CD_PREFIXES_MAX = 200000, /* of a rack */
	CD_OBJECTS_MAX = 200000,
	CD_BLOCKS_MAX = 65536, /* of one node */
	CD_RENEW_MAX = 1024,   /* paths in one request */
	CD_LIST_MAX = 10000,   /* names in one answer */

	CD_LEASE_MS = 10000,
	CD_LEASE_MIN_MS = 100,
	CD_LEASE_MAX_MS = 24 * 3600 * 1000,

	CD_BLOCK_BYTES = 8 << 20,
	CD_BLOCK_MIN = 64 << 10,
	CD_BLOCK_MAX = 1 << 30,
	CD_RUN_MAX = 32, /* blocks that are made at a time */
	CD_RUN_MS = 100, /* for which they should last */
	CD_ORDERS_MAX = 64,
	CD_SAID_MAX = 512, /* blocks in one beat */
	CD_FULL_MS = 1000, /* a node that had no room is left alone */

	CD_TICKET_S = 3600,
	CD_KEYS_MAX = 4,
	CD_KEY_LIFE_S = 24 * 3600,
	CD_KEY_NEWS_S = 60, /* until all nodes have heard of it */

	CD_PART = 32, /* steps in one transaction, where there are many */
	CD_ID_STEP = 1 << 20,
	CD_ID_TEXT = 17,
};

enum cd_life {
	CD_LIVE,
	CD_GRACE,
	CD_EXPIRED,
};

struct cd_prefix {
	/* The row. */
	uint64_t id;
	char name[CD_STEP_MAX + 1];
	struct cd_prefix **parent; /* of a root: none */
	unsigned parent_count;
	/* Follows from others. */
	struct cd_job *job;
	struct cd_prefix **child;
	unsigned child_count;
	struct cd_object *objects;
	/* Soft; by the clock of leases. */
	uint64_t renewed_ns;
	uint64_t above_ns; /* the last renewal of it or of what is above */
	enum cd_life life;
	/* Of a walk over the job. */
	unsigned mark;
};

struct cd_job {
	struct cd_job *next; /* of the tenant */
	char tenant[CD_NAME_MAX + 1];
	char name[CD_STEP_MAX + 1];
	bool has_plan;
	uint32_t lease_ms;
	unsigned copies; /* of blocks, where an object says nothing else */
	bool keep;	 /* it has no end */
	bool flush;	 /* what expires goes to the vault */
	/* Its prefixes: parents before their children, so the root first; and
	 * by name, where a plan makes names unique. */
	struct cd_prefix **order, **by_name;
	unsigned count;
	unsigned object_count; /* below all of them */
	uint64_t due_ns; /* when a lease may change its state; 0: look anew */
	uint64_t looked_ns;
	bool has_expired; /* something has, and was not dropped yet */
};

enum cd_object_kind {
	CD_FILE,
	CD_QUEUE,
	CD_EKV,
	CD_OBJECT_KINDS,
};

enum cd_object_state {
	CD_READY,
	CD_FLUSHING,
	CD_FLUSHED,
	CD_LOADING,
};

struct cd_object {
	struct cd_object *next; /* of the prefix */
	struct cd_prefix *prefix;
	/* The row. */
	uint64_t id;
	char name[CD_STEP_MAX + 1];
	enum cd_object_kind kind;
	uint64_t block_bytes;
	uint64_t bound;	 /* items of a queue; 0: none */
	unsigned copies; /* of each block, on as many nodes */
	char lost[80];	 /* why it is lost; "": it is not */
	enum cd_object_state state;
	uint64_t image_id; /* while rows are read */
	/* Soft. */
	struct cd_block **block; /* by number */
	unsigned block_count;
	unsigned run;	   /* blocks that were made last, or come first */
	uint64_t grown_ns; /* when some were made last; 0: not in this run */
	uint64_t epoch;
	int failed; /* what a node said when it could not make a block */
	/* At the vault, or on the way there (vault_priv.h); or NULL. */
	struct cd_image *image;
	struct cd_flush *flush;
	char trouble[160]; /* with it; "": none */
};

struct cd_block {
	struct cd_node *node;
	unsigned index;
	/* The row. */
	uint64_t generation;
	uint64_t number;
	uint64_t bytes;
	char run[CTL_INCARNATION_TEXT];
	struct cd_object *object; /* NULL: it has to be freed */
	/* The row, of one with copies: */
	uint64_t identity; /* of all copies of the block; 0: it has none */
	uint64_t epoch;	   /* of its chain */
	uint64_t since;	   /* the epoch with which it came */
	bool is_full;	   /* it counts; else it joins */
	/* Follows from others. */
	struct cd_block *next; /* of the chain, by generation */
	/* Soft: what its node said of it. */
	uint64_t said_epoch;
	bool is_whole;
	/* Soft. */
	bool is_made;
	bool is_told;	/* the order that there is for it */
	unsigned round; /* of orders, when it was told last */
	bool is_sealed, is_drained;
	uint64_t saving; /* the task that writes its image; 0: none */
	uint64_t used_bytes;
};

/* A block that a node has, and nobody knows. */
struct cd_stray {
	unsigned index;
	uint64_t generation;
};

/* What a node lends; struct cd_node has a pointer to it. */
struct cd_lent {
	struct cd_block *block[CD_BLOCKS_MAX];
	unsigned count;
	unsigned first_free; /* no smaller index is free */
	unsigned pending;    /* orders that are not acknowledged */
	unsigned untold;     /* of them: never told */
	unsigned round;
	uint64_t making_bytes;
	uint64_t full_ns; /* it had no room then; 0: it had */
	bool has_chain_news;
	struct cd_stray stray[CD_ORDERS_MAX];
	unsigned stray_count;
};

/* Things by their ids, which grow. */
struct cd_ids {
	struct {
		uint64_t id;
		void *thing;
	} * row;
	size_t count, room;
};

struct cd_key {
	uint32_t id;
	uint64_t made_s; /* time of day */
	uint8_t seed[CTL_TICKET_SEED_BYTES];
	uint8_t public[CTL_TICKET_KEY_BYTES];
};

/* Rows that belong to nothing any more, and are deleted bit by bit. */
struct cd_litter {
	struct cd_litter *next;
	const char *kind;
	char key[CD_ID_TEXT];
};

struct cd_tree {
	struct cd_job *jobs[CD_TENANTS_MAX]; /* by a hash of the tenant */
	unsigned job_count;
	struct cd_ids prefixes, objects;
	uint64_t id_next, id_mark; /* from here, below this: may be given */
	uint64_t lease_ns;	   /* the clock of leases */
	uint64_t ticked_ns;	   /* when it was set; 0: it stood */
	struct cd_key key[CD_KEYS_MAX];
	unsigned key_count;
	struct cd_litter *litter;
	unsigned part;	  /* rows in this part of a long change */
	uint64_t expired; /* prefixes, in this run */
	bool has_copies;  /* some object has */
	/* The vault: images, objects on the way, tasks (vault_priv.h). */
	struct cd_ids images, moving;
	struct cd_task *tasks;
	unsigned task_round;
	char vault_why[160];
	/* In this run: objects that came there, and back, and what went
	 * wrong. */
	uint64_t flushed, loaded, vault_errors;
	/* While rows are read: "prefix", "object" and "block" by key. */
	json_t *late_prefix, *late_object, *late_block, *late_image;
};

/* ---- tree.c ------------------------------------------------------------- */

int cd_tree_create(struct cd_tree **out) MUST_CHECK;
void cd_tree_destroy(struct cd_core *core);
/* Forgets all. */
void cd_tree_clear(struct cd_core *core);
/* Takes time and leading into account: leases, keys, litter. */
void cd_tree_tick(struct cd_core *core);
/* A new leader gives every lease its full period. */
void cd_tree_lead(struct cd_core *core);

struct cd_job *cd_job_first(const struct cd_core *core, const char *tenant);
struct cd_job *cd_job_find(const struct cd_core *core, const char *tenant,
			   const char *name);
/* With its root, which has this id. -ENOMEM, -EAGAIN: too many. */
int cd_job_add(struct cd_core *core, const char *tenant, const char *name,
	       uint64_t id, struct cd_job **out) MUST_CHECK;
/* With all that is in it; its row is the caller's, all others become litter. */
void cd_job_free(struct cd_core *core, struct cd_job *job);
/* All of a tenant that is removed, with their rows. */
void cd_jobs_remove(struct cd_core *core, const char *tenant);
struct cd_prefix *cd_job_root(const struct cd_job *job);

/* -ENOMEM, -EAGAIN. Links come by cd_prefix_link, their order by cd_job_sort.
 */
int cd_prefix_add(struct cd_core *core, struct cd_job *job, const char *name,
		  uint64_t id, struct cd_prefix **out) MUST_CHECK;
int cd_prefix_link(struct cd_prefix *parent,
		   struct cd_prefix *child) MUST_CHECK;
void cd_prefix_unlink(struct cd_prefix *parent, struct cd_prefix *child);
/* Puts prefixes into their order. -ELOOP with the name of one in a cycle. */
int cd_job_sort(struct cd_job *job) MUST_CHECK;
/* Removes a prefix that is no root, and all that is reached only through it.
 * Its own row is the caller's. */
void cd_prefix_remove(struct cd_core *core, struct cd_prefix *p);
/* The prefix of that name below another one; of a plan's root: any task. */
struct cd_prefix *cd_prefix_child(const struct cd_prefix *p, const char *name);
bool cd_prefix_is_root(const struct cd_prefix *p);
/* "job", "task" or "folder". */
const char *cd_prefix_kind(const struct cd_prefix *p);

/* ---- ids.c -------------------------------------------------------------- */

/* An id that was never given before, of anything. */
uint64_t cd_id_take(struct cd_core *core);
void cd_id_format(uint64_t id, char out[CD_ID_TEXT]);
bool cd_id_parse(const char *text, uint64_t *out);
void *cd_ids_find(const struct cd_ids *ids, uint64_t id);
/* -ENOMEM. */
int cd_ids_add(struct cd_ids *ids, uint64_t id, void *thing) MUST_CHECK;
void cd_ids_remove(struct cd_ids *ids, uint64_t id);

/* ---- path.c ------------------------------------------------------------- */

/* What a path names: an object, or else a prefix. */
struct cd_at {
	struct cd_prefix *prefix; /* NULL: all roots of the tenant */
	struct cd_object *object;
};

/* What the request under way may touch, if its token opens less than all that
 * the tenant has. */
struct cd_scope {
	const struct cd_narrow *narrow;
	struct cd_at at; /* what its path names now; all NULL: nothing */
};

/* Whoever asks: what the path names. -ENOENT; -EINVAL: it is no path. */
int cd_path_look(const struct cd_core *core, const char *tenant,
		 const char *path, struct cd_at *out) MUST_CHECK;
/* The same, as far as the request's token goes: what is elsewhere is not there,
 * and no path at all is the token's own. */
int cd_path_find(const struct cd_core *core, const char *tenant,
		 const char *path, struct cd_at *out) MUST_CHECK;
/* For something new: all but the last name, and the last name. out->object is
 * never set. -EINVAL, -ENOENT, -ENOTDIR. */
int cd_path_split(const struct cd_core *core, const char *tenant,
		  const char *path, struct cd_at *out,
		  char leaf[CD_STEP_MAX + 1]) MUST_CHECK;
/* One address of it, beginning with '/'; shortened where it is long. */
void cd_path_format(const struct cd_prefix *p, const struct cd_object *o,
		    char out[CTL_PATH_MAX]);
/* The same for who asks: by names that the token is for, wherever it has a
 * path. */
void cd_path_show(const struct cd_core *core, const struct cd_prefix *p,
		  const struct cd_object *o, char out[CTL_PATH_MAX]);
/* Whether a folder is another one, or lies in it. */
bool cd_prefix_is_below(const struct cd_prefix *p, const struct cd_prefix *top);

/* ---- scope.c ------------------------------------------------------------ */

/* -EACCES: the route is not for such a token. */
int cd_scope_check_route(const struct ctl_call *call,
			 const struct cd_narrow *n) MUST_CHECK;
/* Before the request's handler; core->scope is the caller's to clear. */
void cd_scope_begin(struct cd_core *core, const struct cd_who *who,
		    struct cd_scope *s);
/* Whether it may only read. */
bool cd_scope_reads(const struct cd_core *core);
/* Whether it may know of a prefix, or of what a path has named. */
bool cd_scope_has_prefix(const struct cd_core *core, const struct cd_prefix *p);
bool cd_scope_has(const struct cd_core *core, const struct cd_at *at);
/* The top of what it sees. -ENOENT: its path names nothing now. */
int cd_scope_root(const struct cd_core *core, struct cd_at *out) MUST_CHECK;
/* -EACCES: that is the token's own path, and stays as it is. */
int cd_scope_check_change(const struct cd_core *core,
			  const struct cd_at *at) MUST_CHECK;
/* The scope, if it has a path; or NULL. */
const struct cd_scope *cd_scope_shown(const struct cd_core *core);
/* The end of a ticket: none outlives the token by which it was asked for. */
uint64_t cd_scope_end_s(const struct cd_core *core, uint64_t end_s);

/* ---- plan.c ------------------------------------------------------------- */

/* {"task": ["parent", ...], ...} becomes tasks of the job, which has none yet.
 * -EINVAL, -E2BIG, -ELOOP, -ENOMEM; the job is then of no use. Nothing is
 * staged. */
int cd_plan_build(struct cd_core *core, struct cd_job *job,
		  const json_t *plan) MUST_CHECK;

/* ---- lease.c ------------------------------------------------------------ */

/* Renews it, its parents and all that is below it. */
void cd_lease_renew(struct cd_core *core, struct cd_prefix *p);
/* What its prefixes are now. */
void cd_lease_look(struct cd_core *core, struct cd_job *job);
/* {"state", "left_ms", "period_ms"} */
json_t *cd_lease_json(struct cd_core *core, const struct cd_prefix *p);
void cd_lease_tick(struct cd_core *core);

/* ---- names.c ------------------------------------------------------------ */

/* Whether the tenant may have so many more. -EAGAIN. */
int cd_names_admit(const struct cd_core *core, const char *tenant,
		   unsigned prefixes, unsigned objects) MUST_CHECK;

/* ---- object.c ----------------------------------------------------------- */

const char *cd_object_kind_name(enum cd_object_kind kind);
int cd_object_kind_parse(const char *text, enum cd_object_kind *out) MUST_CHECK;
struct cd_object *cd_object_find(const struct cd_prefix *p, const char *name);
/* -ENOMEM, -EAGAIN. */
int cd_object_add(struct cd_core *core, struct cd_prefix *p, const char *name,
		  uint64_t id, struct cd_object **out) MUST_CHECK;
/* Its blocks are to be freed; its row is the caller's. */
void cd_object_remove(struct cd_core *core, struct cd_object *o);
void cd_object_attach(struct cd_prefix *p, struct cd_object *o);
void cd_object_detach(struct cd_object *o);
/* Something of it is gone for good. */
void cd_object_lose(struct cd_core *core, struct cd_object *o, const char *why);
/* Why it cannot be used as a whole now; NULL: it can. */
const char *cd_object_lost(const struct cd_object *o);
/* Blocks behind `after` (-1: the first one), so many at most: there are some
 * then, or -ENOSPC, -EDQUOT, -ENOMEM. */
int cd_object_grow(struct cd_core *core, struct cd_object *o, int64_t after,
		   uint64_t most) MUST_CHECK;

/* ---- block.c ------------------------------------------------------------ */

/* The generation that clients know it by: with copies, that of all of them. */
static inline uint64_t cd_block_identity(const struct cd_block *b)
{
	return b->identity ? b->identity : b->generation;
}

/* A block at that node, of the object; `identity` is that of the copies that
 * there are, or 0. -ENOSPC, -ENOMEM. */
int cd_block_make(struct cd_core *core, struct cd_node *n, struct cd_object *o,
		  uint64_t number, uint64_t identity,
		  struct cd_block **out) MUST_CHECK;
/* Of a row. -EINVAL: there is one; -ENOMEM. */
int cd_block_add(struct cd_node *n, unsigned index,
		 struct cd_block **out) MUST_CHECK;
/* Whose it is; NULL: it has to be freed. -ENOMEM. */
int cd_block_own(struct cd_block *b, struct cd_object *o) MUST_CHECK;
/* The object lets it go; the node has to free it. `is_staged`: the row says so
 * at once, where nothing else does. */
void cd_block_release(struct cd_core *core, struct cd_block *b, bool is_staged);
/* It has no memory any more, and no row. */
void cd_block_free(struct cd_core *core, struct cd_block *b);
/* Blocks of a node that runs anew, or that is forgotten (n->incarnation is then
 * ""), are lost. */
void cd_blocks_lose(struct cd_core *core, struct cd_node *n);
/* The block at that place, if it is this one; or NULL. */
struct cd_block *cd_block_at(const struct cd_node *n, unsigned index,
			     uint64_t generation);
/* Its node has made it. */
void cd_block_is_there(struct cd_block *b);
/* Whether there is an order about it. */
bool cd_block_waits(const struct cd_block *b);

/* ---- chain.c ------------------------------------------------------------- */

enum {
	CD_CHAIN_MAX = 8, /* members; as BLK_CHAIN_MAX */
};

/* Whether all that it has is somewhere else, too. */
bool cd_chain_survives(const struct cd_block *b);
/* Whether somebody answers for the block, of which this is one copy. */
bool cd_chain_is_up(const struct cd_block *b);
/* Another epoch for the chain that begins with this one, and its rows. */
void cd_chain_bump(struct cd_core *core, struct cd_block *first);
/* As many new blocks as there are to be copies. -ENOSPC, -ENOMEM. */
int cd_chain_make(struct cd_core *core, struct cd_object *o,
		  uint64_t number) MUST_CHECK;
/* One that the object has is no more: its chain goes on without it. */
void cd_chain_leave(struct cd_core *core, struct cd_object *o, uint64_t number);
/* Cuts out, lets in. */
void cd_chains_tick(struct cd_core *core);
/* What beats say of chains and of links, and the answers. */
int cd_chains_check(const json_t *beat) MUST_CHECK;
void cd_chains_hear(struct cd_core *core, struct cd_node *n,
		    const json_t *beat);
void cd_chains_say(struct cd_core *core, struct cd_node *n, json_t *answer);
json_t *cd_chain_json(const struct cd_block *first);

/* ---- block_beat.c ------------------------------------------------------- */

/* The part of a beat about blocks: 0, or -EINVAL, when nothing is taken. */
int cd_blocks_check(const json_t *beat) MUST_CHECK;
void cd_blocks_hear(struct cd_core *core, struct cd_node *n,
		    const json_t *beat);
/* Whether there are orders that were never told. */
bool cd_blocks_are_due(const struct cd_node *n);
/* Adds orders and keys to the answer. */
void cd_blocks_say(struct cd_core *core, struct cd_node *n, json_t *answer);
/* Memory of the node that orders will take. */
uint64_t cd_blocks_making(const struct cd_node *n);
/* Whether blocks may be placed there: it lends some, and had room lately. */
bool cd_blocks_fit(const struct cd_core *core, const struct cd_node *n);
/* The node itself is forgotten. */
void cd_blocks_forget(struct cd_node *n);

/* ---- key.c -------------------------------------------------------------- */

void cd_keys_tick(struct cd_core *core);
json_t *cd_keys_json(const struct cd_core *core);
/* A ticket for the object as hex; its end. -EAGAIN: there is no key yet. */
int cd_key_sign(const struct cd_core *core, const struct cd_object *o,
		uint8_t rights, const uint8_t by[CTL_TICKET_BY_BYTES],
		char out[CTL_TICKET_TEXT], uint64_t *end_s) MUST_CHECK;

/* ---- stage_tree.c, rows_tree.c ------------------------------------------ */

void cd_stage_job(struct cd_core *core, const struct cd_job *job);
void cd_stage_prefix(struct cd_core *core, const struct cd_prefix *p);
void cd_stage_object(struct cd_core *core, const struct cd_object *o);
void cd_stage_block(struct cd_core *core, const struct cd_block *b);
void cd_unstage_job(struct cd_core *core, const struct cd_job *job);
void cd_unstage_id(struct cd_core *core, const char *kind, uint64_t id);
/* After each row of a change that may be long and can be repeated. */
void cd_stage_part(struct cd_core *core);
/* A row to delete when there is time. `kind` is static, the key is an id. */
void cd_litter_add(struct cd_core *core, const char *kind, const char *key);
void cd_litter_id(struct cd_core *core, const char *kind, uint64_t id);
void cd_litter_tick(struct cd_core *core);
void cd_litter_clear(struct cd_core *core);

/* Whether it is a kind of row of this file; *err is what became of it. */
bool cd_tree_row(struct cd_core *core, const char *kind, const char *key,
		 json_t *row, int *err);
/* All rows have come. -EBADMSG. */
int cd_tree_rows_end(struct cd_core *core) MUST_CHECK;

/* ---- handlers ----------------------------------------------------------- */

/* The tenant whose names a call is about. -EACCES: nobody's. */
int cd_tenant_of_names(const struct ctl_call *call,
		       struct cd_tenant **out) MUST_CHECK;
/* "lease_ms" and "on_expiry" of a body. -EINVAL. */
int cd_job_options(const struct cd_core *core, const json_t *body,
		   struct cd_job *job) MUST_CHECK;
/* What happens when its leases are over. */
const char *cd_job_expiry(const struct cd_job *job);
/* All its rows. */
void cd_job_stage_all(struct cd_core *core, const struct cd_job *job);
/* What a name is, for people and programs. */
json_t *cd_describe_prefix(struct cd_core *core, const struct cd_prefix *p);
json_t *cd_describe_object(struct cd_core *core, const struct cd_object *o);

void cd_handle_job_create(void *ctx, struct ctl_call *call);
void cd_handle_job_list(void *ctx, struct ctl_call *call);
void cd_handle_renew(void *ctx, struct ctl_call *call);
void cd_handle_ns_get(void *ctx, struct ctl_call *call);
void cd_handle_ns_make(void *ctx, struct ctl_call *call);
void cd_handle_ns_patch(void *ctx, struct ctl_call *call);
void cd_handle_ns_delete(void *ctx, struct ctl_call *call);
void cd_handle_tree_get(void *ctx, struct ctl_call *call);
void cd_handle_map_get(void *ctx, struct ctl_call *call);
void cd_handle_map_grow(void *ctx, struct ctl_call *call);

#endif
