/* SPDX-License-Identifier: Apache-2.0 */
/* The census: sums of what clients publish, which never fall, by tenant, and
 * files of clients that lie. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants four of them. */
#include <cmocka.h>

#include "base/rng.h"
#include "base/tally.h"
#include "control/ctl_metrics.h"
#include "memnode/census.h"

#define SECOND 1000000000ull

struct fixture {
	char dir[64];
	struct mem_census *census;
	uint64_t now_ns;
	char *text; /* of the last look */
};

static void start(struct fixture *f)
{
	*f = (struct fixture){.now_ns = SECOND};
	strcpy(f->dir, "/tmp/test_census_XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(census_create(f->dir, &f->census), 0);
}

static void stop(struct fixture *f)
{
	char command[128];

	census_destroy(f->census);
	free(f->text);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
}

/* What /metrics says, two seconds later. */
static const char *look(struct fixture *f, const char *tenant)
{
	struct ctl_metrics m;
	size_t bytes;

	f->now_ns += 2 * SECOND;
	free(f->text);
	assert_int_equal(ctl_metrics_init(&m), 0);
	census_metrics(f->census, &m, tenant, f->now_ns);
	assert_int_equal(ctl_metrics_end(&m, &f->text, &bytes), 0);
	return f->text;
}

static struct counter_file *client(struct fixture *f)
{
	struct counter_file *file;

	assert_int_equal(counter_file_create(f->dir, "client",
					     2 * TALLY_ENTRIES, 2, &file),
			 0);
	return file;
}

/* A line that begins like this. */
static void assert_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at || (at != text && at[-1] != '\n'))
		fail_msg("no %s in %s", line, text);
}

#define USERS "{kind=\"kv\",object=\"users\",tenant=\"ann\""

static void test_sums(void **state)
{
	struct counter_file *one, *two;
	struct tally *a, *b;
	struct fixture f;

	start(&f);
	assert_string_equal(look(&f, NULL), ""); /* nobody is there */
	one = client(&f);
	two = client(&f);
	a = tally_create(one, 0, TALLY_KV, "users", "ann");
	b = tally_create(two, 0, TALLY_KV, "users", "ann");
	assert_non_null(a);
	assert_non_null(b);
	tally_done_bytes(a, TALLY_READS, 100);
	hist_record(&a->latency, 1500);
	tally_done_bytes(b, TALLY_READS, 50);
	tally_done(b, TALLY_ERRORS);
	hist_record(&b->latency, 3000000);
	look(&f, NULL);
	assert_line(f.text, "aquifer_clients" USERS "} 2\n");
	assert_line(f.text, "aquifer_client_operations_total" USERS
			    ",operation=\"reads\"} 2\n");
	assert_line(f.text, "aquifer_client_bytes_total" USERS
			    ",direction=\"read\"} 150\n");
	assert_line(f.text, "aquifer_client_errors_total" USERS "} 1\n");
	assert_line(f.text, "aquifer_client_latency_seconds_bucket" USERS
			    ",le=\"1e-06\"} 0\n");
	assert_line(f.text, "aquifer_client_latency_seconds_bucket" USERS
			    ",le=\"2e-06\"} 1\n");
	assert_line(f.text, "aquifer_client_latency_seconds_bucket" USERS
			    ",le=\"0.005\"} 2\n");
	assert_line(f.text,
		    "aquifer_client_latency_seconds_count" USERS "} 2\n");
	assert_line(f.text,
		    "aquifer_client_latency_seconds_sum" USERS "} 0.0030015\n");

	/* What a client did stays when it ends; what it did meanwhile is seen
	 * by the tick. */
	tally_done(a, TALLY_READS);
	f.now_ns += 2 * SECOND;
	census_tick(f.census, f.now_ns);
	counter_file_destroy(one);
	look(&f, NULL);
	assert_line(f.text, "aquifer_clients" USERS "} 1\n");
	assert_line(f.text, "aquifer_client_operations_total" USERS
			    ",operation=\"reads\"} 3\n");
	/* A new one of the same process counts from 0. */
	one = client(&f);
	a = tally_create(one, 0, TALLY_KV, "users", "ann");
	tally_done(a, TALLY_READS);
	look(&f, NULL);
	assert_line(f.text, "aquifer_client_operations_total" USERS
			    ",operation=\"reads\"} 4\n");
	counter_file_destroy(one);
	counter_file_destroy(two);
	stop(&f);
}

static void test_tenants(void **state)
{
	struct counter_file *one;
	struct fixture f;

	start(&f);
	one = client(&f);
	assert_non_null(tally_create(one, 0, TALLY_KV, "users", "ann"));
	assert_non_null(tally_create(one, 1, TALLY_INDEX, "secret", "bob"));
	look(&f, NULL);
	assert_non_null(strstr(f.text, "secret"));
	look(&f, "ann");
	assert_line(f.text, "aquifer_clients" USERS "} 1\n");
	assert_null(strstr(f.text, "bob"));
	assert_null(strstr(f.text, "secret"));
	assert_string_equal(look(&f, "carl"), "");
	counter_file_destroy(one);
	stop(&f);
}

/* ---- files of clients that lie ------------------------------------------- */

/* Sums do not fall, whatever a client does to its own numbers. */
static uint64_t reads_of(struct fixture *f)
{
	static const char line[] = "aquifer_client_operations_total" USERS
				   ",operation=\"reads\"} ";
	const char *at = strstr(look(f, NULL), line);

	return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

static void test_lies(void **state)
{
	uint64_t last = 0, now;
	struct counter_file *one;
	struct tally *a;
	struct fixture f;
	struct rng rng;

	start(&f);
	one = client(&f);
	a = tally_create(one, 0, TALLY_KV, "users", "ann");
	assert_non_null(a);
	rng_init(&rng, 1);
	for (unsigned i = 0; i < 50; i++) {
		a->count[TALLY_READS] = rng_u64(&rng) >> rng_below(&rng, 64);
		a->latency.bucket[rng_below(&rng, HIST_BUCKETS)] =
			rng_u64(&rng);
		now = reads_of(&f);
		assert_true(now >= last);
		last = now;
	}
	/* As many names as it likes: they are bounded, and quotes are no way
	 * out of a label. */
	for (unsigned i = 0; i < 600; i++) {
		snprintf(a->object, sizeof(a->object), "x\"} %u", i);
		(void)look(&f, "nobody");
	}
	look(&f, NULL);
	assert_non_null(strstr(f.text, "object=\"x\\\"} 599\""));
	assert_null(strstr(f.text, "object=\"x\"}"));
	now = 0;
	for (const char *p = f.text; (p = strstr(p, "\naquifer_clients{")); p++)
		now++;
	assert_true(now <= 256);
	counter_file_destroy(one);
	stop(&f);
}

/* A machine whose programs come and go has a place for those of today. */
static void test_names_that_nobody_has_any_more(void **state)
{
	struct counter_file *one, *two;
	struct tally *a;
	struct fixture f;
	char name[32];

	start(&f);
	one = client(&f);
	assert_non_null(tally_create(one, 0, TALLY_KV, "users", "ann"));
	for (unsigned i = 0; i < 300; i++) {
		two = client(&f);
		snprintf(name, sizeof(name), "t%u", i);
		a = tally_create(two, 0, TALLY_KV, name, "ann");
		assert_non_null(a);
		tally_done(a, TALLY_READS);
		look(&f, NULL);
		snprintf(name, sizeof(name), "object=\"t%u\"", i);
		assert_non_null(strstr(f.text, name));
		counter_file_destroy(two);
		/* Who lives keeps its own. */
		assert_line(f.text, "aquifer_clients" USERS "} 1\n");
		assert_null(strstr(f.text, "kind=\"other\""));
	}
	assert_null(strstr(f.text, "object=\"t0\""));
	counter_file_destroy(one);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_names_that_nobody_has_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
