/* SPDX-License-Identifier: Apache-2.0 */
/* Cached pages of a segment, with real processes that map them: what is
 * protected is not written, what is punched is nowhere, and no addition is lost
 * while pages are taken from processes that add. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fds.h"
#include "base/uffd_new.h"
#include "sharedd/mem.h"

enum {
	PAGES = 16,
	PAGE = COHERENCE_PAGE_BYTES,
	PROGRAMS = 2,
	ROUNDS = 300,
};

#define AT 0x200000000000ull

/* What a program is told to do next, and what it did; plain shared memory. */
struct board {
	_Atomic int step[PROGRAMS];
	_Atomic int done[PROGRAMS];
	_Atomic uint64_t seen[PROGRAMS];
	_Atomic uint64_t added[PROGRAMS];
	_Atomic int stop;
};

struct rig {
	struct shd_mem mem;
	struct shd_view view[PROGRAMS];
	int own_uffd;
	pid_t pid[PROGRAMS];
	struct board *board;
};

enum step {
	STEP_NONE,
	STEP_READ,
	STEP_WRITE,
	STEP_ADD,
	STEP_END
};

static void add_until_told(struct board *b, int who, _Atomic uint64_t *word)
{
	uint64_t n = 0;

	while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
		atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
		n++;
	}
	atomic_store_explicit(&b->added[who], n, memory_order_relaxed);
}

static void program(struct board *b, int who, int fd, int sock)
{
	void *mem = mmap((void *)AT, PAGES * PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	_Atomic uint64_t *word = mem;
	int uffd = uffd_new(-1), last = 0;
	char byte = 0;

	(void)signal(SIGBUS, SIG_DFL); /* it is cmocka's */
	if (mem == MAP_FAILED || uffd < 0 ||
	    fds_send(sock, &byte, 1, &uffd, 1, 0))
		_exit(1);
	for (;;) {
		int step = atomic_load_explicit(&b->step[who],
						memory_order_relaxed);

		if (step == last) {
			(void)usleep(100);
			continue;
		}
		last = step;
		switch ((enum step)(step & 0xff)) {
		case STEP_READ:
			b->seen[who] = *word;
			break;
		case STEP_WRITE:
			*word = 100 + (uint64_t)who;
			break;
		case STEP_ADD:
			add_until_told(b, who, word);
			break;
		case STEP_END:
			_exit(0);
		case STEP_NONE:
			break;
		}
		atomic_store_explicit(&b->done[who], step,
				      memory_order_relaxed);
	}
}

static void tell(struct rig *r, int who, enum step step)
{
	int now = atomic_load_explicit(&r->board->step[who],
				       memory_order_relaxed);

	/* Another number each time. */
	atomic_store_explicit(&r->board->step[who],
			      ((now >> 8) + 1) << 8 | (int)step,
			      memory_order_relaxed);
}

static bool is_done(const struct rig *r, int who)
{
	return r->board->done[who] == r->board->step[who];
}

static void await(const struct rig *r, int who)
{
	while (!is_done(r, who))
		(void)usleep(100);
}

/* The next fault of a program; returns its flags. */
static uint64_t fault(const struct rig *r, int who)
{
	struct pollfd p = {.fd = r->view[who].uffd, .events = POLLIN};
	struct uffd_msg msg;

	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(read(p.fd, &msg, sizeof(msg)), sizeof(msg));
	assert_int_equal(msg.event, UFFD_EVENT_PAGEFAULT);
	return msg.arg.pagefault.flags;
}

static void put(struct rig *r, uint32_t page, uint64_t value, int who,
		bool may_write)
{
	uint64_t bytes[PAGE / 8] = {value};

	assert_int_equal(shd_mem_put(&r->mem, page, bytes,
				     who < 0 ? NULL : &r->view[who], may_write),
			 0);
}

static int start(struct rig *r, int who)
{
	int sock[2], uffd = -1;
	unsigned count;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	r->pid[who] = fork();
	assert_true(r->pid[who] >= 0);
	if (!r->pid[who])
		program(r->board, who, r->mem.fd, sock[1]);
	(void)close(sock[1]);
	assert_int_equal(fds_receive(sock[0], &byte, 1, &uffd, 1, &count, 0),
			 0);
	assert_int_equal(count, 1);
	(void)close(sock[0]);
	return shd_mem_add(&r->mem, &r->view[who], uffd, AT, 0,
			   r->mem.page_count);
}

static int set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	int probe = uffd_new(-1);

	if (!r || probe < 0)
		return -1;
	(void)close(probe);
	r->board = mmap(NULL, sizeof(*r->board), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	r->own_uffd = shd_mem_own_uffd();
	assert_true(r->own_uffd >= 0);
	assert_int_equal(shd_mem_init(&r->mem, PAGES, r->own_uffd), 0);
	for (int i = 0; i < PROGRAMS; i++)
		assert_int_equal(start(r, i), 0);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < PROGRAMS; i++) {
		(void)kill(r->pid[i], SIGKILL);
		(void)waitpid(r->pid[i], NULL, 0);
		shd_mem_drop(&r->mem, &r->view[i]);
	}
	shd_mem_release(&r->mem);
	(void)close(r->own_uffd);
	(void)munmap(r->board, sizeof(*r->board));
	free(r);
	return 0;
}

/* ---- tests --------------------------------------------------------------- */

static void a_page_appears_for_all_and_is_written_by_none(void **state)
{
	struct rig *r = *state;
	uint64_t out[PAGE / 8];

	tell(r, 0, STEP_READ);
	assert_int_equal(fault(r, 0) & UFFD_PAGEFAULT_FLAG_WRITE, 0);
	put(r, 0, 7, 0, false);
	await(r, 0);
	assert_int_equal(r->board->seen[0], 7);
	tell(r, 1, STEP_READ);
	await(r, 1); /* without a fault */
	assert_int_equal(r->board->seen[1], 7);
	for (int i = 0; i < PROGRAMS; i++) {
		tell(r, i, STEP_WRITE);
		assert_true(fault(r, i) & UFFD_PAGEFAULT_FLAG_WP);
	}
	assert_int_equal(shd_mem_read(&r->mem, 0, out), 0);
	assert_int_equal(out[0], 7);
	shd_mem_unprotect(&r->mem, &r->view[1], 0);
	await(r, 1);
	assert_int_equal(shd_mem_read(&r->mem, 0, out), 0);
	assert_int_equal(out[0], 101);
	assert_false(is_done(r, 0));
	shd_mem_unprotect(&r->mem, &r->view[0], 0);
	await(r, 0);
}

/* A program that has never touched the page must not write it unseen when it is
 * here, gone and here again. */
static void a_mark_is_set_each_time(void **state)
{
	struct rig *r = *state;

	for (uint64_t turn = 1; turn < 4; turn++) {
		put(r, 0, turn, turn == 1 ? -1 : 0, turn == 2);
		tell(r, 1, STEP_WRITE);
		assert_true(fault(r, 1) & UFFD_PAGEFAULT_FLAG_WP);
		assert_int_equal(shd_mem_protect(&r->mem, 0, PAGES), 0);
		assert_int_equal(shd_mem_punch(&r->mem, 0, PAGES), 0);
		assert_false(shd_mem_has(&r->mem, 0));
		shd_mem_wake(&r->view[1], 0);
		assert_int_equal(fault(r, 1) & UFFD_PAGEFAULT_FLAG_WP, 0);
		put(r, 0, 0, 1, true);
		await(r, 1);
		assert_int_equal(shd_mem_punch(&r->mem, 0, PAGES), 0);
	}
}

static void a_punched_page_is_missing_everywhere(void **state)
{
	struct rig *r = *state;

	put(r, 0, 5, 0, true);
	for (int i = 0; i < PROGRAMS; i++) {
		tell(r, i, STEP_READ);
		await(r, i);
	}
	assert_int_equal(shd_mem_punch(&r->mem, 0, 1), 0);
	for (int i = 0; i < PROGRAMS; i++) {
		tell(r, i, STEP_READ);
		assert_int_equal(fault(r, i), 0);
	}
	put(r, 0, 6, 1, false);
	shd_mem_wake(&r->view[0], 0);
	for (int i = 0; i < PROGRAMS; i++) {
		await(r, i);
		assert_int_equal(r->board->seen[i], 6);
	}
}

static void who_comes_later_cannot_write_what_is_here(void **state)
{
	struct rig *r = *state;

	(void)kill(r->pid[1], SIGKILL);
	(void)waitpid(r->pid[1], NULL, 0);
	put(r, 0, 5, 0, true);
	/* The dead view is noticed, and does no harm. */
	assert_int_equal(shd_mem_protect(&r->mem, 0, 1), 0);
	assert_true(r->view[1].is_gone);
	shd_mem_drop(&r->mem, &r->view[1]);
	assert_int_equal(start(r, 1), 0);
	r->board->step[1] = r->board->done[1] = 0;
	tell(r, 1, STEP_WRITE);
	assert_true(fault(r, 1) & UFFD_PAGEFAULT_FLAG_WP);
}

static void hidden_pages_come_back(void **state)
{
	struct rig *r = *state;
	uint64_t out[PAGE / 8];

	put(r, 0, 9, 0, true);
	put(r, 5, 10, -1, false);
	assert_int_equal(shd_mem_hide(&r->mem), 0);
	tell(r, 0, STEP_READ);
	assert_int_equal(fault(r, 0), 0);
	/* Meanwhile others want it. */
	assert_int_equal(shd_mem_read(&r->mem, 5, out), 0);
	assert_int_equal(out[0], 10);
	assert_int_equal(shd_mem_punch(&r->mem, 5, 1), 0);
	put(r, 6, 11, 0, true);
	assert_int_equal(shd_mem_unhide(&r->mem), 0);
	assert_int_equal(r->mem.here_count, 2);
	assert_int_equal(shd_mem_read(&r->mem, 6, out), 0);
	assert_int_equal(out[0], 11);
	shd_mem_again(&r->mem, &r->view[0], 0);
	await(r, 0);
	assert_int_equal(r->board->seen[0], 9);
	tell(r, 0, STEP_WRITE);
	assert_true(fault(r, 0) & UFFD_PAGEFAULT_FLAG_WP);
}

static void a_cut_is_sigbus(void **state)
{
	struct rig *r = *state;
	int status;

	put(r, 0, 9, 0, true);
	tell(r, 0, STEP_READ);
	await(r, 0);
	shd_mem_cut(&r->mem);
	tell(r, 0, STEP_READ);
	assert_int_equal(waitpid(r->pid[0], &status, 0), r->pid[0]);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	r->pid[0] = r->pid[1];
}

/* A program hands over a userfaultfd of other memory: it gets the bytes, and
 * nobody else is harmed. */
static void a_view_of_something_else_is_dropped(void **state)
{
	struct rig *r = *state;
	struct shd_view liar;
	uint64_t out[PAGE / 8];
	void *mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(shd_mem_add(&r->mem, &liar, uffd_new(-1),
				     (uint64_t)(uintptr_t)mem, 0, PAGES),
			 0);
	out[0] = 5;
	assert_int_equal(shd_mem_put(&r->mem, 0, out, &liar, true), 0);
	assert_true(liar.is_gone);
	assert_int_equal(shd_mem_read(&r->mem, 0, out), 0);
	assert_int_equal(out[0], 5);
	tell(r, 0, STEP_READ);
	await(r, 0);
	assert_int_equal(r->board->seen[0], 5);
	shd_mem_drop(&r->mem, &liar);
	(void)munmap(mem, PAGES * PAGE);
}

/* Also where the page was protected when it went. */
static void poison_is_sigbus(void **state)
{
	struct rig *r = *state;
	int status, err;

	put(r, 0, 9, 0, true);
	tell(r, 0, STEP_READ);
	await(r, 0);
	assert_int_equal(shd_mem_protect(&r->mem, 0, 1), 0);
	assert_int_equal(shd_mem_punch(&r->mem, 0, 1), 0);
	tell(r, 0, STEP_READ);
	assert_int_equal(fault(r, 0), 0);
	err = shd_mem_poison(&r->view[0], 0);
	if (err == -EINVAL)
		skip(); /* Linux before 6.6 */
	assert_int_equal(err, 0);
	assert_int_equal(waitpid(r->pid[0], &status, 0), r->pid[0]);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	r->pid[0] = r->pid[1];
}

/* Serves one fault of who adds, if there is one. */
static void serve(struct rig *r, uint64_t saved[PAGE / 8])
{
	struct pollfd p[PROGRAMS];
	struct uffd_msg msg;

	for (int i = 0; i < PROGRAMS; i++)
		p[i] = (struct pollfd){.fd = r->view[i].uffd, .events = POLLIN};
	(void)poll(p, PROGRAMS, 10);
	for (int i = 0; i < PROGRAMS; i++) {
		if (!(p[i].revents & POLLIN) ||
		    read(p[i].fd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		if (!shd_mem_has(&r->mem, 0))
			assert_int_equal(shd_mem_put(&r->mem, 0, saved,
						     &r->view[i], true),
					 0);
		else
			shd_mem_unprotect(&r->mem, &r->view[i], 0);
	}
}

static void no_addition_is_lost(void **state)
{
	struct rig *r = *state;
	uint64_t saved[PAGE / 8] = {0};
	uint64_t sum = 0;

	for (int i = 0; i < PROGRAMS; i++)
		tell(r, i, STEP_ADD);
	for (int round = 0; round < ROUNDS; round++) {
		serve(r, saved);
		if (round % 3 == 0 || !shd_mem_has(&r->mem, 0))
			continue;
		assert_int_equal(shd_mem_protect(&r->mem, 0, 1), 0);
		assert_int_equal(shd_mem_read(&r->mem, 0, saved), 0);
		if (round % 3 == 2)
			assert_int_equal(shd_mem_punch(&r->mem, 0, 1), 0);
	}
	atomic_store_explicit(&r->board->stop, 1, memory_order_relaxed);
	while (!is_done(r, 0) || !is_done(r, 1))
		serve(r, saved);
	assert_true(shd_mem_has(&r->mem, 0));
	assert_int_equal(shd_mem_read(&r->mem, 0, saved), 0);
	for (int i = 0; i < PROGRAMS; i++)
		sum += r->board->added[i];
	assert_true(sum > 0);
	assert_int_equal(saved[0], sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(a_page_appears_for_all_and_is_written_by_none),
		T(a_mark_is_set_each_time),
		T(a_punched_page_is_missing_everywhere),
		T(who_comes_later_cannot_write_what_is_here),
		T(hidden_pages_come_back),
		T(a_cut_is_sigbus),
		T(poison_is_sigbus),
		T(a_view_of_something_else_is_dropped),
		T(no_addition_is_lost),
#undef T
	};
	int uffd = uffd_new(-1);

	/* Without the right to it there is nothing to test. */
	if (uffd < 0)
		return 77;
	(void)close(uffd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
