/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends now: domains by turns, and the queue pairs of each one after the
 * other. */
#include "turn_priv.h"

#include "qp_priv.h"
#include "requester_priv.h"
#include "responder_priv.h"
#include "walk_priv.h"

/* What nic_flush counts in one word. */
enum {
	ROUNDS_MASK = 0xff, /* rounds that are left for chains */
	WALKED = 0x100,	    /* walks had their turn in this flush */
};

/* What a chain sends is the answer that its peer waits for; that its message
 * has arrived can be said afterwards. */
static bool give_chain_turn(struct nic_qp *qp)
{
	if (!requester_run(qp))
		return false;
	return qp->state == IBV_QPS_ERR || !responder_has_work(qp) ||
	       ack_hold(qp) || responder_run(qp);
}

/* Answers go before requests: a peer waits for them. */
static bool give_turn(struct nic_qp *qp)
{
	if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS &&
	    qp->state != IBV_QPS_SQD)
		return true;
	if (UNLIKELY(qp->managed_sq))
		return give_chain_turn(qp);
	if (responder_has_work(qp) && !ack_hold(qp) && !responder_run(qp))
		return false;
	return requester_run(qp);
}

/*
 * The queue pairs of one domain, one after the other, until its turn is over.
 * Who finds its path full without having sent anything comes before those that
 * did, next time: else the first in the list would take whatever room there is,
 * each time. False: a path was full.
 */
HOT static bool give_domain_turn(struct nic_pd *pd)
{
	struct nic *nic = pd->nic;
	struct list turn, waiting;
	bool done = true;

	list_init(&waiting);
	list_take(&pd->ready, &turn);
	while (!list_is_empty(&turn) && !turn_is_over(nic)) {
		struct nic_qp *qp =
			container_of(turn.next, struct nic_qp, ready);
		uint64_t sent = nic->counters[NIC_C_tx_frames];

		list_remove(&qp->ready);
		if (UNLIKELY(!give_turn(qp))) {
			done = false;
			if (nic->counters[NIC_C_tx_frames] != sent)
				qp_make_ready(qp);
			else if (list_is_empty(&qp->ready))
				list_append(&waiting, &qp->ready);
		}
	}
	list_prepend_all(&pd->ready, &turn);
	list_prepend_all(&pd->ready, &waiting);
	return done;
}

/* What a domain did lately; the older, the less it counts. */
static uint32_t used_lately(struct nic_pd *pd)
{
	uint32_t flush = pd->nic->flush;
	uint32_t passed = u32_min(flush - pd->used_flush, NIC_TURN_MEMORY);

	pd->used -= (uint32_t)((uint64_t)pd->used * passed / NIC_TURN_MEMORY);
	pd->used_flush = flush;
	return pd->used;
}

bool turn_is_greedy(struct nic_pd *pd)
{
	return used_lately(pd) >
	       pd->nic->least_used + NIC_TURN_CROWDED * NIC_USED_PART;
}

void turn_changes(struct nic_pd *pd)
{
	struct nic *nic = pd->nic;

	if (nic->last_domain) {
		nic->crowd = NIC_CROWD_FLUSHES;
		nic->least_used =
			u32_min(used_lately(nic->last_domain), used_lately(pd));
	}
	nic->last_domain = pd;
}

/* The same of several that have something to do now. */
static void find_least(struct nic *nic, const struct list *turn)
{
	nic->crowd = NIC_CROWD_FLUSHES;
	nic->least_used = UINT32_MAX;
	for (struct list *l = turn->next; l != turn; l = l->next)
		nic->least_used = u32_min(
			nic->least_used,
			used_lately(container_of(l, struct nic_pd, turn)));
}

/*
 * How much a domain may do now beside others: who did more than another one
 * gets less, so nobody has more than its part while others want theirs, and
 * who wants little does not wait. A turn ends with the packet that goes beyond
 * it; what that was too much is missing from the next ones.
 */
static uint32_t take_allowance(struct nic_pd *pd)
{
	uint32_t turn = turn_is_greedy(pd) ? NIC_TURN_GREEDY : NIC_TURN_CROWDED;
	uint32_t paid = u32_min(turn, pd->debt);

	pd->debt -= paid;
	return turn - paid;
}

/* A domain's turn beside others. False: a path was full. */
static bool give_short_turn(struct nic_pd *pd)
{
	struct nic *nic = pd->nic;
	uint64_t before = nic_work(nic), after;
	bool done;

	nic->turn_end = before + take_allowance(pd);
	done = give_domain_turn(pd);
	after = nic_work(nic);
	if (after > nic->turn_end)
		pd->debt = (uint32_t)(after - nic->turn_end);
	pd->used += (uint32_t)(after - before) * NIC_USED_PART;
	nic->turn_end = UINT64_MAX;
	return done;
}

/*
 * Every domain gets a turn, which is every tenant of a memory node: however
 * many queue pairs it has, the others wait for one turn of it. Domains whose
 * paths are full go by the same rule as queue pairs.
 */
HOT static bool give_turns(struct nic *nic)
{
	struct list turn, waiting;
	bool stalled = false;

	list_init(&waiting);
	list_take(&nic->ready, &turn);
	nic->flush++;
	if (UNLIKELY(nic->crowd))
		nic->crowd--;
	if (UNLIKELY(turn.next != turn.prev))
		find_least(nic, &turn);
	else if (!list_is_empty(&turn))
		turn_of(container_of(turn.next, struct nic_pd, turn));
	while (!list_is_empty(&turn)) {
		struct nic_pd *pd =
			container_of(turn.next, struct nic_pd, turn);
		uint64_t before = nic_work(nic);
		bool done;

		list_remove(&pd->turn);
		done = LIKELY(!nic->crowd) ? give_domain_turn(pd)
					   : give_short_turn(pd);
		stalled |= !done;
		if (LIKELY(list_is_empty(&pd->ready)))
			continue;
		list_remove(&pd->turn);
		list_append(nic_work(nic) == before ? &waiting : &nic->ready,
			    &pd->turn);
	}
	list_prepend_all(&nic->ready, &waiting);
	return stalled;
}

/*
 * Whether there is another round of turns in this flush. Walks have one turn,
 * when those who wait for none have had theirs, and their answers leave in the
 * round after it. Returns the rounds that are left for chains.
 */
static COLD unsigned next_round(struct nic *nic, unsigned rounds)
{
	if (nic->walk_due && rounds <= ROUNDS_MASK) {
		walk_turn(nic);
		return rounds | WALKED;
	}
	return nic->chains_due && (rounds & ROUNDS_MASK) > 1 ? rounds - 1 : 0;
}

/* A queue of a chain that another one starts goes on in the same flush. */
HOT bool nic_flush(struct nic *nic)
{
	unsigned rounds = nic->cfg.chain_turn ? 1 : NIC_CHAIN_ROUNDS;
	bool stalled;

	/* What others ask for meanwhile comes in between two flushes. */
	if (UNLIKELY(nic->crowd))
		rounds = u32_min(rounds, NIC_CROWD_ROUNDS);

	do {
		nic->chains_due = false;
		stalled = give_turns(nic);
	} while (UNLIKELY(nic->any_due) && (rounds = next_round(nic, rounds)));
	/* Who was woken in the last round may have had its turn in it. */
	if (UNLIKELY(nic->chains_due) && list_is_empty(&nic->ready))
		nic->chains_due = false;
	nic_tx_flush(nic, false);
	return stalled || !list_is_empty(&nic->ready);
}

bool nic_has_ready(const struct nic *nic)
{
	return !list_is_empty(&nic->ready) || nic->walk_due;
}
