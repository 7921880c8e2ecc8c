/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of the play's chains, by the rules of controld, and what goes
 * wrong around it. */
#include <errno.h>
#include <string.h>

#include "elastic_chain_priv.h"

bool ec_is_reachable(const struct ec_node *n)
{
	return !n->dead && !n->stopped && !n->cut_control;
}

static bool is_down(const struct ec *w, const struct ec_member *m)
{
	return w->silent[m->node] > w->patience ||
	       (!w->silent[m->node] && w->node[m->node].life != m->life);
}

static struct ec_member *find(struct ec *w, uint64_t generation)
{
	for (unsigned i = 0; i < w->member_count; i++)
		if (w->member[i].generation == generation)
			return &w->member[i];
	return NULL;
}

void ec_map(const struct ec *w, struct ec_client *c)
{
	unsigned full = 0;

	while (full + 1 < w->member_count && w->member[full + 1].is_full)
		full++;
	c->head = w->member[0].node;
	c->head_generation = w->member[0].generation;
	c->reader = w->member[full].node;
	c->reader_generation = w->member[full].generation;
}

/* ---- members ------------------------------------------------------------- */

static void add(struct ec *w, unsigned node, bool is_full)
{
	w->member[w->member_count++] =
		(struct ec_member){.node = node,
				   .life = w->node[node].life,
				   .generation = ++w->generations,
				   .is_full = is_full};
}

static bool has_node(const struct ec *w, unsigned node)
{
	for (unsigned i = 0; i < w->member_count; i++)
		if (w->member[i].node == node)
			return true;
	return w->node[node].has_block;
}

static void drop(struct ec *w, unsigned i)
{
	w->member_count--;
	memmove(&w->member[i], &w->member[i + 1],
		(w->member_count - i) * sizeof(w->member[0]));
	w->epoch++;
	w->n->cut++;
}

/* Those that are heard of now: one that is silent only for a moment may be
 * gone, and is no reason to give up another one. */
static unsigned count_up(const struct ec *w)
{
	unsigned up = 0;

	for (unsigned i = 0; i < w->member_count; i++)
		up += w->member[i].is_full && !w->silent[w->member[i].node] &&
		      !is_down(w, &w->member[i]);
	return up;
}

static void cut(struct ec *w)
{
	if (!count_up(w))
		return; /* somebody may come back */
	for (unsigned i = 0; i < w->member_count;)
		if (is_down(w, &w->member[i]))
			drop(w, i);
		else
			i++;
	/* More than enough: one of them has to go, as when a node is drained.
	 */
	if (count_up(w) > w->copies)
		drop(w, sim_rand_below(&w->run->rand, w->member_count - 1));
}

static void join(struct ec *w)
{
	unsigned want = w->copies;
	unsigned node = sim_rand_below(&w->run->rand, EC_NODES);

	if (!w->member[w->member_count - 1].is_full)
		return; /* one at a time */
	if (sim_rand_chance(&w->run->rand, 2000) && !w->is_calm)
		want++;
	if (w->member_count >= want || w->silent[node] || has_node(w, node))
		return;
	add(w, node, false);
	w->member[w->member_count - 1].since = ++w->epoch;
}

/* A joiner that has all counts from now on. */
static void admit(struct ec *w)
{
	struct ec_member *m = &w->member[w->member_count - 1];
	struct ec_node *n = &w->node[m->node];

	if (m->is_full || w->silent[m->node] || !n->has_block ||
	    n->generation != m->generation ||
	    n->chain.config.epoch != w->epoch || !blk_chain_is_whole(&n->chain))
		return;
	m->is_full = true;
	w->epoch++;
	w->n->joined++;
}

/* ---- orders -------------------------------------------------------------- */

static void configure(struct ec *w, struct ec_node *n)
{
	struct blk_chain_config c = {.epoch = w->epoch,
				     .count = w->member_count};

	for (unsigned i = 0; i < w->member_count; i++) {
		c.member[i] = (struct blk_member){
			.node = w->member[i].node,
			.generation = w->member[i].generation};
		c.full += w->member[i].is_full;
		c.is_fresh |=
			!w->member[i].is_full && w->member[i].since == w->epoch;
		if (w->member[i].generation == n->generation)
			c.at = i;
	}
	blk_chain_configure(&n->chain, &c, ec_now_ns(w, n));
}

static void order(struct ec *w, struct ec_node *n)
{
	const struct ec_member *m =
		n->has_block ? find(w, n->generation) : NULL;

	if (n->has_block && !m) {
		if (!n->fetches)
			ec_node_free(n);
		return;
	}
	for (unsigned i = 0; i < w->member_count && !m; i++) {
		m = &w->member[i];
		if (m->node != n->index || m->is_full || m->life != n->life ||
		    ec_node_make(w, n, m->generation, false))
			m = NULL;
	}
	if (m)
		configure(w, n);
}

int ec_control_begin(struct ec *w)
{
	int err = 0;

	for (unsigned i = 0; i < w->copies && !err; i++) {
		add(w, i, true);
		err = ec_node_make(w, &w->node[i], w->generations, true);
	}
	w->epoch = 1;
	return err;
}

void ec_control_step(struct ec *w)
{
	for (unsigned i = 0; i < EC_NODES; i++)
		w->silent[i] =
			ec_is_reachable(&w->node[i]) ? 0 : w->silent[i] + 1;
	cut(w);
	admit(w);
	join(w);
	for (unsigned i = 0; i < EC_NODES; i++)
		if (!w->silent[i] && sim_rand_below(&w->run->rand, 10) == 0)
			order(w, &w->node[i]);
}

/* ---- trouble ------------------------------------------------------------- */

/* What was acknowledged is on the other full members only: one of them has to
 * live. */
static bool may_die(const struct ec *w, const struct ec_node *n)
{
	unsigned others = 0;

	for (unsigned i = 0; i < w->member_count; i++) {
		const struct ec_node *k = &w->node[w->member[i].node];

		others += w->member[i].is_full && k != n && k->has_block &&
			  k->generation == w->member[i].generation;
	}
	return others;
}

static void die(struct ec *w, struct ec_node *n)
{
	w->n->killed++;
	ec_node_free(n);
	n->life++;
	n->dead = sim_rand_range(&w->run->rand, 50, 2000);
}

static void count_down(unsigned *left)
{
	*left -= *left != 0;
}

void ec_trouble(struct ec *w)
{
	struct rng *r = &w->run->rand;

	for (unsigned i = 0; i < EC_NODES; i++) {
		struct ec_node *n = &w->node[i];
		unsigned long_time = sim_rand_range(r, 20, 1500);

		count_down(&n->dead);
		count_down(&n->stopped);
		count_down(&n->cut_control);
		count_down(&n->cut_clients);
		count_down(&n->cut_peers);
		if (w->is_calm || !sim_rand_chance(r, 1500))
			continue;
		switch (sim_rand_below(r, 6)) {
		case 0:
		case 1:
			if (!n->dead && may_die(w, n))
				die(w, n);
			break;
		case 2:
			n->stopped = long_time;
			break;
		case 3:
			n->cut_control = long_time;
			break;
		case 4:
			n->cut_peers = long_time;
			break;
		default:
			n->cut_peers = n->cut_control = long_time;
			break;
		}
	}
}
