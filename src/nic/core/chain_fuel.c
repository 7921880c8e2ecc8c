/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps a chain from running for ever: each request that a managed queue
 * executes uses up one unit of fuel, and only events from outside make any: a
 * message of another device, a completion of an ordinary queue, a call of the
 * application. Between queues fuel is shown, never made:
 *
 * - an ENABLE raises the other queue's to what is left to the one that enables,
 * - a completion carries what is left to the queue that it is of, and a queue
 *   that waited for it is raised to one less, once per completion. One less,
 *   because a WAIT is paid for before it is raised, and may show what it has by
 *   a completion of its own.
 *
 * A queue spends before it shows. So the largest amount among queues that only
 * start each other falls with every round, and the last of them stops.
 */
#include "nic_priv.h"

enum {
	PAID_EVENTS_MAX = 1 << 16, /* that a queue can have in store */
};

void chain_pay(struct chain *ch, uint64_t events)
{
	uint64_t max = (uint64_t)ch->max_steps * PAID_EVENTS_MAX;
	uint64_t more = events < PAID_EVENTS_MAX ? events * ch->max_steps : max;

	ch->fuel = ch->fuel + more < max ? ch->fuel + more : max;
}

static struct chain_paid *find_paid(struct chain *ch, const struct nic_cq *cq)
{
	uint32_t i;

	for (i = 0; i < ch->paid_count; i++)
		if (ch->paid[i].number == cq->number)
			return &ch->paid[i];
	return NULL;
}

bool chain_may_wait(struct chain *ch, const struct nic_cq *cq)
{
	if (LIKELY(find_paid(ch, cq) != NULL))
		return true;
	/* Forgetting one would let a queue be paid twice. */
	if (ch->paid_count == CHAIN_CQ_MAX)
		return false;
	ch->paid[ch->paid_count++] = (struct chain_paid){
		.number = cq->number,
		.counted = cq->counted - 1,
	};
	return true;
}

void chain_pay_wait(struct chain *ch, const struct nic_cq *cq)
{
	struct chain_paid *p = find_paid(ch, cq);

	if (p->external_count != cq->external_count)
		chain_pay(ch, cq->external_count - p->external_count);
	if (p->counted != cq->counted && cq->fuel > ch->fuel + 1)
		ch->fuel = cq->fuel - 1;
	p->external_count = cq->external_count;
	p->counted = cq->counted;
}
