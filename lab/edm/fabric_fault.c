/* SPDX-License-Identifier: Apache-2.0 */
/* What can break in the EDM fabric: a switch, a link, a node, a single block.
 */
#include "fabric_priv.h"

bool fabric_lost(struct fabric *f)
{
	if (!f->run->c.loss_ppm || !rng_chance_ppm(&f->rng, f->run->c.loss_ppm))
		return false;
	f->drops++;
	return true;
}

bool fabric_node_dead(const struct fabric *f, uint32_t node)
{
	const struct edm_config *c = &f->run->c;

	return c->fail_node_ps && node == c->fail_port &&
	       fabric_now(f) >= c->fail_node_ps;
}

/* Everybody sees the light go out: what this plane had begun is left to the
 * other one, if there is one. */
static void plane_abandon(struct fabric_plane *p, bool all, uint32_t port)
{
	struct edm_run *run = p->f->run;

	for (uint32_t i = 0; i < run->msg_used; i++) {
		struct edm_msg *m = &run->msg[i];

		if (!m->live || !(m->planes & 1u << p->index))
			continue;
		if (all || m->src == port || m->dst == port)
			fabric_leave(p, i);
	}
}

void fabric_fail_switch(struct fabric *f)
{
	struct fabric_plane *p = &f->plane[0];

	p->dead = true;
	plane_abandon(p, true, 0);
}

void fabric_fail_link(struct fabric *f)
{
	struct fabric_plane *p = &f->plane[0];
	uint16_t port = (uint16_t)f->run->c.fail_port;

	p->port_dead[port] = true;
	edm_sched_disable_port(p->sched, port, NULL);
	/* Senders stop waiting for grants that will not come. */
	for (uint32_t i = 0; i < f->nodes; i++) {
		size_t to = (size_t)i * f->nodes + port;
		size_t from = (size_t)port * f->nodes + i;

		p->wait[to].head = p->wait[from].head = EDM_MSG_NONE;
		p->active[to] = p->active[from] = 0;
	}
	plane_abandon(p, false, port);
}
