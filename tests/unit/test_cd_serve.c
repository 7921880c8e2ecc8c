/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's threads: a ledger that hangs holds up who changes something,
 * and nobody who only looks for nodes and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "cd_bed.h"
#include "controld/cd_serve_priv.h"

/* A ledger whose next commit waits until it is let go. */
struct slow {
	struct ledger base;
	struct ledger *inner;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool is_closed, is_inside;
};

static struct slow *of(struct ledger *l)
{
	return container_of(l, struct slow, base);
}

static int slow_keep(struct ledger *l, uint64_t term)
{
	return ledger_keep(of(l)->inner, term);
}

static int slow_commit(struct ledger *l, uint64_t term,
		       const struct ledger_change *change, unsigned count)
{
	struct slow *s = of(l);

	pthread_mutex_lock(&s->lock);
	s->is_inside = true;
	pthread_cond_broadcast(&s->moved);
	while (s->is_closed)
		pthread_cond_wait(&s->moved, &s->lock);
	s->is_inside = false;
	pthread_mutex_unlock(&s->lock);
	return ledger_commit(s->inner, term, change, count);
}

static const struct ledger_ops slow_ops = {.keep = slow_keep,
					   .commit = slow_commit};

struct rig {
	struct bed bed;
	struct slow slow;
	struct cd_server server;
};

/* Its words are in `text`, if that is not NULL. */
static unsigned call_text(struct rig *r, enum ctl_method method,
			  const char *path, const char *token, const char *body,
			  char text[256])
{
	struct ctl_request q = {.method = method,
				.path = path,
				.token = token,
				.body = body,
				.body_bytes = body ? strlen(body) : 0};
	struct ctl_reply reply = {0};
	unsigned status;

	cd_daemon.handle(&r->server, &q, &reply);
	status = reply.status;
	if (text)
		(void)snprintf(text, 256, "%.*s", (int)reply.body_bytes,
			       reply.body ? reply.body : "");
	ctl_reply_release(&reply);
	return status;
}

static unsigned call(struct rig *r, enum ctl_method method, const char *path,
		     const char *token, const char *body)
{
	return call_text(r, method, path, token, body, NULL);
}

static void rig_begin(struct rig *r)
{
	bed_make(&r->bed);
	make_tenant(&r->bed, 0);
	(void)beat(&r->bed, "m0", join(&r->bed, "m0", FIRST), 0, 0, 0, 0);
	r->slow.base.ops = &slow_ops;
	r->slow.inner = r->bed.ledger;
	r->slow.is_closed = true;
	pthread_mutex_init(&r->slow.lock, NULL);
	pthread_cond_init(&r->slow.moved, NULL);
	cd_server_init(&r->server);
	r->server.core = r->bed.core;
	r->server.ledger = &r->slow.base;
	assert_int_equal(cd_serve_start(&r->server), 0);
}

static void rig_end(struct rig *r)
{
	cd_serve_stop(&r->server);
	cd_server_destroy(&r->server);
	pthread_cond_destroy(&r->slow.moved);
	pthread_mutex_destroy(&r->slow.lock);
	bed_end(&r->bed);
}

/* Until the ledger has something to commit. */
static void wait_inside(struct rig *r)
{
	pthread_mutex_lock(&r->slow.lock);
	while (!r->slow.is_inside)
		pthread_cond_wait(&r->slow.moved, &r->slow.lock);
	pthread_mutex_unlock(&r->slow.lock);
}

static void let_go(struct rig *r)
{
	pthread_mutex_lock(&r->slow.lock);
	assert_true(r->slow.is_inside);
	r->slow.is_closed = false;
	pthread_cond_broadcast(&r->slow.moved);
	pthread_mutex_unlock(&r->slow.lock);
	/* The server knows it, too. */
	pthread_mutex_lock(&r->server.lock);
	while (r->server.flight_ns)
		cd_server_wait(&r->server, &r->server.settled, CD_TICK_MS);
	pthread_mutex_unlock(&r->server.lock);
}

static void *change(void *arg)
{
	struct rig *r = arg;
	unsigned status = call(r, CTL_POST, "/v1/tenants", TOKEN_ADMIN,
			       "{\"name\":\"late\"}");

	return (void *)(uintptr_t)status;
}

static void who_only_looks_does_not_wait(void **state)
{
	static const char *const hints[] = {"/v1/status", "/v1/nodes",
					    "/v1/names/r", "/metrics",
					    "/v1/overview"};
	struct rig r = {0};
	pthread_t thread;
	void *status;

	rig_begin(&r);
	assert_int_equal(pthread_create(&thread, NULL, change, &r), 0);
	wait_inside(&r);
	/* Each of these would wait for ever. */
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		assert_int_equal(
			call(&r, CTL_GET, hints[i], TOKEN_TENANT, NULL), 200);
	assert_int_equal(call(&r, CTL_POST, "/v1/place", TOKEN_TENANT,
			      "{\"size\":4096}"),
			 200);
	let_go(&r);
	pthread_join(thread, &status);
	assert_int_equal((uintptr_t)status, 201);
	/* What is certain is what was asked for. */
	assert_int_equal(
		call(&r, CTL_GET, "/v1/tenants/late", TOKEN_ADMIN, NULL), 200);
	rig_end(&r);
}

/* A disk that does not come back: nobody waits longer than callers do. */
static void a_ledger_that_hangs_refuses_changes(void **state)
{
	struct rig r = {0};
	char text[256];
	pthread_t thread;
	void *status;

	(void)state;
	rig_begin(&r);
	assert_int_equal(pthread_create(&thread, NULL, change, &r), 0);
	wait_inside(&r);
	pthread_mutex_lock(&r.server.lock);
	assert_true(r.server.flight_ns != 0);
	r.server.flight_ns -= (CD_STALL_MS + 1000) * 1000000ull;
	pthread_cond_broadcast(&r.server.settled);
	pthread_mutex_unlock(&r.server.lock);
	/* Who waits may see it or not; who comes has changed nothing. */
	pthread_join(thread, &status);
	assert_int_equal((uintptr_t)status, 503);
	assert_int_equal(call_text(&r, CTL_POST, "/v1/tenants", TOKEN_ADMIN,
				   "{\"name\":\"next\"}", text),
			 503);
	assert_non_null(strstr(text, "nothing was changed: the ledger has not "
				     "answered for"));
	assert_int_equal(call(&r, CTL_GET, "/v1/nodes", TOKEN_TENANT, NULL),
			 200);
	assert_int_equal(
		call_text(&r, CTL_GET, "/v1/tenants", TOKEN_ADMIN, NULL, text),
		503);
	assert_non_null(strstr(text, "the ledger does not answer"));
	let_go(&r);
	/* It is there again: what was begun has happened, what came has not. */
	assert_int_equal(call(&r, CTL_POST, "/v1/tenants", TOKEN_ADMIN,
			      "{\"name\":\"more\"}"),
			 201);
	assert_int_equal(
		call(&r, CTL_GET, "/v1/tenants/late", TOKEN_ADMIN, NULL), 200);
	assert_int_equal(
		call(&r, CTL_GET, "/v1/tenants/next", TOKEN_ADMIN, NULL), 404);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_only_looks_does_not_wait),
		cmocka_unit_test(a_ledger_that_hangs_refuses_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
