/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this room; every queue, table, loop and retry has one. */
#ifndef AQ_TRAVERSE_LIMITS_H
#define AQ_TRAVERSE_LIMITS_H

enum {
	TRAVERSE_DEPTH = 16, /* walks under way, where nobody says how many */
	TRAVERSE_ITERATIONS = 65536,
	TRAVERSE_PLACES = 16, /* regions that one struct aq_walks knows */
	TRAVERSE_LOADS = 4,   /* sizes whose loads nodes measure */
	TRAVERSE_WORDS = 256,

	/* Registered memory of one job: the result and the pad, then the
	 * window. */
	TRAVERSE_PAD_ROOM = 4096,
	TRAVERSE_JOB_BYTES = 2 * 4096,

	/* Connections to a region's nodes beside one for each, for walks that
	 * the switch carries on: such a one has its connection for itself. */
	TRAVERSE_FORWARDS = 16,

	TRAVERSE_PROBES = 64,	   /* whether memory is mapped; then seldom */
	TRAVERSE_MAP_NS = 2000000, /* that connecting waits for that */

	TRAVERSE_ATTEMPTS = 2,	     /* the second after a refresh */
	TRAVERSE_INSTALLS = 3,	     /* in a row: a node may be restarted */
	TRAVERSE_CLOCK_EVERY = 4096, /* iterations on mapped memory */
	TRAVERSE_IDLE = 3,	     /* answers in a row that lead nowhere */
	TRAVERSE_LOOK_MS = 20,	     /* between looks for lanes that are lost */
	TRAVERSE_LOOK_POLLS = 128,   /* of a wait, to one look at the clock */
	/* Polls of a wait: so many at once, because a yield takes half as long
	 * as a round trip and the soft NIC itself rests when a peer does not
	 * answer; then with yields, and then with naps. */
	TRAVERSE_IDLE_POLLS = 4000,
	TRAVERSE_IDLE_YIELDS = 2000,
	TRAVERSE_NAP_NS = 50000,
};

#endif
