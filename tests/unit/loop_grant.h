/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the looped NIC that counts what is touched of it: a memfd each, as
 * of a real host. Nobody maps it. Defined before verbs_pair.h: LOOP_GRANTS. */
#ifndef AQ_TEST_LOOP_GRANT_H
#define AQ_TEST_LOOP_GRANT_H

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nic_host.h"

enum {
	LOOP_GRANTS_MAX = 8,
};

static struct loop_grant {
	uint8_t *addr;
	size_t len_bytes;
	int fd;
} loop_grants[LOOP_GRANTS_MAX];

static struct loop_grant *loop_grant_find(const void *addr)
{
	for (unsigned i = 0; i < LOOP_GRANTS_MAX; i++)
		if (loop_grants[i].addr == addr)
			return &loop_grants[i];
	return NULL;
}

static int loop_grant_alloc(struct nic_host *host, size_t len_bytes,
			    unsigned flags, void **addr)
{
	struct loop_grant *g = loop_grant_find(NULL);

	if (!g)
		return -ENOMEM;
	g->fd = memfd_create("loop-grant", MFD_CLOEXEC);
	if (g->fd < 0 || ftruncate(g->fd, (off_t)len_bytes) < 0)
		return -ENOMEM;
	g->len_bytes = len_bytes;
	g->addr = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       g->fd, 0);
	*addr = g->addr;
	return 0;
}

static int loop_grant_free(struct nic_host *host, void *addr)
{
	struct loop_grant *g = loop_grant_find(addr);

	if (!addr || !g)
		return -EINVAL;
	munmap(g->addr, g->len_bytes);
	close(g->fd);
	*g = (struct loop_grant){0};
	return 0;
}

static int loop_grant_used(struct nic_host *host, void *addr, uint64_t *used)
{
	const struct loop_grant *g = loop_grant_find(addr);
	struct stat st;

	if (!addr || !g || fstat(g->fd, &st) < 0)
		return -EINVAL;
	*used = (uint64_t)st.st_blocks * 512;
	return 0;
}

#endif
