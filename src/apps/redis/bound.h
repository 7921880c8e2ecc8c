/* SPDX-License-Identifier: Apache-2.0 */
/* What clients may use up: memory, descriptors, and tries at the password. */
#ifndef AQ_REDIS_BOUND_H
#define AQ_REDIS_BOUND_H

#include "client.h"

/* -EACCES, with words: all hosts that reach the address would have the
 * table. */
int bound_check_address(const struct redis_options *o) MUST_CHECK;
/* Raises the limit of descriptors as far as possible. Returns how many clients
 * that is enough for, at most `wanted`. */
uint32_t bound_clients(uint32_t wanted);

/* Counts bytes of buffers that are there from now on; modulo 2^64. */
void bound_count(struct gateway *g, uint64_t more);
/* Counts what the client's buffers have now. */
void bound_account(struct gateway *g, struct client *s);
/* The client to end if all clients together use too much, and those of this
 * thread most; else NULL. */
struct client *bound_largest(const struct gateway *g);

/* A wrong password: the answer, and what the client says next, wait. */
void bound_pause(struct gateway *g, struct client *s);
/* Whether it is over; the client may go on then. */
bool bound_resume(struct gateway *g, struct client *s, uint64_t mono_ms);

#endif
