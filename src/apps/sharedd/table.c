/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all pages of shared memory, which grow when a memory node adds
 * some: addresses begin at one place, and what is added lies behind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "shd_priv.h"

#define PAGES_MAX (1ull << 26) /* 256 GiB */

/* More zeros behind what is there. */
static int extend(void **table, uint64_t had, uint64_t count, size_t size)
{
	char *more = realloc(*table, count * size);

	if (!more)
		return -ENOMEM;
	memset(more + had * size, 0, (count - had) * size);
	*table = more;
	return 0;
}

static uint64_t regions(uint64_t pages)
{
	return pages / COH_REGION_PAGES_MAX + 1;
}

int shd_table_grow(struct shd *s, uint64_t size_bytes)
{
	uint64_t had = s->cache.page_count;
	uint64_t pages = size_bytes >> COHERENCE_PAGE_SHIFT;
	void *page_table = s->cache.pages, *holds = s->holds;
	void *touched = s->touched;
	int err;

	if (pages <= had)
		return 0;
	if (pages > PAGES_MAX)
		return error_set(-EFBIG,
				 "a machine's cache covers up to 256 GiB of "
				 "shared memory");
	err = extend(&page_table, had, pages, sizeof(*s->cache.pages));
	s->cache.pages = page_table;
	if (!err)
		err = extend(&holds, had, pages, sizeof(*s->holds));
	s->holds = holds;
	if (!err)
		err = extend(&touched, had ? regions(had) : 0, regions(pages),
			     sizeof(*s->touched));
	s->touched = touched;
	if (err)
		return error_set(err, "no memory for the table of pages");
	s->cache.page_count = (uint32_t)pages;
	return 0;
}
