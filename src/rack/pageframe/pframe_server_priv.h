/* SPDX-License-Identifier: Apache-2.0 */
/* What the page server and its guests share. */
#ifndef AQ_PFRAME_SERVER_PRIV_H
#define AQ_PFRAME_SERVER_PRIV_H

#include "pframe_priv.h"
#include "pframe_server.h"

enum {
	PFRAME_LINES_MAX = 256,	     /* protection domains with guests */
	PFRAME_LINE_DEPTH = 1 << 16, /* completions of all guests of one */
	PFRAME_WR_SEND = 1u
			 << 31, /* in the low half of a wr_id; else a receive */
};

/* All guests of one protection domain, which are those of one tenant. They have
 * a completion queue of their own, so that a flood fills no other queue, and
 * lines are served by turns. */
struct pframe_line {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint32_t guests;
	uint32_t depth;	       /* completions that they can have at a time */
	uint32_t quiet;	       /* looks in a row that found nothing */
	atomic_bool is_looked; /* polled: it has guests, or something is left */
};

struct pframe_slot {
	bool is_load; /* its answer is under way, from a page frame */
	unsigned phase;
};

struct pframe_guest {
	struct pframe_server *server;
	struct pframe_space *space;
	struct pframe_line *line;
	uint32_t id;
	uint32_t depth;
	uint32_t slot_bytes;
	struct ibv_qp *qp;
	uint8_t *buf;
	size_t buf_bytes;
	struct ibv_mr *buf_mr;
	struct ibv_mr *pframes_mr;
	struct pframe_slot *slot;
};

/* ---- pframe_server.c ----------------------------------------------------- */

/* Gives the guest a place, a line and its space; sets error_last. */
int pframe_server_admit(struct pframe_guest *guest) MUST_CHECK;
/* Its requests are ignored from now on. */
void pframe_server_forget(struct pframe_guest *guest);
/* Its queue pair is gone: settles what it had under way, gives up its place. */
void pframe_server_dismiss(struct pframe_guest *guest);

/* ---- pframe_guest.c: under the server's lock ----------------------------- */

void pframe_guest_serve(struct pframe_guest *guest, uint32_t slot,
			uint32_t bytes);
void pframe_guest_answered(struct pframe_guest *guest, uint32_t slot,
			   bool is_ok);
void pframe_guest_settle(struct pframe_guest *guest);

#endif
