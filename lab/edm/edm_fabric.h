/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric as a link model below something else: messages in, deliveries out,
 * on the owner's clock. The owner asks when the fabric wants to run next, puts
 * that into its own event queue, and calls edm_fabric_run then. One thread.
 * edm_net.h has the simulator's network as owner.
 */
#ifndef AQ_EDM_FABRIC_H
#define AQ_EDM_FABRIC_H

#include "edm_config.h"

struct edm_fabric;

/* Called from edm_fabric_run, at the time of the run; they must not send. tag
 * is what edm_fabric_send was given. Every message is sent once, and then
 * either delivered or lost. */
struct edm_fabric_calls {
	void (*sent)(void *owner, uint64_t tag);
	void (*delivered)(void *owner, uint64_t tag);
	void (*lost)(void *owner, uint64_t tag);
	/* Of a message that was asked for: its request is at dst, and so many
	 * bytes of the answer are with src. */
	void (*asked)(void *owner, uint64_t tag);
	void (*part)(void *owner, uint64_t tag, uint32_t bytes);
	void *owner;
};

/* EDM with `c.proto` EDM, CXL's credits with CXL, and so on. */
int edm_fabric_create(const struct edm_config *c,
		      const struct edm_fabric_calls *calls,
		      struct edm_fabric **out) MUST_CHECK;
void edm_fabric_destroy(struct edm_fabric *f);

/* A write from src to dst that is ready at at_ps, which must not be before the
 * time of the last run. -EINVAL: no such nodes, or no bytes. */
int edm_fabric_send(struct edm_fabric *f, uint64_t at_ps, uint16_t src,
		    uint16_t dst, uint32_t bytes, uint64_t tag) MUST_CHECK;
/*
 * A read or an atomic operation of src at dst: a request of request_bytes,
 * which is its own notification, and an answer of answer_bytes, for which dst
 * then has a grant. The answer is sent as it becomes ready; unless all of it is
 * by the time that is said with _abandon, the message is lost. Fabrics without
 * such reads: -EOPNOTSUPP.
 */
int edm_fabric_ask(struct edm_fabric *f, uint64_t at_ps, uint16_t src,
		   uint16_t dst, uint32_t request_bytes, uint32_t answer_bytes,
		   uint64_t patience_ps, uint64_t tag,
		   uint32_t *msg) MUST_CHECK;
void edm_fabric_ready(struct edm_fabric *f, uint64_t at_ps, uint32_t msg,
		      uint32_t bytes);
/* EDM_NEVER: nothing is under way. */
uint64_t edm_fabric_next_ps(const struct edm_fabric *f);
void edm_fabric_run(struct edm_fabric *f, uint64_t now_ps);

#endif
