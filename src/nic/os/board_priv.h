/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a board; another kind of link is one more file. */
#ifndef AQ_BOARD_PRIV_H
#define AQ_BOARD_PRIV_H

#include "base/log.h"
#include "base/rack_socket.h"
#include "base/trust.h"
#include "bell.h"
#include "board.h"
#include "entropy.h"
#include "os_limits.h"

struct link_ops {
	unsigned (*poll)(struct os_link *l, unsigned budget);
	/* Whether poll would find something; second half of BELL-1. NULL: its
	 * descriptor tells. */
	bool (*ready)(struct os_link *l);
	bool (*tx)(struct os_link *l, const uint8_t *frame, size_t len_bytes,
		   const void *hint);
	/* A frame is written where it leaves. Both may be NULL. */
	uint8_t *(*tx_begin)(struct os_link *l, size_t len_bytes);
	void (*tx_end)(struct os_link *l, size_t len_bytes);
	void (*flush)(struct os_link *l);		   /* may be NULL */
	void (*nudge)(struct os_link *l, uint64_t now_ns); /* may be NULL */
	/* Its descriptor has something. */
	void (*event)(struct os_link *l);
	/* Between two batches: links may come and go. May be NULL. */
	void (*tend)(struct os_link *l, uint64_t now_ns);
	void (*free)(struct os_link *l);
};

struct os_link {
	const struct link_ops *ops;
	struct os_board *board;
	struct os_link *next;
	void *user;
	int fd;	     /* in the epoll set; -1: another link's */
	bool up;     /* the driver knows it */
	bool hidden; /* the driver never knows it, only the links behind it */
	bool doomed; /* to be taken down between two polls */
	bool takes_hints;
	char name[BOARD_LINK_NAME_MAX];
};

struct os_board {
	struct env env;
	struct os_clock clock;
	struct entropy entropy;
	struct bell bell;
	struct trust trust;
	struct rack_sockets sockets; /* of the rack */
	char name[BOARD_NAME_MAX];
	int epoll_fd;
	int listen_fd;
	const struct os_board_ops *ops;
	void *ctx;
	struct os_link *links;
	unsigned link_count;
	bool any_doomed;
	struct os_board_stats *stats;
	struct os_board_stats own_stats;
	struct log_limit log_limit;
};

static inline uint64_t board_now(const struct os_board *b)
{
	return os_clock_ns(&b->clock);
}

/* Adds a link that is not up yet; l->fd is watched. */
int board_link_add(struct os_board *b, struct os_link *l) MUST_CHECK;
int board_link_up(struct os_link *l) MUST_CHECK;
void board_link_doom(struct os_link *l);

/* board_cable.c: a NIC has connected; the socket becomes the link's. */
int board_cable_accept(struct os_board *b, int sock) MUST_CHECK;
bool board_cable_claims(const struct os_link *l, uint8_t ips[2][16],
			uint32_t *slot);

#endif
