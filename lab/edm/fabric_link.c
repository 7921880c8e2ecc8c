/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a run of the simulation behind the interface of a link model. */
#include <errno.h>
#include <stdlib.h>

#include "edm_fabric.h"
#include "edm_run.h"

struct edm_fabric {
	struct edm_run *run;
	struct edm_result result;
	struct edm_fabric_calls calls;
};

static void on_sent(void *owner, const struct edm_msg *m)
{
	struct edm_fabric *f = owner;

	f->calls.sent(f->calls.owner, m->tag);
}

static void on_done(void *owner, const struct edm_msg *m)
{
	struct edm_fabric *f = owner;

	f->calls.delivered(f->calls.owner, m->tag);
}

static void on_lost(void *owner, const struct edm_msg *m)
{
	struct edm_fabric *f = owner;

	f->calls.lost(f->calls.owner, m->tag);
}

static void on_request(void *owner, const struct edm_msg *m)
{
	struct edm_fabric *f = owner;

	if (f->calls.asked)
		f->calls.asked(f->calls.owner, m->tag);
}

static void on_bytes(void *owner, const struct edm_msg *m, uint32_t from)
{
	struct edm_fabric *f = owner;

	if (f->calls.part && m->op != EDM_WRITE)
		f->calls.part(f->calls.owner, m->tag, m->had_bytes);
}

int edm_fabric_create(const struct edm_config *c,
		      const struct edm_fabric_calls *calls,
		      struct edm_fabric **out)
{
	struct edm_fabric *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->calls = *calls;
	rc = edm_run_create(c, &f->result, &f->run);
	if (rc) {
		free(f);
		return rc;
	}
	f->run->on_sent = on_sent;
	f->run->on_done = on_done;
	f->run->on_lost = on_lost;
	f->run->on_request = on_request;
	f->run->on_bytes = on_bytes;
	f->run->owner = f;
	*out = f;
	return 0;
}

void edm_fabric_destroy(struct edm_fabric *f)
{
	if (!f)
		return;
	edm_run_destroy(f->run);
	free(f);
}

int edm_fabric_send(struct edm_fabric *f, uint64_t at_ps, uint16_t src,
		    uint16_t dst, uint32_t bytes, uint64_t tag)
{
	struct edm_arrival a = {
		.at_ps = at_ps, .bytes = bytes, .src = src, .dst = dst};
	uint32_t msg;

	if (src >= f->run->c.nodes || dst >= f->run->c.nodes || src == dst ||
	    !bytes || bytes > EDM_MESSAGE_MAX)
		return -EINVAL;
	msg = edm_run_submit(f->run, &a);
	f->run->msg[msg].tag = tag;
	return 0;
}

int edm_fabric_ask(struct edm_fabric *f, uint64_t at_ps, uint16_t src,
		   uint16_t dst, uint32_t request_bytes, uint32_t answer_bytes,
		   uint64_t patience_ps, uint64_t tag, uint32_t *msg)
{
	struct edm_arrival a = {.at_ps = at_ps,
				.bytes = answer_bytes,
				.src = src,
				.dst = dst,
				.op = EDM_READ,
				.request_bytes = request_bytes};

	if (!f->run->ops->ready)
		return -EOPNOTSUPP;
	if (src >= f->run->c.nodes || dst >= f->run->c.nodes || src == dst ||
	    !answer_bytes || answer_bytes > EDM_MESSAGE_MAX)
		return -EINVAL;
	*msg = edm_run_submit(f->run, &a);
	f->run->msg[*msg].tag = tag;
	f->run->msg[*msg].deferred = true;
	f->run->msg[*msg].patience_ps = patience_ps;
	return 0;
}

void edm_fabric_ready(struct edm_fabric *f, uint64_t at_ps, uint32_t msg,
		      uint32_t bytes)
{
	edm_run_ready(f->run, at_ps, msg, bytes);
}

uint64_t edm_fabric_next_ps(const struct edm_fabric *f)
{
	return edm_queue_next_ps(f->run->q);
}

void edm_fabric_run(struct edm_fabric *f, uint64_t now_ps)
{
	edm_run_until(f->run, now_ps);
}
