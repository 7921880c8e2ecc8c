/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of paths, by what their tenants had in the last round. */
#include "path_share.h"

STATIC_ASSERT((SHARE_TENANTS & (SHARE_TENANTS - 1)) == 0, "a power of two");

/* The tenant's entry, or the one that was not used for longest. Domains are
 * addresses of objects of some 64 bytes. */
static struct share_tenant *find(struct share *s, uint64_t domain)
{
	uint64_t at = domain / 16 * 0x9e3779b97f4a7c15ull >> 32;
	struct share_tenant *oldest = NULL;

	for (unsigned i = 0; i < SHARE_PROBES; i++) {
		struct share_tenant *t =
			&s->tenant[(at + i) & (SHARE_TENANTS - 1)];

		if (t->round && t->domain == domain)
			return t;
		if (!oldest || s->round - t->round > s->round - oldest->round)
			oldest = t;
	}
	*oldest = (struct share_tenant){.domain = domain};
	return oldest;
}

/* The same, in this round. */
static struct share_tenant *find_now(struct share *s, uint64_t domain)
{
	struct share_tenant *t = find(s, domain);
	uint32_t passed = s->round - t->round;

	if (passed == 0)
		return t;
	t->last_paths = passed == 1 ? t->paths : 0;
	t->paths = t->taken = 0;
	t->round = s->round;
	return t;
}

void share_begin(struct share *s)
{
	if (s->tenants > 1)
		s->crowd = SHARE_ROUNDS_MAX;
	else if (s->crowd)
		s->crowd--;
	s->tenants = 0;
	if (++s->round == 0)
		s->round = 1;
}

unsigned share_budget(struct share *s, uint64_t domain, unsigned budget)
{
	struct share_tenant *t;
	unsigned each;

	if (!s->crowd)
		return budget;
	t = find_now(s, domain);
	if (t->is_greedy)
		budget = u32_max(budget / SHARE_GREEDY, 1);
	if (t->taken >= budget)
		return 0;
	each = t->last_paths > 1 ? budget / t->last_paths : budget;
	return u32_min(each ? each : 1, budget - t->taken);
}

void share_note(struct share *s, uint64_t domain, unsigned got, bool is_greedy)
{
	struct share_tenant *t = find_now(s, domain);

	if (t->paths++ == 0)
		s->tenants++;
	t->taken = (uint16_t)u32_min(t->taken + got, UINT16_MAX);
	t->is_greedy = is_greedy;
}
