/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the cache server, and mappings that it serves, over a socket
 * that is connected already. The library of unmodified programs has this file,
 * too, so it needs nothing but the system.
 */
#ifndef AQ_COHERENT_MAP_H
#define AQ_COHERENT_MAP_H

#include "base/base.h"
#include "channel.h"

/* What is mapped, and where. */
struct coherent_range {
	uint64_t va, reserved_bytes, id; /* of the segment */
	uint64_t at;			 /* where in this process */
	uint64_t offset, size_bytes;	 /* of it; whole pages */
	int prot;
	bool is_fixed; /* whatever is at `at` goes */
	bool stays;    /* COHERENT_STAYS */
};

/* One question, until it is answered; wait_ms -1: as long as the server lives.
 * `fd`: of the answer, up to `max`. -EHOSTDOWN: the server has ended. */
int coherent_question(int sock, struct coherent_ask *ask, int wait_ms,
		      struct coherent_answer *out, int *fd, unsigned max,
		      unsigned *count) MUST_CHECK;
/* -EEXIST: something is there; -errno with words. */
int coherent_map(int sock, const struct coherent_range *r) MUST_CHECK;

#endif
