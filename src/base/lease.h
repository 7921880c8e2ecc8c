/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of rdma_cm, leased by binding sockets in the rack's runtime directory:
 * exclusive on this machine, and free again when their owner dies. A process
 * that connects to a lease learns which queue pair to talk to; a process that
 * receives a request for the whole machine passes it on over the lease.
 */
#ifndef AQ_LEASE_H
#define AQ_LEASE_H

#include "rack_socket.h"

enum {
	LEASE_MAD_BYTES = 256,
};

/* Addresses are IPv4-mapped or IPv6; all zero, or 0.0.0.0, is any. */
struct lease_port {
	uint16_t ps; /* enum rdma_port_space */
	uint16_t port;
	uint8_t ip[16];
};

enum lease_kind {
	LEASE_HELLO = 1, /* from both ends; then the socket only shows life */
	LEASE_MAD,	 /* a request, received by another process */
};

struct lease_msg {
	uint32_t kind;
	uint8_t gid[16]; /* of the sender's NIC; of the request's sender */
	uint32_t qpn;	 /* of its management queue pair */
	/* LEASE_MAD only. */
	uint8_t local_gid[16]; /* the NIC that received it */
	uint8_t mad[LEASE_MAD_BYTES];
};

bool lease_ip_is_any(const uint8_t ip[16]);

/* Takes the port for this process; with port 0 any free one. No process can
 * connect before it listens. -EADDRINUSE. */
int lease_bind(const struct rack_sockets *r, struct lease_port *port,
	       int *fd) MUST_CHECK;
/* Gives the port back and closes fd. */
void lease_release(const struct rack_sockets *r, const struct lease_port *port,
		   int fd);
/* Connects to the process that listens on this port, at this address or at any.
 * -ECONNREFUSED: none does. */
int lease_connect(const struct rack_sockets *r, const struct lease_port *port,
		  int *fd) MUST_CHECK;

int lease_send(int fd, const struct lease_msg *msg) MUST_CHECK;
/* -EAGAIN: nothing yet. -EPIPE: the other side has closed. -EBADMSG. */
int lease_receive(int fd, struct lease_msg *msg) MUST_CHECK;

#endif
