/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine's process concludes from a switch's list of sessions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "engine/eng_priv.h"

#define TOLD_NS	 1000000000ull
#define ASKED_NS 2000000000ull

struct bed {
	struct eng eng;
	struct eng_switch at_switch;
	struct eng_session session[2];
};

/* Two sessions, 11 and 12, which run "a" of the switch was told. */
static struct bed *make(void)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->eng.at_switch = &b->at_switch;
	strcpy(b->eng.name, "e0");
	strcpy(b->at_switch.run, "a");
	for (unsigned i = 0; i < 2; i++) {
		struct eng_session *s = &b->session[i];

		*s = (struct eng_session){.slot = i,
					  .id = 11 + i,
					  .is_told = true,
					  .is_started = true,
					  .told_ns = TOLD_NS};
		b->eng.session[i] = s;
	}
	return b;
}

static void learn(struct bed *b, const char *text, uint64_t asked_ns)
{
	json_t *show = json_loads(text, 0, NULL);

	assert_non_null(show);
	eng_switch_learn(&b->eng, show, asked_ns);
	json_decref(show);
}

static void faults_and_requests_are_taken_over(void **state)
{
	struct bed *b = make();

	learn(b,
	      "{\"run\":\"a\",\"sessions\":[{\"id\":11,\"err\":0,"
	      "\"requests\":5},{\"id\":12,\"err\":112,\"requests\":0}]}",
	      ASKED_NS);
	assert_int_equal(eng_session_err(&b->session[0]), 0);
	assert_int_equal(eng_session_pending(&b->session[0]), 5);
	assert_int_equal(eng_session_err(&b->session[1]), -EHOSTDOWN);
	free(b);
}

static void no_two_sessions_have_the_same_numbers(void **state)
{
	struct bed *b = make();
	uint32_t first = eng_switch_free_qpn(&b->eng, 0xffffffff);

	assert_int_equal(first % 32, 0);
	b->session[0].ring.qpn = first;
	/* The next one is the first of all. */
	b->session[1].ring.qpn = eng_switch_free_qpn(&b->eng, 0xffffffff);
	assert_int_equal(b->session[1].ring.qpn, 0xc00000);
	assert_int_equal(eng_switch_free_qpn(&b->eng, 0xffffffff), 0xc00020);
	assert_int_equal(eng_switch_free_qpn(&b->eng, 0x40), 0xc00040);
	free(b);
}

static void what_the_switch_does_not_know_is_gone(void **state)
{
	struct bed *b = make();

	b->session[1].told_ns = ASKED_NS + 1; /* not when it was asked */
	learn(b, "{\"run\":\"a\",\"sessions\":[]}", ASKED_NS);
	assert_int_equal(eng_session_err(&b->session[0]), -ECONNRESET);
	assert_false(b->session[0].is_told);
	assert_int_equal(eng_session_err(&b->session[1]), 0);
	assert_true(b->session[1].is_told);
	free(b);
}

/* A switch that has nothing new lists nothing. */
static void what_is_not_listed_is_as_it_was(void **state)
{
	struct bed *b = make();

	learn(b,
	      "{\"run\":\"a\",\"changes\":7,\"sessions\":["
	      "{\"id\":11,\"requests\":5},{\"id\":12}]}",
	      ASKED_NS);
	assert_int_equal(b->at_switch.changes, 7);
	learn(b, "{\"run\":\"a\",\"changes\":7}", ASKED_NS);
	assert_int_equal(eng_session_err(&b->session[0]), 0);
	assert_int_equal(eng_session_pending(&b->session[0]), 5);
	/* By chance another run has changed as often. */
	learn(b, "{\"run\":\"b\",\"changes\":7}", ASKED_NS);
	assert_int_equal(eng_session_err(&b->session[0]), -ECONNRESET);
	assert_int_equal(eng_session_err(&b->session[1]), -ECONNRESET);
	free(b);
}

/* Whatever it says about sessions with these numbers. */
static void another_run_knows_none(void **state)
{
	struct bed *b = make();

	learn(b,
	      "{\"run\":\"b\",\"sessions\":[{\"id\":11,\"err\":0},"
	      "{\"id\":12,\"err\":0}]}",
	      ASKED_NS);
	assert_int_equal(eng_session_err(&b->session[0]), -ECONNRESET);
	assert_int_equal(eng_session_err(&b->session[1]), -ECONNRESET);
	assert_string_equal(b->at_switch.run, "b");
	free(b);
}

/* Of another process only what is broken; nothing while they may be claimed. */
static void strays_are_ours_or_broken(void **state)
{
	static const char *const show =
		"{\"run\":\"a\",\"sessions\":["
		"{\"id\":11},{\"id\":12},"
		"{\"id\":1,\"owner\":\"e0\",\"state\":\"run\"},"
		"{\"id\":2,\"owner\":\"e1\",\"state\":\"run\"},"
		"{\"id\":3,\"owner\":\"e1\",\"state\":\"broken\"}]}";
	struct eng_switch *w;
	struct bed *b = make();

	w = &b->at_switch;
	learn(b, show, ASKED_NS);
	learn(b, show, ASKED_NS + 1);
	assert_int_equal(w->stray_count, 2);
	assert_int_equal(w->stray[0].id, 1);
	assert_int_equal(w->stray[0].seen_ns, ASKED_NS);
	assert_int_equal(w->stray[1].id, 3);
	learn(b, "{\"run\":\"a\",\"sessions\":[{\"id\":11},{\"id\":12}]}",
	      ASKED_NS + 2);
	assert_int_equal(w->stray_count, 0);
	free(b);
}

static void nonsense_breaks_nothing(void **state)
{
	struct bed *b = make();

	learn(b, "{\"sessions\":[1,\"x\",{},{\"id\":\"11\",\"owner\":3}]}",
	      ASKED_NS);
	learn(b, "{\"run\":7,\"sessions\":4}", ASKED_NS);
	assert_int_equal(b->at_switch.stray_count, 0);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_and_requests_are_taken_over),
		cmocka_unit_test(no_two_sessions_have_the_same_numbers),
		cmocka_unit_test(what_the_switch_does_not_know_is_gone),
		cmocka_unit_test(what_is_not_listed_is_as_it_was),
		cmocka_unit_test(another_run_knows_none),
		cmocka_unit_test(strays_are_ours_or_broken),
		cmocka_unit_test(nonsense_breaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
