/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers with unknown tokens are answered later and later: wrong tokens are
 * counted per key, and half of the count is forgotten every 10 s. Right tokens
 * are never delayed, wherever they come from.
 */
#ifndef AQ_CTL_STRANGER_PRIV_H
#define AQ_CTL_STRANGER_PRIV_H

#include "caller_priv.h"

enum {
	STRANGERS_MAX = 256,
	STRANGER_FREE_TRIES = 4, /* answered at once */
	STRANGER_DELAY_MAX_MS = 2000,
	STRANGER_HALF_MS = 10000,
};

struct stranger {
	struct caller_key key;
	unsigned count; /* 0: the entry is free */
	uint64_t since_ns;
};

struct strangers {
	pthread_mutex_t lock;
	struct stranger stranger[STRANGERS_MAX];
};

void strangers_init(struct strangers *s);
void strangers_destroy(struct strangers *s);
/* Counts a wrong token of this key; returns how long its answer must wait. */
unsigned strangers_count(struct strangers *s, const struct caller_key *key,
			 uint64_t now_ns);

#endif
