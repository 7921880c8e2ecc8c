/* SPDX-License-Identifier: Apache-2.0 */
/* The options: those that all benchmarks have mean the same in each of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/opt.h"
#include "bench.h"

enum {
	HELP_BYTES = 160,
};

static const struct opt common[] = {
	OPT_FLAG(struct bench, json, "json", "one JSON object"),
	OPT_FLAG(struct bench, quick, "quick",
		 "short: shows that it works, proves nothing"),
	OPT_FLAG(struct bench, check, "check",
		 "exit code 3 when a ratio misses its bound"),
	OPT_FLAG(struct bench, busy, "busy",
		 "keep rounds in which others used the cores, too"),
	OPT_TEXT(struct bench, only, "only", "NAME",
		 "only groups and ratios whose name contains NAME"),
	OPT_U32(struct bench, rounds, "rounds", "N", 1, BENCH_ROUNDS_MAX,
		"rounds per subject"),
	OPT_U32(struct bench, window_ms, "window", "MS", 1, 10000,
		"length of a round"),
	OPT_END,
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

static unsigned place_of(const struct bench *b, const char *name)
{
	unsigned i = 0;

	while (b->def->options[i].name &&
	       strcmp(b->def->options[i].name, name) != 0)
		i++;
	ASSERT(b->def->options[i].name);
	return i;
}

uint64_t bench_number(const struct bench *b, const char *name)
{
	unsigned i = place_of(b, name);
	const struct bench_option *o = &b->def->options[i];

	return b->number[i] ? b->number[i] : b->quick ? o->quick : o->normal;
}

const char *bench_word(const struct bench *b, const char *name)
{
	return b->word[place_of(b, name)];
}

/* ---- the table ----------------------------------------------------------- */

struct rows {
	unsigned count;
	struct opt opt[OPT_ROWS_MAX];
	char help[OPT_ROWS_MAX][HELP_BYTES];
};

static void add(struct rows *r, const struct opt *o, uint64_t normal)
{
	char *help = r->help[r->count];
	int n = snprintf(help, HELP_BYTES, "%s", o->help);

	if (normal)
		(void)snprintf(help + n, HELP_BYTES - (size_t)n,
			       " (default %llu)", (unsigned long long)normal);
	r->opt[r->count] = *o;
	r->opt[r->count++].help = help;
}

/* What all have, and its own. */
static void list(const struct bench_def *def, struct rows *r)
{
	const struct bench_option *own = def->options;

	r->count = 0;
	for (const struct opt *o = common; o->name; o++) {
		bool rounds = strcmp(o->name, "rounds") == 0;
		bool window = strcmp(o->name, "window") == 0;

		if (!window || def->window_ms)
			add(r, o,
			    def->run && rounds	 ? def->rounds
			    : def->run && window ? def->window_ms
						 : 0);
	}
	for (unsigned i = 0; own && own[i].name; i++) {
		struct opt o = {.name = own[i].name,
				.value = own[i].arg,
				.help = own[i].help,
				.kind = OPT_KIND_U64,
				.at = offsetof(struct bench, number[i]),
				.min = own[i].min,
				.max = own[i].max};

		ASSERT(i < BENCH_OPTIONS_MAX);
		if (!o.max) {
			o.kind = strchr(o.value, '|') ? OPT_KIND_WORD
						      : OPT_KIND_TEXT;
			o.at = offsetof(struct bench, word[i]);
		}
		add(r, &o, own[i].normal);
	}
	r->opt[r->count] = (struct opt)OPT_END;
}

static void help(const struct bench_def *def, const struct opt *options)
{
	const struct bench_ratio *r = def->ratios;
	const char *group = NULL;

	printf("usage: aquifer bench %s [OPTION...]\n%s\noptions:\n", def->name,
	       def->about);
	opt_help(options, stdout);
	if (r->name)
		puts("groups and their ratios:");
	for (; r->name; r++) {
		if (!group || strcmp(group, r->group) != 0)
			printf("  %s\n", r->group);
		group = r->group;
		printf("    %-30s %s\n", r->name, r->meaning);
	}
	for (const char *const *g = def->more_groups; g && *g; g++)
		printf("  %s\n", *g);
}

int bench_parse(struct bench *b, int argc, char **argv)
{
	const struct bench_def *def = b->def;
	enum opt_result rc;
	struct rows rows;
	char who[32];
	int words;

	list(def, &rows);
	(void)snprintf(who, sizeof(who), "bench %s", def->name);
	rc = opt_parse(rows.opt, who, argc, argv, OPT_WORDS_NONE, b, &words);
	if (rc == OPT_HELP) {
		help(def, rows.opt);
		return BENCH_RAN;
	}
	b->has_rounds = b->rounds != 0;
	if (rc == OPT_DONE && (!b->only || !def->run || bench_wants_any(b)))
		return -1;
	if (rc == OPT_DONE)
		(void)error_set(-EINVAL,
				"--only: nothing is called '%s'; 'aquifer "
				"bench %s --help' lists everything",
				b->only, def->name);
	complain(0, "%s", error_last());
	return BENCH_USAGE;
}
