/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One application thread of the play. Shared records hold a number, repeated,
 * and are read and written whole: their history is checked. A thread's own
 * bytes are read and written at random places and lengths, beside a shadow: a
 * read must see all earlier writes and no later one.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "offload_play_priv.h"

/* ---- endings ------------------------------------------------------------ */

/* The record's number; false: it is torn. */
static bool record_value(const uint8_t *buf, uint32_t len, uint64_t *value)
{
	memcpy(value, buf, sizeof(*value));
	for (uint32_t at = 0; at < len; at += (uint32_t)sizeof(*value)) {
		if (memcmp(buf + at, value, sizeof(*value)) != 0)
			return false;
	}
	return true;
}

static void end_shared(struct op_thread *t, struct op_flight *f, int err)
{
	struct op *p = t->p;
	uint64_t value;

	if (err) {
		/* A read that failed has no effect; a write may have one. */
		lin_return(p->run.history, f->lin,
			   f->is_write ? LIN_INFO : LIN_FAIL, LIN_SAID_NOTHING,
			   lin_nil(), play_now_ns(&t->p->run));
		return;
	}
	if (f->is_write) {
		lin_return_ok(p->run.history, f->lin, play_now_ns(&t->p->run));
		return;
	}
	if (!record_value(f->buf, f->len, &value))
		play_fail(&p->run, "thread %u read a torn record %u", t->index,
			  f->key);
	lin_return_got(p->run.history, f->lin, lin_int(value),
		       play_now_ns(&t->p->run));
}

static void end_own(struct op_thread *t, struct op_flight *f, int err)
{
	uint64_t at = f->offset - t->own_at;

	if (err && f->is_write)
		memset(t->known + at, 0, f->len);
	if (err || f->is_write)
		return;
	for (uint32_t i = 0; i < f->len; i++) {
		if (!f->known[i] || f->buf[i] == f->expect[i])
			continue;
		play_fail(&t->p->run,
			  "thread %u read byte %" PRIu64
			  " of its own as %u, it had written %u",
			  t->index, at + i, f->buf[i], f->expect[i]);
		return;
	}
}

/* An error is right only where a memory node is gone. */
static bool error_fits(const struct op *p, const struct op_flight *f)
{
	const struct rig *rig = &p->rig;

	for (uint64_t at = f->offset; at < f->offset + f->len;
	     at = ((at >> rig->stripe_shift) + 1) << rig->stripe_shift) {
		if (rig->node[rig_node_of(rig, at)].host->killed)
			return true;
	}
	return false;
}

static void end_flight(struct op_thread *t, struct op_flight *f, int err)
{
	struct op *p = t->p;
	uint64_t words[3] = {(uint64_t)f->id, (uint64_t)(int64_t)err, t->index};

	sim_note(p->run.sim, SIM_NOTE_COMPLETION, words, sizeof(words));
	p->n->errors += err != 0;
	if (err && !error_fits(p, f))
		play_fail(&p->run,
			  "thread %u's %s of %u bytes at %" PRIu64
			  " ended with error %d and no node is gone",
			  t->index, f->is_write ? "write" : "read", f->len,
			  f->offset, -err);
	if (f->is_own)
		end_own(t, f, err);
	else
		end_shared(t, f, err);
	f->id = 0;
	f->len = 0;
}

/* How many ended. */
static unsigned look(struct op_thread *t)
{
	unsigned ended = 0;
	int err = offload_ring_look(&t->app->ring);

	if (err)
		play_fail(&t->p->run, "thread %u's rings hold nonsense: %d",
			  t->index, -err);
	for (uint32_t i = 0; i < t->window && !err; i++) {
		struct op_flight *f = &t->flight[i];
		int r = f->id ? offload_ring_result(&t->app->ring, f->id) : 0;

		if (r == 0)
			continue;
		end_flight(t, f, r == 1 ? 0 : r);
		ended++;
	}
	return ended;
}

void op_thread_died(struct op_thread *t)
{
	/* Operations without an end stay open in the history. */
	t->done = true;
}

/* ---- beginnings --------------------------------------------------------- */

static bool overlaps(const struct op_flight *a, const struct op_flight *b)
{
	return a->offset < b->offset + b->len && b->offset < a->offset + a->len;
}

/* A later write may pass an earlier read of the same bytes: both are under
 * way. So that a read has one right answer, there are none such. */
static bool own_write_must_wait(const struct op_thread *t,
				const struct op_flight *w)
{
	for (uint32_t i = 0; i < t->window; i++) {
		const struct op_flight *f = &t->flight[i];

		if (f->id && f->is_own && !f->is_write && overlaps(f, w))
			return true;
	}
	return false;
}

static uint32_t shared_in_flight(const struct op_thread *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->window; i++)
		n += t->flight[i].id && !t->flight[i].is_own;
	return n;
}

static void draw(struct op_thread *t, struct op_flight *f)
{
	struct op *p = t->p;

	f->is_own = sim_rand_below(&t->rand, 3) == 0 ||
		    shared_in_flight(t) >= OP_SHARED_MAX;
	f->is_write = sim_rand_below(&t->rand, 2) == 0;
	if (f->is_own) {
		uint32_t max = sim_rand_below(&t->rand, 4) ? 300 : OP_OWN_MAX;

		f->len = sim_rand_range(&t->rand, 1, max);
		f->offset = t->own_at +
			    sim_rand_below(&t->rand, OP_OWN_BYTES - f->len + 1);
		return;
	}
	f->key = sim_rand_below(&t->rand, p->keys);
	f->len = p->slot_bytes;
	f->offset = (uint64_t)f->key * OP_SLOT_BYTES;
}

/*
 * A write over several nodes may fail as a whole when one of them dies, and a
 * read of its other part need not see it. Where that may happen, such bytes
 * are not compared while the write is under way.
 */
static void forget_doubtful(const struct op_thread *t, struct op_flight *r)
{
	for (uint32_t i = 0; i < t->window && t->p->may_lose_node; i++) {
		const struct op_flight *w = &t->flight[i];
		uint64_t from = u64_max(w->offset, r->offset);
		uint64_t to = u64_min(w->offset + w->len, r->offset + r->len);

		if (w->id && w->is_own && w->is_write && from < to)
			memset(r->known + (from - r->offset), 0, to - from);
	}
}

static void fill(struct op_thread *t, struct op_flight *f)
{
	struct op *p = t->p;
	uint64_t at = f->offset - t->own_at;
	uint64_t value;

	if (f->is_own && f->is_write) {
		rng_fill(&t->rand, f->buf, f->len);
	} else if (f->is_own) {
		memset(f->buf, 0xee, f->len);
		memcpy(f->expect, t->shadow + at, f->len);
		memcpy(f->known, t->known + at, f->len);
		forget_doubtful(t, f);
	} else {
		value = f->is_write ? p->run.next_value++ : UINT64_MAX;
		for (uint32_t i = 0; i < f->len; i += (uint32_t)sizeof(value))
			memcpy(f->buf + i, &value, sizeof(value));
	}
}

static int64_t issue(struct op_thread *t, struct op_flight *f)
{
	struct offload_ring *r = &t->app->ring;

	return f->is_write ? offload_ring_write(r, 0, f->offset, f->buf, f->len)
			   : offload_ring_read(r, 0, f->offset, f->buf, f->len);
}

/* It is in the ring: from now on it may take effect. */
static void issued(struct op_thread *t, struct op_flight *f)
{
	struct op *p = t->p;
	struct offload_play_counts *c = p->n;
	uint64_t at = f->offset - t->own_at;
	uint64_t value;

	if (f->is_own) {
		if (f->is_write) {
			c->private_writes++;
			memcpy(t->shadow + at, f->buf, f->len);
			memset(t->known + at, 1, f->len);
		} else {
			c->private_reads++;
		}
		return;
	}
	memcpy(&value, f->buf, sizeof(value));
	if (f->is_write)
		c->writes++;
	else
		c->reads++;
	f->lin = lin_invoke(p->run.history, t->index, lin_int(f->key),
			    f->is_write ? LIN_WRITE : LIN_READ, lin_int(value),
			    lin_nil(), play_now_ns(&t->p->run));
	ASSERT(f->lin >= 0); /* a play without memory cannot go on */
}

/* One more request, if the ring has room; false: it has not. */
static bool begin(struct op_thread *t, struct op_flight *f)
{
	int64_t id;

	if (!f->len)
		draw(t, f);
	if (f->is_own && f->is_write && own_write_must_wait(t, f))
		return false;
	fill(t, f);
	id = issue(t, f);
	if (id == -EAGAIN) {
		t->p->n->full++;
		return false;
	}
	if (id <= 0) {
		play_fail(&t->p->run, "thread %u: issuing gave %d", t->index,
			  (int)id);
		t->left = 0;
		f->len = 0;
		return true;
	}
	f->id = id;
	issued(t, f);
	return true;
}

/* ---- life --------------------------------------------------------------- */

static bool busy(const struct op_thread *t)
{
	for (uint32_t i = 0; i < t->window; i++) {
		if (t->flight[i].id)
			return true;
	}
	return false;
}

/* Now and then the application does something else for a while. */
static void think(struct op_thread *t)
{
	uint32_t dice = sim_rand_below(&t->rand, 16);

	if (dice == 0)
		sim_fiber_sleep_ns(t->p->run.sim,
				   sim_rand_range(&t->rand, 1000, 200000));
	else if (dice < 4)
		sim_fiber_sleep_ns(t->p->run.sim,
				   sim_rand_range(&t->rand, 10, 3000));
}

/* Everything once more, one after the other, when all is well again. */
static void read_all(struct op_thread *t)
{
	struct op_flight *f = &t->flight[0];

	for (uint32_t k = 0; k < t->p->keys; k++) {
		f->is_own = false;
		f->is_write = false;
		f->key = k;
		f->len = t->p->slot_bytes;
		f->offset = (uint64_t)k * OP_SLOT_BYTES;
		while (!begin(t, f))
			client_clock_relax(&t->app->host->clock);
		while (f->id && !look(t))
			client_clock_relax(&t->app->host->clock);
	}
}

void op_thread_main(void *arg)
{
	struct op_thread *t = arg;

	while (t->left || busy(t)) {
		bool moved = look(t) != 0;

		for (uint32_t i = 0; i < t->window && t->left; i++) {
			struct op_flight *f = &t->flight[i];

			if (f->id)
				continue;
			if (!begin(t, f))
				break;
			t->left -= t->left != 0;
			moved = true;
			think(t);
		}
		if (!moved)
			client_clock_relax(&t->app->host->clock);
	}
	if (t->p->run.res->violations == 0)
		read_all(t);
	t->done = true;
}
