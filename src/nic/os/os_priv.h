/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a real NIC host. Everything here belongs to the thread that
 * holds base.lock, except the atomic fields, which others may read. The NIC
 * thread holds the lock for one turn at a time and never while it sleeps.
 */
#ifndef AQ_OS_PRIV_H
#define AQ_OS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/rack_socket.h"
#include "base/trust.h"
#include "bell.h"
#include "cable_ring.h"
#include "clock.h"
#include "doze.h"
#include "entropy.h"
#include "grant.h"
#include "os.h"
#include "path_share.h"
#include "reach.h"
#include "unmap.h"

struct cable;
struct direct_map;
struct loop;
struct os_host;
struct pcap;
struct raw_port;
struct udp_port;
struct uplink;

/*
 * A kind of port: the shared memory cable, the loop to the NIC itself, the
 * void. Another kind is one more file with such a table. All calls hold the
 * lock.
 */
struct port_ops {
	/* See env.h; NULL: nothing is lost. */
	uint32_t (*window_bytes)(struct env_path *path);
	/* See env.h; NULL: any will do. */
	uint16_t (*src_port)(struct env_path *path);
	uint8_t *(*tx_begin)(struct env_path *path, size_t max_bytes);
	void (*tx_end)(struct env_path *path, size_t len_bytes); /* not 0 */
	/* See env.h; NULL: tx_begin will do. */
	uint8_t *(*tx_begin_exact)(struct env_path *path, size_t len_bytes);
	/* Hands up to `budget` received frames to host_input. */
	unsigned (*poll)(struct env_path *path, unsigned budget);
	/* See env.h; NULL: from a network. */
	uint32_t (*from)(struct env_path *path);
	/* Whether poll would find something; the second half of BELL-1. */
	bool (*ready)(struct env_path *path);
	/* What changes when poll would find something; false: it would now, or
	 * nobody says so. NULL: nobody does. */
	bool (*doze)(struct env_path *path, struct doze_word *out);
	/* Idle for a while: wake a peer that does not read. May be NULL. */
	void (*nudge)(struct env_path *path, uint64_t now_ns);
	/* Whether the peer polls on this processor (bell.h). May be NULL. */
	bool (*is_at)(struct env_path *path, uint32_t place);
	/* See env.h; NULL: it cannot tell. */
	uint64_t (*turns)(struct env_path *path);
	enum env_peer (*peer)(struct env_path *path, uint64_t since_turns);
	/* NULL: no direct port. */
	const struct env_direct *(*direct_find)(struct env_path *path,
						uint32_t local_qpn,
						uint32_t remote_qpn,
						uint32_t rkey);
	/* The last user closed it. May be NULL. */
	void (*unused)(struct env_path *path);
};

struct env_path {
	const struct port_ops *port;
	struct os_host *host;
	uint32_t users;
	uint64_t domain; /* of the last frame that came by it */
};

struct nic_thread {
	pthread_t thread;
	int kick_fd; /* an eventfd, by which this process wakes it */
	atomic_bool stop;
	/* Drives so far; the NIC thread compares it with what it saw last. */
	uint64_t drive_seq;
	uint64_t drive_seen;
	uint64_t drive_ns; /* time of one of the last drives ... */
	int drive_cpu;
	bool beside;	      /* a peer polled on the same processor */
	uint32_t drives;      /* since the NIC thread went to sleep */
	uint32_t empties;     /* consecutive drives that found nothing */
	uint32_t held_turns;  /* since acknowledgements were released */
	bool sleeping;	      /* in epoll_wait, or about to be */
	bool has_short_slice; /* the NIC thread's own; see slice.h */
	bool taken;	      /* the application polls, and owns the bell */
	bool rung;	      /* a peer rang since the thread went to sleep */
	uint64_t wake_ns;     /* when it wakes by itself */
	/*
	 * Set while the application drives at times but was found not polling
	 * when frames came: it waits on memory, or computes. Then every leave()
	 * rings the NIC thread in; read without the lock.
	 */
	atomic_bool eager;
	uint64_t eager_until_ns;
	uint64_t probation_ns;	   /* driving time until it is trusted again */
	uint64_t driving_since_ns; /* since when it drives without a pause */
	uint64_t drive_seen_ns;
	uint64_t crowded_until_ns; /* yielding costs slices: sleep at once */
	uint64_t crowded_span_ns;
	uint64_t waits_ns;	 /* since when a driver waits in vain, or 0 */
	uint64_t dozes_until_ns; /* the peer lacks a core: drivers doze */
	uint64_t dozes_span_ns;
	uint64_t sockets_ns;	   /* when the sockets are looked at next */
	uint64_t drive_sockets_ns; /* and by a thread that drives */
};

struct os_host {
	struct nic_host base;
	struct env env;
	struct os_config cfg;
	struct os_clock clock;
	struct entropy entropy;
	struct env_addr gid_link; /* fe80::/64 from the MAC */
	struct env_addr gid_ip;	  /* of the address */
	struct trust trust;
	struct rack_sockets sockets; /* where slots and switches are found */
	uint32_t slot;
	struct bell bell;
	int epoll_fd;
	int listen_fd;

	struct env_path *polled[OS_CABLE_MAX + 4];
	unsigned polled_count;
	unsigned polled_first; /* the path that is polled first */
	struct share share;    /* of each turn's frames */
	struct cable *cables;  /* every cable that is not freed */
	bool in_turn;	       /* frames are being moved */
	bool has_woken;	       /* peers, since the turn began, or owes it */
	struct cable *by_slot[NIC_SLOT_COUNT];
	unsigned pending_count; /* accepted, not introduced */
	struct loop *loop;
	struct udp_port *udp; /* NULL: not open */
	bool udp_tried;
	struct raw_port *raw;  /* NULL: not open */
	struct uplink *uplink; /* NULL: no switch */
	atomic_bool has_net;   /* udp or raw is polled */
	struct env_path void_path;
	uint8_t *scratch; /* frames to nowhere are built here */

	struct nic_thread nic_thread;
	struct reach reach;
	struct grant_table grants;
	struct unmap unmap;
	uint32_t handed_count;		/* mappings that peers hold */
	struct direct_map *direct_last; /* what direct_find found last */

	uint8_t *tx_frame; /* between tx_begin and tx_end */
	struct pcap *pcap; /* NULL: no capture */
	struct os_stats *stats;
	struct os_stats own_stats;
	struct log_limit log_limit;
	/* For an owner that counts users: close first calls put, which returns
	 * false if there are other users; closed is called at the end. */
	bool (*put)(unsigned place);
	void (*closed)(unsigned place);
	unsigned place; /* argument of put and closed */
	bool forgotten; /* after a fork, in the child */
};

static inline struct os_host *host_of(struct nic_host *host)
{
	return container_of(host, struct os_host, base);
}

static inline struct os_host *host_of_env(struct env *env)
{
	return container_of(env, struct os_host, env);
}

static inline uint64_t host_now(const struct os_host *h)
{
	return os_clock_ns(&h->clock);
}

/* The node GUID of the NICs at an address. */
uint64_t host_guid(const uint8_t address[4]);

/* The addresses that follow from an IPv4 address. */
void host_gids(const uint8_t address[4], struct env_addr *link,
	       struct env_addr *ip);

/* A received frame on its way into the NIC; `from` as in nic_input. */
void host_input(struct os_host *h, const uint8_t *frame, size_t len_bytes,
		uint32_t from);

/* Opens the UDP port, once; says why if it cannot. */
int host_udp_open(struct os_host *h) MUST_CHECK;

void host_poll_add(struct os_host *h, struct env_path *path);
void host_poll_remove(struct os_host *h, struct env_path *path);
/* Moves up to `budget` frames per path; returns how many. */
unsigned host_poll(struct os_host *h, unsigned budget);
bool host_ready(struct os_host *h);
/* What a thread that dozes waits for; 0: it must not, or cannot. */
unsigned host_doze_words(struct os_host *h,
			 struct doze_word words[DOZE_WORDS_MAX]);
/* Whether frames are held back to leave together with others. */
bool host_tx_pending(const struct os_host *h);
void host_tx_flush(struct os_host *h);
/* Whether datagrams wake the NIC thread. */
void host_arm(struct os_host *h, bool on);
/* Handles a mark from the epoll set; false: not of a socket of frames. */
bool host_event(struct os_host *h, void *mark);
void host_nudge(struct os_host *h, uint64_t now_ns);
/* Tells peers on which processor this host polls; the lock is held. Returns
 * whether a peer polls there, too: only one of us can run. */
bool host_is_beside_peer(struct os_host *h);

extern const struct env_ops host_env_ops;
extern const struct port_ops void_port;

/* The child of a fork forgets the host: nothing shared is touched again. */
void host_forget(struct os_host *h);

/* nic_thread.c */
int nic_thread_start(struct os_host *h) MUST_CHECK;
void nic_thread_stop(struct os_host *h);
/* Wakes the NIC thread from inside this process. */
void nic_thread_kick(struct os_host *h);
void nic_thread_drive(struct nic_host *host);
void nic_thread_leave(struct nic_host *host);
bool nic_thread_doze_driver(struct nic_host *host, uint64_t max_ns);

/* loop.c */
int loop_open(struct os_host *h, struct env_path **out) MUST_CHECK;
void loop_destroy(struct loop *l);

#endif
