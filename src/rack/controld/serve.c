/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's process: beats that wait, its page, its life. See
 * cd_serve_priv.h for its threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/statedir.h"
#include "cd_serve_priv.h"

/* ---- waiting ------------------------------------------------------------- */

void cd_server_wait_ns(struct cd_server *s, pthread_cond_t *cond,
		       uint64_t until_ns)
{
	const struct timespec until = clock_timespec(until_ns);

	(void)pthread_cond_timedwait(cond, &s->lock, &until);
}

void cd_server_wait(struct cd_server *s, pthread_cond_t *cond, unsigned ms)
{
	cd_server_wait_ns(s, cond, clock_mono_ns() + ms * 1000000ull);
}

void cd_server_due(struct cd_server *s)
{
	s->is_due = true;
	(void)pthread_cond_signal(&s->due);
}

/* ---- beats --------------------------------------------------------------- */

static void answer_beats(struct cd_server *s, struct ctl_server *http)
{
	s->is_due = false;
	cd_waits_answer(&s->waits, s->core, http);
}

/* ---- the page ----------------------------------------------------------- */

/* A browser that was here before finds the page where it was; else it is the
 * first port that is free. The lock is held. */
static int open_page(void *ctx, uint16_t *port)
{
	struct cd_server *s = ctx;
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
static void reopen_page(struct cd_server *s)
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

/* ---- the daemon's thread ------------------------------------------------ */

static void tick(struct cd_server *s)
{
	cd_core_tick(s->core, (uint64_t)time(NULL));
	reopen_page(s);
	if (cd_core_waiting(s->core))
		(void)pthread_cond_signal(&s->staged);
}

static int run(struct daemon *d)
{
	struct cd_server *s = d->served;
	uint64_t next_ms = 0;
	int err = cd_serve_start(s);

	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	s->http = d->server;
	while (!daemon_is_ending(d, 0)) {
		uint64_t now = clock_mono_ms();

		if (now >= next_ms) {
			tick(s);
			next_ms = now + CD_TICK_MS;
		}
		answer_beats(s, d->server);
		cd_server_settle(s);
		if (!s->is_due)
			cd_server_wait(s, &s->due, CD_TICK_MS);
	}
	pthread_mutex_unlock(&s->lock);
	cd_serve_stop(s);
	pthread_mutex_lock(&s->lock);
	cd_serve_commit(s);
	cd_core_resign(s->core, "the controller ends");
	cd_server_settle(s);
	s->http = NULL;
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

	if (!err)
		err = confine_add(
			&d->confine, CONFINE_READ,
			config_string(d->config, "rack", "vault_key_file"));
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

/* Of S3, where that is the vault. */
static int read_vault_key(const struct daemon *d, struct vault_key *out)
{
	const char *path = config_string(d->config, "rack", "vault_key_file");

	*out = (struct vault_key){0};
	if (!vault_place_is_s3(config_string(d->config, "rack", "vault")))
		return 0;
	if (!path[0])
		return error_set(-EINVAL,
				 "rack.vault is S3: rack.vault_key_file has to "
				 "name a file with its credentials");
	return vault_key_read(path, out);
}

static int open_core(struct daemon *d, struct cd_server *s)
{
	char admin[SECRET_TEXT], node[SECRET_TEXT], own[SECRET_TEXT];
	struct vault_key key;
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
		.vault = config_string(d->config, "rack", "vault"),
		.vault_key = &key,
	};
	int err = read_vault_key(d, &key);

	if (!err)
		err = daemon_token(d, RACK_TOKEN_ADMIN, admin);

	if (!err)
		err = daemon_token(d, RACK_TOKEN_NODE, node);
	if (!err)
		err = daemon_token(d, RACK_TOKEN_DEFAULT, own);
	if (!err)
		err = cd_core_create(&config, &s->core);
	secret_forget(admin);
	secret_forget(node);
	secret_forget(own);
	vault_key_forget(&key);
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

static int open_ledger(struct daemon *d, struct cd_server *s)
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

void cd_server_init(struct cd_server *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->staged, &attr);
	pthread_cond_init(&s->due, &attr);
	pthread_cond_init(&s->settled, &attr);
	pthread_condattr_destroy(&attr);
}

void cd_server_destroy(struct cd_server *s)
{
	pthread_cond_destroy(&s->settled);
	pthread_cond_destroy(&s->due);
	pthread_cond_destroy(&s->staged);
	pthread_mutex_destroy(&s->lock);
}

static int open_server(struct daemon *d)
{
	struct cd_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory for the controller");
	d->served = s;
	s->env.ops = &daemon_env_ops;
	cd_server_init(s);
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
	err = cd_serve_load(s);
	if (!err && cd_core_leads(s->core))
		cd_serve_keep(s);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int close_server(struct daemon *d)
{
	struct cd_server *s = d->served;

	if (!s)
		return 0;
	if (s->core)
		cd_core_destroy(s->core);
	ledger_close(s->ledger);
	cd_unsettled_free(&s->unsettled);
	cd_server_destroy(s);
	free(s);
	return 0;
}

const struct daemon_kind cd_daemon = {
	.what = "a controller",
	.keeps_audit = true,
	.suffix = ".control",
	.handle = cd_server_handle,
	.quick = cd_server_quick,
	.routes = &cd_routes,
	.gone = cd_server_gone,
	.allow = allow,
	.open = open_server,
	.run = run,
	.close = close_server,
};
