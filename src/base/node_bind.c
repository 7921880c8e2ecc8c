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

int node_bind_memory(void *memory, uint64_t bytes, uint32_t node)
{
	struct mask m;
	int err = make_mask(node, &m);

	if (err)
		return err;
	return syscall(SYS_mbind, memory, bytes, MPOL_BIND, m.word, BITS,
		       MPOL_MF_MOVE | MPOL_MF_STRICT) == 0
		       ? 0
		       : -errno;
}

int node_bind_thread(uint32_t node)
{
	struct mask m;
	int err = make_mask(node, &m);

	if (err)
		return err;
	return syscall(SYS_set_mempolicy, MPOL_BIND, m.word, BITS) == 0
		       ? 0
		       : -errno;
}

void node_bind_thread_end(void)
{
	/* The kernel's default can always be had. */
	(void)syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}
