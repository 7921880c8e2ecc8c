/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two-sided page server: who its guests are, and whose turn it is. Each
 * protection domain has a line of its own, and a turn is a few completions.
 * After each round of turns the NIC has one: see pframe_server_step.
 */
#include "pframe_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "pframe_server_priv.h"

enum {
	TURN = 4,	/* completions of a line */
	QUIET_MAX = 64, /* looks in vain until a line counts as one without */
};

struct pframe_server {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *none;  /* nothing ever completes there */
	pthread_mutex_t lock; /* all below, and all guests */
	uint32_t next_id;
	/* Lines stay until the server ends, so the loop looks at them without
	 * the lock. Those without guests are used again. */
	atomic_uint line_count;
	struct pframe_line line[PFRAME_LINES_MAX];
	struct pframe_guest *guest[PFRAME_GUESTS_MAX]; /* at id modulo that */
};

/* ---- life --------------------------------------------------------------- */

int pframe_server_create(struct ibv_context *context,
			 struct pframe_server **out)
{
	struct pframe_server *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(-ENOMEM, "no memory for a page server");
	pthread_mutex_init(&s->lock, NULL);
	s->context = context;
	s->channel = ibv_create_comp_channel(context);
	s->none = ibv_create_cq(context, 1, NULL, NULL, 0);
	if (!s->channel || !s->none) {
		pframe_server_destroy(s);
		return error_set(-ENOMEM, "no completion channel is left");
	}
	*out = s;
	return 0;
}

void pframe_server_destroy(struct pframe_server *s)
{
	for (unsigned i = 0; i < PFRAME_LINES_MAX; i++)
		if (s->line[i].cq)
			(void)ibv_destroy_cq(s->line[i].cq);
	if (s->none)
		(void)ibv_destroy_cq(s->none);
	if (s->channel)
		(void)ibv_destroy_comp_channel(s->channel);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- guests come and go -------------------------------------------------- */

static struct pframe_line *find_line(struct pframe_server *s,
				     const struct ibv_pd *pd)
{
	unsigned n = atomic_load_explicit(&s->line_count, memory_order_relaxed);
	struct pframe_line *unused = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct pframe_line *l = &s->line[i];

		/* Also if its last guest has just gone: who comes and goes
		 * must not use up all lines. */
		if (l->pd == pd)
			return l;
		if (!l->guests &&
		    !atomic_load_explicit(&l->is_looked, memory_order_relaxed))
			unused = l;
	}
	if (unused || n == PFRAME_LINES_MAX)
		return unused;
	s->line[n].cq = ibv_create_cq(s->context, PFRAME_LINE_DEPTH, NULL,
				      s->channel, 0);
	if (!s->line[n].cq)
		return NULL;
	/* LINES-1: who sees the line sees its queue. */
	atomic_store_explicit(&s->line_count, n + 1, memory_order_release);
	return &s->line[n];
}

static int join_line(struct pframe_guest *g)
{
	struct pframe_line *l = find_line(g->server, g->space->pd);
	uint32_t depth = 2 * g->depth; /* receives, and answers */

	if (!l)
		return error_set(-EAGAIN, "the page server has no queue left");
	if (depth > PFRAME_LINE_DEPTH - l->depth)
		return error_set(-EAGAIN,
				 "the page connections of a tenant have %d "
				 "requests under way at most",
				 PFRAME_LINE_DEPTH / 2);
	l->pd = g->space->pd;
	l->guests++;
	l->depth += depth;
	atomic_store_explicit(&l->is_looked, true, memory_order_relaxed);
	g->line = l;
	return 0;
}

static int join_space(struct pframe_guest *g)
{
	struct pframe_space *s = g->space;

	for (unsigned i = 0; i < PAGE_CHAIN_COUNT; i++)
		if (s->chain[i])
			return error_set(-EBUSY,
					 "chains work on these pages; the "
					 "processor does not beside them");
	if (s->guests == PFRAME_SPACE_GUESTS_MAX)
		return error_set(-EAGAIN,
				 "%d connections work on the same pages at "
				 "most",
				 PFRAME_SPACE_GUESTS_MAX);
	if (s->guests && s->server != g->server)
		return error_set(-EINVAL,
				 "another server works on these pages");
	if (s->is_pieces && !s->is_sparse && !s->piece) {
		uint64_t bytes = align_up(s->entries * sizeof(*s->piece), 4096);
		void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0);

		if (p == MAP_FAILED)
			return error_set(-ENOMEM, "no memory for keys");
		s->piece = p;
		s->piece_bytes = bytes;
	}
	s->server = g->server;
	return 0;
}

static int find_place(struct pframe_guest *g)
{
	struct pframe_server *s = g->server;

	for (unsigned i = 0; i < PFRAME_GUESTS_MAX; i++) {
		uint32_t id = s->next_id++ & INT32_MAX;

		if (s->guest[id % PFRAME_GUESTS_MAX])
			continue;
		g->id = id;
		return 0;
	}
	return error_set(-EAGAIN, "the page server has %d connections at most",
			 PFRAME_GUESTS_MAX);
}

int pframe_server_admit(struct pframe_guest *g)
{
	struct pframe_server *s = g->server;
	int err;

	pthread_mutex_lock(&s->lock);
	err = join_space(g);
	if (!err)
		err = find_place(g);
	if (!err)
		err = join_line(g);
	if (!err) {
		s->guest[g->id % PFRAME_GUESTS_MAX] = g;
		g->space->guests++;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

void pframe_server_forget(struct pframe_guest *g)
{
	pthread_mutex_lock(&g->server->lock);
	g->server->guest[g->id % PFRAME_GUESTS_MAX] = NULL;
	pframe_leave_forget(g->space, g);
	pthread_mutex_unlock(&g->server->lock);
}

void pframe_server_dismiss(struct pframe_guest *g)
{
	struct pframe_server *s = g->server;

	pthread_mutex_lock(&s->lock);
	s->guest[g->id % PFRAME_GUESTS_MAX] = NULL;
	pframe_guest_settle(g);
	g->space->guests--;
	g->line->guests--;
	g->line->depth -= 2 * g->depth;
	pthread_mutex_unlock(&s->lock);
}

/* ---- the loop ----------------------------------------------------------- */

static bool take(struct pframe_server *s, const struct ibv_wc *wc)
{
	uint32_t id = (uint32_t)(wc->wr_id >> 32);
	uint32_t slot = (uint32_t)wc->wr_id & ~PFRAME_WR_SEND;
	bool is_ok = wc->status == IBV_WC_SUCCESS;
	struct pframe_guest *g = s->guest[id % PFRAME_GUESTS_MAX];

	if (!g || g->id != id)
		return false;
	if ((uint32_t)wc->wr_id & PFRAME_WR_SEND) {
		pframe_guest_answered(g, slot, is_ok);
		return false;
	}
	if (is_ok)
		pframe_guest_serve(g, slot, wc->byte_len);
	return is_ok;
}

/* How many requests it served. */
static unsigned look(struct pframe_server *s, struct pframe_line *l)
{
	struct ibv_wc wc[TURN];
	unsigned served = 0;
	int n = ibv_poll_cq(l->cq, TURN, wc);

	if (n > 0) {
		l->quiet = 0;
		pthread_mutex_lock(&s->lock);
		for (int i = 0; i < n; i++)
			served += take(s, &wc[i]);
		pthread_mutex_unlock(&s->lock);
	} else if (++l->quiet % QUIET_MAX == 0) {
		/* Now and then, so that an idle server takes no lock. */
		pthread_mutex_lock(&s->lock);
		if (!l->guests)
			atomic_store_explicit(&l->is_looked, false,
					      memory_order_relaxed);
		pthread_mutex_unlock(&s->lock);
	}
	return served;
}

static unsigned next_lines(struct pframe_server *s, struct pframe_line **lines)
{
	/* LINES-1, with the line's making. */
	unsigned count =
		atomic_load_explicit(&s->line_count, memory_order_acquire);
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		if (atomic_load_explicit(&s->line[i].is_looked,
					 memory_order_relaxed))
			lines[n++] = &s->line[i];
	return n;
}

unsigned pframe_server_step(struct pframe_server *s)
{
	struct pframe_line *lines[PFRAME_LINES_MAX];
	unsigned n = next_lines(s, lines), served = 0;
	struct ibv_wc unused;

	for (unsigned i = 0; i < n; i++)
		served += look(s, lines[i]);
	/* Who polls in vain moves the NIC's frames. While there is always
	 * something to serve nobody would, where the NIC's thread has no core
	 * of its own, and all other tenants would wait. */
	if (served)
		(void)ibv_poll_cq(s->none, 1, &unused);
	return served;
}

void pframe_server_wait(struct pframe_server *s, uint32_t timeout_ms)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
	struct pframe_line *lines[PFRAME_LINES_MAX];
	unsigned n = next_lines(s, lines);
	struct ibv_cq *cq;
	void *user;

	for (unsigned i = 0; i < n; i++)
		if (ibv_req_notify_cq(lines[i]->cq, 0))
			return;
	if (pframe_server_step(s))
		return;
	if (poll(&fd, 1, (int)timeout_ms) == 1 &&
	    ibv_get_cq_event(s->channel, &cq, &user) == 0)
		ibv_ack_cq_events(cq, 1);
}
