/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller: which nodes a rack has, its tenants with tokens and quotas,
 * where new memory goes. It is on no data path, and a rack works without it.
 *
 * The core is handlers and a tick: requests and time in, replies and rows out.
 * It does no I/O and takes no lock; the process around it is cd_daemon, and the
 * simulator and the tests do without. A change is made in memory and staged for
 * the ledger; a reply may leave only when all that was staged before it is
 * committed, so nobody learns what a failure could take back (cd_settled).
 *
 * Rows are what must survive: nodes, tenants, tokens, allowances. What nodes
 * say in their beats (used bytes, names, that they live) is soft: a new leader
 * learns it again, and gives every node a full period of silence first.
 */
#ifndef AQ_CONTROLD_H
#define AQ_CONTROLD_H

#include "base/base.h"
#include "base/env.h"
#include "cd_limits.h"
#include "control/ctl_audit.h"
#include "control/ctl_http.h"
#include "daemon/daemon.h"
#include "ledger/ledger.h"

struct cd_core;
struct ctl_audit;

struct vault_key; /* vault/vault.h */

struct cd_config {
	const char *name;
	struct env *env; /* clock and randomness */
	const char *admin_token;
	const char *node_token;	   /* of what joins */
	const char *default_token; /* of the tenant default here */
	struct ctl_audit *audit;   /* the caller's; or NULL */
	/* Makes another token last, for the tenant default or for the
	 * administrator: 0, or -errno with words. NULL: they stay. */
	int (*keep_token)(void *ctx, bool is_admin, const char *token);
	void *keep_ctx;
	/* Serves the page at a port of this machine's loopback, if it does not
	 * yet. NULL: there is no page for programs of this machine. */
	int (*open_page)(void *ctx, uint16_t *port);
	void *page_ctx;
	/* Where images of what expires go; NULL: nowhere. */
	const char *vault;
	/* What nodes show S3, where that is the vault; NULL: nothing. */
	const struct vault_key *vault_key;
};

int cd_core_create(const struct cd_config *config,
		   struct cd_core **out) MUST_CHECK;
void cd_core_destroy(struct cd_core *core);

/* ---- leading ------------------------------------------------------------ */

/* Forgets what it knows; then come all rows, and cd_core_ready or cd_core_lead.
 */
void cd_core_clear(struct cd_core *core);
/* A ledger_row_fn. -EBADMSG, with words: nothing of this ledger may be used. */
int cd_core_row(void *core, const char *kind, const char *key,
		const char *value);
/* All rows are there, and it does not lead: reads are answered. `leader` is
 * whom others should ask, or NULL; `why` says why changes are refused.
 * -EBADMSG as above. */
int cd_core_ready(struct cd_core *core, const char *leader,
		  const char *why) MUST_CHECK;
/* The same, and it leads in this term. */
int cd_core_lead(struct cd_core *core, uint64_t term) MUST_CHECK;
/* It leads for certain until then, by its own clock; UINT64_MAX: without end.
 * After that another one may lead, and it says nothing but that it does not
 * know. At first it is 0. */
void cd_core_keep(struct cd_core *core, uint64_t until_ns);
/* Changes are refused from now on, and what is staged is lost. */
void cd_core_resign(struct cd_core *core, const char *why);
bool cd_core_leads(const struct cd_core *core);
uint64_t cd_core_term(const struct cd_core *core);

/* ---- commits ------------------------------------------------------------ */

/* The next transaction: whole requests, in their order. 0: nothing is staged.
 * The texts live until cd_core_committed. */
unsigned cd_core_batch(struct cd_core *core,
		       struct ledger_change out[LEDGER_CHANGES_MAX]);
/* How many changes are staged. */
unsigned cd_core_waiting(const struct cd_core *core);
/* What became of it. Other than 0: the core has resigned; its rows have to be
 * read anew. */
void cd_core_committed(struct cd_core *core, int err);

enum cd_settled {
	CD_PENDING,
	CD_COMMITTED,
	CD_FAILED,  /* nothing of it has happened */
	CD_UNKNOWN, /* perhaps it has */
};

/* What was staged so far; and what became of all up to such a mark. */
uint64_t cd_core_mark(const struct cd_core *core);
enum cd_settled cd_core_settled(const struct cd_core *core, uint64_t mark);
/* The reply in place of one whose changes have failed, or are pending for too
 * long. */
void cd_core_excuse(const struct cd_core *core, enum cd_settled how,
		    struct ctl_reply *reply);

/* ---- requests ----------------------------------------------------------- */

/* What is known of a request when it has been handled: for the audit log, and
 * of a beat that waits for orders. */
struct cd_held {
	bool is_quiet; /* no change that people want to know of */
	bool is_hint;  /* who asks takes it for one: it need not be settled */
	char who[CD_NAME_MAX + 1];
	char name[CD_NAME_MAX + 1]; /* that the body has */
	bool is_held;
	unsigned node;
	uint64_t epoch;
	uint64_t order; /* the node's when the beat came */
	uint64_t beat;	/* which one of this node it is */
	uint64_t since_ns;
	bool is_due;	  /* there is something to say at once */
	char tenants[32]; /* the list that the node has */
};

/* What callers may send. */
extern const struct ctl_routes cd_routes;
/* What the body of a route's requests may have, with spaces between. */
const char *cd_route_members(const struct ctl_route *route);

/* Fills the reply, or `held`: then the reply comes from cd_core_answer. Neither
 * may leave before its mark is settled. */
void cd_core_handle(struct cd_core *core, const struct ctl_request *request,
		    struct ctl_reply *reply, struct cd_held *held);
/* Notes how requests have ended: when their marks are settled. */
void cd_core_audit(struct cd_core *core, const struct ctl_audit_entry *entry,
		   unsigned count);
/* What there is to note of one; it refers to all three. */
struct ctl_audit_entry cd_audit_entry(const struct ctl_request *request,
				      const struct cd_held *held,
				      const struct ctl_reply *reply);
/* Whether a beat need not wait any longer. */
bool cd_core_is_due(const struct cd_core *core, const struct cd_held *held);
/* A beat that the node's next one has replaced is answered with 204: all that
 * there is to say is in the answer to that one. */
void cd_core_answer(struct cd_core *core, const struct cd_held *held,
		    struct ctl_reply *reply);

/* Whether a beat whose answer has that mark need not wait for it any longer,
 * because the ledger takes too long. It is put off then: the node comes again,
 * or goes elsewhere, and has learned nothing. */
bool cd_core_is_late(const struct cd_core *core, const struct cd_held *held,
		     uint64_t mark);
void cd_core_put_off(const struct cd_core *core, struct ctl_reply *reply);

/* The connection of a held beat has ended: unless a newer one is there, the
 * node is suspect, and down after CD_BROKEN_MS. */
void cd_core_broke(struct cd_core *core, const struct cd_held *held);

/* The time of day, for tokens that end: before each request. */
void cd_core_wall(struct cd_core *core, uint64_t wall_s);
/* Every CD_TICK_MS. */
void cd_core_tick(struct cd_core *core, uint64_t wall_s);

/* The port at which browsers expect the page, after a restart; 0: none does. */
uint16_t cd_core_page_port(const struct cd_core *core);

/* ---- the process -------------------------------------------------------- */

/* What d->self of a struct daemon points to. */
struct cd_serve_options {
	/* As ledger_open takes it, but for the rack; no store: a file in the
	 * state directory. */
	struct ledger_place place;
};

enum {
	CD_STORE_MAX = 480,
};

/* Where a controller's state is if nothing else is said; touches nothing. */
int cd_store_default(const char *rack, const char *name,
		     char out[CD_STORE_MAX]) MUST_CHECK;

/* A controller until a signal; see daemon/daemon.h. */
extern const struct daemon_kind cd_daemon;

#endif
