/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of paths, by what their tenants did in the last round. */
#include "path_share.h"

#include <string.h>

/* Domains are addresses of objects of some 64 bytes. */
static unsigned bucket_of(uint64_t domain)
{
	return (unsigned)(domain / 16 % SHARE_BUCKETS);
}

void share_begin(struct share *s)
{
	if (s->tenants > 1)
		s->crowd = SHARE_ROUNDS_MAX;
	else if (s->crowd)
		s->crowd--;
	s->tenants = 0;
	s->now = !s->now;
	memset(s->tenant[s->now], 0, sizeof(s->tenant[s->now]));
}

unsigned share_budget(const struct share *s, uint64_t domain, unsigned budget)
{
	unsigned bucket = bucket_of(domain);
	const struct share_tenant *last = &s->tenant[!s->now][bucket];
	unsigned taken = s->tenant[s->now][bucket].taken;
	unsigned each;

	if (!s->crowd)
		return budget;
	if (last->is_greedy)
		budget = budget > SHARE_GREEDY ? budget / SHARE_GREEDY : 1;
	if (taken >= budget)
		return 0;
	each = last->paths > 1 ? budget / last->paths : budget;
	return u32_min(each ? each : 1, budget - taken);
}

void share_note(struct share *s, uint64_t domain, unsigned got, bool is_full)
{
	struct share_tenant *t = &s->tenant[s->now][bucket_of(domain)];

	if (t->paths++ == 0)
		s->tenants++;
	t->taken = (uint16_t)u32_min(t->taken + got, UINT16_MAX);
	t->is_greedy |= is_full;
}
