/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric as a link model below something else: messages in, deliveries out,
 * on the owner's clock. The owner asks when the fabric wants to run next, puts
 * that into its own event queue, and calls edm_fabric_run then. Made for the
 * simulator's network (sim/net.h), whose time is picoseconds too: a frame is a
 * write from its source port to its destination port. One thread.
 */
#ifndef AQ_EDM_FABRIC_H
#define AQ_EDM_FABRIC_H

#include "edm_config.h"

struct edm_fabric;

/* A message was delivered; tag is what edm_fabric_send was given. */
typedef void (*edm_fabric_fn)(void *owner, uint64_t tag, uint64_t at_ps);

/* EDM with `c.proto` EDM, CXL's credits with CXL, and so on. */
int edm_fabric_create(const struct edm_config *c, edm_fabric_fn deliver,
		      void *owner, struct edm_fabric **out) MUST_CHECK;
void edm_fabric_destroy(struct edm_fabric *f);

/* now_ps must not be before a time given earlier. */
int edm_fabric_send(struct edm_fabric *f, uint64_t now_ps, uint16_t src,
		    uint16_t dst, uint32_t bytes, uint64_t tag) MUST_CHECK;
/* EDM_NEVER: nothing is under way. */
uint64_t edm_fabric_next_ps(const struct edm_fabric *f);
void edm_fabric_run(struct edm_fabric *f, uint64_t now_ps);

#endif
