/* SPDX-License-Identifier: Apache-2.0 */
/* From what a command printed to what a claim is here. */
#include <string.h>

#include "claims_priv.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static struct claims_answer failed(const char *why)
{
	return (struct claims_answer){
		.verdict = CLAIMS_FAILED, .unit = "", .why = why};
}

static struct claims_answer answer(const json_t *value, const char *unit,
				   enum claims_verdict verdict)
{
	if (!json_is_number(value))
		return failed("it has no number");
	return (struct claims_answer){.verdict = verdict,
				      .has_value = true,
				      .value = json_number_value(value),
				      .unit = unit,
				      .why = ""};
}

/* ---- figures --------------------------------------------------------------
 */

/* The verdict is the figure's, which has the bounds. */
static struct claims_answer of_figure(const struct claim *c,
				      const json_t *result)
{
	const json_t *list = json_object_get(result, "claims"), *x, *holds;
	enum claims_verdict verdict = CLAIMS_INPUT;
	size_t i;

	json_array_foreach(list, i, x)
	{
		if (strcmp(text_of(x, "what"), c->what) ||
		    (c->note && strcmp(text_of(x, "note"), c->note)))
			continue;
		holds = json_object_get(x, "holds");
		if (c->kind != CLAIM_INPUT && !json_is_boolean(holds))
			return failed("the figure does not judge it");
		if (c->kind != CLAIM_INPUT)
			verdict = json_is_true(holds) ? CLAIMS_HOLDS
						      : CLAIMS_SHORT;
		return answer(json_object_get(x, "ours"), text_of(x, "unit"),
			      verdict);
	}
	return failed("the figure has no such claim");
}

/* Whether one of its cells has these words. */
static bool has_cell(json_t *point, const char *words)
{
	const char *key;
	json_t *cell;

	json_object_foreach(point, key, cell)
	{
		const char *text = json_string_value(cell);

		if (text && strcmp(text, words) == 0)
			return true;
	}
	return false;
}

static struct claims_answer of_point(const struct claim *c,
				     const json_t *result)
{
	const json_t *list = json_object_get(result, "points");
	json_t *x;
	size_t i;

	json_array_foreach(list, i, x)
	{
		if (!has_cell(x, c->what) || (c->note && !has_cell(x, c->note)))
			continue;
		return answer(json_object_get(x, c->column), text_of(x, "unit"),
			      CLAIMS_INPUT);
	}
	return failed("the figure has no such point");
}

/* ---- benchmarks -----------------------------------------------------------
 */

static struct claims_answer of_bench(const struct claim *c,
				     const json_t *result)
{
	const json_t *value =
		json_object_get(json_object_get(result, "ratios"), c->what);
	double v = json_number_value(value);
	bool holds = (c->least <= 0 || v >= c->least) &&
		     (c->most <= 0 || v <= c->most);

	if (value)
		return answer(value, "", holds ? CLAIMS_HOLDS : CLAIMS_SHORT);
	value = json_object_get(json_object_get(result, "void"), c->what);
	return failed(value ? json_string_value(value)
			    : "the benchmark has no such ratio");
}

/* ---- both -----------------------------------------------------------------
 */

struct claims_answer claims_answer(const struct claim *c,
				   const struct claims_command *command)
{
	if (c->kind == CLAIM_NOT_TRIED)
		return (struct claims_answer){
			.verdict = CLAIMS_NOT_TRIED, .unit = "", .why = ""};
	if (!command || (!command->result && !command->exit_code))
		return (struct claims_answer){
			.verdict = CLAIMS_NOT_RUN, .unit = "", .why = ""};
	if (!command->result)
		return failed("the command failed");
	if (c->kind == CLAIM_MEASURED)
		return of_bench(c, command->result);
	return c->column ? of_point(c, command->result)
			 : of_figure(c, command->result);
}

bool claims_is_complete(const struct claims_command *command)
{
	if (!command->result)
		return false;
	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count; i++) {
		const struct claim *c = &d->claims[i];

		if (c->command && !strcmp(c->command, command->is->words) &&
		    !claims_answer(c, command).has_value)
			return false;
	}
	return true;
}

const char *claims_verdict_name(enum claims_verdict verdict)
{
	static const char *const names[CLAIMS_VERDICTS] = {
		[CLAIMS_HOLDS] = "holds",
		[CLAIMS_SHORT] = "short",
		[CLAIMS_INPUT] = "input",
		[CLAIMS_NOT_TRIED] = "not tried",
		[CLAIMS_NOT_RUN] = "not run yet",
		[CLAIMS_FAILED] = "no answer",
	};

	return names[verdict];
}

const char *claims_kind_name(enum claim_kind kind)
{
	static const char *const names[] = {
		[CLAIM_NOT_TRIED] = "not tried",
		[CLAIM_MEASURED] = "measured",
		[CLAIM_SIMULATED] = "simulated on shipped code",
		[CLAIM_MODEL] = "model",
		[CLAIM_INPUT] = "model, made from it",
	};

	return names[kind];
}
