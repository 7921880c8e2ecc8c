/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of walks: what one thread has under way, started and taken back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "traverse.h"
#include "traverse_priv.h"

/* ---- the calls ----------------------------------------------------------- */

static void take(struct aq_walks *w, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id;
	struct job *j = &w->job[index];
	int err = client_wc_errno(wc->status);

	/* It may have outlived its job. */
	if (index >= w->depth || j->state != JOB_POSTED ||
	    j->generation != wc->wr_id >> 32)
		return;
	j->lane->busy--;
	j->generation++;
	w->until_ns = j->deadline_ns;
	if (wc->status == IBV_WC_REM_INV_REQ_ERR) {
		j->lane->err = -EOPNOTSUPP;
		job_end(w, j,
			error_set(-EOPNOTSUPP, "node %s executes no walks",
				  client_link_node_name(j->lane->link)));
	} else if (err) {
		j->lane->has_refused |=
			err == -ESTALE && j->result.where == AQ_WALK_THERE;
		job_failed(w, j, err);
	} else if (j->result.where == AQ_WALK_HERE) {
		here_take(w, j);
	} else {
		there_take(w, j);
	}
}

static int give_results(struct aq_walks *w, struct aq_walk_result *results,
			unsigned max_count)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < w->depth && n < max_count && w->ended; i++) {
		struct job *j = &w->job[i];

		if (j->state != JOB_ENDED)
			continue;
		results[n++] = j->result;
		if (j->result.err)
			(void)error_set(j->result.err, "%s", j->words);
		j->state = JOB_FREE;
		j->place->jobs--;
		w->ended--;
		w->pending--;
	}
	return (int)n;
}

int walks_poll(struct aq_walks *w, struct aq_walk_result *results,
	       unsigned max_count, bool may_look)
{
	struct ibv_wc wc[TRAVERSE_DEPTH];
	int n = ibv_poll_cq(w->cq, TRAVERSE_DEPTH, wc);

	if (n < 0)
		return error_set(-EIO, "the completion queue cannot be polled");
	for (int i = 0; i < n; i++)
		take(w, &wc[i]);
	for (uint32_t i = 0; i < w->depth && w->retries; i++)
		if (w->job[i].state == JOB_RETRY)
			job_retry(w, &w->job[i]);
	if (n == 0 && may_look && w->pending > w->ended)
		jobs_look_for_silence(w);
	return give_results(w, results, max_count);
}

int aq_walks_poll(struct aq_walks *w, struct aq_walk_result *results,
		  unsigned max_count)
{
	return walks_poll(w, results, max_count, true);
}

/* Of what is to be written before the walk begins. */
static int check_write(const struct place *p, const struct aq_walk_write *write)
{
	const uint64_t size = p->shape.map.size_bytes;

	if (p->shape.is_read_only)
		return error_set(-EACCES, "region %s was opened read-only",
				 p->shape.name);
	if (write->len_bytes > AQ_WALK_WRITE_MAX)
		return error_set(-EINVAL,
				 "%d bytes at most are written before a walk",
				 AQ_WALK_WRITE_MAX);
	if (write->at > size || write->len_bytes > size - write->at)
		return error_set(-EFAULT, "offset %#llx leads out of region %s",
				 (unsigned long long)write->at, p->shape.name);
	return 0;
}

static int check(const struct aq_walks *w, const struct aq_walk *walk,
		 const struct place *p, uint64_t pad_bytes)
{
	const struct walk_image *image = &walk->program->image;

	if (p->shape.rack != w->rack || walk->rack != w->rack)
		return error_set(-EINVAL,
				 "walk, region and queue are of several racks");
	if (pad_bytes > image->pad_bytes)
		return error_set(-EINVAL,
				 "walk %s has a pad of %u bytes, not %llu",
				 image->name, image->pad_bytes,
				 (unsigned long long)pad_bytes);
	if (image->flags & WALK_STORES && p->shape.is_read_only)
		return error_set(-EACCES,
				 "walk %s stores, and region %s was opened "
				 "read-only",
				 image->name, p->shape.name);
	return 0;
}

struct plan_facts walks_facts(const struct aq_walks *w,
			      const struct aq_walk *walk, const struct place *p)
{
	const struct walk_program *program = walk->program;

	return (struct plan_facts){
		.flags = walk->flags,
		.stores = (program->image.flags & WALK_STORES) != 0,
		.longest = program->facts.longest,
		.load_bytes = program->image.load_bytes,
		.pieces = p->shape.map.piece_count,
		.has_switch = w->has_switch,
		.has_window = p->shape.is_read_only || p->shape.is_revocable,
	};
}

/* Where it runs is decided by the node where it starts. */
int walks_plan(struct aq_walks *w, const struct aq_walk *walk, struct place *p,
	       uint64_t start, struct aq_walk_plan *plan)
{
	const struct walk_program *program = walk->program;
	struct plan_facts f = walks_facts(w, walk, p);
	struct lane *lane;
	uint64_t offset;
	int err = lane_find(w, p,
			    start + (uint64_t)(int64_t)program->image.load_lo,
			    program->image.load_bytes, &lane, &offset);

	*plan = (struct aq_walk_plan){.nodes = p->shape.map.piece_count};
	if (err) /* the job will say why */
		return err;
	f.is_mapped = lane_is_mapped(p, lane);
	f.node = lane->facts;
	return plan_decide(&f, plan);
}

static struct job *free_job(struct aq_walks *w)
{
	for (uint32_t i = 0; i < w->depth; i++)
		if (w->job[i].state == JOB_FREE)
			return &w->job[i];
	return NULL;
}

/* Where it runs; only what may run here or there is weighed. */
static int decide(struct aq_walks *w, const struct aq_walk *walk,
		  struct place *p, uint64_t start, uint32_t *where)
{
	const struct walk_image *image = &walk->program->image;
	struct aq_walk_plan plan;
	struct lane *lane;
	uint64_t offset;
	int err;

	if (walk->flags & AQ_WALK_THERE) {
		err = lane_find(w, p, start + (uint64_t)(int64_t)image->load_lo,
				image->load_bytes, &lane, &offset);
		*where = AQ_WALK_THERE;
		if (err || LIKELY(lane->facts.has_walks))
			return err;
	}
	err = walks_plan(w, walk, p, start, &plan);
	*where = plan.where;
	return err;
}

/* What a job needs to begin. */
static int prepare(struct aq_walks *w, const struct walks_begin *b,
		   struct place **place, uint32_t *where)
{
	int err = place_get(w, b->region, place);

	if (!err)
		err = check(w, b->walk, *place, b->send_bytes);
	if (!err)
		err = decide(w, b->walk, *place, b->start, where);
	if (err != -EFAULT)
		return err;
	/* A start outside of the region fails as a pointer does. */
	*where = AQ_WALK_HERE;
	return 0;
}

uint64_t walks_deadline_ns(const struct aq_walks *w)
{
	return client_keep_now_ns(w->rack) +
	       1000000ull * aq_rack_deadline(w->rack);
}

/* What is to be written goes with the request, or is written now. */
static int take_write(struct job *j, const struct aq_walk_write *write)
{
	if (!write || !write->len_bytes)
		return 0;
	if (j->result.where == AQ_WALK_HERE)
		return aq_write(j->place->region, write->at, write->bytes,
				write->len_bytes);
	memcpy(job_node(j), write->bytes, write->len_bytes);
	j->write_at = write->at;
	j->write_bytes = (uint32_t)write->len_bytes;
	return 0;
}

/* But for the words, which are long, and written when it fails. */
static void clear(struct job *j)
{
	const uint32_t generation = j->generation;
	uint8_t *area = j->area;

	memset(j, 0, offsetof(struct job, words));
	j->area = area;
	j->generation = generation;
}

static void begin(const struct aq_walks *w, struct job *j, struct place *p,
		  uint32_t where, const struct walks_begin *b)
{
	clear(j);
	j->generation++;
	j->walk = b->walk;
	j->place = p;
	j->left = b->walk->iterations;
	j->deadline_ns = w->until_ns;
	j->start = b->start;
	j->pad = b->back;
	j->pad_bytes = (uint32_t)b->back_bytes;
	j->has_bytes = j->send_bytes = (uint32_t)b->send_bytes;
	j->piece = NO_PIECE;
	j->result.user = b->user;
	j->result.at = b->start;
	j->result.where = where;
}

int walks_submit(struct aq_walks *w, const struct walks_begin *b)
{
	struct job *j = free_job(w);
	struct place *p;
	uint32_t where;
	int err;

	if (!j)
		return error_set(-EAGAIN, "%u walks are under way; poll first",
				 w->depth);
	w->until_ns = b->until_ns ? b->until_ns : walks_deadline_ns(w);
	err = prepare(w, b, &p, &where);
	/* Perhaps it has only changed since somebody looked at it. */
	if (err == -ESTALE) {
		err = client_keep_refresh(b->region, w->until_ns);
		if (!err)
			err = prepare(w, b, &p, &where);
	}
	if (!err && b->write)
		err = check_write(p, b->write);
	if (err)
		return err;
	begin(w, j, p, where, b);
	err = take_write(j, b->write);
	if (err)
		return err;
	p->jobs++;
	w->pending++;
	if (b->send_bytes)
		memcpy(job_pad(j), b->pad, b->send_bytes);
	/* Elsewhere the node has zeros in its place, and they come back. */
	if (where == AQ_WALK_HERE)
		job_pad_fill(j);
	job_go(w, j);
	return 0;
}

int aq_walks_submit(struct aq_walks *w, struct aq_walk *walk,
		    struct aq_region *region, uint64_t start, void *pad,
		    size_t pad_bytes, void *user)
{
	return aq_walks_submit_after(w, walk, region, NULL, start, pad,
				     pad_bytes, user);
}

int aq_walks_submit_after(struct aq_walks *w, struct aq_walk *walk,
			  struct aq_region *region,
			  const struct aq_walk_write *write, uint64_t start,
			  void *pad, size_t pad_bytes, void *user)
{
	return walks_submit(w, &(struct walks_begin){
				       .walk = walk,
				       .region = region,
				       .write = write,
				       .start = start,
				       .pad = pad,
				       .send_bytes = pad_bytes,
				       .back = pad,
				       .back_bytes = pad_bytes,
				       .user = user,
			       });
}

uint32_t aq_walks_pending(const struct aq_walks *w)
{
	return w->pending;
}

/* ---- life ---------------------------------------------------------------- */

static int make_memory(struct aq_walks *w)
{
	const struct client_verbs *v = w->device.verbs;
	size_t bytes = (size_t)w->depth * TRAVERSE_JOB_BYTES;

	w->job = calloc(w->depth, sizeof(*w->job));
	w->memory = aligned_alloc(4096, bytes);
	if (!w->job || !w->memory)
		return error_set(-ENOMEM, "no memory for walks");
	memset(w->memory, 0, bytes);
	for (uint32_t i = 0; i < w->depth; i++)
		w->job[i].area = w->memory + (size_t)i * TRAVERSE_JOB_BYTES;
	w->mr = v->reg_mr(w->device.pd, w->memory, bytes,
			  IBV_ACCESS_LOCAL_WRITE);
	if (w->mr)
		w->cq = v->create_cq(w->device.context,
				     (int)(2 * w->depth + TRAVERSE_DEPTH), NULL,
				     NULL, 0);
	return w->cq ? 0
		     : error_set(-ENOMEM, "the NIC has no more queues or keys");
}

int aq_walks_open(struct aq_rack *rack, uint32_t depth, struct aq_walks **walks)
{
	struct aq_walks *w;
	int err;

	if (depth > AQ_WALKS_DEPTH_MAX)
		return error_set(-EINVAL, "%d walks at most are under way",
				 AQ_WALKS_DEPTH_MAX);
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, "no memory for walks");
	w->rack = rack;
	w->depth = depth ? depth : TRAVERSE_DEPTH;
	w->has_switch = client_keep_has_program(rack, "walk");
	err = client_keep_device(rack, &w->device);
	if (!err)
		err = make_memory(w);
	if (err) {
		aq_walks_close(w);
		return err;
	}
	*walks = w;
	return 0;
}

void aq_walks_close(struct aq_walks *w)
{
	const struct client_caller *caller;

	if (!w)
		return;
	/* In a child all that the NIC has is the parent's. */
	if (client_keep_caller(w->rack, &caller) == -ESTALE) {
		w->cq = NULL;
		w->mr = NULL;
	}
	for (unsigned i = 0; i < TRAVERSE_PLACES; i++)
		if (w->place[i].region)
			place_close(&w->place[i]);
	if (w->cq)
		(void)w->device.verbs->destroy_cq(w->cq);
	if (w->mr)
		(void)w->device.verbs->dereg_mr(w->mr);
	free(w->memory);
	free(w->job);
	free(w);
}
