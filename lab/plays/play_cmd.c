/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim NAME`: arguments in, seeds played, counts and verdict out. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "play.h"

enum {
	SEEDS_DEFAULT = 100,
};

struct line {
	char who[32]; /* "sim kv" */
	const struct play *play;
	struct play_options *opt; /* the play's */
	struct sim_batch batch;
	uint64_t jobs;
	bool json, trace, lists_bugs;
	int argc;
	char **argv;
};

/* ---- options ------------------------------------------------------------ */

static int take_seed(void *to, const char *value)
{
	struct line *l = to;

	l->batch.one = true;
	if (!sim_batch_parse_u64(value, &l->batch.from))
		return -EINVAL;
	l->batch.to = l->batch.from;
	return 0;
}

static int take_seeds(void *to, const char *value)
{
	struct line *l = to;

	l->batch.one = false;
	return sim_batch_parse_range(value, &l->batch.from, &l->batch.to)
		       ? 0
		       : -EINVAL;
}

static int take_bug(void *to, const char *value)
{
	struct line *l = to;

	l->lists_bugs = !strcmp(value, "list");
	if (l->lists_bugs)
		return 0;
	l->opt->bug = plant_find(l->play->bugs, value);
	return l->opt->bug == PLANT_none ? -EINVAL : 0;
}

/* What every play has, into a struct line. */
static const struct sim_option common[] = {
	{"--seed", "N",
	 "one seed, in this process; the same seed always gives the "
	 "same hash",
	 .kind = SIM_TAKE, .take = take_seed},
	{"--seeds", "N|A..B", "seeds 1..N or A..B (default 1..100)",
	 .kind = SIM_TAKE, .take = take_seeds},
	{"--jobs", "N", "processes (default: one per processor)",
	 .kind = SIM_NUMBER, .at = offsetof(struct line, jobs)},
	{"--bug", "NAME",
	 "plant a bug, to check the checks; \"list\" prints the names",
	 .kind = SIM_TAKE, .take = take_bug},
	{"--trace", NULL, "one seed: print every frame", .kind = SIM_FLAG,
	 .at = offsetof(struct line, trace)},
	{"--json", NULL, "print one JSON object", .kind = SIM_FLAG,
	 .at = offsetof(struct line, json)},
	{.name = NULL},
};

/* ---- help --------------------------------------------------------------- */

static void print_usage(FILE *f, const struct play *play)
{
	fprintf(f, "usage: aquifer sim %s%s%s [OPTION...]\n", play->name,
		play->kind ? " --kind " : "", play->kind ? play->kind : "");
	if (play->figure)
		fprintf(f, "       aquifer sim %s --figure NAME [OPTION...]\n",
			play->name);
	sim_text_print(f, play->about);
	sim_options_help(f, common);
	sim_options_help(f, play->options);
	if (play->footnote)
		sim_text_print(f, play->footnote);
	sim_text_print(f,
		       "Exit code 1 when a violation was found, or with --bug "
		       "when none was; 2 when it could not run.");
}

/* ---- results ------------------------------------------------------------ */

/* What else is needed to see the seed again. */
static void print_replay(const struct line *l, uint64_t seed)
{
	printf("replay: aquifer sim %s --seed %" PRIu64, l->play->name, seed);
	for (int i = 1; i < l->argc; i++) {
		const struct sim_option *o =
			sim_option_find(common, l->argv[i]);

		if (o && strcmp(o->name, "--bug") != 0) {
			i += o->value != NULL;
			continue;
		}
		printf(*l->argv[i] ? " %s" : " ''", l->argv[i]);
	}
	puts(" --trace");
}

static void print_text(const struct line *l, const struct play_sum *s)
{
	const struct play *play = l->play;
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
		play->report(l->opt, NULL);
	printf("%" PRIu64 " runs, hash %016" PRIx64 ", %" PRIu64
	       " with violations\n",
	       s->batch.runs, s->hash, s->batch.violated);
	if (s->batch.violated) {
		printf("%s %" PRIu64 ": %s\n", l->batch.unit,
		       s->batch.first_seed, s->batch.first);
		if (!strcmp(l->batch.unit, "seed"))
			print_replay(l, s->batch.first_seed);
	}
	if (l->opt->bug != PLANT_none)
		printf("the planted bug %s was %s\n", plant_name(l->opt->bug),
		       s->batch.violated ? "found" : "not found");
}

/* The play's options under their names: flags always, others if given. */
static void print_json_options(const struct line *l, struct json_out *j)
{
	const struct sim_option *o = l->play->options;

	for (; o && o->name; o++) {
		const void *at = (const char *)l->opt + o->at;
		char key[32];

		snprintf(key, sizeof(key), "%s", o->name + 2);
		for (char *p = key; *p; p++)
			*p = *p == '-' ? '_' : *p;
		if (o->kind == SIM_FLAG)
			json_out_bool(j, key, *(const bool *)at);
		else if (o->kind == SIM_NUMBER && *(const uint64_t *)at)
			json_out_u64(j, key, *(const uint64_t *)at);
		else if (o->kind == SIM_TEXT && *(const char *const *)at)
			json_out_string(j, key, *(const char *const *)at);
		else if (o->kind == SIM_CHOICE)
			json_out_string(j, key,
					o->names[*(const unsigned *)at]);
	}
	if (l->opt->fabric)
		json_out_string(j, "fabric", l->opt->fabric->name);
}

static void print_json_counts(const struct line *l, struct json_out *j,
			      const char *name, const uint64_t *count)
{
	json_out_object(j, name);
	for (unsigned i = 0; i < l->play->count_count; i++)
		json_out_u64(j, l->play->counts[i].name, count[i]);
	json_out_close(j);
}

static int print_json(const struct line *l, const struct play_sum *s)
{
	const struct play *play = l->play;
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", play->name);
	if (play->kind)
		json_out_string(&j, "kind", play->kind);
	json_out_u64(&j, "first_seed", l->batch.from);
	json_out_u64(&j, "last_seed", l->batch.to);
	json_out_u64(&j, "runs", s->batch.runs);
	json_out_u64(&j, "violations", s->batch.violated);
	json_out_printf(&j, "hash", "%016" PRIx64, s->hash);
	if (s->batch.violated) {
		json_out_object(&j, "violation");
		json_out_u64(&j, l->batch.unit, s->batch.first_seed);
		json_out_string(&j, "text", s->batch.first);
		json_out_close(&j);
	}
	if (l->opt->bug != PLANT_none)
		json_out_string(&j, "bug", plant_name(l->opt->bug));
	print_json_options(l, &j);
	if (play->report)
		play->report(l->opt, &j);
	print_json_counts(l, &j, "counts", s->count);
	print_json_counts(l, &j, "runs_with", s->hit);
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
static int run_all(struct line *l, struct play_sum *s)
{
	struct play_options *opt = l->opt;
	int err = l->play->prepare ? l->play->prepare(opt, &l->batch) : 0;

	if (err || !l->batch.one)
		return err ? err : play_seeds(l->play, opt, &l->batch, s);
	opt->trace = l->trace ? stdout : NULL;
	err = open_file(opt->pcap_file, &opt->pcap);
	if (!err)
		err = open_file(opt->history_file, &opt->history);
	if (!err)
		err = play_seeds(l->play, opt, &l->batch, s);
	return close_file(opt->history, close_file(opt->pcap, err));
}

static int run_line(struct line *l)
{
	static struct play_sum sum;
	int err;

	l->batch.jobs = (unsigned)u64_min(l->jobs, SIM_BATCH_JOBS_MAX);
	err = run_all(l, &sum);
	if (!err && l->json)
		err = print_json(l, &sum);
	else if (!err)
		print_text(l, &sum);
	if (err) {
		fprintf(stderr, "aquifer: %s: %s\n", l->who,
			error_last_code() == err ? error_last()
						 : strerror(-err));
		return PLAY_USAGE;
	}
	return !sum.batch.violated == (l->opt->bug == PLANT_none) ? PLAY_FINE
								  : PLAY_FOUND;
}

static const char *value_of(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
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

int play_cmd(const struct play *const *plays,
	     const struct sim_fabric_choice *fabrics, int argc, char **argv)
{
	static const struct sim_option kind[] = {
		{"--kind", "NAME", NULL, .kind = SIM_TEXT},
		{.name = NULL},
	};
	struct line l = {
		.play = find_play(plays, argc, argv),
		.batch = {.from = 1, .to = SEEDS_DEFAULT, .unit = "seed"},
		.jobs = sim_batch_jobs(),
		.argc = argc,
		.argv = argv};
	const char *the_kind = NULL;
	int code = PLAY_USAGE;

	if (!l.play) {
		fprintf(stderr, "aquifer: sim %s: --kind %s is unknown\n",
			argv[0], value_of(argc, argv, "--kind"));
		return PLAY_USAGE;
	}
	snprintf(l.who, sizeof(l.who), "sim %s", argv[0]);
	if (l.play->figure && (value_of(argc, argv, "--figure") ||
			       value_of(argc, argv, "--costs")))
		return l.play->figure(argc, argv);
	if (value_of(argc, argv, "--help")) {
		print_usage(stdout, l.play);
		return PLAY_FINE;
	}
	l.opt = calloc(1, l.play->options_bytes);
	if (!l.opt)
		return PLAY_USAGE;
	if (sim_options_parse(l.who,
			      (struct sim_options[]){
				      {common, &l},
				      {l.play->options, l.opt},
				      {l.play->kind ? kind : NULL, &the_kind},
				      {NULL, NULL}},
			      fabrics, argc, argv)) {
		print_usage(stderr, l.play);
	} else if (l.lists_bugs) {
		plant_print(l.play->bugs);
		code = PLAY_FINE;
	} else {
		code = run_line(&l);
	}
	free(l.opt);
	return code;
}
