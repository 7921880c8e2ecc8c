/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of cm/. */
#ifndef AQ_CM_LIMITS_H
#define AQ_CM_LIMITS_H

enum {
	CM_ID_BITS = 14, /* identifiers of one process */
	CM_ID_MAX = 1 << CM_ID_BITS,
	CM_BACKLOG_MAX = 1024, /* requests that the application has not seen */
	CM_LEASE_BACKLOG = 1024,
	CM_GSI_RECVS = 1024,
	CM_GSI_SENDS = 512,
	CM_SENDS = 8,		  /* times a message is sent before giving up */
	CM_RESPONSE_TIMEOUT = 20, /* 4.096 us * 2^n: told to peers */
	CM_SERVICE_TIMEOUT = 24,  /* patience asked for: 69 s */
	CM_ACK_TIMEOUT = 18,	  /* of connected queue pairs */
	CM_MIN_RNR_TIMER = 12,	  /* 0.64 ms */
	CM_FEW_RNR_TIMER = 0,	  /* 655 ms, where retries are counted */
	CM_RNR_FOREVER = 7,	  /* a count of retries that has no end */
	CM_HOP_LIMIT = 64,
	CM_DEVICE_MAX = 16,
	CM_PROBES = 8, /* unanswered, until a silent peer is given up */
};

#define CM_INTERVAL_MIN_NS 500000000ull	 /* the first repetition */
#define CM_INTERVAL_MAX_NS 4000000000ull /* doubled up to this */
#define CM_ASK_AGAIN_NS	   5000000ull	 /* while no process listens */
#define CM_REFUSE_NS	   400000000ull	 /* since the first lookup */
#define CM_LOST_DELAY_NS   20000000ull	 /* last words may be on the way */

#endif
