/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's processor in the data path: it answers clients' requests for
 * pages, or for pieces of memory that they then use by themselves. This is what
 * chains are measured against.
 */
#ifndef AQ_PFRAME_SERVER_H
#define AQ_PFRAME_SERVER_H

#include "pframe.h"

struct pframe_guest; /* one client's connection */
struct pframe_server;

enum {
	PFRAME_GUESTS_MAX = 8192,
	PFRAME_SPACE_GUESTS_MAX = 8, /* of one space */
};

int pframe_server_create(struct ibv_context *context,
			 struct pframe_server **out) MUST_CHECK;
/* It must have no guests any more. */
void pframe_server_destroy(struct pframe_server *server);
/* Answers what has arrived and returns how many requests that was. One thread
 * calls it; other threads may make the other calls meanwhile. */
unsigned pframe_server_step(struct pframe_server *server);
/* Sleeps until something arrives, or for that long. */
void pframe_server_wait(struct pframe_server *server, uint32_t timeout_ms);

/*
 * Makes a queue pair in the space's domain, in the state RESET, that belongs to
 * the guest. When it is connected, pframe_guest_arm lets requests in. The space
 * must outlive the guest. -EBUSY: it has chains; -EAGAIN: there is no room.
 */
int pframe_guest_create(struct pframe_server *server,
			struct pframe_space *space,
			struct pframe_guest **out) MUST_CHECK;
int pframe_guest_arm(struct pframe_guest *guest) MUST_CHECK;
void pframe_guest_destroy(struct pframe_guest *guest);
/* Memory that a guest of that space takes. */
uint64_t pframe_guest_bytes(const struct pframe_space *space);
struct ibv_qp *pframe_guest_qp(const struct pframe_guest *guest);

#endif
