/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every claim that names a figure finds there what it asks for: a claim which
 * the figure judges, once, or a point. Results are made up, but for those of
 * EDM's short figures, which their plans make. test_claims_bench is the same
 * for benchmarks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "claims/claims.h"
#include "edm/edm_figure.h"
#include "figure_rows.h"
#include "figures/commands.h"

static const struct figure_system *const systems[] = {
	&offload_figures, &kv_figures,	   &switch_figures, &paging_figures,
	&model_figures,	  &edm_figures,	   &walk_figures,   &tier_figures,
	&mind_figures,	  &elastic_figures};

/* The words "sim SYSTEM --figure NAME ..." of a command. */
static void find(const char *command, const struct figure_system **system,
		 const struct figure **figure)
{
	char name[32], figure_name[32];

	assert_int_equal(
		sscanf(command, "sim %31s --figure %31s", name, figure_name),
		2);
	*system = NULL;
	for (unsigned i = 0; i < ARRAY_LEN(systems); i++)
		if (!strcmp(systems[i]->name, name))
			*system = systems[i];
	if (!*system)
		fail_msg("%s: no such system", command);
	*figure = figure_by_name(*system, figure_name);
	if (!*figure)
		fail_msg("%s: no such figure", command);
}

static unsigned judged(const struct figure_run *r, const struct claim *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->verdicts; i++) {
		const struct figure_verdict *v = &r->verdict[i];

		if (strcmp(v->what, c->what) ||
		    (c->note && strcmp(v->note, c->note)))
			continue;
		/* What a model was made from need not be judged. */
		if (v->holds < 0 && c->kind != CLAIM_INPUT)
			fail_msg("%s: %s has no bounds", c->command, c->what);
		n++;
	}
	return n;
}

static bool has_text(const struct figure_run *r, const void *row,
		     const char *text)
{
	const struct figure_column *c =
		r->figure->columns ? r->figure->columns : r->system->columns;
	char cell[128];

	for (; c->name; c++)
		if ((c->type == FIGURE_TEXT || c->type == FIGURE_CHARS) &&
		    !strcmp(figure_cell(c, row, cell, sizeof(cell)), text))
			return true;
	return false;
}

static unsigned points(const struct figure_run *r, const struct claim *c)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->count; i++) {
		const void *row = figure_row(r, i);

		if (!has_text(r, row, c->what) ||
		    (c->note && !has_text(r, row, c->note)))
			continue;
		(void)figure_value(r, row, c->column); /* there is one */
		n++;
	}
	return n;
}

static void check(const char *command)
{
	struct edm_figure_options edm = {.messages = 200, .seeds = 1};
	const struct figure_system *system;
	const struct figure *figure;
	struct figure_options none = {0};
	struct figure_run r;

	find(command, &system, &figure);
	edm_config_init(&edm.base);
	figure_init(&r, system, figure,
		    system == &edm_figures ? &edm.f
		    : system->defaults	   ? system->defaults
					   : &none);
	assert_int_equal(figure->plan(&r), 0);
	figure_rows_make_up(&r);
	figure_judge(&r);
	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count; i++) {
		const struct claim *c = &d->claims[i];
		unsigned n;

		if (!c->command || strcmp(c->command, command) != 0)
			continue;
		n = c->column ? points(&r, c) : judged(&r, c);
		if (n != 1)
			fail_msg("%s has %u times: %s (%s)", command, n,
				 c->what, c->note ? c->note : "");
	}
	figure_release(&r);
}

static void every_figure_says_what_is_claimed(void **state)
{
	for (const struct claim_command *c = claim_commands; c->words; c++)
		if (!strncmp(c->words, "sim ", 4))
			check(c->words);
}

static void every_row_is_whole(void **state)
{
	unsigned count = 0;

	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count; i++) {
		const struct claim *c = &d->claims[i];
		const struct claim_command *k = claim_commands;

		count++;
		assert_true(c->where && c->text && !strchr(c->text, '|'));
		assert_true((c->kind == CLAIM_NOT_TRIED) == !c->command);
		assert_true(c->command ? !!c->what : !!c->remark);
		/* Only benchmarks leave the bounds to the row. */
		assert_true((c->least > 0 || c->most > 0) ==
			    (c->kind == CLAIM_MEASURED));
		while (c->command && k->words && strcmp(k->words, c->command))
			k++;
		if (c->command && !k->words)
			fail_msg("no row of claim_commands: %s", c->command);
	}
	assert_in_range(count, 120, 1000);
}

static void commands_are_in_order_and_used(void **state)
{
	unsigned before = 0;

	for (const struct claim_command *k = claim_commands; k->words; k++) {
		unsigned uses = 0;

		assert_in_range(k->seconds, before, 100000);
		before = k->seconds;
		CLAIM_DOC_EACH(d)
		for (size_t i = 0; i < d->count; i++)
			uses += d->claims[i].command &&
				!strcmp(d->claims[i].command, k->words);
		if (!uses)
			fail_msg("nothing is claimed with %s", k->words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_whole),
		cmocka_unit_test(commands_are_in_order_and_used),
		cmocka_unit_test(every_figure_says_what_is_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
