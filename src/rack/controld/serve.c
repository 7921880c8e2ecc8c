/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller as a daemon: threads of the HTTP server bring requests, one
 * thread commits. While it commits, requests gather; they share the next
 * transaction. The lock guards the core; the ledger belongs to the one thread,
 * which also answers the beats that wait for orders: they have no thread of
 * their own, however many there are.
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
#include "cd_wait.h"
#include "ledger/ledger_rows.h"

enum {
	LEAD_AGAIN_MS = 500, /* between two tries */
	SURE_MS = 3000,	     /* that a change waits for the ledger */
	COMMIT_NS_MAX = 20000000,
	QUICK_NS = 2000000, /* that a thread of the server waits for the core */
};

struct server {
	struct env env;
	struct cd_core *core;
	struct ledger *ledger;
	pthread_mutex_t lock;
	pthread_cond_t wake;	/* the thread that commits */
	pthread_cond_t settled; /* those who wait for it */
	bool is_due;		/* beats have to be looked at */
	struct cd_waits waits;
	bool ends;
	/* The last transaction: how long it took, and its changes. */
	uint64_t commit_ns;
	unsigned commit_count;
	uint64_t tried_ms; /* to lead */
	bool is_read;	   /* the core has all rows of the ledger */
	char told[ERROR_TEXT_MAX];
	char address[LEDGER_WHO_MAX];
	struct ctl_server *http; /* while it runs */
	uint16_t page_port;	 /* of the loopback; 0: none is open */
	bool has_warned;	 /* that a former port is taken */
};

/* ---- requests ----------------------------------------------------------- */

/* Until something happens, or until then. */
static void wait_ns(struct server *s, pthread_cond_t *cond, uint64_t until_ns)
{
	const struct timespec until = clock_timespec(until_ns);

	(void)pthread_cond_timedwait(cond, &s->lock, &until);
}

static void wait_on(struct server *s, pthread_cond_t *cond, unsigned ms)
{
	wait_ns(s, cond, clock_mono_ns() + ms * 1000000ull);
}

/* There is something to commit, or an order for a node that waits. */
static void wake(struct server *s)
{
	s->is_due = true;
	(void)pthread_cond_signal(&s->wake);
}

/* Whoever only looks or renews has changed nothing, and no node waits for it.
 */
static bool is_news(const struct ctl_request *request)
{
	return request->method != CTL_GET && !cd_request_is_renewal(request);
}

static void settle(struct server *s, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	uint64_t mark = cd_core_mark(s->core);
	enum cd_settled how;

	if (is_news(request) || cd_core_waiting(s->core))
		wake(s);
	while ((how = cd_core_settled(s->core, mark)) == CD_PENDING)
		wait_on(s, &s->settled, CD_HOLD_MS);
	if (how != CD_COMMITTED)
		cd_core_excuse(s->core, how, reply);
}

/* A leader whose ledger is silent is not asked for changes at once: etcd has
 * another leader of its own within two seconds. Nodes come again by themselves,
 * and would take all threads meanwhile. */
static void await_ledger(struct server *s, const struct ctl_request *request)
{
	uint64_t end = clock_mono_ms() + SURE_MS;
	bool is_node = strncmp(request->path, "/v1/nodes", 9) == 0;

	while (request->method != CTL_GET && !is_node && !s->ends &&
	       cd_core_leads(s->core) && !cd_core_is_sure(s->core) &&
	       clock_mono_ms() < end)
		wait_on(s, &s->settled, CD_TICK_MS);
}

static void handle(void *ctx, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	struct server *s = ctx;
	struct cd_held held;

	pthread_mutex_lock(&s->lock);
	await_ledger(s, request);
	cd_core_wall(s->core, (uint64_t)time(NULL));
	cd_core_handle(s->core, request, reply, &held);
	if (held.is_held && cd_waits_hold(&s->waits, request, &held)) {
		wake(s);
	} else {
		if (held.is_held)
			cd_core_answer(s->core, &held, reply);
		settle(s, request, reply);
		cd_core_audit(s->core, request, &held, reply);
	}
	pthread_mutex_unlock(&s->lock);
}

/* A renewal stages nothing, so where nothing else is being committed there is
 * nothing to wait for but the lock. Whoever has that for long (a plan of 10,000
 * tasks, all rows read anew) must not hold up the thread of other connections.
 */
static bool quick(void *ctx, const struct ctl_request *request,
		  struct ctl_reply *reply)
{
	struct server *s = ctx;
	struct timespec until;
	struct cd_held held;
	bool is_quick;

	if (!cd_request_is_renewal(request))
		return false;
	until = clock_timespec(clock_mono_ns() + QUICK_NS);
	if (pthread_mutex_clocklock(&s->lock, CLOCK_MONOTONIC, &until) != 0)
		return false;
	is_quick = cd_core_is_sure(s->core) && !cd_core_waiting(s->core);
	if (is_quick) {
		cd_core_wall(s->core, (uint64_t)time(NULL));
		cd_core_handle(s->core, request, reply, &held);
		cd_core_audit(s->core, request, &held, reply);
	}
	pthread_mutex_unlock(&s->lock);
	return is_quick;
}

/* A node has hung up, or the server ends. */
static void gone(void *ctx, uint64_t id)
{
	struct server *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (cd_waits_gone(&s->waits, s->core, id))
		wake(s);
	pthread_mutex_unlock(&s->lock);
}

static void answer_beats(struct server *s, struct ctl_server *http)
{
	s->is_due = false;
	cd_waits_answer(&s->waits, s->core, http);
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

/* Who was answered together asks again at about the same time: what comes first
 * waits for the others, for as many as there were, and no longer than half of
 * what a transaction takes. Else the first would have one of its own, and the
 * others would wait for that. */
static void gather(struct server *s)
{
	uint64_t end = clock_mono_ns() + s->commit_ns / 2;

	while (!s->ends && cd_core_waiting(s->core) < s->commit_count &&
	       clock_mono_ns() < end)
		wait_ns(s, &s->wake, end);
}

/* The lock is held and let go for as long as the disk takes. */
static void commit(struct server *s)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];
	uint64_t term = cd_core_term(s->core), start_ns;
	unsigned count;
	int err;

	if (!cd_core_leads(s->core) || !cd_core_waiting(s->core))
		return;
	gather(s);
	count = cd_core_batch(s->core, change);
	if (!count)
		return;
	pthread_mutex_unlock(&s->lock);
	start_ns = clock_mono_ns();
	err = ledger_commit(s->ledger, term, change, count);
	pthread_mutex_lock(&s->lock);
	s->commit_ns = u64_min(clock_mono_ns() - start_ns, COMMIT_NS_MAX);
	s->commit_count = count;
	if (err)
		log_err("controld", "%s", error_last());
	cd_core_committed(s->core, err);
	(void)pthread_cond_broadcast(&s->settled);
}

/* What one try to lead has brought, while the lock was not held. */
struct attempt {
	int lead_err, read_err;
	bool is_same; /* the rows are those that the core has */
	uint64_t term;
	char leader[LEDGER_WHO_MAX];
	char why[ERROR_TEXT_MAX];
	struct ledger_rows rows;
};

static void try_to_lead(struct server *s, struct attempt *a)
{
	a->lead_err = ledger_lead(s->ledger, s->address, &a->term);
	if (a->lead_err)
		(void)snprintf(a->why, sizeof(a->why), "%s", error_last());
	if (a->lead_err == -EBUSY && ledger_leader(s->ledger, a->leader))
		a->leader[0] = 0;
	if (a->lead_err == -EBUSY && s->ledger->is_unchanged && a->is_same)
		return;
	a->is_same = false;
	a->read_err = ledger_rows_read(s->ledger, &a->rows);
	if (a->read_err)
		(void)snprintf(a->why, sizeof(a->why), "%s", error_last());
}

/* Rows that are not as they should be are never used; rows that cannot be read
 * now leave those that are there, for who only looks. */
static int take_rows(struct server *s, const struct attempt *a)
{
	const char *leader = a->leader[0] ? a->leader : NULL;
	int err = a->read_err;

	if (err && err != -EBADMSG && err != -EPROTONOSUPPORT) {
		cd_core_resign(s->core, a->why);
		return 0;
	}
	if (!err) {
		cd_core_clear(s->core);
		err = ledger_rows_each(&a->rows, cd_core_row, s->core);
	}
	if (!err)
		return a->lead_err ? cd_core_ready(s->core, leader, a->why)
				   : cd_core_lead(s->core, a->term);
	return err;
}

/* Says what is wrong once, not twice a second. */
static void tell(struct server *s, const char *why)
{
	if (strcmp(why, s->told) != 0)
		log_warn("controld", "%s", why);
	(void)snprintf(s->told, sizeof(s->told), "%s", why);
}

/* Reads all rows; leads where it may, else only answers. The lock is held, and
 * let go while the ledger is asked: it may take as long as a network does.
 * Meanwhile nothing can be staged, because the core does not lead. */
static int load(struct server *s)
{
	struct attempt a = {.is_same = s->is_read};
	int err;

	pthread_mutex_unlock(&s->lock);
	try_to_lead(s, &a);
	pthread_mutex_lock(&s->lock);
	if (a.is_same)
		return 0;
	err = take_rows(s, &a);
	if (err) {
		/* Nothing of it is to be believed. */
		if (!a.read_err)
			(void)snprintf(a.why, sizeof(a.why), "%s",
				       error_last());
		cd_core_clear(s->core);
		cd_core_resign(s->core, a.why);
	}
	s->is_read = !err && !a.read_err;
	if (err || (a.lead_err && a.lead_err != -EBUSY))
		tell(s, a.why);
	else
		s->told[0] = 0;
	ledger_rows_free(&a.rows);
	(void)pthread_cond_broadcast(&s->settled);
	return err ? error_set(err, "%s", a.why) : 0;
}

/* It is sure to lead for less than the lease, because clocks differ. Where the
 * ledger does not answer that time runs out, and it is sure again with the next
 * answer; only a ledger that has another leader ends its term. */
static void keep(struct server *s)
{
	uint64_t sent_ns = clock_mono_ns(), term = cd_core_term(s->core);
	uint64_t lease_ns = s->ledger->lease_ns;
	int err;

	pthread_mutex_unlock(&s->lock);
	err = ledger_keep(s->ledger, term);
	pthread_mutex_lock(&s->lock);
	if (err == -ESTALE)
		cd_core_resign(s->core, error_last());
	else if (err)
		tell(s, error_last());
	else
		cd_core_keep(s->core, lease_ns ? sent_ns + lease_ns / 4 * 3
					       : UINT64_MAX);
	(void)pthread_cond_broadcast(&s->settled);
}

static void look_after(struct server *s)
{
	uint64_t now = clock_mono_ms();

	if (!cd_core_leads(s->core) && now - s->tried_ms >= LEAD_AGAIN_MS) {
		(void)!load(s); /* it has told */
		s->tried_ms = clock_mono_ms();
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
		answer_beats(s, d->server);
		if (!s->is_due &&
		    (!cd_core_leads(s->core) ||
		     cd_core_settled(s->core, cd_core_mark(s->core)) !=
			     CD_PENDING))
			wait_on(s, &s->wake, CD_TICK_MS);
	}
	s->ends = true;
	s->http = NULL;
	commit(s);
	cd_core_resign(s->core, "the controller ends");
	answer_beats(s, d->server); /* nodes go elsewhere */
	(void)pthread_cond_broadcast(&s->settled);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* ---- life --------------------------------------------------------------- */

static int allow(struct daemon *d)
{
	const struct ledger_place *p =
		&((const struct cd_serve_options *)d->self)->place;
	int err = daemon_allow_state(d);

	if (!err && p->store && ledger_path(p->store))
		err = confine_add_parent(&d->confine, CONFINE_WRITE,
					 ledger_path(p->store));
	if (!err)
		err = confine_add_parent(&d->confine, CONFINE_READ, p->ca);
	if (!err)
		err = confine_add_parent(&d->confine, CONFINE_READ, p->cert);
	return err ? err
		   : confine_add_parent(&d->confine, CONFINE_READ, p->key);
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

int cd_store_default(const char *rack, const char *name, char out[CD_STORE_MAX])
{
	char dir[STATEDIR_PATH_MAX];
	int err = statedir_path(rack, dir);

	if (!err)
		(void)snprintf(out, CD_STORE_MAX, "sqlite:%s/%.32s.control.db",
			       dir, name);
	return err;
}

static int open_ledger(struct daemon *d, struct server *s)
{
	const struct cd_serve_options *o = d->self;
	struct ledger_place place = o->place;
	char dir[STATEDIR_PATH_MAX], store[CD_STORE_MAX];
	int err;

	place.rack = d->rack;
	if (place.store)
		return ledger_open(&place, &s->ledger);
	err = statedir_make(d->rack, dir);
	if (!err)
		err = cd_store_default(d->rack, d->options.name, store);
	place.store = store;
	return err ? err : ledger_open(&place, &s->ledger);
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
	/* For standbys, and for who reads the ledger. */
	daemon_address(d, s->address);
	err = open_ledger(d, s);
	if (!err)
		err = open_core(d, s);
	if (err)
		return err;
	/* A ledger that cannot be believed ends the start; one that cannot be
	 * written, or that another controller has, does not. */
	s->tried_ms = clock_mono_ms();
	pthread_mutex_lock(&s->lock);
	err = load(s);
	if (!err && cd_core_leads(s->core))
		keep(s);
	pthread_mutex_unlock(&s->lock);
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
	.keeps_audit = true,
	.suffix = ".control",
	.handle = handle,
	.quick = quick,
	.routes = &cd_routes,
	.gone = gone,
	.allow = allow,
	.open = open_server,
	.run = run,
	.close = close_server,
};
