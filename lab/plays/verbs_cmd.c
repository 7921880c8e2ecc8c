/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim verbs`: arguments in, seeds run, counts and verdict out. */
#include "verbs_cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "read_alone.h"
#include "sim/batch.h"

static const char usage[] =
	"usage: aquifer sim verbs [--seed N] [--seeds N|A..B] [--jobs N]\n"
	"                         [--udp] [--auth] [--bug NAME] [--scale "
	"PERCENT]\n"
	"                         [--fabric NAME]\n"
	"                         [--trace] [--pcap FILE] [--json]\n"
	"Random verbs operations between simulated hosts, every effect "
	"checked,\n"
	"and every completion compared with what its target did.\n"
	"  --seed N    run one seed; the same seed always gives the same hash\n"
	"  --seeds     run seeds 1..N or A..B, in as many processes as --jobs\n"
	"  --udp       a network of machines: slower, with a switch that "
	"marks\n"
	"              frames and overflows\n"
	"  --auth      connections have keys, and their packets a MAC\n"
	"  --bug NAME  plant a bug in the NIC; \"list\" prints the names\n"
	"  --fabric    what carries the frames: ethernet, edm or cxl; with it, "
	"the\n"
	"              time of a lone 64 B READ is printed\n"
	"  --scale     percent of the usual number of operations\n"
	"  --trace     one seed: print every frame, request and completion\n"
	"  --pcap FILE one seed: write the delivered frames\n"
	"Exit code 1 when a check failed.\n";

struct arguments {
	struct sim_verbs_batch batch;
	bool one; /* --seed */
	bool trace;
	bool json;
	const char *pcap;
	const struct sim_fabric_choice *fabrics; /* to choose from */
	uint64_t read_ps; /* a lone READ over the chosen one */
};

enum {
	READ_BYTES = 64
};

/* An option with a value. 0, or -EINVAL. */
static int take_value(struct arguments *a, const char *name, const char *value)
{
	uint64_t v = 0;

	if (!strcmp(name, "--seed")) {
		a->one = true;
		if (!sim_batch_parse_u64(value, &a->batch.from))
			return -EINVAL;
		a->batch.to = a->batch.from;
		return 0;
	}
	if (!strcmp(name, "--seeds"))
		return sim_batch_parse_range(value, &a->batch.from,
					     &a->batch.to)
			       ? 0
			       : -EINVAL;
	if (!strcmp(name, "--bug"))
		return (a->batch.bug = plant_find(sim_verbs_bugs, value))
			       ? 0
			       : -EINVAL;
	if (!strcmp(name, "--fabric")) {
		a->batch.fabric = sim_fabric_find(a->fabrics, value);
		return a->batch.fabric ? 0 : -EINVAL;
	}
	if (!strcmp(name, "--pcap")) {
		a->pcap = value;
		return 0;
	}
	if (!sim_batch_parse_u64(value, &v) || v == 0 || v > 10000)
		return -EINVAL;
	if (!strcmp(name, "--jobs"))
		a->batch.jobs = (unsigned)u64_min(v, 64);
	else
		a->batch.scale = (unsigned)v;
	return 0;
}

static int parse(struct arguments *a, int argc, char **argv)
{
	static const char *const valued[] = {"--seed",	"--seeds", "--bug",
					     "--pcap",	"--jobs",  "--scale",
					     "--fabric"};

	for (int i = 1; i < argc; i++) {
		bool known = false;

		if (!strcmp(argv[i], "--json")) {
			a->json = true;
			continue;
		}
		if (!strcmp(argv[i], "--udp")) {
			a->batch.udp = true;
			continue;
		}
		if (!strcmp(argv[i], "--auth")) {
			a->batch.auth = true;
			continue;
		}
		if (!strcmp(argv[i], "--trace")) {
			a->trace = true;
			continue;
		}
		for (size_t k = 0; k < ARRAY_LEN(valued); k++)
			known |= !strcmp(argv[i], valued[k]);
		if (!known || i + 1 >= argc ||
		    take_value(a, argv[i], argv[i + 1])) {
			fprintf(stderr, "sim verbs: %s %s%s%s\n%s", argv[i],
				known ? "needs a fitting value"
				      : "is not an option",
				known && i + 1 < argc ? ", not " : "",
				known && i + 1 < argc ? argv[i + 1] : "",
				usage);
			return -EINVAL;
		}
		i++;
	}
	return 0;
}

static void print_text(const struct arguments *a,
		       const struct sim_verbs_sum *sum)
{
	const struct {
		const char *help;
		uint64_t value;
	} rows[] = {
#define ROW(name, help) {help, sum->counts.name},
		SIM_VERBS_COUNTS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		printf("%12" PRIu64 "  %s\n", rows[i].value, rows[i].help);
	if (a->batch.fabric)
		printf("%12.2f  ns for a lone READ of %d B over %s\n",
		       (double)a->read_ps / 1000, READ_BYTES,
		       a->batch.fabric->name);
	printf("%" PRIu64 " runs, hash %016" PRIx64 ", %" PRIu64
	       " with violations\n",
	       sum->runs, sum->hash, sum->violated);
	if (sum->missing_kind)
		printf("%" PRIu64
		       " runs in which a fault kind never happened\n",
		       sum->missing_kind);
	if (sum->violated)
		printf("seed %" PRIu64 ": %s\nreplay: aquifer sim verbs "
		       "--seed %" PRIu64 "%s%s%s%s%s%s --trace\n",
		       sum->first_seed, sum->first, sum->first_seed,
		       a->batch.udp ? " --udp" : "",
		       a->batch.auth ? " --auth" : "",
		       a->batch.fabric ? " --fabric " : "",
		       a->batch.fabric ? a->batch.fabric->name : "",
		       a->batch.bug ? " --bug " : "",
		       a->batch.bug ? plant_name(a->batch.bug) : "");
}

static void print_json(const struct arguments *a,
		       const struct sim_verbs_sum *sum)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "verbs");
	json_out_bool(&j, "udp", a->batch.udp);
	json_out_bool(&j, "auth", a->batch.auth);
	json_out_u64(&j, "first_seed", a->batch.from);
	json_out_u64(&j, "last_seed", a->batch.to);
	json_out_u64(&j, "runs", sum->runs);
	json_out_u64(&j, "violations", sum->violated);
	json_out_u64(&j, "runs_without_a_fault_kind", sum->missing_kind);
	json_out_printf(&j, "hash", "%016" PRIx64, sum->hash);
	if (a->batch.fabric) {
		json_out_string(&j, "fabric", a->batch.fabric->name);
		json_out_double(&j, "read_64_ns", (double)a->read_ps / 1000);
	}
	if (a->batch.bug)
		json_out_string(&j, "bug", plant_name(a->batch.bug));
	if (sum->violated) {
		json_out_object(&j, "violation");
		json_out_u64(&j, "seed", sum->first_seed);
		json_out_string(&j, "text", sum->first);
		json_out_close(&j);
	}
	json_out_object(&j, "counts");
#define FIELD(name, help) json_out_u64(&j, #name, sum->counts.name);
	SIM_VERBS_COUNTS(FIELD)
#undef FIELD
	json_out_close(&j);
	json_out_close(&j);
	if (json_out_end(&j))
		fprintf(stderr, "sim verbs: writing the result failed\n");
}

/* One seed in this process, so that a debugger sees it. */
static int run_one(const struct arguments *a, struct sim_verbs_sum *sum)
{
	static struct sim_verbs_result res;
	struct sim_verbs_options opt = {.seed = a->batch.from,
					.bug = a->batch.bug,
					.scale = a->batch.scale,
					.udp = a->batch.udp,
					.auth = a->batch.auth,
					.fabric = a->batch.fabric,
					.trace = a->trace ? stdout : NULL,
					.hook = a->batch.hook};
	int err;

	if (a->pcap) {
		opt.pcap = fopen(a->pcap, "wb");
		if (!opt.pcap)
			return -errno;
	}
	err = sim_verbs_run(&opt, &res);
	if (opt.pcap && fclose(opt.pcap) && !err)
		err = -EIO;
	memset(sum, 0, sizeof(*sum));
	sum->runs = 1;
	sum->violated = res.violations != 0;
	sum->first_seed = opt.seed;
	sum->hash = res.hash;
	sum->counts = res.counts;
	memcpy(sum->first, res.first, sizeof(sum->first));
	return err;
}

static int command(int argc, char **argv,
		   const struct sim_fabric_choice *fabrics,
		   const struct sim_verbs_hook *hook)
{
	static struct sim_verbs_sum sum;
	struct arguments a = {.batch = {.from = 1,
					.to = 100,
					.jobs = sim_batch_jobs(),
					.hook = hook},
			      .fabrics = fabrics};
	int err = 0;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--bug") &&
	    !strcmp(argv[2], "list")) {
		plant_print(sim_verbs_bugs);
		return 0;
	}
	if (parse(&a, argc, argv))
		return 2;
	if (a.batch.fabric)
		err = sim_read_alone_ps(a.batch.fabric, READ_BYTES, &a.read_ps);
	if (!err)
		err = a.one ? run_one(&a, &sum)
			    : sim_verbs_run_batch(&a.batch, &sum);
	if (err) {
		fprintf(stderr, "sim verbs: %s\n", strerror(-err));
		return 1;
	}
	if (a.json)
		print_json(&a, &sum);
	else
		print_text(&a, &sum);
	return sum.violated ? 1 : 0;
}

int sim_verbs_cmd(int argc, char **argv,
		  const struct sim_fabric_choice *fabrics)
{
	return command(argc, argv, fabrics, NULL);
}

int sim_verbs_cmd_hooked(int argc, char **argv,
			 const struct sim_verbs_hook *hook)
{
	return command(argc, argv, NULL, hook);
}
