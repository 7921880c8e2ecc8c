/* SPDX-License-Identifier: Apache-2.0 */
/* The conductor with subjects that behave, fail, die and talk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/conduct.h"
#include "bench/peers.h"

static const struct conduct_options brief = {.rounds = 2, .window_ns = 2000000};

static int ready(struct side *s)
{
	return 0;
}

static int unready(struct side *s)
{
	return side_fail(s, -5, "no such thing");
}

static void done(struct side *s)
{
}

/* 1,000 operations of 50 ticks each. */
static int steady(struct side *s, uint64_t window_ns, struct side_result *out)
{
	out->ops = 1000;
	for (int i = 0; i < 1000; i++)
		side_sample(s, 0, 50);
	usleep((useconds_t)(window_ns / 1000));
	return 0;
}

static int deadly(struct side *s, uint64_t window_ns, struct side_result *out)
{
	_exit(9);
}

static int broken(struct side *s, uint64_t window_ns, struct side_result *out)
{
	return side_fail(s, -5, "wrong bytes");
}

static const struct side_ops steady_ops = {
	.setup = ready, .measure = steady, .teardown = done};
static const struct side_ops unready_ops = {
	.setup = unready, .measure = steady, .teardown = done};
static const struct side_ops deadly_ops = {
	.setup = ready, .measure = deadly, .teardown = done};
static const struct side_ops broken_ops = {
	.setup = ready, .measure = broken, .teardown = done};

static const struct subject_desc steady_subject = {.name = "steady",
						   .ops = &steady_ops};
static const struct subject_desc unready_subject = {.name = "unready",
						    .ops = &unready_ops};
static const struct subject_desc deadly_subject = {.name = "deadly",
						   .ops = &deadly_ops};
static const struct subject_desc broken_subject = {.name = "broken",
						   .ops = &broken_ops};
static const struct subject_desc ring_subject = {.name = "ring",
						 .ops = &ring_peer_ops};
static const struct subject_desc absent_subject = {
	.name = "absent", .ucx_mode = "get64", .ucx_tls = "posix"};

/* One that fails, in any way, says why and leaves the others alone. */
static void failures_are_told(void **state)
{
	static struct conduct_track t[4];
	const struct subject_desc *desc[] = {&unready_subject, &deadly_subject,
					     &steady_subject, &broken_subject};
	struct conduct_summary sum;

	conduct_run(t, desc, 4, &brief);
	assert_string_equal(t[0].why, "unready client: no such thing: "
				      "Input/output error");
	assert_string_equal(t[1].why, "deadly client: died");
	assert_string_equal(t[3].why, "broken client: wrong bytes: "
				      "Input/output error");
	assert_string_equal(t[2].why, "");
	assert_false(conduct_is_sound(&t[0], 2));
	/* A busy machine may have cost it rounds, never its life. */
	if (t[2].kept > 0) {
		conduct_summarize(&t[2], METRIC_P50, &sum);
		assert_int_equal(sum.op_count, 1000 * t[2].kept);
		assert_int_equal(sum.sample_count, 1000 * t[2].kept);
		assert_true(sum.p50_ns > 0 && sum.p50_ns == sum.p99_ns);
		assert_true(sum.median == sum.p50_ns && sum.min <= sum.max);
	}
}

static void absent_helper_says_how(void **state)
{
	static struct conduct_track t[1];
	const struct subject_desc *desc[] = {&absent_subject};

	conduct_run(t, desc, 1, &brief);
	assert_non_null(strstr(t[0].why, "apt-get install libucx-dev"));
	assert_true(t[0].is_absent);
}

/* The ring keeps its place from round to round. */
static void ring_runs_rounds(void **state)
{
	static struct conduct_track t[1];
	const struct subject_desc *desc[] = {&ring_subject};
	struct conduct_summary sum;

	conduct_run(t, desc, 1, &brief);
	assert_string_equal(t[0].why, "");
	conduct_summarize(&t[0], METRIC_P50, &sum);
	assert_true(t[0].kept == 0 || sum.op_count > 10);
}

/* A forwarder between client and server answers, too, and keeps its place. */
static int echo(struct side *s)
{
	atomic_uint *word = (atomic_uint *)(void *)s->shared;
	unsigned from = s->role == SIDE_SERVER ? 2 : 1;

	while (!side_stopped(s)) {
		unsigned want = from;

		(void)atomic_compare_exchange_strong(word, &want, from + 1);
	}
	return 0;
}

static int relay(struct side *s, uint64_t window_ns, struct side_result *out)
{
	atomic_uint *word = (atomic_uint *)(void *)s->shared;

	atomic_store(word, 1);
	while (atomic_load(word) != 3)
		;
	out->ops = 1;
	return 0;
}

static void three_processes(void **state)
{
	static const struct side_ops ops = {.setup = ready,
					    .serve = echo,
					    .forward = echo,
					    .measure = relay,
					    .teardown = done};
	static const struct subject_desc subject = {
		.name = "three", .ops = &ops, .is_plain = true};
	const struct subject_desc *desc[] = {&subject};
	const struct conduct_options opt = {
		.rounds = 2, .window_ns = 2000000, .keep_all = true};
	static struct conduct_track t[1];

	conduct_run(t, desc, 1, &opt);
	assert_string_equal(t[0].why, "");
	assert_int_equal(t[0].kept, 2);
	assert_int_equal(t[0].shield, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_are_told),
		cmocka_unit_test(absent_helper_says_how),
		cmocka_unit_test(ring_runs_rounds),
		cmocka_unit_test(three_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
