/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage reads what the one before it wrote, works, and writes, all along. Of
 * what it writes the rule says how much finds memory; the rest goes to the
 * slower place. Bytes cost time by where they lie: what all tasks of the rack
 * move at once is shared by them.
 */
#include "efig_jobs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "efig_costs.h"

#define STEP_S 0.25

struct running {
	bool is_on;
	unsigned stage;
	double done;		 /* of the stage: 0 to 1 */
	double debt_s;		 /* for what was written elsewhere */
	double mem, spill;	 /* of the stage's output */
	double mem_in, spill_in; /* of its input */
	double reserved;	 /* EFIG_POCKET */
};

struct play {
	const struct efig_jobs_config *c;
	struct efig_work w;
	struct running *job;
	struct efig_store *store; /* EFIG_OURS */
	double capacity;	  /* bytes */
	double used, reserved;
	double tenant_used[EFIG_TENANTS_MAX];
	double tenant_share[EFIG_TENANTS_MAX];
	/* Of the step before: tasks that move bytes, and where. */
	double tasks_mem, tasks_spill, now_mem, now_spill;
	double tenant_tasks[EFIG_TENANTS_MAX], tenant_now[EFIG_TENANTS_MAX];
	/* Sums. */
	double written, elsewhere, times, use_s, allocated_s, steps;
	unsigned ended, first, next;
	double now_s;
};

/* ---- rates --------------------------------------------------------------- */

static double share(double all, double tasks)
{
	return fmin((double)efig_costs.task_mb_s * 1e6, all / fmax(tasks, 1));
}

static double rate_mem(const struct play *p, const struct efig_job *j)
{
	return j->tasks * share((double)efig_costs.servers *
					(double)efig_costs.server_mb_s * 1e6,
				p->tasks_mem);
}

/* A task waits for its chunks; a tenant's prefix takes so many in a second. */
static double s3_rate(const struct play *p, const struct efig_job *j,
		      uint64_t us, uint64_t per_s)
{
	double chunk = (double)efig_costs.chunk_bytes;
	double task = chunk * (double)efig_costs.chunks / ((double)us / 1e6);

	return fmin(task,
		    share(chunk * (double)per_s, p->tenant_tasks[j->tenant]));
}

static double rate_spill(const struct play *p, const struct efig_job *j,
			 bool is_read)
{
	if (p->c->rule == EFIG_ELASTICACHE)
		return j->tasks *
		       (is_read ? s3_rate(p, j, efig_costs.s3_read_us,
					  efig_costs.s3_gets)
				: s3_rate(p, j, efig_costs.s3_write_us,
					  efig_costs.s3_puts));
	return j->tasks * share((double)efig_costs.servers *
					(double)efig_costs.ssd_mb_s * 1e6,
				p->tasks_spill);
}

/* ---- rules --------------------------------------------------------------- */

static bool begin_job(struct play *p, unsigned i)
{
	const struct efig_job *j = &p->w.job[i];
	struct running *r = &p->job[i];

	*r = (struct running){.is_on = true};
	if (p->c->rule == EFIG_POCKET) {
		r->reserved = fmin((double)efig_job_peak(j),
				   p->capacity - p->reserved);
		p->reserved += r->reserved;
	}
	return p->c->rule != EFIG_OURS || (efig_store_job(p->store, i) &&
					   efig_store_stage(p->store, i, 0));
}

/* How much of what a stage writes now finds memory. */
static double take(struct play *p, unsigned i, double bytes)
{
	struct running *r = &p->job[i];
	unsigned t = p->w.job[i].tenant;
	double got;

	if (p->c->rule == EFIG_OURS)
		got = (double)efig_store_write(p->store, i, r->stage,
					       (uint64_t)bytes);
	else if (p->c->rule == EFIG_POCKET)
		got = fmin(bytes, r->reserved - r->mem - r->mem_in);
	else
		got = fmin(bytes, p->tenant_share[t] - p->tenant_used[t]);
	got = fmax(got, 0);
	p->tenant_used[t] += got;
	p->used += got;
	return got;
}

static void give_back(struct play *p, unsigned i, double bytes)
{
	p->tenant_used[p->w.job[i].tenant] -= bytes;
	p->used -= bytes;
}

/* ---- jobs ---------------------------------------------------------------- */

static void end_job(struct play *p, unsigned i)
{
	const struct efig_job *j = &p->w.job[i];
	struct running *r = &p->job[i];

	give_back(p, i, r->mem + r->mem_in);
	p->reserved -= r->reserved;
	if (p->c->rule == EFIG_OURS)
		efig_store_end(p->store, i);
	p->times +=
		(p->now_s + STEP_S - j->start_s) / fmax(efig_job_s(j), STEP_S);
	p->ended++;
	r->is_on = false;
}

static bool end_stage(struct play *p, unsigned i)
{
	const struct efig_job *j = &p->w.job[i];
	struct running *r = &p->job[i];

	give_back(p, i, r->mem_in);
	r->mem_in = r->mem;
	r->spill_in = r->spill;
	r->mem = r->spill = r->done = 0;
	if (++r->stage == j->stages) {
		end_job(p, i);
		return true;
	}
	return p->c->rule != EFIG_OURS ||
	       efig_store_stage(p->store, i, r->stage);
}

/* Seconds that a whole stage takes, with memory for what it writes. */
static double stage_s(const struct play *p, unsigned i)
{
	const struct efig_job *j = &p->w.job[i];
	const struct running *r = &p->job[i];
	double out = (double)j->stage[r->stage].bytes;

	return efig_stage_s(j, r->stage) + (out + r->mem_in) / rate_mem(p, j) +
	       r->spill_in / rate_spill(p, j, true);
}

static bool step_job(struct play *p, unsigned i)
{
	const struct efig_job *j = &p->w.job[i];
	struct running *r = &p->job[i];
	double left = STEP_S;

	while (left > 1e-9 && r->is_on) {
		double pay = fmin(left, r->debt_s), whole, part, out, got;

		r->debt_s -= pay;
		left -= pay;
		if (left <= 1e-9)
			break;
		whole = fmax(stage_s(p, i), 1e-9);
		part = fmin(1 - r->done, left / whole);
		out = floor((double)j->stage[r->stage].bytes *
			    (r->done + part)) -
		      floor((double)j->stage[r->stage].bytes * r->done);
		got = take(p, i, out);
		r->mem += got;
		r->spill += out - got;
		p->written += out;
		p->elsewhere += out - got;
		r->debt_s += (out - got) * fmax(0, 1 / rate_spill(p, j, false) -
							   1 / rate_mem(p, j));
		r->done += part;
		left -= part * whole;
		if (r->done > 1 - 1e-9 && !end_stage(p, i))
			return false;
	}
	if (!r->is_on)
		return true;
	if (r->debt_s > 0 || r->spill_in > 0) {
		p->now_spill += j->tasks;
		p->tenant_now[j->tenant] += j->tasks;
	} else if (j->stage[r->stage].bytes || r->mem_in > 0)
		p->now_mem += j->tasks;
	return true;
}

/* ---- time ---------------------------------------------------------------- */

static bool step(struct play *p)
{
	while (p->next < p->w.jobs &&
	       p->w.job[p->next].start_s < p->now_s + STEP_S)
		if (!begin_job(p, p->next++))
			return false;
	p->now_mem = p->now_spill = 0;
	memset(p->tenant_now, 0, sizeof(p->tenant_now));
	for (unsigned i = p->first; i < p->next; i++)
		if (p->job[i].is_on && !step_job(p, i))
			return false;
	while (p->first < p->next && !p->job[p->first].is_on)
		p->first++;
	p->tasks_mem = p->now_mem;
	p->tasks_spill = p->now_spill;
	memcpy(p->tenant_tasks, p->tenant_now, sizeof(p->tenant_now));
	if (p->now_s < p->w.window_s) {
		p->use_s += p->used;
		p->allocated_s += p->c->rule == EFIG_OURS
					  ? efig_store_allocated(p->store)
				  : p->c->rule == EFIG_POCKET ? p->reserved
							      : p->capacity;
		p->steps++;
	}
	p->now_s += STEP_S;
	if (p->store)
		efig_store_run(p->store, p->now_s);
	return true;
}

static int play(struct play *p)
{
	double sum = 0;
	int err = 0;

	p->capacity = p->w.peak * p->c->capacity;
	for (unsigned t = 0; t < p->w.tenants; t++)
		sum += p->w.tenant_peak[t];
	for (unsigned t = 0; t < p->w.tenants; t++)
		p->tenant_share[t] = p->capacity * p->w.tenant_peak[t] / sum;
	if (p->c->rule == EFIG_OURS)
		err = efig_store_open(&p->w,
				      &(struct efig_store_config){
					      .bytes = p->capacity,
					      .lease_ms = p->c->lease_ms,
					      .block_bytes = p->c->block_bytes,
					      .removes = p->c->removes,
					      .seed = p->c->seed},
				      &p->store);
	/* Twenty times the window, for what never ends. */
	while (!err && p->ended < p->w.jobs && p->now_s < 20 * p->w.window_s)
		err = step(p) ? 0 : -EPROTO;
	return err;
}

int efig_jobs_run(const struct efig_jobs_config *c,
		  struct efig_jobs_result *out)
{
	struct play p = {.c = c};
	int err = efig_work_make(&p.w, c->parts, c->seed);

	if (err)
		return err;
	p.job = calloc(p.w.jobs, sizeof(*p.job));
	err = p.job ? play(&p) : -ENOMEM;
	if (!err)
		*out = (struct efig_jobs_result){
			.times = p.times / fmax(p.ended, 1),
			.use = p.use_s / p.steps / p.capacity,
			.allocated = p.allocated_s / p.steps / p.capacity,
			.surplus = p.allocated_s / fmax(p.use_s, 1) - 1,
			.spilled = p.elsewhere / fmax(p.written, 1),
			.jobs = p.ended,
			.requests =
				p.store ? (double)efig_store_requests(p.store)
					: 0,
		};
	if (p.store)
		efig_store_close(p.store);
	free(p.job);
	efig_work_free(&p.w);
	return err;
}
