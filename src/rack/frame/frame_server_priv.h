/* SPDX-License-Identifier: Apache-2.0 */
/* What the page server and its guests share. */
#ifndef AQ_FRAME_SERVER_PRIV_H
#define AQ_FRAME_SERVER_PRIV_H

#include "frame_priv.h"
#include "frame_server.h"

enum {
	FRAME_LINES_MAX = 256,	    /* protection domains with guests */
	FRAME_LINE_DEPTH = 1 << 16, /* completions of all guests of one */
	FRAME_WR_SEND =
		1u << 31, /* in the low half of a wr_id; else a receive */
};

/* All guests of one protection domain, which are those of one tenant. They have
 * a completion queue of their own, so that a flood fills no other queue, and
 * lines are served by turns. */
struct frame_line {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint32_t guests;
	uint32_t depth;	       /* completions that they can have at a time */
	uint32_t quiet;	       /* looks in a row that found nothing */
	atomic_bool is_looked; /* polled: it has guests, or something is left */
};

struct frame_slot {
	bool is_load; /* its answer is under way, from a frame */
	unsigned phase;
};

struct frame_guest {
	struct frame_server *server;
	struct frame_space *space;
	struct frame_line *line;
	uint32_t id;
	uint32_t depth;
	uint32_t slot_bytes;
	struct ibv_qp *qp;
	uint8_t *buf;
	size_t buf_bytes;
	struct ibv_mr *buf_mr;
	struct ibv_mr *frames_mr;
	struct frame_slot *slot;
};

/* ---- frame_server.c ------------------------------------------------------ */

/* Gives the guest a place, a line and its space; sets error_last. */
int frame_server_admit(struct frame_guest *guest) MUST_CHECK;
/* Its requests are ignored from now on. */
void frame_server_forget(struct frame_guest *guest);
/* Its queue pair is gone: settles what it had under way, gives up its place. */
void frame_server_dismiss(struct frame_guest *guest);

/* ---- frame_guest.c: under the server's lock ------------------------------ */

void frame_guest_serve(struct frame_guest *guest, uint32_t slot,
		       uint32_t bytes);
void frame_guest_answered(struct frame_guest *guest, uint32_t slot, bool is_ok);
void frame_guest_settle(struct frame_guest *guest);

#endif
