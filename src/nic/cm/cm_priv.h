/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of librdmacm: identifiers, channels, devices, and the thread that
 * receives messages. One mutex guards all of it. It is held for short control
 * work only, also during calls of verbs, which never call back.
 */
#ifndef AQ_CM_PRIV_H
#define AQ_CM_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "base/base.h"
#include "base/lease.h"
#include "base/list.h"
#include "base/timer.h"
#include "cm_conn.h"
#include "cm_limits.h"

/* The only symbols of this room that leave the shared library. */
#define CM_EXPORT __attribute__((visibility("default")))

/* ---- where messages go ------------------------------------------------- */

/* A queue pair that speaks management: a NIC and its GSI number. */
struct cm_addr {
	union ibv_gid gid;
	uint32_t qpn; /* 0: not known */
};

bool cm_addr_equal(const struct cm_addr *a, const struct cm_addr *b);

/* cm_addr.c: addresses are IPv4-mapped or IPv6. */
int cm_ip_read(const struct sockaddr *sa, uint8_t ip[16],
	       uint16_t *port) MUST_CHECK;
void cm_ip_write(const uint8_t ip[16], uint16_t port,
		 struct sockaddr_storage *sa);
/* Whether this machine has the address. */
bool cm_ip_is_local(const uint8_t ip[16]);
/* The address from which this machine would send to `dst`. */
int cm_ip_source(const uint8_t dst[16], uint8_t src[16]) MUST_CHECK;

/* ---- cm_thread.c ------------------------------------------------------- */

/* A descriptor that the thread watches; `ready` runs with the mutex held. */
struct cm_watch {
	int fd;
	void (*ready)(struct cm_watch *w);
};

int cm_watch_add(struct cm_watch *w) MUST_CHECK;
void cm_watch_remove(struct cm_watch *w);
void cm_timer_set(struct timer *t, uint64_t deadline_ns);

/* ---- cm_device.c ------------------------------------------------------- */

struct cm_gsi;

struct cm_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid; /* of its IPv4 address */
	uint8_t gid_index;
	struct cm_gsi *gsi; /* NULL until it is needed */
};

/* The devices of this process, opened once. Mutex held. */
int cm_devices_open(void) MUST_CHECK;
/* The device for a local address; any for the wildcard. NULL: none. */
struct cm_device *cm_device_find(const uint8_t ip[16]);
/* The device with exactly this address, or NULL. */
struct cm_device *cm_device_by_gid(const uint8_t gid[16]);

/* The largest MTU (enum ibv_mtu) that the path to an address allows now: it
 * belongs to the path and not to the device. */
uint8_t cm_device_path_mtu(const struct cm_device *dev,
			   const union ibv_gid *dgid);

/* cm_gsi.c */
int cm_gsi_open(struct cm_device *dev) MUST_CHECK;
void cm_gsi_addr(const struct cm_device *dev, struct cm_addr *addr);
/* As on any network the message may get lost. */
void cm_gsi_send(struct cm_device *dev, const struct cm_addr *to,
		 const struct wire_cm_msg *msg);

/* ---- cm_event.c -------------------------------------------------------- */

struct cm_id;

struct cm_channel {
	struct rdma_event_channel pub;
	struct list events;
};

struct cm_event {
	struct rdma_cm_event pub;
	struct list node;    /* of its channel, until the application has it */
	struct cm_id *owner; /* its destruction waits for the acknowledgement */
	uint8_t private_data[WIRE_CM_PRIVATE_MAX];
};

/* NULL without memory: the event is lost and logged. */
struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type,
			      int status);
void cm_event_private(struct cm_event *ev, const uint8_t *data, uint8_t bytes);
void cm_event_post(struct cm_event *ev);
/* Drops the events that the application has not got yet. */
void cm_events_drop(struct cm_id *id);
void cm_events_move(struct cm_id *id, struct cm_channel *to);
/*
 * The end of a call that causes an event, without the mutex: it returns the
 * call's own error or, on a synchronous identifier, waits for the outcome. 0,
 * or -1 and errno. On an asynchronous one another thread may have got the event
 * by now and destroyed the identifier, so `sync` was read before and `id` is
 * not touched.
 */
int cm_complete(struct cm_id *id, bool sync, int err);

/* ---- cm_id.c ----------------------------------------------------------- */

struct cm_sock;

struct cm_id {
	struct rdma_cm_id pub;
	struct cm_conn conn;
	struct timer timer;
	struct cm_device *device;
	struct cm_addr peer;	/* where our messages go */
	struct cm_sock *asked;	/* the lookup of the peer */
	struct timer ask_timer; /* asks again */
	uint64_t refuse_ns;	/* when lookups end; 0: not asked yet */
	struct cm_id *listener; /* until the application has seen this id */
	struct list ids;	/* cm.ids */
	bool sync;		/* the channel is ours */
	bool bound;
	bool listening;
	bool dst_local;
	unsigned pending; /* a listener's requests not yet seen */
	unsigned backlog;
	unsigned delivered; /* events given and acknowledged */
	unsigned acked;
	int lease_fd;
	struct cm_watch lease_watch;
	struct lease_port port; /* of this end */
	uint8_t dst_ip[16];
	uint16_t dst_port;
	uint8_t ack_timeout;
	uint8_t tos;
	uint32_t psn; /* at which our queue pair begins to receive */
	struct ibv_ece local_ece;
	struct ibv_ece remote_ece;
	struct ibv_sa_path_rec path_rec;
	/* rdma_create_ep keeps these for rdma_get_request. */
	struct ibv_pd *ep_pd;
	struct ibv_qp_init_attr *ep_attr;
	uint8_t ep_private_len;
	uint8_t ep_private[WIRE_CM_PRIVATE_MAX];
};

static inline struct cm_id *to_id(struct rdma_cm_id *id)
{
	return container_of(id, struct cm_id, pub);
}

static inline struct cm_channel *to_channel(struct rdma_event_channel *c)
{
	return container_of(c, struct cm_channel, pub);
}

static inline bool cm_id_is_datagram(const struct cm_id *id)
{
	return id->pub.ps == RDMA_PS_UDP || id->pub.ps == RDMA_PS_IPOIB;
}

/* Mutex held. */
struct cm_id *cm_id_new(struct cm_channel *channel, void *context,
			enum rdma_port_space ps);
void cm_id_free(struct cm_id *id);
void cm_id_set_device(struct cm_id *id, struct cm_device *dev);
/* Every id goes through this list; see cm.ids. */
struct cm_id *cm_id_by_number(uint32_t number);

/* ---- cm_route.c: messages in, events out ------------------------------- */

void cm_route_input(struct cm_device *dev, const struct cm_addr *from,
		    const struct wire_cm_msg *msg);
extern const struct cm_conn_ops cm_id_conn_ops;

/* ---- cm_peer.c --------------------------------------------------------- */

/* Finds the process that listens at the id's destination. */
void cm_peer_ask(struct cm_id *id);
void cm_peer_forget(struct cm_id *id);
/* Whether the socket will show the end of that process. */
bool cm_peer_is_watched(const struct cm_addr *peer);
/* A process has connected to the lease of a listener. */
void cm_peer_accept(struct cm_watch *lease);
/* In the child of a fork: the sockets are the parent's. */
void cm_peers_abandon(void);

/* ---- cm_qp.c ----------------------------------------------------------- */

/* The path to the id's peer. */
struct ibv_ah_attr cm_ah_attr(const struct cm_id *id);
/* Moves the id's own queue pair through its states. 0 or -errno. */
int cm_qp_connect(struct cm_id *id) MUST_CHECK;
int cm_qp_error(struct cm_id *id);

/* ---- the one thing that the API has no handle for ---------------------- */

struct cm {
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	bool running;		     /* the thread */
	struct rack_sockets sockets; /* leases of ports */
	int epoll_fd;
	int wake_fd;
	uint64_t wake_ns;  /* when the thread wakes by itself */
	uint64_t probe_ns; /* between probes of idle peers; 0: none */
	struct timer_wheel wheel;
	struct cm_device *devices[CM_DEVICE_MAX];
	unsigned device_count;
	struct cm_id *by_number[CM_ID_MAX];
	uint32_t next_number;
	struct list ids;
	struct list socks; /* cm_peer.c */
};

extern struct cm cm;

void cm_lock(void);
void cm_unlock(void);
/* Everything that an id needs to run: thread, configuration. Mutex held. */
int cm_start(void) MUST_CHECK;
/* Call it after the devices are open. */
void cm_watch_forks(void);

static inline int cm_fail(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}

#endif
