/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the sockets over RDMA.
 *
 * A socket's number is that of a descriptor which exists only to reserve the
 * number. Any thread may call for any socket: the table counts the threads
 * inside, and each socket has one mutex, held for copies and posts and let go
 * of while a thread sleeps. Connections are made by one thread of the process,
 * "aq-rsocket", which handles the events of rdma_cm; data is moved by the
 * callers alone.
 *
 * Order of locks: accept_mutex, a socket's lock, then those of rdma_cm and
 * verbs. The table's is taken alone.
 */
#ifndef AQ_RS_PRIV_H
#define AQ_RS_PRIV_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/list.h"
#include "base/log.h"
#include "rs_flow.h"
#include "rs_limits.h"

/* The only symbols of this room that leave the shared library. */
#define RS_EXPORT __attribute__((visibility("default")))

#define RS_FOREVER UINT64_MAX

static inline int rs_fail(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}

/* ---- the socket ---------------------------------------------------------- */

enum rs_state {
	RS_NEW, /* perhaps bound */
	RS_LISTENING,
	RS_CONNECTING, /* or accepting: not yet the application's */
	RS_CONNECTED,
	RS_FAILED, /* err says why */
};

struct rs_options {
	uint32_t sndbuf;
	uint32_t rcvbuf;
	uint32_t sq_size;
	uint32_t rq_size;
	uint32_t inline_size;
	uint32_t iomap_count;	  /* buffers that the peer may map */
	uint64_t send_timeout_ns; /* RS_FOREVER: none */
	uint64_t recv_timeout_ns;
	struct linger linger;
	int nodelay, keepalive, keepidle, oobinline, reuseaddr, v6only, maxseg;
};

/* What a connected stream has, made once. */
struct rs_stream {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint8_t *memory; /* one mapping: ring, tables, send ring */
	size_t memory_bytes;
	struct ibv_mr *shared_mr; /* the peer writes here: ring and tables */
	struct ibv_mr *send_mr;
	uint8_t *rx_ring;
	uint8_t *iomaps; /* written by the peer; iomap_count entries */
	uint8_t *tx_ring;
	struct rs_rx rx;
	struct rs_tx tx;
	struct rs_hello peer;
	uint32_t remote_slot; /* of the peer's table, to be written next */
	uint32_t posted;      /* sends that have not completed */
	bool armed;	      /* a completion makes the channel readable */
};

struct rs_dgram;

struct rsock {
	int fd;
	unsigned refs; /* the table's lock */
	int domain, type;
	pthread_mutex_t lock; /* guards what follows */
	enum rs_state state;
	bool closed; /* the number is gone */
	bool nonblocking;
	bool bound;
	bool rd_shut; /* by the application */
	bool wr_shut;
	bool said_bye;	/* the peer was told that nothing more comes */
	bool peer_done; /* the peer sends no more */
	bool peer_gone; /* the peer receives no more */
	int err;	/* why the connection failed */
	int so_error;	/* the same, until SO_ERROR was read */
	struct rs_options opt;
	struct rdma_cm_id *id;
	struct rs_stream s;
	struct rs_dgram *dgram; /* of SOCK_DGRAM */
	unsigned acceptable;	/* of a listener: entries of `accepted` */
	struct list sleepers;
	struct list local_maps; /* rs_iomap.c */
	/* accept_mutex */
	struct rsock *listener; /* whose list we are on */
	struct list accept_node;
	struct list accepting; /* of a listener: connections being made */
	struct list accepted;  /* connections that wait for raccept */
	struct list deferred;  /* requests beyond the backlog */
	unsigned accept_count; /* on both lists of connections */
	unsigned deferred_count;
	unsigned backlog;
	struct log_limit refused;
};

extern pthread_mutex_t rs_accept_mutex;

/* ---- table.c ------------------------------------------------------------- */

/* A new socket with one reference and a number, not in the table yet. */
struct rsock *rs_new(int domain, int type, const struct rs_options *opt);
/* Makes the number known. */
int rs_publish(struct rsock *rs) MUST_CHECK;
/* The socket, locked and counted, or NULL and errno. */
struct rsock *rs_get(int fd);
/* The same without the lock. */
struct rsock *rs_find(int fd);
/* Unlocks and gives the reference back. */
void rs_leave(struct rsock *rs);
void rs_put(struct rsock *rs);
/* Takes the number away; the reference of the table is the caller's. */
struct rsock *rs_withdraw(int fd);
void rs_each(void (*visit)(struct rsock *rs));
void rs_watch_forks(void);
/* True for a thread that works for this library: sockets that it asks libc for
 * must never be rsockets, even if a preloaded library sends the call here. */
bool rs_thread_is_inside(void);
extern _Thread_local unsigned rs_depth;

/* ---- rs_wait.c ----------------------------------------------------------- */

struct rs_sleeper {
	struct list node;
	int fd; /* readable when the thread shall look again */
};

uint64_t rs_deadline(uint64_t timeout_ns);
/* This thread's descriptor; -1 and errno. */
int rs_sleeper_fd(void);
void rs_sleeper_drain(int fd);
void rs_sleepers_abandon(void);
/* Lock held: wakes the threads that sleep for this socket. */
void rs_kick(struct rsock *rs);
/*
 * Called with the lock held, which it drops while it sleeps. Moves data until
 * `ready` is true and returns 0; else -ETIMEDOUT, -EINTR, or -EBADF when the
 * socket was closed.
 */
int rs_wait(struct rsock *rs, bool (*ready)(struct rsock *rs),
	    uint64_t deadline_ns) MUST_CHECK;
/* What `flags` and the socket's mode say about waiting. */
bool rs_may_wait(const struct rsock *rs, int flags);

/* ---- rs_service.c -------------------------------------------------------- */

/* The channel of all identifiers; starts the thread. NULL and errno. */
struct rdma_event_channel *rs_service_channel(void);
void rs_service_abandon(void);
/* Whenever `fd` is readable, rs_dgram_udp is called for that socket. */
int rs_service_watch(int fd, int socket) MUST_CHECK;

/* ---- rs_stream.c: the data path. Lock held ------------------------------- */

int rs_stream_open(struct rsock *rs) MUST_CHECK;
void rs_stream_close(struct rsock *rs);
/* Fills the receive queue. */
int rs_stream_post_first(struct rsock *rs) MUST_CHECK;
void rs_stream_hello(const struct rsock *rs, uint8_t out[RS_HELLO_BYTES]);
/* The peer's hello has come. */
void rs_stream_start(struct rsock *rs, const struct rs_hello *peer);
/* Takes completions; true if anything happened. Never sleeps. */
bool rs_stream_progress(struct rsock *rs);
/* Tells the peer what it may use: credits, and room in the ring. */
void rs_stream_tell(struct rsock *rs);
/* Makes the channel readable at the next completion. */
void rs_stream_arm(struct rsock *rs);
int rs_stream_post_data(struct rsock *rs, const struct rs_sge *to,
			uint32_t bytes, bool inlined, const void *data,
			bool plain) MUST_CHECK;
int rs_stream_post_ctrl(struct rsock *rs, enum rs_ctrl ctrl) MUST_CHECK;
int rs_stream_post_entry(struct rsock *rs, enum rs_op op, uint32_t value,
			 const uint8_t *entry, uint32_t bytes,
			 uint64_t addr) MUST_CHECK;
void rs_stream_fail(struct rsock *rs, int err);

bool rs_can_recv(struct rsock *rs);
bool rs_can_send(struct rsock *rs);
bool rs_sends_done(struct rsock *rs);
bool rs_is_settled(struct rsock *rs);

/* Both kinds of sockets. */
bool rs_progress(struct rsock *rs);
void rs_arm(struct rsock *rs);
/* The descriptor to sleep on, or -1. */
int rs_wait_fd(const struct rsock *rs);

/* ---- rs_connect.c, rs_accept.c: events, in the service thread ------------ */

/* Returns a socket whose reference is to be given back after the
 * acknowledgement, or NULL. The event's socket is found under rs_accept_mutex
 * and stays until the event is acknowledged. */
struct rsock *rs_connect_event(const struct rdma_cm_event *event);
/* Owns the event from here on. */
void rs_accept_request(struct rsock *listener, struct rdma_cm_event *event);
void rs_accept_end(struct rsock *listener);
bool rs_accept_ready(struct rsock *rs);

/* ---- rs_close.c, rs_option.c, rs_iomap.c --------------------------------- */

/* Tells the peer that nothing more comes, and waits until it knows. */
int rs_disconnect(struct rsock *rs, uint64_t deadline_ns);
void rs_options_default(struct rs_options *opt);
void rs_iomaps_close(struct rsock *rs);
short rs_events(struct rsock *rs);

/* ---- rs_dgram.c. Lock held ----------------------------------------------- */

int rs_dgram_open(struct rsock *rs) MUST_CHECK;
void rs_dgram_close(struct rsock *rs);
void rs_dgram_abandon(struct rsock *rs);
int rs_dgram_has_device(void) MUST_CHECK;
/* The UDP socket is readable. */
void rs_dgram_udp(struct rsock *rs);
bool rs_dgram_progress(struct rsock *rs);
void rs_dgram_arm(struct rsock *rs);
int rs_dgram_fd(const struct rsock *rs);
short rs_dgram_events(struct rsock *rs);
/* These are the calls of the same names: -1 and errno. */
int rs_dgram_bind(struct rsock *rs, const struct sockaddr *addr,
		  socklen_t addrlen);
int rs_dgram_connect(struct rsock *rs, const struct sockaddr *addr,
		     socklen_t addrlen);
int rs_dgram_name(struct rsock *rs, struct sockaddr *addr, socklen_t *len);
int rs_dgram_peer(struct rsock *rs, struct sockaddr *addr, socklen_t *len);
ssize_t rs_dgram_send(struct rsock *rs, const struct iovec *iov, size_t count,
		      int flags, const struct sockaddr *to, socklen_t to_len);
ssize_t rs_dgram_recv(struct rsock *rs, const struct iovec *iov, size_t count,
		      int flags, struct sockaddr *from, socklen_t *from_len);

/* ---- rs_send.c, rs_recv.c ------------------------------------------------ */

ssize_t rs_stream_send(struct rsock *rs, const struct iovec *iov, size_t count,
		       int flags);
ssize_t rs_stream_recv(struct rsock *rs, const struct iovec *iov, size_t count,
		       int flags);

#endif
