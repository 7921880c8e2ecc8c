/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim index`: arguments in, seeds run, counts and verdict out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "sim/batch.h"
#include "switch/steer.h"
#include "tree_play.h"
#include "vlist_play.h"

static const char usage[] =
	"usage: aquifer sim index [--kind versions|tree]\n"
	"                         [--seed N] [--seeds N|A..B] [--jobs N]\n"
	"                         [--steer on|off|both] [--bug NAME] "
	"[--trace]\n"
	"                         [--json]\n"
	"Clients read, write and delete keys of a version-list store through\n"
	"a switch, over a bad network; clients die or sleep, and the switch "
	"is\n"
	"killed and started again. The history must be linearizable and the\n"
	"store whole, whether the switch steers appends and reads or not.\n"
	"  --kind tree the ordered index instead; it has a --help of its own\n"
	"  --seed N    run one seed; the same seed always gives the same hash\n"
	"  --seeds     run seeds 1..N or A..B (default 1..100)\n"
	"  --steer     with steering, without it, or each seed both ways "
	"(default)\n"
	"  --bug NAME  plant a bug; \"list\" prints the names\n"
	"  --trace     one seed: print every frame\n"
	"Exit code 1 when a check failed.\n";

struct arguments {
	struct sim_batch batch;
	struct vlist_play_options opt;
	struct vlist_play_counts counts;
	uint64_t hash;
	bool on, off;
	bool json;
};

static void sum_up(struct vlist_play_result *to,
		   const struct vlist_play_result *r, bool steer)
{
#define ADD(name, help) to->counts.name += r->counts.name;
	VLIST_PLAY_COUNTS(ADD)
#undef ADD
	to->hash = to->hash * 31 + r->hash;
	if (r->violations && !to->violations)
		snprintf(to->first, sizeof(to->first), "steering %s: %.480s",
			 steer ? "on" : "off", r->first);
	to->violations += r->violations;
}

static int run(void *ctx, uint64_t seed, void *result)
{
	static struct vlist_play_result one;
	struct arguments *a = ctx;
	struct vlist_play_options opt = a->opt;
	struct vlist_play_result *sum = result;
	int err = 0;

	memset(sum, 0, sizeof(*sum));
	opt.seed = seed;
	for (int steer = 0; steer < 2 && !err; steer++) {
		if (!(steer ? a->on : a->off))
			continue;
		opt.steer = steer;
		err = vlist_play_run(&opt, &one);
		if (!err)
			sum_up(sum, &one, steer);
	}
	return err;
}

static const char *add(void *ctx, uint64_t seed, const void *result)
{
	const struct vlist_play_result *r = result;
	struct arguments *a = ctx;

#define ADD(name, help) a->counts.name += r->counts.name;
	VLIST_PLAY_COUNTS(ADD)
#undef ADD
	a->hash = a->batch.one ? r->hash : a->hash + r->hash * (2 * seed + 1);
	return r->violations ? r->first : NULL;
}

static int take_steer(struct arguments *a, const char *value)
{
	bool both = !strcmp(value, "both");

	a->on = both || !strcmp(value, "on");
	a->off = both || !strcmp(value, "off");
	return a->on || a->off ? 0 : -EINVAL;
}

static int take_value(void *ctx, const char *name, const char *value)
{
	struct arguments *a = ctx;

	if (!strcmp(name, "--kind"))
		return strcmp(value, "versions") ? -EINVAL : 0;
	if (!strcmp(name, "--steer"))
		return take_steer(a, value);
	if (!strcmp(name, "--bug")) {
		a->opt.bug = plant_find(vlist_play_bugs, value);
		return a->opt.bug ? 0 : -EINVAL;
	}
	return sim_batch_take(&a->batch, name, value);
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
	const struct {
		const char *help;
		uint64_t value;
	} rows[] = {
#define ROW(name, help) {help, a->counts.name},
		VLIST_PLAY_COUNTS(ROW)
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
	json_out_string(&j, "sim", "index");
	sim_batch_print_json(&j, &a->batch, sum, a->hash);
	if (a->opt.bug)
		json_out_string(&j, "bug", plant_name(a->opt.bug));
	json_out_object(&j, "counts");
#define FIELD(name, help) json_out_u64(&j, #name, a->counts.name);
	VLIST_PLAY_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_close(&j);
	if (json_out_end(&j))
		fprintf(stderr, "sim index: writing the result failed\n");
}

static bool is_tree(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--kind"))
			return !strcmp(argv[i + 1], "tree");
	return false;
}

int vlist_play_cmd(int argc, char **argv)
{
	struct arguments a = {
		.on = true,
		.off = true,
		.batch = {.from = 1, .to = 100, .jobs = sim_batch_jobs()}};
	struct sim_batch_sum sum;
	int err;

	if (is_tree(argc, argv))
		return tree_play_cmd(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--bug") &&
	    !strcmp(argv[2], "list")) {
		plant_print(vlist_play_bugs);
		return 0;
	}
	if (parse(&a, argc, argv))
		return 2;
	a.batch.ctx = &a;
	a.batch.run = run;
	a.batch.add = add;
	a.batch.result_bytes = sizeof(struct vlist_play_result);
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
