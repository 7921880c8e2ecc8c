/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's part of a store: its queue and its requests. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "hlog_priv.h"

uint32_t hlog_pend_get(struct hlog_session *s)
{
	uint32_t i = s->free_first;

	if (i != HLOG_PEND_NONE) {
		s->free_first = s->pend[i].next;
		s->free_count--;
	}
	return i;
}

void hlog_pend_put(struct hlog_session *s, uint32_t i)
{
	s->pend[i].next = s->free_first;
	s->free_first = i;
	s->free_count++;
}

int hlog_session_open(struct hlog *store,
		      const struct hlog_session_options *opt,
		      struct hlog_session **out)
{
	uint32_t depth = opt && opt->depth ? opt->depth : HLOG_DEPTH_DEFAULT;
	struct hlog_queue_options qo = {
		.depth = depth + HLOG_WRITES_MAX,
		.read_max = hlog_record_bytes(store->value_max),
		.write_from = store->memory,
		.write_from_bytes = store->memory_bytes,
	};
	struct hlog_session *s;
	int rc = -ENOMEM;

	if (depth > HLOG_DEPTH_MAX)
		return error_set(-EINVAL, "a session's depth is at most %d",
				 HLOG_DEPTH_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->store = store;
	s->free_first = s->retry_first = HLOG_PEND_NONE;
	s->pend = calloc(qo.depth, sizeof(*s->pend));
	s->scratch = malloc(qo.read_max);
	if (!s->pend || !s->scratch)
		goto err_free;
	for (uint32_t i = qo.depth; i-- > 0;)
		hlog_pend_put(s, i);
	rc = store->device->ops->queue_open(store->device, &qo, &s->queue);
	if (rc < 0)
		goto err_free;
	*out = s;
	return 0;

err_free:
	free(s->scratch);
	free(s->pend);
	free(s);
	return rc;
}

static uint64_t deadline_of(const struct hlog_clock *c)
{
	return c->now_ns(c->ctx) + HLOG_DRAIN_MS * 1000000ull;
}

void hlog_session_close(struct hlog_session *s)
{
	struct hlog_done done[HLOG_POLL_BATCH];
	const struct hlog_clock *c;
	uint64_t deadline_ns;

	if (!s)
		return;
	c = &s->store->device->clock;
	deadline_ns = deadline_of(c);
	while ((s->pending || s->writing) && c->now_ns(c->ctx) < deadline_ns) {
		if (hlog_poll(s, done, HLOG_POLL_BATCH) < 0)
			break;
		c->relax(c->ctx);
	}
	s->store->device->ops->queue_close(s->queue);
	free(s->scratch);
	free(s->pend);
	free(s);
}

/* Sends what can be sent; answers whether all pages before end[] are on the
 * device. Pages that others append meanwhile need not be there. */
static bool push_shards(struct hlog_session *s, const uint64_t *end)
{
	bool clean = true;

	for (uint32_t i = 0; i < s->store->shard_count; i++) {
		struct hlog_shard *sh = &s->store->shard[i];

		lock_take(&sh->lock);
		hlog_shard_write(s, sh);
		clean = hlog_shard_is_written(sh, end[i]) && clean;
		lock_drop(&sh->lock);
	}
	return clean;
}

static void seal_shards(struct hlog *h, uint64_t *end)
{
	for (uint32_t i = 0; i < h->shard_count; i++) {
		struct hlog_shard *sh = &h->shard[i];

		lock_take(&sh->lock);
		hlog_shard_seal(h, sh);
		end[i] = sh->ro_page;
		lock_drop(&sh->lock);
	}
}

int hlog_sync(struct hlog_session *s)
{
	const struct hlog_clock *c = &s->store->device->clock;
	uint64_t deadline_ns = deadline_of(c);
	uint64_t end[HLOG_SHARDS_MAX];
	int rc;

	if (s->pending)
		return -EBUSY;
	seal_shards(s->store, end);
	while (!push_shards(s, end)) {
		/* F2, pairs with F1; relaxed: see there. */
		rc = atomic_load_explicit(&s->store->failed,
					  memory_order_relaxed);
		/* Nothing is pending, so nothing ends here but writes. */
		if (rc == 0)
			rc = hlog_poll(s, NULL, HLOG_POLL_BATCH);
		if (rc < 0)
			return rc;
		if (c->now_ns(c->ctx) >= deadline_ns)
			return -ETIMEDOUT;
		c->relax(c->ctx);
	}
	return 0;
}

const struct hlog_stats *hlog_session_stats(const struct hlog_session *s)
{
	return &s->stats;
}
