/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups by messages to a server in C beside the memory: one after the other,
 * as servers do, or interleaved and prefetched by hand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "hlog/redy.h"
#include "offload_conn.h"
#include "ticks.h"
#include "walk_bench.h"

/* Both ways. */
struct message {
	uint64_t tag;
	uint64_t start; /* request */
	uint64_t key;	/* request; the value in an answer */
};

struct work {
	const struct walk_node *at; /* NULL: free */
	struct message message;
};

struct state {
	struct client_link *link;
	struct redy_port port;
	struct rng rng;
	struct walk_query query[REDY_MESSAGES];
	uint64_t begun[REDY_MESSAGES];
	struct work work[REDY_MESSAGES];
	unsigned busy;
};

static int setup(struct side *s)
{
	struct state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	rng_init(&st->rng, 1);
	rc = conn_open(s, NULL, 0, &st->link);
	if (rc < 0)
		return rc;
	rc = redy_port_init(&st->port, st->link, sizeof(struct message));
	return rc < 0 ? side_fail(s, rc, "messages") : side_meet(s);
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	if (!st)
		return;
	if (st->port.memory)
		redy_port_release(&st->port);
	conn_close(st->link);
	free(st);
}

static int send_message(struct state *st, const struct message *m)
{
	uint8_t *buffer = redy_port_buffer(&st->port);

	if (!buffer)
		return -ENOBUFS;
	memcpy(buffer, m, sizeof(*m));
	return redy_port_send(&st->port, sizeof(*m));
}

/* ---- the server ---------------------------------------------------------- */

static const struct walk_node *node_at(const struct walk_list *l, uint64_t at)
{
	return (const struct walk_node *)(const void *)(l->memory + at);
}

/* One lookup after the other. */
static int answer(struct state *st, const struct walk_list *l,
		  struct message *m)
{
	const struct walk_node *n = node_at(l, m->start);

	while (n->key != m->key && n->next)
		n = node_at(l, n->next);
	m->key = n->key == m->key ? n->value : 0;
	return send_message(st, m);
}

/* One step of each lookup, then the next node is on its way. */
static int step_all(struct state *st, const struct walk_list *l)
{
	int rc = 0;

	for (unsigned i = 0; i < REDY_MESSAGES && rc == 0; i++) {
		struct work *w = &st->work[i];
		const struct walk_node *n = w->at;

		if (!n)
			continue;
		if (n->key != w->message.key && n->next) {
			w->at = node_at(l, n->next);
			__builtin_prefetch(w->at);
			continue;
		}
		w->message.key = n->key == w->message.key ? n->value : 0;
		w->at = NULL;
		st->busy--;
		rc = send_message(st, &w->message);
	}
	return rc;
}

static int begin(struct state *st, const struct walk_list *l,
		 const struct message *m)
{
	unsigned i = 0;

	while (i < REDY_MESSAGES && st->work[i].at)
		i++;
	if (i == REDY_MESSAGES)
		return -ENOBUFS;
	st->work[i] = (struct work){node_at(l, m->start), *m};
	__builtin_prefetch(st->work[i].at);
	st->busy++;
	return 0;
}

static int serve(struct side *s)
{
	const struct walk_param *p = s->param;
	struct redy_event ev[REDY_MESSAGES];
	struct state *st = s->state;
	int rc = 0;

	while (!side_stopped(s) && rc >= 0) {
		int n = redy_port_poll(&st->port, ev, REDY_MESSAGES);

		rc = n < 0 ? n : 0;
		for (int i = 0; i < n && rc == 0; i++) {
			struct message m;

			memcpy(&m, ev[i].data, sizeof(m));
			rc = redy_port_recycle(&st->port, ev[i].index);
			if (rc == 0)
				rc = p->way == WALK_WAY_PREFETCH
					     ? begin(st, p->list, &m)
					     : answer(st, p->list, &m);
		}
		/* Some steps between looks at the queue. */
		for (unsigned i = 0; i < 4 && st->busy && rc == 0; i++)
			rc = step_all(st, p->list);
	}
	return rc < 0 ? side_fail(s, rc, "serving") : 0;
}

/* ---- the client ---------------------------------------------------------- */

static int ask(const struct walk_param *p, struct state *st, uint64_t tag)
{
	const struct walk_query q = walk_list_query(p->list, rng_u64(&st->rng));
	const struct message m = {.tag = tag, .start = q.start, .key = q.key};

	st->query[tag] = q;
	st->begun[tag] = bench_ticks();
	return send_message(st, &m);
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	const struct walk_param *p = s->param;
	struct redy_event ev[REDY_MESSAGES];
	struct state *st = s->state;
	uint64_t end = side_end_ticks(s, window_ns), under_way = 0;
	int rc = 0;

	out->ops = 0;
	for (; rc == 0 && under_way < p->depth; under_way++)
		rc = ask(p, st, under_way);
	while (rc == 0 && under_way) {
		int n = redy_port_poll(&st->port, ev, REDY_MESSAGES);

		rc = n < 0 ? n : 0;
		for (int i = 0; i < n && rc == 0; i++) {
			struct message m;

			memcpy(&m, ev[i].data, sizeof(m));
			rc = redy_port_recycle(&st->port, ev[i].index);
			if (m.tag >= p->depth ||
			    m.key != st->query[m.tag].value)
				return side_fail(s, -EBADMSG, "a wrong answer");
			side_sample(s, 0, bench_ticks() - st->begun[m.tag]);
			out->ops++;
			if (bench_ticks() >= end)
				under_way--;
			else if (rc == 0)
				rc = ask(p, st, m.tag);
		}
	}
	return rc < 0 ? side_fail(s, rc, "asking") : 0;
}

const struct side_ops walk_rpc_ops = {
	.setup = setup,
	.serve = serve,
	.measure = measure,
	.teardown = teardown,
};
