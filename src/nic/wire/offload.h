/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings between an application and an offload engine: one piece of the
 * application's memory, registered with its NIC, that the engine READs and
 * WRITEs. Both sides see the same bytes, so this is all they share.
 *
 *	preamble   layout header, geometry, green word, red block, state word
 *	status     one byte per request, 0 unless it failed
 *	meta       one struct offload_meta per request
 *	wdata      bytes to write, as they come, aligned to 8
 *	rdata      room for the bytes of reads, aligned to 8
 *
 * Who writes what:
 *	application	header, geometry, green, meta, wdata; it also clears a
 *			status that it has seen
 *	engine		red, state, status (only to fail a request), rdata
 *
 * Invariants. Positions and sequences count from 0 and 1 on; 32 bits of them
 * are stored, and no two that are compared are 2^31 apart.
 *  - Requests [head, tail) are under way, at most `entries`. Their metadata and
 *    write data do not change, so that any engine can begin again at head.
 *  - The green word is stored with release after what it announces.
 *  - The red block is written by one WRITE whose last word is `done`; what that
 *    word announces (read data, status) was written by earlier WRITEs of the
 *    same queue pair.
 *  - Data of one request never crosses the end of its ring.
 */
#ifndef AQ_WIRE_OFFLOAD_H
#define AQ_WIRE_OFFLOAD_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/layout.h"

enum {
	OFFLOAD_MAJOR = 1,
	OFFLOAD_MINOR = 0,
	OFFLOAD_ENTRIES_MIN = 16,
	OFFLOAD_ENTRIES_MAX = 65536,
	OFFLOAD_DATA_MIN = 4096,
	OFFLOAD_DATA_MAX = 256 << 20,
	OFFLOAD_DATA_ALIGN = 8,
	OFFLOAD_REGIONS_MAX = 64,
	OFFLOAD_NODES_MAX = 15, /* memory nodes of one application thread */
};

#define OFFLOAD_MAGIC "AQOFFLD1"

enum offload_rw {
	OFFLOAD_NONE = 0, /* never valid, so that zeros are not a request */
	OFFLOAD_READ = 1,
	OFFLOAD_WRITE = 2,
};

/* Indexes of what is counted by kind. */
enum {
	OFFLOAD_RD,
	OFFLOAD_WR,
	OFFLOAD_KINDS,
};

/* One request. Offsets into rings are bytes from the ring's start. */
struct offload_meta {
	uint16_t rw_type; /* enum offload_rw */
	uint16_t region;
	uint32_t len_bytes;
	uint64_t req_addr;  /* READ: in the region; WRITE: in wdata */
	uint64_t resp_addr; /* READ: in rdata; WRITE: in the region */
};

STATIC_ASSERT(sizeof(struct offload_meta) == 24, "request metadata");
STATIC_ASSERT(offsetof(struct offload_meta, len_bytes) == 4, "len_bytes");
STATIC_ASSERT(offsetof(struct offload_meta, req_addr) == 8, "req_addr");
STATIC_ASSERT(offsetof(struct offload_meta, resp_addr) == 16, "resp_addr");

/* What the application chose; the rest of the layout follows from it. */
struct offload_geometry {
	le32 entries;
	le32 reserved;
	le64 wdata_bytes;
	le64 rdata_bytes;
	uint8_t pad[40];
};

STATIC_ASSERT(sizeof(struct offload_geometry) == 64, "geometry");

/*
 * How far the writes at one memory node have come: all up to and including
 * `seq` are done; of the next one, `skip` packets were done by the engine's
 * predecessors; then the engine went on at packet number `psn` with packets of
 * mtu_bytes. Together with the packet number that the node expected next when
 * it ended the engine's queue pair, this says exactly what was executed.
 */
struct offload_progress {
	uint32_t seq;
	uint32_t skip;
	uint32_t psn; /* 24 bits, and log2 of the MTU in the upper 8 */
	uint32_t epoch;
};

STATIC_ASSERT(sizeof(struct offload_progress) == 16, "progress");

/* Sequences of the last completed read and write, in one atomic word. */
struct offload_done {
	uint32_t reads;
	uint32_t writes;
};

/*
 * The engine's bookkeeping. Nodes are counted from the end, node[MAX - 1] is
 * number 0, so that one WRITE with few nodes is short and still ends with
 * `done`. `head` requests are complete, head_reads of them reads.
 */
struct offload_red {
	struct offload_progress node[OFFLOAD_NODES_MAX];
	uint64_t head;
	uint64_t head_reads;
	struct offload_done done;
};

STATIC_ASSERT(sizeof(struct offload_red) == 264, "red block");
STATIC_ASSERT(offsetof(struct offload_red, head) == 240, "head");
STATIC_ASSERT(offsetof(struct offload_red, done) == 256, "done comes last");

/* The application's bookkeeping: requests and bytes of write data issued, in
 * one atomic word. */
struct offload_green {
	uint32_t tail;
	uint32_t wdata_tail;
};

STATIC_ASSERT(sizeof(struct offload_green) == 8, "green word");

/* Why the engine has stopped serving: err is a positive errno, 0 while it
 * serves. */
struct offload_state {
	uint32_t epoch;
	uint32_t err;
};

STATIC_ASSERT(sizeof(struct offload_state) == 8, "state word");

/* Everything before the arrays; one READ shows all of it to an engine that
 * begins. Lines that different sides write are apart. */
struct offload_preamble {
	struct layout_header header;
	struct offload_geometry geometry;
	struct offload_green green CACHE_ALIGNED;
	struct offload_state state CACHE_ALIGNED;
	uint8_t pad[56 - 8];
	struct offload_red red;
};

STATIC_ASSERT(offsetof(struct offload_preamble, green) == 128, "green");
STATIC_ASSERT(offsetof(struct offload_preamble, state) == 192, "state");
STATIC_ASSERT(offsetof(struct offload_preamble, red) == 248, "red");
STATIC_ASSERT(offsetof(struct offload_preamble, red.done) == 504, "done");
STATIC_ASSERT(sizeof(struct offload_preamble) == 512, "preamble");

/* The 64-bit count whose low half is `low`, nearest at or above `base`. */
static inline uint64_t offload_extend(uint64_t base, uint32_t low)
{
	return base + (uint32_t)(low - (uint32_t)base);
}

#endif
