/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's connections to the switch, and what its cache wants done there.
 */
#include "coh_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair/pair.h"
#include "wire/wire.h"

enum {
	TIMEOUT = 17, /* 0.54 s until a NIC repeats */
	BATCH = 16,
	CQ_DEPTH = 1024,
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

static uint64_t id_of(const struct rig_coh *m, enum what what, uint32_t index)
{
	return (uint64_t)m->turn << 32 | (uint32_t)what << 16 | index;
}

/* ---- the buffer: pages that come, pages that go, records ----------------- */

static uint8_t *landing(const struct rig_coh *m, uint32_t lane)
{
	return m->buffer->mem + lane * COHERENCE_PAGE_BYTES;
}

static uint8_t *given(const struct rig_coh *m, uint32_t slot)
{
	return landing(m, m->cfg.lanes + slot);
}

static uint8_t *received(const struct rig_coh *m, uint32_t i)
{
	return given(m, COH_CACHE_GIVES_MAX) + i * COHERENCE_INVAL_BYTES;
}

static uint64_t buffer_bytes(const struct rig_coh *m)
{
	return (m->cfg.lanes + COH_CACHE_GIVES_MAX) *
		       (uint64_t)COHERENCE_PAGE_BYTES +
	       RIG_COH_RECVS * COHERENCE_INVAL_BYTES;
}

static bool pass(struct rig_coh *m, enum rig_coh_step step)
{
	return !m->cfg.ops->step || m->cfg.ops->step(m->cfg.ctx, step);
}

static void wrong(struct rig_coh *m, const char *what)
{
	m->cfg.ops->wrong(m->cfg.ctx, what);
}

/* ---- what the cache wants done ------------------------------------------- */

static void post(struct rig_coh *m, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(qp, wr, &bad))
		wrong(m, "a machine's NIC refuses a request");
}

static void post_page(struct rig_coh *m, struct ibv_qp *qp, uint8_t *at,
		      uint64_t page, uint32_t key, enum ibv_wr_opcode opcode,
		      uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)at, COHERENCE_PAGE_BYTES,
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

static void send_get(struct rig_coh *m, const struct coh_get *get)
{
	uint32_t key = get->right == COH_WRITE ? WRITE_KEY : READ_KEY;

	m->lane_lost[get->lane] = false;
	post_page(m, m->lane[get->lane], landing(m, get->lane), get->page,
		  key + m->cfg.number, IBV_WR_RDMA_READ,
		  id_of(m, WHAT_LANE, get->lane));
}

static void send_give(struct rig_coh *m, uint32_t page)
{
	uint32_t slot = 0;

	while (m->give_page[slot] >= 0)
		slot++;
	ASSERT(slot < COH_CACHE_GIVES_MAX);
	m->give_page[slot] = page;
	m->cfg.ops->give(m->cfg.ctx, page, given(m, slot));
	post_page(m, m->talk, given(m, slot), rig_coh_page(page),
		  GIVE_KEY + m->cfg.number, IBV_WR_RDMA_WRITE,
		  id_of(m, WHAT_GIVE, slot));
}

static void say(struct rig_coh *m, const struct coh_record *r, uint64_t id)
{
	uint8_t bytes[COHERENCE_INVAL_BYTES];
	struct ibv_sge sge = {.addr = (uintptr_t)bytes};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags =
					 IBV_SEND_SIGNALED | IBV_SEND_INLINE};

	sge.length = coh_record_build(r, bytes);
	post(m, m->talk, &wr);
}

static void say_action(struct rig_coh *m, const struct coh_cache_action *a)
{
	struct coh_record r = {.kind = COHERENCE_FIN, .fin = a->fin};
	enum what what = WHAT_FIN;

	if (a->kind == COH_CACHE_EVICT) {
		what = WHAT_EVICT;
		r = (struct coh_record){.kind = COHERENCE_EVICT,
					.range = a->range};
	} else if (a->kind == COH_CACHE_CLEAN) {
		what = WHAT_CLEAN;
		r = (struct coh_record){.kind = COHERENCE_CLEAN,
					.term = a->term};
	}
	say(m, &r, id_of(m, what, what == WHAT_EVICT ? a->index : 0));
}

static enum rig_coh_step step_of(enum coh_cache_action_kind kind)
{
	static const enum rig_coh_step steps[] = {
		[COH_CACHE_MAP] = RIG_COH_MAP,
		[COH_CACHE_PROTECT] = RIG_COH_PROTECT,
		[COH_CACHE_UNMAP] = RIG_COH_UNMAP,
		[COH_CACHE_GET] = RIG_COH_GET,
		[COH_CACHE_GIVE] = RIG_COH_GIVE,
		[COH_CACHE_FIN] = RIG_COH_FIN,
		[COH_CACHE_EVICT] = RIG_COH_EVICT,
		[COH_CACHE_CLEAN] = RIG_COH_CLEAN,
		[COH_CACHE_HIDE] = RIG_COH_STEPS,
		[COH_CACHE_UNHIDE] = RIG_COH_STEPS,
		[COH_CACHE_FAIL] = RIG_COH_STEPS,
	};

	return steps[kind];
}

/* One action; `lane`: whose page has come. False: the machine is dead. */
static bool act_one(struct rig_coh *m, const struct coh_cache_action *a,
		    uint32_t lane)
{
	const struct rig_coh_ops *ops = m->cfg.ops;
	uint32_t page = (uint32_t)(a->range.page - rig_coh_page(0));
	void *ctx = m->cfg.ctx;

	if (!pass(m, step_of(a->kind)))
		return false;
	switch (a->kind) {
	case COH_CACHE_MAP:
		ops->map(ctx, page, a->right, landing(m, lane));
		return pass(m, RIG_COH_MAPPED);
	case COH_CACHE_PROTECT:
		ops->limit(ctx, page, a->range.count, COH_READ);
		break;
	case COH_CACHE_UNMAP:
		ops->limit(ctx, page, a->range.count, COH_NONE);
		break;
	case COH_CACHE_GET:
		send_get(m, &a->get);
		break;
	case COH_CACHE_GIVE:
		send_give(m, page);
		break;
	case COH_CACHE_FIN:
	case COH_CACHE_EVICT:
	case COH_CACHE_CLEAN:
		say_action(m, a);
		break;
	case COH_CACHE_FAIL:
		ops->fail(ctx, page, a->range.count);
		break;
	case COH_CACHE_HIDE:
	case COH_CACHE_UNHIDE:
		break;
	}
	return true;
}

static void act(struct rig_coh *m, uint32_t lane)
{
	for (uint32_t i = 0; i < m->out.count; i++)
		if (!act_one(m, &m->out.action[i], lane))
			return;
	m->out.count = 0;
}

/* ---- what threads and the machine want ----------------------------------- */

enum coh_touch rig_coh_touch(struct rig_coh *m, uint32_t page,
			     enum coh_right right)
{
	enum coh_touch t =
		coh_cache_touch(&m->cache, rig_coh_page(page), right, &m->out);

	act(m, 0);
	return t;
}

bool rig_coh_evict(struct rig_coh *m, uint32_t page)
{
	if (coh_cache_evict(&m->cache, rig_coh_page(page), &m->out))
		return false;
	act(m, 0);
	return true;
}

bool rig_coh_leave(struct rig_coh *m, uint32_t page, uint32_t count)
{
	struct coh_range r = {rig_coh_page(page), count};

	if (coh_cache_leave(&m->cache, &r, &m->out))
		return false;
	act(m, 0);
	return true;
}

/* ---- completions --------------------------------------------------------- */

static void post_recv(struct rig_coh *m, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)received(m, i), COHERENCE_INVAL_BYTES,
			      m->buffer->mr->lkey};
	struct ibv_recv_wr wr = {
		.wr_id = id_of(m, WHAT_RECV, i), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(m->talk, &wr, &bad))
		wrong(m, "a machine's NIC refuses a receive");
}

/* A repetition of a get may be refused whose answer is here already: then the
 * lane may have the next one under way, which the record is not about. */
static void take_lost(struct rig_coh *m, const struct coh_record *r)
{
	int32_t ahead = (int32_t)(r->serial - m->cache.lanes[r->lane].serial);

	if (ahead > 0)
		wrong(m, "a get is refused that is none");
	else if (ahead == 0)
		m->lane_lost[r->lane] = true;
}

static void take_record(struct rig_coh *m, uint32_t i, uint32_t len_bytes)
{
	struct coh_record r;
	int err = coh_record_parse(received(m, i), len_bytes, &r);

	post_recv(m, i);
	if (err) {
		wrong(m, "the switch sends no record");
	} else if (r.kind == COHERENCE_INVAL) {
		if (!pass(m, RIG_COH_INVAL))
			return;
		coh_cache_inval(&m->cache, &r.inval, &m->out);
		act(m, 0);
	} else if (r.kind == COHERENCE_LOST && r.lane < m->cfg.lanes) {
		take_lost(m, &r);
	}
}

static void take_page(struct rig_coh *m, uint32_t lane)
{
	if (m->lane_lost[lane])
		coh_cache_refused(&m->cache, (uint8_t)lane, &m->out);
	else
		coh_cache_answer(&m->cache, (uint8_t)lane, &m->out);
	act(m, lane);
}

static void take_given(struct rig_coh *m, uint32_t slot)
{
	int64_t page = m->give_page[slot];

	if (!pass(m, RIG_COH_GIVEN))
		return;
	m->give_page[slot] = -1;
	coh_cache_given(&m->cache, rig_coh_page((uint32_t)page), &m->out);
	act(m, 0);
}

static void take(struct rig_coh *m, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id & 0xffff;

	if (wc->wr_id >> 32 != m->turn || !m->is_connected)
		return; /* of a former connection */
	if (wc->status != IBV_WC_SUCCESS) {
		wrong(m, "a machine that lives lost a connection");
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

int rig_coh_poll(struct rig_coh *m, struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq, BATCH, wc);

	for (int i = 0; i < n && !m->cfg.host->killed; i++)
		take(m, &wc[i]);
	return n;
}

bool rig_coh_is_idle(const struct rig_coh *m)
{
	for (unsigned i = 0; i < COH_CACHE_JOBS_MAX; i++)
		if (m->jobs[i].state != COH_JOB_FREE)
			return false;
	for (unsigned i = 0; i < m->cfg.lanes; i++)
		if (m->lanes[i].right != COH_NONE)
			return false;
	for (unsigned i = 0; i < RIG_COH_LEAVES; i++)
		if (m->leaves[i].range.count)
			return false;
	return !m->cache.giving && m->cache.link == COH_CACHE_MEMBER;
}

/* ---- connections --------------------------------------------------------- */

static int open_qp(struct rig_coh *m, struct ibv_cq *cq, uint32_t own_qpn,
		   uint32_t psn, uint32_t own_psn, struct ibv_qp **out)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = m->cfg.host,
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = RIG_COH_SAYS + COH_CACHE_GIVES_MAX,
			.max_recv_wr = RIG_COH_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = COHERENCE_RECORD_BYTES}};
	struct pair_end end = {.qpn = own_qpn,
			       .psn = own_psn,
			       .own_psn = psn,
			       .mtu = m->cfg.mtu,
			       .reads_in = 1,
			       .reads_out = 1,
			       .timeout = TIMEOUT,
			       .retries = PAIR_RETRIES,
			       .rnr_timer = PAIR_RNR_TIMER};
	struct ibv_qp *qp = ibv_create_qp(m->cfg.host->pd, &attr);
	int err = qp ? pair_init(ibv_modify_qp, qp, 0) : -errno;

	memcpy(end.gid.raw, m->cfg.host->gid.raw, 16);
	end.gid.raw[15] = RIG_COH_OWN_HOST;
	if (!err)
		err = pair_connect(ibv_modify_qp, qp, &end);
	if (err && qp)
		(void)ibv_destroy_qp(qp);
	*out = err ? NULL : qp;
	return err;
}

static void close_qps(struct rig_coh *m)
{
	if (m->talk)
		(void)ibv_destroy_qp(m->talk);
	m->talk = NULL;
	for (unsigned i = 0; i < COH_LANES_MAX; i++) {
		if (m->lane[i])
			(void)ibv_destroy_qp(m->lane[i]);
		m->lane[i] = NULL;
	}
}

static int open_qps(struct rig_coh *m, struct rig_tor *tor, const char *ip,
		    const char *own)
{
	unsigned number = m->cfg.number;
	/* Room for a talk and 16 lanes of each machine, for each turn. */
	uint32_t own_qpn = 0x10000 + m->turn * 0x200 + number * 0x20;
	uint32_t psn = (uint32_t)rng_u64(m->cfg.rand) & WIRE_PSN_MASK;
	uint32_t own_psn = (uint32_t)rng_u64(m->cfg.rand) & WIRE_PSN_MASK;
	int err = open_qp(m, m->cq, own_qpn, psn, own_psn, &m->talk);

	if (!err)
		err = rig_tor_tell(tor,
				   "coherence machine machine=%u ip=%s "
				   "own_ip=%s qpn=%u own_qpn=%u psn=%u "
				   "own_psn=%u mtu=%u",
				   number, ip, own, m->talk->qp_num, own_qpn,
				   psn, own_psn, 128u << m->cfg.mtu);
	for (unsigned i = 0; !err && i < m->cfg.lanes; i++) {
		err = open_qp(m, m->lane_cq, own_qpn + 1 + i, psn, own_psn,
			      &m->lane[i]);
		if (!err)
			err = rig_tor_tell(tor,
					   "coherence lane machine=%u lane=%u "
					   "qpn=%u own_qpn=%u psn=%u",
					   number, i, m->lane[i]->qp_num,
					   own_qpn + 1 + i, psn);
	}
	return err ? err
		   : rig_tor_tell(tor,
				  "coherence key machine=%u domain=%u read=%u "
				  "write=%u give=%u",
				  number, DOMAIN, READ_KEY + number,
				  WRITE_KEY + number, GIVE_KEY + number);
}

void rig_coh_cut(struct rig_coh *m)
{
	coh_cache_cut(&m->cache);
	close_qps(m);
	m->is_connected = false;
	for (unsigned i = 0; i < COH_CACHE_GIVES_MAX; i++)
		m->give_page[i] = -1;
}

int rig_coh_connect(struct rig_coh *m, struct rig_tor *tor, uint32_t term,
		    bool was_member)
{
	char ip[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	uint8_t own_ip[16];
	int err;

	m->turn++;
	memcpy(own_ip, m->cfg.host->gid.raw, 16);
	own_ip[15] = RIG_COH_OWN_HOST;
	rig_ip_text(m->cfg.host->gid.raw, ip);
	rig_ip_text(own_ip, own);
	err = open_qps(m, tor, ip, own);
	if (err)
		return err;
	m->is_connected = true;
	for (uint32_t i = 0; i < RIG_COH_RECVS; i++)
		post_recv(m, i);
	coh_cache_connect(&m->cache, term, was_member, &m->out);
	act(m, 0);
	return 0;
}

int rig_coh_init(struct rig_coh *m, const struct rig_coh_config *cfg)
{
	int err;

	*m = (struct rig_coh){.cfg = *cfg};
	ASSERT(cfg->lanes <= COH_LANES_MAX);
	m->cache = (struct coh_cache){
		.pages = calloc(cfg->page_count, sizeof(*m->cache.pages)),
		.lanes = m->lanes,
		.jobs = m->jobs,
		.leaves = m->leaves,
		.first_page = rig_coh_page(0),
		.page_count = cfg->page_count,
		.machine = cfg->number,
		.lane_count = cfg->lanes,
		.job_count = COH_CACHE_JOBS_MAX,
		.leave_count = RIG_COH_LEAVES};
	if (!m->cache.pages)
		return -ENOMEM;
	coh_cache_init(&m->cache);
	for (unsigned i = 0; i < COH_CACHE_GIVES_MAX; i++)
		m->give_page[i] = -1;
	err = rig_region_create(cfg->host, buffer_bytes(m), false, &m->buffer);
	if (err)
		return err;
	m->cq = rig_cq_create(cfg->host, CQ_DEPTH);
	m->lane_cq =
		cfg->has_lane_cq ? rig_cq_create(cfg->host, CQ_DEPTH) : m->cq;
	return m->cq && m->lane_cq ? 0 : -ENOMEM;
}

void rig_coh_release(struct rig_coh *m)
{
	close_qps(m);
	if (m->lane_cq && m->lane_cq != m->cq)
		(void)ibv_destroy_cq(m->lane_cq);
	if (m->cq)
		(void)ibv_destroy_cq(m->cq);
	free(m->cache.pages);
	m->cq = m->lane_cq = NULL;
	m->cache.pages = NULL;
}
