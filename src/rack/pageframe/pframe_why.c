/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a chain stopped by itself. Its programs refuse by addresses that no key
 * has, so the NIC says no more than that; but which request it refused says
 * what was wrong.
 */
#include <errno.h>

#include "pframe_priv.h"

/* What comes after `steps` completions of the slot's program was refused. */
static int request_why(const struct pframe_chain *c, uint32_t slot,
		       uint32_t steps)
{
	const union aqdv_wqe *wqe =
		&c->work[(size_t)slot * c->blocks + c->pframe_block];

	if (steps == c->lookup)
		return -EFAULT;
	/* What was looked up decides whether the next request may go on. */
	if (steps == c->lookup + 1 && !(c->without & PAGE_WITHOUT_DECISION))
		return c->kind == PAGE_CHAIN_UNMAPPED ? -EEXIST : -ENOENT;
	if (c->kind == PAGE_CHAIN_UNMAPPED && steps == c->taken + 1 &&
	    !wqe->rdma.raddr.addr)
		return -ENOSPC;
	return -EIO;
}

/* A load of a page that is not there fails when it is answered. */
static int answer_why(const struct pframe_chain *c)
{
	const union aqdv_wqe *answer;
	uint32_t n;

	if (c->kind != PAGE_CHAIN_LOAD || aqdv_cq_count(c->front_cq, &n) != 0)
		return -ECONNRESET;
	answer = &c->front[(size_t)(n & (c->ring - 1)) * CHAIN_FRONT_BLOCKS];
	return answer->rdma.data[0].addr ? -ECONNRESET : -ENOENT;
}

/* Nothing moves any more once it is in error. */
int pframe_chain_why(struct pframe_chain *c)
{
	uint64_t n;

	if (!chain_qp_is_broken(c->work_qp))
		return chain_qp_is_broken(c->front_qp) ? answer_why(c) : 0;
	n = chain_steps(c);
	return request_why(c, (uint32_t)(n / c->counted) & (c->ring - 1),
			   (uint32_t)(n % c->counted));
}

int pframe_space_why(const struct pframe_space *s, enum page_chain kind)
{
	return s->chain[kind] ? pframe_chain_why(s->chain[kind])
			      : s->past_why[kind];
}

const char *pframe_why_text(int why)
{
	switch (why) {
	case 0:
		return "it did not stop";
	case -ENOSPC:
		return "no page frame was free";
	case -EFAULT:
		return "a message named no entry of the table";
	case -EEXIST:
		return "a page to be mapped was mapped already";
	case -ENOENT:
		return "a page that must be mapped was not";
	case -ECONNRESET:
		return "the client took no answer";
	default:
		return "a request was refused";
	}
}
