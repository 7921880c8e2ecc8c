/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does between two looks at something that another thread or
 * process will do. Alone on its core, or with that other one, it yields: 0.2
 * us, and the other runs at once. Among strangers a yield costs a slice of each
 * of them, 60 ms and more beside sixteen that spin, and who yields gets no
 * credit for it. Who sleeps does: the kernel lets it run soon after it wakes.
 * So a yield that took long is the last one for a while, and naps take its
 * place.
 */
#ifndef AQ_RELAX_H
#define AQ_RELAX_H

#include "base.h"

struct relax {
	uint64_t crowded_until_ns; /* among strangers */
	uint64_t span_ns;	   /* for how long that was believed last */
};

/* One rest, short or not. A nap ends after some 80 us. */
void relax_rest(struct relax *r);
/* The same with what the calling thread knows of its core. */
void relax_briefly(void);

/* Whether the calling thread was found among strangers: then it should sleep in
 * a call that what it waits for can end, if it has one. */
bool relax_is_crowded(void);

#endif
