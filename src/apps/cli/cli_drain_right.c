/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on a node is moved with the right of the tenant that has it. The
 * administrator makes a token for that, which is taken back, and which ends a
 * minute after the last sign of life of this process: a thread renews it.
 */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli_drain.h"
#include "cli_tenant.h"

enum {
	TOKEN_S = 60, /* if nobody renews it */
	RENEW_S = 20,
	DEADLINE_MS = 60000, /* of each request: nobody waits at a screen */
	ID_BYTES = 24,
};

/* The tenant default has the token of this machine's programs, which libaquifer
 * finds by itself: no token, no thread. */
struct cli_drain_right {
	struct cli_admin *m;
	char tenant[CLI_TENANT_NAME_MAX + 1];
	char token[SECRET_TEXT]; /* "": that one */
	char id[ID_BYTES];
	char path[CLIENT_ADDRESS_MAX]; /* of the token */
	pthread_t thread;
	bool is_renewed; /* there is a thread */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stops; /* under the lock */
};

/* ---- renewing it --------------------------------------------------------- */

static void renew(struct cli_drain_right *r, struct cli_admin *m)
{
	json_t *answer = NULL;

	/* What cannot be renewed ends, and what is moved with it says so. */
	if (cli_admin_ask(m, 0, "PATCH", r->path,
			  json_pack("{s:i}", "ttl_s", TOKEN_S), &answer))
		log_warn("cli", "%s", error_last());
	json_decref(answer);
}

static void *renew_main(void *arg)
{
	struct cli_drain_right *r = arg;
	struct cli_admin m;

	if (cli_admin_open_control(&m, RACK_TOKEN_ADMIN))
		return NULL;
	pthread_mutex_lock(&r->lock);
	while (!r->stops) {
		const struct timespec until = {
			.tv_sec = (time_t)(clock_mono_ms() / 1000) + RENEW_S};

		if (pthread_cond_timedwait(&r->wake, &r->lock, &until) !=
		    ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&r->lock);
		renew(r, &m);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	cli_admin_close(&m);
	return NULL;
}

/* ---- taking and giving back ---------------------------------------------- */

static int make_token(struct cli_drain_right *r)
{
	char path[CLIENT_ADDRESS_MAX], rest[ID_BYTES + 16];
	json_t *answer = NULL, *tree;
	int err = cli_admin_path(path, r->tenant, "/tokens");

	if (!err)
		err = secret_make(r->token);
	if (!err)
		err = cli_admin_ask(r->m, 0, "POST", path,
				    json_pack("{s:s, s:i}", "token", r->token,
					      "ttl_s", TOKEN_S),
				    &answer);
	if (!err) {
		(void)snprintf(
			r->id, sizeof(r->id), "%" JSON_INTEGER_FORMAT,
			json_integer_value(json_object_get(answer, "id")));
		(void)snprintf(rest, sizeof(rest), "/tokens/%s", r->id);
		err = cli_admin_path(r->path, r->tenant, rest);
	}
	json_decref(answer);
	if (err)
		return err;
	tree = json_object();
	/* A node that has not heard it refuses it in words. */
	(void)cli_tenant_await(r->m, "a token for the move is made", tree);
	json_decref(tree);
	r->is_renewed = thread_start(&r->thread, renew_main, r) == 0;
	return 0;
}

int cli_drain_right_open(struct cli_admin *m, const char *tenant,
			 struct cli_drain_right **out)
{
	struct cli_drain_right *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;
	int err = 0;

	if (!r)
		return error_set(-ENOMEM, "no memory left");
	r->m = m;
	(void)snprintf(r->tenant, sizeof(r->tenant), "%s", tenant);
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (strcmp(tenant, "default") != 0)
		err = make_token(r);
	if (err)
		cli_drain_right_close(r);
	else
		*out = r;
	return err;
}

void cli_drain_right_close(struct cli_drain_right *r)
{
	json_t *answer = NULL;

	if (!r)
		return;
	if (r->is_renewed) {
		pthread_mutex_lock(&r->lock);
		r->stops = true;
		pthread_cond_signal(&r->wake);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
	}
	secret_forget(r->token);
	if (r->id[0] &&
	    cli_admin_ask(r->m, 0, "DELETE", r->path, NULL, &answer))
		cli_error("token %s of tenant %s is left, for %d s at most: %s",
			  r->id, r->tenant, TOKEN_S, error_last());
	json_decref(answer);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

bool cli_drain_right_is_of(const struct cli_drain_right *r, const char *tenant)
{
	return r && strcmp(r->tenant, tenant) == 0;
}

int cli_drain_right_rack(const struct cli_drain_right *r, struct aq_rack **out)
{
	struct aq_rack *rack = NULL;
	int err = aq_rack_open(NULL, &rack);

	if (!err && r->token[0])
		err = aq_rack_set_token(rack, r->token);
	if (!err)
		err = aq_rack_set_deadline(rack, DEADLINE_MS);
	if (err)
		aq_rack_close(rack);
	else
		*out = rack;
	return err;
}
