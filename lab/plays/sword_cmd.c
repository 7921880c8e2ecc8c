/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim swordbox`: arguments in, seeds run, counts and verdict out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "sim/batch.h"
#include "switch/sword.h"
#include "sword_play.h"

static const char usage[] =
	"usage: aquifer sim swordbox [--seed N] [--seeds N|A..B] [--jobs N]\n"
	"                            [--bug NAME] [--trace] [--json]\n"
	"Clients compare and swap, add, read and write shared words through a\n"
	"switch that replaces atomics, over a bad network and while the "
	"switch\n"
	"is killed and started again. The history must be linearizable.\n"
	"  --seed N    run one seed; the same seed always gives the same hash\n"
	"  --seeds     run seeds 1..N or A..B (default 1..100)\n"
	"  --bug NAME  plant a bug in the switch; \"list\" prints the names\n"
	"  --trace     one seed: print every frame\n"
	"Exit code 1 when a check failed.\n";

struct arguments {
	struct sim_batch batch;
	struct sword_play_options opt;
	struct sword_play_counts counts;
	uint64_t hash;
	bool json;
};

static int run(void *ctx, uint64_t seed, void *result)
{
	struct arguments *a = ctx;
	struct sword_play_options opt = a->opt;

	opt.seed = seed;
	return sword_play_run(&opt, result);
}

static const char *add(void *ctx, uint64_t seed, const void *result)
{
	const struct sword_play_result *r = result;
	struct arguments *a = ctx;

#define ADD(name, help) a->counts.name += r->counts.name;
	SWORD_PLAY_COUNTS(ADD)
#undef ADD
	a->hash = a->batch.one ? r->hash : a->hash + r->hash * (2 * seed + 1);
	return r->violations ? r->first : NULL;
}

static int take_value(void *ctx, const char *name, const char *value)
{
	struct arguments *a = ctx;

	if (!strcmp(name, "--bug")) {
		a->opt.bug = plant_find(sword_play_bugs, value);
		return a->opt.bug ? 0 : -EINVAL;
	}
	return sim_batch_take(&a->batch, name, value);
}

static int parse(struct arguments *a, int argc, char **argv)
{
	const struct sim_batch_line line = {.who = "sim swordbox",
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
	const struct {
		const char *help;
		uint64_t value;
	} rows[] = {
#define ROW(name, help) {help, a->counts.name},
		SWORD_PLAY_COUNTS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		printf("%12" PRIu64 "  %s\n", rows[i].value, rows[i].help);
	sim_batch_print(sum, a->hash);
}

static void print_json(const struct arguments *a,
		       const struct sim_batch_sum *sum)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "swordbox");
	sim_batch_print_json(&j, &a->batch, sum, a->hash);
	if (a->opt.bug)
		json_out_string(&j, "bug", plant_name(a->opt.bug));
	json_out_object(&j, "counts");
#define FIELD(name, help) json_out_u64(&j, #name, a->counts.name);
	SWORD_PLAY_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_close(&j);
	if (json_out_end(&j))
		fprintf(stderr, "sim swordbox: writing the result failed\n");
}

int sword_play_cmd(int argc, char **argv)
{
	struct arguments a = {
		.batch = {.from = 1, .to = 100, .jobs = sim_batch_jobs()}};
	struct sim_batch_sum sum;
	int err;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--bug") &&
	    !strcmp(argv[2], "list")) {
		plant_print(sword_play_bugs);
		return 0;
	}
	if (parse(&a, argc, argv))
		return 2;
	a.batch.ctx = &a;
	a.batch.run = run;
	a.batch.add = add;
	a.batch.result_bytes = sizeof(struct sword_play_result);
	err = sim_batch_run(&a.batch, &sum);
	if (err) {
		fprintf(stderr, "sim swordbox: %s\n", strerror(-err));
		return 1;
	}
	if (a.json)
		print_json(&a, &sum);
	else
		print_text(&a, &sum);
	return sum.violated ? 1 : 0;
}
