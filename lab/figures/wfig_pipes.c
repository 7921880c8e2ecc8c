/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines and workspaces on virtual time. */
#include "wfig_pipes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "sim/rack.h"
#include "wfig_count.h"

/* Several of a kind; each is free from a time on. */
struct pool {
	uint32_t count;
	uint64_t free_ps[WFIG_PIPES_MAX];
};

struct wfig_pipes {
	struct sim *sim;
	struct rig_host *host;
	const struct wfig_data *data;
	uint32_t node;
	uint8_t *bytes;
	struct wfig_pipes_config cfg;
	uint32_t used; /* workspaces */
	struct list waiting;
	struct pool memory, logic;
	uint64_t bus_free_ps;
	struct wfig_pipes *other[WFIG_NODES_MAX];
	uint32_t others; /* 0: walks go back to the client */
	struct wfig_pipes_sums sums;
};

/* A walk that is here. */
struct job {
	struct list link; /* among those that wait for a workspace */
	struct sim_event ev;
	struct wfig_pipes *home;  /* whose NIC it came to */
	struct wfig_pipes *pipes; /* where it is */
	struct aqdv_walk *walk;
	const struct walk_program *program; /* that counts */
	uint64_t at;
	uint32_t took;
	bool has_space;
	uint64_t asked_ps; /* for its load */
	enum walk_step step;
	uint64_t next;
};

/* The one that is free first is taken from `now` on; when it begins. */
static uint64_t take(struct pool *p, uint64_t now, uint64_t hold_ps)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < p->count; i++)
		if (p->free_ps[i] < p->free_ps[best])
			best = i;
	now = u64_max(now, p->free_ps[best]);
	p->free_ps[best] = now + hold_ps;
	return now;
}

/* ---- a workspace after the other ---------------------------------------- */

static void on_load(struct sim *sim, struct sim_event *ev);
static void on_start(struct sim *sim, struct sim_event *ev);

static void go(struct job *j, sim_event_fn fn, uint64_t at_ps)
{
	j->ev.fn = fn;
	sim_schedule_at(j->pipes->sim, &j->ev, at_ps);
}

static void enter(struct job *j)
{
	struct wfig_pipes *p = j->pipes;

	if (p->used == p->cfg.spaces) {
		list_append(&p->waiting, &j->link);
		return;
	}
	p->used++;
	j->has_space = true;
	go(j, on_start, sim_now_ps(p->sim) + p->cfg.request_ps);
}

/* Leaves where it is; the next one may come in. */
static void leave(struct job *j)
{
	struct wfig_pipes *p = j->pipes;

	if (!j->has_space)
		return;
	j->has_space = false;
	p->used--;
	if (!list_is_empty(&p->waiting)) {
		struct job *next =
			container_of(p->waiting.next, struct job, link);

		list_remove(&next->link);
		enter(next);
	}
}

static void finish(struct job *j, enum aqdv_walk_status status, uint64_t at)
{
	struct sim_host *host = j->home->host->sim_host;

	leave(j);
	aqdv_walk_done(j->walk, status, at, j->walk->iterations - j->took,
		       j->took);
	free(j);
	sim_host_flush(host);
}

/* ---- iterations --------------------------------------------------------- */

/* Where the node is, by the NIC at home and by the data elsewhere. */
static enum aqdv_walk_where reach(struct job *j, uint8_t **bytes)
{
	const struct wfig_pipes *p = j->pipes;
	const struct walk_image *image = &j->program->image;
	uint64_t at = j->at + (uint64_t)(int64_t)image->load_lo, local;

	if (p == j->home)
		return aqdv_walk_reach(j->walk, at, image->load_bytes,
				       image->flags & WALK_STORES, bytes);
	if (wfig_data_node(p->data, at, &local) != p->node)
		return AQDV_WALK_IS_ELSEWHERE;
	if (local + image->load_bytes > p->data->piece_bytes)
		return AQDV_WALK_IS_FAULT;
	*bytes = p->bytes + local;
	return AQDV_WALK_HERE;
}

static void load(struct job *j)
{
	struct wfig_pipes *p = j->pipes;
	const struct wfig_pipes_config *c = &p->cfg;
	uint64_t now = sim_now_ps(p->sim) + c->sched_ps, begins;

	j->asked_ps = now;
	begins = take(&p->memory, now, c->hold_ps);
	begins = u64_max(begins, p->bus_free_ps);
	p->bus_free_ps = begins + c->bus_ps;
	p->sums.wait_ps += begins - now;
	p->sums.memory_busy_ps += c->hold_ps;
	p->sums.bus_busy_ps += c->bus_ps;
	go(j, on_load, begins + c->load_ps);
}

static void on_enter(struct sim *sim, struct sim_event *ev)
{
	enter(container_of(ev, struct job, ev));
}

/* The switch finds the node that has it. */
static void hop(struct job *j)
{
	struct wfig_pipes *from = j->pipes;
	uint64_t local;

	leave(j);
	j->pipes = from->other[wfig_data_node(from->data, j->at, &local)];
	go(j, on_enter, sim_now_ps(from->sim) + from->cfg.hop_ps);
}

static void visit(struct job *j)
{
	static const enum aqdv_walk_status ends[] = {
		[AQDV_WALK_IS_ELSEWHERE] = AQDV_WALK_ELSEWHERE,
		[AQDV_WALK_IS_FAULT] = AQDV_WALK_FAULT,
		[AQDV_WALK_IS_NO_RIGHT] = AQDV_WALK_NO_RIGHT,
	};
	enum aqdv_walk_where where;
	uint8_t *bytes;

	if (j->took == j->walk->iterations) {
		finish(j, AQDV_WALK_MORE, j->at);
		return;
	}
	where = reach(j, &bytes);
	if (where == AQDV_WALK_HERE)
		load(j);
	else if (where == AQDV_WALK_IS_ELSEWHERE && j->pipes->others)
		hop(j);
	else
		finish(j, ends[where], j->at);
}

static void on_start(struct sim *sim, struct sim_event *ev)
{
	visit(container_of(ev, struct job, ev));
}

static void on_logic(struct sim *sim, struct sim_event *ev)
{
	struct job *j = container_of(ev, struct job, ev);

	switch (j->step) {
	case WALK_STEP_NEXT:
		j->at = j->next;
		visit(j);
		return;
	case WALK_STEP_DONE:
		finish(j, AQDV_WALK_DONE, j->at);
		return;
	case WALK_STEP_FAIL:
		finish(j, AQDV_WALK_FAIL, j->next);
		return;
	case WALK_STEP_FAULT:
		finish(j, AQDV_WALK_FAULT, j->at);
		return;
	}
}

/* The data is here: what the program makes of it is known at once, and when. */
static void on_load(struct sim *sim, struct sim_event *ev)
{
	struct job *j = container_of(ev, struct job, ev);
	struct wfig_pipes *p = j->pipes;
	uint64_t now = sim_now_ps(sim), cost = 0, begins, logic_ps;
	uint8_t *bytes;

	if (reach(j, &bytes) != AQDV_WALK_HERE) {
		finish(j, AQDV_WALK_NO_RIGHT, j->at);
		return;
	}
	j->took++;
	j->step = wfig_count_step(j->program, bytes, j->walk->pad, &j->next,
				  &cost);
	logic_ps = cost * p->cfg.step_ps;
	begins = take(&p->logic, now, logic_ps);
	p->sums.iterations++;
	p->sums.memory_ps += now - j->asked_ps;
	p->sums.logic_ps += logic_ps;
	p->sums.logic_busy_ps += logic_ps;
	p->sums.wait_ps += begins - now;
	go(j, on_logic, begins + logic_ps);
}

/* ---- the walker of the NIC ---------------------------------------------- */

static int start(void *ctx, struct aqdv_walk *walk)
{
	struct wfig_pipes *p = ctx;
	const struct walk_program *program =
		wfig_data_program(p->data, walk->program);
	struct job *j;

	if (!program || walk->pad_room < program->image.pad_bytes)
		return -ENOENT;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	list_init(&j->link);
	sim_event_init(&j->ev, on_start);
	j->home = j->pipes = p;
	j->walk = walk;
	j->program = program;
	j->at = walk->at;
	walk->job = j;
	enter(j);
	return 0;
}

/* Events do the work. */
static bool turn(void *ctx, uint32_t iterations)
{
	return false;
}

static void forget(void *ctx, struct aqdv_walk *walk)
{
	struct wfig_pipes *p = ctx;
	struct job *j = walk->job;

	sim_cancel(p->sim, &j->ev);
	list_remove(&j->link);
	leave(j);
	free(j);
}

int wfig_pipes_open(struct rig_host *host, const struct wfig_data *d,
		    uint32_t node, const struct wfig_pipes_config *cfg,
		    struct wfig_pipes **out)
{
	struct wfig_pipes *p = calloc(1, sizeof(*p));
	struct aqdv_walker walker = {
		.ctx = p, .start = start, .turn = turn, .forget = forget};
	int err;

	if (!p)
		return -ENOMEM;
	ASSERT(cfg->memory <= WFIG_PIPES_MAX && cfg->logic <= WFIG_PIPES_MAX);
	p->sim = rig_stage_sim(host->stage);
	p->host = host;
	p->data = d;
	p->node = node;
	p->cfg = *cfg;
	p->memory.count = cfg->memory;
	p->logic.count = cfg->logic;
	list_init(&p->waiting);
	err = aqdv_set_walker(host->context, &walker);
	if (err)
		free(p);
	else
		*out = p;
	return err;
}

void wfig_pipes_join(struct wfig_pipes *p, struct wfig_pipes *const *others,
		     uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		p->other[i] = others[i];
	p->others = count;
}

void wfig_pipes_memory(struct wfig_pipes *p, uint8_t *bytes)
{
	p->bytes = bytes;
}

void wfig_pipes_reset(struct wfig_pipes *p)
{
	p->sums = (struct wfig_pipes_sums){0};
}

const struct wfig_pipes_sums *wfig_pipes_sums(const struct wfig_pipes *p)
{
	return &p->sums;
}

void wfig_pipes_close(struct wfig_pipes *p)
{
	free(p);
}
