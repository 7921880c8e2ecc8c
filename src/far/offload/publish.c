/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling the application: data of reads, then the status of what failed, then
 * the red block, in this order on one queue pair. What follows each other in
 * the read data ring goes in one WRITE.
 */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"

enum {
	RED_AT = offsetof(struct offload_preamble, red),
};

static void add_status(struct offload_session *s, const struct request *r)
{
	uint64_t at = s->map.status_at + (uint64_t)(r - s->request);

	s->mirror[at] = r->err;
	offload_session_ring_add(s, IBV_WR_RDMA_WRITE, at, NULL, 1);
}

/* A run of read data that is contiguous in the ring. */
struct run {
	uint64_t at;
	uint64_t end;
};

static void add_run(struct offload_session *s, struct run *run)
{
	if (run->end > run->at)
		offload_session_ring_add(s, IBV_WR_RDMA_WRITE,
					 s->map.rdata_at + run->at, NULL,
					 (uint32_t)(run->end - run->at));
	run->at = run->end = 0;
}

/* How far this kind can be told with the room there is in the list. */
static uint64_t add_kind(struct offload_session *s, unsigned kind,
			 unsigned room)
{
	const struct wr_list *c = &s->engine->ring_wrs;
	uint64_t seq = s->published[kind];
	struct run run = {0, 0};

	/* One for the run that is open, one for a status. */
	while (seq < s->ready[kind] && c->count + 2 <= room) {
		const struct request *r =
			&s->request[s->order[kind][(seq + 1) & s->map.mask]];

		seq++;
		if (r->err) {
			add_status(s, r);
		} else if (kind == OFFLOAD_RD) {
			uint64_t end = r->near + align_up(r->len_bytes,
							  OFFLOAD_DATA_ALIGN);

			end = u64_min(end, s->map.rdata_bytes);
			if (run.end != r->near)
				add_run(s, &run);
			if (run.end == 0)
				run.at = r->near;
			run.end = end;
		}
	}
	add_run(s, &run);
	return seq;
}

static void move_head(struct offload_session *s)
{
	while (s->head < s->next) {
		struct request *r = &s->request[s->head & s->map.mask];

		if (r->state != REQUEST_READY || r->seq > s->published[r->kind])
			break;
		s->head_reads += r->kind == OFFLOAD_RD;
		s->head++;
		r->state = REQUEST_FREE;
	}
}

static int add_red(struct offload_session *s, enum wr_kind kind)
{
	struct offload_red *red =
		&s->extra->red[s->red_posted % OFFLOAD_RED_SLOTS];
	unsigned first = OFFLOAD_NODES_MAX - s->config.node_count;
	size_t skip = first * sizeof(red->node[0]);

	for (unsigned i = 0; i < s->config.node_count; i++) {
		const struct node *n = &s->node[i];

		/* Until those of whom nobody knows are told. */
		red->node[OFFLOAD_NODES_MAX - 1 - i] =
			n->past.unknown_seq > s->published[OFFLOAD_WR]
				? n->base
				: n->progress;
	}
	red->head = s->head;
	red->head_reads = s->head_reads;
	red->done.reads = (uint32_t)s->published[OFFLOAD_RD];
	red->done.writes = (uint32_t)s->published[OFFLOAD_WR];
	offload_session_ring_add(s, IBV_WR_RDMA_WRITE, RED_AT + skip,
				 (uint8_t *)red + skip,
				 (uint32_t)(sizeof(*red) - skip));
	s->red_posted++;
	return offload_session_ring_post(s, kind);
}

int offload_session_publish_base(struct offload_session *s)
{
	return add_red(s, WR_BASE);
}

static bool is_due(const struct offload_session *s)
{
	const struct offload_engine_config *c = &s->engine->config;
	uint64_t count = s->ready[OFFLOAD_RD] - s->published[OFFLOAD_RD] +
			 s->ready[OFFLOAD_WR] - s->published[OFFLOAD_WR];
	uint64_t batch = s->config.batch ? s->config.batch : c->batch;

	if (count == 0)
		return false;
	/* Nobody waits for company that is not on its way. */
	return count >= batch ||
	       (s->active == 0 && (s->next == s->fetched || s->is_held)) ||
	       s->engine->now_ns >= offload_session_flush_ns(s);
}

uint64_t offload_session_flush_ns(const struct offload_session *s)
{
	uint64_t flush_ns = s->config.flush_ns ? s->config.flush_ns
					       : s->engine->config.flush_ns;

	return s->ready_ns ? s->ready_ns + flush_ns : UINT64_MAX;
}

unsigned offload_session_publish(struct offload_session *s)
{
	uint64_t reads, writes;

	if (!is_due(s) || s->red_posted - s->red_done == OFFLOAD_RED_SLOTS ||
	    offload_session_ring_room(s) < OFFLOAD_POST_MAX)
		return 0;
	reads = add_kind(s, OFFLOAD_RD, OFFLOAD_POST_MAX - 1);
	writes = add_kind(s, OFFLOAD_WR, OFFLOAD_POST_MAX - 1);
	s->published[OFFLOAD_RD] = reads;
	s->published[OFFLOAD_WR] = writes;
	move_head(s);
	s->ready_ns =
		reads < s->ready[OFFLOAD_RD] || writes < s->ready[OFFLOAD_WR]
			? s->engine->now_ns
			: 0;
	engine_count(s->engine, OFFLOAD_C_PUBLICATIONS, 1);
	if (add_red(s, WR_PUBLISH))
		offload_session_break(s, -ECONNRESET);
	/* The application has something to do now, and we to look for. */
	s->probe_gap_ns = s->engine->config.probe_min_ns;
	s->probe_ns = s->engine->now_ns;
	return 1;
}
