/* SPDX-License-Identifier: Apache-2.0 */
/* The device aq0: one host per process, counted; forgotten by a fork's child;
 * and the small parts of the env beside it. */
#include <sys/wait.h>

#include "base/counter.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/pages.h"
#include "os_end.h"

static void test_one_host(void **state)
{
	const struct nic_provider *p = verbs_default_provider();
	struct nic_host *a, *b;
	char name[64];
	uint64_t guid;

	assert_int_equal(p->count(p->ctx), 1);
	p->describe(p->ctx, 0, name, &guid);
	assert_string_equal(name, "aq0");
	assert_int_equal(guid, 0x00a97ffffe000001ull);
	assert_int_equal(p->open(p->ctx, 1, NULL, &a), -ENODEV);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(p->open(p->ctx, 0, NULL, &a), 0);
		assert_int_equal(p->open(p->ctx, 0, NULL, &b), 0);
		assert_ptr_equal(a, b);
		assert_int_equal(nic_get_config(a->nic)->gid_count, 2);
		a->ops->close(a);
		b->ops->close(b);
	}
}

/* A device in another rack is another NIC, with slots of its own. */
static void test_two_racks(void **state)
{
	const struct nic_provider *p = verbs_default_provider();
	struct nic_host *own, *other, *again;

	assert_int_equal(p->open(p->ctx, 0, NULL, &own), 0);
	assert_int_equal(p->open(p->ctx, 0, "other", &other), 0);
	assert_ptr_not_equal(own, other);
	assert_int_equal(p->open(p->ctx, 0, "other", &again), 0);
	assert_ptr_equal(other, again);
	assert_int_equal(test_sockets_of("other"), 1);
	own->ops->close(own);
	other->ops->close(other);
	assert_int_equal(test_sockets_of("other"), 1);
	again->ops->close(again);
	assert_int_equal(test_sockets_of("other"), 0);
}

static uint32_t slot_of(struct nic_host *host)
{
	return nic_get_config(host->nic)->slot;
}

static void child(struct nic_host *inherited, uint32_t slot)
{
	const struct nic_provider *p = verbs_default_provider();
	struct nic_host *own;

	/* What was inherited is dead but harmless. */
	inherited->ops->drive(inherited);
	inherited->ops->leave(inherited);
	inherited->ops->close(inherited);
	NEED(p->open(p->ctx, 0, NULL, &own) == 0);
	NEED(own != inherited);
	NEED(slot_of(own) != slot);
	own->ops->close(own);
	_exit(0);
}

static void test_fork(void **state)
{
	const struct nic_provider *p = verbs_default_provider();
	struct nic_host *host;
	struct end e[2];
	int status;
	pid_t pid;

	assert_int_equal(p->open(p->ctx, 0, NULL, &host), 0);
	end_init(&e[0], host, END_PLAIN);
	end_init(&e[1], host, END_PLAIN);
	end_connect(&e[0], &e[1].card);
	end_connect(&e[1], &e[0].card);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(host, slot_of(host));
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* The parent goes on as if nothing had happened. */
	assert_int_equal(end_do(&e[0], &e[1].card, IBV_WR_RDMA_READ, 0, 4096),
			 0);
	end_release(&e[0]);
	end_release(&e[1]);
	host->ops->close(host);
}

/* A child that lives on keeps neither the slot of its dead parent nor the file
 * of its counters. */
static void test_fork_releases_lease(void **state)
{
	const char *rack = getenv("AQUIFER_RACK_NAME");
	char path[RUNDIR_PATH_MAX];
	int sync[2];
	pid_t pid;
	char byte;

	assert_int_equal(test_sockets_of(rack), 0);
	assert_int_equal(pipe(sync), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct nic_provider *p = verbs_default_provider();
		struct nic_host *host;

		NEED(p->open(p->ctx, 0, NULL, &host) == 0);
		if (fork() == 0) {
			close(sync[0]);
			NEED(write(sync[1], "", 1) == 1);
			test_sleep_ms(500);
			_exit(0);
		}
		_exit(0); /* dies with everything open */
	}
	waitpid(pid, NULL, 0);
	assert_int_equal(read(sync[0], &byte, 1), 1);
	assert_int_equal(test_sockets_of(rack), 0);
	assert_int_equal(rundir_make(rack, path), 0);
	assert_int_equal(counter_dir_clean(path), 1);
	close(sync[0]);
	close(sync[1]);
}

static void test_bad_address(void **state)
{
	const struct nic_provider *p = verbs_default_provider();
	struct nic_host *host;

	setenv("AQUIFER_NIC_ADDRESS", "localhost", 1);
	assert_int_equal(p->open(p->ctx, 0, NULL, &host), -EINVAL);
	unsetenv("AQUIFER_NIC_ADDRESS");
}

static void test_clock(void **state)
{
	struct os_clock c;
	uint64_t t0, t1, k0, k1;

	os_clock_init(&c);
	t0 = os_clock_ns(&c);
	k0 = clock_mono_ns();
	assert_true(t0 > 0);
	for (unsigned i = 0; i < 1000; i++) {
		t1 = os_clock_ns(&c);
		assert_true(t1 >= t0);
	}
	test_sleep_ms(50);
	t1 = os_clock_ns(&c);
	k1 = clock_mono_ns();
	/* Within one percent, even if we are interrupted in between. */
	assert_true(t1 - t0 >= 49000000 && t1 - t0 < k1 - k0 + 1000000);
}

static void test_entropy(void **state)
{
	struct entropy e = {0};
	uint8_t a[300], b[300];
	unsigned same = 0;

	entropy_get(&e, a, 200);
	entropy_get(&e, b, 200);
	assert_memory_not_equal(a, b, 200);
	entropy_get(&e, a, 300);
	entropy_get(&e, b, 300);
	for (unsigned i = 0; i < 300; i++)
		same += a[i] == b[i];
	assert_true(same < 30);
}

static void test_pages(void **state)
{
	static const size_t sizes[] = {1, 4096, 5000, 2 << 20, (3 << 20) + 1};

	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
		uint8_t *p = pages_alloc(sizes[i]);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 4096, 0);
		assert_int_equal(p[0] | p[sizes[i] - 1], 0);
		memset(p, 1, sizes[i]);
		pages_free(p, sizes[i]);
	}
	assert_null(pages_alloc(0));
	assert_null(pages_alloc(SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_two_racks),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_releases_lease),
		cmocka_unit_test(test_bad_address),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_entropy),
		cmocka_unit_test(test_pages),
	};
	char rack[32], dir[] = "/tmp/aquifer-test-XXXXXX";
	char command[128];
	int failed;

	snprintf(rack, sizeof(rack), "test-%d", (int)getpid());
	setenv("AQUIFER_RACK_NAME", rack, 1);
	if (!mkdtemp(dir))
		return 1;
	setenv("AQUIFER_RUNDIR", dir, 1);
	setenv("AQUIFER_LOG", "err", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : failed;
}
