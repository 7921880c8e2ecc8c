/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP port: native RoCEv2 between machines through a kernel socket, which
 * is bound to the NIC's address and port 4791. All processes of a host share
 * that address; the kernel gives a datagram to any of them, and a process that
 * gets one for another slot passes it on over a cable.
 *
 * Everything here belongs to the holder of the host's lock.
 */
#ifndef AQ_UDP_H
#define AQ_UDP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "os_priv.h"
#include "watch.h"
#include "wire/wire.h"

enum {
	UDP_TX_FRAMES = 64, /* collected before they must leave */
	UDP_TX_DEFER = 32,  /* this many leave although more may come */
	UDP_TX_BYTES = UDP_TX_FRAMES * 4352,
	/* Frames leave once they have this many bytes: the peer takes them in
	 * while more are built, and the kernel finds them in the cache. */
	UDP_TX_EAGER = 32 << 10,
	UDP_TX_MSGS = 16,
	UDP_SEGS_MAX = 64, /* of one GSO send, older kernels take no more */
	UDP_GSO_BYTES = 65000,
	UDP_RX_BYTES = 65536,	    /* the largest datagram, also of GRO */
	UDP_HEADROOM = 64,	    /* for the headers in front of it */
	UDP_WINDOW_MAX = 2 << 20,   /* of one queue pair, bytes */
	UDP_SOCKET_BYTES = 8 << 20, /* asked for; the system may cap it */
	UDP_LONE_MAX = 256,	    /* lone packets, then GRO is turned off */
	UDP_LANES_MAX = 128,	    /* sockets to send from */
	UDP_LANES_PER_PEER = 4,	    /* where there may be several paths */
	UDP_FLOWS = 64,		    /* whose identifications are followed */
	UDP_STEER_MAX = 64,	    /* processes that the kernel is told of */
	/* The identifications of a GSO send are below this, and those of
	 * packets after a loss, or late ones, are at most this far from the
	 * expected one: they are not suspicious. */
	UDP_ID_NEAR = UDP_SEGS_MAX,
};

#define UDP_REFUSED_NS 10000000ull    /* until a free slot is asked again */
#define UDP_ROOM_NS    10000000000ull /* how long a path's MTU is believed */

union udp_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* A socket to send from, see udp_lane.c. */
struct udp_lane {
	int fd;		  /* -1: none, the port's own socket is used */
	uint16_t port;	  /* of the source */
	uint16_t next_id; /* the identification of the next send */
	bool connected;	  /* only to its path's destination */
	bool id_known;	  /* next_id is true */
};

/* A destination: one process at one address, by one of the lanes to it. */
struct udp_path {
	struct env_path path;
	struct udp_path *next;
	uint8_t ip[16];
	uint32_t slot;
	uint32_t number;	/* of the lane */
	bool no_gso;		/* the kernel refused a batch for this path */
	uint32_t room;		/* for a datagram's payload, in one IP packet */
	uint64_t room_until_ns; /* then the kernel is asked again */
	union udp_addr to;
	struct udp_lane lane;
};

/* A frame that was built and not sent yet. */
struct udp_frame {
	struct udp_path *to; /* NULL: closed meanwhile */
	uint32_t at;	     /* of the frame in the arena */
	uint16_t len;	     /* of the datagram's payload */
	uint16_t id;	     /* the identification that its ICRC is for */
	uint8_t tos;
	uint8_t ttl; /* or hop limit */
};

/* No union with struct cmsghdr, whose size is not fixed. */
struct udp_control {
	_Alignas(struct cmsghdr) uint8_t bytes[CMSG_SPACE(sizeof(int)) * 4];
};

struct udp_tx {
	uint8_t *arena;
	size_t used;
	unsigned count;
	unsigned done; /* frames that were sent */
	unsigned news; /* earlier packets in a row */
	bool gso;      /* the kernel takes UDP_SEGMENT */
	struct udp_frame frames[UDP_TX_FRAMES];
	struct mmsghdr msgs[UDP_TX_MSGS];
	unsigned msg_frames[UDP_TX_MSGS];
	struct iovec iov[UDP_TX_FRAMES];
	struct udp_control control[UDP_TX_MSGS];
};

/* How the packets of a source port are numbered: the first identification of a
 * message is `step` after that of the message before, 0 or 1. */
struct udp_flow {
	uint8_t ip[16];
	uint16_t port;
	uint16_t last_id;
	uint16_t step;
	bool used;
};

struct udp_rx {
	uint8_t *bytes;
	size_t len;    /* of the message that is being handed up; 0: none */
	size_t offset; /* within it */
	uint32_t segment;
	uint16_t next_id;      /* that the next segment should have */
	struct udp_flow *flow; /* of the message */
	bool streaming;	       /* the last poll got something */
	bool gro;	       /* the kernel may put several packets into one */
	unsigned lone;	       /* messages of one packet in a row */
	union udp_addr from;
	struct udp_control control;
};

/* Which socket of the port is whose, see udp_steer.c. */
struct udp_steer {
	int fd;		/* -1: no processes are being asked */
	bool prepared;	/* the kernel was told about hails */
	unsigned asked; /* places asked so far */
	unsigned count; /* processes known */
	uint16_t slot[UDP_STEER_MAX];
	uint8_t place[UDP_STEER_MAX];
	unsigned forwards; /* packets passed on since the last time */
	uint64_t nonce;
	uint64_t until_ns; /* answers are waited for */
	uint64_t again_ns; /* not before */
	uint64_t rest_ns;
};

struct udp_port {
	struct env_path path; /* what is polled; nothing is sent over it */
	int fd;
	struct watch watch; /* a datagram wakes the NIC thread */
	bool ipv4;
	uint32_t scope_id; /* of a link-local address */
	unsigned lanes_per_peer;
	unsigned lane_count;
	uint32_t mtu_bytes;    /* of the interface */
	uint32_t window_bytes; /* a queue pair's share of a receive buffer */
	bool has_marks;	       /* a switch on the path may set ECN */
	struct udp_path *paths;
	struct udp_tx tx;
	struct udp_rx rx;
	struct wire_outer outer; /* of received frames: our half is filled in */
	struct rng rng;
	uint64_t refused_until_ns[NIC_SLOT_COUNT];
	struct wire_id_table ids;
	struct udp_flow flows[UDP_FLOWS];
	struct udp_steer steer;
	uint64_t hail_since_ns;
	unsigned hail_count;
};

static inline struct udp_port *udp_of(struct env_path *path)
{
	return container_of(path, struct udp_port, path);
}

/* udp.c: the port and its paths. */
int udp_open(struct os_host *h, struct udp_port **out) MUST_CHECK;
void udp_close(struct udp_port *u);
/* A path to the queue pair at an address; void where the family is another. */
int udp_path_open(struct udp_port *u, const uint8_t ip[16], uint32_t qpn,
		  struct env_path **out) MUST_CHECK;
/* Asks the kernel how long the path's datagrams may be. */
void udp_path_learn(struct udp_port *u, struct udp_path *p);

/* udp_socket.c */
int udp_socket_open(struct os_host *h, struct udp_port *u) MUST_CHECK;
/* What sockets that send need: no fragments, marks allowed, a large buffer. */
int udp_socket_set_sending(struct udp_port *u, int fd) MUST_CHECK;
void udp_socket_set_gro(struct udp_port *u, bool on);
/* Whether datagrams too long for the path leave in fragments, or not at all. */
int udp_socket_set_pieces(const struct udp_port *u, int fd, bool on) MUST_CHECK;
/* The MTU of the path to an address as the kernel knows it; 0: unknown. */
uint32_t udp_socket_mtu(const union udp_addr *to);
void udp_addr_set(union udp_addr *a, const uint8_t ip[16], uint16_t port);
socklen_t udp_addr_len(const union udp_addr *a);
/* The largest payload of a packet that an MTU leaves room for, at least 256. */
uint32_t udp_payload_of_mtu(uint32_t mtu_bytes);

/* udp_hail.c: whether the datagram was a hail; it is answered in place. */
bool udp_hail(struct udp_port *u, uint8_t *payload, size_t len);

/* udp_steer.c: a packet for another process came here. */
void udp_steer_forwarded(struct udp_port *u, uint64_t now_ns);
/* Now and then, while answers are waited for. */
void udp_steer_tick(struct udp_port *u);
void udp_steer_stop(struct udp_port *u);

/* udp_lane.c: never fails; without a lane the port's own socket sends. `hash`
 * says where to look for a free source port. */
void udp_lane_open(struct udp_port *u, struct udp_lane *lane,
		   const union udp_addr *to, uint32_t hash);
void udp_lane_close(struct udp_port *u, struct udp_lane *lane);
/* After a send that failed: finds out which identification comes next. */
void udp_lane_learn(struct udp_port *u, struct udp_lane *lane);

/* udp_tx.c */
uint8_t *udp_tx_begin(struct env_path *path, size_t max_bytes);
void udp_tx_end(struct env_path *path, size_t len_bytes);
void udp_tx_flush(struct udp_port *u);
void udp_tx_forget(struct udp_port *u, const struct udp_path *path);

/* udp_gsi.c: datagrams to queue pair 1. The slot that one is for: */
uint32_t udp_gsi_slot(const struct udp_port *u, const uint8_t *payload,
		      size_t len);
/* Whether the frame was a request for a process of this machine that listens,
 * which has it now. */
bool udp_gsi_hand_in(struct udp_port *u, const uint8_t *frame,
		     size_t frame_bytes);

/* udp_rx.c */
void udp_rx_init(struct udp_port *u);
unsigned udp_rx_poll(struct env_path *path, unsigned budget);
bool udp_rx_ready(struct env_path *path);

#endif
