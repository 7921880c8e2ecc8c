/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offload engine as a process: HTTP for applications that attach, the NIC,
 * and a loop around the engine of offload/.
 */
#ifndef AQ_ENGINED_H
#define AQ_ENGINED_H

#include "base/base.h"

struct ctl_reply;
struct ctl_request;
struct eng;

struct eng_options {
	const char *name;
	const char *rack;
	const char *listen;
	const char *tls_cert;
	const char *tls_key;
	const char *audit; /* file, "-", or NULL: the log */
	bool audit_json;
	bool has_auth;	/* nic.auth = psk */
	uint32_t batch; /* 0: the default, as for the others */
	uint64_t flush_ns;
	uint64_t probe_max_ns;
	uint64_t memory_bytes;
};

/* What eng_serve tells when it is ready. */
struct eng_ready {
	const char *name;
	const char *rack;
	const char *socket;
	uint16_t port; /* 0: no TCP */
};

/*
 * Runs an engine until SIGTERM or SIGINT, which it takes for the whole process;
 * no thread may have been started before. -EBUSY: an engine of that name runs
 * already. error_last() has the words.
 */
int eng_serve(const struct eng_options *options,
	      void (*ready)(void *ctx, const struct eng_ready *what),
	      void *ctx) MUST_CHECK;

/* ---- the parts, for tests ----------------------------------------------- */

/* Opens the NIC. `token` is what callers must have. */
int eng_create(const struct eng_options *options, const char *token,
	       const char *rundir, struct eng **out) MUST_CHECK;
/* No request may be on its way any more. */
void eng_destroy(struct eng *eng);
/* A ctl_handle_fn; ctx is the engine. Any thread. */
void eng_handle(void *ctx, const struct ctl_request *request,
		struct ctl_reply *reply);
/* Works until nothing is to be done. Returns when to come again: 0 means soon,
 * else a monotonic time in nanoseconds. */
uint64_t eng_run(struct eng *eng);
/* Until then, or until a session is started. */
void eng_sleep(struct eng *eng, uint64_t until_ns);

#endif
