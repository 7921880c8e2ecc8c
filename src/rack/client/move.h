/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving regions from one memory node to another while programs use them
 * (decision 62): with the right of the tenant that has them, by whoever empties
 * a node. Clients wait while it is copied, and follow.
 */
#ifndef AQ_CLIENT_MOVE_H
#define AQ_CLIENT_MOVE_H

#include "client.h"

enum {
	CLIENT_MOVE_MAX = 4, /* regions that move together */
};

struct client_move {
	const char *from; /* a node's name */
	/* Regions on one node, or pieces of striped ones; all go to one node,
	 * at the same moment for who looks. */
	const char *name[CLIENT_MOVE_MAX];
	unsigned count;
};

/*
 * Moves them to a node that the controller chooses, whose name is then in `to`.
 * -errno with words: they are where they were, or, after -EINPROGRESS, at one
 * of the two nodes, which know it.
 */
int client_move(struct aq_rack *rack, const struct client_move *m,
		char to[CLIENT_NODE_NAME_MAX]) MUST_CHECK;
/* Ends what others have left of moves from that node: regions that it has given
 * away are taken, copies that it has not are deleted. */
int client_move_settle(struct aq_rack *rack, const char *from) MUST_CHECK;

/* ---- move_copy.c --------------------------------------------------------- */

/* Called now and then; other than 0 ends the copying. */
typedef int (*client_move_fn)(void *ctx);

/* Copies a region of the one node to that of the same name at the other, with
 * keys that the nodes give for this move. */
int client_move_copy(struct aq_rack *rack, uint32_t from, uint32_t to,
		     const char *name, const char *move, uint64_t size_bytes,
		     client_move_fn keep, void *ctx) MUST_CHECK;

#endif
