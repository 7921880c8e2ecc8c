/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a queue's requests: free, under way, or handed out by poll and
 * free again at the next poll. For one thread.
 */
#ifndef AQ_HLOG_SLOTS_H
#define AQ_HLOG_SLOTS_H

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

#define SLOTS_NONE UINT32_MAX

struct slots {
	uint32_t *next;
	uint32_t free_first;
	uint32_t handed_first;
};

static inline int slots_init(struct slots *s, uint32_t count)
{
	s->next = calloc(count, sizeof(*s->next));
	if (!s->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		s->next[i] = i + 1 < count ? i + 1 : SLOTS_NONE;
	s->free_first = count ? 0 : SLOTS_NONE;
	s->handed_first = SLOTS_NONE;
	return 0;
}

static inline void slots_release(struct slots *s)
{
	free(s->next);
}

/* SLOTS_NONE: all are taken. */
static inline uint32_t slots_get(struct slots *s)
{
	uint32_t i = s->free_first;

	if (i != SLOTS_NONE)
		s->free_first = s->next[i];
	return i;
}

static inline void slots_put(struct slots *s, uint32_t i)
{
	s->next[i] = s->free_first;
	s->free_first = i;
}

static inline void slots_hand(struct slots *s, uint32_t i)
{
	s->next[i] = s->handed_first;
	s->handed_first = i;
}

static inline void slots_recycle(struct slots *s)
{
	while (s->handed_first != SLOTS_NONE) {
		uint32_t i = s->handed_first;

		s->handed_first = s->next[i];
		slots_put(s, i);
	}
}

#endif
