/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells is read only while the agent moves no pages. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/event_priv.h"
#include "run/pager_priv.h"
#include "run/space_priv.h"

struct fixture {
	struct pager *pager;
	struct space space;
	int kernel; /* the other end of the space's descriptor */
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[2];

	assert_non_null(f);
	f->pager = calloc(1, sizeof(*f->pager));
	f->space.channel = calloc(1, RUN_CHANNEL_BYTES);
	assert_true(f->pager && f->space.channel);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	f->space.start = RUN_RANGE_ALIGN;
	f->space.uffd = fds[0];
	f->kernel = fds[1];
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	close(f->space.uffd);
	close(f->kernel);
	free(f->space.channel);
	free(f->pager);
	free(f);
	return 0;
}

static void tell_fault(struct fixture *f, uint64_t page)
{
	struct uffd_msg m = {.event = UFFD_EVENT_PAGEFAULT};

	m.arg.pagefault.address = f->space.start + page * RUN_PAGE_BYTES;
	assert_int_equal(write(f->kernel, &m, sizeof(m)), sizeof(m));
}

static void nothing_is_read_while_the_agent_moves(void **state)
{
	struct fixture *f = *state;
	struct run_channel *c = f->space.channel;
	struct fault w[RUN_EVENTS];

	tell_fault(f, 7);
	/* However long it takes: a thread that had changed its mappings would
	 * go on, and map something else where the agent takes a page. */
	atomic_store(&c->is_moving, 1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(run_events_read(f->pager, &f->space, w), -1);
	/* The agent may go on: nothing has changed yet. */
	assert_int_equal(atomic_load(&c->is_changing), 0);
	atomic_store(&c->is_moving, 0);
	assert_int_equal(run_events_read(f->pager, &f->space, w), 1);
	assert_int_equal(w[0].page, 7);
	assert_int_equal(run_events_read(f->pager, &f->space, w), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nothing_is_read_while_the_agent_moves, open_fixture,
			close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
