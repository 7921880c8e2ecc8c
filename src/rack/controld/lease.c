/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: LIVE for a period after the last renewal, GRACE for another one, then
 * EXPIRED: the objects there go to the vault or are dropped, as their job has
 * it, and a job of which nothing lives any more, and that has no images, goes
 * altogether.
 *
 * Renewing sets one stamp. A prefix lives by its own stamp, by those of its
 * children (what reads its data) and by those of all that is above it; so a
 * renewal reaches the prefix, its parents and its descendants, and not the
 * parents of its parents. One pass over a job, parents first, finds all that.
 */
#include "base/env.h"
#include "base/log.h"
#include "base/plant.h"
#include "vault_priv.h"

void cd_lease_renew(struct cd_core *core, struct cd_prefix *p)
{
	p->renewed_ns = core->tree->lease_ns;
	p->life = CD_LIVE;
	/* What was expired may live again. */
	p->job->due_ns = 0;
}

/* ---- one pass ----------------------------------------------------------- */

static uint64_t stamp_of(const struct cd_prefix *p)
{
	uint64_t stamp = p->above_ns;

	for (unsigned i = 0; i < p->child_count; i++)
		stamp = u64_max(stamp, p->child[i]->renewed_ns);
	return stamp;
}

static uint64_t period_ns(const struct cd_job *job)
{
	return job->lease_ms * 1000000ull;
}

static enum cd_life life_at(const struct cd_job *job, uint64_t stamp,
			    uint64_t now)
{
	uint64_t age = now > stamp ? now - stamp : 0;

	if (job->keep || age < period_ns(job))
		return CD_LIVE;
	return age < 2 * period_ns(job) ? CD_GRACE : CD_EXPIRED;
}

static uint64_t next_due(const struct cd_job *job, uint64_t stamp,
			 enum cd_life life)
{
	return life == CD_LIVE	  ? stamp + period_ns(job)
	       : life == CD_GRACE ? stamp + 2 * period_ns(job)
				  : UINT64_MAX;
}

void cd_lease_look(struct cd_core *core, struct cd_job *job)
{
	uint64_t now = core->tree->lease_ns;

	/* Nothing was renewed and no time has passed since the last look. */
	if (job->due_ns && job->looked_ns == now)
		return;
	job->looked_ns = now;
	job->due_ns = UINT64_MAX;
	for (unsigned i = 0; i < job->count; i++) {
		struct cd_prefix *p = job->order[i];

		p->above_ns = p->renewed_ns;
		for (unsigned k = 0; k < p->parent_count; k++)
			p->above_ns =
				u64_max(p->above_ns, p->parent[k]->above_ns);
	}
	for (unsigned i = 0; i < job->count; i++) {
		struct cd_prefix *p = job->order[i];
		uint64_t stamp = stamp_of(p);
		enum cd_life before = p->life;

		p->life = life_at(job, stamp, now);
		/* Who looks may be the first to see it; the next tick drops it.
		 */
		job->has_expired |= p->life == CD_EXPIRED && before != p->life;
		job->due_ns =
			u64_min(job->due_ns, next_due(job, stamp, p->life));
	}
}

json_t *cd_lease_json(struct cd_core *core, const struct cd_prefix *p)
{
	static const char *const lives[] = {"live", "grace", "expired"};
	uint64_t now = core->tree->lease_ns, end;

	cd_lease_look(core, p->job);
	if (p->job->keep)
		return json_pack("{s:s}", "state", "kept");
	end = next_due(p->job, stamp_of(p), p->life);
	return json_pack("{s:s, s:I, s:i}", "state", lives[p->life], "left_ms",
			 end == UINT64_MAX || end < now
				 ? (json_int_t)0
				 : cd_int((end - now) / 1000000),
			 "period_ms", (int)p->job->lease_ms);
}

/* ---- the end ------------------------------------------------------------ */

/* Whether there is anything that the lease of a prefix could still end. */
static bool has_ended(const struct cd_prefix *p)
{
	const struct cd_object *o = p->objects;

	while (o && p->job->flush && o->state != CD_READY)
		o = o->next;
	return !o;
}

static void end_objects(struct cd_core *core, struct cd_prefix *p)
{
	char path[CTL_PATH_MAX];

	if (has_ended(p))
		return;
	cd_path_format(p, NULL, path);
	log_info("controld", "the lease of %s of %s is over", path,
		 p->job->tenant);
	core->tree->expired++;
	for (struct cd_object *next, *o = p->objects; o; o = next) {
		next = o->next;
		if (p->job->flush && cd_flush_expire(core, o))
			continue;
		cd_unstage_id(core, "object", o->id);
		cd_stage_part(core);
		cd_object_remove(core, o);
	}
}

static bool has_objects(const struct cd_job *job)
{
	for (unsigned i = 0; i < job->count; i++)
		if (job->order[i]->objects)
			return true;
	return false;
}

static void look_after(struct cd_core *core, struct cd_job *job)
{
	bool lives = false;

	cd_lease_look(core, job);
	job->has_expired = false;
	for (unsigned i = 0; i < job->count; i++)
		lives |= job->order[i]->life != CD_EXPIRED;
	for (unsigned i = 0; i < job->count; i++)
		if (job->order[i]->life == CD_EXPIRED && job->flush)
			end_objects(core, job->order[i]);
	if (!lives && (!job->flush || !has_objects(job))) {
		log_info("controld", "the lease of /%s of %s is over",
			 job->name, job->tenant);
		core->tree->expired++;
		cd_unstage_job(core, job);
		cd_stage_part(core);
		cd_job_free(core, job);
		return;
	}
	for (unsigned i = 0; i < job->count; i++)
		if (job->order[i]->life == CD_EXPIRED && !job->flush)
			end_objects(core, job->order[i]);
}

/* Time counts while renewals can be heard: not while another one may lead, nor
 * while this process was stopped. */
static bool run_clock(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;
	uint64_t now = env_now_ns(core->env);
	uint64_t gone = now - tree->ticked_ns;
	bool stood = !tree->ticked_ns;

	if (!cd_core_is_sure(core)) {
		tree->ticked_ns = 0;
		return false;
	}
	tree->ticked_ns = now;
	if (!stood)
		tree->lease_ns += u64_min(gone, 2 * CD_TICK_MS * 1000000ull);
	return !stood;
}

void cd_lease_tick(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;

	if (!run_clock(core))
		return;
	for (unsigned i = 0; i < ARRAY_LEN(tree->jobs); i++) {
		struct cd_job *next, *job = tree->jobs[i];

		for (; job; job = next) {
			next = job->next;
			if (job->due_ns <= tree->lease_ns || job->has_expired)
				look_after(core, job);
		}
	}
}

void cd_tree_lead(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;

	/* The clock stands until this leader is sure. */
	tree->ticked_ns = 0;
	for (size_t i = 0; i < tree->prefixes.count; i++) {
		struct cd_prefix *p = tree->prefixes.row[i].thing;

		p->renewed_ns = PLANTED(ctl_old_lease) ? 0 : tree->lease_ns;
		p->job->due_ns = 0;
	}
}
