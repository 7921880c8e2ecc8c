/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote: one client's connection to a structure in far memory, which is a
 * region and perhaps another one for its locks, on one memory node. The maker
 * of a remote keeps it valid until the client is destroyed or has asked for
 * another.
 */
#ifndef AQ_KIT_REMOTE_H
#define AQ_KIT_REMOTE_H

#include <aquifer/aquifer.h>

#include "base/base.h"
#include "client/link.h"
#include "slot.h"

/* A walk that a structure wants executed. */
struct kit_walk {
	unsigned which;
	uint64_t start; /* offset */
	/* Its first bytes are sent; there is room for all of it, and the rest
	 * is zero at the node. */
	void *pad;
	size_t pad_bytes, send_bytes;
	uint64_t until_ns;
	/* What came back, there or elsewhere, until the next walk; and how
	 * often the node was asked. */
	void *back;
	uint32_t trips;
};

struct kit_remote {
	struct client_link *link;
	uint64_t addr; /* of the structure's first byte */
	uint64_t size_bytes;
	uint64_t lock_addr;
	uint32_t rkey;
	uint32_t lock_rkey;
	/* The same structure through a key that may be mapped, for READs that
	 * need no order; 0: none. */
	uint64_t look_addr;
	uint32_t look_rkey;
	bool wants_look;	      /* asks for look_addr and its key */
	char conn[KIT_SLOT_NAME_MAX]; /* the connection's name at the node */
	/* Ends another client's connection: when it returns 0, no request of
	 * that client will be executed any more. */
	int (*fence)(void *ctx, const char *conn);
	/* Whether a connection still exists: 1, 0, or -errno. */
	int (*is_alive)(void *ctx, const char *conn);
	/* Makes a new connection for a client whose own is broken. */
	int (*renew)(void *ctx, struct kit_remote *remote);
	void (*close)(void *ctx, struct kit_remote *remote);
	/* Has the memory node execute one of the structure's walks, made for
	 * this geometry; 0: it came to its end. NULL: there are no walks. */
	int (*walk)(void *ctx, const void *geometry, struct kit_walk *walk);
	void *ctx;
};

enum {
	/* A structure's region has a page more than the structure, so that a
	 * key to the structure is a window, which cannot be mapped and ends
	 * with its connection. Fencing relies on that. */
	KIT_SPARE_BYTES = 4096,
	KIT_REGION_BYTES = AQ_REGION_NAME_MAX + 1,
	/* The names of a structure's regions are up to 12 longer. */
	KIT_NAME_MAX = AQ_REGION_NAME_MAX - 12,
};

/* Whether a structure may have that name; `what` is "an index". */
int kit_name_check(const char *what, const char *name) MUST_CHECK;

/* Makes a region. */
int kit_region_make(struct aq_rack *rack, const char *region, uint64_t bytes,
		    const struct aq_region_options *o) MUST_CHECK;
/* Makes a region for locks on that node, a part of the structure, with these
 * flags, in device memory, or in host memory if there is none and may_use_host
 * is true. */
int kit_locks_make(struct aq_rack *rack, const char *node, const char *locks,
		   const char *part_of, uint64_t bytes, uint32_t flags,
		   bool may_use_host, bool *on_device) MUST_CHECK;
/* Connects to regions of a rack and fills in link, keys and name. `locks` is ""
 * where there is no such region; send_depth as in client_link_options. */
int kit_remote_connect(struct kit_remote *remote, struct aq_rack *rack,
		       const char *region, const char *locks,
		       uint32_t send_depth) MUST_CHECK;
/* The remote may be connected again. */
void kit_remote_disconnect(struct kit_remote *remote);

#endif
