/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the pager shares with one process. */
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/node_bind.h"

int run_share_create(uint32_t buffer_count, struct share **out, int *fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct share *s = malloc(sizeof(*s));
	int err, f;

	if (!s)
		return -ENOMEM;
	*s = (struct share){.refs = 1,
			    .bytes = RUN_CHANNEL_BYTES +
				     (size_t)buffer_count * RUN_BATCH_PAGES *
					     RUN_PAGE_BYTES};
	f = memfd_create("aquifer-run", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f < 0 || ftruncate(f, (off_t)s->bytes) != 0 ||
	    fcntl(f, F_ADD_SEALS, seals) != 0)
		goto err_errno;
	s->mem = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	if (s->mem == MAP_FAILED)
		goto err_errno;
	*out = s;
	*fd = f;
	return 0;
err_errno:
	err = -errno;
	if (f >= 0)
		(void)close(f);
	free(s);
	return err;
}

void run_share_set_node(struct share *s, uint32_t node)
{
	/* A failure only costs time. */
	(void)!node_prefer_memory(s->mem, s->bytes, node);
}

struct share *run_share_get(struct share *s)
{
	s->refs++;
	return s;
}

void run_share_put(struct share *s)
{
	if (!s || --s->refs > 0)
		return;
	(void)munmap(s->mem, s->bytes);
	free(s);
}

void run_share_clear(struct share *s, uint32_t buffer)
{
	/* A failure only costs memory until the process ends. */
	(void)madvise(run_share_page(s, buffer * RUN_BATCH_PAGES),
		      (size_t)RUN_BATCH_PAGES * RUN_PAGE_BYTES, MADV_REMOVE);
}
