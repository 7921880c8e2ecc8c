/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that run in this process: each node of the structure is read, by a load
 * where its memory is mapped and else by a READ, and the same program runs on
 * the copy. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "traverse_priv.h"

static int post(struct aq_walks *w, struct job *j, struct lane *lane,
		uint64_t offset)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)job_node(j),
		.length = j->walk->program->image.load_bytes,
		.lkey = w->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = job_wr_id(w, j),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	wr.wr.rdma.remote_addr = lane->link->addr + offset;
	wr.wr.rdma.rkey = lane->link->rkey;
	return -ibv_post_send(lane->link->qp, &wr, &bad);
}

static bool load(struct job *j, struct lane *lane, uint64_t offset)
{
	const struct aqdv_read r = {
		.remote_addr = lane->link->addr + offset,
		.to = job_node(j),
		.rkey = lane->link->rkey,
		.len_bytes = j->walk->program->image.load_bytes,
	};

	return lane->is_mapped && aqdv_read_now(lane->link->qp, &r, 1) == 1;
}

/* One iteration on what was read. False: the job has ended. */
static bool step(struct aq_walks *w, struct job *j)
{
	uint64_t next;

	j->left--;
	j->result.iterations++;
	switch (walk_program_step(j->walk->program, job_node(j), job_pad(j),
				  &next)) {
	case WALK_STEP_NEXT:
		j->result.at = next;
		if (j->left)
			return true;
		job_loop(w, j);
		return false;
	case WALK_STEP_DONE:
		job_end(w, j, 0);
		return false;
	case WALK_STEP_FAIL:
		j->result.code = next & 0xff;
		job_end(w, j,
			error_set(-ECANCELED, "it gave up with code %u",
				  j->result.code));
		return false;
	case WALK_STEP_FAULT:
		break;
	}
	job_fault(w, j);
	return false;
}

/* The next node, read or asked for. True: it is here. */
static bool fetch(struct aq_walks *w, struct job *j)
{
	struct lane *lane = NULL;
	uint64_t offset;
	int err = lane_find(w, j->place, job_window(j),
			    j->walk->program->image.load_bytes, &lane, &offset);

	if (err) {
		job_no_lane(w, j, lane, err);
		return false;
	}
	j->result.crossings += j->lane && j->lane != lane;
	j->lane = lane;
	if (lane->err) {
		job_wait(w, j);
		return false;
	}
	if (load(j, lane, offset))
		return true;
	err = post(w, j, lane, offset);
	if (err) {
		job_end(w, j,
			error_set(err, "the NIC refused a READ: %s",
				  strerror(-err)));
		return false;
	}
	j->result.requests++;
	job_posted(j, lane);
	return false;
}

void here_go(struct aq_walks *w, struct job *j)
{
	/* Loads take no time to speak of, so the clock is read seldom. */
	while (fetch(w, j) && step(w, j))
		if (j->left % TRAVERSE_CLOCK_EVERY == 0 && job_is_late(w, j))
			return;
}

void here_take(struct aq_walks *w, struct job *j)
{
	if (step(w, j))
		here_go(w, j);
}
