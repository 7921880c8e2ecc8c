/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tables: mapped at full size, backed where they are written. */
#include "page_table.h"

#include <errno.h>
#include <sys/mman.h>

void run_page_set_state(struct run_page *e, enum run_state state)
{
	enum {
		UNTOUCHED = 1 << RUN_UNTOUCHED,
		RESIDENT = 1 << RUN_RESIDENT,
		LEAVING = 1 << RUN_LEAVING,
		STAGED = 1 << RUN_STAGED,
		FAR = 1 << RUN_FAR,
		LOST = 1 << RUN_LOST,
	};
	static const uint8_t next[RUN_STATES] = {
		[RUN_UNTOUCHED] = UNTOUCHED | RESIDENT,
		[RUN_RESIDENT] = UNTOUCHED | RESIDENT | LEAVING,
		[RUN_LEAVING] = UNTOUCHED | RESIDENT | STAGED | LOST,
		[RUN_STAGED] = UNTOUCHED | RESIDENT | FAR | LOST,
		[RUN_FAR] = UNTOUCHED | RESIDENT | LOST,
		[RUN_LOST] = UNTOUCHED | LOST,
	};

	ASSERT(next[e->state] >> state & 1);
	e->state = state & 7u;
}

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

uint64_t run_set_next_in(const struct run_set *s, uint64_t from, uint64_t end)
{
	uint64_t words = (end + 63) / 64;
	uint64_t at;

	if (from >= end)
		return end;
	/* The rest of this word, then by summary. */
	if (s->word[from / 64] >> (from % 64))
		return u64_min(end, next_bit(s->word, end, from));
	at = next_bit(s->summary, words, from / 64 + 1);
	if (at >= words)
		return end;
	return u64_min(end, at * 64 + (uint64_t)__builtin_ctzll(s->word[at]));
}

uint64_t run_set_next(const struct run_set *s, uint64_t from)
{
	return run_set_next_in(s, from, s->pages);
}

void run_set_add_range(struct run_set *s, uint64_t page, uint64_t count)
{
	for (uint64_t i = page; i < page + count; i++) {
		/* Whole words at once: ranges are large. */
		if (i % 64 == 0 && i + 64 <= page + count) {
			s->word[i / 64] = ~0ull;
			s->summary[i / 4096] |= 1ull << (i / 64 % 64);
			i += 63;
		} else {
			run_set_add(s, i);
		}
	}
}

void run_set_del_range(struct run_set *s, uint64_t page, uint64_t count)
{
	uint64_t end = page + count;

	run_set_for_each (i, s, page, end)
		run_set_del(s, i);
}

void run_set_copy_range(struct run_set *s, uint64_t to, uint64_t from,
			uint64_t count)
{
	uint64_t end = from + count;

	run_set_del_range(s, to, count);
	run_set_for_each (i, s, from, end)
		run_set_add(s, to + i - from);
}

int run_pages_init(struct run_pages *p, uint64_t pages)
{
	bool ok;

	*p = (struct run_pages){.page = sparse(pages * sizeof(*p->page))};
	ok = p->page != NULL;
	for (unsigned i = 0; i < RUN_MARKS; i++)
		ok &= run_set_init(&p->set[i], pages) == 0;
	if (ok)
		return 0;
	run_pages_release(p);
	return -ENOMEM;
}

void run_pages_release(struct run_pages *p)
{
	unmap(p->page, p->touched.pages * sizeof(*p->page));
	for (unsigned i = 0; i < RUN_MARKS; i++)
		run_set_release(&p->set[i]);
}
