/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the looped NIC that counts what is touched of it: a memfd each, as
 * of a real host. Nobody maps it. Defined before verbs_pair.h: LOOP_GRANTS. */
#ifndef AQ_TEST_LOOP_GRANT_H
#define AQ_TEST_LOOP_GRANT_H

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nic_host.h"

enum {
	LOOP_GRANTS_MAX = 32,
};

static struct loop_grant {
	uint8_t *addr;
	size_t len_bytes;
	int fd;
	bool was_handed; /* as a test says */
} loop_grants[LOOP_GRANTS_MAX];
static pthread_mutex_t loop_grants_lock = PTHREAD_MUTEX_INITIALIZER;

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
	struct loop_grant made = {.len_bytes = len_bytes}, *g;

	made.fd = memfd_create("loop-grant", MFD_CLOEXEC);
	if (made.fd < 0 || ftruncate(made.fd, (off_t)len_bytes) < 0)
		return -ENOMEM;
	made.addr = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 made.fd, 0);
	pthread_mutex_lock(&loop_grants_lock);
	g = loop_grant_find(NULL);
	if (g)
		*g = made;
	pthread_mutex_unlock(&loop_grants_lock);
	*addr = made.addr;
	return g ? 0 : -ENOMEM;
}

static int loop_grant_free(struct nic_host *host, void *addr)
{
	struct loop_grant *g, gone = {0};

	pthread_mutex_lock(&loop_grants_lock);
	g = addr ? loop_grant_find(addr) : NULL;
	if (g) {
		gone = *g;
		*g = (struct loop_grant){0};
	}
	pthread_mutex_unlock(&loop_grants_lock);
	if (!g)
		return -EINVAL;
	munmap(gone.addr, gone.len_bytes);
	close(gone.fd);
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

static int loop_grant_private(struct nic_host *host, void *addr)
{
	const struct loop_grant *g;
	int rc;

	pthread_mutex_lock(&loop_grants_lock);
	g = addr ? loop_grant_find(addr) : NULL;
	rc = g ? !g->was_handed : -EINVAL;
	pthread_mutex_unlock(&loop_grants_lock);
	return rc;
}

/* As when a peer has asked for it. */
static inline void loop_grant_hand(void *addr)
{
	pthread_mutex_lock(&loop_grants_lock);
	loop_grant_find(addr)->was_handed = true;
	pthread_mutex_unlock(&loop_grants_lock);
}

#endif
