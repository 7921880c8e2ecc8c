/* SPDX-License-Identifier: Apache-2.0 */
/* What a client's operations count, for `aquifer top` and metrics. */
#include <errno.h>

#include "client/link.h"
#include "kv_client_priv.h"

/* Whether the table has answered; that a key is not there is an answer. */
static bool is_answer(int err)
{
	return !err || err == -ENOENT || err == -EEXIST || err == -EMSGSIZE;
}

static void add(struct tally *t, enum tally_count what, uint64_t bytes, int err)
{
	bool is_read = what == TALLY_READS || what == TALLY_SCANS;

	t->count[LIKELY(is_answer(err)) ? what : TALLY_ERRORS]++;
	if (!err || err == -EMSGSIZE)
		t->count[is_read ? TALLY_READ_BYTES : TALLY_WRITE_BYTES] +=
			bytes;
}

int kv_count(struct aq_kv_client *c, enum tally_count what, uint64_t bytes,
	     int err)
{
	struct tally *t = c->config.tally;

	if (!t)
		return err;
	add(t, what, bytes, err);
	/* The time of the last answer is known: no look at the clock. */
	if (LIKELY(is_answer(err)))
		hist_record(&t->latency, c->answered_ns > c->start_ns
						 ? c->answered_ns - c->start_ns
						 : 0);
	return err;
}

void kv_count_probe(struct aq_kv_client *c, const struct aq_kv_op *op)
{
	if (!c->config.tally || !c->clock)
		return;
	/* The first one has just looked at the clock. */
	tally_probe_start(&c->probe, op,
			  c->under_way ? client_clock_now_ns(c->clock)
				       : c->start_ns);
}

void kv_count_poll(struct aq_kv_client *c, const struct aq_kv_op *op)
{
	static const enum tally_count counts[] = {
		[AQ_KV_OP_GET] = TALLY_READS,
		[AQ_KV_OP_PUT] = TALLY_WRITES,
		[AQ_KV_OP_DEL] = TALLY_DELETES,
		[AQ_KV_OP_MODIFY] = TALLY_ATOMICS};
	struct tally *t = c->config.tally;

	if (!t)
		return;
	add(t, counts[op->kind],
	    op->kind == AQ_KV_OP_GET ? u64_min(op->len, op->value_len)
				     : op->value_len,
	    op->err);
	c->probe.ended++;
	if (c->probe.what == op)
		tally_probe_end(&c->probe, t, client_clock_now_ns(c->clock));
}
