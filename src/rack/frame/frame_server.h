/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's processor in the data path: it answers clients' requests for
 * pages, or for pieces of memory that they then use by themselves. This is what
 * chains are measured against.
 */
#ifndef AQ_FRAME_SERVER_H
#define AQ_FRAME_SERVER_H

#include "frame.h"

struct frame_guest; /* one client's connection */
struct frame_server;

enum {
	FRAME_GUESTS_MAX = 8192,
	FRAME_SPACE_GUESTS_MAX = 8, /* of one space */
};

int frame_server_create(struct ibv_context *context,
			struct frame_server **out) MUST_CHECK;
/* It must have no guests any more. */
void frame_server_destroy(struct frame_server *server);
/* Answers what has arrived and returns how many requests that was. One thread
 * calls it; other threads may make the other calls meanwhile. */
unsigned frame_server_step(struct frame_server *server);
/* Sleeps until something arrives, or for that long. */
void frame_server_wait(struct frame_server *server, uint32_t timeout_ms);

/*
 * Makes a queue pair in the space's domain, in the state RESET, that belongs to
 * the guest. When it is connected, frame_guest_arm lets requests in. The space
 * must outlive the guest. -EBUSY: it has chains; -EAGAIN: there is no room.
 */
int frame_guest_create(struct frame_server *server, struct frame_space *space,
		       struct frame_guest **out) MUST_CHECK;
int frame_guest_arm(struct frame_guest *guest) MUST_CHECK;
void frame_guest_destroy(struct frame_guest *guest);
/* Memory that a guest of that space takes. */
uint64_t frame_guest_bytes(const struct frame_space *space);
struct ibv_qp *frame_guest_qp(const struct frame_guest *guest);

#endif
