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
	memset(s->busy[s->now], 0, sizeof(s->busy[s->now]));
}

unsigned share_budget(const struct share *s, uint64_t domain, unsigned budget)
{
	unsigned paths = s->busy[!s->now][bucket_of(domain)];

	if (!s->crowd || paths <= 1)
		return budget;
	return budget > paths ? budget / paths : 1;
}

void share_note(struct share *s, uint64_t domain)
{
	if (s->busy[s->now][bucket_of(domain)]++ == 0)
		s->tenants++;
}
