/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench`: the benchmarks by name, their list, and all of them one
 * after the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/complaint.h"
#include "bench.h"

static const struct bench_ratio no_ratios[] = {{.name = NULL}};
/* It has no run(): it is the others'. */
static const struct bench_def all = {
	.name = "all",
	.summary = "all of these, one after the other",
	.about = "Runs all benchmarks, each in a process of its own, and says "
		 "on stderr where it\nis. With --json, \"benches\" has what "
		 "each of them would print.\n",
	.window_ms = 1, /* it has the option; each has a default of its own */
	.ratios = no_ratios,
};

const struct bench_def *const bench_all[] = {
	&bench_verbs, &bench_edm,     &bench_offload, &bench_switch,
	&bench_fair,  &bench_paging,  &bench_kv,      &bench_walk,
	&bench_tier,  &bench_control, &bench_mind,    &bench_elastic,
	&all,	      NULL,
};

static int run_one(struct bench *b)
{
	int rc;

	bench_open(b);
	if (b->def->run(b) < 0)
		(void)bench_fail(b, -EIO, "it could not go on");
	bench_print(b);
	rc = bench_exit_code(b);
	bench_close(b);
	return rc;
}

/* ---- all ----------------------------------------------------------------- */

/* A process that ended without a word has an outcome, too: nothing. */
static json_t *no_outcome(struct bench *b, int status)
{
	json_t *o;

	bench_open(b);
	if (WIFSIGNALED(status))
		(void)bench_fail(b, -EIO, "it was ended by signal %d",
				 WTERMSIG(status));
	else
		(void)bench_fail(b, -EIO, "it printed nothing");
	o = bench_object(b);
	bench_close(b);
	return o;
}

/* In a process of its own, so that none inherits another's cores, environment
 * and NICs. `out`: its JSON is the caller's; NULL: it prints. */
static int run_apart(struct bench *b, json_t **out)
{
	int fd[2] = {-1, -1}, status = 0;
	FILE *from;
	pid_t pid;

	fflush(NULL);
	if ((out && pipe(fd) < 0) || (pid = fork()) < 0)
		return bench_fail(b, BENCH_FAILED, "%s", strerror(errno));
	if (pid == 0) {
		if (out && dup2(fd[1], STDOUT_FILENO) < 0)
			_exit(BENCH_FAILED);
		status = run_one(b);
		fflush(stdout);
		_exit(status);
	}
	if (out) {
		close(fd[1]);
		from = fdopen(fd[0], "r");
		*out = from ? json_loadf(from, 0, NULL) : NULL;
		if (from)
			fclose(from);
	}
	(void)waitpid(pid, &status, 0);
	if (out && !*out)
		*out = no_outcome(b, status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : BENCH_FAILED;
}

static int worse(int a, int b)
{
	return a == BENCH_FAILED || b == BENCH_RAN ? a : b;
}

static int run_all(const struct bench *options)
{
	json_t *list = json_array(), *top;
	int rc = BENCH_RAN, count = 0;

	for (const struct bench_def *const *d = bench_all; (*d)->run; d++) {
		struct bench b = *options;
		json_t *one = NULL;

		b.def = *d;
		b.is_one_of_all = true;
		if (!bench_wants_any(&b))
			continue;
		count++;
		bench_progress(&b, "%s", b.def->summary);
		rc = worse(rc, run_apart(&b, b.json ? &one : NULL));
		if (one)
			json_array_append_new(list, one);
		else
			printf("\n");
	}
	if (!count) {
		complain(0, "bench: nothing is called '%s'", options->only);
		rc = BENCH_USAGE;
	}
	top = json_pack("{s:o}", "benches", list);
	if (count && options->json &&
	    json_dumpf(top, stdout, JSON_INDENT(1)) == 0)
		printf("\n");
	json_decref(top);
	return rc;
}

int bench_cmd(int argc, char **argv)
{
	const struct bench_def *const *d = bench_all;
	struct bench b = {0};
	int rc;

	while (strcmp((*d)->name, argv[0]) != 0)
		d++;
	b.def = *d;
	rc = bench_parse(&b, argc, argv);
	if (rc >= 0)
		return rc;
	return b.def->run ? run_one(&b) : run_all(&b);
}
