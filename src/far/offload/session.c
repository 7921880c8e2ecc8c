/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life: the first look at the rings, what a predecessor left, then
 * probes and fetches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/log.h"
#include "client/verbs_api.h"
#include "engine_priv.h"
#include "wire/wire.h"

enum {
	GREEN_AT = offsetof(struct offload_preamble, green),
	STATE_AT = offsetof(struct offload_preamble, state),
};

/* ---- towards the application -------------------------------------------- */

uint32_t offload_session_ring_room(const struct offload_session *s)
{
	return OFFLOAD_RING_DEPTH - (s->ring_posted - s->ring_done);
}

void offload_session_ring_add(struct offload_session *s,
			      enum ibv_wr_opcode opcode, uint64_t at,
			      const void *local, uint32_t len_bytes)
{
	struct wr_list *c = &s->engine->ring_wrs;
	struct ibv_send_wr *wr = &c->wr[c->count];

	c->sge[c->count] = (struct ibv_sge){
		.addr = local ? (uintptr_t)local : (uintptr_t)s->mirror + at,
		.length = len_bytes,
		.lkey = s->mr->lkey};
	/* For the case that it fails; only the last of the list is
	 * signalled. */
	wr->wr_id = offload_session_wr_id(s, WR_NOTE, 0, 0);
	wr->next = wr + 1;
	wr->sg_list = &c->sge[c->count];
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->send_flags = 0;
	wr->wr.rdma.remote_addr = s->config.ring_addr + at;
	wr->wr.rdma.rkey = s->config.ring_rkey;
	c->count++;
}

int offload_session_ring_post(struct offload_session *s, enum wr_kind kind)
{
	struct wr_list *c = &s->engine->ring_wrs;
	struct ibv_send_wr *bad;
	unsigned last = c->count - 1;

	s->ring_posted += c->count;
	c->wr[last].next = NULL;
	c->wr[last].send_flags = IBV_SEND_SIGNALED;
	c->wr[last].wr_id = offload_session_wr_id(s, kind, 0, s->ring_posted);
	c->count = 0;
	return ibv_post_send(s->config.ring_qp, c->wr, &bad) ? -ECONNRESET : 0;
}

void offload_session_break(struct offload_session *s, int err)
{
	if (s->err)
		return;
	s->err = err;
	log_info("offload", "session %u of the engine breaks: %s", s->index,
		 error_text(err));
	engine_count(s->engine, OFFLOAD_C_BROKEN, 1);
	s->extra->note = (struct offload_state){.epoch = s->config.epoch,
						.err = (uint32_t)-err};
	s->engine->ring_wrs.count = 0;
	if (err == -ECONNRESET || offload_session_ring_room(s) == 0)
		return;
	offload_session_ring_add(s, IBV_WR_RDMA_WRITE, STATE_AT,
				 &s->extra->note, sizeof(s->extra->note));
	/* If this fails too, the application notices by itself. */
	(void)offload_session_ring_post(s, WR_NOTE);
}

/* ---- asking ------------------------------------------------------------- */

int offload_session_start(struct offload_session *s)
{
	offload_session_ring_add(s, IBV_WR_RDMA_READ, 0, NULL,
				 sizeof(struct offload_preamble));
	s->is_asking = true;
	return offload_session_ring_post(s, WR_PREAMBLE);
}

/* READs [from, to) of a ring; the counts never wrap, the ring does. */
static void add_range(struct offload_session *s, uint64_t ring_at,
		      uint64_t ring_bytes, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t at = from % ring_bytes;
		uint64_t len = u64_min(to - from, ring_bytes - at);

		offload_session_ring_add(s, IBV_WR_RDMA_READ, ring_at + at,
					 NULL, (uint32_t)len);
		from += len;
	}
}

static int fetch(struct offload_session *s, uint64_t wdata_from,
		 uint64_t wdata_to)
{
	const uint64_t size = sizeof(struct offload_meta);

	add_range(s, s->map.meta_at, s->map.entries * size, s->fetched * size,
		  s->fetching * size);
	add_range(s, s->map.wdata_at, s->map.wdata_bytes, wdata_from, wdata_to);
	s->is_asking = true;
	engine_count(s->engine, OFFLOAD_C_FETCHES, 1);
	return offload_session_ring_post(s, WR_FETCH);
}

unsigned offload_session_probe(struct offload_session *s)
{
	const uint64_t size = sizeof(struct offload_meta);

	/* Who has not begun what is known need not know more. */
	if (s->is_asking || s->next < s->fetched ||
	    s->engine->now_ns < s->probe_ns || offload_session_ring_room(s) < 4)
		return 0;
	offload_session_ring_add(s, IBV_WR_RDMA_READ, GREEN_AT, NULL,
				 sizeof(struct offload_green));
	/*
	 * Of an application that is busy, what will be announced is fetched
	 * right behind the word that announces it: the READs are executed in
	 * order, so what that word covers is complete, and one round trip is
	 * saved.
	 */
	s->guess = s->probe_gap_ns <= OFFLOAD_AHEAD_GAP_NS ? s->ahead : 0;
	add_range(s, s->map.meta_at, s->map.entries * size, s->fetched * size,
		  (s->fetched + s->guess) * size);
	s->is_asking = true;
	engine_count(s->engine, OFFLOAD_C_PROBES, 1);
	if (offload_session_ring_post(s, WR_PROBE))
		offload_session_break(s, -ECONNRESET);
	return 1;
}

/* Nothing new: the longer that lasts, the more rarely we ask. */
static void ask_later(struct offload_session *s)
{
	const struct offload_engine_config *c = &s->engine->config;
	uint64_t max_ns =
		s->active ? u64_min(OFFLOAD_PROBE_BUSY_NS, c->probe_max_ns)
			  : c->probe_max_ns;

	engine_count(s->engine, OFFLOAD_C_PROBES_EMPTY, 1);
	s->probe_ns = s->engine->now_ns + s->probe_gap_ns;
	/* Quickly to what costs little, then slowly to next to nothing. */
	s->probe_gap_ns += s->probe_gap_ns < OFFLOAD_PROBE_SLOW_NS
				   ? s->probe_gap_ns
				   : s->probe_gap_ns / 16;
	s->probe_gap_ns = u64_min(s->probe_gap_ns, max_ns);
}

static int take_probe(struct offload_session *s)
{
	const struct offload_preamble *p = (void *)s->mirror;
	struct offload_green green = p->green;
	uint64_t tail = offload_extend(s->fetched, green.tail);
	uint64_t wdata = offload_extend(s->wdata_fetched, green.wdata_tail);
	uint64_t count;
	int err = 0;

	if (tail - s->head > s->map.entries ||
	    wdata - s->wdata_fetched > s->map.wdata_bytes)
		return -EBADMSG;
	if (tail == s->fetched) {
		ask_later(s);
		return 0;
	}
	s->probe_gap_ns = s->engine->config.probe_min_ns;
	count = tail - s->fetched;
	s->fetching = tail;
	/* Without new write data there are no new writes. */
	if (wdata == s->wdata_fetched)
		s->fetched += u64_min(count, s->guess);
	if (s->fetched < tail)
		err = fetch(s, s->wdata_fetched, wdata);
	s->wdata_fetched = wdata;
	s->ahead = u32_max(OFFLOAD_AHEAD_MIN,
			   u32_min((uint32_t)count, OFFLOAD_AHEAD_MAX));
	s->ahead = u32_min(s->ahead, s->map.entries);
	return err;
}

/* ---- the beginning ------------------------------------------------------ */

static int make_tables(struct offload_session *s)
{
	s->request = calloc(s->map.entries, sizeof(*s->request));
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		s->order[k] = calloc(s->map.entries, sizeof(*s->order[k]));
	return s->request && s->order[0] && s->order[1] ? 0 : -ENOMEM;
}

/* What the rings say about the predecessor, and what the nodes say. */
static int read_past(struct offload_session *s)
{
	const struct offload_preamble *p = (void *)s->mirror;
	struct offload_resume *r = &s->resume;
	struct offload_final final[OFFLOAD_NODES_MAX];
	int err;

	for (unsigned i = 0; i < s->config.node_count; i++) {
		final[i] = s->config.node[i].final;
		final[i].is_known &= !s->config.node[i].err;
	}
	err = offload_resume_begin(r, p, &s->map, final, s->config.node_count);
	if (err)
		return err;
	s->head = s->next = s->fetched = r->head;
	s->head_reads = r->head_reads;
	s->seen[OFFLOAD_RD] = r->head_reads;
	s->seen[OFFLOAD_WR] = r->head - r->head_reads;
	memcpy(s->ready, r->done, sizeof(s->ready));
	memcpy(s->published, r->done, sizeof(s->published));
	s->told_reads = r->done[OFFLOAD_RD];
	s->fetching = r->tail;
	s->wdata_fetched = p->green.wdata_tail;
	return 0;
}

static void make_node(struct offload_session *s, unsigned i)
{
	const struct offload_node_config *c = &s->config.node[i];
	struct node *n = &s->node[i];
	struct offload_begin b = {
		.is_gone = c->err,
		.psn = c->write_psn & WIRE_PSN_MASK,
		.mtu = c->mtu_bytes ? c->mtu_bytes : WIRE_MTU_MAX,
		.epoch = s->config.epoch,
	};

	n->err = c->err;
	n->psn = b.psn;
	n->mtu = b.mtu;
	n->base = n->progress = offload_resume_end(&s->resume, i, &b);
	n->past = s->resume.node[i];
}

static int begin(struct offload_session *s)
{
	s->fetched = s->fetching;
	for (uint64_t pos = s->head; pos < s->fetched; pos++) {
		struct offload_meta meta = offload_session_meta(s, pos);

		offload_resume_show(&s->resume, &meta, &s->map,
				    s->config.region, s->config.region_count);
	}
	for (unsigned i = 0; i < s->config.node_count; i++)
		make_node(s, i);
	s->state = SESSION_BASE;
	return offload_session_publish_base(s);
}

static int take_preamble(struct offload_session *s)
{
	int err = offload_preamble_check((void *)s->mirror,
					 s->config.ring_bytes, &s->map);

	if (!err)
		err = make_tables(s);
	if (!err)
		err = read_past(s);
	if (err)
		return err;
	s->state = SESSION_RESUME;
	if (s->fetching == s->fetched)
		return begin(s);
	/* Where the write data of these begins is not known: all of it. */
	return fetch(s, 0, s->map.wdata_bytes);
}

void offload_session_ring_done(struct offload_session *s, enum wr_kind kind,
			       uint32_t count)
{
	int err = 0;

	s->ring_done = count;
	switch (kind) {
	case WR_PREAMBLE:
		s->is_asking = false;
		err = take_preamble(s);
		break;
	case WR_FETCH:
		s->is_asking = false;
		if (s->state == SESSION_RESUME)
			err = begin(s);
		else
			s->fetched = s->fetching;
		break;
	case WR_BASE:
		s->red_done++;
		s->state = SESSION_RUN;
		break;
	case WR_PROBE:
		s->is_asking = false;
		err = take_probe(s);
		break;
	case WR_PUBLISH:
		offload_session_told(
			s, s->extra->red[s->red_done % OFFLOAD_RED_SLOTS]
				   .done.reads);
		s->red_done++;
		break;
	case WR_NOTE:
	case WR_READ:
	case WR_WRITE:
	case WR_GATHER:
		break;
	}
	if (err)
		offload_session_break(s, err);
}

/* ---- life --------------------------------------------------------------- */

static int check_config(const struct offload_session_config *c)
{
	unsigned i;
	int err = c->ring_bytes < sizeof(struct offload_preamble) ||
				  c->node_count > OFFLOAD_NODES_MAX ||
				  c->region_count > OFFLOAD_REGIONS_MAX ||
				  c->epoch == 0
			  ? -EINVAL
			  : 0;

	for (i = 0; !err && i < c->node_count; i++)
		if (c->node[i].err > 0 || c->node[i].err < -255 ||
		    (!c->node[i].err &&
		     (c->node[i].mtu_bytes < 256 ||
		      c->node[i].mtu_bytes > 4096 ||
		      c->node[i].mtu_bytes & (c->node[i].mtu_bytes - 1))))
			err = -EINVAL;
	for (i = 0; !err && i < c->region_count; i++)
		err = offload_region_check(&c->region[i], c->node_count);
	return err ? error_set(err, "a session that cannot be") : 0;
}

static uint32_t cqes_of(const struct offload_session *s)
{
	return OFFLOAD_RING_DEPTH +
	       s->config.node_count * OFFLOAD_KINDS * OFFLOAD_NODE_DEPTH;
}

static int make_mirror(struct offload_session *s)
{
	struct offload_engine *e = s->engine;
	uint64_t at = align_up(s->config.ring_bytes, CACHE_LINE), gathers_at;

	s->memory_bytes = align_up(at + sizeof(struct session_extra), 4096);
	gathers_at = s->memory_bytes;
	s->memory_bytes += offload_gather_memory(s);
	if (s->config.ring_bytes > 1ull << 32 ||
	    (e->config.memory_bytes &&
	     e->memory_used + s->memory_bytes > e->config.memory_bytes))
		return error_set(-ENOSPC,
				 "the engine has no room for rings of %llu "
				 "bytes",
				 (unsigned long long)s->config.ring_bytes);
	/* Zeroed, so that nobody sees what another session had. */
	s->mirror = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->mirror == MAP_FAILED) {
		s->mirror = NULL;
		return error_set(-ENOMEM, "no memory for a session");
	}
	e->memory_used += s->memory_bytes;
	s->extra = (struct session_extra *)(void *)(s->mirror + at);
	s->mr = e->config.verbs->reg_mr(e->config.pd, s->mirror,
					s->memory_bytes,
					IBV_ACCESS_LOCAL_WRITE);
	return s->mr ? offload_gather_open(s, s->mirror + gathers_at)
		     : error_set(-ENOMEM, "the NIC has no key left");
}

static void session_free(struct offload_session *s)
{
	struct offload_engine *e = s->engine;

	if (s->mr)
		(void)e->config.verbs->dereg_mr(s->mr);
	if (s->mirror) {
		(void)munmap(s->mirror, s->memory_bytes);
		e->memory_used -= s->memory_bytes;
	}
	offload_gather_close(s);
	free(s->request);
	free(s->order[0]);
	free(s->order[1]);
	free(s);
}

int offload_session_add(struct offload_engine *e,
			const struct offload_session_config *config,
			struct offload_session **out)
{
	struct offload_session *s;
	uint32_t index = 0;
	int err = check_config(config);

	if (err)
		return err;
	while (index < e->config.sessions_max && e->session[index])
		index++;
	if (index == e->config.sessions_max)
		return error_set(-ENOSPC, "the engine has %u sessions already",
				 e->config.sessions_max);
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, "no memory for a session");
	s->engine = e;
	s->index = index;
	s->generation = ++e->generation;
	s->config = *config;
	e->now_ns = client_clock_now_ns(e->config.clock);
	s->probe_gap_ns = e->config.probe_min_ns;
	offload_filter_init(&s->filter, FILTER_LINE_SHIFT);
	for (unsigned i = 0; i < config->node_count; i++) {
		s->node[i].queue[OFFLOAD_RD].qp = config->node[i].read_qp;
		s->node[i].queue[OFFLOAD_WR].qp = config->node[i].write_qp;
	}
	if (e->cq_used + cqes_of(s) > e->config.cq_depth)
		err = error_set(-ENOSPC, "the engine's completion queue is "
					 "full");
	if (!err)
		err = make_mirror(s);
	if (!err) {
		err = offload_session_start(s);
		if (err)
			err = error_set(err, "the rings cannot be asked");
	}
	if (err) {
		session_free(s);
		return err;
	}
	e->cq_used += cqes_of(s);
	e->session[index] = s;
	e->session_count = u32_max(e->session_count, index + 1);
	*out = s;
	return 0;
}

void offload_session_remove(struct offload_session *s)
{
	struct offload_engine *e = s->engine;

	e->cq_used -= cqes_of(s);
	e->session[s->index] = NULL;
	while (e->session_count && !e->session[e->session_count - 1])
		e->session_count--;
	session_free(s);
}

int offload_session_err(const struct offload_session *s)
{
	return s->err;
}

uint64_t offload_session_stalled_ns(const struct offload_session *s)
{
	uint64_t now_ns = s->engine->now_ns, worst_ns = 0;

	for (unsigned i = 0; i < s->config.node_count; i++) {
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
			const struct node_queue *q = &s->node[i].queue[k];

			if (q->posted != q->done && now_ns > q->moved_ns)
				worst_ns =
					u64_max(worst_ns, now_ns - q->moved_ns);
		}
	}
	return worst_ns;
}

void offload_session_give_up(struct offload_session *s)
{
	offload_session_break(s, -EHOSTDOWN);
}

uint32_t offload_session_pending(const struct offload_session *s)
{
	return (uint32_t)(s->fetched - s->head);
}
