/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tenants of one memory node: one who works, and one who does its worst.
 * What they do, and the NICs by which they do it: each NIC is what a process
 * of its own would have, with a cable of its own to the node.
 */
#ifndef AQ_BENCH_FAIR_H
#define AQ_BENCH_FAIR_H

#include <infiniband/verbs.h>

#include "base/env.h"
#include "client/link.h"
#include "conduct.h"
#include "os/os.h"
#include "page/page_store.h"
#include "wire/wire.h"

enum {
	FAIR_NICS_MAX = 16,
	FAIR_LINKS_MAX = 8, /* connections of one NIC */
	FAIR_DEPTH_MAX = 64,
	FAIR_WHY_BYTES = 200,
};

/* What a tenant does without pause. */
enum fair_kind {
	FAIR_NOTHING,
	/* Requests, as many as its NIC lets it have under way. */
	FAIR_READ_SMALL,
	FAIR_READ,
	FAIR_WRITE,
	FAIR_ATOMIC,
	/* Pages, by chains of the node's NIC and by its page service. */
	FAIR_CHAIN,
	FAIR_MESSAGE,
	/* One frame again and again, past its NIC, which knows better. */
	FAIR_AGAIN_READ_SMALL, /* a request that was answered before */
	FAIR_AGAIN_READ,
	FAIR_AGAIN_WRITE,
	FAIR_AGAIN_ATOMIC,
	FAIR_UNREADY, /* a message that nobody receives: NAKs */
	FAIR_BAD_KEY, /* is refused, and so ends its queue pair */
	FAIR_DAMAGED, /* a wrong checksum */
	FAIR_KINDS,
};

/* The pages of one NIC, in one of the two ways. */
struct fair_pages {
	struct page_store *store;
	struct page_op op[FAIR_DEPTH_MAX];
	struct page_op *idle[FAIR_DEPTH_MAX];
	unsigned idle_count;
	uint64_t next;
};

/* One NIC of a tenant. */
struct fair_nic {
	struct nic_provider provider;
	struct nic_host *host;
	const struct env_ops *real; /* the env's; in front of it stands ... */
	struct env_ops tapped;	    /* ... what takes a copy of a frame */
	struct env_path *path;
	uint8_t *open_frame;
	bool is_tapped;
	uint8_t frame[WIRE_FRAME_MAX]; /* that copy */
	size_t frame_bytes;

	struct aq_rack *rack;
	struct aq_region *region;
	char name[32];
	/* The one behind the last is for frames past the NIC. */
	struct client_link *link[FAIR_LINKS_MAX + 1];
	struct client_key key[FAIR_LINKS_MAX + 1];
	uint32_t under_way[FAIR_LINKS_MAX + 1];
	unsigned link_count, link_at;
	uint32_t depth;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint64_t next;
	struct fair_pages chain, message;
	bool is_hostile; /* stores pages, too, and sends frames again */
};

/* The tenant is the one of AQUIFER_TOKEN. `name` is of its region. All of it
 * ends with the process. */
int fair_nic_open(struct fair_nic *nic, const char *name, unsigned links,
		  uint32_t depth) MUST_CHECK;
/* Looks once for what has ended, and begins as much again: how many ended, or
 * were sent past the NIC; -errno with words. */
int fair_nic_step(struct fair_nic *nic, enum fair_kind kind) MUST_CHECK;
/* Before the first step: gets what it is to send past the NIC. */
int fair_nic_begin(struct fair_nic *nic, enum fair_kind kind) MUST_CHECK;
/* After the last one: waits until all of it has ended. */
int fair_nic_drain(struct fair_nic *nic, enum fair_kind kind) MUST_CHECK;

/* ---- frames past the NIC (fair_frame.c) -----------------------------------
 */

/* A provider of one NIC, in whose env a tap stands. */
void fair_tap_init(struct fair_nic *nic);
/* The next frame that it sends is copied, once. */
void fair_tap_want(struct fair_nic *nic);
/* Changes the copy into what `kind` sends. */
void fair_frame_spoil(struct fair_nic *nic, enum fair_kind kind);
/* Sends it as often as there is room, a few dozen times at most. */
int fair_frame_send(struct fair_nic *nic);

/* ---- windows (fair_client.c) ----------------------------------------------
 */

/* Who works beside whom. */
struct fair_pair {
	const char *name, *what;
	enum fair_kind work, flood;
};

/* What a round of a pair gave: without the flood, and with it. */
struct fair_round {
	uint64_t worked[2], elapsed_ns[2], flooded;
};

struct fair_plan {
	const struct fair_pair *pair;
	unsigned pairs, rounds, window_ms, nics;
	const char *only; /* of the pairs, or NULL */
	pid_t node;
	const char *token; /* of the hostile tenant */
};

/* Shared with the process that measures. */
struct fair_page {
	uint32_t shield; /* enum shield_kind */
	char why[FAIR_WHY_BYTES];
	struct fair_round round[][CONDUCT_ROUNDS_MAX]; /* of each pair */
};

/* Measures all of it; its process ends afterwards. */
int fair_client(const struct fair_plan *plan, struct fair_page *page);

#endif
