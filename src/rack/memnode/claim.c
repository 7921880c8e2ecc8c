/* SPDX-License-Identifier: Apache-2.0 */
#include "claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static bool is_live(const struct mem_claim *c, uint64_t now_ns)
{
	return c->until_ns > now_ns;
}

static struct mem_claim *find(struct mem_claims *claims, const char *name,
			      uint64_t now_ns)
{
	for (unsigned i = 0; i < MEM_CLAIM_MAX; i++)
		if (is_live(&claims->row[i], now_ns) &&
		    strcmp(claims->row[i].name, name) == 0)
			return &claims->row[i];
	return NULL;
}

static struct mem_claim *find_free(struct mem_claims *claims, uint64_t now_ns)
{
	for (unsigned i = 0; i < MEM_CLAIM_MAX; i++)
		if (!is_live(&claims->row[i], now_ns))
			return &claims->row[i];
	return NULL;
}

int claim_take(struct mem_claims *claims, const char *name, const char *holder,
	       uint64_t now_ns, uint64_t until_ns)
{
	struct mem_claim *c = find(claims, name, now_ns);

	if (c && strcmp(c->holder, holder) != 0)
		return error_set(-EBUSY, "somebody else is making a region %s",
				 name);
	if (!c)
		c = find_free(claims, now_ns);
	if (!c)
		return error_set(-EAGAIN,
				 "%d regions of this tenant are being made; "
				 "try again later",
				 MEM_CLAIM_MAX);
	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	(void)snprintf(c->holder, sizeof(c->holder), "%s", holder);
	c->until_ns = until_ns;
	return 0;
}

int claim_drop(struct mem_claims *claims, const char *name, const char *holder,
	       uint64_t now_ns)
{
	struct mem_claim *c = find(claims, name, now_ns);

	if (!c || strcmp(c->holder, holder) != 0)
		return error_set(-ENOENT, "nobody of this name claims %s",
				 name);
	*c = (struct mem_claim){0};
	return 0;
}
