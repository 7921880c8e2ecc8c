/* SPDX-License-Identifier: Apache-2.0 */
/* The machines of a walk agree with the reference, whatever they execute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "walk/show.h"
#include "walk_random.h"
#include "walk_trial.h"

enum {
	PROGRAMS = 1500,
	RUNS = 6,
};

static void open_both(const struct walk_image *image,
		      struct walk_program **interpreted,
		      struct walk_program **translated)
{
	const struct walk_options no = {.interpret = true,
					.longest_max = UINT32_MAX};
	const struct walk_options yes = {.longest_max = UINT32_MAX};

	if (walk_program_open(image, &no, interpreted) ||
	    walk_program_open(image, &yes, translated))
		fail_msg("%s", error_last());
}

static void print(const struct walk_image *image)
{
	char text[WALK_SHOW_MAX];

	for (uint32_t i = 0; i < image->count;) {
		const uint32_t at = i;

		i += walk_show(image, i, text);
		print_message("%4u  %s\n", at, text);
	}
}

static void random_programs_agree(void **state)
{
	struct trial t = trial_make();

	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		struct walk_program *in, *tr;
		struct walk_image image;
		struct walk_build *b;
		struct rng r;

		rng_init(&r, seed);
		b = random_walk_build(&r);
		if (walk_build_end(b, UINT32_MAX, &image, NULL))
			fail_msg("seed %u: %s", (unsigned)seed, error_last());
		open_both(&image, &in, &tr);
		for (int i = 0; i < RUNS; i++) {
			const char *words = trial_run(
				&t, in,
				walk_program_is_translated(tr) ? tr : NULL, &r);
			if (words) {
				print(&image);
				fail_msg("seed %u: %s", (unsigned)seed, words);
			}
		}
		walk_program_close(in);
		walk_program_close(tr);
		walk_build_destroy(b);
	}
	trial_free(&t);
}

enum {
	ADDITIONS = 100000,
	ROUNDS_MAX = 100,
	MEETINGS = 500,
};

struct adder {
	const struct walk_program *program;
	uint64_t *node;
	pthread_barrier_t *start;
};

static void *add_often(void *arg)
{
	const struct adder *a = arg;
	uint64_t next, pad = 1;

	(void)pthread_barrier_wait(a->start); /* one of both is told apart */
	for (int i = 0; i < ADDITIONS; i++)
		(void)walk_program_step(a->program, (uint8_t *)a->node,
					(uint8_t *)&pad, &next);
	return NULL;
}

/* NODE[0] grows by faan, NODE[8] by casn where nobody was faster, which
 * NODE[16] counts otherwise. */
static void atomics_lose_nothing_between_threads(void **state)
{
	static const struct walk_insn insns[] = {
		{.op = WALK_OP_LDP8, .d = 1},
		{.op = WALK_OP_FAAN, .d = 2, .a = 1},
		{.op = WALK_OP_LDN8, .d = 3, .imm = 8},
		{.op = WALK_OP_ADDI, .d = 4, .a = 3, .imm = 1},
		{.op = WALK_OP_CASN, .d = 5, .a = 3, .b = 4, .imm = 8},
		{.op = WALK_OP_JEQ, .a = 5, .b = 3, .imm = 2},
		{.op = WALK_OP_FAAN, .d = 2, .a = 1, .imm = 16},
		{.op = WALK_OP_RET},
	};
	const struct walk_image image = {.name = "add",
					 .load_bytes = 24,
					 .pad_bytes = 8,
					 .flags = WALK_STORES,
					 .count = 8,
					 .insns = insns};
	uint64_t node[3] = {0}, rounds;
	struct walk_program *p[2];
	struct adder adders[2];
	pthread_barrier_t start;
	pthread_t threads[2];

	open_both(&image, &p[0], &p[1]);
	/* Both must have run at the same time for this to mean anything, which
	 * a busy machine need not allow at once. */
	for (rounds = 1; rounds < ROUNDS_MAX && node[2] < MEETINGS; rounds++) {
		assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
		for (int i = 0; i < 2; i++) {
			adders[i] = (struct adder){p[i], node, &start};
			assert_int_equal(pthread_create(&threads[i], NULL,
							add_often, &adders[i]),
					 0);
		}
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		pthread_barrier_destroy(&start);
		assert_int_equal(node[0], rounds * 2 * ADDITIONS);
		assert_int_equal(node[1] + node[2], rounds * 2 * ADDITIONS);
	}
	walk_program_close(p[0]);
	walk_program_close(p[1]);
}

#if defined(__x86_64__)
/* No mapping may be executed any more, in this process. */
static bool refuse_code(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void a_system_that_gives_no_code_is_told_of(void **state)
{
	const struct walk_insn ret = {.op = WALK_OP_RET};
	const struct walk_image image = {
		.name = "ret", .load_bytes = 8, .count = 1, .insns = &ret};
	const pid_t child = fork();
	int status;

	if (child == 0) {
		struct walk_program *p;
		uint64_t next;
		uint8_t node[8] = {0}, pad[8];

		if (!refuse_code())
			_exit(77);
		if (walk_program_open(&image, NULL, &p))
			_exit(1);
		if (strcmp(walk_program_how(p),
			   "interpreted: the system gives no memory for code "
			   "(EPERM)") != 0)
			_exit(2);
		_exit(walk_program_step(p, node, pad, &next) == WALK_STEP_DONE
			      ? 0
			      : 3);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	/* 77: this system knows no filters. */
	if (!WIFEXITED(status) ||
	    (WEXITSTATUS(status) && WEXITSTATUS(status) != 77))
		fail_msg("the child ended with %#x", status);
}

static void this_machine_translates(void **state)
{
	const struct walk_insn ret = {.op = WALK_OP_RET};
	const struct walk_image image = {
		.name = "ret", .load_bytes = 8, .count = 1, .insns = &ret};
	struct walk_program *in, *tr;

	open_both(&image, &in, &tr);
	assert_string_equal(walk_program_how(tr), "translated");
	assert_true(walk_program_is_translated(tr));
	assert_string_equal(walk_program_how(in),
			    "interpreted: translation is switched off");
	assert_false(walk_program_is_translated(in));
	walk_program_close(in);
	walk_program_close(tr);
}
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs_agree),
		cmocka_unit_test(atomics_lose_nothing_between_threads),
#if defined(__x86_64__)
		cmocka_unit_test(this_machine_translates),
		cmocka_unit_test(a_system_that_gives_no_code_is_told_of),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
