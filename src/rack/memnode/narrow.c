/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/ctl_http.h"

static bool is_live(const struct mem_narrow *n, uint64_t now_ns)
{
	return n->id && n->until_ns > now_ns;
}

bool narrow_regions_are_valid(const char *regions)
{
	char name[MEM_REGION_NAME_MAX + 2];
	size_t len = strlen(regions);

	if (strcmp(regions, "*") == 0)
		return true;
	if (len == 0 || len > MEM_REGION_NAME_MAX + 1)
		return false;
	(void)snprintf(name, sizeof(name), "%s", regions);
	if (name[len - 1] == '*')
		name[len - 1] = '\0';
	return ctl_name_is_valid(name, MEM_REGION_NAME_MAX);
}

int narrow_make(struct mem_narrows *t, const struct mem_narrow *wish,
		uint64_t now_ns, uint64_t *id)
{
	struct mem_narrow *place = narrow_find(t, &wish->token, now_ns);
	unsigned first = wish->is_ruled ? MEM_NARROW_MAX : 0;
	unsigned end = wish->is_ruled ? MEM_NARROW_ROWS : MEM_NARROW_MAX;

	for (unsigned i = first; i < end && !place; i++)
		if (!is_live(&t->row[i], now_ns))
			place = &t->row[i];
	if (!place)
		return error_set(-EAGAIN,
				 "this tenant has %u narrow tokens already",
				 end - first);
	*place = *wish;
	place->id = ++t->made;
	*id = place->id;
	return 0;
}

struct mem_narrow *narrow_find(struct mem_narrows *t,
			       const struct ctl_token_hash *token,
			       uint64_t now_ns)
{
	struct mem_narrow *found = NULL;

	for (unsigned i = 0; t->made && i < MEM_NARROW_ROWS; i++)
		if (ctl_token_hash_equal(&t->row[i].token, token) &&
		    is_live(&t->row[i], now_ns))
			found = &t->row[i];
	return found;
}

bool narrow_is_live(const struct mem_narrows *t, uint64_t id, uint64_t now_ns)
{
	for (unsigned i = 0; i < MEM_NARROW_ROWS; i++)
		if (t->row[i].id == id)
			return is_live(&t->row[i], now_ns);
	return false;
}

bool narrow_end(struct mem_narrows *t, uint64_t id)
{
	for (unsigned i = 0; id && i < MEM_NARROW_ROWS; i++) {
		if (t->row[i].id != id)
			continue;
		t->row[i] = (struct mem_narrow){0};
		return true;
	}
	return false;
}

/* Numbers are not used again: a connection that has not ended yet must not
 * belong to another token. */
void narrow_end_all(struct mem_narrows *t)
{
	memset(t->row, 0, MEM_NARROW_MAX * sizeof(t->row[0]));
}

bool narrow_allows(const struct mem_narrow *n, const char *region)
{
	size_t len = strlen(n->regions);

	if (!len)
		return false;
	if (n->regions[len - 1] == '*')
		return strncmp(n->regions, region, len - 1) == 0;
	/* Parts of a region on several nodes have its name, and a dot. */
	return strncmp(n->regions, region, len) == 0 &&
	       (region[len] == '\0' || region[len] == '.');
}
