/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of machines: instructions on shared words, and litmus shapes. */
#include <string.h>

#include "mind_play_priv.h"

/* ---- instructions ----------------------------------------------------------
 */

static struct lin_value key_of(const struct mp *p, const struct mp_op *op)
{
	return lin_int((uint64_t)p->gen[op->page] << 32 | op->page * MP_WORDS |
		       op->word);
}

static void invoke(struct mp *p, struct mp_op *op)
{
	op->gen = p->gen[op->page];
	op->lin = lin_invoke(p->run.history, op->process, key_of(p, op),
			     (enum lin_call)op->call, lin_int(op->a),
			     lin_int(op->b), play_now_ns(&p->run));
	ASSERT(op->lin >= 0);
}

static void end(struct mp *p, struct mp_op *op)
{
	struct lin_history *h = p->run.history;
	uint64_t now = play_now_ns(&p->run);

	if (op->has_failed)
		lin_return(h, op->lin, LIN_FAIL, LIN_SAID_NOTHING, lin_nil(),
			   now);
	else if (op->call == LIN_WRITE)
		lin_return_ok(h, op->lin, now);
	else if (op->call == LIN_CAS)
		lin_return(h, op->lin, LIN_OK,
			   op->got == op->a ? LIN_YES : LIN_NO, lin_nil(), now);
	else
		lin_return_got(h, op->lin, lin_int(op->got), now);
}

void mp_op_fail(struct mp_machine *m, struct mp_op *op)
{
	op->is_done = op->has_failed = true;
	m->p->n->failed++;
}

void mp_op_execute(struct mp_machine *m, struct mp_op *op)
{
	struct mp *p = m->p;
	uint64_t *word = &m->mem[op->page][op->word];
	uint64_t *last = &p->shadow[op->page][op->word];

	/* The memory was repaired while it waited: another life of the word. */
	if (op->gen != p->gen[op->page]) {
		lin_return(p->run.history, op->lin, LIN_FAIL, LIN_SAID_NOTHING,
			   lin_nil(), play_now_ns(&p->run));
		invoke(p, op);
	}
	op->is_done = true;
	op->got = *word;
	if (*word != *last)
		play_fail(&p->run,
			  "machine %u sees %llu in word %u of page %u, not the "
			  "last store %llu",
			  m->number, (unsigned long long)*word, op->word,
			  op->page, (unsigned long long)*last);
	if (op->call == LIN_WRITE)
		*word = op->a;
	else if (op->call == LIN_CAS && *word == op->a)
		*word = op->b;
	else if (op->call == LIN_FAA)
		*word += op->a;
	*last = *word;
}

/* One instruction, from its begin to its end. False: it was refused. */
static bool run_op(struct mp_thread *t, struct mp_op *op)
{
	struct mp_machine *m = t->m;
	struct mp *p = m->p;

	op->process = t->process;
	op->right = op->call == LIN_READ ? COH_READ : COH_WRITE;
	p->n->loads += op->call == LIN_READ;
	p->n->stores += op->call == LIN_WRITE;
	p->n->atomics += op->call == LIN_CAS || op->call == LIN_FAA;
	invoke(p, op);
	mp_op_begin(m, op);
	p->n->hits += op->is_done && !op->has_failed;
	while (!op->is_done)
		(void)sim_wait_for(p->run.sim, &m->changed, UINT64_MAX, false,
				   "a page");
	end(p, op);
	return !op->has_failed;
}

/* ---- random programs
 * --------------------------------------------------------- */

static void random_op(struct mp_thread *t, uint64_t *seen)
{
	struct mp *p = t->m->p;
	uint32_t dice = sim_rand_below(&t->rand, 10);
	struct mp_op op = {
		.page = sim_rand_below(&t->rand, p->page_count),
		.word = sim_rand_below(&t->rand, MP_HOT_WORDS) * 61,
		.call = dice < 4   ? LIN_READ
			: dice < 7 ? LIN_WRITE
			: dice < 9 ? LIN_FAA
				   : LIN_CAS,
		.a = 1,
	};

	if (op.call == LIN_WRITE)
		op.a = ++p->next_value << 8;
	if (op.call == LIN_CAS) {
		op.a = *seen;
		op.b = ++p->next_value << 8;
	}
	if (run_op(t, &op))
		*seen = op.got;
}

static void run_random(struct mp_thread *t)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < MP_OPS; i++) {
		random_op(t, &seen);
		if (sim_rand_below(&t->rand, 3))
			sim_fiber_sleep_ns(
				t->m->p->run.sim,
				sim_rand_below(
					&t->rand,
					1u << sim_rand_below(&t->rand, 18)));
	}
}

/* ---- litmus shapes
 * ------------------------------------------------------------ */

static void wait_round(struct mp_thread *t, const unsigned *count)
{
	struct mind_litmus *l = &t->m->p->litmus;
	unsigned round = l->round;

	while (*count < l->threads && l->round == round)
		sim_fiber_sleep_ns(t->m->p->run.sim, 5000);
}

/* Words of a round, far apart, on pages of their own. */
static struct mp_op op_on(const struct mp *p, uint8_t var, bool is_store,
			  uint64_t value)
{
	return (struct mp_op){.page = var * p->page_count / MIND_LITMUS_VARS,
			      .word = 1 + p->litmus.round,
			      .call = is_store ? LIN_WRITE : LIN_READ,
			      .a = value};
}

static void judge_round(struct mp_thread *t)
{
	struct mp *p = t->m->p;
	struct mind_litmus *l = &p->litmus;

	for (uint8_t v = 0; v < MIND_LITMUS_VARS; v++) {
		struct mp_op op = op_on(p, v, false, 0);

		if (!run_op(t, &op))
			play_fail(&p->run, "a litmus word is lost");
		l->end[MIND_LITMUS_REGS - MIND_LITMUS_VARS + v] =
			(uint8_t)op.got;
	}
	if (!mind_litmus_allows(l->shape, l->end))
		play_fail(&p->run, "%s ends as no order of its steps does",
			  l->shape->name);
	p->n->litmus++;
	memset(l->end, 0, sizeof(l->end));
	l->arrived = l->finished = 0;
	l->round++;
}

static void run_litmus(struct mp_thread *t)
{
	struct mp *p = t->m->p;
	struct mind_litmus *l = &p->litmus;
	struct mind_litmus_step step[MIND_LITMUS_STEPS];
	unsigned count = mind_litmus_steps(l->shape->threads[t->litmus], step);

	while (l->round < MIND_LITMUS_ROUNDS) {
		unsigned round = l->round;

		l->arrived++;
		wait_round(t, &l->arrived);
		sim_fiber_sleep_ns(p->run.sim, sim_rand_below(&t->rand, 30000));
		for (unsigned i = 0; i < count; i++) {
			struct mp_op op =
				op_on(p, step[i].var, step[i].is_store,
				      step[i].value);

			if (!run_op(t, &op))
				play_fail(&p->run, "a litmus word is lost");
			if (!step[i].is_store)
				l->end[t->litmus * MIND_LITMUS_STEPS + i] =
					(uint8_t)op.got;
		}
		if (++l->finished == l->threads)
			judge_round(t);
		while (l->round == round)
			sim_fiber_sleep_ns(p->run.sim, 5000);
	}
}

/* ---- life
 * ----------------------------------------------------------------------- */

static void thread(void *arg)
{
	struct mp_thread *t = arg;

	if (t->litmus >= 0)
		run_litmus(t);
	else
		run_random(t);
	t->m->threads--;
	t->m->p->run.running--;
}

static int start(struct mp *p, unsigned machine, unsigned number, int litmus,
		 struct mp_thread *t)
{
	struct mp_machine *m = &p->machines[machine];
	int err;

	*t = (struct mp_thread){.m = m,
				.process = machine * MP_THREADS + number,
				.litmus = litmus};
	sim_rand_init(&t->rand, p->run.opt->seed, 300 + t->process);
	err = rig_host_spawn(m->host, "thread", thread, t);
	m->threads += !err;
	p->run.running += !err;
	return err;
}

int mp_threads_start(struct mp *p)
{
	struct mind_litmus *l = &p->litmus;
	unsigned count = 0;
	int err = 0;

	if (l->shape) {
		l->threads = mind_litmus_threads(l->shape);
		for (unsigned i = 0; !err && i < l->threads; i++)
			err = start(p, i % p->machine_count,
				    i / p->machine_count, (int)i,
				    &p->threads[count++]);
		return err;
	}
	for (unsigned i = 0; i < p->machine_count; i++) {
		unsigned n = sim_rand_range(
			&p->run.rand, 1, p->machine_count > 4 ? 2 : MP_THREADS);

		for (unsigned k = 0; !err && k < n; k++)
			err = start(p, i, k, -1, &p->threads[count++]);
	}
	return err;
}
