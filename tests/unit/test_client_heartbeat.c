/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the heartbeats: who is told when, and what answers mean. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/heartbeat_plan.h"

enum {
	BONDS = 6,
	HEARTBEAT_MS = 1000,
	IDS = 2,
	ENGINE = CLIENT_NODE_MAX,
};

#define MS 1000000ull

struct rig {
	struct heartbeat_plan plan;
	struct list bonds;
	struct client_bond bond[BONDS];
	uint64_t now_ns;
	char named[64]; /* in the last look, such as "0a0b1c" */
	bool has_no_memory;
};

static bool name(void *ctx, uint32_t index, const struct client_bond *bond)
{
	struct rig *r = ctx;
	size_t at = strlen(r->named);

	if (r->has_no_memory)
		return false;
	snprintf(r->named + at, sizeof(r->named) - at, "%u%s", index, bond->id);
	return true;
}

/* Bonds a, b, ... to these targets. */
static void begin(struct rig *r, unsigned count, const uint32_t *targets)
{
	memset(r, 0, sizeof(*r));
	r->now_ns = 10000 * MS;
	list_init(&r->bonds);
	heartbeat_plan_init(&r->plan, IDS);
	for (unsigned i = 0; i < count; i++) {
		client_bond_init(&r->bond[i], targets[i]);
		r->bond[i].id[0] = (char)('a' + i);
		list_append(&r->bonds, &r->bond[i].link);
	}
}

/* One look `ms` later; whatever is due is sent. */
static const char *look(struct rig *r, unsigned ms)
{
	r->now_ns += ms * MS;
	r->named[0] = '\0';
	heartbeat_plan_look(&r->plan, &r->bonds, HEARTBEAT_MS, r->now_ns, name,
			    r);
	for (uint32_t i = 0; i < HEARTBEAT_TARGETS; i++)
		if (heartbeat_plan_is_due(&r->plan, i))
			heartbeat_plan_start(&r->plan, i, r->now_ns);
	return r->named;
}

static enum heartbeat_loss end(struct rig *r, uint32_t index, int err)
{
	return heartbeat_plan_end(&r->plan, index, err, false, r->now_ns);
}

static uint64_t wait_ms(const struct rig *r)
{
	return heartbeat_plan_wait_ns(&r->plan, HEARTBEAT_MS, r->now_ns) / MS;
}

static void test_no_target_waits_for_another(void **state)
{
	const uint32_t targets[] = {0, 1, 0, 2};
	struct rig r;

	begin(&r, 4, targets);
	assert_string_equal(look(&r, 0), "0a1b0c2d");
	assert_int_equal(end(&r, 1, 0), HEARTBEAT_LOSS_SOME);
	assert_int_equal(end(&r, 2, 0), HEARTBEAT_LOSS_SOME);
	assert_int_equal(wait_ms(&r), 900);
	assert_string_equal(look(&r, 899), "");
	assert_string_equal(look(&r, 1), "1b2d");
	/* Only now does the first one answer. */
	assert_int_equal(end(&r, 0, 0), HEARTBEAT_LOSS_SOME);
	assert_int_equal(wait_ms(&r), 0);
	assert_string_equal(look(&r, 0), "0a0c");
}

static void test_those_that_did_not_fit_are_next(void **state)
{
	const uint32_t targets[] = {0, 0, 0, 0, 0};
	struct rig r;

	begin(&r, 5, targets);
	assert_string_equal(look(&r, 0), "0a0b");
	assert_int_equal(wait_ms(&r), 1000);
	assert_int_equal(end(&r, 0, 0), HEARTBEAT_LOSS_SOME);
	assert_int_equal(wait_ms(&r), 0);
	assert_string_equal(look(&r, 1), "0c0d");
	/* It does not answer: the rest goes on, but not at once. */
	r.now_ns += CLIENT_HEARTBEAT_TIMEOUT_MS * MS;
	assert_int_equal(end(&r, 0, -EHOSTDOWN), HEARTBEAT_LOSS_NONE);
	assert_int_equal(wait_ms(&r), 100);
	assert_string_equal(look(&r, 99), "");
	assert_string_equal(look(&r, 1), "0e");
	assert_int_equal(end(&r, 0, 0), HEARTBEAT_LOSS_SOME);
	assert_string_equal(look(&r, 900), "0a0b");
	/* Those that did not fit have gone meanwhile: nothing is sent. */
	for (unsigned i = 2; i < 5; i++)
		list_remove(&r.bond[i].link);
	assert_int_equal(end(&r, 0, 0), HEARTBEAT_LOSS_SOME);
	assert_string_equal(look(&r, 0), "");
	assert_int_equal(wait_ms(&r), 900);
	assert_string_equal(look(&r, 900), "0a0b");
}

static void test_what_cannot_be_sent_is_tried_again(void **state)
{
	const uint32_t targets[] = {0};
	struct rig r;

	begin(&r, 1, targets);
	r.has_no_memory = true;
	assert_string_equal(look(&r, 0), "");
	assert_int_equal(wait_ms(&r), CLIENT_KEEP_MS);
	r.has_no_memory = false;
	assert_string_equal(look(&r, CLIENT_KEEP_MS), "0a");
	heartbeat_plan_fail(&r.plan, 0, r.now_ns);
	assert_int_equal(wait_ms(&r), CLIENT_KEEP_MS);
	assert_string_equal(look(&r, CLIENT_KEEP_MS), "0a");
}

static bool is_b(void *ctx, const char *id)
{
	return strcmp(id, "b") == 0;
}

static void test_who_is_lost(void **state)
{
	const uint32_t targets[] = {0, 0, 1, ENGINE};
	struct rig r;

	begin(&r, 4, targets);
	assert_int_equal(strlen(look(&r, 0)), 9);
	/* A quick refusal by the system is certain; one by a listener that
	 * does not look is not, nor is a late one. Engines can be replaced. */
	assert_int_equal(end(&r, 0, -EHOSTDOWN), HEARTBEAT_LOSS_ALL);
	assert_int_equal(
		heartbeat_plan_end(&r.plan, 0, -EHOSTDOWN, true, r.now_ns),
		HEARTBEAT_LOSS_NONE);
	assert_int_equal(end(&r, 0, -ESTALE), HEARTBEAT_LOSS_ALL);
	assert_int_equal(end(&r, 0, -EPROTO), HEARTBEAT_LOSS_NONE);
	r.now_ns += CLIENT_HEARTBEAT_TIMEOUT_MS * MS;
	assert_int_equal(end(&r, 0, -EHOSTDOWN), HEARTBEAT_LOSS_NONE);
	assert_int_equal(end(&r, ENGINE, -EHOSTDOWN), HEARTBEAT_LOSS_SILENT);
	assert_int_equal(end(&r, ENGINE, -ESTALE), HEARTBEAT_LOSS_ALL);

	heartbeat_plan_lose(&r.plan, 0, &r.bonds, is_b, NULL);
	assert_false(client_bond_is_lost(&r.bond[0]));
	assert_true(client_bond_is_lost(&r.bond[1]));
	heartbeat_plan_lose(&r.plan, ENGINE, &r.bonds, NULL, NULL);
	assert_true(client_bond_is_lost(&r.bond[3]));
	assert_false(client_bond_is_lost(&r.bond[2]));
}

/* Who keeps alive what another process does is not lost by silence. */
static void test_who_is_patient(void **state)
{
	const uint32_t targets[] = {ENGINE, ENGINE, ENGINE + 1};
	struct rig r;

	begin(&r, 3, targets);
	r.bond[0].is_patient = r.bond[2].is_patient = true;
	(void)look(&r, 0);
	heartbeat_plan_hear(&r.plan, ENGINE, &r.bonds, true);
	assert_true(client_bond_is_silent(&r.bond[0]));
	assert_false(client_bond_is_lost(&r.bond[0]));
	assert_true(client_bond_is_lost(&r.bond[1]));
	assert_false(client_bond_is_silent(&r.bond[2]));
	heartbeat_plan_hear(&r.plan, ENGINE, &r.bonds, false);
	assert_false(client_bond_is_silent(&r.bond[0]));
	/* What the engine says itself is certain. */
	heartbeat_plan_lose(&r.plan, ENGINE, &r.bonds, NULL, NULL);
	assert_true(client_bond_is_lost(&r.bond[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_target_waits_for_another),
		cmocka_unit_test(test_those_that_did_not_fit_are_next),
		cmocka_unit_test(test_what_cannot_be_sent_is_tried_again),
		cmocka_unit_test(test_who_is_lost),
		cmocka_unit_test(test_who_is_patient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
