/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: starts pager and program, hands signals on, and sees to it
 * that no program outlives its pager. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/node_bind.h"
#include "confine/confine.h"
#include "near.h"
#include "pager_priv.h"
#include "pins.h"
#include "proc.h"
#include "rights.h"
#include "uffd.h"

enum {
	TICK_MS = 200,
	READY_MS = 20000,
	IDLE_MS = 2000, /* for a pager without processes to end */
};

struct supervisor {
	struct run_start start; /* what the pager gets */
	sigset_t old_mask;
	int go[2];   /* the program waits for its end to close */
	int told[2]; /* errno of a failed exec */
	pid_t program, pager;
	int status;
	bool program_ended, pager_ended, is_pager_killed;
	unsigned idle_ticks;
	uint64_t most_bytes; /* that the program had resident */
};

/* ---- the program --------------------------------------------------------- */

static int set_environment(const struct supervisor *k)
{
	const char *old = getenv("LD_PRELOAD");
	char text[256], *list = NULL;
	int n = snprintf(text, sizeof(text), "%s/%s ", k->start.place.dir,
			 k->start.place.name);
	int err = 0;

	for (unsigned i = 0; i < RUN_TOKEN_BYTES; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%02x",
			      k->start.token[i]);
	if (k->start.options->is_strict)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %s",
			      RUN_ENV_STRICT);
	if (asprintf(&list, old && *old ? "%s %s" : "%s",
		     k->start.options->preload, old) < 0)
		return -ENOMEM;
	if (setenv(RUN_ENV, text, 1) != 0 || setenv("LD_PRELOAD", list, 1) != 0)
		err = -errno;
	free(list);
	return err;
}

/* A change of user makes the kernel forget it. */
static void die_with(pid_t supervisor)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != supervisor)
		_exit(127);
}

static void be_program(struct supervisor *k, char **argv, pid_t supervisor)
{
	char byte;
	int err;

	(void)close(k->go[1]);
	(void)close(k->told[0]);
	/* End of file means go: a supervisor that fails closes nothing, it
	 * kills.
	 */
	(void)!read(k->go[0], &byte, 1);
	(void)close(k->go[0]);
	(void)sigprocmask(SIG_SETMASK, &k->old_mask, NULL);
	err = set_environment(k);
	/* With the supervisor's rights: without them the kernel asks for more.
	 */
	if (!err && !k->start.can_move)
		err = run_pins_refuse();
	if (k->start.options->tiers.spec.at[TIER_TOP].bytes)
		node_balance_off();
	if (!err)
		err = run_user_become(k->start.options->user);
	die_with(supervisor);
	if (!err) {
		(void)execvp(argv[0], argv);
		err = -errno;
	}
	(void)!write(k->told[1], &err, sizeof(err));
	_exit(127);
}

/* Before the pager, so that it inherits none of the pager's descriptors. */
static int start_program(struct supervisor *k, char **argv)
{
	pid_t parent = getpid();

	if (pipe2(k->go, O_CLOEXEC) != 0 || pipe2(k->told, O_CLOEXEC) != 0)
		return -errno;
	k->program = fork();
	if (k->program < 0)
		return -errno;
	if (k->program == 0) {
		die_with(parent);
		be_program(k, argv, parent);
	}
	(void)close(k->go[0]);
	(void)close(k->told[1]);
	return 0;
}

/* 0, or why it could not be executed. */
static int let_go(struct supervisor *k)
{
	int err = 0;

	(void)close(k->go[1]);
	if (read(k->told[0], &err, sizeof(err)) != sizeof(err))
		err = 0;
	(void)close(k->told[0]);
	return err;
}

/* ---- the pager ----------------------------------------------------------- */

/* The table of descriptors is shared (CLONE_FILES): userfaultfds that one of
 * the two has open stay open when he dies. */
static int start_pager(struct supervisor *k)
{
	(void)fflush(NULL);
	k->pager = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL,
				  NULL, 0);
	if (k->pager < 0)
		return -errno;
	if (k->pager > 0)
		return 0;
	/* Signals of the terminal are not for it. Not a session of its own: the
	 * scheduler would share the cores out between it and the program. */
	(void)setpgid(0, 0);
	(void)signal(SIGTTOU, SIG_IGN);
	(void)prctl(PR_SET_NAME, "aquifer-pager");
	_exit(run_pager_run(&k->start) ? 1 : 0);
}

static int await_pager(struct supervisor *k)
{
	struct timespec pause = {.tv_nsec = 1000000};
	uint64_t end_ms = clock_mono_ms() + READY_MS;

	while (clock_mono_ms() < end_ms) {
		/* RUN-R1 */
		int ready = atomic_load_explicit(&k->start.shared->ready,
						 memory_order_acquire);

		if (ready)
			return ready < 0 ? ready : 0;
		if (waitpid(k->pager, NULL, WNOHANG) == k->pager) {
			k->pager_ended = true;
			return -EIO;
		}
		(void)nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

/* ---- the end of a pager -------------------------------------------------- */

/* Whoever faults now waits, because our userfaultfds are open; and dies. */
static void kill_all(struct supervisor *k)
{
	for (unsigned i = 0; i < RUN_PIDS_MAX; i++) {
		pid_t pid = atomic_load_explicit(&k->start.shared->pid[i],
						 memory_order_relaxed);

		if (pid > 1)
			(void)kill(pid, SIGKILL);
	}
	if (!k->program_ended)
		(void)kill(k->program, SIGKILL);
	/* Orphans come to us (a subreaper), so all are found below us. */
	run_proc_kill_below(getpid());
}

/* ---- waiting ------------------------------------------------------------- */

/* Nobody is left, since orphans would have come to us, but the pager may still
 * wait for a node that does not answer: what it has there ends with it. */
static void end_pager(struct supervisor *k)
{
	if (!k->program_ended || k->pager_ended ||
	    run_proc_has_child(k->pager)) {
		k->idle_ticks = 0;
		return;
	}
	if (++k->idle_ticks * TICK_MS < IDLE_MS)
		return;
	k->is_pager_killed = true;
	(void)kill(k->pager, SIGKILL);
	kill_all(k);
}

static void reap(struct supervisor *k)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid == k->program) {
			k->program_ended = true;
			k->status = status;
			k->most_bytes = (uint64_t)usage.ru_maxrss << 10;
		} else if (pid == k->pager) {
			k->pager_ended = true;
			if (k->is_pager_killed ||
			    (WIFEXITED(status) && WEXITSTATUS(status) == 0))
				continue;
			(void)fprintf(stderr,
				      "aquifer: run: the pager ended (%s %d); "
				      "killing the program\n",
				      WIFSIGNALED(status) ? "signal" : "code",
				      WIFSIGNALED(status)
					      ? WTERMSIG(status)
					      : WEXITSTATUS(status));
			kill_all(k);
		}
	}
}

static uint64_t get(_Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static void show_line(const struct supervisor *k)
{
	struct run_stats *s = &k->start.shared->stats;

	(void)fprintf(stderr,
		      "aquifer: run: resident %" PRIu64 "M far %" PRIu64
		      "M faults %" PRIu64 " loads %" PRIu64
		      " prefetched %" PRIu64 " stored %" PRIu64
		      " processes %" PRIu64 "\n",
		      (get(&s->resident_pages) + get(&s->buffered_pages)) >> 8,
		      get(&s->far_pages) >> 8, get(&s->faults), get(&s->loads),
		      get(&s->prefetched), get(&s->stored), get(&s->spaces));
	if (k->start.options->tiers.spec.at[TIER_SLOW].bytes)
		(void)fprintf(stderr,
			      "aquifer: run: top %" PRIu64 "M slow %" PRIu64
			      "M promoted %" PRIu64 " demoted %" PRIu64 "\n",
			      get(&s->top_pages) >> 8, get(&s->slow_pages) >> 8,
			      get(&s->promoted), get(&s->demoted));
}

static void hand_on(const struct supervisor *k, const siginfo_t *info)
{
	/* What the terminal sends, the program gets by itself. */
	if (info->si_code != SI_KERNEL && !k->program_ended)
		(void)kill(k->program, info->si_signo);
}

static void watch(struct supervisor *k, const sigset_t *mask)
{
	struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
	unsigned ticks = 0;
	siginfo_t info;

	while (!k->pager_ended || !k->program_ended) {
		int sig = sigtimedwait(mask, &info, &tick);

		if (sig > 0 && sig != SIGCHLD)
			hand_on(k, &info);
		reap(k);
		if (k->pager_ended && !k->program_ended)
			kill_all(k);
		if (k->program_ended)
			atomic_store_explicit(&k->start.shared->ends_when_idle,
					      1, memory_order_relaxed);
		if (sig <= 0)
			end_pager(k);
		if (k->start.options->shows_stats && sig <= 0 &&
		    ++ticks % (1000 / TICK_MS) == 0)
			show_line(k);
	}
}

/* ---- all of it ----------------------------------------------------------- */

static int supervisor_init(struct supervisor *k,
			   const struct run_options *options, sigset_t *mask)
{
	int err;

	*k = (struct supervisor){.start = {.options = options,
					   .place = {.dir_fd = -1},
					   .supervisor = getpid(),
					   .uffd_dev = -1}};
	k->start.shared =
		mmap(NULL, sizeof(*k->start.shared), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (k->start.shared == MAP_FAILED)
		return -ENOMEM;
	if (getrandom(k->start.token, sizeof(k->start.token), 0) !=
	    sizeof(k->start.token))
		return -EIO;
	err = run_place_make(&k->start.place);
	if (err) {
		(void)snprintf(k->start.shared->text,
			       sizeof(k->start.shared->text), "%s",
			       error_last());
		return err;
	}
	(void)sigfillset(mask);
	for (int s = 1; s < 32; s++)
		if (s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL ||
		    s == SIGABRT || s == SIGTRAP || s == SIGTTIN ||
		    s == SIGTTOU || s == SIGTSTP)
			(void)sigdelset(mask, s);
	if (sigprocmask(SIG_BLOCK, mask, &k->old_mask) != 0)
		return -errno;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	k->start.uffd_dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	k->start.can_move = !options->is_unmoved && run_uffd_can_move();
	return 0;
}

static int say_why(const struct supervisor *k, int err, const char *program)
{
	if (k->start.shared != MAP_FAILED && k->start.shared->text[0])
		return error_set(err, "%s", k->start.shared->text);
	return error_set(err, "'%s' was not started: %s", program,
			 strerror(-err));
}

static void give_up(struct supervisor *k)
{
	if (k->pager > 0 && !k->pager_ended)
		(void)kill(k->pager, SIGKILL);
	if (k->program > 0)
		(void)kill(k->program, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

int run_program(const struct run_options *options, char **argv,
		struct run_result *result)
{
	struct supervisor k;
	sigset_t mask;
	int err = supervisor_init(&k, options, &mask);

	*result = (struct run_result){0};
	if (!err)
		err = run_strict_check(options, argv[0], k.start.shared->text);
	if (!err)
		err = run_rights_check(options, k.start.shared->text);
	if (!err)
		err = run_tiers_check(options, k.start.shared->text,
				      sizeof(k.start.shared->text));
	if (!err)
		err = start_program(&k, argv);
	if (!err)
		err = start_pager(&k);
	/* Not to be taken for the program's own -ENOENT. */
	if (!err && await_pager(&k) != 0)
		err = -EHOSTDOWN;
	if (!err)
		err = confine_thread(RUN_CAPS_SUPERVISOR);
	if (!err)
		err = let_go(&k);
	if (err) {
		give_up(&k);
		run_place_remove(&k.start.place);
		return say_why(&k, err, argv[0]);
	}
	watch(&k, &mask);
	run_place_remove(&k.start.place);
	(void)sigprocmask(SIG_SETMASK, &k.old_mask, NULL);
	result->status = k.status;
	result->stats = &k.start.shared->stats;
	run_near_finish(options, k.start.shared, argv[0], k.most_bytes);
	if (near_matters(k.start.shared->near.bytes,
			 get(&k.start.shared->stats.heap_peak)
				 << RUN_PAGE_SHIFT))
		result->near = &k.start.shared->near;
	return 0;
}
