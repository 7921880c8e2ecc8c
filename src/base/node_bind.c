/* SPDX-License-Identifier: Apache-2.0 */
/* Memory policies of the kernel. */
#include "node_bind.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	WORDS = (NODE_BIND_MAX + 1) / 64,
	BITS = NODE_BIND_MAX + 2, /* the kernel reads one less */
};

struct mask {
	uint64_t word[WORDS];
};

static int make_mask(uint32_t node, struct mask *m)
{
	*m = (struct mask){{0}};
	if (node > NODE_BIND_MAX)
		return -EINVAL;
	m->word[node / 64] = 1ull << node % 64;
	return 0;
}

static int set_memory(void *memory, uint64_t bytes, int mode, uint32_t node,
		      unsigned flags)
{
	struct mask m;
	int err = make_mask(node, &m);

	if (err)
		return err;
	return syscall(SYS_mbind, memory, bytes, mode, m.word, BITS, flags) == 0
		       ? 0
		       : -errno;
}

static int set_thread(int mode, uint32_t node)
{
	struct mask m;
	int err = make_mask(node, &m);

	if (err)
		return err;
	return syscall(SYS_set_mempolicy, mode, m.word, BITS) == 0 ? 0 : -errno;
}

int node_bind_memory(void *memory, uint64_t bytes, uint32_t node)
{
	return set_memory(memory, bytes, MPOL_BIND, node,
			  MPOL_MF_MOVE | MPOL_MF_STRICT);
}

int node_bind_thread(uint32_t node)
{
	return set_thread(MPOL_BIND, node);
}

int node_prefer_memory(void *memory, uint64_t bytes, uint32_t node)
{
	return set_memory(memory, bytes, MPOL_PREFERRED, node, 0);
}

int node_prefer_thread(uint32_t node)
{
	return set_thread(MPOL_PREFERRED, node);
}

void node_bind_thread_end(void)
{
	/* The kernel's default can always be had. */
	(void)syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

bool node_is_allowed(uint32_t node)
{
	struct mask m = {{0}};

	return node <= NODE_BIND_MAX &&
	       syscall(SYS_get_mempolicy, NULL, m.word, BITS, NULL,
		       MPOL_F_MEMS_ALLOWED) == 0 &&
	       (m.word[node / 64] >> node % 64 & 1);
}

/* Balancing only looks at tasks whose policy is the kernel's default. LOCAL
 * places pages as that does. */
void node_balance_off(void)
{
	int mode;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0 &&
	    mode == MPOL_DEFAULT)
		(void)syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0);
}
