/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC's half of a node with memory: the message state table, data buffers
 * and the execution of requests. What is under way between two nodes has an id
 * of 8 bits, as on the wire.
 */
#include "edm_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "edm_run.h"

enum {
	IDS = 256,
	WORD = 8,
};

/* An entry of the message state table, by nodes and id. */
struct state {
	struct edm_request r;
	uint8_t *buffer; /* what is sent, or what was read */
	uint64_t value;	 /* RMW: as it was */
	uint64_t start_ps, order;
	uint32_t msg;
	bool used, started, sent, finished, null;
};

struct edm_memory {
	struct edm_run *run;
	struct edm_result *result;
	uint32_t nodes;
	uint64_t bytes, order, held, now_ps;
	uint8_t *mem;
	struct state **table; /* [src * nodes + dst][id]; NULL: none yet */
	uint32_t *done;	      /* finished entries, in order */
	uint32_t done_head, done_tail, done_size;
};

static struct state *state_at(struct edm_memory *m, uint64_t tag)
{
	return &m->table[tag / IDS][tag % IDS];
}

uint8_t *edm_memory_at(struct edm_memory *m, uint16_t node)
{
	return m->mem + node * m->bytes;
}

uint64_t edm_memory_now_ps(const struct edm_memory *m)
{
	return m->now_ps;
}

uint64_t edm_memory_held(const struct edm_memory *m)
{
	return m->held;
}

/* ---- execution ----------------------------------------------------------- */

static void modify(struct state *s, uint8_t *word)
{
	uint64_t value;

	memcpy(&value, word, WORD);
	s->value = value;
	switch (s->r.modify) {
	case EDM_COMPARE_SWAP:
		value = value == s->r.arg[0] ? s->r.arg[1] : value;
		break;
	case EDM_FETCH_ADD:
		value += s->r.arg[0];
		break;
	case EDM_SWAP:
		value = s->r.arg[0];
		break;
	}
	memcpy(word, &value, WORD);
	memcpy(s->buffer, &s->value, WORD);
}

/* RREQ or RMWREQ is at the memory. One that is asked again, or comes by the
 * second switch, is answered from the table: it is executed once. */
static void on_request(void *owner, const struct edm_msg *msg)
{
	struct edm_memory *m = owner;
	struct state *s = state_at(m, msg->tag);
	uint8_t *at = edm_memory_at(m, s->r.dst) + s->r.remote;

	if (s->r.op == EDM_RMW)
		modify(s, at);
	else
		memcpy(s->buffer, at, s->r.bytes);
}

/* A chunk of WREQ is at the memory, or one of RRES with who asked. */
static void on_bytes(void *owner, const struct edm_msg *msg, uint32_t from)
{
	struct edm_memory *m = owner;
	struct state *s = state_at(m, msg->tag);
	bool is_write = s->r.op == EDM_WRITE;
	uint8_t *at = is_write ? edm_memory_at(m, s->r.dst) + s->r.remote
			       : edm_memory_at(m, s->r.src) + s->r.local;

	memcpy(at + from, s->buffer + from, msg->had_bytes - from);
}

/* ---- order and completion ------------------------------------------------ */

static void finish(struct edm_memory *m, uint64_t tag, bool null)
{
	struct state *s = state_at(m, tag);

	ASSERT(s->used && !s->finished);
	s->finished = s->sent = true;
	s->null = null;
	if (m->done_tail - m->done_head == m->done_size) {
		uint32_t size = m->done_size ? 2 * m->done_size : IDS;
		uint32_t *more = malloc(size * sizeof(*more));

		ASSERT(more);
		for (uint32_t i = 0; i < m->done_size; i++)
			more[i] = m->done[(m->done_head + i) &
					  (m->done_size - 1)];
		free(m->done);
		m->done = more;
		m->done_tail -= m->done_head;
		m->done_head = 0;
		m->done_size = size;
	}
	m->done[m->done_tail++ & (m->done_size - 1)] = (uint32_t)tag;
}

static void on_sent(void *owner, const struct edm_msg *msg)
{
	state_at(owner, msg->tag)->sent = true;
}

static void on_done(void *owner, const struct edm_msg *msg)
{
	/* A read that was given up has not had its bytes. */
	finish(owner, msg->tag, msg->had_bytes < msg->bytes);
}

static void on_lost(void *owner, const struct edm_msg *msg)
{
	finish(owner, msg->tag, true);
}

static bool overlaps(const struct edm_request *a, const struct edm_request *b)
{
	return a->remote < b->remote + b->bytes &&
	       b->remote < a->remote + a->bytes;
}

/* An earlier request to the same bytes that this one could overtake. */
static bool must_wait(const struct state *pair, const struct state *s)
{
	for (unsigned i = 0; i < IDS; i++) {
		const struct state *e = &pair[i];
		bool is_write = e->r.op == EDM_WRITE;

		if (!e->used || e->finished || e->order >= s->order ||
		    !overlaps(&e->r, &s->r))
			continue;
		/* Of one kind they stay in order by themselves. */
		if (is_write == (s->r.op == EDM_WRITE) && e->started)
			continue;
		if (!is_write || !e->sent)
			return true;
	}
	return false;
}

static void start(struct edm_memory *m, uint64_t tag)
{
	struct state *s = state_at(m, tag);
	struct edm_arrival a = {.at_ps = m->now_ps,
				.bytes = s->r.bytes,
				.src = s->r.src,
				.dst = s->r.dst,
				.op = s->r.op};

	s->started = true;
	s->msg = edm_run_submit(m->run, &a);
	m->run->msg[s->msg].tag = tag;
}

/* Those of one pair that were held, in their order. */
static void pair_start(struct edm_memory *m, size_t pair)
{
	struct state *table = m->table[pair];

	for (;;) {
		struct state *first = NULL;

		for (unsigned i = 0; table && i < IDS; i++) {
			struct state *s = &table[i];

			if (s->used && !s->started && !must_wait(table, s) &&
			    (!first || s->order < first->order))
				first = s;
		}
		if (!first)
			return;
		start(m, pair * IDS + (uint64_t)(first - table));
	}
}

/* ---- life ---------------------------------------------------------------- */

int edm_memory_create(const struct edm_config *c, uint64_t bytes,
		      struct edm_memory **out)
{
	struct edm_memory *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->nodes = c->nodes;
	m->bytes = bytes;
	m->mem = calloc(c->nodes, bytes);
	m->result = calloc(1, sizeof(*m->result));
	m->table = calloc((size_t)c->nodes * c->nodes, sizeof(struct state *));
	rc = m->mem && m->result && m->table
		     ? edm_run_create(c, m->result, &m->run)
		     : -ENOMEM;
	if (rc) {
		edm_memory_destroy(m);
		return rc;
	}
	m->run->on_request = on_request;
	m->run->on_bytes = on_bytes;
	m->run->on_sent = on_sent;
	m->run->on_done = on_done;
	m->run->on_lost = on_lost;
	m->run->owner = m;
	*out = m;
	return 0;
}

void edm_memory_destroy(struct edm_memory *m)
{
	if (!m)
		return;
	edm_run_destroy(m->run);
	for (size_t i = 0; m->table && i < (size_t)m->nodes * m->nodes; i++) {
		for (unsigned k = 0; m->table[i] && k < IDS; k++)
			free(m->table[i][k].buffer);
		free(m->table[i]);
	}
	free(m->table);
	free(m->result);
	free(m->mem);
	free(m->done);
	free(m);
}

static bool is_inside(const struct edm_memory *m, uint64_t at, uint32_t bytes)
{
	return at <= m->bytes && bytes <= m->bytes - at;
}

int edm_memory_post(struct edm_memory *m, const struct edm_request *r)
{
	size_t pair = (size_t)r->src * m->nodes + r->dst;
	struct state *s;
	unsigned id = 0;

	if (r->src >= m->nodes || r->dst >= m->nodes || r->src == r->dst ||
	    !r->bytes || r->bytes > EDM_MESSAGE_MAX ||
	    !is_inside(m, r->local, r->bytes) ||
	    !is_inside(m, r->remote, r->bytes) ||
	    (r->op == EDM_RMW && (r->bytes != WORD || r->remote % WORD)))
		return -ERANGE;
	if (!m->table[pair])
		m->table[pair] = calloc(IDS, sizeof(struct state));
	if (!m->table[pair])
		return -ENOMEM;
	while (id < IDS && m->table[pair][id].used)
		id++;
	if (id == IDS)
		return -EAGAIN;
	s = &m->table[pair][id];
	*s = (struct state){.r = *r,
			    .buffer = malloc(r->bytes),
			    .start_ps = m->now_ps,
			    .order = m->order++};
	if (!s->buffer)
		return -ENOMEM;
	s->used = true;
	if (r->op == EDM_WRITE)
		memcpy(s->buffer, edm_memory_at(m, r->src) + r->local,
		       r->bytes);
	pair_start(m, pair);
	m->held += !s->started;
	return 0;
}

/* Only what has changed can let something go. */
static void held_start(struct edm_memory *m)
{
	for (size_t i = 0; i < (size_t)m->nodes * m->nodes; i++)
		pair_start(m, i);
}

bool edm_memory_poll(struct edm_memory *m, uint64_t until_ps,
		     struct edm_completion *out)
{
	struct state *s;

	while (m->done_head == m->done_tail) {
		uint64_t next_ps = edm_queue_next_ps(m->run->q);

		if (next_ps > until_ps) {
			m->now_ps =
				until_ps == EDM_NEVER ? m->now_ps : until_ps;
			return false;
		}
		m->now_ps = next_ps;
		edm_run_until(m->run, next_ps);
		if (m->held)
			held_start(m);
	}
	s = state_at(m, m->done[m->done_head++ & (m->done_size - 1)]);
	*out = (struct edm_completion){.tag = s->r.tag,
				       .start_ps = s->start_ps,
				       .end_ps = m->now_ps,
				       .value = s->value,
				       .null = s->null};
	free(s->buffer);
	*s = (struct state){.used = false};
	return true;
}
