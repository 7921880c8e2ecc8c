/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of connections through a switch, without NICs: a client that has
 * operations under way on each, and a server that executes what reaches it.
 * What a program of the switch can do is the number of operations per second of
 * its process's own time, which other load does not change.
 */
#ifndef AQ_BENCH_SWITCH_ENDS_H
#define AQ_BENCH_SWITCH_ENDS_H

#include "plug.h"
#include "switch_bench.h"
#include "wire/wire.h"

enum {
	SWITCH_CONNS = 16,
	SWITCH_SLOT_SHIFT = 14, /* of a queue pair number */
	/* Of the two ends, by role, and of each subject. */
	SWITCH_SLOT_CLIENT = 111,
	SWITCH_SLOT_SERVER = 121,
	/* Numbers of their queue pairs below the slot's. */
	SWITCH_FIRST_QPN = 16,
	SWITCH_RKEY = 4711,
	SWITCH_SAY_BYTES = 256,
	/* Each subject has addresses of its own; these are their last bytes. */
	SWITCH_IP_CLIENT = 1,
	SWITCH_IP_SERVER,
	SWITCH_IP_OWN, /* the switch's */
};

struct switch_conn {
	uint32_t next_psn;   /* to be sent */
	uint32_t answer_psn; /* that is waited for */
	uint32_t under_way;
};

struct switch_ends;

struct switch_ends_ops {
	size_t bytes;	/* of the state, which begins with the ends */
	uint32_t depth; /* operations under way on a connection */
	/* Tells the switch, if it has a program. */
	int (*declare)(struct side *s);
	/* At both sides, before anything is sent. */
	void (*begin)(struct switch_ends *e);
	/* At the server: executes a request, and answers as a NIC would. */
	void (*execute)(struct switch_ends *e, const struct wire_pkt *w);
	/* Begins one on connection i. False: no room, nothing was sent. */
	bool (*ask)(struct switch_ends *e, unsigned i);
	/* The answer on connection i. -EPROTO: it is none. */
	int (*take)(struct switch_ends *e, unsigned i,
		    const struct wire_pkt *w);
};

struct switch_ends {
	const struct switch_param *param;
	const struct switch_ends_ops *ops;
	struct plug *plug;
	struct switch_conn conn[SWITCH_CONNS];
};

void switch_ends_address(const struct switch_param *p, unsigned last,
			 uint8_t ip[16]);
/* The last byte of an address, for words. */
unsigned switch_ends_ip(const struct switch_param *p, unsigned last);
uint32_t switch_ends_qpn(const struct switch_param *p, unsigned slot,
			 uint32_t low);
struct wire_pkt switch_ends_packet(const struct switch_param *p, unsigned from,
				   unsigned to, uint8_t opcode);
/* Sends it; false: no room. */
bool switch_ends_send(struct switch_ends *e, const struct wire_pkt *w)
	__attribute__((warn_unused_result));
int switch_ends_say(struct side *s, const char *line)
	__attribute__((warn_unused_result));

/* What a subject's operations are made of. */
int switch_ends_setup(struct side *s, const struct switch_ends_ops *ops)
	__attribute__((warn_unused_result));
int switch_ends_serve(struct side *s) __attribute__((warn_unused_result));
int switch_ends_measure(struct side *s, uint64_t window_ns,
			struct side_result *out)
	__attribute__((warn_unused_result));
void switch_ends_teardown(struct side *s);

#endif
