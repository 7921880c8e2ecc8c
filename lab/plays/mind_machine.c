/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of the play: its MMU, its threads' instructions, its death. */
#include <stdlib.h>
#include <string.h>

#include "mind_play_priv.h"

/* ---- death
 * ------------------------------------------------------------------- */

/* A named step. Of a machine that dies here nothing more happens: its own
 * fibers do not return, others look. */
static bool pass(void *ctx, enum rig_coh_step point)
{
	struct mp_machine *m = ctx;
	struct mp *p = m->p;

	if (m->is_dead)
		return false;
	if (p->victim != m->number || p->death_point != point ||
	    --p->death_countdown)
		return true;
	p->victim = -1;
	p->n->machine_deaths++;
	p->run.res->died_at[point]++;
	m->is_dead = true;
	p->run.running -= m->threads;
	m->threads = 0;
	mp_keeper_dead(p, m->number);
	rig_host_kill(m->host);
	return false;
}

/* ---- the MMU
 * -------------------------------------------------- */

/* Threads that wait for this page run before anything else happens to it, as
 * they would on a machine that holds a page until its thread has run. */
static void run_threads(struct mp_machine *m, uint32_t page)
{
	struct mp_op **at = &m->waiting;

	while (*at) {
		struct mp_op *op = *at;

		if (op->page != page || op->right > m->mmu[page]) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		mp_op_execute(m, op);
	}
	sim_wait_notify(m->p->run.sim, &m->changed, 0);
}

static void map(void *ctx, uint32_t page, enum coh_right right,
		const uint8_t *bytes)
{
	struct mp_machine *m = ctx;

	memcpy(m->mem[page], bytes, COHERENCE_PAGE_BYTES);
	m->mmu[page] = (uint8_t)right;
	run_threads(m, page);
}

static void limit(void *ctx, uint32_t page, uint32_t count,
		  enum coh_right right)
{
	struct mp_machine *m = ctx;

	ASSERT(page + count <= MP_PAGES);
	for (uint32_t i = page; i < page + count; i++) {
		if (m->mmu[i] > right)
			m->mmu[i] = (uint8_t)right;
		/* What is read from here on is no page. */
		if (right == COH_NONE)
			memset(m->mem[i], 0xee, COHERENCE_PAGE_BYTES);
	}
}

static void give(void *ctx, uint32_t page, uint8_t *bytes)
{
	const struct mp_machine *m = ctx;

	memcpy(bytes, m->mem[page], COHERENCE_PAGE_BYTES);
}

static void fail(void *ctx, uint32_t page, uint32_t count)
{
	struct mp_machine *m = ctx;
	struct mp_op **at = &m->waiting;

	while (*at) {
		struct mp_op *op = *at;

		if (op->page - page >= count) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		mp_op_fail(m, op);
	}
	sim_wait_notify(m->p->run.sim, &m->changed, 0);
}

static void wrong(void *ctx, const char *what)
{
	const struct mp_machine *m = ctx;

	play_fail(&m->p->run, "machine %u: %s", m->number, what);
}

static const struct rig_coh_ops ops = {.step = pass,
				       .map = map,
				       .limit = limit,
				       .give = give,
				       .fail = fail,
				       .wrong = wrong};

/* ---- threads
 * --------------------------------------------------------------------- */

static void touch(struct mp_machine *m, const struct mp_op *op)
{
	if (rig_coh_touch(&m->coh, op->page, (enum coh_right)op->right) ==
	    COH_TOUCH_HIT)
		wrong(m, "the cache has a page that is not mapped");
}

void mp_op_begin(struct mp_machine *m, struct mp_op *op)
{
	if (m->mmu[op->page] >= op->right) {
		mp_op_execute(m, op);
		return;
	}
	op->next = m->waiting;
	m->waiting = op;
	touch(m, op);
}

static void touch_again(struct mp_machine *m)
{
	for (struct mp_op *op = m->waiting; op && !m->is_dead; op = op->next)
		touch(m, op);
}

/* ---- a small cache
 * ------------------------------------------------------------------ */

static void evict(struct mp_machine *m)
{
	uint32_t mapped = 0;
	uint32_t page = sim_rand_below(&m->rand, m->p->page_count);

	for (uint32_t i = 0; i < m->p->page_count; i++)
		mapped += m->mmu[i] != COH_NONE;
	if (mapped > m->limit && rig_coh_evict(&m->coh, page))
		m->p->n->evictions++;
	if (!m->is_dead && sim_rand_below(&m->rand, 8) == 0 &&
	    rig_coh_leave(&m->coh, page & ~3u, 4))
		m->p->n->leaves++;
}

static void server(void *arg)
{
	struct mp_machine *m = arg;

	while (!m->p->is_over) {
		int n = rig_coh_poll(&m->coh, m->coh.cq);

		if (n > 0 && m->coh.is_connected) {
			evict(m);
			touch_again(m);
		}
		if (coh_cache_check(&m->coh.cache))
			wrong(m, coh_cache_check(&m->coh.cache));
		if (n <= 0)
			client_clock_relax(&m->host->clock);
	}
}

bool mp_machine_is_idle(const struct mp_machine *m)
{
	return m->is_dead || (rig_coh_is_idle(&m->coh) && !m->waiting);
}

/* ---- connections
 * ----------------------------------------------------------------------- */

void mp_machine_cut(struct mp_machine *m)
{
	rig_coh_cut(&m->coh);
}

int mp_machine_connect(struct mp_machine *m, bool was_member)
{
	int err = rig_coh_connect(&m->coh, m->p->tor, m->p->term, was_member);

	if (!err && !m->is_dead)
		touch_again(m);
	return err;
}

int mp_machine_start(struct mp *p, unsigned number)
{
	struct mp_machine *m = &p->machines[number];
	struct rig_coh_config cfg = {.ops = &ops,
				     .ctx = m,
				     .rand = &m->rand,
				     .number = (uint8_t)number,
				     .lanes = MP_LANES,
				     .page_count = MP_PAGES,
				     .mtu = p->mtu};
	int err = rig_host_add(p->run.stage, "machine", &m->host);

	m->p = p;
	m->number = (uint8_t)number;
	sim_rand_init(&m->rand, p->run.opt->seed, 200 + number);
	m->limit = sim_rand_range(&m->rand, 1, MP_PAGES);
	cfg.host = m->host;
	if (!err)
		err = rig_coh_init(&m->coh, &cfg);
	return err ? err : rig_host_spawn(m->host, "server", server, m);
}

void mp_machine_stop(struct mp_machine *m)
{
	rig_coh_release(&m->coh);
}
