/* SPDX-License-Identifier: Apache-2.0 */
/* The options: those that all benchmarks have mean the same in each of them. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Places in the table of common options. */
enum {
	O_JSON,
	O_QUICK,
	O_CHECK,
	O_BUSY,
	O_ROUNDS,
	O_WINDOW,
	O_ONLY,
	O_HELP,
	O_COUNT,
};

static const struct bench_option common[O_COUNT] = {
	[O_JSON] = BENCH_WORD("json", NULL, "one JSON object", NULL),
	[O_QUICK] =
		BENCH_WORD("quick", NULL,
			   "short: shows that it works, proves nothing", NULL),
	[O_CHECK] =
		BENCH_WORD("check", NULL,
			   "exit code 3 when a ratio misses its bound", NULL),
	[O_BUSY] = BENCH_WORD("busy", NULL,
			      "keep rounds in which others used the cores, too",
			      NULL),
	[O_ROUNDS] = BENCH_OPTION("rounds", "N", "rounds per subject", 1,
				  BENCH_ROUNDS_MAX, 0, 0),
	[O_WINDOW] = BENCH_OPTION("window", "MS", "length of a round", 1, 10000,
				  0, 0),
	[O_ONLY] = BENCH_WORD("only", "NAME",
			      "only groups and ratios whose name contains NAME",
			      NULL),
	[O_HELP] = BENCH_WORD("help", NULL, "this text", NULL),
};

/* ---- what --only wants --------------------------------------------------- */

bool bench_wants_ratio(const struct bench *b, const struct bench_ratio *r)
{
	return !b->only || strstr(r->name, b->only) ||
	       strstr(r->group, b->only);
}

bool bench_wants(const struct bench *b, const char *group)
{
	const struct bench_ratio *r = b->def->ratios;

	if (!b->only || strstr(group, b->only))
		return true;
	for (; r->name; r++)
		if (strcmp(r->group, group) == 0 && strstr(r->name, b->only))
			return true;
	return false;
}

bool bench_wants_any(const struct bench *b)
{
	const char *const *g = b->def->more_groups;

	for (const struct bench_ratio *r = b->def->ratios; r->name; r++)
		if (bench_wants_ratio(b, r))
			return true;
	for (; g && *g; g++)
		if (bench_wants(b, *g))
			return true;
	return false;
}

/* ---- values -------------------------------------------------------------- */

static int parse_number(const struct bench_option *o, const char *text,
			uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno || *out < o->min ||
			       *out > o->max
		       ? -EINVAL
		       : 0;
}

static bool is_word_of(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; len && (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') &&
		    (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

static bool is_good(const struct bench_option *o, const char *text)
{
	uint64_t v;

	if (o->max)
		return parse_number(o, text, &v) == 0;
	return o->words ? is_word_of(o->words, text) : *text != '\0';
}

static const struct bench_option *find(const struct bench *b, const char *name,
				       const char **given)
{
	const struct bench_option *o = b->def->options;

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	ASSERT(o->name);
	*given = b->given[o - b->def->options];
	return o;
}

uint64_t bench_number(const struct bench *b, const char *name)
{
	const char *given = NULL;
	const struct bench_option *o = find(b, name, &given);
	uint64_t v;

	if (given && parse_number(o, given, &v) == 0)
		return v;
	return b->quick ? o->quick : o->normal;
}

const char *bench_word(const struct bench *b, const char *name)
{
	const char *given = NULL;

	(void)find(b, name, &given);
	return given;
}

/* ---- help ---------------------------------------------------------------- */

static bool has_option(const struct bench_def *def, unsigned place)
{
	return place != O_WINDOW || def->window_ms;
}

static void help_option(const struct bench_option *o, uint64_t normal, FILE *to)
{
	char name[32];

	snprintf(name, sizeof(name), "--%s %s", o->name, o->arg ? o->arg : "");
	fprintf(to, "  %-18s %s", name, o->help);
	if (normal)
		fprintf(to, " (default %llu)", (unsigned long long)normal);
	fputc('\n', to);
}

static void help(const struct bench_def *def, FILE *to)
{
	const struct bench_ratio *r = def->ratios;
	const char *group = NULL;

	fprintf(to, "usage: aquifer bench %s [OPTION...]\n%s\noptions:\n",
		def->name, def->about);
	for (unsigned i = 0; i < O_COUNT; i++)
		if (has_option(def, i))
			help_option(&common[i],
				    !def->run	    ? 0
				    : i == O_ROUNDS ? def->rounds
				    : i == O_WINDOW ? def->window_ms
						    : 0,
				    to);
	for (const struct bench_option *o = def->options; o && o->name; o++)
		help_option(o, o->normal, to);
	if (r->name)
		fputs("groups and their ratios:\n", to);
	for (; r->name; r++) {
		if (!group || strcmp(group, r->group) != 0)
			fprintf(to, "  %s\n", r->group);
		group = r->group;
		fprintf(to, "    %-30s %s\n", r->name, r->meaning);
	}
	for (const char *const *g = def->more_groups; g && *g; g++)
		fprintf(to, "  %s\n", *g);
}

/* ---- parsing ------------------------------------------------------------- */

static unsigned own_count(const struct bench_def *def)
{
	unsigned n = 0;

	while (def->options && def->options[n].name)
		n++;
	ASSERT(n < BENCH_OPTIONS_MAX);
	return n;
}

static unsigned list(const struct bench_def *def,
		     struct option longs[O_COUNT + BENCH_OPTIONS_MAX])
{
	unsigned n = 0, own = own_count(def);

	for (unsigned i = 0; i < O_COUNT + own; i++) {
		const struct bench_option *o =
			i < O_COUNT ? &common[i] : &def->options[i - O_COUNT];

		if (i >= O_COUNT || has_option(def, i))
			longs[n++] = (struct option){o->name,
						     o->arg ? required_argument
							    : no_argument,
						     NULL, (int)i};
	}
	longs[n] = (struct option){0};
	return n;
}

static int take(struct bench *b, unsigned place, const char *text)
{
	const struct bench_option *o =
		place < O_COUNT ? &common[place]
				: &b->def->options[place - O_COUNT];

	if (o->arg && !is_good(o, text)) {
		fprintf(stderr, "aquifer: bench %s: --%s does not take '%s'\n",
			b->def->name, o->name, text);
		return -EINVAL;
	}
	b->json |= place == O_JSON;
	b->quick |= place == O_QUICK;
	b->check |= place == O_CHECK;
	b->busy |= place == O_BUSY;
	b->has_rounds |= place == O_ROUNDS;
	if (place == O_ROUNDS)
		b->rounds = (unsigned)strtoul(text, NULL, 10);
	else if (place == O_WINDOW)
		b->window_ms = (unsigned)strtoul(text, NULL, 10);
	else if (place == O_ONLY)
		b->only = text;
	else if (place >= O_COUNT)
		b->given[place - O_COUNT] = o->arg ? text : "";
	return 0;
}

int bench_parse(struct bench *b, int argc, char **argv)
{
	struct option longs[O_COUNT + BENCH_OPTIONS_MAX];
	const struct bench_def *def = b->def;
	int c, rc = 0;

	(void)list(def, longs);
	optind = 0; /* start anew: the caller may have parsed before us */
	while (rc == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == O_HELP) {
			help(def, stdout);
			return BENCH_RAN;
		}
		rc = c == '?' ? -EINVAL : take(b, (unsigned)c, optarg);
	}
	if (rc == 0 && optind != argc) {
		fprintf(stderr, "aquifer: bench %s does not understand '%s'\n",
			def->name, argv[optind]);
		rc = -EINVAL;
	}
	if (rc == 0 && b->only && def->run && !bench_wants_any(b)) {
		fprintf(stderr, "aquifer: bench %s: nothing is called '%s'\n",
			def->name, b->only);
		rc = -EINVAL;
	}
	if (rc < 0) {
		fprintf(stderr, "'aquifer bench %s --help' lists everything\n",
			def->name);
		return BENCH_USAGE;
	}
	return -1;
}
