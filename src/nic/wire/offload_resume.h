/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going on where a predecessor stopped: the arithmetic, for every kind of
 * engine. Reads are simply done again. A write must not be: somebody else may
 * have overwritten it meanwhile. So for each memory node it is found out, to
 * the packet, what was executed there:
 *
 *   what the predecessor said     writes up to `seq` are done, and the next
 *   (offload_progress, in the     one goes on at packet number `psn`, after
 *   application's rings)          `skip` packets of it
 *   what the node says            the packet number it expected next when it
 *   (offload_final)               ended the predecessor's queue pair
 *
 * The queue pair carried nothing but this application thread's writes in order,
 * so the difference of the packet numbers, walked along the requests in the
 * ring, ends exactly where the node stopped.
 *
 * Where one of the two is missing, the writes in question fail: they may have
 * been done, and doing them now may be wrong.
 *
 * Requests are shown one by one, in the order of the ring, so that an engine
 * need not keep them.
 */
#ifndef AQ_WIRE_OFFLOAD_RESUME_H
#define AQ_WIRE_OFFLOAD_RESUME_H

#include "offload_region.h"

/* How far a predecessor came at a node. Not known, and the rings show that
 * there was one: writes that may have been done fail (-EREMOTEIO). */
struct offload_final {
	bool is_known;
	uint32_t epoch;
	uint32_t psn;
};

/* What was done at one node. Writes up to base_seq are, except those up to
 * unknown_seq, whose outcome is unknown. */
struct offload_past {
	uint64_t base_seq;
	uint64_t unknown_seq;
	uint64_t budget; /* packets that were executed behind base_seq */
	uint32_t budget_mtu;
	bool is_unknown; /* all that the predecessor may have met */
};

struct offload_resume {
	/* What the rings say. */
	uint64_t head;
	uint64_t head_reads;
	uint64_t tail; /* a predecessor may have met what is before it */
	uint64_t done[OFFLOAD_KINDS];
	/* What was shown. */
	uint64_t writes; /* sequence of the last one */
	bool is_broken;	 /* nothing behind it can be executed */
	uint16_t ended;	 /* nodes that stopped inside a write */
	unsigned node_count;
	struct offload_past node[OFFLOAD_NODES_MAX];
};

/* From the preamble, which was checked; final[i] is what node i says. -EBADMSG
 * with words: its counts are impossible. */
int offload_resume_begin(struct offload_resume *r,
			 const struct offload_preamble *p,
			 const struct offload_map *map,
			 const struct offload_final *final,
			 unsigned node_count) MUST_CHECK;
/* The next request: call it for those from head to tail. */
void offload_resume_show(struct offload_resume *r, const struct offload_meta *m,
			 const struct offload_map *map,
			 const struct offload_region_config *regions,
			 uint32_t region_count);

/* How an engine begins at a node. */
struct offload_begin {
	bool is_gone; /* there is no queue pair */
	uint32_t psn; /* that its own queue pair for writes starts with */
	uint32_t mtu; /* of that one, in bytes */
	uint32_t epoch;
};
/* After all were shown: what the engine publishes before it sends anything. */
struct offload_progress offload_resume_end(struct offload_resume *r, unsigned i,
					   const struct offload_begin *b);

/* How many of the bytes from here on in a part were done already. */
uint64_t offload_past_skip(struct offload_past *n, uint64_t seq,
			   uint64_t len_bytes);

#endif
