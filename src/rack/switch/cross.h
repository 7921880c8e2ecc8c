/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `walk`: walks that leave one memory node go on at the next one
 * without coming back to their client in between. It keeps nothing of a walk:
 * what the last answer must look like travels with it (the origin), and who
 * loses a packet has it repeated by the client.
 *
 * Memory nodes declare themselves and the pieces of regions that they have. A
 * space is such a region, by its number in answers. Whether two pieces are of
 * one region is never decided by that number, which tenants can make collide:
 * nodes say whose the region is and what it is called, and a number that
 * belongs to one is refused to others. Answers are carried on only if they come
 * from where a piece of that space is.
 */
#ifndef AQ_TOR_CROSS_H
#define AQ_TOR_CROSS_H

#include "base/siphash.h"
#include "tor_program.h"

enum {
	CROSS_NODES = 64,
	CROSS_PIECES = 64, /* of a space */
	CROSS_SPACES = 1024,
	CROSS_SPACES_MAX = 16384,
	CROSS_NAME = 33,      /* of a node, with the NUL */
	CROSS_OF = 96,	      /* tenant and region */
	CROSS_TOKEN = 33,     /* which tenant of that name */
	CROSS_QPN = 0x800001, /* of the switch's own end */
	/* How long after pieces of a region went, or came anew, its walks are
	 * left to their clients: longer than packets live in a rack. A walk
	 * that began in a region must not go on in the next one of its name. */
	CROSS_SETTLE_MS = 100,
};

#define CROSS_COUNTERS(X)                                                   \
	X(carried)     /* answers of a node that went on to the next */     \
	X(onward)      /* further changes of node, on the same way */       \
	X(answered)    /* walks that came back to their client */           \
	X(passed)      /* left to the client: not known where it goes on */ \
	X(forged_on)   /* dropped: said to be carried on, not by us */      \
	X(forged_back) /* dropped: not the answer of a node to us */

enum cross_counter {
#define CROSS_ENUM(name) CROSS_C_##name,
	CROSS_COUNTERS(CROSS_ENUM)
#undef CROSS_ENUM
	CROSS_COUNTER_COUNT
};

struct cross_node {
	bool used;
	char name[CROSS_NAME];
	uint8_t ip[16];
	uint8_t own_ip[16]; /* of ours, towards it */
	uint32_t qpn;	    /* one of its queue pairs, for its slot */
	uint32_t mtu_bytes; /* it takes no larger payload */
};

struct cross_piece {
	const struct cross_node *node; /* NULL: not declared */
	uint32_t qpn;		       /* that takes walks of its tenant */
	uint32_t qkey;
	uint32_t rkey;
};

struct cross_space {
	bool used;
	uint32_t number;
	uint32_t count;	     /* pieces; stripe k is of piece k mod count */
	uint32_t shift;	     /* of a stripe's bytes */
	uint64_t settled_ns; /* before that nothing is carried on */
	char of[CROSS_OF];
	char token[CROSS_TOKEN];
	struct cross_piece *piece;
};

struct cross {
	struct tor_instance *self;
	struct tor *tor;
	uint64_t *c;
	struct siphash_key key; /* of the codes of this run */
	uint32_t space_count;
	struct cross_space *spaces;
	uint64_t settled_ns; /* of the pieces that went last */
	uint32_t by_number_mask;
	uint32_t *by_number; /* place of a space plus 1; 0: free */
	struct cross_node nodes[CROSS_NODES];
	uint8_t payload[WIRE_MTU_MAX];
};

extern const struct tor_program tor_walk;

/* cross_ctl.c */
int cross_parse(const char *options, uint32_t *spaces) MUST_CHECK;
int cross_control(void *state, const char *text, struct json_out *out);
struct cross_space *cross_space_find(const struct cross *c, uint32_t number);

#endif
