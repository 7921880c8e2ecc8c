/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer tier cost`: the two models of tier/cost.h and tier/vm.h, for one set
 * of inputs or along a range of one of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli_report.h"
#include "cli_tier.h"
#include "tier/cost.h"
#include "tier/range.h"
#include "tier/vm.h"

enum {
	INPUTS_MAX = 4,
	OUTPUTS_MAX = 4,
	NAME_COLUMNS = 10,
	VALUE_COLUMNS = 11,
};

struct input {
	const char *name;
	const char *meaning;
	double normal;
};

struct output {
	const char *name;
	const char *meaning;
	bool is_share; /* printed as a percentage */
};

/* Both tables end with a row without a name. */
struct model {
	const char *about;
	struct input input[INPUTS_MAX + 1];
	struct output output[OUTPUTS_MAX + 1];
	int (*ask)(const double in[INPUTS_MAX], double out[OUTPUTS_MAX]);
};

/* ---- the models --------------------------------------------------------- */

static int ask_cost(const double in[INPUTS_MAX], double out[OUTPUTS_MAX])
{
	const struct tier_cost cost = {in[0], in[1], in[2], in[3]};
	struct tier_saving s;
	int err = tier_cost_save(&cost, &s);

	if (err)
		return err;
	out[0] = s.servers;
	out[1] = s.saving;
	return 0;
}

static int ask_vm(const double in[INPUTS_MAX], double out[OUTPUTS_MAX])
{
	const struct tier_vm vm = {in[0], in[1], in[2]};
	struct tier_revenue r;
	int err = tier_vm_earn(&vm, &r);

	if (err)
		return err;
	out[0] = r.sold;
	out[1] = r.cxl;
	out[2] = r.after;
	out[3] = r.gain;
	return 0;
}

static const struct model cost_model = {
	"servers whose working set does not fit into main memory: SSD for the "
	"rest, or CXL memory",
	{{"rd", "rate on main memory over that on SSD", 10},
	 {"rc", "rate on CXL memory over that on SSD", 8},
	 {"c", "bytes of main memory for a byte of CXL memory", 2},
	 {"rt", "cost of a server with CXL memory over one without", 1.1},
	 {0}},
	{{"servers", "servers for the same rate, of those without CXL memory",
	  true},
	 {"saving", "of the whole cost; below 0: CXL memory costs more", true},
	 {0}},
	ask_cost,
};

static const struct model vm_model = {
	"machines for rent on a server with too little main memory for its "
	"processors",
	{{"have", "GiB of main memory for each processor", 3},
	 {"want", "GiB rented with each processor", 4},
	 {"discount", "of machines on CXL memory", 0.2},
	 {0}},
	{{"sold", "processors sold without CXL memory", true},
	 {"cxl_gib", "GiB of CXL memory for each processor, to sell the rest",
	  false},
	 {"revenue", "then, of all processors at full price", true},
	 {"gain", "of the revenue by CXL memory", true},
	 {0}},
	ask_vm,
};

/* ---- inputs ------------------------------------------------------------- */

struct question {
	const struct model *model;
	struct tier_range range[INPUTS_MAX];
	unsigned swept; /* the input that is a range, or INPUTS_MAX */
	unsigned rows;
};

static const char *word_of(const struct cli_tier_args *a, const char *name)
{
	const struct {
		const char *name, *word;
	} words[] = {{"rd", a->rd},
		     {"rc", a->rc},
		     {"c", a->c},
		     {"rt", a->rt},
		     {"have", a->have},
		     {"want", a->want},
		     {"discount", a->discount}};

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return words[i].word;
	return NULL;
}

/* An input of the other model is a mistake, and no input at all. */
static int check_words(const struct cli_tier_args *a)
{
	const struct model *other = a->is_vm ? &cost_model : &vm_model;

	for (const struct input *i = other->input; i->name; i++)
		if (word_of(a, i->name))
			return error_set(-EINVAL,
					 a->is_vm ? "--%s is no input of --vm"
						  : "--%s goes with --vm",
					 i->name);
	return 0;
}

static int read_question(const struct cli_tier_args *a, struct question *q)
{
	*q = (struct question){.model = a->is_vm ? &vm_model : &cost_model,
			       .swept = INPUTS_MAX,
			       .rows = 1};
	for (unsigned i = 0; q->model->input[i].name; i++) {
		const struct input *in = &q->model->input[i];
		const char *word = word_of(a, in->name);
		int err;

		q->range[i] = (struct tier_range){
			.from = in->normal, .to = in->normal, .count = 1};
		err = word ? tier_range_parse(word, &q->range[i]) : 0;
		if (err)
			return error_prefix(err, "--%s: ", in->name);
		if (q->range[i].count == 1)
			continue;
		if (q->swept < INPUTS_MAX)
			return error_set(-EINVAL,
					 "one input may be a range; --%s and "
					 "--%s both are",
					 q->model->input[q->swept].name,
					 in->name);
		q->swept = i;
		q->rows = q->range[i].count;
	}
	return 0;
}

static void inputs_of(const struct question *q, unsigned row,
		      double in[INPUTS_MAX])
{
	for (unsigned i = 0; i < INPUTS_MAX; i++)
		in[i] = tier_range_at(&q->range[i], i == q->swept ? row : 0);
}

/* ---- answers ------------------------------------------------------------ */

/* A row of a sweep that the model cannot answer says why. NULL: no memory. */
static json_t *answer_row(const struct question *q, unsigned row, bool *is_good)
{
	double in[INPUTS_MAX], out[OUTPUTS_MAX];
	json_t *tree = json_object();

	inputs_of(q, row, in);
	for (unsigned i = 0; q->model->input[i].name; i++)
		(void)json_object_set_new(tree, q->model->input[i].name,
					  json_real(in[i]));
	*is_good = q->model->ask(in, out) == 0;
	for (unsigned i = 0; *is_good && q->model->output[i].name; i++)
		(void)json_object_set_new(tree, q->model->output[i].name,
					  json_real(out[i]));
	if (!*is_good)
		cli_report_set(tree, "refused", "%s", error_last());
	return tree;
}

static void print_value(const struct output *o, json_t *row)
{
	double v = json_real_value(json_object_get(row, o->name));

	if (o->is_share)
		printf("%*.2f %%", VALUE_COLUMNS - 2, 100 * v);
	else
		printf("%*g", VALUE_COLUMNS, v);
}

static void print_inputs(const struct question *q)
{
	printf("%s\n\n", q->model->about);
	for (unsigned i = 0; q->model->input[i].name; i++) {
		const struct input *in = &q->model->input[i];
		char text[48];

		(void)snprintf(text, sizeof(text),
			       i == q->swept ? "%.10g..%.10g" : "%.10g",
			       q->range[i].from, q->range[i].to);
		printf("%-*s %*s  %s\n", NAME_COLUMNS, in->name, VALUE_COLUMNS,
		       text, in->meaning);
	}
	putchar('\n');
}

static void print_one(const struct question *q, json_t *row)
{
	for (const struct output *o = q->model->output; o->name; o++) {
		printf("%-*s ", NAME_COLUMNS, o->name);
		print_value(o, row);
		printf("  %s\n", o->meaning);
	}
}

static void print_sweep(const struct question *q, json_t *rows)
{
	const char *swept = q->model->input[q->swept].name, *why;
	size_t at;
	json_t *row;

	for (const struct output *o = q->model->output; o->name; o++)
		printf("%-*s              %s\n", NAME_COLUMNS, o->name,
		       o->meaning);
	printf("\n%*s", NAME_COLUMNS, swept);
	for (const struct output *o = q->model->output; o->name; o++)
		printf(" %*s", VALUE_COLUMNS, o->name);
	putchar('\n');
	json_array_foreach(rows, at, row)
	{
		printf("%*.10g", NAME_COLUMNS,
		       json_real_value(json_object_get(row, swept)));
		why = json_string_value(json_object_get(row, "refused"));
		if (why)
			printf("  %s", why);
		for (const struct output *o = q->model->output; !why && o->name;
		     o++) {
			putchar(' ');
			print_value(o, row);
		}
		putchar('\n');
	}
}

/* Takes over the rows. */
static int print_answer(const struct question *q, json_t *rows, bool as_json)
{
	if (as_json)
		return cli_report_print(
			json_pack("{s:s, s:o}", "model",
				  q->model == &vm_model ? "vm" : "cost", "rows",
				  rows),
			true);
	print_inputs(q);
	if (q->swept < INPUTS_MAX)
		print_sweep(q, rows);
	else
		print_one(q, json_array_get(rows, 0));
	json_decref(rows);
	return cli_output_check();
}

int cli_tier_cost(void *args)
{
	const struct cli_tier_args *a = args;
	struct question q;
	bool is_any = false;
	json_t *rows;
	int err = check_words(a);

	if (!err)
		err = read_question(a, &q);
	if (err)
		return err;
	rows = json_array();
	for (unsigned i = 0; i < q.rows; i++) {
		bool is_good;

		(void)json_array_append_new(rows, answer_row(&q, i, &is_good));
		is_any |= is_good;
	}
	if (!rows || json_array_size(rows) < q.rows) {
		json_decref(rows);
		return error_set(-ENOMEM, "no memory for the rows");
	}
	if (is_any)
		return print_answer(&q, rows, a->common.json);
	json_decref(rows);
	return -EINVAL; /* with the words of the last row */
}
