/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: per page which copies have it, and its checksum. It is as
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

int page_ledger_init(struct page_ledger *l, uint64_t pages, bool has_sums)
{
	*l = (struct page_ledger){.pages = pages};
	l->bits = reserve(pages * sizeof(*l->bits));
	if (l->bits && has_sums)
		l->sums = reserve(pages * sizeof(*l->sums));
	if (l->bits && (l->sums || !has_sums))
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
		(void)munmap(l->sums, l->pages * sizeof(*l->sums));
	l->bits = NULL;
	l->sums = NULL;
}

void page_ledger_set(struct page_ledger *l, uint64_t page, unsigned bits)
{
	l->stored -= (l->bits[page] & LEDGER_STORED) != 0;
	l->stored += (bits & LEDGER_STORED) != 0;
	l->bits[page] = (uint16_t)bits;
}
