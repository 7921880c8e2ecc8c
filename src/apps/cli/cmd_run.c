/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer run`: an unmodified program on far memory. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aquifer/aquifer.h"
#include "cli.h"
#include "cli_place.h"
#include "cli_rack.h"
#include "run/run.h"

enum {
	PREFETCH_DEFAULT = 64,
	PREFETCH_MAX = 64,
	COPIES_MAX = 4,
	PAGER_THREADS_MAX = 2,
	MIN_SIZE_DEFAULT = 64 << 10,
	PAGE_SHIFT = 12,
	PATIENCE_DEFAULT = 30, /* seconds */
	PATIENCE_MAX = 60,
};

struct run_args {
	struct run_options run;
	bool json;
	bool has_overflow;
	const char *user; /* NULL: the caller, also behind sudo */
};

static int parse_number(const char *option, const char *word, unsigned min,
			unsigned max, unsigned *out)
{
	char *end;
	unsigned long v = strtoul(word, &end, 10);

	if (*word < '0' || *word > '9' || *end || v < min || v > max) {
		cli_error("%s: a number from %u to %u, not '%s'", option, min,
			  max, word);
		return -EINVAL;
	}
	*out = (unsigned)v;
	return 0;
}

/* keep, fail, or how much may be kept. */
static int parse_overflow(const char *word, struct run_args *a)
{
	a->has_overflow = true;
	if (strcmp(word, "keep") == 0)
		a->run.overflow_bytes = UINT64_MAX;
	else if (strcmp(word, "fail") == 0)
		a->run.overflow_bytes = 0;
	else
		return cli_rack_parse_size("--overflow (keep, fail or a size)",
					   word, &a->run.overflow_bytes);
	return 0;
}

static int take_option(int opt, char **argv, struct run_args *a)
{
	switch (opt) {
	case 'l':
		return cli_rack_parse_size("--local", optarg,
					   &a->run.local_bytes);
	case 'm':
		return cli_rack_parse_size("--min-size", optarg,
					   &a->run.min_bytes);
	case 'p':
		return parse_number("--prefetch", optarg, 0, PREFETCH_MAX,
				    &a->run.prefetch_max);
	case 'c':
		return parse_number("--copies", optarg, 1, COPIES_MAX,
				    &a->run.copies);
	case 't':
		return parse_number("--pager-threads", optarg, 1,
				    PAGER_THREADS_MAX, &a->run.threads);
	case 'g':
		a->run.mode = optarg;
		if (run_check_mode(optarg) == 0)
			return 0;
		cli_error("--mode: %s", aq_last_error());
		return -EINVAL;
	case 'o':
		return parse_overflow(optarg, a);
	case 'w':
		if (parse_number("--patience", optarg, 1, PATIENCE_MAX,
				 &a->run.patience_ms))
			return -EINVAL;
		a->run.patience_ms *= 1000;
		return 0;
	case 'x':
		a->run.is_strict = true;
		return 0;
	case 'n':
		a->run.is_unmapped = true;
		return 0;
	case 'v':
		a->run.is_unmoved = true;
		return 0;
	case 's':
		a->run.shows_stats = true;
		return 0;
	case 'r':
		a->run.rack = optarg;
		return 0;
	case 'u':
		a->user = optarg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return -EINVAL;
	default:
		cli_error("run has no option '%s'; see 'aquifer help run'",
			  argv[optind - 1]);
		return -EINVAL;
	}
}

static int parse(const struct cli_command *self, int argc, char **argv,
		 struct run_args *a)
{
	static const struct option longopts[] = {
		{"local", required_argument, NULL, 'l'},
		{"min-size", required_argument, NULL, 'm'},
		{"prefetch", required_argument, NULL, 'p'},
		{"copies", required_argument, NULL, 'c'},
		{"mode", required_argument, NULL, 'g'},
		{"pager-threads", required_argument, NULL, 't'},
		{"overflow", required_argument, NULL, 'o'},
		{"patience", required_argument, NULL, 'w'},
		{"strict", no_argument, NULL, 'x'},
		{"no-direct", no_argument, NULL, 'n'},
		{"no-move", no_argument, NULL, 'v'},
		{"stats", no_argument, NULL, 's'},
		{"rack", required_argument, NULL, 'r'},
		{"user", required_argument, NULL, 'u'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	*a = (struct run_args){.run = {.min_bytes = MIN_SIZE_DEFAULT,
				       .prefetch_max = PREFETCH_DEFAULT,
				       .overflow_bytes = UINT64_MAX,
				       .patience_ms = PATIENCE_DEFAULT * 1000,
				       .copies = 1}};
	optind = 0;
	while ((opt = getopt_long(argc, argv, "+:h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			cli_command_help(self, "aquifer");
			return CLI_OK;
		}
		if (take_option(opt, argv, a))
			return CLI_USAGE;
	}
	/* No limit that is not kept. */
	if (a->run.is_strict && !a->has_overflow)
		a->run.overflow_bytes = 0;
	if (a->run.local_bytes < RUN_LOCAL_MIN) {
		cli_error("run needs --local SIZE, at least 1M");
		return CLI_USAGE;
	}
	if (optind == argc) {
		cli_error("run needs a program: aquifer run --local 256M -- "
			  "PROGRAM [ARGUMENT...]");
		return CLI_USAGE;
	}
	return CLI_GO;
}

/* ---- the report --------------------------------------------------------- */

struct line {
	const char *name;
	_Atomic uint64_t *value;
	bool is_pages; /* shown in bytes */
};

static void report(const struct run_result *result, uint64_t local_bytes,
		   bool as_json)
{
	struct run_stats *s = result->stats;
	const struct line lines[] = {
		{"heap_peak", &s->heap_peak, true},
		{"resident_peak", &s->resident_peak, true},
		{"far_peak", &s->far_peak, true},
		{"faults", &s->faults, false},
		{"first_touches", &s->zero_fills, false},
		{"loads", &s->loads, false},
		{"prefetched", &s->prefetched, false},
		{"second_chances", &s->second, false},
		{"evicted", &s->evicted, false},
		{"evicted_clean", &s->evicted_clean, false},
		{"evicted_zero", &s->evicted_zero, false},
		{"stored", &s->stored, false},
		{"discarded", &s->discarded, false},
		{"pinned", &s->pinned, false},
		{"write_waits", &s->write_waits, false},
		{"forks", &s->forks, false},
		{"processes", &s->spaces_ever, false},
		{"lost_pages", &s->lost_pages, false},
		{"kept", &s->returned, false},
		{"over_peak", &s->over_peak, true},
		{"refused", &s->refused, false},
		{"locked_pages", &s->locked, false},
	};
	char size[16];

	(void)fprintf(stderr,
		      as_json ? "{\"local\": %" PRIu64
			      : "aquifer: run: local          %" PRIu64 "\n",
		      local_bytes);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		uint64_t v = atomic_load_explicit(lines[i].value,
						  memory_order_relaxed);

		if (lines[i].is_pages)
			v <<= PAGE_SHIFT;
		if (as_json)
			(void)fprintf(stderr, ", \"%s\": %" PRIu64,
				      lines[i].name, v);
		else
			(void)fprintf(stderr, "aquifer: run: %-14s %s\n",
				      lines[i].name,
				      lines[i].is_pages
					      ? cli_rack_size(v, size)
					      : (snprintf(size, sizeof(size),
							  "%" PRIu64, v),
						 size));
	}
	if (as_json && result->near)
		(void)fprintf(stderr,
			      ", \"near\": %" PRIu64 ", \"near_text\": \"%s\"",
			      result->near->bytes, result->near->text);
	if (as_json)
		(void)fputs("}\n", stderr);
}

/* A program that died of a signal: so do we, and the shell sees the same. */
static int end_as(int status)
{
	struct rlimit none = {0, 0};
	sigset_t mask;
	int sig;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	sig = WTERMSIG(status);
	(void)setrlimit(RLIMIT_CORE, &none); /* the program's is enough */
	(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, sig);
	(void)fflush(NULL);
	(void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
	(void)raise(sig);
	return 128 + sig;
}

int cmd_run(const struct cli_command *self, int argc, char **argv)
{
	struct run_result result;
	struct run_user user;
	char library[PATH_MAX], size[16];
	struct run_args a;
	int code = parse(self, argc, argv, &a);
	int err;

	if (code != CLI_GO)
		return code;
	if (cli_place_run_library(library) != 0) {
		cli_error("no %s; run 'make' or 'make install'", library);
		return CLI_CANNOT_RUN;
	}
	a.run.preload = library;
	err = run_user_find(a.user, &user);
	if (err) {
		cli_error("run: %s", aq_last_error());
		return a.user ? CLI_USAGE : CLI_CANNOT_RUN;
	}
	a.run.user = &user;
	err = run_program(&a.run, argv + optind, &result);
	run_user_release(&user);
	if (err)
		return err == -ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
	if (a.run.shows_stats || a.json)
		report(&result, a.run.local_bytes, a.json);
	if (result.near && !a.json)
		(void)fprintf(stderr, "aquifer: run: %s %s\n",
			      cli_rack_size(result.near->bytes, size),
			      result.near->text);
	return end_as(result.status);
}
