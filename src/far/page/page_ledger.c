/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: per page which shards have it, and their checksums. It is as
 * large as the space but only touched where pages are stored. */
#include <errno.h>
#include <sys/mman.h>

#include "base/error.h"
#include "page_priv.h"

static void *reserve(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uint64_t sum_bytes(const struct page_ledger *l)
{
	return l->pages * l->sums_per_page * sizeof(*l->sums);
}

int page_ledger_init(struct page_ledger *l, uint64_t pages,
		     uint32_t sums_per_page)
{
	*l = (struct page_ledger){.pages = pages,
				  .sums_per_page = sums_per_page};
	l->bits = reserve(pages * sizeof(*l->bits));
	if (l->bits && sums_per_page)
		l->sums = reserve(sum_bytes(l));
	if (l->bits && (l->sums || !sums_per_page))
		return 0;
	page_ledger_release(l);
	return error_set(-ENOMEM, "no memory for the records of %llu pages",
			 (unsigned long long)pages);
}

void page_ledger_release(struct page_ledger *l)
{
	if (l->bits)
		(void)munmap(l->bits, l->pages * sizeof(*l->bits));
	if (l->sums)
		(void)munmap(l->sums, sum_bytes(l));
	l->bits = NULL;
	l->sums = NULL;
}

void page_ledger_set(struct page_ledger *l, uint64_t page, unsigned bits)
{
	l->stored -= (l->bits[page] & LEDGER_STORED) != 0;
	l->stored += (bits & LEDGER_STORED) != 0;
	l->bits[page] = (uint16_t)bits;
}
