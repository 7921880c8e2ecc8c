/* SPDX-License-Identifier: Apache-2.0 */
/* The two-sided mode: every job is a message, and the node's processor answers
 * with an immediate value, after the page if one was asked for. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "page_call.h"

static int two_start(struct page_backend *backend)
{
	struct page_caller *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a backend");
	backend->own = c;
	err = page_caller_init(c, backend->grant.link[1],
			       sizeof(struct page_request),
			       backend->store->slot_count);
	if (err) {
		free(c);
		backend->own = NULL;
	}
	return err;
}

static void two_release(struct page_backend *backend)
{
	page_caller_release(backend->own);
	free(backend->own);
}

static int two_post(struct page_backend *backend, const struct page_job *job)
{
	static const enum page_wire_kind kinds[] = {
		[PAGE_LOAD] = PAGE_WIRE_LOAD,
		[PAGE_STORE] = PAGE_WIRE_STORE,
		[PAGE_INVALIDATE] = PAGE_WIRE_INVALIDATE,
	};
	struct page_caller *c = backend->own;
	uint32_t slot = job->tag >> JOB_COPY_BITS;
	struct page_request *r = page_caller_text(c, slot);

	*r = (struct page_request){
		.kind = be32_put(kinds[job->kind]),
		.tag = be32_put(job->tag),
		.index = be64_put(job->index),
		.buf = be64_put((uintptr_t)job->buf),
		.rkey = be32_put(job->rkey),
		.length = be32_put(backend->store->o.page_bytes),
	};
	return page_caller_send(
		c, slot, job,
		job->kind == PAGE_STORE ? backend->store->o.page_bytes : 0);
}

static int two_poll(struct page_backend *backend)
{
	struct page_caller *c = backend->own;
	uint32_t imm[PAGE_CALL_BATCH];
	int i, n = page_caller_poll(c, 1, imm);

	for (i = 0; i < n; i++) {
		uint32_t tag = imm[i] & ((1u << PAGE_WIRE_TAG_BITS) - 1);
		int err = page_wire_errno(imm[i] >> PAGE_WIRE_TAG_BITS);

		if (!page_job_is_waiting(backend, tag))
			return -EPROTO;
		/* The ledger knows better: it was there. */
		page_job_end(backend->store, tag,
			     err == -ENODATA ? -EHOSTDOWN : err);
	}
	return n < 0 || c->is_broken ? -EHOSTDOWN : 0;
}

const struct page_backend_ops page_backend_two_sided = {
	.start = two_start,
	.release = two_release,
	.post = two_post,
	.poll = two_poll,
	.allocated_bytes = page_backend_asked_bytes,
};
