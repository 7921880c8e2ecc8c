/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives one simulation: arrivals, the pool of messages, warm-up, drain and the
 * account of what came through. Protocols are behind struct edm_proto_ops.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "edm_run.h"
#include "edm_sizes.h"
#include "edm_timing.h"

enum {
	MSGS_FIRST = 1024,
	EVENTS_PER_MESSAGE = 3,
	EVENTS_PER_CHUNK = 4,
	THOUSAND = 1000,
};

const struct edm_proto_ops *edm_proto_find(enum edm_proto p)
{
	static const struct edm_proto_ops *const table[EDM_PROTO_COUNT] = {
		[EDM_PROTO_EDM] = &edm_proto_edm,
		[EDM_PROTO_IRD] = &edm_proto_ird,
		[EDM_PROTO_PFABRIC] = &edm_proto_pfabric,
		[EDM_PROTO_PFC] = &edm_proto_pfc,
		[EDM_PROTO_DCTCP] = &edm_proto_dctcp,
		[EDM_PROTO_CXL] = &edm_proto_cxl,
		[EDM_PROTO_FASTPASS] = &edm_proto_fastpass,
	};

	return table[p];
}

static double events_of(const struct edm_config *c, enum edm_op op,
			uint32_t bytes)
{
	return EVENTS_PER_MESSAGE +
	       EVENTS_PER_CHUNK * ((double)bytes / c->chunk_bytes + 1);
}

/* Mean time between events, as a guess for the queue. */
static uint64_t spacing_ps(const struct edm_config *c)
{
	if (c->trace)
		return 100;
	return (uint64_t)(edm_workload_gap_ps(c) /
			  edm_sizes_expect(c, events_of));
}

int edm_run_create(const struct edm_config *c, struct edm_result *result,
		   struct edm_run **out)
{
	struct edm_run *run;
	int rc = edm_config_check(c);

	if (rc)
		return rc;
	run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	run->c = *c;
	run->result = result;
	run->msg_free = EDM_MSG_NONE;
	run->ops = edm_proto_find(c->proto);
	run->msg_size = MSGS_FIRST;
	run->msg = malloc(MSGS_FIRST * sizeof(*run->msg));
	rc = run->msg ? edm_queue_create(spacing_ps(c), &run->q) : -ENOMEM;
	if (!rc)
		rc = run->ops->create(run, &run->proto);
	if (rc) {
		edm_run_destroy(run);
		return rc;
	}
	*out = run;
	return 0;
}

void edm_run_destroy(struct edm_run *run)
{
	if (!run)
		return;
	if (run->proto)
		run->ops->destroy(run->proto);
	edm_workload_destroy(run->workload);
	edm_queue_destroy(run->q);
	free(run->msg);
	free(run);
}

static uint32_t msg_get(struct edm_run *run)
{
	uint32_t m = run->msg_free;

	if (m != EDM_MSG_NONE) {
		run->msg_free = run->msg[m].next[0];
		return m;
	}
	if (run->msg_used == run->msg_size) {
		run->msg_size *= 2;
		run->msg = realloc(run->msg, run->msg_size * sizeof(*run->msg));
		ASSERT(run->msg);
	}
	m = run->msg_used++;
	run->msg[m].turn = 0;
	return m;
}

uint32_t edm_run_submit(struct edm_run *run, const struct edm_arrival *a)
{
	uint32_t m = msg_get(run);
	uint32_t turn = run->msg[m].turn + 1;

	run->msg[m] = (struct edm_msg){
		.born_ps = a->at_ps,
		.bytes = a->bytes,
		.request_bytes = a->request_bytes,
		.src = a->src,
		.dst = a->dst,
		.op = (uint8_t)a->op,
		.live = true,
		.turn = turn,
		.next = {EDM_MSG_NONE, EDM_MSG_NONE},
		.batch = EDM_MSG_NONE,
		.parked = EDM_MSG_NONE,
	};
	run->submitted++;
	run->in_flight++;
	run->result->in_flight_max =
		u64_max(run->result->in_flight_max, run->in_flight);
	edm_queue_push(run->q, a->at_ps + run->ops->lead_ps(&run->c),
		       EDM_EV_SUBMIT, 0, m, 0);
	return m;
}

static void tally_add(struct edm_tally *t, double ns, double own, double common)
{
	t->count++;
	t->sum_ns += ns;
	t->sum_own += own;
	t->sum_common += common;
}

static void account(struct edm_run *run, const struct edm_msg *m)
{
	uint64_t ps = edm_queue_now(run->q) - m->born_ps;
	enum edm_op op = (enum edm_op)m->op;
	struct edm_config plain = run->c;
	struct edm_result *r = run->result;
	uint64_t own_ps = 1, common_ps;
	double own, common;

	/* The common yardstick is EDM with its paper's framing and latency,
	 * whatever this run's are. */
	plain.md = EDM_MD_DATA;
	plain.chunk_bytes = EDM_CHUNK_PAPER;
	plain.asic = false;
	plain.mem_ps = 0;
	plain.latency = run->c.latency == EDM_LATENCY_HOPS ? EDM_LATENCY_HOPS
							   : EDM_LATENCY_FULL;
	common_ps = edm_timing_alone_ps(&plain, op, m->bytes);
	if (!run->unloaded ||
	    edm_unloaded_ps(run->unloaded, &run->c, op, m->bytes, &own_ps))
		own_ps = common_ps;
	own = (double)ps / (double)own_ps;
	common = (double)ps / (double)common_ps;
	tally_add(&r->all, (double)ps / 1000, own, common);
	tally_add(op == EDM_WRITE ? &r->write : &r->read, (double)ps / 1000,
		  own, common);
	tally_add(&r->part[m->part], (double)ps / 1000, own, common);
	hist_record(&r->latency, ps);
	hist_record(&r->slowdown_own, (uint64_t)(own * THOUSAND));
	hist_record(&r->slowdown_common, (uint64_t)(common * THOUSAND));
}

void edm_run_sent(struct edm_run *run, uint32_t msg)
{
	struct edm_msg *m = &run->msg[msg];

	if (m->sent)
		return;
	m->sent = true;
	if (run->on_sent)
		run->on_sent(run->owner, m);
}

void edm_run_request(struct edm_run *run, uint32_t msg)
{
	struct edm_msg *m = &run->msg[msg];

	if (m->asked)
		return;
	m->asked = true;
	if (run->on_request)
		run->on_request(run->owner, m);
}

void edm_run_bytes(struct edm_run *run, uint32_t msg, uint32_t until)
{
	struct edm_msg *m = &run->msg[msg];
	uint32_t from = m->had_bytes;

	if (until <= from)
		return;
	m->had_bytes = until;
	if (run->on_bytes)
		run->on_bytes(run->owner, m, from);
}

void edm_run_ready(struct edm_run *run, uint64_t at_ps, uint32_t msg,
		   uint32_t bytes)
{
	ASSERT(run->msg[msg].live && run->msg[msg].deferred);
	run->ops->ready(run->proto, at_ps, msg, bytes);
}

void edm_run_done(struct edm_run *run, uint32_t msg, bool null)
{
	struct edm_msg *m = &run->msg[msg];

	ASSERT(m->live && !m->done);
	m->done = true;
	if (m->measured) {
		run->measured_left--;
		run->result->completed++;
		if (null)
			run->result->nulls++;
		else
			account(run, m);
	}
	edm_run_sent(run, msg);
	/* Of protocols that do not tell of each part. */
	if (!null) {
		if (m->op != EDM_WRITE)
			edm_run_request(run, msg);
		edm_run_bytes(run, msg, m->bytes);
	}
	if (run->on_done)
		run->on_done(run->owner, m);
}

void edm_run_forget(struct edm_run *run, uint32_t msg)
{
	struct edm_msg *m = &run->msg[msg];

	ASSERT(m->live);
	if (!m->done) {
		edm_run_sent(run, msg);
		if (run->on_lost)
			run->on_lost(run->owner, m);
	}
	m->live = false;
	m->next[0] = run->msg_free;
	run->msg_free = msg;
	run->in_flight--;
}

static void arrival_next(struct edm_run *run)
{
	if (run->submitted < run->arrivals_max &&
	    edm_workload_next(run->workload, &run->coming))
		edm_queue_push(run->q, run->coming.at_ps, EDM_EV_ARRIVAL, 0, 0,
			       0);
}

static void arrival_take(struct edm_run *run)
{
	/* Of a trace everything counts. */
	uint64_t count = run->c.trace ? edm_workload_count(run->workload)
				      : run->c.messages;
	uint64_t warm = run->c.trace ? 0 : count * run->c.warmup_ppm / 1000000;
	uint64_t number = run->submitted;
	uint32_t m;

	/* After the last measured arrival the load goes on until the measured
	 * messages are through, so that they do not end in an empty network. */
	if (number >= count && !run->measured_left)
		return;
	m = edm_run_submit(run, &run->coming);
	if (number >= warm && number < count) {
		if (number == warm)
			run->first_measured_ps = run->coming.at_ps;
		run->msg[m].measured = true;
		run->msg[m].part =
			(uint8_t)((number - warm) * EDM_PARTS / (count - warm));
		run->result->measured++;
		run->measured_left++;
		run->result->horizon_ns =
			(double)(run->coming.at_ps - run->first_measured_ps) /
			1000;
	}
	arrival_next(run);
}

static void dispatch(struct edm_run *run, const struct edm_event *e)
{
	if (e->kind >= EDM_EV_PROTO)
		run->ops->event(run->proto, e);
	else if (e->kind == EDM_EV_SUBMIT)
		run->ops->submit(run->proto, e->a);
	else
		arrival_take(run);
}

void edm_run_until(struct edm_run *run, uint64_t time_ps)
{
	struct edm_event e;

	while (edm_queue_next_ps(run->q) <= time_ps &&
	       edm_queue_pop(run->q, &e))
		dispatch(run, &e);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int edm_run_all(const struct edm_config *c, struct edm_unloaded *unloaded,
		struct edm_result *out)
{
	struct edm_run *run;
	struct edm_event e;
	double start = seconds();
	int rc;

	memset(out, 0, sizeof(*out));
	hist_init(&out->latency);
	hist_init(&out->slowdown_own);
	hist_init(&out->slowdown_common);
	rc = edm_run_create(c, out, &run);
	if (rc)
		return rc;
	run->unloaded = unloaded;
	rc = edm_workload_create(c, &run->workload);
	if (rc)
		goto destroy;
	/* A fifth more than asked for, to keep the load up at the end. */
	run->arrivals_max =
		c->trace ? UINT64_MAX : c->messages + c->messages / 5 + 1;
	out->payload_load = c->trace ? 0 : edm_workload_payload_load(c);
	arrival_next(run);
	while (edm_queue_pop(run->q, &e))
		dispatch(run, &e);
	run->ops->report(run->proto, out);
	out->arrivals = run->submitted;
	out->end_ns = (double)edm_queue_now(run->q) / 1000;
	out->events = edm_queue_popped(run->q);
	out->wall_s = seconds() - start;
destroy:
	edm_run_destroy(run);
	return rc;
}
