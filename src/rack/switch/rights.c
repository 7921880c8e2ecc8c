/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what with shared memory. */
#include "rights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_MAX (1ull << 52) /* of all addresses */

int rights_init(struct rights *r)
{
	r->count = 0;
	r->pieces = calloc(RIGHTS_PIECES, sizeof(*r->pieces));
	r->spare = calloc(RIGHTS_PIECES, sizeof(*r->spare));
	return r->pieces && r->spare ? 0 : -ENOMEM;
}

void rights_release(struct rights *r)
{
	free(r->pieces);
	free(r->spare);
	r->pieces = r->spare = NULL;
}

static uint64_t end_of(const struct rights_piece *p)
{
	return p->page + (1ull << p->order);
}

/* ---- a new list of pieces ------------------------------------------------ */

/* A list that is being made, and the span that is not cut up yet. */
struct maker {
	struct rights_piece *to;
	uint32_t count;
	bool full;
	uint32_t domain;
	uint8_t right;
	uint64_t from, end; /* empty: none */
};

static void cut_up(struct maker *m)
{
	while (m->from < m->end && m->right != COH_NONE) {
		uint8_t order =
			m->from ? (uint8_t)__builtin_ctzll(m->from) : 51;

		while (1ull << order > m->end - m->from)
			order--;
		if (m->count == RIGHTS_PIECES) {
			m->full = true;
			break;
		}
		m->to[m->count++] = (struct rights_piece){m->domain, order,
							  m->right, m->from};
		m->from += 1ull << order;
	}
	m->from = m->end = 0;
}

/* Spans come in order. */
static void add(struct maker *m, uint32_t domain, uint64_t from, uint64_t end,
		uint8_t right)
{
	if (from >= end)
		return;
	if (m->from < m->end && m->domain == domain && m->right == right &&
	    m->end == from) {
		m->end = end;
		return;
	}
	cut_up(m);
	m->domain = domain;
	m->right = right;
	m->from = from;
	m->end = end;
}

int rights_set(struct rights *r, uint32_t domain, uint64_t page, uint64_t count,
	       enum coh_right right)
{
	uint64_t end = page + count;
	struct maker m = {.to = r->spare};
	bool added = false;

	if (!count || page >= PAGES_MAX || count > PAGES_MAX - page ||
	    right > COH_WRITE)
		return -EINVAL;
	for (uint32_t i = 0; i < r->count; i++) {
		const struct rights_piece *p = &r->pieces[i];

		if (p->domain != domain) {
			if (p->domain > domain && !added) {
				add(&m, domain, page, end, (uint8_t)right);
				added = true;
			}
			add(&m, p->domain, p->page, end_of(p), p->right);
			continue;
		}
		add(&m, domain, p->page, u64_min(end_of(p), page), p->right);
		if (!added && end_of(p) > page) {
			add(&m, domain, page, end, (uint8_t)right);
			added = true;
		}
		add(&m, domain, u64_max(p->page, end), end_of(p), p->right);
	}
	if (!added)
		add(&m, domain, page, end, (uint8_t)right);
	cut_up(&m);
	if (m.full)
		return -ENOSPC;
	m.to = r->pieces;
	r->pieces = r->spare;
	r->spare = m.to;
	r->count = m.count;
	return 0;
}

enum coh_right rights_find(const struct rights *r, uint32_t domain,
			   uint64_t page)
{
	uint32_t low = 0, high = r->count;

	/* The first piece behind it. */
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct rights_piece *p = &r->pieces[mid];

		if (p->domain < domain ||
		    (p->domain == domain && p->page <= page))
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || r->pieces[low - 1].domain != domain ||
	    page >= end_of(&r->pieces[low - 1]))
		return COH_NONE;
	return (enum coh_right)r->pieces[low - 1].right;
}
