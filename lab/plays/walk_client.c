/* SPDX-License-Identifier: Apache-2.0 */
/* The walkers of the play "walk": several walks under way at a time, and what
 * each of them must say. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "sim/fiber.h"
#include "walk_play_priv.h"

enum {
	OPS = 60,
	FIND_PAD = offsetof(struct wp_find_pad, value) + 8,
	/* A deadline is looked at now and then, and what a lost connection
	 * was asked is given up by its timers. */
	SLACK_MS = 60,
};

/* ---- life ---------------------------------------------------------------- */

int wp_walker_open(struct wp_walker *w)
{
	struct wp *p = w->p;
	char name[RIG_NAME_MAX];
	int err;

	snprintf(name, sizeof(name), "walker%u.%u", w->index, w->lives++);
	err = rig_host_add(p->run.stage, name, &w->host);

	if (!err)
		err = walk_rack_open(&p->nodes, w->host, &w->rack);
	if (!err)
		err = aq_walks_open(w->rack, WP_DEPTH, &w->walks);
	if (!err)
		err = wp_walks_load(w->rack, w->walk);
	return err ? err : rig_host_spawn(w->host, "walker", wp_walker_main, w);
}

void wp_walker_close(struct wp_walker *w)
{
	aq_walks_close(w->walks);
	w->walks = NULL;
	for (unsigned k = 0; k < WP_KINDS; k++)
		for (unsigned i = 0; i < WP_PLACES; i++) {
			aq_walk_close(w->walk[k][i]);
			w->walk[k][i] = NULL;
		}
	w->region = NULL;
	memset(w->op, 0, sizeof(w->op));
}

static bool is_idle(const struct wp_walker *w)
{
	return aq_walks_pending(w->walks) == 0;
}

/* The region of now, open; waits for it. */
static void follow(struct wp_walker *w)
{
	struct wp *p = w->p;

	while (!w->region) {
		while (!p->now->is_ready)
			sim_fiber_sleep_ps(p->run.sim, 10 * SIM_US);
		w->g = p->now;
		if (walk_region_open(w->rack, "live", p->nodes.count, false,
				     &w->region))
			sim_fiber_sleep_ps(p->run.sim, 10 * SIM_US);
	}
}

/* ---- beginning ----------------------------------------------------------- */

static int64_t invoke(struct wp_walker *w, const struct wp_op *o,
		      enum lin_call call, uint64_t a, uint64_t b)
{
	struct play_run *r = &w->p->run;

	return lin_invoke(r->history, w->index,
			  lin_int(o->g->number * 64 + o->key), call, lin_int(a),
			  lin_int(b), play_now_ns(r));
}

/* A lookup in the chain of a key, or a change of its value. */
static void draw_key(struct wp_walker *w, struct wp_op *o)
{
	struct wp *p = w->p;

	o->key = sim_rand_range(&w->rand, 1, WP_KEYS);
	o->start = wp_offset(p->bucket[(o->key - 1) % WP_BUCKETS]);
	if (o->kind < WP_SET) {
		o->pad.find.key = o->key;
		o->pad_bytes = o->kind == WP_BLOB_FIND ? sizeof(o->pad.find)
						       : (size_t)FIND_PAD;
		if (o->kind != WP_BLOB_FIND)
			o->op = invoke(w, o, LIN_READ, 0, 0);
		return;
	}
	o->value = wp_value(p, o->g, o->key);
	o->pad.store.key = o->key;
	o->pad.store.value = o->value;
	if (o->kind == WP_SET) {
		o->op = invoke(w, o, LIN_UPDATE, o->value, 0);
		return;
	}
	/* Some value of this key; the last one now and then. */
	o->pad.store.expect = o->value - sim_rand_range(&w->rand, 1, 3);
	o->op = invoke(w, o, LIN_CAS, o->pad.store.expect, o->value);
}

static void draw_add(struct wp_walker *w, struct wp_op *o)
{
	o->key = sim_rand_below(&w->rand, WP_LIST);
	o->last = sim_rand_range(&w->rand, o->key, WP_LIST - 1);
	o->start = wp_offset(w->p->list[o->key]);
	o->pad.store.key = wp_list_key(o->last);
}

/* Keys of the tree and others, or a start from where nothing good comes. */
static void draw_tree(struct wp_walker *w, struct wp_op *o)
{
	struct wp *p = w->p;
	const uint32_t bad[] = {p->lost_end, p->torn_end,
				p->circle[sim_rand_below(&w->rand, WP_CIRCLE)]};
	unsigned dice = sim_rand_below(&w->rand, 8);

	o->pad_bytes = FIND_PAD;
	if (dice < ARRAY_LEN(bad)) {
		o->kind = WP_FIND;
		o->pad.find.key = 7777;
		o->start = wp_offset(bad[dice]);
		o->is_circle = dice == 2;
		o->is_bad = !o->is_circle;
		return;
	}
	o->key = sim_rand_below(&w->rand, WP_TREE);
	o->pad.find.key = wp_tree_key(o->key) + sim_rand_below(&w->rand, 2);
	o->start = wp_offset(p->tree[WP_TREE / 2]);
}

static void submit(struct wp_walker *w, struct wp_op *o)
{
	int err;

	o->start_ns = play_now_ns(&w->p->run);
	o->busy = true;
	err = aq_walks_submit(w->walks, w->walk[o->kind][o->place], w->region,
			      o->start, &o->pad, o->pad_bytes, o);
	if (!err)
		return;
	o->busy = false;
	if (!o->g->is_lost && (err != -ESTALE || w->p->resizes == o->shaken))
		play_fail(&w->p->run, "a walk does not start: %d, %s", err,
			  error_last());
	w->p->n->failed++;
	if (o->op >= 0)
		lin_return(w->p->run.history, o->op, LIN_FAIL, LIN_SAID_NOTHING,
			   lin_nil(), play_now_ns(&w->p->run));
	o->g = NULL;
}

static void begin(struct wp_walker *w, struct wp_op *o)
{
	enum wp_place place = sim_rand_below(&w->rand, WP_PLACES);

	*o = (struct wp_op){.kind = sim_rand_below(&w->rand, WP_KINDS),
			    .g = w->g,
			    .op = -1,
			    .shaken = w->p->resizes - w->p->is_resizing,
			    .pad_bytes = sizeof(o->pad.store)};
	if (o->kind == WP_ADD)
		draw_add(w, o);
	else if (o->kind == WP_TREE_FIND)
		draw_tree(w, o);
	else
		draw_key(w, o);
	if (o->kind < WP_SET)
		o->place = place;
	submit(w, o);
}

/* ---- judging ------------------------------------------------------------- */

/* It ended with an error, which must fit what happened. */
static void judge_error(struct wp_walker *w, struct wp_op *o,
			const struct aq_walk_result *r)
{
	struct wp *p = w->p;
	bool is_excused = r->err == -EHOSTDOWN || r->err == -ESTALE ||
			  r->err == -ETIMEDOUT;

	p->n->failed++;
	p->n->unsure += o->kind >= WP_SET;
	if (o->kind == WP_ADD)
		for (unsigned i = o->key; i <= o->last; i++)
			o->g->unknown[i]++;
	if (o->op >= 0)
		lin_return(p->run.history, o->op, LIN_INFO, LIN_SAID_NOTHING,
			   lin_nil(), play_now_ns(&p->run));
	if (is_excused && o->g->is_lost)
		return;
	/* Carried round a circle it is lost at any of hundreds of changes, and
	 * asked for again each time: that may take longer than it has. */
	if (r->err != -ESTALE && is_excused && o->is_circle &&
	    o->place == WP_BY_SWITCH && p->nodes.tor)
		return;
	/* Keys that die break connections, and a refusal that is lost is
	 * silence. What others had asked there may have been done or not, and
	 * who stores does not ask again. */
	if ((r->err == -EHOSTDOWN || r->err == -ESTALE) &&
	    (p->resizes != o->shaken || (p->resizes && o->kind >= WP_SET)))
		return;
	play_fail(&p->run,
		  "walk of kind %u from %#lx ended with %d after %lu "
		  "iterations and %u requests: %s",
		  o->kind, o->start, r->err, r->iterations, r->requests,
		  error_last());
}

static void judge_find(struct wp_walker *w, struct wp_op *o)
{
	struct wp *p = w->p;
	uint64_t value;

	memcpy(&value, o->pad.find.value, sizeof(value));
	p->n->finds++;
	p->n->misses += !o->pad.find.found;
	if (o->kind != WP_BLOB_FIND) {
		lin_return_got(p->run.history, o->op,
			       o->pad.find.found ? lin_int(value) : lin_nil(),
			       play_now_ns(&p->run));
		if (o->pad.find.found && !wp_value_is_of(value, o->g, o->key))
			play_fail(&p->run, "key %u has %#lx", o->key, value);
		return;
	}
	p->n->blobs += o->pad.find.found;
	for (unsigned i = 0; o->pad.find.found && i < WP_BLOB; i++) {
		uint8_t tag = (uint8_t)(o->pad.find.value[i] -
					wp_blob_byte(o->key, 0, i));

		if (tag == 0 || tag > o->g->tag[o->key])
			play_fail(&p->run,
				  "byte %u of key %u is %#x, which nobody "
				  "wrote there",
				  i, o->key, o->pad.find.value[i]);
	}
}

static void judge_store(struct wp_walker *w, struct wp_op *o)
{
	const struct wp_store_pad *pad = &o->pad.store;
	struct wp *p = w->p;
	bool is_done =
		pad->found && (o->kind == WP_SET || pad->was == pad->expect);

	p->n->sets += o->kind == WP_SET;
	p->n->swaps += o->kind == WP_SWAP;
	lin_return(p->run.history, o->op, LIN_OK, is_done ? LIN_YES : LIN_NO,
		   lin_nil(), play_now_ns(&p->run));
	if (pad->found && !wp_value_is_of(pad->was, o->g, o->key))
		play_fail(&p->run, "key %u had %#lx", o->key, pad->was);
}

static void judge_add(struct wp_walker *w, struct wp_op *o,
		      const struct aq_walk_result *r)
{
	unsigned visits = o->last - o->key + 1;

	for (unsigned i = o->key; i <= o->last; i++)
		o->g->acked[i]++;
	w->p->n->adds++;
	if (!o->pad.store.found || o->pad.store.was != visits ||
	    r->iterations != visits || r->at != wp_offset(w->p->list[o->last]))
		play_fail(&w->p->run,
			  "a walk over %u stations counted %lu, with %lu "
			  "iterations",
			  visits, o->pad.store.was, r->iterations);
}

/* Not the first of these lookups: all of it is the same. */
static void judge_same(struct wp_walker *w, const struct wp_op *o,
		       const struct aq_walk_result *r)
{
	w->p->n->same++;
	if (r->err != o->first.err || r->at != o->first.at ||
	    r->iterations != o->first.iterations ||
	    memcmp(&o->pad, &o->first_pad, o->pad_bytes) != 0)
		play_fail(&w->p->run,
			  "from %#lx: %d at %#lx after %lu at one place, %d at "
			  "%#lx after %lu at another",
			  o->start, o->first.err, o->first.at,
			  o->first.iterations, r->err, r->at, r->iterations);
}

/* What nobody changes is known. */
static void judge_rest(struct wp_walker *w, struct wp_op *o,
		       const struct aq_walk_result *r)
{
	bool is_key = o->pad.find.key == wp_tree_key(o->key);
	struct wp *p = w->p;
	uint64_t value;

	memcpy(&value, o->pad.find.value, sizeof(value));
	if (o->is_bad || o->is_circle) {
		p->n->wild += o->is_bad;
		p->n->circles += o->is_circle;
	} else if (!!o->pad.find.found != is_key ||
		   (is_key && value != wp_tree_value(o->g, o->key))) {
		play_fail(&p->run, "the tree has %#lx for key %lu", value,
			  o->pad.find.key);
	}
	if (o->again) {
		judge_same(w, o, r);
	} else {
		o->first = *r;
		o->first_pad = o->pad;
	}
	if (++o->again == WP_PLACES)
		return;
	memset(&o->pad, 0, sizeof(o->pad));
	o->pad.find.key = o->first_pad.find.key;
	o->place = (o->place + 1) % WP_PLACES;
	if (w->g == o->g && w->region)
		submit(w, o);
}

static bool is_expected(const struct wp_op *o, int err)
{
	if (o->is_circle)
		return err == -ELOOP;
	return err == (o->is_bad ? -EFAULT : 0);
}

static void judge(struct wp_walker *w, const struct aq_walk_result *r)
{
	struct wp *p = w->p;
	struct wp_op *o = r->user;
	uint64_t took_ms = (play_now_ns(&p->run) - o->start_ns) / 1000000;

	o->busy = false;
	p->n->crossings += r->crossings;
	p->n->carried += r->carried;
	if (took_ms > WALK_DEADLINE_MS + SLACK_MS)
		play_fail(&p->run, "a walk took %lu ms, and ended with %d",
			  took_ms, r->err);
	if (!is_expected(o, r->err))
		judge_error(w, o, r);
	else if (o->kind == WP_TREE_FIND || o->is_bad || o->is_circle)
		judge_rest(w, o, r);
	else if (o->kind < WP_SET)
		judge_find(w, o);
	else if (o->kind == WP_ADD)
		judge_add(w, o, r);
	else
		judge_store(w, o);
}

/* ---- the walker ---------------------------------------------------------- */

static void begin_some(struct wp_walker *w)
{
	for (unsigned i = 0; i < WP_DEPTH && w->left && w->region; i++) {
		if (w->op[i].busy)
			continue;
		w->left--;
		begin(w, &w->op[i]);
	}
}

void wp_walker_main(void *arg)
{
	struct wp_walker *w = arg;
	struct aq_walk_result r[WP_DEPTH];

	if (!w->left)
		w->left = OPS;
	while (w->left || !is_idle(w)) {
		int n;

		if (w->region && w->g != w->p->now && is_idle(w))
			w->region = NULL;
		if (is_idle(w))
			follow(w);
		if (w->g == w->p->now && !w->p->is_paused)
			begin_some(w);
		n = aq_walks_poll(w->walks, r, WP_DEPTH);
		for (int i = 0; i < n; i++)
			judge(w, &r[i]);
		if (n == 0 && w->p->is_paused && is_idle(w))
			sim_fiber_sleep_ps(w->p->run.sim, SIM_MS);
		else if (n == 0)
			client_clock_relax(&w->host->clock);
	}
	aq_walks_close(w->walks);
	w->walks = NULL;
	w->done = true;
}
