/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of datagram sockets. Each has a UDP socket, which is its address
 * and carries the first datagrams to each peer, and one UD queue pair, which
 * carries the rest. The service thread reads the UDP socket. All is guarded by
 * the lock of the socket.
 */
#ifndef AQ_RS_DGRAM_PRIV_H
#define AQ_RS_DGRAM_PRIV_H

#include "rs_dgram_wire.h"
#include "rs_priv.h"

enum {
	RS_DEST_SETS = 64,
	RS_DEST_WAYS = 4,
	RS_DGRAM_SLOTS_MIN = 16,
	RS_DGRAM_SLOTS_MAX = 1024,
	RS_DGRAM_PARKED = 64, /* datagrams that came over UDP */
	RS_DGRAM_MAX = 4096,  /* header and data: the largest MTU */
	RS_DGRAM_GRH = 40,
};

/* After this long without a datagram its queue pair may be another one. */
#define RS_DEST_STALE_NS 1000000000ull

/* A peer that we send to. */
struct rs_dest {
	struct rs_name name;
	struct rs_name own; /* as it sees us */
	struct ibv_ah *ah;  /* NULL: the entry is free */
	uint32_t qpn;	    /* 0: not known */
	uint32_t posted;    /* sends that have not completed */
	uint64_t heard_ns;
};

/* A datagram that the application has not read. */
struct rs_arrival {
	uint32_t slot; /* from recv_slots on: parked */
	uint32_t offset;
	uint32_t length;
	struct rs_name from;
};

struct rs_dgram {
	int udp_fd;
	bool connected;
	struct rs_name peer;
	/* The queue pair: made when the first destination is known. */
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* slots: receive, parked, send */
	size_t memory_bytes;
	uint8_t gid_index;
	bool armed;
	uint32_t mtu;
	uint32_t slot_bytes;
	uint32_t recv_slots;
	uint32_t send_slots;
	/* Stacks of free slots, and the ring of arrivals. */
	uint32_t *parked_free;
	uint32_t parked_count;
	uint32_t *send_free;
	uint32_t send_count;
	struct rs_dest **send_dest; /* by slot */
	struct rs_arrival *arrivals;
	uint32_t arrival_head;
	uint32_t arrival_count;
	struct rs_dest dests[RS_DEST_SETS][RS_DEST_WAYS];
	unsigned victim;
};

/* rs_endpoint.c: the queue pair. */
int rs_endpoint_open(struct rsock *rs, const struct rs_name *to) MUST_CHECK;
void rs_endpoint_close(struct rs_dgram *d);
bool rs_endpoint_progress(struct rsock *rs);
/* Places for an arrival. NULL or the slot's bytes. */
uint8_t *rs_endpoint_park(struct rs_dgram *d, uint32_t *slot);
void rs_endpoint_arrive(struct rs_dgram *d, const struct rs_arrival *a);
/* The oldest arrival, which has been read. */
void rs_endpoint_release(struct rsock *rs);
uint8_t *rs_endpoint_slot(const struct rs_dgram *d, uint32_t slot);
/* Header and data are in the send slot on top of the stack. */
int rs_endpoint_post(struct rsock *rs, struct rs_dest *dest,
		     uint32_t bytes) MUST_CHECK;

/* rs_dest.c: finds or makes the entry; opens the queue pair. */
int rs_dest_get(struct rsock *rs, const struct rs_name *name,
		struct rs_dest **dest) MUST_CHECK;
/* The entry if there is one. */
struct rs_dest *rs_dest_find(struct rs_dgram *d, const struct rs_name *name);
void rs_dests_close(struct rs_dgram *d);

#endif
