/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer run`: an unmodified program on far memory. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aquifer/aquifer.h"
#include "base/error.h"
#include "cli.h"
#include "cli_place.h"
#include "cli_rack.h"
#include "cli_run_group.h"
#include "run/run.h"
#include "tier/promote.h"

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
	uint32_t patience_s;
	const char *tier, *ratio, *promote; /* NULL: not given */
	const char *user;   /* NULL: the caller, also behind sudo */
	const char *shared; /* the group, or NULL */
};

/* keep, fail, or how much may be kept. */
static int take_overflow(void *args, const char *word)
{
	struct run_args *a = args;

	a->has_overflow = true;
	if (strcmp(word, "keep") == 0)
		a->run.overflow_bytes = UINT64_MAX;
	else if (strcmp(word, "fail") == 0)
		a->run.overflow_bytes = 0;
	else
		return opt_size("--overflow (keep, fail or a size)", word,
				&a->run.overflow_bytes);
	return 0;
}

const struct opt cmd_run_options[] = {
	OPT_TEXT(struct run_args, shared, "shared", "GROUP",
		 "POSIX and System V shared memory and named semaphores are "
		 "common to all programs of the group on all machines"),
	OPT_SIZE(struct run_args, run.local_bytes, "local", "SIZE", 0,
		 1ull << 48,
		 "how much of the program's heap and anonymous mappings may be "
		 "in this machine's memory: 256M, at least 1M"),
	OPT_SIZE(struct run_args, run.min_bytes, "min-size", "SIZE", 0,
		 1ull << 48, "smaller mappings stay local (default 64K)"),
	OPT_TEXT(struct run_args, tier, "tier", "top=SIZE@NODE,slow=SIZE@NODE",
		 "instead of --local: how much may be on which NUMA nodes of "
		 "this machine, the faster one first"),
	OPT_TEXT(struct run_args, ratio, "interleave", "N:M",
		 "of N + M pages, N belong on the top node (default: all, "
		 "while it has room)"),
	OPT_TEXT(struct run_args, promote, "promote", "on|off|N",
		 "whether slow pages that are hot go to the top node, and how "
		 "many MiB a second (default: on, a 256th of the slow tier; "
		 "off with "
		 "--interleave)"),
	OPT_SIZE(struct run_args, run.tiers.peak_bytes_s, "top-peak", "SIZE", 1,
		 1ull << 48,
		 "what the top node moves in a second at most; above 75 % of "
		 "it nothing is promoted (default: as the firmware says)"),
	OPT_U32(struct run_args, run.prefetch_max, "prefetch", "N", 0,
		PREFETCH_MAX,
		"pages to fetch ahead of a stream (default 64; 0: off)"),
	OPT_U32(struct run_args, run.copies, "copies", "N", 1, COPIES_MAX,
		"of every page, on different nodes; also of the shared memory "
		"that the program makes, there 1 or 2 (default 1)"),
	OPT_WORD(struct run_args, run.mode, "mode", RUN_MODES,
		 "how the nodes find room for a page (default auto: sparse "
		 "where a node is on this host, else static)"),
	OPT_CALL(take_overflow, "overflow", "keep|fail|SIZE",
		 "what the rack has no room for: keep it in local memory (the "
		 "default), SIGBUS for who needs it (fail), or keep so much "
		 "more than --local"),
	OPT_U32(struct run_args, patience_s, "patience", "SECONDS", 1,
		PATIENCE_MAX,
		"how long a node may be silent before its pages are lost: 1 to "
		"60 (default 30)"),
	OPT_FLAG(struct run_args, run.is_strict, "strict",
		 "a process whose memory cannot be bounded is an error"),
	OPT_U32(struct run_args, run.threads, "pager-threads", "N", 1,
		PAGER_THREADS_MAX,
		"1, or 2: the second takes pages out (default: 2 where it "
		"helps)"),
	OPT_FLAG(struct run_args, run.is_unmapped, "no-direct",
		 "through the NICs, although the node is on this host"),
	OPT_FLAG(struct run_args, run.is_unmoved, "no-move",
		 "takes pages out as on kernels before Linux 6.8"),
	OPT_FLAG(struct run_args, run.shows_stats, "stats",
		 "a line per second and a report at the end, on stderr"),
	OPT_TEXT(struct run_args, user, "user", "NAME",
		 "whom the program runs as (default: the caller, also the "
		 "caller of sudo; root: stays root)"),
	OPT_FLAG(struct run_args, json, "json",
		 "the report at the end as a JSON object, on stderr"),
	OPT_END,
};

/* 0, or -EINVAL with words. */
static int take_tiers(struct run_args *a)
{
	struct run_tiers *t = &a->run.tiers;
	int err;

	if (!a->tier)
		return a->ratio || a->promote || t->peak_bytes_s
			       ? error_set(-EINVAL,
					   "--interleave, --promote "
					   "and --top-peak need --tier")
			       : 0;
	if (a->run.local_bytes)
		return error_set(-EINVAL, "--tier says how much is local: "
					  "leave --local out");
	err = tier_spec_parse(a->tier, &t->spec);
	if (err)
		return error_prefix(err, "--tier: ");
	err = a->ratio ? tier_ratio_parse(a->ratio, &t->ratio) : 0;
	if (err)
		return error_prefix(err, "--interleave: ");
	err = tier_promote_parse(a->promote ? a->promote
				 : a->ratio ? "off"
					    : "on",
				 &t->promote_mb);
	if (err)
		return error_prefix(err, "--promote: ");
	if (t->promote_mb == TIER_PROMOTE_AUTO)
		t->promote_mb =
			tier_promote_fitting_mb(t->spec.at[TIER_SLOW].bytes);
	for (unsigned i = TIER_TOP; i < TIER_FAR; i++) {
		uint64_t bytes = t->spec.at[i].bytes;

		if (bytes && bytes < RUN_LOCAL_MIN)
			return error_set(-EINVAL, "--tier: %s: at least 1M",
					 tier_word(i));
		a->run.local_bytes += bytes;
	}
	if (!t->spec.at[TIER_SLOW].bytes && (a->ratio || a->promote))
		return error_set(-EINVAL,
				 "--interleave and --promote need a slow tier");
	return 0;
}

static int parse(const struct cli_command *self, int argc, char **argv,
		 struct run_args *a, struct cli_words *program)
{
	int code;

	*a = (struct run_args){.run = {.min_bytes = MIN_SIZE_DEFAULT,
				       .prefetch_max = PREFETCH_DEFAULT,
				       .overflow_bytes = UINT64_MAX,
				       .copies = 1},
			       .patience_s = PATIENCE_DEFAULT};
	code = cli_parse(self, argc, argv, OPT_WORDS_PROGRAM, a, program);
	if (code != CLI_GO)
		return code;
	a->run.patience_ms = a->patience_s * 1000;
	/* No limit that is not kept. */
	if (a->run.is_strict && !a->has_overflow)
		a->run.overflow_bytes = 0;
	if (take_tiers(a) != 0) {
		cli_error("run: %s", error_last());
		return CLI_USAGE;
	}
	if (a->run.local_bytes < RUN_LOCAL_MIN &&
	    (a->run.local_bytes || !a->shared)) {
		cli_error("run needs --local SIZE, at least 1M, --tier or "
			  "--shared");
		return CLI_USAGE;
	}
	if (program->count == 0) {
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

static void print_line(const struct line *l, bool as_json)
{
	uint64_t v = atomic_load_explicit(l->value, memory_order_relaxed);
	char size[16];

	if (l->is_pages)
		v <<= PAGE_SHIFT;
	if (as_json)
		(void)fprintf(stderr, ", \"%s\": %" PRIu64, l->name, v);
	else if (l->is_pages)
		(void)fprintf(stderr, "aquifer: run: %-14s %s\n", l->name,
			      cli_rack_size(v, size));
	else
		(void)fprintf(stderr, "aquifer: run: %-14s %" PRIu64 "\n",
			      l->name, v);
}

static void print_guard(struct run_stats *s, bool as_json)
{
	static const char *const words[] = {
		[RUN_GUARD_NONE] = "off: nothing is promoted",
		[RUN_GUARD_NO_COUNTER] = "off: no counter of resctrl",
		[RUN_GUARD_NO_PEAK] = "off: no --top-peak, no HMAT",
		[RUN_GUARD_ON] = "on",
	};
	uint64_t v = atomic_load_explicit(&s->guard, memory_order_relaxed);

	if (v >= ARRAY_LEN(words))
		return;
	if (as_json)
		(void)fprintf(stderr, ", \"guard\": \"%s\"", words[v]);
	else
		(void)fprintf(stderr, "aquifer: run: %-14s %s\n", "guard",
			      words[v]);
}

static void print_tiers(struct run_stats *s, bool as_json)
{
	const struct line lines[] = {
		{"top_peak", &s->top_peak, true},
		{"slow_peak", &s->slow_peak, true},
		{"promoted", &s->promoted, false},
		{"demoted", &s->demoted, false},
		{"sampled", &s->sampled, false},
		{"sampled_cold", &s->cold, false},
		{"promote_limited", &s->limited, false},
		{"promote_guarded", &s->guarded, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		print_line(&lines[i], as_json);
	print_guard(s, as_json);
}

static void report(const struct run_result *result,
		   const struct run_options *options, bool as_json)
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
		{"given_back", &s->given_back, false},
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

	if (as_json)
		(void)fprintf(stderr, "{\"local\": %" PRIu64,
			      options->local_bytes);
	else
		(void)fprintf(stderr, "aquifer: run: %-14s %s\n", "local",
			      cli_rack_size(options->local_bytes, size));
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		print_line(&lines[i], as_json);
	if (options->tiers.spec.at[TIER_SLOW].bytes)
		print_tiers(s, as_json);
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
	char library[CLI_RUN_GROUP_LIBRARIES_MAX] = "", size[16];
	struct cli_words program;
	struct run_args a;
	int code = parse(self, argc, argv, &a, &program);
	int err;

	/* 1 would be the program's own. */
	if (code != CLI_GO)
		return code == CLI_FAILED ? CLI_CANNOT_RUN : code;
	if (a.run.local_bytes && cli_place_run_library(library) != 0) {
		cli_error("no %s; run 'make' or 'make install'", library);
		return CLI_CANNOT_RUN;
	}
	if (a.shared) {
		code = cli_run_group_join(a.shared, a.run.copies, library);
		if (code != CLI_GO)
			return code;
		if (!a.run.local_bytes)
			return cli_run_group_become(library, program.word);
	}
	a.run.preload = library;
	err = run_user_find(a.user, &user);
	if (err) {
		cli_error("run: %s", aq_last_error());
		return a.user ? CLI_USAGE : CLI_CANNOT_RUN;
	}
	a.run.user = &user;
	err = run_program(&a.run, program.word, &result);
	run_user_release(&user);
	if (err) {
		cli_error("run: %s", error_last());
		return err == -ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
	}
	if (a.run.shows_stats || a.json)
		report(&result, &a.run, a.json);
	if (result.near && !a.json)
		(void)fprintf(stderr, "aquifer: run: %s %s\n",
			      cli_rack_size(result.near->bytes, size),
			      result.near->text);
	return end_as(result.status);
}
