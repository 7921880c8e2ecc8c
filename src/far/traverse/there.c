/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that run on memory nodes: asking, and what the answer means. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "traverse_priv.h"

/* What is to be written first, if it is for the same node: it goes with the
 * request, and completes as that only if it fails. Repeating it does no harm,
 * because nothing leads there yet. */
static int write_first(const struct aq_walks *w, struct job *j,
		       const struct lane *lane, struct ibv_sge *sge,
		       struct ibv_send_wr *wr, struct ibv_send_wr **out)
{
	const struct client_map *m = &j->place->shape.map;
	struct client_spot spot;

	*out = NULL;
	if (LIKELY(!j->write_bytes))
		return 0;
	spot = client_map_find(m, j->write_at, j->write_bytes);
	if (spot.piece != lane->piece || spot.len_bytes != j->write_bytes)
		return aq_write(j->place->region, j->write_at, job_node(j),
				j->write_bytes);
	*sge = (struct ibv_sge){.addr = (uintptr_t)job_node(j),
				.length = j->write_bytes,
				.lkey = w->mr->lkey};
	*wr = (struct ibv_send_wr){
		.wr_id = job_wr_id(w, j),
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = lane->link->addr + spot.offset,
			    .rkey = lane->link->rkey}};
	*out = wr;
	return 0;
}

static int post(struct aq_walks *w, struct job *j, struct lane *lane,
		struct ibv_send_wr *before)
{
	const struct walk_image *image = &j->walk->program->image;
	struct ibv_sge sge = {
		.addr = (uintptr_t)j->area,
		.length = AQDV_WALK_RESULT_BYTES + image->pad_bytes,
		.lkey = w->mr->lkey,
	};
	struct aqdv_walk_wr *bad,
		wr = {
			.wr_id = job_wr_id(w, j),
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.at = j->result.at,
			.program = image->hash,
			.rkey = lane->link->rkey,
			.iterations = (uint32_t)u64_min(j->left, UINT32_MAX),
			.send_bytes = j->send_bytes,
			.flags = j->is_forwarded ? AQDV_WALK_FORWARD : 0,
			.before = before,
		};

	return aqdv_post_walk(lane->link->qp, &wr, &bad);
}

/* Whether the switch may carry it on; that takes a lane for it alone. */
static bool may_forward(struct aq_walks *w, const struct job *j,
			struct lane **lane)
{
	const struct plan_facts f = walks_facts(w, j->walk, j->place);

	return !j->stays && !(*lane)->err &&
	       plan_cross(&f) == AQ_WALK_CROSS_SWITCH &&
	       lane_find_free(w, j->place, lane);
}

void there_go(struct aq_walks *w, struct job *j)
{
	const struct walk_image *image = &j->walk->program->image;
	struct lane *lane = NULL;
	struct ibv_send_wr wr, *before;
	struct ibv_sge sge;
	uint64_t offset;
	int err = lane_find(w, j->place, job_window(j), image->load_bytes,
			    &lane, &offset);

	if (err) {
		job_no_lane(w, j, lane, err);
		return;
	}
	j->is_forwarded = may_forward(w, j, &lane);
	if (j->piece != NO_PIECE && j->piece != lane->piece)
		j->result.crossings++;
	j->piece = lane->piece;
	j->lane = lane;
	if (lane->err) {
		job_wait(w, j);
		return;
	}
	err = write_first(w, j, lane, &sge, &wr, &before);
	if (err) {
		job_end(w, j, err);
		return;
	}
	err = post(w, j, lane, before);
	if (!err) {
		j->result.requests++;
		j->has_stored |= (image->flags & WALK_STORES) != 0;
		job_posted(j, lane);
	} else if (err == -EINVAL || err == -EMSGSIZE) {
		job_end(w, j,
			error_set(-EMSGSIZE,
				  "its pad of %u bytes does not fit into a "
				  "packet to node %s",
				  image->pad_bytes,
				  client_link_node_name(lane->link)));
	} else {
		job_end(w, j,
			error_set(err, "the NIC refused a walk: %s",
				  strerror(-err)));
	}
}

/* The node has lost it, or has never had it. */
static void give_program(struct aq_walks *w, struct job *j)
{
	struct lane *lane;
	uint64_t offset;
	/* Not where it was sent, if the switch carried it on. */
	int err = lane_find(w, j->place, job_window(j),
			    j->walk->program->image.load_bytes, &lane, &offset);

	if (!err &&
	    ++j->installs > TRAVERSE_INSTALLS * j->place->shape.map.piece_count)
		err = error_set(-EREMOTEIO,
				"node %s forgets it as soon as it is there",
				client_link_node_name(lane->link));
	if (!err)
		err = install(w, j->walk, lane);
	if (err)
		job_end(w, j, err);
	else
		there_go(w, j);
}

/* The walk stands at another node, or at the end of what one request may. An
 * answer that did nothing is possible where the map has changed. */
static void go_on(struct aq_walks *w, struct job *j, uint64_t at,
		  uint32_t iterations)
{
	j->idle = iterations ? 0 : j->idle + 1;
	j->result.at = at;
	if (j->left == 0)
		job_loop(w, j);
	else if (job_is_late(w, j))
		return;
	else if (j->idle >= TRAVERSE_IDLE)
		job_end(w, j,
			error_set(-EREMOTEIO,
				  "the nodes do not agree who has offset %#llx",
				  (unsigned long long)at));
	else
		there_go(w, j);
}

/* Either it never had it, or the key was taken back on the way: what was done
 * until then is done, and it goes on from there with another key. */
static void lost_right(struct aq_walks *w, struct job *j,
		       const struct aqdv_walk_result *r)
{
	j->lane->err = -ESTALE;
	if (r->took == 0 && j->place->shape.is_read_only) {
		job_end(w, j, error_set(-EACCES, "the node lets it only read"));
		return;
	}
	j->result.at = r->at;
	job_failed(w, j, -ESTALE);
}

/* Which nodes it was at meanwhile, only the switch knows. */
static void count_hops(struct job *j, const struct aqdv_walk_result *r)
{
	if (r->hops == 0 || r->hops == AQDV_WALK_STAYS)
		return;
	j->result.crossings += r->hops;
	j->result.carried += r->hops;
	if (r->status == AQDV_WALK_ELSEWHERE)
		j->result.crossings++;
	j->piece = NO_PIECE;
}

void there_take(struct aq_walks *w, struct job *j)
{
	struct aqdv_walk_result r;
	uint64_t took;

	memcpy(&r, j->area, sizeof(r));
	count_hops(j, &r);
	took = u64_min(r.took, j->left);
	j->result.iterations += took;
	j->left -= took;
	j->has_bytes = r.pad_bytes;
	job_pad_fill(j);
	j->send_bytes = j->has_bytes;
	if (r.took)
		j->write_bytes = 0;
	if (r.status != AQDV_WALK_NO_PROGRAM)
		j->installs = 0;
	switch ((enum aqdv_walk_status)r.status) {
	case AQDV_WALK_DONE:
		j->result.at = r.at;
		job_end(w, j, 0);
		return;
	case AQDV_WALK_MORE:
	case AQDV_WALK_ELSEWHERE:
		go_on(w, j, r.at, r.took);
		return;
	case AQDV_WALK_FAULT:
		j->result.at = r.at;
		job_fault(w, j);
		return;
	case AQDV_WALK_FAIL:
		j->result.code = r.at & 0xff;
		job_end(w, j,
			error_set(-ECANCELED, "it gave up with code %u",
				  j->result.code));
		return;
	case AQDV_WALK_NO_PROGRAM:
		j->result.at = r.at;
		give_program(w, j);
		return;
	case AQDV_WALK_NO_RIGHT:
		lost_right(w, j, &r);
		return;
	}
	job_end(w, j,
		error_set(-EPROTO, "node %s answered with status %u",
			  client_link_node_name(j->lane->link), r.status));
}
