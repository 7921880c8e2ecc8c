/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim offload`: arguments in, seeds played, counts and verdict out. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "figures/commands.h"
#include "offload_batch.h"

enum {
	EXIT_FOUND = 1,
	EXIT_USAGE = 2,
	SEEDS_DEFAULT = 100,
};

static const char usage[] =
	"usage: aquifer sim offload [--seed N] [--seeds N|A..B] [--points]\n"
	"                           [--jobs N] [--bug NAME] [--scale PERCENT]\n"
	"                           [--history FILE] [--trace] [--pcap FILE]\n"
	"                           [--fabric NAME] [--json]\n"
	"       aquifer sim offload --figure NAME [OPTION...]\n"
	"       aquifer sim offload --costs\n"
	"Asynchronous far memory over a bad network: engines are killed and\n"
	"followed by others, memory nodes and applications die; what the\n"
	"threads saw is checked for linearizability.\n"
	"  --seed N        run one seed; the same seed gives the same hash\n"
	"  --seeds         run seeds 1..N or A..B (100)\n"
	"  --points        kill the engine of one seed before, inside and "
	"after\n"
	"                  each of its doorbells, with no other fault\n"
	"  --jobs N        processes (all processors)\n"
	"  --bug NAME      plant a bug; \"list\" prints the names\n"
	"  --scale PERCENT of the usual number of requests\n"
	"  --fabric NAME   what carries the frames: ethernet, edm or cxl\n"
	"  --history FILE  one seed: write what the threads saw, for\n"
	"                  'aquifer sim check --initial 0'\n"
	"  --trace         one seed: print every frame\n"
	"  --pcap FILE     one seed: write the delivered frames\n"
	"  --costs         what processors cost in figures, and the sources\n"
	"Exit code 1 when a check failed.\n";

struct arguments {
	struct offload_batch batch;
	bool one;
	bool trace;
	bool json;
	const char *pcap;
	const char *history;
	const struct sim_fabric_choice *fabrics; /* to choose from */
	bool costs;
};

static bool take(struct arguments *a, const char *name, const char *value)
{
	uint64_t v = 0;

	if (!strcmp(name, "--seed")) {
		a->one = true;
		a->batch.seed = 0;
		if (!sim_batch_parse_u64(value, &a->batch.seed))
			return false;
		a->batch.from = a->batch.to = a->batch.seed;
		return true;
	}
	if (!strcmp(name, "--seeds"))
		return sim_batch_parse_range(value, &a->batch.from,
					     &a->batch.to);
	if (!strcmp(name, "--bug"))
		return (a->batch.bug = plant_find(offload_play_bugs, value)) !=
		       PLANT_none;
	if (!strcmp(name, "--pcap")) {
		a->pcap = value;
		return true;
	}
	if (!strcmp(name, "--fabric")) {
		a->batch.fabric = sim_fabric_find(a->fabrics, value);
		return a->batch.fabric != NULL;
	}
	if (!strcmp(name, "--history")) {
		a->history = value;
		return true;
	}
	if (!sim_batch_parse_u64(value, &v) || v == 0 || v > 10000)
		return false;
	if (!strcmp(name, "--jobs"))
		a->batch.jobs = (unsigned)u64_min(v, SIM_BATCH_JOBS_MAX);
	else
		a->batch.scale = (unsigned)v;
	return true;
}

static bool flag(struct arguments *a, const char *name)
{
	if (!strcmp(name, "--json"))
		a->json = true;
	else if (!strcmp(name, "--trace"))
		a->trace = true;
	else if (!strcmp(name, "--costs"))
		a->costs = true;
	else if (!strcmp(name, "--points"))
		a->batch.points = true;
	else
		return false;
	return true;
}

static bool parse(struct arguments *a, int argc, char **argv)
{
	static const char *const valued[] = {"--seed",	  "--seeds", "--bug",
					     "--pcap",	  "--jobs",  "--scale",
					     "--history", "--fabric"};

	for (int i = 1; i < argc; i++) {
		bool known = false;

		if (flag(a, argv[i]))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(valued); k++)
			known |= !strcmp(argv[i], valued[k]);
		if (!known || i + 1 >= argc || !take(a, argv[i], argv[i + 1])) {
			fprintf(stderr, "aquifer: sim offload: %s %s\n%s",
				argv[i],
				known ? "needs a fitting value"
				      : "is not an option",
				usage);
			return false;
		}
		i++;
	}
	return true;
}

/* ---- results ------------------------------------------------------------ */

static void print_text(const struct arguments *a, const struct offload_sum *s)
{
	const struct {
		const char *help;
		uint64_t value, hit;
	} rows[] = {
#define ROW(name, help) {help, s->counts.name, s->hit.name},
		OFFLOAD_PLAY_COUNTS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		printf("%12" PRIu64 "  in %5.1f %% of the runs  %s\n",
		       rows[i].value,
		       s->sum.runs ? 100.0 * (double)rows[i].hit /
					     (double)s->sum.runs
				   : 0.0,
		       rows[i].help);
	printf("%" PRIu64 " runs, hash %016" PRIx64 ", %" PRIu64
	       " with violations\n",
	       s->sum.runs, s->hash, s->sum.violated);
	if (!s->sum.violated)
		return;
	printf("%s %" PRIu64 ": %s\n", a->batch.points ? "point" : "seed",
	       s->sum.first_seed, s->sum.first);
	if (!a->batch.points)
		printf("replay: aquifer sim offload --seed %" PRIu64
		       "%s%s%s%s --trace\n",
		       s->sum.first_seed, a->batch.fabric ? " --fabric " : "",
		       a->batch.fabric ? a->batch.fabric->name : "",
		       a->batch.bug ? " --bug " : "",
		       a->batch.bug ? plant_name(a->batch.bug) : "");
}

static void print_json(const struct arguments *a, const struct offload_sum *s)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "offload");
	if (a->batch.fabric)
		json_out_string(&j, "fabric", a->batch.fabric->name);
	json_out_u64(&j, "first_seed", a->batch.from);
	json_out_u64(&j, "last_seed", a->batch.to);
	json_out_u64(&j, "runs", s->sum.runs);
	json_out_u64(&j, "violations", s->sum.violated);
	json_out_printf(&j, "hash", "%016" PRIx64, s->hash);
	if (a->batch.bug)
		json_out_string(&j, "bug", plant_name(a->batch.bug));
	if (s->sum.violated) {
		json_out_object(&j, "violation");
		json_out_u64(&j, "seed", s->sum.first_seed);
		json_out_string(&j, "text", s->sum.first);
		json_out_close(&j);
	}
	json_out_object(&j, "counts");
#define FIELD(name, help) json_out_u64(&j, #name, s->counts.name);
	OFFLOAD_PLAY_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_object(&j, "runs_with");
#define FIELD(name, help) json_out_u64(&j, #name, s->hit.name);
	OFFLOAD_PLAY_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_close(&j);
	if (json_out_end(&j))
		fprintf(stderr, "sim offload: writing the result failed\n");
}

/* ---- runs --------------------------------------------------------------- */

static int open_file(const char *name, FILE **out)
{
	*out = name ? fopen(name, "wb") : NULL;
	return name && !*out ? -errno : 0;
}

static int close_file(FILE *f, int err)
{
	return f && fclose(f) && !err ? -EIO : err;
}

/* One seed in this process, so that a debugger sees it. */
static int run_one(const struct arguments *a, struct offload_sum *s)
{
	static struct offload_play_result res;
	struct offload_play_options opt = {.seed = a->batch.seed,
					   .bug = a->batch.bug,
					   .scale = a->batch.scale,
					   .fabric = a->batch.fabric,
					   .trace = a->trace ? stdout : NULL};
	int err = open_file(a->pcap, &opt.pcap);

	if (!err)
		err = open_file(a->history, &opt.history);
	if (!err)
		err = offload_play_run(&opt, &res);
	err = close_file(opt.pcap, err);
	err = close_file(opt.history, err);
	memset(s, 0, sizeof(*s));
	s->sum.runs = 1;
	s->sum.violated = res.violations != 0;
	s->sum.first_seed = opt.seed;
	memcpy(s->sum.first, res.first, sizeof(s->sum.first));
	s->hash = res.hash;
	s->counts = res.counts;
#define HIT(name, help) s->hit.name = res.counts.name != 0;
	OFFLOAD_PLAY_COUNTS(HIT)
#undef HIT
	return err;
}

/* How many doorbells there are is known after a run without a kill. */
static int run_points(struct arguments *a, struct offload_sum *s)
{
	static struct offload_play_result res;
	struct offload_play_options opt = {.seed = a->batch.seed,
					   .bug = a->batch.bug,
					   .scale = a->batch.scale,
					   .fabric = a->batch.fabric,
					   .point = UINT64_MAX};
	int err = offload_play_run(&opt, &res);

	if (err)
		return err;
	a->batch.from = 1;
	a->batch.to = res.doorbells * OFFLOAD_POINT_WHENS;
	return offload_batch_run(&a->batch, s);
}

int scenario_offload_cmd(int argc, char **argv,
			 const struct sim_fabric_choice *fabrics)
{
	static struct offload_sum sum;
	struct arguments a = {.batch = {.from = 1,
					.to = SEEDS_DEFAULT,
					.seed = 1,
					.jobs = sim_batch_jobs()},
			      .fabrics = fabrics};
	int err;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--bug") &&
	    !strcmp(argv[2], "list")) {
		plant_print(offload_play_bugs);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--figure"))
			return offload_figure_cmd(argc, argv);
	if (!parse(&a, argc, argv))
		return EXIT_USAGE;
	if (a.costs) {
		offload_costs_print();
		return 0;
	}
	if (a.batch.points)
		err = run_points(&a, &sum);
	else
		err = a.one ? run_one(&a, &sum)
			    : offload_batch_run(&a.batch, &sum);
	if (err) {
		fprintf(stderr, "aquifer: sim offload: %s\n", strerror(-err));
		return EXIT_FOUND;
	}
	if (a.json)
		print_json(&a, &sum);
	else
		print_text(&a, &sum);
	return sum.sum.violated ? EXIT_FOUND : 0;
}
