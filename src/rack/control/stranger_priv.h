/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who brings tokens that are not known is answered later and later: one key's
 * wrong tokens are counted, and half of them forgotten every 10 s. Right tokens
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
	unsigned count; /* 0: nobody */
	uint64_t since_ns;
};

struct strangers {
	pthread_mutex_t lock;
	struct stranger stranger[STRANGERS_MAX];
};

void strangers_init(struct strangers *s);
void strangers_destroy(struct strangers *s);
/* One more wrong token of this key: for how long its answer waits. */
unsigned strangers_count(struct strangers *s, const struct caller_key *key,
			 uint64_t now_ns);

#endif
