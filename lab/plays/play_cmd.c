/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim NAME`: arguments in, seeds played, counts and verdict out. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/json_out.h"
#include "play.h"
#include "report/figure.h"

enum {
	SEEDS_DEFAULT = 100,
};

/* ---- options ------------------------------------------------------------ */

static int take_seed(void *to, const char *value)
{
	struct sim_batch *b = &((struct play_options *)to)->line.batch;

	b->one = true;
	if (!sim_batch_parse_u64(value, &b->from))
		return error_set(-EINVAL, "--seed is a number, not '%s'",
				 value);
	b->to = b->from;
	return 0;
}

static int take_seeds(void *to, const char *value)
{
	struct sim_batch *b = &((struct play_options *)to)->line.batch;

	b->one = false;
	return sim_batch_parse_range(value, &b->from, &b->to)
		       ? 0
		       : error_set(-EINVAL, "--seeds is N or A..B, not '%s'",
				   value);
}

static int take_bug(void *to, const char *value)
{
	struct play_options *o = to;

	o->line.lists_bugs = !strcmp(value, "list");
	if (o->line.lists_bugs)
		return 0;
	o->bug = plant_find(o->line.play->bugs, value);
	return o->bug == PLANT_none
		       ? error_set(-EINVAL, "--bug: there is none named '%s'",
				   value)
		       : 0;
}

int play_take_fabric(void *to, const char *value)
{
	struct play_options *o = to;

	o->fabric = sim_fabric_find(o->line.fabrics, value);
	return o->fabric
		       ? 0
		       : error_set(-EINVAL,
				   "--fabric: there is none named '%s'", value);
}

/* What every play has. */
static const struct opt common[] = {
	OPT_CALL(take_seed, "seed", "N",
		 "one seed, in this process; the same seed always gives the "
		 "same hash"),
	OPT_CALL(take_seeds, "seeds", "N|A..B",
		 "seeds 1..N or A..B (default 1..100)"),
	OPT_U32(struct play_options, line.jobs, "jobs", "N", 1,
		SIM_BATCH_JOBS_MAX, "processes (default: one per processor)"),
	OPT_CALL(take_bug, "bug", "NAME",
		 "plant a bug, to check the checks; \"list\" prints the names"),
	OPT_FLAG(struct play_options, line.trace, "trace",
		 "one seed: print every frame"),
	OPT_FLAG(struct play_options, line.json, "json",
		 "print one JSON object"),
	OPT_TEXT(struct play_options, line.kind, "kind", "NAME",
		 "which, of several plays with this name"),
	OPT_END,
};

/* ---- help --------------------------------------------------------------- */

static void print_usage(FILE *f, const struct play *play)
{
	struct opt options[OPT_ROWS_MAX];

	fprintf(f, "usage: aquifer sim %s%s%s [OPTION...]\n", play->name,
		play->kind ? " --kind " : "", play->kind ? play->kind : "");
	if (play->figures)
		fprintf(f, "       aquifer sim %s --figure NAME [OPTION...]\n",
			play->name);
	opt_help_text(play->about, f);
	opt_join(options, common, play->options);
	opt_help(options, f);
	if (play->footnote)
		opt_help_text(play->footnote, f);
	opt_help_text("Exit code 1 when a violation was found, or with --bug "
		      "when none was; 2 when it could not run.",
		      f);
}

/* ---- results ------------------------------------------------------------ */

/* What else is needed to see the seed again. */
static void print_replay(const struct play_options *opt, uint64_t seed)
{
	printf("replay: aquifer sim %s --seed %" PRIu64, opt->line.play->name,
	       seed);
	for (char **word = opt->line.words; *word; word++) {
		char name[32];
		const struct opt *o;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*word, "="),
			 *word);
		o = opt_find(common, name + strspn(name, "-"));
		if (!o || !strcmp(o->name, "bug") || !strcmp(o->name, "kind"))
			printf(**word ? " %s" : " ''", *word);
		else if (o->value && !strchr(*word, '=') && word[1])
			word++;
	}
	puts(" --trace");
}

static void print_text(const struct play_options *opt, const struct play_sum *s)
{
	const struct play *play = opt->line.play;
	double runs = (double)u64_max(s->batch.runs, 1);

	for (unsigned i = 0; i < play->count_count; i++) {
		printf("%12" PRIu64 "  ", s->count[i]);
		if (s->batch.runs > 1)
			printf("in %5.1f %% of the runs  ",
			       100 * (double)s->hit[i] / runs);
		puts(play->counts[i].help);
	}
	for (unsigned i = 0; play->point_name && play->point_name(i); i++)
		if (s->died_at[i])
			printf("%12" PRIu64 "  died before: %s\n",
			       s->died_at[i], play->point_name(i));
	if (play->report)
		play->report(opt, NULL);
	printf("%" PRIu64 " runs, hash %016" PRIx64 ", %" PRIu64
	       " with violations\n",
	       s->batch.runs, s->hash, s->batch.violated);
	if (s->batch.violated) {
		printf("%s %" PRIu64 ": %s\n", opt->line.batch.unit,
		       s->batch.first_seed, s->batch.first);
		if (!strcmp(opt->line.batch.unit, "seed"))
			print_replay(opt, s->batch.first_seed);
	}
	if (opt->bug != PLANT_none)
		printf("the planted bug %s was %s\n", plant_name(opt->bug),
		       s->batch.violated ? "found" : "not found");
}

/* Which of the words "a|b|c" it is. */
static void print_json_choice(struct json_out *j, const char *key,
			      const char *words, uint32_t index)
{
	while (index--)
		words += strcspn(words, "|") + 1;
	json_out_printf(j, key, "%.*s", (int)strcspn(words, "|"), words);
}

/* The play's options under their names: flags always, others if given. */
static void print_json_options(const struct play_options *opt,
			       struct json_out *j)
{
	const struct opt *o = opt->line.play->options;

	for (; o && o->name; o++) {
		const void *at = (const char *)opt + o->at;
		char key[32];

		snprintf(key, sizeof(key), "%s", o->name);
		for (char *p = key; *p; p++)
			*p = *p == '-' ? '_' : *p;
		if (o->kind == OPT_KIND_FLAG)
			json_out_bool(j, key, *(const bool *)at);
		else if (o->kind == OPT_KIND_U64 && *(const uint64_t *)at)
			json_out_u64(j, key, *(const uint64_t *)at);
		else if (o->kind == OPT_KIND_TEXT && *(const char *const *)at)
			json_out_string(j, key, *(const char *const *)at);
		else if (o->kind == OPT_KIND_CHOICE)
			print_json_choice(j, key, o->value,
					  *(const uint32_t *)at);
	}
	if (opt->fabric)
		json_out_string(j, "fabric", opt->fabric->name);
}

static void print_json_counts(const struct play_options *opt,
			      struct json_out *j, const char *name,
			      const uint64_t *count)
{
	json_out_object(j, name);
	for (unsigned i = 0; i < opt->line.play->count_count; i++)
		json_out_u64(j, opt->line.play->counts[i].name, count[i]);
	json_out_close(j);
}

static int print_json(const struct play_options *opt, const struct play_sum *s)
{
	const struct play *play = opt->line.play;
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", play->name);
	if (play->kind)
		json_out_string(&j, "kind", play->kind);
	json_out_u64(&j, "first_seed", opt->line.batch.from);
	json_out_u64(&j, "last_seed", opt->line.batch.to);
	json_out_u64(&j, "runs", s->batch.runs);
	json_out_u64(&j, "violations", s->batch.violated);
	json_out_printf(&j, "hash", "%016" PRIx64, s->hash);
	if (s->batch.violated) {
		json_out_object(&j, "violation");
		json_out_u64(&j, opt->line.batch.unit, s->batch.first_seed);
		json_out_string(&j, "text", s->batch.first);
		json_out_close(&j);
	}
	if (opt->bug != PLANT_none)
		json_out_string(&j, "bug", plant_name(opt->bug));
	print_json_options(opt, &j);
	if (play->report)
		play->report(opt, &j);
	print_json_counts(opt, &j, "counts", s->count);
	print_json_counts(opt, &j, "runs_with", s->hit);
	if (play->point_name) {
		json_out_object(&j, "died_before");
		for (unsigned i = 0; play->point_name(i); i++)
			json_out_u64(&j, play->point_name(i), s->died_at[i]);
		json_out_close(&j);
	}
	json_out_close(&j);
	return json_out_end(&j);
}

/* ---- runs --------------------------------------------------------------- */

static int open_file(const char *name, FILE **out)
{
	*out = name ? fopen(name, "wb") : NULL;
	return name && !*out
		       ? error_set(-errno, "%s: %s", name, strerror(errno))
		       : 0;
}

static int close_file(FILE *f, int err)
{
	return f && fclose(f) && !err ? -EIO : err;
}

/* Traces and files are of one seed, which is played in this process. */
static int run_all(struct play_options *opt, struct play_sum *s)
{
	const struct play *play = opt->line.play;
	struct sim_batch *batch = &opt->line.batch;
	int err = play->prepare ? play->prepare(opt, batch) : 0;

	if (err || !batch->one)
		return err ? err : play_seeds(play, opt, batch, s);
	opt->trace = opt->line.trace ? stdout : NULL;
	err = open_file(opt->pcap_file, &opt->pcap);
	if (!err)
		err = open_file(opt->history_file, &opt->history);
	if (!err)
		err = play_seeds(play, opt, batch, s);
	return close_file(opt->history, close_file(opt->pcap, err));
}

static int run_line(struct play_options *opt)
{
	static struct play_sum sum;
	int err;

	opt->line.batch.jobs = opt->line.jobs;
	err = run_all(opt, &sum);
	if (!err && opt->line.json)
		err = print_json(opt, &sum);
	else if (!err)
		print_text(opt, &sum);
	if (err) {
		complain(err, "sim %s: %s", opt->line.play->name,
			 error_last_code() == err ? error_last()
						  : strerror(-err));
		return PLAY_USAGE;
	}
	return !sum.batch.violated == (opt->bug == PLANT_none) ? PLAY_FINE
							       : PLAY_FOUND;
}

/* What stands behind an option, or "", where it is given at all. */
static const char *value_of(int argc, char **argv, const char *name)
{
	size_t n = strlen(name);

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], name, n) && argv[i][n] == '=')
			return argv[i] + n + 1;
		else if (!strcmp(argv[i], name))
			return i + 1 < argc ? argv[i + 1] : "";
	return NULL;
}

/* The play of that name, and of that kind where there are several. */
static const struct play *find_play(const struct play *const *plays, int argc,
				    char **argv)
{
	const char *kind = value_of(argc, argv, "--kind");

	for (; *plays; plays++)
		if (!strcmp((*plays)->name, argv[0]) &&
		    (!kind ||
		     ((*plays)->kind && !strcmp((*plays)->kind, kind))))
			return *plays;
	return NULL;
}

static int parse_and_run(struct play_options *opt, int argc, char **argv)
{
	const struct play *play = opt->line.play;
	struct opt options[OPT_ROWS_MAX];
	char who[32];
	int words;

	opt_join(options, common, play->options);
	snprintf(who, sizeof(who), "sim %s", play->name);
	switch (opt_parse(options, who, argc, argv, OPT_WORDS_NONE, opt,
			  &words)) {
	case OPT_DONE:
		break;
	case OPT_HELP:
		print_usage(stdout, play);
		return PLAY_FINE;
	case OPT_WRONG:
		complain(0, "%s", error_last());
		if (!complaint_is_json())
			print_usage(stderr, play);
		return PLAY_USAGE;
	}
	if (!opt->line.lists_bugs)
		return run_line(opt);
	plant_print(play->bugs);
	return PLAY_FINE;
}

int play_cmd(const struct play *const *plays,
	     const struct sim_fabric_choice *fabrics, int argc, char **argv)
{
	const struct play *play = find_play(plays, argc, argv);
	struct play_options *opt;
	int code;

	if (!play) {
		complain(0, "sim %s: --kind %s is unknown", argv[0],
			 value_of(argc, argv, "--kind"));
		return PLAY_USAGE;
	}
	if (play->figures && (value_of(argc, argv, "--figure") ||
			      value_of(argc, argv, "--costs")))
		return figure_cmd(play->figures, fabrics, argc, argv);
	opt = calloc(1, play->options_bytes);
	if (!opt)
		return PLAY_USAGE;
	opt->line = (struct play_line){
		.play = play,
		.fabrics = fabrics,
		.batch = {.from = 1, .to = SEEDS_DEFAULT, .unit = "seed"},
		.jobs = sim_batch_jobs(),
		.words = argv + 1};
	code = parse_and_run(opt, argc, argv);
	free(opt);
	return code;
}
