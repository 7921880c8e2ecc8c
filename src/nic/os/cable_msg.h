/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between two processes on the unix socket of a cable, beside the
 * rings. Host byte order: both are on one machine. The first 16 bytes stay as
 * they are in every version, so that versions can refuse each other.
 */
#ifndef AQ_CABLE_MSG_H
#define AQ_CABLE_MSG_H

#include "base/base.h"

enum {
	CABLE_MAGIC = 0x61714361, /* "aCqa" */
	CABLE_MAJOR = 3,
	CABLE_MINOR = 0,
	CABLE_FD_MAX = 2,
};

enum cable_msg_type {
	CABLE_HELLO = 1,   /* + ring, bell page */
	CABLE_WELCOME = 2, /* + bell page */
	CABLE_REFUSE = 3,
	CABLE_MAP_REQ = 4,
	CABLE_MAP_REP = 5, /* + memory, when status is 0 */
	CABLE_RING = 6,	   /* only wakes the receiver (bell.h) */
};

enum cable_hello_flags {
	CABLE_HAS_BARRIER = 1u << 0, /* see bell.h */
};

struct cable_hello {
	uint32_t slot;
	uint32_t ring_bytes;
	uint32_t flags;
	uint8_t ip[4];
	/* To a switch: the addresses that lead to this NIC. */
	uint8_t gids[2][16];
};

/* Instead of an index: no memory comes, it may be reached (reach.h); the
 * generation is the epoch. */
#define CABLE_MAP_REACH UINT32_MAX

/* Asks to map the memory behind rkey for a connection. */
struct cable_map_req {
	uint32_t owner_qpn;
	uint32_t user_qpn;
	uint32_t rkey;
};

struct cable_map_rep {
	uint32_t owner_qpn; /* as asked */
	uint32_t rkey;	    /* as asked */
	int32_t status;	    /* 0 or -errno; the rest only with 0 */
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint32_t word;	     /* index of the word that says it is valid */
	uint32_t generation; /* what that word holds while it is valid */
	uint64_t addr;	     /* of iova, if word is CABLE_MAP_REACH */
};

struct cable_msg {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t type;
	uint32_t reserved;
	union {
		struct cable_hello hello;
		struct cable_map_req map_req;
		struct cable_map_rep map_rep;
		uint8_t bytes[48];
	};
};
STATIC_ASSERT(sizeof(struct cable_msg) == 64, "layout of struct cable_msg");
STATIC_ASSERT(offsetof(struct cable_msg, hello) == 16, "stable beginning");

struct cable_fds {
	int fd[CABLE_FD_MAX];
	unsigned count;
};

void cable_msg_init(struct cable_msg *msg, enum cable_msg_type type);

/* Never blocks: -EAGAIN when the peer does not read. */
int cable_msg_send(int sock, const struct cable_msg *msg, const int *fds,
		   unsigned fd_count) MUST_CHECK;

/* One message; its descriptors belong to the caller. -EAGAIN: none, -EPIPE:
 * the peer is gone, -EBADMSG: not a message, -EPROTONOSUPPORT: of another
 * version (the beginning of *msg is valid). */
int cable_msg_recv(int sock, struct cable_msg *msg,
		   struct cable_fds *fds) MUST_CHECK;
void cable_fds_close(struct cable_fds *fds);

#endif
