/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated network: ports with a link each, joined by one switch that
 * forwards whole frames by destination IP. Links have latency, bandwidth, a
 * bounded transmit queue, and faults drawn from the seed. Another fabric may
 * take the place of the switch and the links' times: net_fabric.h.
 */
#ifndef AQ_SIM_NET_H
#define AQ_SIM_NET_H

#include <stdio.h>

#include "base/env.h"
#include "sim.h"

struct sim_net;
struct sim_port;

/* Rates in parts per million of the frames that leave a port. */
struct sim_faults {
	uint32_t loss_ppm;
	uint32_t dup_ppm;
	uint32_t reorder_ppm; /* delayed by up to reorder_max_ps */
	uint32_t corrupt_ppm; /* one to three bits flipped */
	uint32_t mark_ppm;    /* congestion marks, where the sender allows it */
	uint64_t reorder_max_ps;
};

struct sim_link {
	uint64_t latency_ps;   /* between port and switch */
	uint64_t bits_per_s;   /* 0: no serialization time */
	uint32_t queue_frames; /* transmit queue; 0: without bound */
	/* Bytes that wait in the switch for the wire to this port, from which
	 * on frames are marked, and lost. 0: never. */
	uint32_t switch_mark_bytes;
	uint32_t switch_queue_bytes;
	struct sim_faults faults;
};

#define SIM_NET_STATS(X)                                           \
	X(sent, "frames sent")                                     \
	X(delivered, "frames delivered")                           \
	X(lost, "frames lost")                                     \
	X(duplicated, "frames duplicated")                         \
	X(reordered, "frames delayed past others")                 \
	X(corrupted, "frames with flipped bits")                   \
	X(marked, "frames with a congestion mark")                 \
	X(cut, "frames that met a port or path that is down")      \
	X(no_route, "frames to no port")                           \
	X(switch_full, "frames lost: the switch's queue was full") \
	X(queue_full, "times a transmit queue was full")

struct sim_net_stats {
#define SIM_NET_STAT_FIELD(name, help) uint64_t name;
	SIM_NET_STATS(SIM_NET_STAT_FIELD)
#undef SIM_NET_STAT_FIELD
};

struct sim_frame {
	struct sim_event ev;
	struct sim_net *net;
	struct sim_port *port;	    /* where it is: source, later destination */
	struct sim_port *from;	    /* the sender's; NULL: another switch */
	struct sim_frame *next;	    /* in a pool */
	void *owner;		    /* for the receiver's use */
	struct sim_frame *all_next; /* the network's */
	uint32_t len_bytes;
	uint32_t room_bytes;
	uint8_t bytes[];
};

/* Called from events. rx takes the frame over; room: a queue that was full
 * is not any more. */
struct sim_port_ops {
	void (*rx)(void *ctx, struct sim_frame *frame);
	void (*room)(void *ctx);
};

int sim_net_create(struct sim *sim, struct sim_net **out) MUST_CHECK;
/* Ports go with it. */
void sim_net_destroy(struct sim_net *net);
struct sim *sim_net_sim(struct sim_net *net);
const struct sim_net_stats *sim_net_stats(const struct sim_net *net);
void sim_net_set_switch_ps(struct sim_net *net, uint64_t switch_ps);
/* From now on urgent frames go before all else that waits for a wire: RDMA, and
 * IPv4 with a code point (RFC 2474). */
void sim_net_set_classes(struct sim_net *net);
bool sim_net_has_classes(const struct sim_net *net);
/* Text, one line per delivered or lost frame. NULL: none. The file stays the
 * caller's. */
void sim_net_set_trace(struct sim_net *net, FILE *text);
/* Delivered frames as a pcap file with nanosecond times. */
int sim_net_set_pcap(struct sim_net *net, FILE *pcap) MUST_CHECK;

/* Programs that register memory where malloc put it have other addresses in
 * each run: leave those of requests out of the trace hash. */
void sim_net_hide_addresses(struct sim_net *net);
/* Messages contain addresses, too: leaves payloads out of the trace hash. */
void sim_net_hide_payload(struct sim_net *net);

/* Sees every frame as its port sends it, before any fault. NULL: none. */
typedef void (*sim_net_tap)(void *ctx, const uint8_t *frame, size_t len_bytes);
void sim_net_set_tap(struct sim_net *net, sim_net_tap tap, void *ctx);
/* The same for frames that a fault strikes, before it does: they are lost,
 * damaged, or come later than others that were sent after them. */
void sim_net_set_fault_tap(struct sim_net *net, sim_net_tap tap, void *ctx);

/*
 * A switch that replaces the one that forwards by address: it gets every frame
 * that reaches it, and sends any frames. The links from it to the ports then
 * have the same faults as those to it. NULL: the usual switch.
 */
typedef void (*sim_net_switch)(void *ctx, struct sim_port *from,
			       const uint8_t *frame, size_t len_bytes);
void sim_net_set_switch(struct sim_net *net, sim_net_switch fn, void *ctx);
void sim_net_emit(struct sim_port *to, const uint8_t *frame, size_t len_bytes);
/* Ports in the order in which they were attached; NULL behind the last. */
struct sim_port *sim_net_port(struct sim_net *net, unsigned index);
/* Its place in that order. */
unsigned sim_port_index(const struct sim_port *port);
const struct env_addr *sim_port_addr(const struct sim_port *port);

int sim_port_attach(struct sim_net *net, const struct env_addr *addr,
		    const struct sim_link *link, const struct sim_port_ops *ops,
		    void *ctx, struct sim_port **out) MUST_CHECK;
struct sim_port *sim_net_find(struct sim_net *net, const uint8_t ip[16]);

/* Frames that it sent and got so far, and their bytes. */
uint64_t sim_port_frames(const struct sim_port *port);
uint64_t sim_port_bytes(const struct sim_port *port);
void sim_port_set_faults(struct sim_port *port, const struct sim_faults *f);
/* A port that is down neither sends nor receives. */
void sim_port_set_down(struct sim_port *port, bool down);
/* Cuts or restores the path between two ports, in both directions. */
void sim_net_set_cut(struct sim_port *a, struct sim_port *b, bool cut);

/* A frame to be filled; NULL when the transmit queue is full. */
struct sim_frame *sim_port_tx_begin(struct sim_port *port, size_t max_bytes);
/* Sends it; it leaves the port at ready_ps at the earliest. */
void sim_port_tx_end(struct sim_port *port, struct sim_frame *frame,
		     size_t len_bytes, uint64_t ready_ps);
bool sim_port_has_room(const struct sim_port *port);
bool sim_frame_is_rdma(const struct sim_frame *frame);
bool sim_frame_is_urgent(const struct sim_frame *frame);
/* Gives back a frame that was received, or one that is not to be sent. */
void sim_frame_free(struct sim_net *net, struct sim_frame *frame);

#endif
