/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a switch. All of it belongs to the switch's thread. */
#ifndef AQ_TOR_PRIV_H
#define AQ_TOR_PRIV_H

#include "base/awake.h"
#include "fdb.h"
#include "tor_end.h"
#include "tor_program.h"
#include "wire/wire_stamps.h"

enum {
	TOR_ETHERTYPE_IP4 = 0x0800,
	TOR_ETHERTYPE_IP6 = 0x86dd,
	TOR_ETHERTYPE_ARP = 0x0806,
};

struct tor_port {
	struct tor *tor;
	uint16_t id;
	bool up;
	bool touched; /* has frames to flush */
	bool takes_hints;
	bool has_claim; /* it leads to the addresses that it claims */
	char name[TOR_PORT_NAME_MAX];
	const struct tor_port_ops *ops;
	void *ctx;
	uint64_t *counters;
	uint64_t own_counters[TOR_PORT_COUNTER_COUNT];
	/* The source that was learned last: most frames have the same. */
	uint64_t src_mac;
	uint32_t src_ip4;
	uint64_t src_ns;
	/* IPv4 addresses, of both ends, of the last RoCE packet that no program
	 * wanted, while t->wants_epoch is the same. */
	uint64_t pass_ips;
	uint64_t pass_epoch;
	/* Of what ends of the switch hear and say here. */
	struct wire_stamps stamps;
};

struct tor_instance {
	struct tor *tor;
	const struct tor_program *program;
	void *state;
	uint8_t index;
	uint64_t *counters;
};
void tor_instance_release(struct tor_instance *self);

/* Where packets of one kind went last: valid until anything in the forwarding
 * table changes, or a while passes. */
struct tor_flow {
	uint64_t key[2];
	struct tor_port *out;
	uint64_t epoch;
	uint64_t until_ns;
};

struct tor {
	struct env *env;
	uint64_t now_ns;
	struct awake awake;
	uint32_t slot_shift;
	uint32_t claims;
	unsigned own_count;
	unsigned address_count; /* of them, the first, that hosts can find */
	uint8_t own_ip[TOR_OWN_MAX][16];
	uint32_t end_count;
	struct tor_end *ends[TOR_END_BUCKETS];
	struct fdb fdb;
	uint64_t epoch; /* of the forwarding table; from 1 */
	/* From 1: what programs want may change by control calls only. */
	uint64_t wants_epoch;
	struct tor_flow flows[TOR_FLOWS];
	struct timer_wheel timers;
	struct tor_port *ports[TOR_PORT_MAX];
	unsigned port_count; /* highest id in use, plus one */
	struct tor_port *touched[TOR_PORT_MAX];
	unsigned touched_count;
	struct tor_instance programs[TOR_PROGRAM_MAX];
	unsigned program_count;
	bool is_watched; /* a program sees packets that are for others */
	bool sees_ends;	 /* or those of ends */
	uint8_t depth;
	uint64_t *counters;
	uint64_t own_counters[TOR_COUNTER_COUNT];
	/* A copy of a received frame that its sender cannot change. */
	uint8_t rx[TOR_FRAME_MAX];
	/* Frames that leave are built here; programs' packets may nest, but
	 * each is sent before the next is built. */
	uint8_t tx[TOR_FRAME_MAX];
};

static inline void count(struct tor *t, enum tor_counter c)
{
	t->counters[c]++;
}

/* The forwarding table leads elsewhere from now on. */
static inline void tor_flows_forget(struct tor *t)
{
	t->epoch++;
}

/* A frame was given to the port's driver. */
static inline void tor_port_sent(struct tor_port *port, size_t len_bytes)
{
	struct tor *t = port->tor;

	port->counters[TOR_P_tx_frames]++;
	port->counters[TOR_P_tx_bytes] += len_bytes;
	if (!port->touched && port->ops->flush) {
		port->touched = true;
		t->touched[t->touched_count++] = port;
	}
}

/* The source and destination addresses of a frame. */
struct addresses {
	const uint8_t *dst_mac;
	const uint8_t *src_mac;
	bool has_ip; /* of the two below; ARP has a source */
	bool has_dst_ip;
	bool roce; /* UDP to the RoCE port; slot is valid */
	uint32_t slot;
	uint8_t src_ip[16];
	uint8_t dst_ip[16];
};

/* forward.c */
void tor_read_addresses(const struct tor *t, const uint8_t *frame,
			size_t len_bytes, struct addresses *a);
void tor_learn(struct tor_port *port, const uint8_t *frame, size_t len_bytes);
/* Sends the frame to `out`, or to the port of its address. */
void tor_forward(struct tor *t, struct tor_port *in, struct tor_port *out,
		 const uint8_t *frame, size_t len_bytes, const void *hint);

/* route.c: a packet like those before it on this route; false: it is not. */
bool tor_route_leave(struct tor *t, struct tor_route *route,
		     const struct wire_pkt *wire);
/* It left in the usual manner. */
void tor_route_learn(struct tor_route *route, const struct wire_pkt *wire);

/* ends.c */
struct tor_end *tor_end_find_in(const struct tor *t, const struct wire_pkt *w);
/* Whether the peer of the end is at this port; NULL: it is not. */
bool tor_end_is_peer_at(struct tor_end *e, const struct tor_port *port);
/* The port goes away. */
void tor_ends_forget_port(struct tor *t, const struct tor_port *port);

static inline unsigned tor_end_bucket(uint32_t qpn)
{
	return (qpn ^ qpn >> 10) & (TOR_END_BUCKETS - 1);
}

/* The end that a packet is for; NULL: no such end. */
static inline struct tor_end *tor_end_find(const struct tor *t,
					   const struct wire_pkt *w)
{
	return UNLIKELY(t->ends[tor_end_bucket(w->dest_qpn)])
		       ? tor_end_find_in(t, w)
		       : NULL;
}

/* pipeline.c */
void tor_run(struct tor *t, struct tor_pkt *pkt);
void tor_run_input(struct tor_port *port, const uint8_t *frame,
		   size_t len_bytes, const void *hint);

#endif
