/* SPDX-License-Identifier: Apache-2.0 */
/* When frames leave: first come, first served, or urgent ones first. */
#include "net_wire.h"

#include "net_fabric.h"

#define PS_PER_S 1000000000000ull

static uint64_t frame_ps(const struct sim_frame *f)
{
	const struct sim_link *link = sim_port_link(f->port);

	/* Preamble, start, FCS and gap take 24 byte times on Ethernet. */
	return link->bits_per_s ? (f->len_bytes + 24ull) * 8 * PS_PER_S /
					  link->bits_per_s
				: 0;
}

static void begin(struct net_wire *w, struct sim_frame *f, uint64_t ready_ps)
{
	w->busy_ps = u64_max(ready_ps, w->busy_ps) + frame_ps(f);
	w->sent(f, w->busy_ps);
}

/* ---- two classes ----------------------------------------------------------
 */

static void wait_for_wire(struct sim *sim, struct net_wire *w)
{
	if (w->first && !sim_event_is_set(&w->ev))
		sim_schedule_at(sim, &w->ev, w->busy_ps);
}

static void on_free(struct sim *sim, struct sim_event *ev)
{
	struct net_wire *w = container_of(ev, struct net_wire, ev);
	struct sim_frame *f = w->first;

	/* Urgent ones that came meanwhile go first. */
	if (w->busy_ps <= sim_now_ps(sim)) {
		w->first = f->next;
		begin(w, f, sim_now_ps(sim));
	}
	wait_for_wire(sim, w);
}

static void arrive(struct net_wire *w, struct sim_frame *f)
{
	struct sim *sim = sim_net_sim(f->net);

	if (sim_frame_is_urgent(f) ||
	    (!w->first && w->busy_ps <= sim_now_ps(sim))) {
		begin(w, f, sim_now_ps(sim));
		return;
	}
	f->next = NULL;
	if (w->first)
		w->last->next = f;
	else
		w->first = f;
	w->last = f;
	wait_for_wire(sim, w);
}

static void on_ready(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);

	arrive(f->owner, f);
}

/* ---- both -----------------------------------------------------------------
 */

void net_wire_init(struct net_wire *w,
		   void (*sent)(struct sim_frame *frame, uint64_t end_ps))
{
	*w = (struct net_wire){.sent = sent};
	sim_event_init(&w->ev, on_free);
}

void net_wire_send(struct net_wire *w, struct sim_frame *f, uint64_t ready_ps)
{
	struct sim *sim = sim_net_sim(f->net);

	if (!sim_net_has_classes(f->net)) {
		begin(w, f, ready_ps);
	} else if (ready_ps <= sim_now_ps(sim)) {
		arrive(w, f);
	} else {
		/* Others may come, and go, before it. */
		f->owner = w;
		sim_event_init(&f->ev, on_ready);
		sim_schedule_at(sim, &f->ev, ready_ps);
	}
}
