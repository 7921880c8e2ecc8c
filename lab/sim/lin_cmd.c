/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim check`: is the history in a file linearizable? */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/json_out.h"
#include "base/opt.h"
#include "lin_file.h"

enum {
	EXIT_USAGE = 2,
	EXIT_UNKNOWN = 3,
	SHOWN_LINES = 40,
};

struct arguments {
	enum lin_model model;
	struct lin_value initial;
	uint64_t steps, memory_mib;
	bool json;
	const char *file;
};

static int take_model(void *to, const char *value)
{
	return lin_model_find(value, &((struct arguments *)to)->model)
		       ? error_set(-EINVAL, "--model: there is none named '%s'",
				   value)
		       : 0;
}

static int take_initial(void *to, const char *value)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(value, &end, 0);
	((struct arguments *)to)->initial = lin_int((uint64_t)n);
	return *value && !errno && !*end
		       ? 0
		       : error_set(-EINVAL, "--initial is a number, not '%s'",
				   value);
}

static const struct opt options[] = {
	OPT_CALL(take_model, "model", "NAME",
		 "register, cas-register, counter or kv (kv)"),
	OPT_CALL(take_initial, "initial", "N",
		 "an integer that every key holds at first (nothing)"),
	OPT_U64(struct arguments, steps, "steps", "N", 1, UINT64_MAX,
		"give up after so many steps (100000000)"),
	OPT_U64(struct arguments, memory_mib, "memory", "MIB", 1, (1 << 20) - 1,
		"for states seen before (256)"),
	OPT_FLAG(struct arguments, json, "json", "print one JSON object"),
	OPT_END,
};

static void print_usage(FILE *f)
{
	fputs("usage: aquifer sim check [OPTION...] FILE\n", f);
	opt_help_text("Searches for an order that explains a history of "
		      "concurrent operations: one JSON object per line of the "
		      "file; \"-\" is standard input.",
		      f);
	opt_help(options, f);
	opt_help_text("Exit code 0: linearizable, 1: violated, 2: wrong "
		      "usage or file, 3: unknown, because the search gave "
		      "up. Unknown is not a pass.",
		      f);
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
	struct lin_limits limits = {.steps = a->steps,
				    .cache_bytes = a->memory_mib << 20};
	struct lin_result res;
	int err = lin_history_read(h, in, a->file);

	if (!err)
		err = lin_check(h, a->model, &limits, &res);
	if (!err)
		err = a->json ? print_json(a, &res) : print_text(h, &res);
	if (!err)
		return codes[res.verdict];
	complain(err, "sim check: %s",
		 err == -ENOMEM || err == -EIO ? strerror(-err) : error_last());
	return EXIT_USAGE;
}

int sim_check_cmd(int argc, char **argv)
{
	struct arguments a = {.model = LIN_MODEL_KV, .initial = lin_nil()};
	struct lin_history *h;
	FILE *in;
	int code, words = argc;
	enum opt_result parsed = opt_parse(options, "sim check", argc, argv,
					   OPT_WORDS_ANY, &a, &words);

	if (parsed == OPT_HELP) {
		print_usage(stdout);
		return 0;
	}
	if (parsed == OPT_WRONG || words + 1 != argc) {
		complain(0, "sim check: %s",
			 parsed == OPT_WRONG ? error_last() : "which file?");
		if (!complaint_is_json())
			print_usage(stderr);
		return EXIT_USAGE;
	}
	a.file = argv[words];
	in = strcmp(a.file, "-") ? fopen(a.file, "r") : stdin;
	if (!in) {
		complain(-errno, "sim check: %s: %s", a.file, strerror(errno));
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
