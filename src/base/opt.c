/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options by their table, and explains them. */
#include "opt.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "config_key.h"
#include "error.h"
#include "near.h"

enum {
	FIRST = 0x100, /* of getopt's results: beside every letter */
	COLUMNS = 79,
	NAME_COLUMNS_MAX = 26,
};

/* ---- values ------------------------------------------------------------- */

/* `what` is the option with its dashes, or a word of the usage. */
static int number(const char *what, enum config_kind kind, const char *word,
		  uint64_t min, uint64_t max, uint64_t *out)
{
	const struct config_key key = {.kind = kind, .min = min, .max = max};
	int err = config_key_parse(&key, word, out);

	return err ? error_prefix(err, "%s: ", what) : 0;
}

int opt_size(const char *what, const char *word, uint64_t *bytes)
{
	return number(what, CONFIG_SIZE, word, 0, 1ull << 48, bytes);
}

int opt_count_or_all(const char *what, const char *word, uint32_t max,
		     uint32_t all, uint32_t *out)
{
	uint64_t n = all;
	int err = strcmp(word, "all") == 0
			  ? 0
			  : number(what, CONFIG_INT, word, 1, max, &n);

	if (!err)
		*out = (uint32_t)n;
	return err;
}

/* "a, b or c" from "a|b|c". */
static void list_words(const char *words, char out[200])
{
	size_t n = 0;

	for (; *words && n < 190; words++) {
		const char *join = strchr(words + 1, '|') ? ", " : " or ";

		if (*words != '|')
			out[n++] = *words;
		else
			n += (size_t)snprintf(out + n, 200 - n, "%s", join);
	}
	out[n] = '\0';
}

static int which(const struct opt *o, const char *word, uint32_t *index)
{
	const char *w = o->value;
	size_t len = strlen(word);
	char words[200];

	for (*index = 0;; ++*index) {
		size_t n = strcspn(w, "|");

		if (n == len && memcmp(w, word, n) == 0)
			return 0;
		if (!w[n])
			break;
		w += n + 1;
	}
	list_words(o->value, words);
	return error_set(-EINVAL, "--%s is %s, not '%.40s'", o->name, words,
			 word);
}

static int real(const struct opt *o, const char *word, double *out)
{
	char *end;

	*out = strtod(word, &end);
	if (end == word || *end || !(*out >= 0 && *out <= (double)o->max))
		return error_set(-EINVAL,
				 "--%s is a number from 0 to %llu, not '%.40s'",
				 o->name, (unsigned long long)o->max, word);
	return 0;
}

static int take(const struct opt *o, void *args, const char *word)
{
	void *at = (char *)args + o->at;
	enum config_kind kind =
		o->kind == OPT_KIND_SIZE ? CONFIG_SIZE : CONFIG_INT;
	char what[64];
	uint64_t n = 0;
	double v = 0;
	uint32_t index;
	int err = 0;

	(void)snprintf(what, sizeof(what), "--%s", o->name);
	switch (o->kind) {
	case OPT_KIND_FLAG:
		*(bool *)at = true;
		return 0;
	case OPT_KIND_BITS:
		*(uint32_t *)at |= (uint32_t)o->max;
		return 0;
	case OPT_KIND_WORD:
	case OPT_KIND_TEXT:
		if (o->kind == OPT_KIND_WORD)
			err = which(o, word, &index);
		if (!err)
			*(const char **)at = word;
		return err;
	case OPT_KIND_CHOICE:
		return which(o, word, at);
	case OPT_KIND_U32:
		err = number(what, kind, word, o->min, o->max, &n);
		if (!err)
			*(uint32_t *)at = (uint32_t)n;
		return err;
	case OPT_KIND_U64:
	case OPT_KIND_SIZE:
		return number(what, kind, word, o->min, o->max, at);
	case OPT_KIND_REAL:
		return real(o, word, at);
	case OPT_KIND_SCALED32:
	case OPT_KIND_SCALED64:
		err = real(o, word, &v);
		v = v * (double)o->min + 0.5;
		if (!err && o->kind == OPT_KIND_SCALED32)
			*(uint32_t *)at = (uint32_t)v;
		else if (!err)
			*(uint64_t *)at = (uint64_t)v;
		return err;
	case OPT_KIND_CALL:
		return o->take(args, word);
	}
	return -EINVAL;
}

const struct opt *opt_find(const struct opt *table, const char *name)
{
	for (; table && table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

void opt_join(struct opt out[OPT_ROWS_MAX], const struct opt *first,
	      const struct opt *second)
{
	unsigned n = 0;

	for (; first && first->name; first++)
		out[n++] = *first;
	for (; second && second->name; second++)
		out[n++] = *second;
	ASSERT(n < OPT_ROWS_MAX);
	out[n] = (struct opt)OPT_END;
}

int opt_set(const struct opt *table, void *args, const char *name,
	    const char *word)
{
	const struct opt *o = opt_find(table, name);

	return o ? take(o, args, word)
		 : error_set(-EINVAL, "there is no option '--%s'", name);
}

/* ---- the command line --------------------------------------------------- */

/* Rows for getopt: those of the table, and --help. */
static unsigned fill(const struct opt *table, struct option *out)
{
	unsigned n = 0;

	for (; table[n].name; n++) {
		ASSERT(n < OPT_ROWS_MAX - 1);
		out[n] = (struct option){table[n].name,
					 table[n].value ? required_argument
							: no_argument,
					 NULL, FIRST + (int)n};
	}
	out[n] = (struct option){"help", no_argument, NULL, 'h'};
	out[n + 1] = (struct option){0};
	return n;
}

/* The option that a mistyped one was meant to be, or NULL. */
static const struct opt *nearest(const struct opt *table, const char *word)
{
	char name[80];
	const struct opt *best = NULL;
	unsigned least = NEAR_NOT;

	word += strspn(word, "-");
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="),
		       word);
	for (; table->name; table++) {
		unsigned typos = near_typos(name, table->name);

		if (typos < least) {
			least = typos;
			best = table;
		}
	}
	return best;
}

static enum opt_result refuse(const struct opt *table, const char *who,
			      const char *word, int opt)
{
	char letter[] = {'-', (char)optopt, '\0'};
	const struct opt *near;

	/* Of several letters together, getopt is still at their word. */
	if (opt == '?' && optopt > 0 && optopt < FIRST)
		word = letter;
	near = word[1] == '-' ? nearest(table, word) : NULL;
	if (opt == ':')
		(void)error_set(-EINVAL, "%s needs a value: %s %s", word, word,
				table[optopt - FIRST].value);
	else if (near && strchr(word, '=') && !near->value)
		(void)error_set(-EINVAL, "--%s takes no value, not '%.80s'",
				near->name, word);
	else if (near)
		(void)error_set(-EINVAL,
				"%s has no option '%.80s'; did you mean "
				"'--%s'?",
				who, word, near->name);
	else
		(void)error_set(-EINVAL,
				"%s has no option '%.80s'; see 'aquifer help "
				"%s'",
				who, word, who);
	return OPT_WRONG;
}

enum opt_result opt_parse(const struct opt *table, const char *who, int argc,
			  char **argv, enum opt_words accept, void *args,
			  int *words)
{
	struct option longs[OPT_ROWS_MAX + 1]; /* --help is one more */
	const char *shorts = accept == OPT_WORDS_ANY ? ":h" : "+:h";
	unsigned count = fill(table, longs);
	int opt;

	/* 0, not 1: glibc then forgets a scan of another argv. */
	optind = 0;
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (opt == 'h')
			return OPT_HELP;
		if (opt < FIRST || opt >= FIRST + (int)count)
			return refuse(table, who, argv[optind - 1], opt);
		if (take(&table[opt - FIRST], args, optarg))
			return OPT_WRONG;
	}
	*words = optind;
	if (optind == argc || accept != OPT_WORDS_NONE)
		return OPT_DONE;
	(void)error_set(-EINVAL,
			"%s does not understand '%.80s'; see 'aquifer help %s'",
			who, argv[optind], who);
	return OPT_WRONG;
}

/* ---- help --------------------------------------------------------------- */

static int name_columns(const struct opt *o)
{
	return (int)(4 + strlen(o->name) +
		     (o->value ? 1 + strlen(o->value) : 0));
}

/* Words of `text` in lines that begin in that column; the cursor is there. */
static void fold(const char *text, int column, FILE *out)
{
	int at = column;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at > column && at + 1 + len > COLUMNS) {
			(void)fprintf(out, "\n%*s", column, "");
			at = column;
		}
		at += fprintf(out, at > column ? " %.*s" : "%.*s", len, text);
		text += len + (text[len] == ' ');
	}
	(void)fputc('\n', out);
}

void opt_help_text(const char *text, FILE *out)
{
	fold(text, 0, out);
}

void opt_help(const struct opt *table, FILE *out)
{
	int column = 0;

	for (const struct opt *o = table; o->name; o++)
		if (name_columns(o) <= NAME_COLUMNS_MAX)
			column = name_columns(o) > column ? name_columns(o)
							  : column;
	column += 2;
	for (const struct opt *o = table; o->name; o++) {
		int n = fprintf(out, "  --%s%s%s", o->name, o->value ? " " : "",
				o->value ? o->value : "");

		if (n + 2 > column)
			n = fprintf(out, "\n") - 1;
		(void)fprintf(out, "%*s", column - n, "");
		fold(o->help, column, out);
	}
}
