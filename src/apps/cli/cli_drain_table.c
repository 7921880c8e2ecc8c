/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table moves by its next generation: it is made on nodes that take something
 * new, all keys are copied while programs go on, and the old one is dropped
 * (far/kv/kv_grow.c). Whoever dies over it is followed by another client of the
 * table. It is done with the right of the table's tenant; the administrator
 * makes a token for the time that it takes.
 */
#include <aquifer/aquifer.h>
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_drain.h"
#include "cli_tenant.h"

enum {
	TOKEN_S = 3600,	     /* if nobody takes it back */
	DEADLINE_MS = 60000, /* of each request: nobody waits at a screen */
	BUSY_MS = 60000,     /* another client is resizing the table */
	LOOK_MS = 50,
	ID_BYTES = 24,
};

/* A token of the tenant. The tenant default has that of this machine's
 * programs, which libaquifer finds by itself. */
struct right {
	char token[SECRET_TEXT]; /* "": that one */
	char id[ID_BYTES];
};

static int right_take(struct cli_admin *m, const char *tenant, struct right *r)
{
	char path[CLIENT_ADDRESS_MAX];
	json_t *answer = NULL, *tree;
	int err;

	*r = (struct right){0};
	if (strcmp(tenant, "default") == 0)
		return 0;
	err = cli_admin_path(path, tenant, "/tokens");
	if (!err)
		err = secret_make(r->token);
	if (!err)
		err = cli_admin_ask(m, 0, "POST", path,
				    json_pack("{s:s, s:i}", "token", r->token,
					      "ttl_s", TOKEN_S),
				    &answer);
	if (!err) {
		(void)snprintf(
			r->id, sizeof(r->id), "%" JSON_INTEGER_FORMAT,
			json_integer_value(json_object_get(answer, "id")));
		tree = json_object();
		/* A node that has not heard it refuses it in words. */
		(void)cli_tenant_await(m, "a token for the move is made", tree);
		json_decref(tree);
	}
	json_decref(answer);
	return err;
}

static void right_give(struct cli_admin *m, const char *tenant, struct right *r)
{
	char rest[ID_BYTES + 16], path[CLIENT_ADDRESS_MAX];
	json_t *answer = NULL;

	secret_forget(r->token);
	if (!r->id[0])
		return;
	(void)snprintf(rest, sizeof(rest), "/tokens/%s", r->id);
	if (cli_admin_path(path, tenant, rest) == 0 &&
	    cli_admin_ask(m, 0, "DELETE", path, NULL, &answer))
		cli_error("token %s of tenant %s is left, for %d s at most: %s",
			  r->id, tenant, TOKEN_S, error_last());
	json_decref(answer);
}

static int resize(struct aq_kv_client *client)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	const struct aq_kv_options same = {0};
	uint64_t end_ms = clock_mono_ms() + BUSY_MS;
	int err;

	while ((err = aq_kv_resize(client, &same)) == -EBUSY &&
	       clock_mono_ms() < end_ms)
		(void)nanosleep(&pause, NULL);
	return err;
}

static int move(const struct right *r, const char *table)
{
	struct aq_kv_client *client = NULL;
	struct aq_rack *rack = NULL;
	struct aq_kv *kv = NULL;
	int err = aq_rack_open(NULL, &rack);

	if (!err && r->token[0])
		err = aq_rack_set_token(rack, r->token);
	if (!err)
		err = aq_rack_set_deadline(rack, DEADLINE_MS);
	if (!err)
		err = aq_kv_open(rack, table, &kv);
	if (!err)
		err = aq_kv_client_open(kv, NULL, &client);
	if (!err)
		err = resize(client);
	aq_kv_client_close(client);
	aq_kv_close(kv);
	aq_rack_close(rack);
	return err;
}

int cli_drain_table(struct cli_admin *m, const char *tenant, const char *table)
{
	char why[ERROR_TEXT_MAX];
	struct right r;
	int err = right_take(m, tenant, &r);

	if (!err)
		err = move(&r, table);
	(void)snprintf(why, sizeof(why), "%s", err ? error_last() : "");
	right_give(m, tenant, &r);
	return err ? error_set(err, "%s", why) : 0;
}
