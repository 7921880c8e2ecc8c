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
#include "figures/figures.h"

static const struct figure_system *const systems[] = {
	&offload_figures, &kv_figures,	  &switch_figures,
	&paging_figures,  &model_figures, &walk_figures};

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
	assert_string_equal(bare, "options 3.7 3.19 ");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pictures),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(what_is_not_a_number_does_not_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
