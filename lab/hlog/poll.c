/* SPDX-License-Identifier: Apache-2.0 */
/* What comes back from the device: records, and pages that were written. */
#include <errno.h>

#include "hlog_priv.h"

static void retry_later(struct hlog_session *s, uint32_t i)
{
	s->pend[i].next = s->retry_first;
	s->retry_first = i;
}

/* Ends an operation; false: it goes on. */
static bool finish(struct hlog_session *s, uint32_t i, int err,
		   const struct hlog_record *r, struct hlog_done *out)
{
	struct hlog_pend *p = &s->pend[i];

	*out = (struct hlog_done){
		.user = p->user,
		.key = p->key,
		.kind = p->kind == PEND_RMW ? HLOG_RMW : HLOG_READ,
		.err = err,
	};
	if (r && err == 0) {
		out->value_bytes = hlog_record_value_bytes(r);
		out->value = r->value;
	}
	s->pending--;
	hlog_pend_put(s, i);
	return true;
}

static bool fetch(struct hlog_session *s, uint32_t i, struct hlog_done *out)
{
	int rc = hlog_op_fetch(s, i);

	if (rc == -EINPROGRESS)
		return false;
	if (rc != -EAGAIN)
		return finish(s, i, rc, NULL, out);
	retry_later(s, i);
	return false;
}

/* The answer of one of the RMW functions. */
static bool settle(struct hlog_session *s, uint32_t i, int rc,
		   struct hlog_done *out)
{
	struct hlog_pend *p = &s->pend[i];

	if (rc == -ESTALE)
		rc = hlog_op_rmw(s, p);
	if (rc == -EINPROGRESS)
		return fetch(s, i, out);
	if (rc != -EAGAIN)
		return finish(s, i, rc, NULL, out);
	/* No room at the tail. Later the old value is looked for again: it may
	 * be another one by then. */
	p->ref = 0;
	retry_later(s, i);
	return false;
}

/* A record was read; answers whether the operation ended. */
static bool take_record(struct hlog_session *s, uint32_t i,
			const struct hlog_io *io, struct hlog_done *out)
{
	const struct hlog_record *r = io->data;
	struct hlog_pend *p = &s->pend[i];
	uint64_t prev;

	if (io->err < 0)
		return finish(s, i, io->err, NULL, out);
	if (!hlog_record_is_sound(r, hlog_ref_size(p->ref)))
		return finish(s, i, -EBADMSG, NULL, out);
	if (le64_get(r->key) == p->key) {
		if (p->kind == PEND_RMW)
			return settle(s, i, hlog_op_rmw_far(s, p, r), out);
		return finish(s, i, hlog_record_is_tombstone(r) ? -ENOENT : 0,
			      r, out);
	}
	prev = le64_get(r->prev);
	/* A log that points forward is damaged; it must not keep us for ever.
	 */
	if (prev && hlog_ref_addr(prev) >= hlog_ref_addr(p->ref))
		return finish(s, i, -EBADMSG, NULL, out);
	if (prev) {
		p->ref = prev;
		return fetch(s, i, out);
	}
	if (p->kind == PEND_RMW)
		return settle(s, i, hlog_op_rmw_far(s, p, NULL), out);
	return finish(s, i, -ENOENT, NULL, out);
}

static void take_page(struct hlog_session *s, uint32_t i, int err)
{
	struct hlog_pend *p = &s->pend[i];
	struct hlog_shard *sh = p->shard;

	lock_take(&sh->lock);
	hlog_shard_written(s->store, sh, p->page, err);
	s->writing--;
	hlog_pend_put(s, i);
	if (err == 0)
		hlog_shard_write(s, sh);
	lock_drop(&sh->lock);
}

/* Tries once what found no room before. */
static unsigned retry(struct hlog_session *s, struct hlog_done *done,
		      unsigned max)
{
	uint32_t i = s->retry_first;
	unsigned count = 0;

	s->retry_first = HLOG_PEND_NONE;
	while (i != HLOG_PEND_NONE) {
		struct hlog_pend *p = &s->pend[i];
		uint32_t next = p->next;

		if (count == max)
			retry_later(s, i);
		else if (p->kind == PEND_RMW && p->ref == 0)
			count += settle(s, i, hlog_op_rmw(s, p), &done[count]);
		else
			count += fetch(s, i, &done[count]);
		i = next;
	}
	return count;
}

int hlog_poll(struct hlog_session *s, struct hlog_done *done, unsigned max)
{
	struct hlog_io io[HLOG_POLL_BATCH];
	unsigned count = 0;
	int n;

	if (UNLIKELY(s->retry_first != HLOG_PEND_NONE))
		count = retry(s, done, max);
	if (count == max)
		return (int)count;
	n = s->store->device->ops->poll(s->queue, io,
					u32_min(max - count, HLOG_POLL_BATCH));
	if (n < 0)
		return count ? (int)count : n;
	for (int k = 0; k < n; k++) {
		uint32_t i = (uint32_t)io[k].token;

		if (s->pend[i].kind == PEND_WRITE)
			take_page(s, i, io[k].err);
		else
			count += take_record(s, i, &io[k], &done[count]);
	}
	return (int)count;
}

uint32_t hlog_pending(const struct hlog_session *s)
{
	return s->pending;
}
