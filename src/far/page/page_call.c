/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over one link. */
#include "page_call.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "client/link.h"
#include "client/verbs_api.h"

enum {
	WR_SEND = 1, /* in the lowest bit; receives have 0 */
	WR_NUMBER_SHIFT = 1,
	WR_NUMBER_MASK = 0xff,
	WR_GENERATION_SHIFT = 32,
};

static uint64_t wr_id(const struct page_caller *c, unsigned kind)
{
	return (uint64_t)c->generation << WR_GENERATION_SHIFT |
	       (uint64_t)c->number << WR_NUMBER_SHIFT | kind;
}

/* In lists: each post takes the NIC's lock. */
static int receive(struct page_caller *c, uint32_t count)
{
	struct ibv_recv_wr *bad, wr[PAGE_CALL_BATCH];
	int err = 0;

	while (count && !err) {
		uint32_t n = u32_min(count, PAGE_CALL_BATCH);

		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){
				.wr_id = wr_id(c, 0),
				.next = i + 1 < n ? &wr[i + 1] : NULL};
		err = ibv_post_recv(c->link->qp, wr, &bad);
		count -= n;
	}
	return -err;
}

static int make_text(struct page_caller *c)
{
	size_t bytes = align_up((size_t)c->text_bytes * c->slots, CACHE_LINE);

	c->text = aligned_alloc(CACHE_LINE, bytes);
	if (c->text)
		c->mr = c->link->verbs->reg_mr(c->link->pd, c->text, bytes,
					       IBV_ACCESS_LOCAL_WRITE |
						       IBV_ACCESS_REMOTE_WRITE);
	return c->mr ? 0 : -ENOMEM;
}

static int make_expected(struct page_caller *c)
{
	uint32_t count = u32_pow2_ceil(c->slots);

	c->expected = calloc(count, sizeof(*c->expected));
	c->expected_mask = count - 1;
	return c->expected ? 0 : -ENOMEM;
}

int page_caller_init(struct page_caller *c, struct client_link *link,
		     uint32_t text_bytes, uint32_t slots)
{
	int err;

	*c = (struct page_caller){
		.link = link,
		.number = c->number,
		.generation = c->generation + 1,
		.text_used = text_bytes,
		.text_bytes = (uint32_t)align_up(text_bytes, CACHE_LINE),
		.slots = slots};
	err = text_bytes ? make_text(c) : make_expected(c);
	if (!err)
		err = receive(c, slots);
	if (err) {
		page_caller_release(c);
		return error_set(err, "no room for calls");
	}
	return 0;
}

void page_caller_release(struct page_caller *c)
{
	if (c->mr)
		(void)c->link->verbs->dereg_mr(c->mr);
	free(c->text);
	free(c->expected);
	c->mr = NULL;
	c->text = NULL;
	c->expected = NULL;
}

/* An answer says that the message arrived; completions of sends only make room
 * in the queue. */
static int post(struct page_caller *c, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (++c->unsignaled == PAGE_CALL_SIGNAL_EVERY) {
		wr->send_flags = IBV_SEND_SIGNALED;
		c->unsignaled = 0;
	}
	return -ibv_post_send(c->link->qp, wr, &bad);
}

int page_caller_store(struct page_caller *c, const struct page_job *job,
		      uint32_t page_bytes, uint32_t imm)
{
	struct ibv_sge sge = {.addr = (uintptr_t)job->buf,
			      .length = page_bytes,
			      .lkey = job->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id(c, WR_SEND),
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .imm_data = htobe32(imm),
				 .sg_list = &sge,
				 .num_sge = 1};

	c->expected[c->expected_head++ & c->expected_mask] =
		(struct page_call_expected){.tag = job->tag, .imm = imm};
	return post(c, &wr);
}

int page_caller_send(struct page_caller *c, uint32_t slot,
		     const struct page_job *job, uint32_t page_bytes)
{
	struct ibv_sge sge[2] = {
		{.addr = (uintptr_t)page_caller_text(c, slot),
		 .length = c->text_used,
		 .lkey = c->mr->lkey},
		{.addr = (uintptr_t)job->buf,
		 .length = page_bytes,
		 .lkey = job->lkey},
	};
	struct ibv_send_wr wr = {.wr_id = wr_id(c, WR_SEND),
				 .opcode = IBV_WR_SEND,
				 .sg_list = sge,
				 .num_sge = page_bytes ? 2 : 1};

	return post(c, &wr);
}

/* The tag of an answer; false: it answers nothing. */
static bool read_answer(struct page_caller *c, uint32_t imm, uint32_t *tag)
{
	const struct page_call_expected *e;

	*tag = imm;
	if (!c->expected)
		return true;
	if (c->expected_tail == c->expected_head)
		return false;
	e = &c->expected[c->expected_tail++ & c->expected_mask];
	*tag = e->tag;
	return e->imm == imm;
}

int page_caller_poll(struct page_caller *c, unsigned count,
		     uint32_t imm[PAGE_CALL_BATCH])
{
	struct ibv_wc wc[PAGE_CALL_BATCH];
	int i, got = 0, n = ibv_poll_cq(c->link->cq, PAGE_CALL_BATCH, wc);

	for (i = 0; i < n; i++) {
		uint32_t number = (uint32_t)(wc[i].wr_id >> WR_NUMBER_SHIFT) &
				  WR_NUMBER_MASK;
		struct page_caller *of = &c[number < count ? number : 0];

		if (wc[i].wr_id >> WR_GENERATION_SHIFT != of->generation)
			continue;
		if (wc[i].status != IBV_WC_SUCCESS) {
			of->is_broken = true;
		} else if (!(wc[i].wr_id & WR_SEND)) {
			of->used++;
			if (read_answer(of, be32toh(wc[i].imm_data), &imm[got]))
				got++;
			else
				of->is_broken = true;
		}
	}
	for (i = 0; n > 0 && i < (int)count; i++) {
		if (c[i].used && receive(&c[i], c[i].used))
			c[i].is_broken = true;
		c[i].used = 0;
	}
	return n < 0 ? -EIO : got;
}

int page_wire_errno(unsigned end)
{
	switch ((enum page_wire_end)end) {
	case PAGE_WIRE_OK:
		return 0;
	case PAGE_WIRE_NO_SPACE:
		return -ENOSPC;
	case PAGE_WIRE_NO_BUDGET:
		return -EDQUOT;
	case PAGE_WIRE_NO_DATA:
		return -ENODATA;
	case PAGE_WIRE_BAD:
		break;
	}
	return -EREMOTEIO;
}
