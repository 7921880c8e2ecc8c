/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines, and prints how they are written. */
#include "options.h"

#include <errno.h>
#include <string.h>

#include "batch.h"

enum {
	NUMBER_MAX = 10000,
	COLUMNS = 79,
	INDENT = 20, /* of what an option does */
};

static int take_choice(const struct sim_option *o, unsigned *to,
		       const char *value)
{
	for (unsigned i = 0; o->names[i]; i++)
		if (!strcmp(o->names[i], value)) {
			*to = i;
			return 0;
		}
	return -EINVAL;
}

static int take_value(const struct sim_option *o, void *to,
		      const struct sim_fabric_choice *fabrics,
		      const char *value)
{
	void *at = (char *)to + o->at;
	uint64_t n;

	switch (o->kind) {
	case SIM_FLAG:
		*(bool *)at = true;
		return 0;
	case SIM_NUMBER:
		if (!sim_batch_parse_u64(value, &n) || !n ||
		    n > (o->max ? o->max : NUMBER_MAX))
			return -EINVAL;
		*(uint64_t *)at = n;
		return 0;
	case SIM_TEXT:
		if (!*o->name && *(const char **)at)
			return -EINVAL; /* a second word */
		*(const char **)at = value;
		return 0;
	case SIM_CHOICE:
		return take_choice(o, at, value);
	case SIM_FABRIC:
		*(const struct sim_fabric_choice **)at =
			sim_fabric_find(fabrics, value);
		return *(const struct sim_fabric_choice **)at ? 0 : -EINVAL;
	case SIM_TAKE:
		break;
	}
	return o->take(to, value);
}

const struct sim_option *sim_option_find(const struct sim_option *rows,
					 const char *name)
{
	for (; rows && rows->name; rows++)
		if (!strcmp(rows->name, name))
			return rows;
	return NULL;
}

int sim_options_parse(const char *who, const struct sim_options *all,
		      const struct sim_fabric_choice *fabrics, int argc,
		      char **argv)
{
	for (int i = 1; i < argc; i++) {
		bool is_word = argv[i][0] != '-' || !argv[i][1];
		const char *name = is_word ? "" : argv[i];
		const struct sim_option *o = NULL;
		const struct sim_options *of = all;
		const char *value = NULL;

		for (; of->to && !o; of += !o)
			o = sim_option_find(of->rows, name);
		if (o && is_word)
			value = argv[i];
		else if (o && o->value && i + 1 < argc)
			value = argv[++i];
		if (!o || (o->value && !value) ||
		    take_value(o, of->to, fabrics, value)) {
			fprintf(stderr, "aquifer: %s: %s %s%s%s\n", who,
				o ? o->name : argv[i],
				o ? "needs a fitting value"
				  : "is not an option",
				value ? ", not " : "", value ? value : "");
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- help --------------------------------------------------------------- */

/* Lines begin at `indent`, where the first one is already. */
static void print_wrapped(FILE *f, const char *text, int indent)
{
	int column = indent;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column + len + (column > indent) > COLUMNS) {
			fprintf(f, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(f, "%s%.*s", column > indent ? " " : "", len,
				  text);
		text += len + (text[len] == ' ');
	}
	fputc('\n', f);
}

void sim_options_help(FILE *f, const struct sim_option *rows)
{
	for (; rows && rows->name; rows++) {
		int n = fprintf(f, "  %s %s", rows->name,
				rows->value ? rows->value : "");

		if (n >= INDENT)
			n = fprintf(f, "\n") - 1;
		fprintf(f, "%*s", INDENT - n, "");
		print_wrapped(f, rows->help, INDENT);
	}
}

void sim_text_print(FILE *f, const char *text)
{
	print_wrapped(f, text, 0);
}
