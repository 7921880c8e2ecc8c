/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of coherent shared memory as records on the wire, and back; both
 * sides use it. */
#ifndef AQ_COHERENCE_RECORD_H
#define AQ_COHERENCE_RECORD_H

#include "coherence.h"
#include "wire/coherence_wire.h"

struct coh_record {
	uint8_t kind; /* enum coherence_kind */
	uint8_t why;  /* LOST: enum coherence_why */
	uint8_t lane; /* LOST */
	uint32_t serial;
	struct coh_range range; /* LOST, EVICT */
	struct coh_inval inval; /* INVAL */
	struct coh_fin fin;	/* FIN */
	uint32_t term;		/* CLEAN */
};

/* Writes the record; returns its length. */
uint32_t coh_record_build(const struct coh_record *r,
			  uint8_t out[COHERENCE_INVAL_BYTES]);
/* -EINVAL: no record, or one that makes no sense; *out is undefined then. */
int coh_record_parse(const uint8_t *bytes, uint32_t len_bytes,
		     struct coh_record *out) MUST_CHECK;

#endif
