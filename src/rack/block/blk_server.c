/* SPDX-License-Identifier: Apache-2.0 */
/* The block server: its blocks and sessions, and whose turn it is. Each
 * protection domain has a line of its own, as at the page server. */
#include "blk_server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "blk_server_priv.h"

enum {
	TURN = 4, /* completions of a line */
};

/* ---- life ---------------------------------------------------------------- */

int blk_server_create(const struct blk_server_config *config,
		      struct blk_server **out)
{
	struct blk_server *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(-ENOMEM, "no memory for a block server");
	pthread_mutex_init(&s->lock, NULL);
	s->config = *config;
	list_init(&s->clients);
	list_init(&s->ready);
	list_init(&s->chained);
	list_init(&s->woken);
	s->channel = ibv_create_comp_channel(config->context);
	s->none = ibv_create_cq(config->context, 1, NULL, NULL, 0);
	if (!s->channel || !s->none) {
		blk_server_destroy(s);
		return error_set(-ENOMEM, "no completion channel is left");
	}
	*out = s;
	return 0;
}

void blk_server_destroy(struct blk_server *s)
{
	while (!list_is_empty(&s->clients))
		blk_server_end_session(
			s,
			container_of(s->clients.next, struct blk_client, link));
	for (unsigned i = 0; i < BLK_LINES_MAX; i++)
		if (s->line[i].cq)
			(void)ibv_destroy_cq(s->line[i].cq);
	if (s->trunk_cq)
		(void)ibv_destroy_cq(s->trunk_cq);
	if (s->none)
		(void)ibv_destroy_cq(s->none);
	if (s->channel)
		(void)ibv_destroy_comp_channel(s->channel);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void blk_server_counts(struct blk_server *s, struct blk_counts *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->counts;
	pthread_mutex_unlock(&s->lock);
}

/* ---- lines --------------------------------------------------------------- */

struct blk_line *blk_line_join(struct blk_server *s, struct ibv_pd *pd)
{
	unsigned n = atomic_load_explicit(&s->line_count, memory_order_relaxed);
	struct blk_line *l = NULL;

	for (unsigned i = 0; i < n; i++) {
		if (s->line[i].pd == pd)
			return &s->line[i];
		if (!s->line[i].guests && !s->line[i].sessions)
			l = &s->line[i];
	}
	if (!l && n < BLK_LINES_MAX) {
		l = &s->line[n];
		l->cq = ibv_create_cq(s->config.context, BLK_LINE_DEPTH, NULL,
				      s->channel, 0);
		if (!l->cq)
			return NULL;
		/* BLKLINES-1: who sees the line sees its queue. */
		atomic_store_explicit(&s->line_count, n + 1,
				      memory_order_release);
	}
	if (l)
		l->pd = pd;
	return l;
}

/* ---- blocks -------------------------------------------------------------- */

int blk_server_add(struct blk_server *s, const struct blk_place *p)
{
	struct blk_entry *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return error_set(-ENOMEM, "no memory for a block");
	e->server = s;
	e->is_spilled = p->is_spilled;
	err = blk_spill_init(e, p);
	if (err) {
		free(e);
		return err;
	}
	e->index = p->index;
	e->generation = p->options.generation;
	e->object = p->object;
	e->pd = p->pd;
	e->mr = p->mr;
	list_init(&e->waiting);
	list_init(&e->chained);
	list_init(&e->holds);
	pthread_mutex_lock(&s->lock);
	if (s->entry[p->index])
		err = error_set(-EEXIST, "block %u is in use", p->index);
	else if (p->is_chained)
		err = blk_chained_init(s, e, !p->joins);
	if (!err)
		s->entry[p->index] = e;
	s->entry_end = u32_max(s->entry_end, p->index + 1);
	pthread_mutex_unlock(&s->lock);
	if (err) {
		blk_release(&e->block);
		free(e);
	}
	return err;
}

static struct blk_entry *find(struct blk_server *s, uint32_t index,
			      uint64_t generation)
{
	struct blk_entry *e = index < BLK_INDEX_MAX ? s->entry[index] : NULL;

	return e && e->generation == generation ? e : NULL;
}

/* Who waits for events of a block that nobody may use any more hears it. */
static void end_watching(struct blk_server *s, struct blk_entry *e)
{
	if (s->entry[e->index] != e)
		blk_hold_end_block(s, e);
	else
		blk_hold_wake(s, e, true);
	(void)blk_hold_run(s, UINT32_MAX);
}

int blk_server_remove(struct blk_server *s, uint32_t index, uint64_t generation)
{
	struct blk_entry *e;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	e = find(s, index, generation);
	if (e && (e->chain || e->halted_by)) {
		e->is_leaving = true;
		blk_halt_end(e);
		if (e->chain)
			blk_chained_flush(e);
	}
	if (!e)
		err = -ENOENT;
	else if (e->under_way || e->busy || !list_is_empty(&e->waiting))
		err = -EBUSY;
	else
		s->entry[index] = NULL;
	if (err == -EBUSY)
		e->is_leaving = true;
	if (e)
		end_watching(s, e);
	if (!err)
		blk_chained_release(e);
	pthread_mutex_unlock(&s->lock);
	if (!err) {
		blk_release(&e->block);
		free(e);
	}
	return err;
}

uint64_t blk_server_hear(struct blk_server *s, uint32_t index,
			 uint64_t generation)
{
	uint64_t before;

	pthread_mutex_lock(&s->lock);
	before = s->heard[index];
	s->heard[index] = u64_max(before, generation);
	pthread_mutex_unlock(&s->lock);
	return before;
}

int blk_server_report(struct blk_server *s, uint32_t index, uint64_t generation,
		      struct blk_report *out)
{
	struct blk_entry *e;

	pthread_mutex_lock(&s->lock);
	e = find(s, index, generation);
	if (e)
		*out = (struct blk_report){
			.used_bytes = blk_used_bytes(&e->block),
			.is_sealed = e->block.flags & BLOCK_IS_SEALED,
			.is_drained = blk_is_drained(&e->block),
			.epoch = e->chain ? e->chain->config.epoch : 0,
			.is_whole = !e->chain || blk_chain_is_whole(e->chain)};
	pthread_mutex_unlock(&s->lock);
	return e ? 0 : -ENOENT;
}

static bool is_at_rest(const struct blk_entry *e)
{
	return !e->busy && !e->under_way && list_is_empty(&e->waiting) &&
	       !e->is_frozen && !e->is_leaving;
}

int blk_server_bring_back(struct blk_server *s, uint32_t index,
			  uint64_t generation, void *mem, struct ibv_mr *mr)
{
	struct blk_entry *e;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	e = find(s, index, generation);
	if (!e || !e->is_spilled)
		err = -ENOENT;
	else if (!is_at_rest(e))
		err = -EBUSY;
	if (!err) {
		/* Nobody reads the old one after the new one has changed. */
		err = ibv_dereg_mr(e->mr);
		ASSERT(err == 0);
		e->mr = NULL;
		if (!blk_spill_copy(e, mem, e->block.mem, e->block.size_bytes))
			err = -EIO;
	}
	if (!err) {
		e->block.mem = mem;
		e->mr = mr;
		e->is_spilled = false;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* ---- sessions ------------------------------------------------------------ */

/* In a chain the head says so, when it can; for others it is no end. */
static void leave(struct blk_entry *e, const uint8_t *session)
{
	uint32_t at;

	if (!e->chain)
		blk_spill_leave(e, session);
	else if (blk_chain_is_head(e->chain) &&
		 !blk_session_find(&e->block, session, false, &at))
		e->block.session[at].ends = true;
}

void blk_server_leave(struct blk_server *s, const struct ibv_pd *pd,
		      const uint8_t session[BLOCK_SESSION_BYTES])
{
	for (unsigned i = 0; i < s->entry_end; i++)
		if (s->entry[i] && s->entry[i]->pd == pd) {
			leave(s->entry[i], session);
			blk_hold_wake(s, s->entry[i], false);
		}
}

void blk_server_end_session(struct blk_server *s, struct blk_client *c)
{
	blk_server_leave(s, c->pd, c->id);
	for (unsigned i = 0; i < BLK_LINES_MAX; i++)
		if (s->line[i].pd == c->pd)
			s->line[i].sessions--;
	s->counts.sessions_ended++;
	list_remove(&c->link);
	free(c);
}

/* The head of a chain says that, too. */
static void give_back(struct blk_entry *e, const uint8_t *session)
{
	uint32_t at;

	if (!e->chain)
		blk_spill_give_back(e, session);
	else if (blk_chain_is_head(e->chain) &&
		 !blk_session_find(&e->block, session, false, &at))
		e->block.session[at].returns = true;
}

static void return_items(struct blk_server *s, struct blk_client *c)
{
	c->has_returned = true;
	for (unsigned i = 0; i < s->entry_end; i++)
		if (s->entry[i] && s->entry[i]->pd == c->pd &&
		    s->entry[i]->block.kind == &blk_kind_queue) {
			give_back(s->entry[i], c->id);
			blk_hold_wake(s, s->entry[i], false);
		}
}

void blk_server_welcome(struct blk_server *s, struct blk_client *c)
{
	uint32_t at;

	c->has_returned = false;
	for (unsigned i = 0; i < s->entry_end; i++)
		if (s->entry[i] && s->entry[i]->pd == c->pd &&
		    s->entry[i]->chain &&
		    !blk_session_find(&s->entry[i]->block, c->id, false, &at))
			s->entry[i]->block.session[at].returns = false;
}

static bool is_here(const struct blk_server *s, const struct blk_entry *e,
		    const uint8_t *id)
{
	for (const struct list *l = s->clients.next; l != &s->clients;
	     l = l->next) {
		const struct blk_client *c =
			container_of(l, struct blk_client, link);

		if (c->pd == e->pd && !memcmp(c->id, id, sizeof(c->id)))
			return true;
	}
	return false;
}

/* Sessions that came with slots of another node's block, and whose clients do
 * not come. */
static void end_strangers(struct blk_server *s, struct blk_entry *e,
			  uint64_t now_ns)
{
	for (uint32_t i = 0; i < e->block.session_room; i++) {
		struct blk_session *k = &e->block.session[i];

		if (!k->is_used || !k->has_come)
			continue;
		if (is_here(s, e, k->id)) {
			k->has_come = false;
			k->came_ns = 0;
		} else if (!k->came_ns) {
			k->came_ns = now_ns;
		} else if (now_ns - k->came_ns >
			   BLK_SESSION_KEEP_MS * 1000000ull) {
			leave(e, k->id);
		}
	}
}

/* A client without a connection: what becomes of its session. */
static void fade(struct blk_server *s, struct blk_client *c, uint64_t now_ns)
{
	uint64_t away_ns = now_ns > c->left_ns ? now_ns - c->left_ns : 0;

	if (away_ns > BLK_SESSION_KEEP_MS * 1000000ull)
		blk_server_end_session(s, c);
	else if (away_ns > BLK_ITEMS_KEEP_MS * 1000000ull && !c->has_returned)
		return_items(s, c);
}

static bool has_trunks(struct blk_server *s)
{
	/* BLKTRUNK-1, with the making of their queue. */
	return atomic_load_explicit(&s->has_trunks, memory_order_acquire);
}

void blk_server_tick(struct blk_server *s, uint64_t now_ns)
{
	struct list *l, *next;

	pthread_mutex_lock(&s->lock);
	for (l = s->clients.next; l != &s->clients; l = next) {
		struct blk_client *c = container_of(l, struct blk_client, link);

		next = l->next;
		if (!c->guest)
			fade(s, c, now_ns);
	}
	for (unsigned i = 0; i < s->entry_end; i++)
		if (s->entry[i] && (s->entry[i]->chain ||
				    s->entry[i]->block.kind == &blk_kind_ekv))
			end_strangers(s, s->entry[i], now_ns);
	for (unsigned i = 0; i < s->entry_end; i++)
		if (s->entry[i])
			blk_halt_tick(s->entry[i], now_ns);
	/* Chains whose members are all here; others have a faster clock. */
	if (!has_trunks(s))
		blk_chained_tick(s, now_ns);
	(void)blk_hold_run(s, UINT32_MAX);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the loop ------------------------------------------------------------ */

static bool take(struct blk_server *s, const struct ibv_wc *wc)
{
	uint32_t id = (uint32_t)(wc->wr_id >> 32);
	uint32_t low = (uint32_t)wc->wr_id;
	struct blk_guest *g = s->guest[id % BLK_GUESTS_MAX];
	bool is_ok = wc->status == IBV_WC_SUCCESS;
	struct blk_job *j;

	if (!g || g->id != id)
		return false;
	j = &g->job[low & BLK_WR_SLOT];
	if (low & BLK_WR_PULL)
		blk_job_pulled(j, is_ok);
	else if (low & BLK_WR_ANSWER)
		blk_job_answered(j);
	else if (is_ok && !g->is_fenced)
		blk_job_start(j, wc->byte_len);
	return is_ok && !(low & ~BLK_WR_SLOT);
}

/* Those whose block has become free. */
void blk_server_go_on(struct blk_server *s)
{
	while (!list_is_empty(&s->ready)) {
		struct blk_job *j =
			container_of(s->ready.next, struct blk_job, link);

		list_remove(&j->link);
		blk_job_go_on(j);
	}
}

static unsigned look(struct blk_server *s, struct blk_line *l)
{
	struct ibv_wc wc[TURN];
	unsigned served = 0;
	int n = ibv_poll_cq(l->cq, TURN, wc);

	if (n <= 0)
		return 0;
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < n; i++) {
		served += take(s, &wc[i]);
		blk_server_go_on(s);
	}
	s->has_woken = !list_is_empty(&s->woken);
	pthread_mutex_unlock(&s->lock);
	return served;
}

static unsigned line_count(struct blk_server *s)
{
	/* BLKLINES-1, with the line's making. */
	return atomic_load_explicit(&s->line_count, memory_order_acquire);
}

/* Not all at once: messages of others come between. */
static unsigned wake_some(struct blk_server *s)
{
	unsigned n;

	if (!s->has_woken)
		return 0;
	pthread_mutex_lock(&s->lock);
	n = blk_hold_run(s, BLK_WAKES);
	s->has_woken = !list_is_empty(&s->woken);
	pthread_mutex_unlock(&s->lock);
	return n;
}

unsigned blk_server_step(struct blk_server *s)
{
	unsigned n = line_count(s), served = 0;
	struct ibv_wc unused;

	for (unsigned i = 0; i < n; i++)
		if (atomic_load_explicit(&s->line[i].is_looked,
					 memory_order_relaxed))
			served += look(s, &s->line[i]);
	if (has_trunks(s))
		served += blk_trunks_look(s);
	served += wake_some(s);
	/* As at the page server: a look in vain moves the NIC's frames. */
	if (served)
		(void)ibv_poll_cq(s->none, 1, &unused);
	return served;
}

void blk_server_wait(struct blk_server *s, uint32_t timeout_ms)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
	unsigned n = line_count(s);
	struct ibv_cq *cq;
	void *user;

	for (unsigned i = 0; i < n; i++)
		if (ibv_req_notify_cq(s->line[i].cq, 0))
			return;
	if (has_trunks(s)) {
		/* Chains have clocks of their own. */
		timeout_ms = u32_min(timeout_ms, BLK_CHAINED_SLEEP_MS);
		if (ibv_req_notify_cq(s->trunk_cq, 0))
			return;
	}
	if (blk_server_step(s))
		return;
	if (poll(&fd, 1, (int)timeout_ms) == 1 &&
	    ibv_get_cq_event(s->channel, &cq, &user) == 0)
		ibv_ack_cq_events(cq, 1);
}
