/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every figure of every system on the cost model: its points can be planned,
 * its claims name points and columns that there are, and its picture is
 * well-formed and has what was published. The results are made up; EDM's
 * figures, which are quick, are run by test_edm_report.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "figure_rows.h"
#include "figures/commands.h"
#include "figures/figures.h"

static const struct figure_system *const systems[] = {
	&offload_figures, &kv_figures,	 &switch_figures, &paging_figures,
	&model_figures,	  &walk_figures, &index_figures};

static unsigned count(const char *path, const char *word)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "re");
	unsigned n = 0;

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

/* How many published numbers it shows. */
static unsigned draw(struct figure_run *r, const char *dir)
{
	unsigned published = r->verdicts, shown;
	char path[256];

	for (size_t i = 0; i < r->count; i++)
		published +=
			((struct figure_point *)figure_row(r, i))->published >
			0;
	assert_int_equal(figure_picture(r, dir), 0);
	snprintf(path, sizeof(path), "%s/%s-%s.svg", dir, r->system->name,
		 r->figure->name);
	for (char *c = path; *c; c++)
		*c = *c == ' ' ? '-' : *c;
	shown = count(path, "class='published'");
	assert_in_range(shown, published, 1000);
	assert_true(count(path, "class='ours'") >= r->count / 2);
	return shown;
}

static const struct figure_options *options_of(const struct figure_system *s)
{
	static const struct figure_options none;

	return s->defaults ? s->defaults : &none;
}

static void test_pictures(void **state)
{
	char dir[] = "/tmp/test_figures_XXXXXX", command[512];
	char bare[128] = "";

	assert_non_null(mkdtemp(dir));
	for (unsigned i = 0; i < ARRAY_LEN(systems); i++) {
		const struct figure_system *s = systems[i];
		for (const struct figure *f = s->figures; f->name; f++) {
			struct figure_run r;

			figure_init(&r, s, f, options_of(s));
			assert_int_equal(f->plan(&r), 0);
			assert_true(r.count > 0);
			figure_rows_make_up(&r);
			figure_judge(&r);
			if (!draw(&r, dir)) {
				strcat(bare, f->name);
				strcat(bare, " ");
			}
			figure_release(&r);
		}
	}
	/* Nothing is published of these in numbers. */
	assert_string_equal(bare, "options 3.7 3.19 ycsb-a ycsb-b ycsb-c ");
	snprintf(command, sizeof(command),
		 "python3 '%s/tests/unit/check_svg.py' %s && rm -r %s",
		 getenv("AQ_SOURCE") ? getenv("AQ_SOURCE") : ".", dir, dir);
	assert_int_equal(system(command), 0);
}

/* Every claim of a table finds its points when all are there. */
static void test_claims(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(systems); i++)
		for (size_t k = 0; k < systems[i]->claim_count; k++) {
			const struct figure_claim *c = &systems[i]->claims[k];
			struct figure_run r;

			figure_init(&r, systems[i],
				    figure_by_name(systems[i], c->figure),
				    options_of(systems[i]));
			/* "8 9" is no name of its own. */
			for (const struct figure *f = systems[i]->figures;
			     f->name; f++)
				if (!strcmp(f->name, c->figure))
					r.figure = f;
			assert_non_null(r.figure);
			assert_int_equal(r.figure->plan(&r), 0);
			figure_rows_make_up(&r);
			figure_claim_at(&r, c);
			if (r.verdicts != 1)
				fail_msg("%s %s: %s", systems[i]->name,
					 c->figure, c->what);
			figure_release(&r);
		}
}

/* A bound was compared with "not below it", which a result that is not a number
 * is not either. */
static void what_is_not_a_number_does_not_hold(void **state)
{
	static const struct figure_options full;
	const struct figure_claim both = {
		.what = "x", .least = 1, .most = 2, .unit = "us"};
	const struct figure_claim none = {.what = "x", .unit = "us"};
	struct figure_run r;

	(void)state;
	figure_init(&r, &offload_figures, offload_figures.figures, &full);
	figure_claim_add(&r, &both, NAN);
	figure_claim_add(&r, &both, 1.5);
	figure_claim_add(&r, &both, 2.5);
	figure_claim_add(&r, &none, NAN);
	assert_int_equal(r.verdict[0].holds, 0);
	assert_int_equal(r.verdict[1].holds, 1);
	assert_int_equal(r.verdict[2].holds, 0);
	assert_int_equal(r.verdict[3].holds, -1);
	figure_release(&r);
}

static bool has_option(const struct figure_system *s, const char *name)
{
	for (const struct opt *o = s->options; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

/* The figure's points with this seed; false: it refuses one. */
static bool plan_with(const struct figure_system *s, const struct figure *f,
		      const char *seed, struct figure_run *r)
{
	static _Alignas(16) char options[FIGURE_OPTIONS_BYTES_MAX];
	char name[32], figure[] = "--figure", option[] = "--seed", number[8];
	char *argv[] = {name, figure, name, option, number, NULL};
	struct figure_options *o = (struct figure_options *)options;

	memcpy(options, s->defaults, s->options_bytes);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(f->name, " "),
		 f->name);
	snprintf(number, sizeof(number), "%s", seed);
	if (figure_parse(s, o, 5, argv) != -1)
		return false;
	o->quick = true;
	figure_init(r, s, f, o);
	assert_int_equal(f->plan(r), 0);
	return true;
}

/* Curves, constants and what no chance meets took a seed and did nothing with
 * it. */
static void a_seed_changes_what_is_random_or_is_refused(void **state)
{
	static const struct figure_system *const seeded[] = {
		&offload_figures, &kv_figures,	    &switch_figures,
		&paging_figures,  &walk_figures,    &tier_figures,
		&mind_figures,	  &elastic_figures, &index_figures};
	unsigned used = 0, refused = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(seeded); i++) {
		const struct figure_system *s = seeded[i];

		for (const struct figure *f = s->figures;
		     has_option(s, "seed") && f->name; f++) {
			struct figure_run a, b;

			if (!plan_with(s, f, "3", &a)) {
				refused++;
				continue;
			}
			assert_true(plan_with(s, f, "4", &b));
			assert_int_equal(a.count, b.count);
			if (!memcmp(figure_row(&a, 0), figure_row(&b, 0),
				    a.count * s->row_bytes))
				fail_msg("%s %s takes a seed, and does nothing "
					 "with it",
					 s->name, f->name);
			used++;
			figure_release(&a);
			figure_release(&b);
		}
	}
	assert_true(used > 40 && refused > 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pictures),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(what_is_not_a_number_does_not_hold),
		cmocka_unit_test(a_seed_changes_what_is_random_or_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
