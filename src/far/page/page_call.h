/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: messages to a node over one link, whose answers are immediate values.
 * One slot of text per call under way. */
#ifndef AQ_PAGE_CALL_H
#define AQ_PAGE_CALL_H

#include "page_priv.h"
#include "wire/page_wire.h"

enum {
	PAGE_CALL_BATCH = 32,
};

struct page_caller {
	struct client_link *link;
	uint32_t number;     /* among those that share a completion queue */
	uint32_t generation; /* completions of an earlier link are ignored */
	uint8_t *text;
	uint32_t text_used;  /* of one slot */
	uint32_t text_bytes; /* the same in whole cache lines */
	uint32_t slots;
	uint32_t unsignaled; /* sends since the last signaled one */
	uint32_t used;	     /* receives, since they were posted last */
	bool is_broken;
	struct ibv_mr *mr;
	/* Stores by chain have no text and no tag, so this keeps their tags in
	 * the order of calls, and the immediate values that must come back. */
	struct page_call_expected {
		uint32_t tag;
		uint32_t imm;
	} * expected;
	uint32_t expected_mask;
	uint32_t expected_head; /* next call */
	uint32_t expected_tail; /* next answer */
};

/* Also for a caller that was released; number and generation are kept. A caller
 * without text is for page_caller_store. */
int page_caller_init(struct page_caller *c, struct client_link *link,
		     uint32_t text_bytes, uint32_t slots) MUST_CHECK;
void page_caller_release(struct page_caller *c);

static inline void *page_caller_text(struct page_caller *c, uint32_t slot)
{
	return c->text + (size_t)slot * c->text_bytes;
}

/* Sends the slot's text and, after it, that many bytes of the job's buffer. */
int page_caller_send(struct page_caller *c, uint32_t slot,
		     const struct page_job *job,
		     uint32_t page_bytes) MUST_CHECK;
/* Sends the job's page with this immediate value, which the answer repeats. */
int page_caller_store(struct page_caller *c, const struct page_job *job,
		      uint32_t page_bytes, uint32_t imm) MUST_CHECK;
/*
 * Takes the answers to callers c[0..count-1], which share a completion queue
 * and have their number there. A caller whose link is broken has is_broken set.
 */
int page_caller_poll(struct page_caller *c, unsigned count,
		     uint32_t imm[PAGE_CALL_BATCH]) MUST_CHECK;
/* What an answer's enum page_wire_end means. */
int page_wire_errno(unsigned end);
enum {
	PAGE_CALL_SIGNAL_EVERY = 32,
};

#endif
