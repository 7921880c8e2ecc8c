/* SPDX-License-Identifier: Apache-2.0 */
/* An end of the switch that asks: what is on its way, and what its answers
 * mean. */
#include "end_tx.h"

#include "base/plant.h"

static struct end_tx_sent *sent_at(struct end_tx *e, uint32_t psn)
{
	return &e->sent[psn % END_TX_WINDOW];
}

static void count(struct end_tx *e, enum end_tx_counter c)
{
	e->counters[c]++;
}

static bool is_idle(const struct end_tx *e)
{
	return e->una_psn == e->next_psn;
}

static uint64_t now_ns(const struct end_tx *e)
{
	return tor_now_ns(tor_instance_tor(e->self));
}

/* ---- requests ------------------------------------------------------------ */

static bool send_at(struct end_tx *e, uint32_t psn)
{
	struct wire_pkt *w = &e->header;

	w->payload = NULL;
	w->payload_len = 0;
	if (!e->ops->describe(e, psn, w))
		return false;
	w->opcode = sent_at(e, psn)->opcode;
	w->psn = psn;
	w->ack_req = true;
	w->dest_qpn = e->qpn;
	tor_emit_end(e->self, &e->route, w);
	return true;
}

void end_tx_go_on(struct end_tx *e)
{
	while (e->sent_psn != e->next_psn && send_at(e, e->sent_psn)) {
		e->sent_psn = wire_psn_add(
			e->sent_psn, 1u + sent_at(e, e->sent_psn)->behind);
		count(e, END_TX_C_resent);
	}
}

void end_tx_again(struct end_tx *e, uint32_t psn)
{
	if (!e->dead && psn == e->sent_psn)
		end_tx_go_on(e);
}

static uint64_t rto_ns(const struct end_tx *e)
{
	return u64_min(e->rto_ns << u32_min(e->tries, 5), END_TX_RTO_MAX_NS);
}

static void set_timer(struct end_tx *e)
{
	struct tor *tor = tor_instance_tor(e->self);

	if ((is_idle(e) && !e->waits) || e->dead)
		timer_cancel(tor_timers(tor), &e->timer);
	else
		timer_set(tor_timers(tor), &e->timer,
			  tor_now_ns(tor) + rto_ns(e));
}

static bool has_answer(const struct end_tx_sent *sent)
{
	enum wire_kind kind = wire_opcodes[sent->opcode].kind;

	return kind == WIRE_READ || kind == WIRE_ATOMIC;
}

void end_tx_send(struct end_tx *e, uint8_t opcode, uint32_t len_bytes)
{
	uint32_t psn = e->next_psn;
	struct end_tx_sent *sent = sent_at(e, psn);

	if (is_idle(e))
		e->since_ns = now_ns(e);
	*sent = (struct end_tx_sent){.opcode = opcode, .len_bytes = len_bytes};
	e->answers += has_answer(sent);
	e->next_psn = wire_psn_add(psn, 1);
	/* Behind a gap it would only be refused. */
	if (e->sent_psn == psn && send_at(e, psn))
		e->sent_psn = e->next_psn;
	if (!timer_is_set(&e->timer))
		set_timer(e);
}

void end_tx_read(struct end_tx *e, uint32_t len_bytes, uint32_t mtu)
{
	uint32_t packets = end_tx_packets(len_bytes, mtu);
	uint32_t first = e->next_psn;

	for (uint32_t i = 0; i < packets; i++)
		*sent_at(e, wire_psn_add(first, i)) = (struct end_tx_sent){
			.opcode = WIRE_RC_READ_REQ,
			.behind = (uint8_t)(packets - 1 - i),
			.len_bytes = u32_min(mtu, len_bytes - i * mtu)};
	if (is_idle(e))
		e->since_ns = now_ns(e);
	e->answers++;
	e->next_psn = wire_psn_add(first, packets);
	if (e->sent_psn == first && send_at(e, first))
		e->sent_psn = e->next_psn;
	if (!timer_is_set(&e->timer))
		set_timer(e);
}

void end_tx_run(struct end_tx *e)
{
	if (!e->dead)
		end_tx_go_on(e);
	e->waits = !e->dead && e->ops->push(e);
	if (!timer_is_set(&e->timer))
		set_timer(e);
}

/* ---- answers ------------------------------------------------------------- */

/* The oldest one; `w` is its answer if it has one. */
static void complete(struct end_tx *e, const struct wire_pkt *w)
{
	uint32_t psn = e->una_psn;

	e->answers -= has_answer(sent_at(e, psn)) && !sent_at(e, psn)->behind;
	e->una_psn = wire_psn_add(psn, 1);
	if (wire_psn_diff(e->una_psn, e->sent_psn) > 0)
		e->sent_psn = e->una_psn;
	e->tries = 0;
	e->since_ns = now_ns(e);
	e->went_back = false;
	e->ops->executed(e, psn, w);
}

/* Everything before `psn`, unless the answer to a READ is missing. Returns
 * whether it is. */
static bool complete_before(struct end_tx *e, uint32_t psn)
{
	unsigned n = 0;

	while (wire_psn_diff(psn, e->una_psn) > 0) {
		if (has_answer(sent_at(e, e->una_psn)))
			return true;
		complete(e, NULL);
		if (n++)
			count(e, END_TX_C_coalesced);
	}
	return false;
}

static void resend(struct end_tx *e)
{
	uint32_t psn = e->una_psn;

	/* All of it: what was lost is not known. */
	if (PLANTED(skip_lost) && !is_idle(e) && !has_answer(sent_at(e, psn)))
		complete(e, NULL);
	e->sent_psn = e->una_psn;
	end_tx_go_on(e);
}

static void give_up(struct end_tx *e)
{
	e->dead = true;
	e->una_psn = e->sent_psn = e->next_psn;
	count(e, END_TX_C_dead);
	set_timer(e);
	e->ops->lost(e);
}

static bool is_hopeless(const struct end_tx *e)
{
	uint64_t since_ns =
		u64_max(e->since_ns, tor_awake_ns(tor_instance_tor(e->self)));

	return e->patience_ns ? now_ns(e) - since_ns >= e->patience_ns
			      : e->tries > END_TX_TRIES;
}

static void on_timeout(struct timer *timer, uint64_t now)
{
	struct end_tx *e = container_of(timer, struct end_tx, timer);

	/* Answers do not set it anew, each of them: it looks when they came. */
	if (!is_idle(e) && !e->tries && now_ns(e) - e->since_ns < rto_ns(e)) {
		timer_set(tor_timers(tor_instance_tor(e->self)), timer,
			  e->since_ns + rto_ns(e));
		return;
	}
	if (!is_idle(e)) {
		count(e, END_TX_C_timeouts);
		e->tries++;
		if (is_hopeless(e)) {
			give_up(e);
			return;
		}
		resend(e);
	}
	end_tx_run(e);
	set_timer(e);
}

/* What is acknowledged says so once for each packet behind the loss; one of
 * them is enough, and if that is lost, too, there is the timer. */
static void answer_missing(struct end_tx *e)
{
	if (e->went_back)
		return;
	e->went_back = true;
	resend(e);
}

/* A packet number that was not sent, or is long answered, says nothing. */
static bool is_on_the_way(const struct end_tx *e, uint32_t psn)
{
	return wire_psn_diff(psn, e->una_psn) >= 0 &&
	       wire_psn_diff(psn, e->next_psn) < 0;
}

static void take_ack(struct end_tx *e, const struct wire_pkt *w)
{
	if (!is_on_the_way(e, w->psn))
		return;
	if (wire_syndrome_is_ack(w->syndrome)) {
		if (complete_before(e, wire_psn_add(w->psn, 1)))
			answer_missing(e);
	} else if (w->syndrome == WIRE_NAK_PSN) {
		/* All before what is asked for was executed. */
		count(e, END_TX_C_naks);
		(void)complete_before(e, w->psn); /* resent either way */
		resend(e);
	} else if (!wire_syndrome_is_rnr(w->syndrome)) {
		give_up(e);
	}
}

/* Whether a packet answers what was sent with its number. */
static bool is_answer(struct end_tx *e, const struct wire_pkt *w)
{
	const struct end_tx_sent *sent = sent_at(e, w->psn);
	enum wire_kind kind = wire_opcodes[sent->opcode].kind;

	if (w->opcode == WIRE_RC_ATOMIC_ACK)
		return kind == WIRE_ATOMIC;
	/* FIRST, MIDDLE, LAST or ONLY: that depends on what was asked last. */
	return kind == WIRE_READ && w->payload_len == sent->len_bytes;
}

void end_tx_reply(struct end_tx *e, const struct wire_pkt *w)
{
	uint32_t una = e->una_psn;
	bool had_tries = e->tries;

	if (e->dead)
		return;
	switch (wire_opcodes[w->opcode].kind) {
	case WIRE_ACK:
		take_ack(e, w);
		break;
	case WIRE_READ_RESP:
	case WIRE_ATOMIC_ACK:
		if (!is_on_the_way(e, w->psn) || !is_answer(e, w))
			break;
		if (complete_before(e, w->psn))
			answer_missing(e);
		else
			complete(e, w);
		break;
	default:
		break;
	}
	/* After a timeout its timer is far away. */
	if (una != e->una_psn && had_tries)
		set_timer(e);
	end_tx_run(e);
}

/* ---- life ---------------------------------------------------------------- */

void end_tx_init(struct end_tx *e, struct tor_instance *self,
		 const struct end_tx_ops *ops, uint64_t *counters)
{
	e->self = self;
	e->ops = ops;
	e->counters = counters;
	e->next_psn = e->sent_psn = e->una_psn;
	timer_init(&e->timer, on_timeout);
}

void end_tx_rest(struct end_tx *e)
{
	if (is_idle(e) && !e->waits)
		set_timer(e);
}

void end_tx_prefetch(const struct end_tx *e)
{
	const uint8_t *header = (const uint8_t *)&e->header;

	for (size_t i = 0; i < sizeof(e->header); i += CACHE_LINE)
		PREFETCH(header + i);
	PREFETCH_RW(&e->qpn);
	PREFETCH_RW(&e->timer);
	PREFETCH_RW(&e->sent[e->next_psn % END_TX_WINDOW]);
}

void end_tx_stop(struct end_tx *e)
{
	timer_cancel(tor_timers(tor_instance_tor(e->self)), &e->timer);
}
