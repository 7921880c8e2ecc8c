/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim check`: is the history in a file linearizable? */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "lin_file.h"

enum {
	EXIT_USAGE = 2,
	EXIT_UNKNOWN = 3,
	SHOWN_LINES = 40,
};

static const char usage[] =
	"usage: aquifer sim check [--model NAME] [--initial N] [--steps N]\n"
	"                         [--memory MIB] [--json] FILE\n"
	"Searches for an order that explains a history of concurrent "
	"operations.\n"
	"FILE has one JSON object per line; \"-\" is standard input.\n"
	"  --model NAME   register, cas-register, counter or kv (kv)\n"
	"  --initial N    an integer that every key holds at first (nothing)\n"
	"  --steps N      give up after so many steps (100000000)\n"
	"  --memory MIB   for states seen before (256)\n"
	"Exit code 0: linearizable, 1: violated, 2: wrong usage or file,\n"
	"3: unknown, because the search gave up. Unknown is not a pass.\n";

struct arguments {
	enum lin_model model;
	struct lin_value initial;
	struct lin_limits limits;
	bool json;
	const char *file;
};

static bool number(const char *text, bool sign, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = sign ? (uint64_t)strtoll(text, &end, 0)
		    : strtoull(text, &end, 0);
	return *text && !errno && !*end && (sign || *text != '-');
}

static bool take(struct arguments *a, const char *name, const char *value)
{
	uint64_t n = 0;

	if (!strcmp(name, "--model"))
		return !lin_model_find(value, &a->model);
	if (!strcmp(name, "--initial")) {
		bool ok = number(value, true, &n);

		a->initial = lin_int(n);
		return ok;
	}
	if (!number(value, false, &n) || !n)
		return false;
	if (!strcmp(name, "--steps"))
		a->limits.steps = n;
	else if (n < 1 << 20)
		a->limits.cache_bytes = n << 20;
	else
		return false;
	return true;
}

static bool parse(struct arguments *a, int argc, char **argv)
{
	static const char *const valued[] = {"--model", "--initial", "--steps",
					     "--memory"};

	for (int i = 1; i < argc; i++) {
		bool known = false;

		if (!strcmp(argv[i], "--json")) {
			a->json = true;
			continue;
		}
		for (size_t k = 0; k < ARRAY_LEN(valued); k++)
			known |= !strcmp(argv[i], valued[k]);
		if (!known && (argv[i][0] != '-' || !argv[i][1]) && !a->file) {
			a->file = argv[i];
			continue;
		}
		if (!known || i + 1 >= argc || !take(a, argv[i], argv[i + 1])) {
			fprintf(stderr, "aquifer: sim check: %s %s\n%s",
				argv[i],
				known ? "needs a fitting value"
				      : "is not an option or a second file",
				usage);
			return false;
		}
		i++;
	}
	if (!a->file)
		fprintf(stderr, "aquifer: sim check: which file?\n%s", usage);
	return a->file != NULL;
}

static int print_json(const struct arguments *a, const struct lin_result *res)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "check");
	json_out_string(&j, "file", a->file);
	json_out_string(&j, "model", lin_model_name(a->model));
	json_out_string(&j, "verdict", lin_verdict_name(res->verdict));
	json_out_u64(&j, "operations", res->ops);
	json_out_u64(&j, "keys", res->keys);
	json_out_u64(&j, "keys_violated", res->keys_violated);
	json_out_u64(&j, "keys_unknown", res->keys_unknown);
	json_out_u64(&j, "steps", res->steps);
	if (res->text[0])
		json_out_string(&j, "text", res->text);
	json_out_close(&j);
	return json_out_end(&j);
}

static int print_text(const struct lin_history *h, const struct lin_result *res)
{
	printf("%s: %" PRIu64 " operations on %" PRIu64 " keys, %" PRIu64
	       " steps\n",
	       lin_verdict_name(res->verdict), res->ops, res->keys, res->steps);
	if (res->keys_violated || res->keys_unknown)
		printf("%" PRIu64 " keys violated, %" PRIu64 " unknown\n",
		       res->keys_violated, res->keys_unknown);
	if (res->text[0])
		printf("%s\n", res->text);
	if (res->verdict == LIN_VIOLATED)
		lin_show_key(h, res->key, res->op, SHOWN_LINES, stdout);
	return fflush(stdout) || ferror(stdout) ? -EIO : 0;
}

static int run(const struct arguments *a, struct lin_history *h, FILE *in)
{
	static const int codes[] = {0, 1, EXIT_UNKNOWN};
	struct lin_result res;
	int err = lin_history_read(h, in, a->file);

	if (!err)
		err = lin_check(h, a->model, &a->limits, &res);
	if (!err)
		err = a->json ? print_json(a, &res) : print_text(h, &res);
	if (!err)
		return codes[res.verdict];
	fprintf(stderr, "aquifer: sim check: %s\n",
		err == -ENOMEM || err == -EIO ? strerror(-err) : error_last());
	return EXIT_USAGE;
}

int sim_check_cmd(int argc, char **argv)
{
	struct arguments a = {.model = LIN_MODEL_KV, .initial = lin_nil()};
	struct lin_history *h;
	FILE *in;
	int code;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (!parse(&a, argc, argv))
		return EXIT_USAGE;
	in = strcmp(a.file, "-") ? fopen(a.file, "r") : stdin;
	if (!in) {
		fprintf(stderr, "aquifer: sim check: %s: %s\n", a.file,
			strerror(errno));
		return EXIT_USAGE;
	}
	if (lin_history_create(&h)) {
		fputs("aquifer: sim check: out of memory\n", stderr);
		code = EXIT_USAGE;
	} else {
		lin_history_set_initial(h, a.initial);
		code = run(&a, h, in);
		lin_history_destroy(h);
	}
	if (in != stdin)
		(void)fclose(in); /* only read from */
	return code;
}
