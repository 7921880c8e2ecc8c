/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants: memory made to be shared through the direct port, one memfd each,
 * whole pages, which exist from the start unless the grant is sparse. This is
 * the owner's side: it makes grants, hands mappings to peers that may have
 * them, and takes them back.
 *
 * There are two ways to take a mapping back. When a key ends (deregistered,
 * invalidated), the owner flips the word of its mapping in the shared page of
 * each cable; a peer looks at the word before and after each operation. Freeing
 * a grant truncates its memfd, so that not even a peer that ignores the word
 * reaches the pages: it gets SIGBUS.
 *
 * Trust: inside a writable grant its peers are trusted. They hold a descriptor
 * with which they could also truncate it, and then the owner's next access
 * faults. Read-only grants are handed out by a read-only descriptor.
 */
#ifndef AQ_GRANT_H
#define AQ_GRANT_H

#include "core/nic_host.h"

struct cable;
struct cable_msg;
struct os_host;

struct grant {
	uint8_t *addr;
	size_t len_bytes; /* whole pages */
	int fd;
	int peer_fd; /* what peers get: fd, or its read-only twin */
	bool read_only;
	bool was_handed; /* a peer had its descriptor */
};

/* Sorted by address. */
struct grant_table {
	struct grant *grants;
	unsigned count;
	unsigned capacity;
};

/* A mapping that was given to the peer of a cable. */
struct grant_handed {
	uint32_t rkey;
	uint32_t generation; /* odd while valid */
	uint8_t *addr;	     /* of the grant */
	bool used;
};

int grant_alloc(struct nic_host *host, size_t len_bytes, unsigned flags,
		void **addr);
/* -EINVAL: not a grant. */
int grant_free(struct nic_host *host, void *addr);
int grant_used(struct nic_host *host, void *addr, uint64_t *used_bytes);
int grant_private(struct nic_host *host, void *addr);
/* Is this memory in a grant? Takes the lock. */
bool grant_has(struct nic_host *host, const void *addr);
void grant_table_release(struct os_host *h);

/* Answers a peer's CABLE_MAP_REQ. */
int grant_request(struct cable *c, const struct cable_msg *msg) MUST_CHECK;
/* env direct_revoke: this key is gone. */
void grant_revoke(struct os_host *h, uint32_t rkey);
void grant_handed_release(struct cable *c);

#endif
