/* SPDX-License-Identifier: Apache-2.0 */
/* A machine: the shipped cache between a simulated MMU and a shipped NIC, and
 * the server that moves what they say. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mind_play_priv.h"
#include "pair/pair.h"
#include "wire/wire.h"

enum {
	LANDING_AT = 0,
	GIVES_AT = LANDING_AT + MP_LANES * COHERENCE_PAGE_BYTES,
	SAYS_AT = GIVES_AT + MP_GIVES * COHERENCE_PAGE_BYTES,
	RECVS_AT = SAYS_AT + MP_SAYS * COHERENCE_RECORD_BYTES,
	BUFFER_BYTES = RECVS_AT + MP_RECVS * COHERENCE_INVAL_BYTES,
	OWN_HOST = 250, /* the last byte of the switch's address */
	TIMEOUT = 17,	/* 0.54 s until a NIC repeats */
	BATCH = 16,
	READ_KEY = 100, /* + machine */
	WRITE_KEY = 200,
	GIVE_KEY = 300,
	DOMAIN = 1,
};

/* What a completion is of. */
enum what {
	WHAT_LANE,
	WHAT_GIVE,
	WHAT_FIN,
	WHAT_EVICT,
	WHAT_CLEAN,
	WHAT_RECV,
};

static uint64_t id_of(const struct mp_machine *m, enum what what,
		      uint32_t index)
{
	return (uint64_t)m->turn << 32 | (uint32_t)what << 16 | index;
}

static uint8_t *buffer_at(const struct mp_machine *m, uint32_t at)
{
	return m->buffer->mem + at;
}

/* ---- death
 * ------------------------------------------------------------------- */

/* A named step. Of a machine that dies here nothing more happens: its own
 * fibers do not return, others look. */
static bool pass(struct mp_machine *m, enum mp_point point)
{
	struct mp *p = m->p;

	if (m->is_dead)
		return false;
	if (p->victim != m->number || p->death_point != point ||
	    --p->death_countdown)
		return true;
	p->victim = -1;
	p->n->machine_deaths++;
	p->run.res->died_at[point]++;
	m->is_dead = true;
	p->run.running -= m->threads;
	m->threads = 0;
	mp_keeper_dead(p, m->number);
	rig_host_kill(m->host);
	return false;
}

/* ---- what the cache wants done
 * -------------------------------------------------- */

static void post(struct mp_machine *m, struct ibv_qp *qp,
		 struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(qp, wr, &bad))
		play_fail(&m->p->run, "a machine's NIC refuses a request");
}

static void post_page(struct mp_machine *m, struct ibv_qp *qp, uint32_t at,
		      uint64_t page, uint32_t key, enum ibv_wr_opcode opcode,
		      uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)buffer_at(m, at), COHERENCE_PAGE_BYTES,
			      m->buffer->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {page << COHERENCE_PAGE_SHIFT, key}};

	post(m, qp, &wr);
}

static void send_get(struct mp_machine *m, const struct coh_get *get)
{
	m->lane_lost[get->lane] = false;
	post_page(m, m->lane[get->lane],
		  LANDING_AT + get->lane * COHERENCE_PAGE_BYTES, get->page,
		  (get->right == COH_WRITE ? WRITE_KEY : READ_KEY) + m->number,
		  IBV_WR_RDMA_READ, id_of(m, WHAT_LANE, get->lane));
}

static void send_give(struct mp_machine *m, uint32_t page)
{
	uint32_t slot = 0;

	while (m->give_page[slot] >= 0)
		slot++;
	ASSERT(slot < MP_GIVES);
	m->give_page[slot] = (int)page;
	memcpy(buffer_at(m, GIVES_AT + slot * COHERENCE_PAGE_BYTES),
	       m->mem[page], COHERENCE_PAGE_BYTES);
	post_page(m, m->talk, GIVES_AT + slot * COHERENCE_PAGE_BYTES,
		  mp_page_number(page), GIVE_KEY + m->number, IBV_WR_RDMA_WRITE,
		  id_of(m, WHAT_GIVE, slot));
}

static void say(struct mp_machine *m, const struct coh_record *r, uint64_t id)
{
	uint32_t at =
		SAYS_AT + m->say_next++ % MP_SAYS * COHERENCE_RECORD_BYTES;
	uint8_t bytes[COHERENCE_INVAL_BYTES];
	struct ibv_sge sge = {(uintptr_t)buffer_at(m, at), 0,
			      m->buffer->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};

	sge.length = coh_record_build(r, bytes);
	memcpy(buffer_at(m, at), bytes, sge.length);
	post(m, m->talk, &wr);
}

/* Threads that wait for this page run before anything else happens to it, as
 * they would on a machine that holds a page until its thread has run. */
static void run_threads(struct mp_machine *m, uint32_t page)
{
	struct mp_op **at = &m->waiting;

	while (*at) {
		struct mp_op *op = *at;

		if (op->page != page || op->right > m->mmu[page]) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		mp_op_execute(m, op);
	}
	sim_wait_notify(m->p->run.sim, &m->changed, 0);
}

static void fail_threads(struct mp_machine *m, const struct coh_range *r)
{
	struct mp_op **at = &m->waiting;

	while (*at) {
		struct mp_op *op = *at;

		if (!coh_range_has(r, mp_page_number(op->page))) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		mp_op_fail(m, op);
	}
	sim_wait_notify(m->p->run.sim, &m->changed, 0);
}

static void set_mmu(struct mp_machine *m, const struct coh_range *r,
		    uint8_t right)
{
	for (uint32_t i = 0; i < r->count; i++) {
		uint64_t page = r->page + i - mp_page_number(0);

		ASSERT(page < MP_PAGES);
		if (m->mmu[page] > right)
			m->mmu[page] = right;
		/* What is read from here on is no page. */
		if (right == COH_NONE)
			memset(m->mem[page], 0xee, COHERENCE_PAGE_BYTES);
	}
}

static enum mp_point point_of(enum coh_cache_action_kind kind)
{
	static const enum mp_point points[] = {
		[COH_CACHE_MAP] = MP_POINT_MAP,
		[COH_CACHE_PROTECT] = MP_POINT_PROTECT,
		[COH_CACHE_UNMAP] = MP_POINT_UNMAP,
		[COH_CACHE_GET] = MP_POINT_GET,
		[COH_CACHE_GIVE] = MP_POINT_GIVE,
		[COH_CACHE_FIN] = MP_POINT_FIN,
		[COH_CACHE_EVICT] = MP_POINT_EVICT,
		[COH_CACHE_CLEAN] = MP_POINT_CLEAN,
		[COH_CACHE_HIDE] = MP_POINT_COUNT,
		[COH_CACHE_UNHIDE] = MP_POINT_COUNT,
		[COH_CACHE_FAIL] = MP_POINT_COUNT,
	};

	return points[kind];
}

/* `lane`: whose page has come. */
static void act(struct mp_machine *m, uint32_t lane)
{
	for (uint32_t i = 0; i < m->out.count; i++) {
		const struct coh_cache_action *a = &m->out.action[i];
		uint32_t page = (uint32_t)(a->range.page - mp_page_number(0));

		if (!pass(m, point_of(a->kind)))
			return;
		switch (a->kind) {
		case COH_CACHE_MAP:
			memcpy(m->mem[page],
			       buffer_at(m,
					 LANDING_AT +
						 lane * COHERENCE_PAGE_BYTES),
			       COHERENCE_PAGE_BYTES);
			m->mmu[page] = (uint8_t)a->right;
			run_threads(m, page);
			if (!pass(m, MP_POINT_MAPPED))
				return;
			break;
		case COH_CACHE_PROTECT:
			set_mmu(m, &a->range, COH_READ);
			break;
		case COH_CACHE_UNMAP:
			set_mmu(m, &a->range, COH_NONE);
			break;
		case COH_CACHE_GET:
			send_get(m, &a->get);
			break;
		case COH_CACHE_GIVE:
			send_give(m, page);
			break;
		case COH_CACHE_FIN:
			say(m,
			    &(struct coh_record){.kind = COHERENCE_FIN,
						 .fin = a->fin},
			    id_of(m, WHAT_FIN, 0));
			break;
		case COH_CACHE_EVICT:
			say(m,
			    &(struct coh_record){.kind = COHERENCE_EVICT,
						 .range = a->range},
			    id_of(m, WHAT_EVICT, a->index));
			break;
		case COH_CACHE_CLEAN:
			say(m,
			    &(struct coh_record){.kind = COHERENCE_CLEAN,
						 .term = a->term},
			    id_of(m, WHAT_CLEAN, 0));
			break;
		case COH_CACHE_FAIL:
			fail_threads(m, &a->range);
			break;
		case COH_CACHE_HIDE:
		case COH_CACHE_UNHIDE:
			break;
		}
	}
	m->out.count = 0;
}

/* ---- threads
 * --------------------------------------------------------------------- */

static void touch(struct mp_machine *m, const struct mp_op *op)
{
	enum coh_touch t = coh_cache_touch(&m->cache, mp_page_number(op->page),
					   (enum coh_right)op->right, &m->out);

	if (t == COH_TOUCH_HIT)
		play_fail(&m->p->run, "the cache has a page that is not "
				      "mapped");
	act(m, 0);
}

void mp_op_begin(struct mp_machine *m, struct mp_op *op)
{
	if (m->mmu[op->page] >= op->right) {
		mp_op_execute(m, op);
		return;
	}
	op->next = m->waiting;
	m->waiting = op;
	touch(m, op);
}

static void touch_again(struct mp_machine *m)
{
	for (struct mp_op *op = m->waiting; op && !m->is_dead; op = op->next)
		touch(m, op);
}

/* ---- completions
 * ------------------------------------------------------------------- */

static void post_recv(struct mp_machine *m, uint32_t i)
{
	struct ibv_sge sge = {
		(uintptr_t)buffer_at(m, RECVS_AT + i * COHERENCE_INVAL_BYTES),
		COHERENCE_INVAL_BYTES, m->buffer->mr->lkey};
	struct ibv_recv_wr wr = {
		.wr_id = id_of(m, WHAT_RECV, i), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(m->talk, &wr, &bad))
		play_fail(&m->p->run, "a machine's NIC refuses a receive");
}

/* A repetition of a get may be refused whose answer is here already: then the
 * lane may have the next one under way, which the record is not about. */
static void take_lost(struct mp_machine *m, const struct coh_record *r)
{
	int32_t ahead = (int32_t)(r->serial - m->cache.lanes[r->lane].serial);

	if (ahead > 0)
		play_fail(&m->p->run, "a get is refused that is none");
	else if (ahead == 0)
		m->lane_lost[r->lane] = true;
}

static void take_record(struct mp_machine *m, uint32_t i, uint32_t len_bytes)
{
	struct coh_record r;
	int err = coh_record_parse(
		buffer_at(m, RECVS_AT + i * COHERENCE_INVAL_BYTES), len_bytes,
		&r);

	post_recv(m, i);
	if (err) {
		play_fail(&m->p->run, "the switch sends no record");
	} else if (r.kind == COHERENCE_INVAL) {
		if (!pass(m, MP_POINT_INVAL))
			return;
		coh_cache_inval(&m->cache, &r.inval, &m->out);
		act(m, 0);
	} else if (r.kind == COHERENCE_LOST && r.lane < MP_LANES) {
		take_lost(m, &r);
	}
}

static void take_page(struct mp_machine *m, uint32_t lane)
{
	if (m->lane_lost[lane])
		coh_cache_refused(&m->cache, (uint8_t)lane, &m->out);
	else
		coh_cache_answer(&m->cache, (uint8_t)lane, &m->out);
	act(m, lane);
}

static void take_given(struct mp_machine *m, uint32_t slot)
{
	int page = m->give_page[slot];

	if (!pass(m, MP_POINT_GIVEN))
		return;
	m->give_page[slot] = -1;
	coh_cache_given(&m->cache, mp_page_number((uint32_t)page), &m->out);
	act(m, 0);
}

static void take(struct mp_machine *m, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id & 0xffff;

	if (wc->wr_id >> 32 != m->turn || !m->is_connected)
		return; /* of a former connection */
	if (wc->status != IBV_WC_SUCCESS) {
		play_fail(&m->p->run,
			  "machine %u lost a connection (%s) and is none of "
			  "the dead",
			  m->number, ibv_wc_status_str(wc->status));
		m->is_connected = false;
		return;
	}
	switch ((enum what)(wc->wr_id >> 16 & 0xffff)) {
	case WHAT_LANE:
		take_page(m, index);
		break;
	case WHAT_GIVE:
		take_given(m, index);
		break;
	case WHAT_EVICT:
		coh_cache_left(&m->cache, (uint8_t)index);
		break;
	case WHAT_CLEAN:
		coh_cache_cleaned(&m->cache);
		break;
	case WHAT_RECV:
		take_record(m, index, wc->byte_len);
		break;
	case WHAT_FIN:
		break;
	}
}

/* ---- a small cache
 * ------------------------------------------------------------------ */

static void evict(struct mp_machine *m)
{
	uint32_t mapped = 0;
	uint32_t page = sim_rand_below(&m->rand, m->p->page_count);

	for (uint32_t i = 0; i < m->p->page_count; i++)
		mapped += m->mmu[i] != COH_NONE;
	if (mapped > m->limit &&
	    !coh_cache_evict(&m->cache, mp_page_number(page), &m->out)) {
		m->p->n->evictions++;
		act(m, 0);
	}
	if (!m->is_dead && sim_rand_below(&m->rand, 8) == 0) {
		struct coh_range r = {mp_page_number(page & ~3u), 4};

		if (coh_cache_leave(&m->cache, &r, &m->out) == 0) {
			m->p->n->leaves++;
			act(m, 0);
		}
	}
}

static void server(void *arg)
{
	struct mp_machine *m = arg;

	while (!m->p->is_over) {
		struct ibv_wc wc[BATCH];
		int n = ibv_poll_cq(m->cq, BATCH, wc);

		for (int i = 0; i < n && !m->is_dead; i++)
			take(m, &wc[i]);
		if (n > 0 && m->is_connected) {
			evict(m);
			touch_again(m);
		}
		if (coh_cache_check(&m->cache))
			play_fail(&m->p->run, "machine %u: %s", m->number,
				  coh_cache_check(&m->cache));
		if (n <= 0)
			client_clock_relax(&m->host->clock);
	}
}

bool mp_machine_is_idle(const struct mp_machine *m)
{
	if (m->is_dead)
		return true;
	for (unsigned i = 0; i < MP_JOBS; i++)
		if (m->jobs[i].state != COH_JOB_FREE)
			return false;
	for (unsigned i = 0; i < MP_LANES; i++)
		if (m->lanes[i].right != COH_NONE)
			return false;
	for (unsigned i = 0; i < MP_LEAVES; i++)
		if (m->leaves[i].range.count)
			return false;
	return !m->cache.giving && !m->waiting &&
	       m->cache.link == COH_CACHE_MEMBER;
}

/* ---- connections
 * ----------------------------------------------------------------------- */

static int open_qp(struct mp_machine *m, uint32_t own_qpn, uint32_t psn,
		   uint32_t own_psn, struct ibv_qp **out)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = m->host,
		.send_cq = m->cq,
		.recv_cq = m->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = MP_SAYS + MP_GIVES,
			.max_recv_wr = MP_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct pair_end end = {.qpn = own_qpn,
			       .psn = own_psn,
			       .own_psn = psn,
			       .mtu = m->p->mtu,
			       .reads_in = 1,
			       .reads_out = 1,
			       .timeout = TIMEOUT,
			       .retries = PAIR_RETRIES,
			       .rnr_timer = PAIR_RNR_TIMER};
	struct ibv_qp *qp = ibv_create_qp(m->host->pd, &attr);
	int err = qp ? pair_init(ibv_modify_qp, qp, 0) : -errno;

	memcpy(end.gid.raw, m->host->gid.raw, 16);
	end.gid.raw[15] = OWN_HOST;
	if (!err)
		err = pair_connect(ibv_modify_qp, qp, &end);
	if (err && qp)
		(void)ibv_destroy_qp(qp);
	*out = err ? NULL : qp;
	return err;
}

static void close_qps(struct mp_machine *m)
{
	if (m->talk)
		(void)ibv_destroy_qp(m->talk);
	m->talk = NULL;
	for (unsigned i = 0; i < MP_LANES; i++) {
		if (m->lane[i])
			(void)ibv_destroy_qp(m->lane[i]);
		m->lane[i] = NULL;
	}
}

static int open_talk(struct mp_machine *m, const char *ip, const char *own)
{
	struct mp *p = m->p;
	uint32_t own_qpn = 0x10000 + m->turn * 0x100 + m->number * 0x10;
	uint32_t psn = (uint32_t)rng_u64(&m->rand) & WIRE_PSN_MASK;
	uint32_t own_psn = (uint32_t)rng_u64(&m->rand) & WIRE_PSN_MASK;
	int err = open_qp(m, own_qpn, psn, own_psn, &m->talk);

	if (!err)
		err = rig_tor_tell(p->tor,
				   "coherence machine machine=%u ip=%s "
				   "own_ip=%s qpn=%u own_qpn=%u psn=%u "
				   "own_psn=%u mtu=%u",
				   m->number, ip, own, m->talk->qp_num, own_qpn,
				   psn, own_psn, 128u << p->mtu);
	for (unsigned i = 0; !err && i < MP_LANES; i++) {
		err = open_qp(m, own_qpn + 1 + i, psn, own_psn, &m->lane[i]);
		if (!err)
			err = rig_tor_tell(p->tor,
					   "coherence lane machine=%u lane=%u "
					   "qpn=%u own_qpn=%u psn=%u",
					   m->number, i, m->lane[i]->qp_num,
					   own_qpn + 1 + i, psn);
	}
	return err ? err
		   : rig_tor_tell(p->tor,
				  "coherence key machine=%u domain=%u read=%u "
				  "write=%u give=%u",
				  m->number, DOMAIN, READ_KEY + m->number,
				  WRITE_KEY + m->number, GIVE_KEY + m->number);
}

void mp_machine_cut(struct mp_machine *m)
{
	coh_cache_cut(&m->cache);
	close_qps(m);
	m->is_connected = false;
	for (unsigned i = 0; i < MP_GIVES; i++)
		m->give_page[i] = -1;
}

int mp_machine_connect(struct mp_machine *m, bool was_member)
{
	char ip[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	uint8_t own_ip[16];
	int err;

	m->turn++;
	memcpy(own_ip, m->host->gid.raw, 16);
	own_ip[15] = OWN_HOST;
	rig_ip_text(m->host->gid.raw, ip);
	rig_ip_text(own_ip, own);
	err = open_talk(m, ip, own);
	if (err)
		return err;
	m->is_connected = true;
	for (uint32_t i = 0; i < MP_RECVS; i++)
		post_recv(m, i);
	coh_cache_connect(&m->cache, m->p->term, was_member, &m->out);
	act(m, 0);
	if (!m->is_dead)
		touch_again(m);
	return 0;
}

int mp_machine_start(struct mp *p, unsigned number)
{
	struct mp_machine *m = &p->machines[number];
	int err = rig_host_add(p->run.stage, "machine", &m->host);

	m->p = p;
	m->number = (uint8_t)number;
	sim_rand_init(&m->rand, p->run.opt->seed, 200 + number);
	m->limit = sim_rand_range(&m->rand, 1, MP_PAGES);
	m->cache = (struct coh_cache){.pages = m->pages,
				      .lanes = m->lanes,
				      .jobs = m->jobs,
				      .leaves = m->leaves,
				      .first_page = mp_page_number(0),
				      .page_count = MP_PAGES,
				      .machine = m->number,
				      .lane_count = MP_LANES,
				      .job_count = MP_JOBS,
				      .leave_count = MP_LEAVES};
	coh_cache_init(&m->cache);
	for (unsigned i = 0; i < MP_GIVES; i++)
		m->give_page[i] = -1;
	if (!err)
		err = rig_region_create(m->host, BUFFER_BYTES, false,
					&m->buffer);
	if (!err)
		m->cq = rig_cq_create(m->host, 1024);
	if (!err && !m->cq)
		err = -ENOMEM;
	return err ? err : rig_host_spawn(m->host, "server", server, m);
}

void mp_machine_stop(struct mp_machine *m)
{
	close_qps(m);
	if (m->cq)
		(void)ibv_destroy_cq(m->cq);
}
