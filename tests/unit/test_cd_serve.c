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

static unsigned call(struct rig *r, enum ctl_method method, const char *path,
		     const char *token, const char *body)
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
	ctl_reply_release(&reply);
	return status;
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

	bed_make(&r.bed);
	make_tenant(&r.bed, 0);
	(void)beat(&r.bed, "m0", join(&r.bed, "m0", FIRST), 0, 0, 0, 0);
	r.slow.base.ops = &slow_ops;
	r.slow.inner = r.bed.ledger;
	r.slow.is_closed = true;
	pthread_mutex_init(&r.slow.lock, NULL);
	pthread_cond_init(&r.slow.moved, NULL);
	cd_server_init(&r.server);
	r.server.core = r.bed.core;
	r.server.ledger = &r.slow.base;
	assert_int_equal(cd_serve_start(&r.server), 0);

	assert_int_equal(pthread_create(&thread, NULL, change, &r), 0);
	pthread_mutex_lock(&r.slow.lock);
	while (!r.slow.is_inside)
		pthread_cond_wait(&r.slow.moved, &r.slow.lock);
	pthread_mutex_unlock(&r.slow.lock);
	/* Each of these would wait for ever. */
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		assert_int_equal(
			call(&r, CTL_GET, hints[i], TOKEN_TENANT, NULL), 200);
	assert_int_equal(call(&r, CTL_POST, "/v1/place", TOKEN_TENANT,
			      "{\"size\":4096}"),
			 200);
	pthread_mutex_lock(&r.slow.lock);
	assert_true(r.slow.is_inside);
	r.slow.is_closed = false;
	pthread_cond_broadcast(&r.slow.moved);
	pthread_mutex_unlock(&r.slow.lock);
	pthread_join(thread, &status);
	assert_int_equal((uintptr_t)status, 201);
	/* What is certain is what was asked for. */
	assert_int_equal(
		call(&r, CTL_GET, "/v1/tenants/late", TOKEN_ADMIN, NULL), 200);
	cd_serve_stop(&r.server);
	cd_server_destroy(&r.server);
	pthread_cond_destroy(&r.slow.moved);
	pthread_mutex_destroy(&r.slow.lock);
	bed_end(&r.bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_only_looks_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
