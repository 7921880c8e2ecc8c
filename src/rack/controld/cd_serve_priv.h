/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller as a daemon: threads of the HTTP server bring requests, one
 * thread asks the ledger (serve_ledger.c), and the daemon's own one ticks and
 * answers beats that wait for orders. The lock guards the core and all that is
 * here; the ledger belongs to its thread, which lets the lock go for as long as
 * a disk or a network takes. So a ledger that hangs holds up changes, and
 * nothing else.
 */
#ifndef AQ_CD_SERVE_PRIV_H
#define AQ_CD_SERVE_PRIV_H

#include <pthread.h>

#include "base/error.h"
#include "cd_priv.h"
#include "cd_unsettled.h"
#include "cd_wait.h"

struct cd_server {
	struct env env;
	struct cd_core *core;
	struct ledger *ledger;
	pthread_mutex_t lock;
	pthread_cond_t staged;	/* the ledger's thread */
	pthread_cond_t due;	/* the thread that answers beats */
	pthread_cond_t settled; /* those who wait for the ledger */
	bool is_due;		/* beats have to be looked at */
	struct cd_waits waits;
	struct cd_unsettleds unsettled;
	bool ends;
	pthread_t thread;   /* the ledger's */
	uint64_t flight_ns; /* since when the ledger commits; 0: it does not */
	/* The last transaction: how long it took, and its changes with those
	 * that came meanwhile. */
	uint64_t commit_ns;
	unsigned expected_count;
	unsigned at_once_count; /* transactions that wait for nobody */
	unsigned wanted;	/* changes for which its thread is woken */
	uint64_t tried_ms;	/* to lead */
	uint64_t kept_ms;	/* that it leads */
	bool is_read;		/* the core has all rows of the ledger */
	char told[ERROR_TEXT_MAX];
	char address[LEDGER_WHO_MAX];
	struct ctl_server *http; /* while it runs */
	uint16_t page_port;	 /* of the loopback; 0: none is open */
	bool has_warned;	 /* that a former port is taken */
};

/* Its locks; all else is zero. */
void cd_server_init(struct cd_server *s);
void cd_server_destroy(struct cd_server *s);
/* Until something happens, or until then. The lock is held. */
void cd_server_wait_ns(struct cd_server *s, pthread_cond_t *cond,
		       uint64_t until_ns);
void cd_server_wait(struct cd_server *s, pthread_cond_t *cond, unsigned ms);
/* Answers those whose changes are settled. The lock is held, and let go for
 * that. */
void cd_server_settle(struct cd_server *s);
/* There may be an answer for a node that waits. */
void cd_server_due(struct cd_server *s);

/* ---- serve_request.c: as in struct daemon_kind ------------------------- */

void cd_server_handle(void *ctx, const struct ctl_request *request,
		      struct ctl_reply *reply);
bool cd_server_quick(void *ctx, const struct ctl_request *request,
		     struct ctl_reply *reply);
void cd_server_gone(void *ctx, uint64_t id);

/* ---- serve_ledger.c ------------------------------------------------------ */

/* Reads all rows, and leads where it may. The lock is held; -EBADMSG,
 * -EPROTONOSUPPORT: what is there cannot be used. */
int cd_serve_load(struct cd_server *s) MUST_CHECK;
/* Says to the ledger that it leads. The lock is held. */
void cd_serve_keep(struct cd_server *s);
/* Commits what is staged. The lock is held. */
void cd_serve_commit(struct cd_server *s);
/* The ledger's thread, until cd_serve_stop, which takes the lock itself. */
int cd_serve_start(struct cd_server *s) MUST_CHECK;
void cd_serve_stop(struct cd_server *s);

#endif
