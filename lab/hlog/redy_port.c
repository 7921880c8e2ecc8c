/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a connection that carries batches, and the server's work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "client/verbs_api.h"
#include "redy.h"

enum {
	WC_MAX = 16,
	PAGE = 4096,
};

/* Kinds of wr_id, in its upper half. */
enum {
	WR_SEND = 1,
	WR_RECV,
	WR_WRITE,
};

static uint8_t *send_at(const struct redy_port *p, uint32_t i)
{
	return p->memory + (size_t)i * p->message_bytes;
}

static uint8_t *recv_at(const struct redy_port *p, uint32_t i)
{
	return send_at(p, REDY_MESSAGES + i);
}

int redy_port_recycle(struct redy_port *p, uint32_t index)
{
	struct ibv_sge sge = {.addr = (uintptr_t)recv_at(p, index),
			      .length = p->message_bytes,
			      .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uint64_t)WR_RECV << 32 | index,
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(p->link->qp, &wr, &bad);
}

int redy_port_init(struct redy_port *p, struct client_link *link,
		   uint32_t message_bytes)
{
	int rc = 0;

	memset(p, 0, sizeof(*p));
	p->link = link;
	p->message_bytes = (uint32_t)align_up(message_bytes, PAGE);
	p->memory = aligned_alloc(PAGE,
				  (size_t)2 * REDY_MESSAGES * p->message_bytes);
	if (!p->memory)
		return -ENOMEM;
	memset(p->memory, 0, (size_t)2 * REDY_MESSAGES * p->message_bytes);
	p->mr = link->verbs->reg_mr(link->pd, p->memory,
				    (size_t)2 * REDY_MESSAGES *
					    p->message_bytes,
				    IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		rc = error_set(-ENOMEM, "the NIC has no more keys");
	for (uint32_t i = 0; i < REDY_MESSAGES && rc == 0; i++) {
		p->free_send[p->free_count++] = i;
		rc = redy_port_recycle(p, i);
	}
	if (rc < 0)
		redy_port_release(p);
	return rc;
}

void redy_port_release(struct redy_port *p)
{
	if (p->mr)
		(void)p->link->verbs->dereg_mr(p->mr);
	free(p->memory);
	p->mr = NULL;
	p->memory = NULL;
}

uint8_t *redy_port_buffer(struct redy_port *p)
{
	return p->free_count ? send_at(p, p->free_send[p->free_count - 1])
			     : NULL;
}

int redy_port_send(struct redy_port *p, uint32_t len_bytes)
{
	uint32_t i = p->free_send[--p->free_count];
	struct ibv_sge sge = {.addr = (uintptr_t)send_at(p, i),
			      .length = len_bytes,
			      .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = (uint64_t)WR_SEND << 32 | i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	return -ibv_post_send(p->link->qp, &wr, &bad);
}

int redy_port_write(struct redy_port *p, uint64_t offset, const void *data,
		    uint32_t len_bytes, uint32_t lkey, uint32_t index)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)data, .length = len_bytes, .lkey = lkey};
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)WR_WRITE << 32 | index,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = p->link->addr + offset,
			    .rkey = p->link->rkey},
	};
	struct ibv_send_wr *bad;

	return -ibv_post_send(p->link->qp, &wr, &bad);
}

int redy_port_poll(struct redy_port *p, struct redy_event *out, unsigned max)
{
	struct ibv_wc wc[WC_MAX];
	unsigned count = 0;
	int n = ibv_poll_cq(p->link->cq, (int)u32_min(max, WC_MAX), wc);

	if (n < 0)
		return -EIO;
	for (int k = 0; k < n; k++) {
		uint32_t i = (uint32_t)wc[k].wr_id;

		if (wc[k].status != IBV_WC_SUCCESS) {
			log_err("hlog",
				"a message or page ended with status "
				"%d (kind %u)",
				(int)wc[k].status,
				(unsigned)(wc[k].wr_id >> 32));
			return -EREMOTEIO;
		}
		switch (wc[k].wr_id >> 32) {
		case WR_SEND:
			p->free_send[p->free_count++] = i;
			break;
		case WR_RECV:
			out[count++] =
				(struct redy_event){.kind = REDY_RECEIVED,
						    .index = i,
						    .len_bytes = wc[k].byte_len,
						    .data = recv_at(p, i)};
			break;
		default:
			out[count++] = (struct redy_event){.kind = REDY_WRITTEN,
							   .index = i};
		}
	}
	return (int)count;
}

/* ---- the server --------------------------------------------------------- */

/* One request; answers the bytes that it took. */
static uint32_t execute_one(const uint8_t *memory, uint64_t size_bytes,
			    const struct redy_request *r, uint8_t *to,
			    uint32_t room)
{
	uint64_t offset = le64_get(r->offset);
	uint32_t len = le32_get(r->len_bytes);
	struct redy_answer a = {.token = r->token};
	uint32_t step = (uint32_t)sizeof(a);

	if (len > size_bytes || offset > size_bytes - len ||
	    align_up(len, 8) + sizeof(a) > room) {
		a.len_bytes = le32_put(REDY_REFUSED);
	} else {
		a.len_bytes = le32_put(len);
		memcpy(to + sizeof(a), memory + offset, len);
		step += (uint32_t)align_up(len, 8);
	}
	memcpy(to, &a, sizeof(a));
	return step;
}

int redy_execute(const uint8_t *memory, uint64_t size_bytes,
		 const uint8_t *request, uint32_t request_bytes,
		 uint8_t *answer, uint32_t *len_bytes)
{
	uint32_t room = *len_bytes, at = sizeof(struct redy_head);
	struct redy_head head;
	uint32_t count;

	if (request_bytes < sizeof(head) || room < sizeof(head))
		return -EBADMSG;
	memcpy(&head, request, sizeof(head));
	count = le32_get(head.count);
	if (le32_get(head.magic) != REDY_MAGIC || count > REDY_BATCH_MAX ||
	    request_bytes != sizeof(head) + count * sizeof(struct redy_request))
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		struct redy_request r;

		if (room - at < sizeof(struct redy_answer))
			return -EBADMSG;
		memcpy(&r, request + sizeof(head) + i * sizeof(r), sizeof(r));
		at += execute_one(memory, size_bytes, &r, answer + at,
				  room - at);
	}
	memcpy(answer, &head, sizeof(head));
	*len_bytes = at;
	return 0;
}

static int answer(struct redy_port *p, const uint8_t *memory,
		  uint64_t size_bytes, const struct redy_event *ev)
{
	uint8_t *to = redy_port_buffer(p);
	uint32_t len = p->message_bytes;
	int rc;

	rc = redy_execute(memory, size_bytes, ev->data, ev->len_bytes, to,
			  &len);
	if (rc == 0)
		rc = redy_port_recycle(p, ev->index);
	return rc == 0 ? redy_port_send(p, len) : rc;
}

int redy_serve(struct redy_port *p, const uint8_t *memory, uint64_t size_bytes,
	       bool (*stop)(void *ctx), void *ctx)
{
	const struct client_clock *c = p->link->clock;
	/* Requests that wait for an answer's place: a request is done for its
	 * sender when it is received, so there may be more than answers. */
	struct redy_event held[REDY_MESSAGES + 1];
	uint32_t count = 0, first;

	while (!stop(ctx)) {
		/* No more come than receives are posted; when all are held,
		 * what comes is the end of an answer. */
		int n = redy_port_poll(p, held + count,
				       REDY_MESSAGES + 1 - count);

		if (n < 0)
			return n;
		if (n == 0)
			c->relax(c->ctx);
		count += (uint32_t)n;
		for (first = 0; first < count && p->free_count; first++) {
			int rc = answer(p, memory, size_bytes, &held[first]);

			if (rc < 0)
				return rc;
		}
		count -= first;
		memmove(held, held + first, count * sizeof(held[0]));
	}
	return 0;
}
