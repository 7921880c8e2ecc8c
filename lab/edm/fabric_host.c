/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of the EDM fabric: at most X notifications per peer, batches,
 * and the timers that find lost control blocks. A read counts as a notification
 * until its answer is complete, a write until its last grant is here.
 */
#include <errno.h>

#include "fabric_priv.h"

static size_t pair_of(const struct fabric *f, uint32_t src, uint32_t dst)
{
	return (size_t)src * f->nodes + dst;
}

/* Bytes under one notification: the message and what is batched with it, each
 * further one with its own address. */
static uint32_t batch_bytes(const struct fabric *f, uint32_t msg)
{
	uint32_t bytes = f->run->msg[msg].bytes;

	for (uint32_t m = f->run->msg[msg].batch; m != EDM_MSG_NONE;
	     m = f->run->msg[m].batch)
		bytes += f->run->msg[m].bytes + EDM_ADDRESS_BYTES;
	return bytes;
}

static void wait_push(struct fabric_plane *p, size_t pair, uint32_t msg)
{
	struct fabric_wait *w = &p->wait[pair];
	struct edm_msg *pool = p->f->run->msg;

	pool[msg].next[p->index] = EDM_MSG_NONE;
	if (w->head == EDM_MSG_NONE)
		w->head = msg;
	else
		pool[w->tail].next[p->index] = msg;
	w->tail = msg;
}

static uint32_t wait_pop(struct fabric_plane *p, size_t pair)
{
	struct fabric_wait *w = &p->wait[pair];
	uint32_t msg = w->head;

	if (msg != EDM_MSG_NONE)
		w->head = p->f->run->msg[msg].next[p->index];
	return msg;
}

/* With a mirror both planes share a message's state, so only one plane may
 * batch: then none does. */
static void batch_collect(struct fabric_plane *p, size_t pair, uint32_t msg)
{
	struct edm_msg *pool = p->f->run->msg;
	uint32_t limit = p->f->run->c.batch_bytes;
	uint32_t total = pool[msg].bytes + EDM_ADDRESS_BYTES, last = msg;

	if (!limit || p->f->planes > 1 || pool[msg].op != EDM_WRITE)
		return;
	for (;;) {
		uint32_t next = p->wait[pair].head;

		if (next == EDM_MSG_NONE || pool[next].op != EDM_WRITE)
			return;
		total += pool[next].bytes + EDM_ADDRESS_BYTES;
		if (total > limit)
			return;
		(void)wait_pop(p, pair);
		pool[last].batch = next;
		last = next;
	}
}

/* The notification or request leaves; its sender waits for a grant or an
 * answer from now on. */
static void notification_send(struct fabric_plane *p, uint32_t msg)
{
	struct fabric *f = p->f;
	const struct edm_msg *m = &f->run->msg[msg];
	struct edm_wire *up = &p->up[m->src];
	uint64_t now = fabric_now(f), at;
	uint32_t blocks = fabric_request_blocks(f, m);

	if (m->op == EDM_WRITE)
		at = edm_wire_control(up, &f->wire, now);
	else
		at = edm_wire_request(up, &f->wire, now, blocks) +
		     (blocks - 1) * f->t.block_ps;
	at += fabric_link_ps(p, m->src) + f->t.notify_ps + f->t.match_ps +
	      f->t.emit_ps;
	edm_run_push(f->run, at, FABRIC_NOTIFY, p->index, msg, m->turn);
	if (f->run->c.timer_ps)
		edm_run_push(f->run, now + f->run->c.timer_ps, FABRIC_TIMER,
			     p->index, msg, m->turn);
}

static void host_start(struct fabric_plane *p, uint32_t msg)
{
	const struct edm_msg *m = &p->f->run->msg[msg];
	size_t pair = pair_of(p->f, m->src, m->dst);

	p->active[pair]++;
	batch_collect(p, pair, msg);
	notification_send(p, msg);
}

void fabric_submit(struct fabric *f, uint32_t msg)
{
	struct edm_msg *m = &f->run->msg[msg];
	size_t pair = pair_of(f, m->src, m->dst);

	if (f->run->c.channels > 1)
		m->channel = (uint8_t)rng_below(&f->rng, f->run->c.channels);
	for (unsigned i = 0; i < f->planes; i++) {
		struct fabric_plane *p = &f->plane[i];

		if (!p->dead && !p->port_dead[m->src] && !p->port_dead[m->dst])
			m->planes |= (uint8_t)(1u << i);
	}
	if (!m->planes || fabric_node_dead(f, m->src)) {
		/* No way left. The message is lost and stays unaccounted. */
		f->drops++;
		edm_run_forget(f->run, msg);
		return;
	}
	for (unsigned i = 0; i < f->planes; i++) {
		struct fabric_plane *p = &f->plane[i];

		if (!(m->planes & 1u << i))
			continue;
		if (p->active[pair] >= f->run->c.active_max ||
		    p->wait[pair].head != EDM_MSG_NONE)
			wait_push(p, pair, msg);
		else
			host_start(p, msg);
	}
}

void fabric_host_freed(struct fabric_plane *p, uint32_t src, uint32_t dst)
{
	size_t pair = pair_of(p->f, src, dst);
	uint32_t msg;

	if (p->active[pair])
		p->active[pair]--;
	msg = wait_pop(p, pair);
	if (msg != EDM_MSG_NONE)
		host_start(p, msg);
}

struct edm_demand fabric_demand(const struct fabric *f, uint32_t msg)
{
	const struct edm_msg *m = &f->run->msg[msg];
	uint32_t blocks = fabric_request_blocks(f, m);
	uint16_t src = fabric_data_src(m);

	return (struct edm_demand){
		.src = src,
		.dst = src == m->src ? m->dst : m->src,
		.lane = (uint16_t)(m->channel * 2u + (m->op != EDM_WRITE)),
		.handle = msg,
		.control_up_blocks = blocks,
		.control_down_blocks = blocks,
		.control_port = m->src,
	};
}

void fabric_withdraw(struct fabric_plane *p, uint32_t msg)
{
	struct edm_demand d = fabric_demand(p->f, msg);

	edm_sched_withdraw(p->sched, &d);
}

/* A notification or request has reached the scheduler. */
void fabric_notify(struct fabric_plane *p, uint32_t msg, uint32_t turn)
{
	struct fabric *f = p->f;
	const struct edm_msg *m = &f->run->msg[msg];
	struct edm_demand d = fabric_demand(f, msg);
	int rc;

	if (p->dead || !m->live || m->turn != turn || fabric_lost(f) ||
	    p->port_dead[m->src] || !(m->planes & 1u << p->index))
		return;
	d.first_extra_bytes =
		m->op == EDM_WRITE ? edm_first_extra(f->run->c.md) : 0;
	d.bytes = batch_bytes(f, msg) - m->sent_bytes[p->index];
	if (f->run->c.timer_ps)
		rc = edm_sched_renotify(p->sched, fabric_now(f), &d);
	else
		rc = edm_sched_notify(p->sched, fabric_now(f), &d);
	/* Refused: a link that is down, or a queue filled by notifications that
	 * were sent again. The timer tries once more, if there is one. */
	if (rc)
		f->drops++;
}

/*
 * Nothing came in time. A write's notification or grant was lost: notify again
 * with what is still ungranted. A read may have lost anything: ask again from
 * the beginning, and after some tries give the application an empty answer.
 */
void fabric_timer(struct fabric_plane *p, uint32_t msg, uint32_t turn)
{
	struct fabric *f = p->f;
	struct edm_msg *m = &f->run->msg[msg];

	if (p->dead || !m->live || m->turn != turn ||
	    !(m->planes & 1u << p->index))
		return;
	if (fabric_node_dead(f, m->src)) {
		fabric_leave(p, msg);
		return;
	}
	if (m->op == EDM_WRITE) {
		/* Fully granted: whether it arrived the sender cannot know. */
		if (m->sent_bytes[p->index] >= batch_bytes(f, msg)) {
			if (f->run->c.fail_node_ps &&
			    fabric_node_dead(f, m->dst))
				fabric_leave(p, msg);
			return;
		}
		f->timeouts++;
		notification_send(p, msg);
		return;
	}
	f->timeouts++;
	if (m->attempt >= f->run->c.read_retries) {
		if (!m->done)
			edm_run_done(f->run, msg, true);
		fabric_host_freed(p, m->src, m->dst);
		fabric_leave(p, msg);
		return;
	}
	m->attempt++;
	m->sent_bytes[p->index] = 0;
	m->got_bytes[p->index] = 0;
	notification_send(p, msg);
}

void fabric_leave(struct fabric_plane *p, uint32_t msg)
{
	struct edm_msg *m = &p->f->run->msg[msg];

	m->planes &= (uint8_t) ~(1u << p->index);
	if (!m->planes)
		edm_run_forget(p->f->run, msg);
}
