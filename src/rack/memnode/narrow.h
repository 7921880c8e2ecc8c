/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that open a part of what a tenant has: some of its regions, for
 * reading only or not, and until a time. A tenant makes them for others, and
 * they open nothing else; or a controller rules them (ruled_narrow.c), and they
 * also open blocks, where a ticket says which. They end with the node, whose
 * regions end then, too. Pure; the caller brings the clock and holds the lock.
 */
#ifndef AQ_NARROW_H
#define AQ_NARROW_H

#include "base/base.h"
#include "control/ctl_token.h"
#include "mem_limits.h"

enum {
	MEM_NARROW_MAX = 64,	   /* that one tenant makes */
	MEM_NARROW_RULED_MAX = 16, /* of one tenant, by a controller */
	MEM_NARROW_ROWS = MEM_NARROW_MAX + MEM_NARROW_RULED_MAX,
	MEM_NARROW_MS_MIN = 1000,
	MEM_NARROW_MS_MAX = 30u * 24 * 3600 * 1000,
	MEM_NARROW_ID_TEXT = 16 + 1,
};

struct mem_narrow {
	uint64_t id; /* 0: a free place; not secret */
	struct ctl_token_hash token;
	bool is_ruled;
	struct ctl_token_hash by; /* the whole token that it was made with */
	/* A region's name, which is also for its parts ("name.0"), or with '*'
	 * at its end all that begin so; "": none. */
	char regions[MEM_REGION_NAME_MAX + 2];
	bool may_write;
	uint64_t until_ns; /* UINT64_MAX: without an end */
};

struct mem_narrows {
	uint64_t made; /* ever: ids come from it */
	/* First those that the tenant makes, so that it cannot take the places
	 * of the others. */
	struct mem_narrow row[MEM_NARROW_ROWS];
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
/* All that the tenant has made. */
void narrow_end_all(struct mem_narrows *t);
bool narrow_allows(const struct mem_narrow *n, const char *region);

#endif
