/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw port: whole Ethernet frames on one interface (AF_PACKET), for root.
 * The kernel gives each process the frames of its own slot only, and shows the
 * IP identification, so every ICRC is checked in full. It exists for interop,
 * and for a switch that is really on the path. All of it belongs to the holder
 * of the host's lock.
 */
#ifndef AQ_RAW_H
#define AQ_RAW_H

#include "watch.h"
#include "wire/wire.h"

enum {
	RAW_HEADROOM = 64,
	RAW_FRAME_MAX = 65536 + RAW_HEADROOM,
	RAW_SOCKET_BYTES = 8 << 20,
	RAW_WINDOW_BYTES = 1 << 20, /* on the way, of one queue pair */
};

#define RAW_RESOLVE_NS 10000000ull /* between lookups of an address */

/* A destination: one address on the interface's link. */
struct raw_path {
	struct env_path path;
	struct raw_path *next;
	uint8_t ip[16];
	uint8_t mac[6];
	bool resolved;
	uint64_t resolve_ns; /* not before */
};

struct raw_port {
	struct env_path path; /* what is polled */
	struct watch watch;
	int fd;
	int sink_fd;  /* keeps the kernel from answering for us */
	int probe_fd; /* makes the kernel find neighbours */
	int ifindex;
	bool ipv4;
	uint8_t mac[6];
	uint32_t mtu_bytes;
	struct raw_path *paths;
	uint8_t *rx;
	uint8_t *tx;
};

int raw_open(struct os_host *h, struct raw_port **out) MUST_CHECK;
void raw_close(struct raw_port *r);
int raw_path_open(struct raw_port *r, const uint8_t ip[16],
		  struct env_path **out) MUST_CHECK;

/* raw_socket.c */
int raw_socket_open(struct os_host *h, struct raw_port *r) MUST_CHECK;

/* raw_neigh.c: the Ethernet address of a neighbour, if the kernel knows it;
 * else asks it to find out. */
bool raw_neigh_find(struct raw_port *r, const uint8_t ip[16], uint8_t mac[6]);

#endif
