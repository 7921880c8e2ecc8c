/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim index --kind tree`: arguments in, seeds run, counts and verdict
 * out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "index/tree.h"
#include "sim/batch.h"
#include "tree_play.h"

static const char usage[] =
	"usage: aquifer sim index --kind tree [--seed N] [--seeds N|A..B]\n"
	"                         [--jobs N] [--switch OPTIONS] [--bug NAME]\n"
	"                         [--trace] [--json]\n"
	"Clients read, write, delete and scan keys of an ordered index over a\n"
	"bad network; they die or sleep at any request. The history must be\n"
	"linearizable, a scan as one read of each key in its range, and the\n"
	"index whole.\n"
	"  --seed N    run one seed; the same seed always gives the same hash\n"
	"  --seeds     run seeds 1..N or A..B (default 1..100)\n"
	"  --switch    the program swordbox with these options, or \"\", "
	"replaces\n"
	"              the atomics on the locks, and is restarted now and "
	"then\n"
	"  --bug NAME  plant a bug; \"list\" prints the names\n"
	"  --trace     one seed: print every frame\n"
	"Exit code 1 when a check failed.\n";

struct arguments {
	struct sim_batch batch;
	struct tree_play_options opt;
	struct tree_play_counts counts;
	uint64_t hash;
	bool json;
};

static int run(void *ctx, uint64_t seed, void *result)
{
	const struct arguments *a = ctx;
	struct tree_play_options opt = a->opt;

	opt.seed = seed;
	return tree_play_run(&opt, result);
}

static const char *add(void *ctx, uint64_t seed, const void *result)
{
	const struct tree_play_result *r = result;
	struct arguments *a = ctx;

#define ADD(name, help) a->counts.name += r->counts.name;
	TREE_PLAY_COUNTS(ADD)
#undef ADD
	a->hash = a->batch.one ? r->hash : a->hash + r->hash * (2 * seed + 1);
	return r->violations ? r->first : NULL;
}

static int take_value(void *ctx, const char *name, const char *value)
{
	struct arguments *a = ctx;

	if (!strcmp(name, "--kind"))
		return strcmp(value, "tree") ? -EINVAL : 0;
	if (!strcmp(name, "--switch")) {
		a->opt.sword = value;
		return 0;
	}
	if (strcmp(name, "--bug") != 0)
		return sim_batch_take(&a->batch, name, value);
	a->opt.bug = plant_find(tree_play_bugs, value);
	return a->opt.bug ? 0 : -EINVAL;
}

static int parse(struct arguments *a, int argc, char **argv)
{
	const struct sim_batch_line line = {.who = "sim index",
					    .usage = usage,
					    .json = &a->json,
					    .trace = &a->opt.trace,
					    .take = take_value,
					    .ctx = a};

	return sim_batch_parse(&line, argc, argv);
}

static void print_text(const struct arguments *a,
		       const struct sim_batch_sum *sum)
{
#define ROW(name, help) printf("%12" PRIu64 "  %s\n", a->counts.name, help);
	TREE_PLAY_COUNTS(ROW)
#undef ROW
	sim_batch_print(sum, a->hash);
}

static void print_json(const struct arguments *a,
		       const struct sim_batch_sum *sum)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "index");
	json_out_string(&j, "kind", "tree");
	sim_batch_print_json(&j, &a->batch, sum, a->hash);
	if (a->opt.sword)
		json_out_string(&j, "switch", a->opt.sword);
	if (a->opt.bug)
		json_out_string(&j, "bug", plant_name(a->opt.bug));
	json_out_object(&j, "counts");
#define FIELD(name, help) json_out_u64(&j, #name, a->counts.name);
	TREE_PLAY_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_close(&j);
	if (json_out_end(&j))
		fprintf(stderr, "sim index: writing the result failed\n");
}

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return true;
	return false;
}

int tree_play_cmd(int argc, char **argv)
{
	struct arguments a = {
		.batch = {.from = 1, .to = 100, .jobs = sim_batch_jobs()}};
	struct sim_batch_sum sum;
	int err;

	if (has(argc, argv, "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (has(argc, argv, "--bug") && has(argc, argv, "list")) {
		plant_print(tree_play_bugs);
		return 0;
	}
	if (parse(&a, argc, argv))
		return 2;
	a.batch.ctx = &a;
	a.batch.run = run;
	a.batch.add = add;
	a.batch.result_bytes = sizeof(struct tree_play_result);
	err = sim_batch_run(&a.batch, &sum);
	if (err) {
		fprintf(stderr, "sim index: %s\n", strerror(-err));
		return 1;
	}
	if (a.json)
		print_json(&a, &sum);
	else
		print_text(&a, &sum);
	return sum.violated ? 1 : 0;
}
