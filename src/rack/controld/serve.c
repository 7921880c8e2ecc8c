/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller as a daemon: threads of the HTTP server bring requests, one
 * thread commits. While it commits, requests gather; they share the next
 * transaction. The lock guards the core; the ledger belongs to the one thread.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/statedir.h"
#include "cd_priv.h"

enum {
	LEAD_AGAIN_MS = 500, /* between two tries */
	STORE_BYTES = STATEDIR_PATH_MAX + 64,
};

struct server {
	struct env env;
	struct cd_core *core;
	struct ledger *ledger;
	pthread_mutex_t lock;
	pthread_cond_t wake;	/* the thread that commits */
	pthread_cond_t settled; /* those who wait for it, or for orders */
	bool ends;
	uint64_t tried_ms; /* to lead */
	char address[LEDGER_WHO_MAX];
	struct ctl_server *http; /* while it runs */
	uint16_t page_port;	 /* of the loopback; 0: none is open */
	bool has_warned;	 /* that a former port is taken */
};

/* ---- requests ----------------------------------------------------------- */

static struct timespec in_ms(unsigned ms)
{
	uint64_t at = clock_mono_ns() + ms * 1000000ull;

	return (struct timespec){.tv_sec = (time_t)(at / 1000000000),
				 .tv_nsec = (long)(at % 1000000000)};
}

/* Until something happens, or that time is over. */
static void wait_on(struct server *s, pthread_cond_t *cond, unsigned ms)
{
	const struct timespec until = in_ms(ms);

	(void)pthread_cond_timedwait(cond, &s->lock, &until);
}

static void settle(struct server *s, struct ctl_reply *reply)
{
	uint64_t mark = cd_core_mark(s->core);
	enum cd_settled how;

	(void)pthread_cond_signal(&s->wake);
	while ((how = cd_core_settled(s->core, mark)) == CD_PENDING)
		wait_on(s, &s->settled, CD_HOLD_MS);
	if (how != CD_COMMITTED)
		cd_core_excuse(s->core, how, reply);
	/* What was asked for may be an order for a node that waits. */
	(void)pthread_cond_broadcast(&s->settled);
}

static void handle(void *ctx, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	struct server *s = ctx;
	struct cd_held held;

	pthread_mutex_lock(&s->lock);
	cd_core_handle(s->core, request, reply, &held);
	if (held.is_held) {
		(void)pthread_cond_signal(&s->wake);
		(void)pthread_cond_broadcast(&s->settled);
		while (!s->ends && !cd_core_is_due(s->core, &held))
			wait_on(s, &s->settled, CD_TICK_MS);
		cd_core_answer(s->core, &held, reply);
	}
	settle(s, reply);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the page ----------------------------------------------------------- */

/* A browser that was here before finds the page where it was; else it is the
 * first port that is free. The lock is held. */
static int open_page(void *ctx, uint16_t *port)
{
	struct server *s = ctx;
	uint16_t former = cd_core_page_port(s->core);
	int err = 0;

	if (!s->http)
		return error_set(-EAGAIN, "the controller starts or ends");
	if (!s->page_port && former)
		err = ctl_server_open_loopback(s->http, former, 1,
					       &s->page_port);
	if (!s->page_port)
		err = ctl_server_open_loopback(s->http, CD_PAGE_PORT,
					       CD_PAGE_PORTS, &s->page_port);
	if (!s->page_port)
		err = ctl_server_open_loopback(s->http, 0, 1, &s->page_port);
	*port = s->page_port;
	return err;
}

/* After a restart the pages that are open in browsers come back. */
static void reopen_page(struct server *s)
{
	uint16_t former = s->page_port ? 0 : cd_core_page_port(s->core);

	if (!former || !s->http ||
	    ctl_server_open_loopback(s->http, former, 1, &s->page_port) == 0)
		return;
	if (!s->has_warned)
		log_warn("controld", "pages that were open stay away: %s",
			 error_last());
	s->has_warned = true;
}

/* ---- the thread that commits -------------------------------------------- */

/* The lock is held and let go for as long as the disk takes. */
static void commit(struct server *s)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];
	uint64_t term = cd_core_term(s->core);
	unsigned count =
		cd_core_leads(s->core) ? cd_core_batch(s->core, change) : 0;
	int err;

	if (!count)
		return;
	pthread_mutex_unlock(&s->lock);
	err = ledger_commit(s->ledger, term, change, count);
	pthread_mutex_lock(&s->lock);
	if (err)
		log_err("controld", "%s", error_last());
	cd_core_committed(s->core, err);
	(void)pthread_cond_broadcast(&s->settled);
}

/* Reads all rows; leads where it may, else only answers. The rows come one by
 * one, and nobody may see half of them, so the lock is held. */
static int load(struct server *s)
{
	char leader[LEDGER_WHO_MAX] = "", why[ERROR_TEXT_MAX] = "";
	uint64_t term = 0;
	int lead_err = ledger_lead(s->ledger, s->address, &term), err;

	if (lead_err)
		(void)snprintf(why, sizeof(why), "%s", error_last());
	if (lead_err == -EBUSY && ledger_leader(s->ledger, leader))
		leader[0] = 0;
	cd_core_clear(s->core);
	err = ledger_read(s->ledger, cd_core_row, s->core);
	if (!err)
		err = lead_err ? cd_core_ready(s->core,
					       leader[0] ? leader : NULL, why)
			       : cd_core_lead(s->core, term);
	if (err) {
		/* Nothing of it is to be believed. */
		(void)snprintf(why, sizeof(why), "%s", error_last());
		cd_core_clear(s->core);
		cd_core_resign(s->core, why);
	}
	(void)pthread_cond_broadcast(&s->settled);
	return err ? error_set(err, "%s", why) : 0;
}

/* It is sure to lead for less than the lease, because clocks differ. */
static void keep(struct server *s)
{
	uint64_t sent_ns = clock_mono_ns();

	if (ledger_keep(s->ledger, cd_core_term(s->core)))
		cd_core_resign(s->core, error_last());
	else
		cd_core_keep(s->core,
			     s->ledger->lease_ns
				     ? sent_ns + s->ledger->lease_ns / 4 * 3
				     : UINT64_MAX);
}

static void look_after(struct server *s)
{
	uint64_t now = clock_mono_ms();

	if (!cd_core_leads(s->core) && now - s->tried_ms >= LEAD_AGAIN_MS) {
		s->tried_ms = now;
		if (load(s))
			log_warn("controld", "%s", error_last());
	}
	if (cd_core_leads(s->core))
		keep(s);
	cd_core_tick(s->core, (uint64_t)time(NULL));
	reopen_page(s);
}

static int run(struct daemon *d)
{
	struct server *s = d->served;
	uint64_t next_ms = 0;

	pthread_mutex_lock(&s->lock);
	s->http = d->server;
	while (!daemon_is_ending(d, 0)) {
		uint64_t now = clock_mono_ms();

		if (now >= next_ms) {
			look_after(s);
			next_ms = now + CD_TICK_MS;
		}
		commit(s);
		if (!cd_core_leads(s->core) ||
		    cd_core_settled(s->core, cd_core_mark(s->core)) !=
			    CD_PENDING)
			wait_on(s, &s->wake, CD_TICK_MS);
	}
	s->ends = true;
	s->http = NULL;
	commit(s);
	cd_core_resign(s->core, "the controller ends");
	(void)pthread_cond_broadcast(&s->settled);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* ---- life --------------------------------------------------------------- */

static int allow(struct daemon *d)
{
	const struct cd_serve_options *o = d->self;
	int err = daemon_allow_state(d);

	if (err || !o->store || !ledger_path(o->store))
		return err;
	return confine_add_parent(&d->confine, CONFINE_WRITE,
				  ledger_path(o->store));
}

/* Where others reach it: for standbys, and for who reads the ledger. */
static void set_address(const struct daemon *d, struct server *s)
{
	if (d->options.listen)
		(void)snprintf(s->address, sizeof(s->address), "%s://%.200s",
			       d->options.tls_cert ? "https" : "http",
			       d->options.listen);
	else
		(void)snprintf(s->address, sizeof(s->address), "unix:%.240s",
			       d->socket);
}

static int keep_token(void *ctx, bool is_admin, const char *token)
{
	return daemon_token_keep(
		ctx, is_admin ? RACK_TOKEN_ADMIN : RACK_TOKEN_DEFAULT, token);
}

static int open_core(struct daemon *d, struct server *s)
{
	char admin[SECRET_TEXT], node[SECRET_TEXT], own[SECRET_TEXT];
	struct cd_config config = {
		.name = d->options.name,
		.env = &s->env,
		.admin_token = admin,
		.node_token = node,
		.default_token = own,
		.audit = d->audit,
		.keep_token = keep_token,
		.keep_ctx = d,
		.open_page = open_page,
		.page_ctx = s,
	};
	int err = daemon_token(d, RACK_TOKEN_ADMIN, admin);

	if (!err)
		err = daemon_token(d, RACK_TOKEN_NODE, node);
	if (!err)
		err = daemon_token(d, RACK_TOKEN_DEFAULT, own);
	if (!err)
		err = cd_core_create(&config, &s->core);
	secret_forget(admin);
	secret_forget(node);
	secret_forget(own);
	return err;
}

static int open_ledger(struct daemon *d, struct server *s)
{
	const struct cd_serve_options *o = d->self;
	char dir[STATEDIR_PATH_MAX], store[STORE_BYTES];
	int err;

	if (o->store)
		return ledger_open(o->store, &s->ledger);
	err = statedir_make(d->rack, dir);
	if (err)
		return err;
	(void)snprintf(store, sizeof(store), "sqlite:%s/%.32s.control.db", dir,
		       d->options.name);
	return ledger_open(store, &s->ledger);
}

static int open_server(struct daemon *d)
{
	struct server *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory for the controller");
	d->served = s;
	s->env.ops = &daemon_env_ops;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_cond_init(&s->settled, &attr);
	pthread_condattr_destroy(&attr);
	set_address(d, s);
	err = open_ledger(d, s);
	if (!err)
		err = open_core(d, s);
	if (err)
		return err;
	/* A ledger that cannot be believed ends the start; one that cannot be
	 * written, or that another controller has, does not. */
	s->tried_ms = clock_mono_ms();
	err = load(s);
	if (!err && cd_core_leads(s->core))
		keep(s);
	return err;
}

static int close_server(struct daemon *d)
{
	struct server *s = d->served;

	if (!s)
		return 0;
	if (s->core)
		cd_core_destroy(s->core);
	ledger_close(s->ledger);
	pthread_cond_destroy(&s->settled);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return 0;
}

const struct daemon_kind cd_daemon = {
	.what = "a controller",
	.suffix = ".control",
	.handle = handle,
	.allow = allow,
	.open = open_server,
	.run = run,
	.close = close_server,
};
