/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programmable top-of-rack switch: frames and time in, frames out. No
 * threads, no sockets: a driver (the process `aquifer switch`, or the
 * simulator) gives it frames in batches and takes those that leave. Forwarding
 * is by address with learning; between input and forwarding stand the programs
 * (tor_program.h), in the order in which they were added.
 *
 * A switch belongs to one thread. Nothing is allocated between tor_begin and
 * tor_end.
 */
#ifndef AQ_TOR_H
#define AQ_TOR_H

#include "base/env.h"
#include "tor_limits.h"

struct json_out;
struct tor;
struct tor_port;

/* What a port counts. */
#define TOR_PORT_COUNTERS(X)                                           \
	X(rx_frames, "frames received")                                \
	X(rx_bytes, "bytes received")                                  \
	X(tx_frames, "frames sent")                                    \
	X(tx_bytes, "bytes sent")                                      \
	X(rx_down, "frames received while the port was down")          \
	X(tx_down, "frames not sent: the port is down")                \
	X(tx_full, "frames not sent: the port had no room")            \
	X(tx_hint, "frames not sent: the port cannot finish offloads") \
	X(rx_roce, "RoCE packets received, ICRC right")                \
	X(rx_damaged, "RoCE packets received that are damaged or unknown")

/* What the switch counts: one counter per reason. */
#define TOR_COUNTERS(X)                                                       \
	X(frames, "frames received by all ports")                             \
	X(forwarded, "frames sent to the port of their address")              \
	X(flooded, "frames sent to all ports: address not known")             \
	X(short_frames, "dropped: shorter than an Ethernet header")           \
	X(same_port, "dropped: the destination is where it came from")        \
	X(no_slot, "dropped: nobody has this slot of a shared address")       \
	X(own_late, "dropped: to the switch itself, and no program takes it") \
	X(forged, "dropped: from another port than its sender is at")         \
	X(loops, "dropped: passed the programs too often")                    \
	X(program_drops, "dropped by a program")                              \
	X(program_frames, "packets made by programs")                         \
	X(rewritten, "packets changed by programs, with a new ICRC")          \
	X(learned, "addresses learned")                                       \
	X(moved, "addresses that moved to another port")                      \
	X(evicted, "addresses forgotten: their place was needed")

enum tor_counter {
#define TOR_COUNTER_ENUM(name, help) TOR_C_##name,
	TOR_COUNTERS(TOR_COUNTER_ENUM)
#undef TOR_COUNTER_ENUM
	TOR_COUNTER_COUNT
};

enum tor_port_counter {
#define TOR_PORT_COUNTER_ENUM(name, help) TOR_P_##name,
	TOR_PORT_COUNTERS(TOR_PORT_COUNTER_ENUM)
#undef TOR_PORT_COUNTER_ENUM
	TOR_PORT_COUNTER_COUNT
};

extern const char *const tor_counter_names[TOR_COUNTER_COUNT];
extern const char *const tor_counter_help[TOR_COUNTER_COUNT];
extern const char *const tor_port_counter_names[TOR_PORT_COUNTER_COUNT];
extern const char *const tor_port_counter_help[TOR_PORT_COUNTER_COUNT];

/* ---- life --------------------------------------------------------------- */

struct tor_config {
	/* Used for the clock, and for randomness where no seed is given. */
	struct env *env;
	uint32_t fdb_entries; /* addresses to learn; 0: TOR_FDB_ENTRIES */
	uint64_t *counters;   /* TOR_COUNTER_COUNT; NULL: own memory */
	/*
	 * Several NICs may share an IP address; the top bits of a queue pair
	 * number then say which is meant: qpn >> slot_shift. 24: none do.
	 */
	uint32_t slot_shift;
};

int tor_create(const struct tor_config *cfg, struct tor **out) MUST_CHECK;
/* Ports and programs go with it. */
void tor_destroy(struct tor *tor);
uint64_t tor_counter(const struct tor *tor, enum tor_counter c);
/*
 * An address of the switch itself, for connections of machines to its programs:
 * ARP and neighbour discovery find it. Before programs are added; -ENOSPC:
 * TOR_OWN_MAX of them.
 */
int tor_address_set(struct tor *tor, const uint8_t ip[16]) MUST_CHECK;

/* ---- ports -------------------------------------------------------------- */

struct tor_port_ops {
	/*
	 * Sends one frame; it is copied before this returns. `hint` is what
	 * came with it, or NULL. False: no room, the frame is lost.
	 */
	bool (*tx)(void *ctx, const uint8_t *frame, size_t len_bytes,
		   const void *hint);
	/*
	 * Room for a frame of exactly this length, which is written there, each
	 * byte once and none read, and then sent by tx_end. NULL: no room, the
	 * frame is lost. Both may be NULL.
	 */
	uint8_t *(*tx_begin)(void *ctx, size_t len_bytes);
	void (*tx_end)(void *ctx, size_t len_bytes);
	/* Called after a batch in which the port got frames. May be NULL. */
	void (*flush)(void *ctx);
};

struct tor_port_config {
	const char *name; /* cut at TOR_PORT_NAME_MAX - 1 */
	const struct tor_port_ops *ops;
	void *ctx;
	/* Understands the hints of other such ports (unfinished checksums,
	 * segmentation); frames with a hint leave by no other. */
	bool takes_hints;
	uint64_t *counters; /* TOR_PORT_COUNTER_COUNT; NULL: own memory */
};

/* -ENOSPC: TOR_PORT_MAX ports. */
int tor_port_add(struct tor *tor, const struct tor_port_config *cfg,
		 struct tor_port **out) MUST_CHECK;
/* Between batches only. Its addresses are forgotten. */
void tor_port_remove(struct tor_port *port);
void tor_port_set_up(struct tor_port *port, bool up);
/*
 * Frames to this address and slot go to this port, whatever was learned;
 * -ENOSPC when the table is full, -EEXIST when another port has it.
 */
int tor_port_claim(struct tor_port *port, const uint8_t ip[16],
		   uint32_t slot) MUST_CHECK;
const char *tor_port_name(const struct tor_port *port);
unsigned tor_port_id(const struct tor_port *port);
uint64_t tor_port_counter(const struct tor_port *port, enum tor_port_counter c);
/* Where it counts. */
uint64_t *tor_port_counters(struct tor_port *port);

/* ---- frames and time ---------------------------------------------------- */

/* A batch: begin, any number of inputs, end. Reads the clock once. */
void tor_begin(struct tor *tor);
/*
 * One frame from a port. Without programs it is not touched and may lie in
 * memory that a peer can write; with programs it is copied first. `hint` is the
 * driver's own.
 */
void tor_input(struct tor_port *port, const uint8_t *frame, size_t len_bytes,
	       const void *hint);
void tor_end(struct tor *tor);

/* Runs what is due; a batch of its own. */
void tor_tick(struct tor *tor);
/* When tor_tick is to be called next; UINT64_MAX: not by itself. */
uint64_t tor_next_deadline_ns(const struct tor *tor);

/* ---- programs ----------------------------------------------------------- */

/* Adds a program at the end of the order. `options` is its own text, may be
 * "". The words of an error are in error_last(). */
int tor_program_add(struct tor *tor, const char *name,
		    const char *options) MUST_CHECK;
/* "NAME" or "NAME:OPTIONS". */
int tor_program_add_text(struct tor *tor, const char *text) MUST_CHECK;
/*
 * A control call: `text` is "PROGRAM reload OPTIONS", which replaces the
 * program's tables between two packets and keeps everything if it fails, or
 * "PROGRAM VERB ..." as the program understands it. -ENOENT: no such program.
 * Its answer goes into the open object of `out`.
 */
int tor_control(struct tor *tor, const char *text,
		struct json_out *out) MUST_CHECK;

/* Members of the open object: counters, ports, programs. */
void tor_report(const struct tor *tor, struct json_out *out);
/* The last of these alone. */
void tor_report_programs(const struct tor *tor, struct json_out *out);
/* An array "programs": tables, bits, stages of each, as a real pipeline would
 * need them. */
void tor_report_resources(const struct tor *tor, struct json_out *out);

#endif
