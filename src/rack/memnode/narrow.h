/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that a tenant makes for others: for some of its regions, for reading
 * only or not, and until a time. They open nothing else, and end with the
 * node, whose regions end then, too. Pure; the caller brings the clock and
 * holds the lock.
 */
#ifndef AQ_NARROW_H
#define AQ_NARROW_H

#include "base/base.h"
#include "control/ctl_token.h"
#include "mem_limits.h"

enum {
	MEM_NARROW_MAX = 64, /* of one tenant */
	MEM_NARROW_MS_MIN = 1000,
	MEM_NARROW_MS_MAX = 30u * 24 * 3600 * 1000,
	MEM_NARROW_ID_TEXT = 16 + 1,
};

struct mem_narrow {
	uint64_t id; /* 0: a free place; not secret */
	struct ctl_token_hash token;
	struct ctl_token_hash by; /* the whole token that it was made with */
	/* A region's name, which is also for its parts ("name.0"), or with '*'
	 * at its end all that begin so. */
	char regions[MEM_REGION_NAME_MAX + 2];
	bool may_write;
	uint64_t until_ns;
};

struct mem_narrows {
	uint64_t made; /* ever: ids come from it */
	struct mem_narrow row[MEM_NARROW_MAX];
};

/* A valid name, or one with '*' at its end, or "*" alone. */
bool narrow_regions_are_valid(const char *regions);

/* Makes one; the same token again changes what it opens, and its id. -EAGAIN:
 * there are too many. */
int narrow_make(struct mem_narrows *t, const struct mem_narrow *wish,
		uint64_t now_ns, uint64_t *id) MUST_CHECK;
/* The one with that token, if it has not ended. Takes the same time wherever
 * tokens differ. */
struct mem_narrow *narrow_find(struct mem_narrows *t,
			       const struct ctl_token_hash *token,
			       uint64_t now_ns);
bool narrow_is_live(const struct mem_narrows *t, uint64_t id, uint64_t now_ns);
/* False: there is none. */
bool narrow_end(struct mem_narrows *t, uint64_t id);
void narrow_end_all(struct mem_narrows *t);
bool narrow_allows(const struct mem_narrow *n, const char *region);

#endif
