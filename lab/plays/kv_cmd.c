/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim kv`: arguments in, seeds run, counts and verdict out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "figures/commands.h"
#include "kv/kv.h"
#include "kv_play.h"
#include "sim/batch.h"

static const char usage[] =
	"usage: aquifer sim kv [--seed N] [--seeds N|A..B] [--jobs N]\n"
	"                      [--fabric NAME] [--leaves]\n"
	"                      [--trace] [--json]\n"
	"       aquifer sim kv --figure NAME [OPTION...]\n"
	"Clients change and read keys of one table over a bad network, and "
	"die\n"
	"or fall asleep before any of their requests. The history must be\n"
	"linearizable, and every invariant of the table must hold at the end.\n"
	"  --seed N    run one seed; the same seed always gives the same hash\n"
	"  --seeds     run seeds 1..N or A..B (default 1..100)\n"
	"  --fabric    what carries the frames: ethernet, edm or cxl\n"
	"  --leaves    three nodes, shards and copies; clients also resize "
	"the\n"
	"              table and die over it, and nodes are killed\n"
	"  --bug NAME  plant a bug: a check of what has overtaken a put "
	"(overtake),\n"
	"              or with --leaves terms, locks, mirror or graves are "
	"left out\n"
	"  --trace     one seed: print every frame\n"
	"Exit code 1 when a check failed.\n";

struct arguments {
	struct sim_batch batch;
	struct kv_play_options opt;
	struct kv_play_counts counts;
	uint64_t died_at[KV_POINT_COUNT];
	uint64_t hash;
	const struct sim_fabric_choice *fabrics; /* to choose from */
	bool json;
};

static int run(void *ctx, uint64_t seed, void *result)
{
	struct arguments *a = ctx;
	struct kv_play_options opt = a->opt;

	opt.seed = seed;
	return kv_play_run(&opt, result);
}

static const char *add(void *ctx, uint64_t seed, const void *result)
{
	const struct kv_play_result *r = result;
	struct arguments *a = ctx;

#define ADD(name, help) a->counts.name += r->counts.name;
	KV_PLAY_COUNTS(ADD)
#undef ADD
	for (unsigned i = 0; i < KV_POINT_COUNT; i++)
		a->died_at[i] += r->died_at[i];
	a->hash += r->hash * (2 * seed + 1);
	return r->violations ? r->first : NULL;
}

static int take_value(void *ctx, const char *name, const char *value)
{
	struct arguments *a = ctx;

	if (!strcmp(name, "--fabric")) {
		a->opt.fabric = sim_fabric_find(a->fabrics, value);
		return a->opt.fabric ? 0 : -EINVAL;
	}
	if (!strcmp(name, "--bug"))
		return (a->opt.bug = plant_find(kv_play_bugs, value)) ? 0
								      : -EINVAL;
	return sim_batch_take(&a->batch, name, value);
}

static int parse(struct arguments *a, int argc, char **argv)
{
	const struct sim_batch_flag flags[] = {
		{"--leaves", &a->opt.leaves},
	};
	const struct sim_batch_line line = {.who = "sim kv",
					    .usage = usage,
					    .json = &a->json,
					    .trace = &a->opt.trace,
					    .take = take_value,
					    .ctx = a,
					    .flags = flags,
					    .flag_count = ARRAY_LEN(flags)};

	return sim_batch_parse(&line, argc, argv);
}

static void print_text(const struct arguments *a,
		       const struct sim_batch_sum *sum)
{
	const struct {
		const char *help;
		uint64_t value;
	} rows[] = {
#define ROW(name, help) {help, a->counts.name},
		KV_PLAY_COUNTS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		printf("%12" PRIu64 "  %s\n", rows[i].value, rows[i].help);
	for (unsigned i = 0; i < KV_POINT_COUNT; i++)
		if (a->died_at[i])
			printf("%12" PRIu64 "  died before: %s\n",
			       a->died_at[i], kv_point_name((enum kv_point)i));
	sim_batch_print(sum, a->hash);
}

static void print_json(const struct arguments *a,
		       const struct sim_batch_sum *sum)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "kv");
	if (a->opt.fabric)
		json_out_string(&j, "fabric", a->opt.fabric->name);
	sim_batch_print_json(&j, &a->batch, sum, a->hash);
	json_out_object(&j, "counts");
#define FIELD(name, help) json_out_u64(&j, #name, a->counts.name);
	KV_PLAY_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_object(&j, "died_before");
	for (unsigned i = 0; i < KV_POINT_COUNT; i++)
		json_out_u64(&j, kv_point_name((enum kv_point)i),
			     a->died_at[i]);
	json_out_close(&j);
	json_out_close(&j);
	(void)!json_out_end(&j);
}

int kv_play_cmd(int argc, char **argv, const struct sim_fabric_choice *fabrics)
{
	struct arguments a = {
		.batch = {.from = 1,
			  .to = 100,
			  .jobs = sim_batch_jobs(),
			  .result_bytes = sizeof(struct kv_play_result),
			  .run = run,
			  .add = add},
		.fabrics = fabrics};
	struct sim_batch_sum sum;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--figure"))
			return kv_figure_cmd(argc, argv);
	a.batch.ctx = &a;
	if (parse(&a, argc, argv))
		return 2;
	if (sim_batch_run(&a.batch, &sum))
		return 2;
	if (a.json)
		print_json(&a, &sum);
	else
		print_text(&a, &sum);
	return sum.violated ? 1 : 0;
}
