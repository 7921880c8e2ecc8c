/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offload engine as a process: HTTP for applications that attach, and then
 * either the NIC and a loop around the engine of offload/, or calls to a switch
 * whose program cowbird moves the data.
 */
#ifndef AQ_ENGINED_H
#define AQ_ENGINED_H

#include "base/base.h"
#include "daemon/daemon.h"

struct ctl_reply;
struct ctl_request;
struct eng;

enum {
	ENG_THREAD_MAX = 32,
};

/* What d->self of a struct daemon points to. 0: the default. */
struct eng_options {
	uint32_t batch;
	uint32_t flush_us;
	uint32_t probe_max_us;
	uint64_t memory_bytes;
	uint32_t sessions;	 /* application threads at most */
	uint32_t threads;	 /* of ours, that share them */
	uint32_t gather_off;	 /* 1: each small read is a READ of its own */
	const char *switch_name; /* whose program is the engine; or NULL */
};

/* An engine until a signal; see daemon/daemon.h. */
extern const struct daemon_kind eng_daemon;

/* ---- its parts ---------------------------------------------------------- */

/* Opens the NIC. `token` is what callers must have. */
int eng_create(const struct daemon *d, const char *token,
	       struct eng **out) MUST_CHECK;
/* No request may be under way any more. */
void eng_destroy(struct eng *eng);
/* A ctl_handle_fn; ctx is the engine. Any thread. */
void eng_handle(void *ctx, const struct ctl_request *request,
		struct ctl_reply *reply);

#endif
