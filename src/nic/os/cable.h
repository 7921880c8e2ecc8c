/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cable: two frame rings in a memfd shared by two processes, and the unix
 * socket over which it was set up. The socket also carries requests for direct
 * mappings, and closes when the peer dies.
 */
#ifndef AQ_CABLE_H
#define AQ_CABLE_H

#include "bell.h"
#include "cable_msg.h"
#include "cable_ring.h"
#include "direct.h"
#include "os_priv.h"

struct ucred;

enum cable_state {
	CABLE_PENDING, /* accepted, its introduction did not come yet */
	CABLE_WAITING, /* connected; frames are kept, no answer yet */
	CABLE_UP,
	CABLE_DOWN, /* lives on until its last user closes it */
};

enum {
	CABLE_PAGE = 4096,
	CABLE_WORDS_BYTES = OS_DIRECT_WORDS * 4,
	/* Ring positions, then the words of the connector and the acceptor,
	 * then the ring from and the ring to the connector. */
	CABLE_WORDS_AT = CABLE_PAGE,
	CABLE_RINGS_AT = CABLE_PAGE + 2 * CABLE_WORDS_BYTES,
};

enum {
	CABLE_SMALL_BYTES = 256, /* a frame of at most this size is copied */
};

struct cable {
	struct env_path path;
	struct cable *next;
	enum cable_state state;
	int sock;
	uint32_t slot;	   /* of the peer; 0: not known, or not trusted */
	pid_t pid;	   /* of the peer */
	uid_t uid;	   /* of the peer */
	uint64_t since_ns; /* when it was accepted */
	bool connector;	   /* this side connected */
	bool doomed;	   /* the NIC thread is to take it down */
	bool small_frame;  /* the frame between tx_begin and tx_end is small */
	uint8_t *shared;
	size_t shared_bytes;
	struct ring_tx tx;
	struct ring_rx rx;
	struct bell_peer peer;
	bool owes_rouse;    /* at the end of this turn ... */
	uint64_t rouse_pos; /* ... for the record there */
	/* Words that say which mappings are valid: ours, and the peer's. */
	_Atomic uint32_t *words_own;
	const _Atomic uint32_t *words_peer;
	struct grant_handed *handed; /* OS_DIRECT_WORDS, or NULL */
	struct direct_table direct;
	struct ring_nudge nudge;
	bool has_reach;	     /* the peer was given memory to reach */
	bool is_unreachable; /* the kernel does not let us */
};

static inline struct cable *cable_of(struct env_path *path)
{
	return container_of(path, struct cable, path);
}

/* The cable to a slot of this host, made if there is none. */
int cable_open(struct os_host *h, uint32_t slot, struct cable **out) MUST_CHECK;
/* A cable over a socket that was just connected and becomes the cable's, also
 * when this fails. Slot 0: the peer is a switch. */
int cable_connect(struct os_host *h, int sock, uint32_t slot,
		  struct cable **out) MUST_CHECK;
/* See path_peer in env.h. With has_read the peer is known to have read what was
 * sent to it. */
enum env_peer cable_peer(const struct cable *c, uint64_t since_turns,
			 bool has_read);
/* Accepts all pending connections; the caller holds the lock. */
void cable_accept_all(struct os_host *h);
/* The socket has a message, or was closed: then the cable is to be reaped. */
void cable_event(struct cable *c);
/* Ends the cables whose peer has closed, or whose rings or messages were found
 * impossible, and tells the NIC. Only the NIC thread calls it. */
void cable_reap(struct os_host *h);
/* At the end of a turn in which somebody was woken. */
void cable_settle(struct os_host *h);
/* At the end of the host, or in a forked child; the NIC is not told. */
void cable_free(struct cable *c);

/* cable_hello.c: the two sides of an introduction. */
static inline size_t cable_shared_bytes(uint32_t ring_bytes)
{
	return (size_t)CABLE_RINGS_AT + 2 * (size_t)ring_bytes;
}
/* -EBADMSG: a NIC would not send this, or not with such memory. */
int cable_hello_check(const struct cable_hello *hello,
		      const struct cable_fds *fds) MUST_CHECK;
int cable_hello_send(struct cable *c) MUST_CHECK;
int cable_hello_receive(struct cable *c, const struct cable_msg *msg,
			struct cable_fds *fds) MUST_CHECK;
int cable_welcome_receive(struct cable *c, const struct cable_msg *msg,
			  struct cable_fds *fds) MUST_CHECK;
/* Finds out which process is at the other end; -EACCES: it is not trusted. */
int cable_check_peer(int sock, const struct trust *trust,
		     struct ucred *cred) MUST_CHECK;
/* A message of another version: says so to the peer and to the user. */
void cable_refuse_version(struct cable *c, const struct cable_msg *msg);

#endif
