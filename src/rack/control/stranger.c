/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong tokens by who brought them. */
#include "stranger_priv.h"

enum {
	DELAY_FIRST_MS = 25,
	DELAY_DOUBLINGS = 7,
};

void strangers_init(struct strangers *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

void strangers_destroy(struct strangers *s)
{
	pthread_mutex_destroy(&s->lock);
}

static void forget_some(struct stranger *s, uint64_t now_ns)
{
	while (s->count &&
	       now_ns - s->since_ns > STRANGER_HALF_MS * 1000000ull) {
		s->count /= 2;
		s->since_ns += STRANGER_HALF_MS * 1000000ull;
	}
}

/* Its own place, a free one, or that of who brought fewest. */
static struct stranger *find(struct strangers *s, const struct caller_key *key,
			     uint64_t now_ns)
{
	struct stranger *least = &s->stranger[0];

	for (unsigned i = 0; i < STRANGERS_MAX; i++) {
		struct stranger *at = &s->stranger[i];

		forget_some(at, now_ns);
		if (at->count && caller_key_equal(&at->key, key))
			return at;
		if (at->count < least->count)
			least = at;
	}
	*least = (struct stranger){.key = *key, .since_ns = now_ns};
	return least;
}

unsigned strangers_count(struct strangers *s, const struct caller_key *key,
			 uint64_t now_ns)
{
	struct stranger *at;
	unsigned count;

	pthread_mutex_lock(&s->lock);
	at = find(s, key, now_ns);
	if (at->count < UINT16_MAX)
		at->count++;
	count = at->count;
	pthread_mutex_unlock(&s->lock);
	if (count <= STRANGER_FREE_TRIES)
		return 0;
	return u32_min(STRANGER_DELAY_MAX_MS,
		       DELAY_FIRST_MS << u32_min(count - STRANGER_FREE_TRIES,
						 DELAY_DOUBLINGS));
}
