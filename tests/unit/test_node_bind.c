/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one NUMA node. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/node_bind.h"

enum {
	BYTES = 1 << 20,
};

/* Whether an address has a policy of its own, and which. */
static long policy_of(void *memory, int *mode)
{
	return syscall(SYS_get_mempolicy, mode, NULL, 0, memory, MPOL_F_ADDR);
}

static void *map(int fd)
{
	void *p =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		     fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static int bind_or_skip(void *memory, uint32_t node)
{
	int err = node_bind_memory(memory, BYTES, node);

	if (err == -EPERM || err == -ENOSYS)
		skip(); /* a container that forbids it, a kernel without */
	return err;
}

static void holds_for_every_mapping_of_shared_memory(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC), mode = -1;
	uint8_t *first, *second;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	first = map(fd);
	first[0] = 1; /* exists before */
	assert_int_equal(bind_or_skip(first, 0), 0);
	second = map(fd);
	assert_int_equal(policy_of(second, &mode), 0);
	assert_int_equal(mode, MPOL_BIND);
	assert_int_equal(second[0], 1);
	second[BYTES - 1] = 2;
	assert_int_equal(first[BYTES - 1], 2);
	munmap(first, BYTES);
	munmap(second, BYTES);
	close(fd);
}

static void refuses_nodes_that_are_not_there(void **state)
{
	uint8_t *p = map(-1);

	assert_int_equal(bind_or_skip(p, 0), 0);
	assert_int_equal(node_bind_memory(p, BYTES, NODE_BIND_MAX), -EINVAL);
	assert_int_equal(node_bind_memory(p, BYTES, NODE_BIND_MAX + 1),
			 -EINVAL);
	assert_int_equal(node_bind_thread(NODE_BIND_MAX), -EINVAL);
	assert_int_equal(node_bind_thread(UINT32_MAX), -EINVAL);
	munmap(p, BYTES);
}

static void gives_a_thread_its_policy_back(void **state)
{
	int mode = -1, err = node_bind_thread(0);

	if (err == -EPERM || err == -ENOSYS)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(mode, MPOL_BIND);
	node_bind_thread_end();
	assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(mode, MPOL_DEFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_for_every_mapping_of_shared_memory),
		cmocka_unit_test(refuses_nodes_that_are_not_there),
		cmocka_unit_test(gives_a_thread_its_policy_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
