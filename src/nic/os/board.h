/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board of a switch process: links that carry frames for a process that is
 * not a NIC. NICs of this host plug their cables in by the switch's name; raw
 * links are interfaces, UDP links are hosts that send frames in VXLAN packets.
 * One thread owns a board and everything on it.
 */
#ifndef AQ_BOARD_H
#define AQ_BOARD_H

#include "base/env.h"
#include "clock.h"

enum {
	BOARD_NAME_MAX = 16, /* of a switch, with the NUL */
	BOARD_LINK_NAME_MAX = 32,
	BOARD_LINK_MAX = 1024,
};

struct os_board;
struct os_link;

struct os_board_ops {
	/* A link carries frames from now on; link_up may refuse it. link_down:
	 * it no longer does, and is gone when the call returns. */
	int (*link_up)(void *ctx, struct os_link *link);
	void (*link_down)(void *ctx, struct os_link *link);
	/* A frame; valid until this returns. `hint` is understood by
	 * os_link_tx of links that take hints. */
	void (*input)(void *ctx, struct os_link *link, const uint8_t *frame,
		      size_t len_bytes, const void *hint);
	/* A descriptor of board_watch has something. */
	void (*event)(void *ctx, int fd);
};

struct os_board_config {
	const char *rack;
	const char *name; /* NICs find it by this */
	const struct os_board_ops *ops;
	void *ctx;
};

#define OS_BOARD_STATS(X)                                             \
	X(cables, "NICs that plugged in")                             \
	X(hangups, "NICs that went away")                             \
	X(refused, "NICs refused: other user, version or malformed")  \
	X(refused_slot, "NICs refused: not the slot they have")       \
	X(silent, "cables closed: no introduction came in time")      \
	X(broken_rings, "cables closed: impossible ring contents")    \
	X(sleeps, "times the switch went to sleep")                   \
	X(wakes_sent, "sleeping NICs woken")                          \
	X(raw_send_errors, "frames that an interface refused")        \
	X(split, "frames that were several packets")                  \
	X(udp_hosts, "hosts that sent a first VXLAN packet")          \
	X(udp_silent, "hosts that were silent too long")              \
	X(udp_refused, "VXLAN packets refused: malformed or no room") \
	X(udp_send_errors, "VXLAN packets that could not be sent")

struct os_board_stats {
#define OS_BOARD_STAT_FIELD(name, help) uint64_t name;
	OS_BOARD_STATS(OS_BOARD_STAT_FIELD)
#undef OS_BOARD_STAT_FIELD
};

/* Takes the switch's name in the rack: -EADDRINUSE when it is taken. */
int os_board_open(const struct os_board_config *cfg,
		  struct os_board **out) MUST_CHECK;
void os_board_close(struct os_board *b);
struct env *os_board_env(struct os_board *b); /* clock and randomness */
/* Counts in `stats` instead; call it before anything is counted. */
void os_board_set_stats(struct os_board *b, struct os_board_stats *stats);

/* An interface of this machine, whole and promiscuous; needs CAP_NET_RAW. */
int os_board_add_raw(struct os_board *b, const char *interface) MUST_CHECK;

/*
 * A UDP socket, "ADDRESS[:PORT][/VNI]", where hosts send whole frames in VXLAN
 * packets (RFC 7348); port 4789 and VNI 1 if nothing is said. Each host that
 * sends is a link until it has been silent for long. Needs no privilege.
 */
int os_board_add_udp(struct os_board *b, const char *text) MUST_CHECK;

/* Moves up to `budget` frames per link; returns how many. Links come and go in
 * the calls below only. */
unsigned os_board_poll(struct os_board *b, unsigned budget);
/* Looks at sockets: NICs that come and go, watched descriptors. */
void os_board_events(struct os_board *b);
/* Wakes NICs that did not read for a while. */
void os_board_nudge(struct os_board *b);
/* Sleeps until something comes, a watched descriptor is readable, or
 * deadline_ns. */
void os_board_sleep(struct os_board *b, uint64_t deadline_ns);
/* The descriptor stays the caller's. */
int os_board_watch(struct os_board *b, int fd) MUST_CHECK;
void os_board_unwatch(struct os_board *b, int fd);

/* ---- links -------------------------------------------------------------- */

const char *os_link_name(const struct os_link *l);
bool os_link_takes_hints(const struct os_link *l);
/* Which addresses and slot lead to a NIC; false: not a NIC's cable. */
bool os_link_claims(const struct os_link *l, uint8_t ips[2][16],
		    uint32_t *slot);
/* For the driver. */
void os_link_set_user(struct os_link *l, void *user);
void *os_link_user(const struct os_link *l);
void *os_link_driver(const struct os_link *l); /* ctx of the board */

/* Copies the frame. False: no room. */
bool os_link_tx(struct os_link *l, const uint8_t *frame, size_t len_bytes,
		const void *hint);
/* Room for a frame, which is written there and then sent; NULL: no room. Only
 * of links that have such room. */
bool os_link_has_room(const struct os_link *l);
uint8_t *os_link_tx_begin(struct os_link *l, size_t len_bytes);
void os_link_tx_end(struct os_link *l, size_t len_bytes);
void os_link_flush(struct os_link *l);

#endif
