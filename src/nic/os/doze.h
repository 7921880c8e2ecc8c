/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dozing: a thread that waits for frames sleeps until a peer publishes one, and
 * the peer wakes this very thread. It is for a core that is shared: there a
 * yield costs the slice of whoever runs next (relax.h), and a nap by a timer
 * ends too late.
 *
 * The word that is waited for is the beginning of the next record in the ring,
 * its header among it, and zero until then. The kernel compares it once more
 * before it puts the thread to sleep, so a record that was published meanwhile
 * is not missed. That
 * somebody dozes stands in the bell page (bell.h), and a producer looks at it
 * after each record. It does so without a barrier, so in principle it may look
 * too early; then, and if the peer is of ill will, the doze ends by its time.
 */
#ifndef AQ_DOZE_H
#define AQ_DOZE_H

#include "base/base.h"

enum {
	DOZE_WORDS_MAX = 16,
};

struct doze_word {
	const void *at;
	uint32_t value; /* while there is nothing to do */
};

/* Sleeps until one of the words is not its value, or for this long; the peer's
 * doze_rouse() ends it. False: the kernel does not do that. */
bool doze_wait(const struct doze_word *words, unsigned count, uint64_t max_ns);

/* Wakes all who wait for this word. */
void doze_rouse(const void *at);

#endif
