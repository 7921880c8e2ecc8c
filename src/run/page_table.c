/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tables: mapped at full size, backed where they are written. */
#include "page_table.h"

#include <errno.h>
#include <sys/mman.h>

static void *sparse(uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void unmap(void *mem, uint64_t bytes)
{
	if (mem)
		(void)munmap(mem, bytes);
}

int run_set_init(struct run_set *s, uint64_t pages)
{
	s->pages = pages;
	s->word = sparse(align_up(pages, 4096) / 8);
	s->summary = sparse(align_up(pages, 4096) / 512);
	if (s->word && s->summary)
		return 0;
	run_set_release(s);
	return -ENOMEM;
}

void run_set_release(struct run_set *s)
{
	unmap(s->word, align_up(s->pages, 4096) / 8);
	unmap(s->summary, align_up(s->pages, 4096) / 512);
	s->word = s->summary = NULL;
}

/* The first bit at or after `from` in `count` bits. */
static uint64_t next_bit(const uint64_t *word, uint64_t count, uint64_t from)
{
	uint64_t w;

	if (from >= count)
		return count;
	w = word[from / 64] >> (from % 64);
	if (w)
		return from + (uint64_t)__builtin_ctzll(w);
	for (uint64_t i = from / 64 + 1; i < (count + 63) / 64; i++)
		if (word[i])
			return i * 64 + (uint64_t)__builtin_ctzll(word[i]);
	return count;
}

uint64_t run_set_next(const struct run_set *s, uint64_t from)
{
	uint64_t words = (s->pages + 63) / 64;
	uint64_t at;

	if (from >= s->pages)
		return s->pages;
	/* The rest of this word, then by summary. */
	if (s->word[from / 64] >> (from % 64))
		return u64_min(s->pages, next_bit(s->word, s->pages, from));
	at = next_bit(s->summary, words, from / 64 + 1);
	if (at >= words)
		return s->pages;
	return at * 64 + (uint64_t)__builtin_ctzll(s->word[at]);
}

int run_pages_init(struct run_pages *p, uint64_t pages)
{
	p->page = sparse(pages * sizeof(*p->page));
	if (!p->page)
		return -ENOMEM;
	if (run_set_init(&p->touched, pages) == 0 &&
	    run_set_init(&p->resident, pages) == 0 &&
	    run_set_init(&p->held, pages) == 0)
		return 0;
	run_pages_release(p);
	return -ENOMEM;
}

void run_pages_release(struct run_pages *p)
{
	unmap(p->page, p->touched.pages * sizeof(*p->page));
	run_set_release(&p->touched);
	run_set_release(&p->resident);
	run_set_release(&p->held);
}
