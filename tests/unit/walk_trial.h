/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one iteration of a program on the interpreter, as translated code and on
 * the reference, each in windows that end where memory ends (or begin where it
 * begins), and says where they differ.
 */
#ifndef WALK_TRIAL_H
#define WALK_TRIAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "walk_reference.h"

enum {
	TRIAL_ROOM = 8192, /* for a window of 4096 at any alignment */
	TRIAL_PAGE = 4096,
};

/* A window between two pages that nobody may touch. */
struct guarded {
	uint8_t *bytes;
};

static inline struct guarded guarded_make(void)
{
	uint8_t *p = mmap(NULL, TRIAL_ROOM + 2 * TRIAL_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + TRIAL_PAGE, TRIAL_ROOM, PROT_READ | PROT_WRITE))
		abort();
	return (struct guarded){p + TRIAL_PAGE};
}

static inline void guarded_free(struct guarded g)
{
	(void)munmap(g.bytes - TRIAL_PAGE, TRIAL_ROOM + 2 * TRIAL_PAGE);
}

struct trial {
	struct guarded node[3], pad[3];
};

static inline struct trial trial_make(void)
{
	struct trial t;

	for (int i = 0; i < 3; i++) {
		t.node[i] = guarded_make();
		t.pad[i] = guarded_make();
	}
	return t;
}

static inline void trial_free(struct trial *t)
{
	for (int i = 0; i < 3; i++) {
		guarded_free(t->node[i]);
		guarded_free(t->pad[i]);
	}
}

/* Random bytes with small numbers among them, which lead further. */
static inline void trial_fill(struct rng *r, uint8_t *at, size_t len)
{
	uint64_t coins = 0;

	rng_fill(r, at, len);
	for (size_t i = 0; i + 8 <= len; i += 8, coins >>= 2) {
		if (i % 256 == 0)
			coins = rng_u64(r);
		if (coins % 4 == 0)
			memset(at + i + 1, 0, 7);
	}
}

/* A window of the first room, as it is now, to the others from `first` on. */
static inline void trial_spread(struct guarded room[3], int first, size_t at,
				size_t len)
{
	for (int i = first; i < 3; i++)
		memcpy(room[i].bytes + at, room[0].bytes + at, len);
}

/*
 * NULL: all agree. `translated` may be NULL. The windows' contents come from
 * the generator; `shift` is how far the node is off its guard, 0 to 7. Around
 * the windows is what earlier trials left, the same in all rooms: to fill whole
 * rooms each time would be most of the work.
 */
static inline const char *trial_run(struct trial *t,
				    const struct walk_program *interpreted,
				    const struct walk_program *translated,
				    struct rng *r)
{
	const struct walk_image *image = &interpreted->image;
	const bool at_end = rng_below(r, 2);
	const uint32_t shift = (uint32_t)rng_below(r, 4) ? 0 : 4;
	const size_t node_at =
		at_end ? TRIAL_ROOM - image->load_bytes - shift : shift;
	const size_t pad_at = at_end ? TRIAL_ROOM - image->pad_bytes : 0;
	const int ways = translated ? 3 : 2;
	struct walk_end end[3];
	uint32_t cost;

	trial_fill(r, t->node[0].bytes + node_at, image->load_bytes);
	trial_fill(r, t->pad[0].bytes + pad_at, image->pad_bytes);
	trial_spread(t->node, 1, node_at, image->load_bytes);
	trial_spread(t->pad, 1, pad_at, image->pad_bytes);
	end[0] = reference_run(image, t->node[0].bytes + node_at,
			       t->pad[0].bytes + pad_at, &cost);
	if (end[0].step == REFERENCE_BROKEN)
		return "the verifier accepted what leaves its windows or "
		       "reads an unwritten register";
	if (cost > interpreted->facts.longest)
		return "a path was longer than the longest";
	end[1] = interpreted->run(interpreted, t->node[1].bytes + node_at,
				  t->pad[1].bytes + pad_at);
	if (translated)
		end[2] = translated->run(translated, t->node[2].bytes + node_at,
					 t->pad[2].bytes + pad_at);
	for (int i = 1; i < ways; i++) {
		if (end[i].step != end[0].step || end[i].next != end[0].next)
			return i == 1 ? "the interpreter ends differently"
				      : "translated code ends differently";
		if (memcmp(t->node[i].bytes, t->node[0].bytes, TRIAL_ROOM) ||
		    memcmp(t->pad[i].bytes, t->pad[0].bytes, TRIAL_ROOM))
			return i == 1 ? "the interpreter leaves other bytes"
				      : "translated code leaves other bytes";
	}
	trial_spread(t->node, ways, node_at, image->load_bytes);
	trial_spread(t->pad, ways, pad_at, image->pad_bytes);
	return NULL;
}

#endif
