/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping of a segment, served by this machine's cache server. */
#ifndef AQ_COHERENT_ATTACH_H
#define AQ_COHERENT_ATTACH_H

#include "base/base.h"
#include "channel.h"

struct coherent_mapping {
	int sock;
	uint64_t va, size_bytes;
};

/* As the lead tells it. */
struct coherent_segment {
	uint64_t va, size_bytes, reserved_bytes, id;
};

/* Maps it; -errno with words. */
int coherent_attach(const char *rack, const struct coherent_segment *g,
		    bool may_write, struct coherent_mapping *out) MUST_CHECK;
void coherent_detach(struct coherent_mapping *m);
/* One question, until it is answered. -EHOSTDOWN: the server has ended. */
int coherent_ask(const struct coherent_mapping *m, enum coherent_ask_kind kind,
		 uint64_t va, uint64_t size_bytes,
		 struct coherent_answer *out) MUST_CHECK;

#endif
