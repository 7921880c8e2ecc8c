/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of stages as files of the rack: jobs with plans, objects, growth,
 * renewals and the end, as a client asks for them; records go into shipped
 * blocks, whose bytes nobody writes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efig_costs.h"
#include "efig_jobs.h"
#include "efig_rack.h"

enum {
	RUN_MAX = 64,	  /* blocks that come at a time */
	PATHS_MAX = 1000, /* renewed at a time */
	STARTED = 1000000000,
};

struct file {
	struct efig_place *block;
	unsigned blocks, at; /* the one that is written */
	unsigned room;	     /* of block[] */
	uint64_t spill_left; /* room of its block on the slower tier */
	uint64_t sequence;
};

struct work {
	bool is_active, is_named;
	unsigned stage;
	struct file *file; /* of the stage that runs, one of each task */
};

struct efig_store {
	const struct efig_work *w;
	struct efig_rack *rack;
	struct work *job;
	uint64_t lease_ms, block_bytes;
	bool removes; /* else the lease ends it */
	uint64_t start_ns, renewed_ns;
	unsigned first; /* no job before it is active */
	unsigned last;	/* nor behind this */
};

/* ---- names --------------------------------------------------------------- */

static json_t *plan_of(const struct efig_job *j)
{
	json_t *plan = json_object();
	char name[16], before[16];

	for (unsigned i = 0; i < j->stages; i++) {
		json_t *parents = json_array();

		(void)snprintf(name, sizeof(name), "s%u", i);
		(void)snprintf(before, sizeof(before), "s%u", i - 1);
		if (i)
			(void)json_array_append_new(parents,
						    json_string(before));
		(void)json_object_set_new(plan, name, parents);
	}
	return plan;
}

bool efig_store_job(struct efig_store *s, unsigned job)
{
	const struct efig_job *j = &s->w->job[job];
	char name[16];

	(void)snprintf(name, sizeof(name), "j%u", job);
	if (efig_rack_ask(s->rack, j->tenant, CTL_POST, "/v1/jobs",
			  json_pack("{s:s, s:I, s:s, s:o}", "name", name,
				    "lease_ms", (json_int_t)s->lease_ms,
				    "on_expiry", "drop", "plan", plan_of(j)),
			  NULL) != 201)
		return false;
	s->job[job].is_named = s->job[job].is_active = true;
	s->last = job + 1 > s->last ? job + 1 : s->last;
	return true;
}

static void path_of(unsigned job, unsigned stage, unsigned file, char out[64])
{
	(void)snprintf(out, 64, "/j%u/s%u/f%u", job, stage, file);
}

static void end_files(struct efig_store *s, unsigned job)
{
	struct work *k = &s->job[job];

	for (unsigned i = 0; k->file && i < s->w->job[job].tasks; i++)
		free(k->file[i].block);
	free(k->file);
	k->file = NULL;
}

/* Nobody reads the output of that stage any more. */
static void remove_output(struct efig_store *s, unsigned job, unsigned stage)
{
	const struct efig_job *j = &s->w->job[job];
	char path[64], full[80];

	for (unsigned i = 0; j->stage[stage].bytes && i < j->tasks; i++) {
		path_of(job, stage, i, path);
		(void)snprintf(full, sizeof(full), "/v1/ns%s", path);
		(void)efig_rack_ask(s->rack, j->tenant, CTL_DELETE, full, NULL,
				    NULL);
	}
}

bool efig_store_stage(struct efig_store *s, unsigned job, unsigned stage)
{
	const struct efig_job *j = &s->w->job[job];
	struct work *k = &s->job[job];
	char path[64], full[80];

	end_files(s, job);
	k->stage = stage;
	if (stage >= 2 && s->removes)
		remove_output(s, job, stage - 2);
	if (!j->stage[stage].bytes)
		return true;
	k->file = calloc(j->tasks, sizeof(*k->file));
	for (unsigned i = 0; k->file && i < j->tasks; i++) {
		path_of(job, stage, i, path);
		(void)snprintf(full, sizeof(full), "/v1/ns%s", path);
		if (efig_rack_ask(s->rack, j->tenant, CTL_POST, full,
				  json_pack("{s:s, s:I}", "kind", "file",
					    "block_bytes",
					    (json_int_t)s->block_bytes),
				  NULL) != 201)
			return false;
	}
	return k->file;
}

void efig_store_end(struct efig_store *s, unsigned job)
{
	char full[40];

	end_files(s, job);
	(void)snprintf(full, sizeof(full), "/v1/ns/j%u", job);
	(void)efig_rack_ask(s->rack, s->w->job[job].tenant, CTL_DELETE, full,
			    json_pack("{s:b}", "recursive", 1), NULL);
	s->job[job].is_active = false;
	while (s->first < s->last && s->job[s->first].is_named &&
	       !s->job[s->first].is_active)
		s->first++;
}

/* ---- writing ------------------------------------------------------------- */

/* The next block of the file; false: it lies on the slower tier. */
static bool grow(struct efig_store *s, unsigned job, unsigned at,
		 struct file *f)
{
	const struct efig_job *j = &s->w->job[job];
	struct efig_place more[RUN_MAX], *list;
	unsigned count;
	char path[64];

	path_of(job, s->job[job].stage, at, path);
	if (efig_rack_grow(s->rack, j->tenant, path,
			   f->blocks ? (int64_t)f->block[f->blocks - 1].number
				     : -1,
			   more, RUN_MAX, &count))
		return false;
	list = realloc(f->block, (f->blocks + count) * sizeof(*list));
	if (!list)
		return false;
	memcpy(list + f->blocks, more, count * sizeof(*more));
	f->block = list;
	f->blocks += count;
	return true;
}

/* One record, as a client appends it; false: this block takes no more. */
static bool append(struct efig_store *s, struct file *f, uint32_t bytes)
{
	struct blk_block *b = efig_rack_block(s->rack, &f->block[f->at]);
	uint8_t session[BLOCK_SESSION_BYTES] = {1};
	struct blk_request q = {.session = session,
				.acked = f->sequence,
				.opcode = BLOCK_APPEND,
				.sequence = f->sequence + 1,
				.length = bytes};
	struct blk_answer a;

	if (!b)
		return false;
	q.arg = b->file.start;
	if (!blk_begin(b, &q, &a))
		return false;
	blk_finish(b, &q, &a);
	f->sequence++;
	return a.status == BLOCK_OK;
}

/* Whether the record is in memory. */
static bool write_record(struct efig_store *s, unsigned job, unsigned at,
			 uint32_t bytes)
{
	struct file *f = &s->job[job].file[at];

	if (f->spill_left >= bytes) {
		f->spill_left -= bytes;
		return false;
	}
	while (f->at < f->blocks) {
		if (append(s, f, bytes))
			return true;
		f->at++;
		f->sequence = 0;
	}
	if (grow(s, job, at, f) && append(s, f, bytes))
		return true;
	f->spill_left = s->block_bytes;
	return false;
}

uint64_t efig_store_write(struct efig_store *s, unsigned job, unsigned stage,
			  uint64_t bytes)
{
	const struct efig_job *j = &s->w->job[job];
	uint64_t each = bytes / j->tasks, found = 0;

	if (!bytes || !s->job[job].file)
		return bytes;
	for (unsigned i = 0; i < j->tasks; i++) {
		uint64_t left = each + (i ? 0 : bytes % j->tasks);

		while (left) {
			uint64_t n = u64_min(left, efig_costs.record_bytes);

			found += write_record(s, job, i, (uint32_t)n) ? n : 0;
			left -= n;
		}
	}
	return found;
}

/* ---- time ---------------------------------------------------------------- */

static void renew_tenant(struct efig_store *s, unsigned tenant, json_t *paths)
{
	if (json_array_size(paths))
		(void)efig_rack_ask(s->rack, tenant, CTL_POST, "/v1/renew",
				    json_pack("{s:o}", "paths", paths), NULL);
	else
		json_decref(paths);
}

/* Each tenant's program renews what its jobs do now. */
static void renew(struct efig_store *s)
{
	json_t *paths[EFIG_TENANTS_MAX];
	char path[40];

	for (unsigned t = 0; t < s->w->tenants; t++)
		paths[t] = json_array();
	for (unsigned i = s->first; i < s->last; i++) {
		unsigned t = s->w->job[i].tenant;

		if (!s->job[i].is_active ||
		    json_array_size(paths[t]) >= PATHS_MAX)
			continue;
		(void)snprintf(path, sizeof(path), "/j%u/s%u", i,
			       s->job[i].stage);
		(void)json_array_append_new(paths[t], json_string(path));
	}
	for (unsigned t = 0; t < s->w->tenants; t++)
		renew_tenant(s, t, paths[t]);
}

void efig_store_run(struct efig_store *s, double now_s)
{
	uint64_t now = s->start_ns + (uint64_t)(now_s * 1e9);

	efig_rack_run(s->rack, now);
	if (now - s->renewed_ns >= s->lease_ms * 1000000 / 3) {
		s->renewed_ns = now;
		renew(s);
	}
}

double efig_store_allocated(const struct efig_store *s)
{
	return (double)efig_rack_allocated(s->rack);
}

uint64_t efig_store_requests(const struct efig_store *s)
{
	return efig_rack_requests(s->rack);
}

int efig_store_open(const struct efig_work *w,
		    const struct efig_store_config *c, struct efig_store **out)
{
	struct efig_rack_config config = {
		.nodes = (unsigned)efig_costs.servers,
		.tenants = w->tenants,
		.node_bytes = (uint64_t)(c->bytes / (double)efig_costs.servers),
		.seed = c->seed,
	};
	struct efig_store *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return err;
	*s = (struct efig_store){.w = w,
				 .lease_ms = c->lease_ms,
				 .block_bytes = c->block_bytes,
				 .removes = c->removes,
				 .start_ns = 4ull * STARTED};
	s->job = calloc(w->jobs, sizeof(*s->job));
	if (s->job)
		err = efig_rack_open(&config, &s->rack);
	if (err) {
		free(s->job);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void efig_store_close(struct efig_store *s)
{
	for (unsigned i = 0; i < s->w->jobs; i++)
		end_files(s, i);
	efig_rack_close(s->rack);
	free(s->job);
	free(s);
}
