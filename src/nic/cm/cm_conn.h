/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side of a connection, or of a service lookup for datagrams: the states of
 * IBA 12.9, sans I/O. Messages, time and the application's requests go in;
 * messages and events come out through struct cm_conn_ops.
 */
#ifndef AQ_CM_CONN_H
#define AQ_CM_CONN_H

#include "base/base.h"
#include "wire/cm_msg.h"

enum cm_state {
	CM_IDLE,
	CM_REQ_SENT,
	CM_REQ_DELAYED, /* the peer asked for patience */
	CM_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD,
	CM_TIMEWAIT, /* ended; late packets may be on the way */
	CM_SIDR_SENT,
	CM_SIDR_RCVD,
	CM_SIDR_DONE,
	CM_CLOSED,
};

enum cm_happening {
	CM_RESPONSE,	/* REP: the application may establish or reject */
	CM_CONNECTED,	/* RTU, or SIDR REP */
	CM_REFUSED,	/* status: the reason of REJ */
	CM_UNREACHABLE, /* status: -errno, or the status of SIDR REP */
	CM_DISCONNECTED,
	CM_RESTED, /* its time-wait is over */
};

struct cm_conn;

struct cm_conn_ops {
	void (*send)(struct cm_conn *c, const struct wire_cm_msg *msg);
	/* `msg` is the message that caused it; NULL: a timer did. */
	void (*happened)(struct cm_conn *c, enum cm_happening what, int status,
			 const struct wire_cm_msg *msg);
	/* For an established connection: whether the peer has not answered the
	 * question of the last call. Asks again. */
	bool (*is_silent)(struct cm_conn *c);
	/* The time at which cm_conn_timeout is due; UINT64_MAX: never. */
	void (*set_timer)(struct cm_conn *c, uint64_t deadline_ns);
};

/* What one side of a connection says about its queue pair. */
struct cm_side {
	uint32_t qpn;
	uint32_t qkey;
	uint32_t psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t rnr_retry_count;
	bool flow_control;
	bool srq;
};

struct cm_conn {
	const struct cm_conn_ops *ops;
	enum cm_state state;
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t tid;
	struct wire_cm_msg req;	 /* the request of this connection */
	struct wire_cm_msg kept; /* what is sent until it is answered */
	struct cm_side local;
	struct cm_side remote;
	unsigned sends_left;
	uint64_t interval_ns;
	uint64_t probe_ns; /* between probes of an idle peer; 0: none */
	unsigned silent;   /* probes in a row without an answer */
};

void cm_conn_init(struct cm_conn *c, const struct cm_conn_ops *ops,
		  uint32_t local_id);

/* Sends REQ or SIDR REQ, as `req` says; its numbers are filled in. */
int cm_conn_connect(struct cm_conn *c, const struct wire_cm_msg *req,
		    uint64_t now_ns) MUST_CHECK;
/* The passive side: a request arrived for a new connection. */
void cm_conn_take(struct cm_conn *c, const struct wire_cm_msg *req);
/* Answers a request. `rep` is REP or SIDR REP; its numbers are filled in. */
int cm_conn_accept(struct cm_conn *c, const struct wire_cm_msg *rep,
		   uint64_t now_ns) MUST_CHECK;
/* After CM_RESPONSE: sends RTU. */
int cm_conn_establish(struct cm_conn *c, uint64_t now_ns) MUST_CHECK;
int cm_conn_reject(struct cm_conn *c, uint16_t reason, const void *data,
		   uint8_t len_bytes);
/* Sends DREQ, or DREP if the peer was first. */
int cm_conn_disconnect(struct cm_conn *c, uint64_t now_ns) MUST_CHECK;
/* Data came before the RTU did. */
int cm_conn_notify(struct cm_conn *c, uint64_t now_ns) MUST_CHECK;
/* The application gives the connection up: ends it once, with the message that
 * its state calls for. */
void cm_conn_close(struct cm_conn *c);

/* A message whose numbers name this connection, or a repeated request. */
void cm_conn_input(struct cm_conn *c, const struct wire_cm_msg *msg,
		   uint64_t now_ns);
void cm_conn_timeout(struct cm_conn *c, uint64_t now_ns);
/* Sends the message that waits for an answer again, before its timer is due. */
void cm_conn_resend(struct cm_conn *c);
/* The process at the other end is gone. */
void cm_conn_lost(struct cm_conn *c, uint64_t now_ns);

/* The answer to a message that belongs to no connection; false: none is due. */
bool cm_stray_answer(const struct wire_cm_msg *msg, struct wire_cm_msg *out);

#endif
