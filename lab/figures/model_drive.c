/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small event loop of its own that carries requests, step by step, through
 * the cost model of two hosts. Leaves comparing with papers to model_check.c.
 */
#include "model_drive.h"

#include <errno.h>
#include <stdlib.h>

enum step_kind {
	STEP_TX,     /* the client sends the request */
	STEP_RX,     /* the server executes it */
	STEP_REPLY,  /* the server answers */
	STEP_DONE,   /* the client sees the completion */
	STEP_ORDER,  /* WAIT or ENABLE on the server */
	STEP_LOCAL,  /* chained request within the server */
	STEP_REMOTE, /* chained WRITE from the server to the client */
	STEP_ARRIVE, /* the client sees that WRITE in its memory */
	STEP_END,
};

/* `op` and what follows describe chained requests only. */
struct step {
	enum step_kind kind;
	enum model_kind op;
	uint32_t bytes;
	uint32_t sges;
	bool fetched; /* with the entry before it */
};

struct event {
	uint64_t at_ps;
	uint64_t seq; /* ties: in the order they were made */
	uint64_t addr;
	uint64_t posted_ps;
	uint32_t qp;
	uint32_t step;
};

struct drive {
	struct drive_config c;
	const struct step *steps;
	struct model_nic *client, *server;
	struct event *heap;
	uint32_t events;
	uint64_t seq;
	uint64_t rng;
	uint32_t waiting[DRIVE_QPS_MAX]; /* requests of a batch still out */
	uint64_t done;			 /* within the measured time */
	uint64_t latency_ps;
};

static uint64_t random_next(struct drive *d)
{
	d->rng ^= d->rng << 13;
	d->rng ^= d->rng >> 7;
	d->rng ^= d->rng << 17;
	return d->rng;
}

static bool before(const struct event *a, const struct event *b)
{
	return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->seq < b->seq;
}

static void push(struct drive *d, struct event ev)
{
	uint32_t i = d->events++;

	ASSERT(d->events <= DRIVE_EVENTS_MAX);
	ev.seq = d->seq++;
	while (i > 0 && before(&ev, &d->heap[(i - 1) / 2])) {
		d->heap[i] = d->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	d->heap[i] = ev;
}

static struct event pop(struct drive *d)
{
	struct event top = d->heap[0], last = d->heap[--d->events];
	uint32_t i = 0;

	for (;;) {
		uint32_t kid = 2 * i + 1;

		if (kid >= d->events)
			break;
		if (kid + 1 < d->events &&
		    before(&d->heap[kid + 1], &d->heap[kid]))
			kid++;
		if (!before(&d->heap[kid], &last))
			break;
		d->heap[i] = d->heap[kid];
		i = kid;
	}
	d->heap[i] = last;
	return top;
}

static struct model_op request_of(const struct drive *d, const struct event *ev)
{
	return (struct model_op){
		.kind = d->c.kind,
		.bytes = d->c.bytes,
		.qpn = ev->qp,
		.addr = ev->addr,
		.in_device = d->c.in_device,
		.active_qps = d->c.qps,
	};
}

static void post(struct drive *d, uint32_t qp, uint32_t n, uint64_t now)
{
	struct event ev = {.qp = qp, .posted_ps = now};
	struct model_op op = request_of(d, &ev);

	ev.at_ps = model_post(d->client, &op, n, now);
	for (uint32_t i = 0; i < n; i++) {
		ev.addr = random_next(d) % d->c.addrs * CACHE_LINE;
		push(d, ev);
	}
}

static void finish(struct drive *d, const struct event *ev)
{
	if (ev->at_ps >= d->c.span_ps && ev->at_ps < 2 * d->c.span_ps) {
		d->done++;
		d->latency_ps += ev->at_ps - ev->posted_ps;
	}
	if (!d->c.batch) {
		post(d, ev->qp, 1, ev->at_ps);
	} else if (--d->waiting[ev->qp] == 0) {
		d->waiting[ev->qp] = d->c.depth;
		post(d, ev->qp, d->c.depth, ev->at_ps);
	}
}

static uint64_t arrive(struct drive *d, const struct model_op *op, uint64_t now)
{
	uint64_t memory_ps;

	(void)model_rx_request(d->client, op, now, &memory_ps);
	return memory_ps + d->c.params->cpu_poll_ps;
}

static uint64_t step(struct drive *d, const struct event *ev)
{
	const struct step *s = &d->steps[ev->step];
	uint64_t path = model_path_ps(d->c.params, 1);
	struct model_op op = request_of(d, ev);
	/* Chained atomics meet at the head of one queue. */
	struct model_op chained = {
		.kind = s->op,
		.bytes = s->bytes,
		.qpn = ev->qp,
		.addr = s->op == MODEL_FAA ? 0 : ev->addr + CACHE_LINE};

	switch (s->kind) {
	case STEP_TX:
		return model_tx_request(d->client, &op, ev->at_ps) + path;
	case STEP_RX:
		return model_rx_request(d->server, &op, ev->at_ps, NULL);
	case STEP_REPLY:
		return model_tx_response(d->server, &op, ev->at_ps) + path;
	case STEP_DONE:
		return model_complete(d->client, &op, ev->at_ps);
	case STEP_ORDER:
		return model_chain_order(d->server, ev->at_ps);
	case STEP_LOCAL:
		return model_chain_local(d->server, &chained, s->sges,
					 s->fetched, ev->at_ps);
	case STEP_REMOTE:
		return model_chain_remote(d->server, &chained, s->fetched,
					  ev->at_ps) +
		       path;
	case STEP_ARRIVE:
		return arrive(d, &chained, ev->at_ps);
	case STEP_END:
		break;
	}
	return ev->at_ps;
}

static void run(struct drive *d)
{
	for (uint32_t qp = 0; qp < d->c.qps; qp++) {
		/* Threads do not start in step. */
		uint64_t at = random_next(d) % 4000000;

		d->waiting[qp] = d->c.depth;
		if (d->c.batch)
			post(d, qp, d->c.depth, at);
		for (uint32_t i = 0; !d->c.batch && i < d->c.depth; i++)
			post(d, qp, 1, at);
	}
	while (d->heap[0].at_ps < 2 * d->c.span_ps) {
		struct event ev = pop(d);

		ev.at_ps = step(d, &ev);
		ev.step++;
		if (d->steps[ev.step].kind == STEP_END)
			finish(d, &ev);
		else
			push(d, ev);
	}
}

static int drive(const struct drive_config *config, const struct step *steps,
		 struct drive_result *out)
{
	struct drive *d;
	int err = -ENOMEM;

	if (config->qps == 0 || config->qps > DRIVE_QPS_MAX ||
	    config->depth == 0 || config->addrs == 0 || config->span_ps == 0 ||
	    (uint64_t)config->qps * config->depth >= DRIVE_EVENTS_MAX)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->c = *config;
	d->steps = steps;
	d->rng = config->seed * 0x9e3779b97f4a7c15ull + 1;
	d->heap = calloc(DRIVE_EVENTS_MAX, sizeof(d->heap[0]));
	if (!d->heap)
		goto out;
	err = model_nic_create(config->params, config->seed, &d->client);
	if (err)
		goto out;
	err = model_nic_create(config->params, config->seed + 1, &d->server);
	if (err)
		goto out;
	run(d);
	out->mops = (double)d->done / ((double)config->span_ps / 1e6);
	out->mean_us =
		d->done ? (double)d->latency_ps / (double)d->done / 1e6 : 0;
out:
	model_nic_destroy(d->server);
	model_nic_destroy(d->client);
	free(d->heap);
	free(d);
	return err;
}

static const struct step verb_steps[] = {
	{.kind = STEP_TX},   {.kind = STEP_RX},	 {.kind = STEP_REPLY},
	{.kind = STEP_DONE}, {.kind = STEP_END},
};

int drive_closed_loop(const struct drive_config *config,
		      struct drive_result *out)
{
	return drive(config, verb_steps, out);
}

/* ---- pages -------------------------------------------------------------- */

enum page_bytes {
	PAGE_BYTES = 4096,
	PAGE_ARGS_BYTES = 48, /* addresses, indexes, doorbell record */
};

#define ORDER                      \
	{                          \
		.kind = STEP_ORDER \
	}
#define LOCAL(o, b, ...)                                                 \
	{                                                                \
		.kind = STEP_LOCAL, .op = (o), .bytes = (b), __VA_ARGS__ \
	}
#define REMOTE(b, f)                                                  \
	{                                                             \
		.kind = STEP_REMOTE, .op = MODEL_WRITE, .bytes = (b), \
		.fetched = (f)                                        \
	}
#define ARRIVE(b)                                                    \
	{                                                            \
		.kind = STEP_ARRIVE, .op = MODEL_WRITE, .bytes = (b) \
	}

/* RECV, READ of the table entry, WRITE of the page; 3 WAIT and ENABLE. */
static const struct step load_steps[] = {
	{.kind = STEP_TX},
	{.kind = STEP_RX},
	ORDER,
	LOCAL(MODEL_READ, 8, .sges = 1),
	ORDER,
	ORDER,
	REMOTE(PAGE_BYTES, false),
	ARRIVE(PAGE_BYTES),
	{.kind = STEP_END},
};

/* RECV, READ of the entry, WRITE of the page, WRITE of the signal; 4. */
static const struct step mapped_steps[] = {
	{.kind = STEP_TX},
	{.kind = STEP_RX},
	ORDER,
	LOCAL(MODEL_READ, 8, .sges = 1),
	ORDER,
	ORDER,
	LOCAL(MODEL_WRITE, PAGE_BYTES, .sges = 1),
	ORDER,
	REMOTE(8, true),
	ARRIVE(8),
	{.kind = STEP_END},
};

/*
 * RECV, FAA on the head, byte swap, READ of the free page's address, WRITE of
 * the entry, of the page and of the empty slot, WRITE of the signal; 5.
 */
static const struct step unmapped_steps[] = {
	{.kind = STEP_TX},
	{.kind = STEP_RX},
	ORDER,
	LOCAL(MODEL_FAA, 8, .sges = 1),
	ORDER,
	LOCAL(MODEL_READ, 8, .sges = 8),
	ORDER,
	LOCAL(MODEL_READ, 8, .sges = 1),
	ORDER,
	LOCAL(MODEL_WRITE, 8, .sges = 1),
	LOCAL(MODEL_WRITE, PAGE_BYTES, .sges = 1, .fetched = true),
	LOCAL(MODEL_WRITE, 8, .sges = 1, .fetched = true),
	ORDER,
	REMOTE(8, true),
	ARRIVE(8),
	{.kind = STEP_END},
};

int drive_pages(const struct model_params *params, enum drive_page what,
		uint32_t workers, uint64_t span_ps, struct drive_result *out)
{
	static const struct {
		enum model_kind kind;
		uint32_t bytes;
		const struct step *steps;
	} page[] = {
		[DRIVE_PAGE_READ] = {MODEL_READ, PAGE_BYTES, verb_steps},
		[DRIVE_PAGE_WRITE] = {MODEL_WRITE, PAGE_BYTES, verb_steps},
		[DRIVE_PAGE_LOAD] = {MODEL_SEND, PAGE_ARGS_BYTES, load_steps},
		[DRIVE_PAGE_STORE_MAPPED] = {MODEL_SEND,
					     PAGE_BYTES + PAGE_ARGS_BYTES,
					     mapped_steps},
		[DRIVE_PAGE_STORE_UNMAPPED] = {MODEL_SEND,
					       PAGE_BYTES + PAGE_ARGS_BYTES,
					       unmapped_steps},
	};
	struct drive_config config = {
		.params = params,
		.kind = page[what].kind,
		.bytes = page[what].bytes,
		.qps = workers,
		.depth = 1,
		.addrs = 1 << 20,
		.span_ps = span_ps,
		.seed = 1,
	};

	return drive(&config, page[what].steps, out);
}

/* ---- order across queue pairs ------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->seq == y->seq)
		return 0;
	return before(x, y) ? -1 : 1;
}

int drive_reordering(const struct model_params *params, uint32_t qps,
		     uint32_t requests, uint64_t gap_ps, uint64_t seed,
		     struct drive_order *out)
{
	static const enum model_kind kinds[] = {MODEL_READ, MODEL_WRITE,
						MODEL_CAS};
	struct drive_order result = {0};
	struct model_nic *server;
	struct event *answer;
	uint32_t in_order = 0;
	int err;

	if (qps == 0 || requests < 2)
		return -EINVAL;
	answer = calloc(requests, sizeof(*answer));
	if (!answer)
		return -ENOMEM;
	err = model_nic_create(params, seed, &server);
	if (err)
		goto out;
	for (uint32_t i = 0; i < requests; i++) {
		struct model_op op = {.kind = kinds[i % ARRAY_LEN(kinds)],
				      .bytes = 8,
				      .qpn = i % qps,
				      .addr = (i * 2654435761u >> 22) *
					      CACHE_LINE,
				      .active_qps = qps};
		uint64_t t = model_rx_request(server, &op, i * gap_ps, NULL);

		answer[i].seq = i;
		answer[i].at_ps = model_tx_response(server, &op, t);
	}
	model_nic_destroy(server);
	qsort(answer, requests, sizeof(*answer), by_time);
	for (uint32_t i = 1; i < requests; i++) {
		int64_t gap = (int64_t)(answer[i].seq - answer[i - 1].seq);
		uint32_t size = (uint32_t)(gap < 0 ? -gap : gap);

		in_order += gap == 1;
		result.max_step = u32_max(result.max_step, size);
	}
	result.in_order = (double)in_order / (double)(requests - 1);
	*out = result;
out:
	free(answer);
	return err;
}
