/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of the server that are members of chains: what their chains ask for,
 * and their clock. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "blk_server_priv.h"

enum {
	TICK_MS = 5,
};

/* ---- what a chain asks for ----------------------------------------------- */

static bool send(void *ctx, const struct blk_member *to,
		 struct blk_link_message *m)
{
	struct blk_entry *e = ctx;

	if (!blk_trunk_send(e->server, to, m))
		return false;
	if (m->type == BLK_LINK_COPY)
		e->server->counts.copied_bytes += m->bytes;
	return true;
}

static bool is_held(void *ctx)
{
	const struct blk_entry *e = ctx;

	return e->busy && e->busy->state == BLK_JOB_PULLS;
}

static void done(void *ctx, const struct blk_answer *a)
{
	struct blk_entry *e = ctx;

	if (e->busy && e->busy->state == BLK_JOB_CHAINS)
		blk_job_chained(e->busy, e, a);
}

/* Those that wait try again; each keeps the time since when it does. */
static void freed(void *ctx)
{
	struct blk_entry *e = ctx;

	blk_hold_wake(e->server, e, false);
	blk_job_let_in(e);
}

/* ---- life ---------------------------------------------------------------- */

int blk_chained_init(struct blk_server *s, struct blk_entry *e, bool has_state)
{
	struct blk_chain_carrier carrier = {
		.ctx = e,
		.send = send,
		.is_held = is_held,
		.done = done,
		.freed = freed,
	};

	e->chain = calloc(1, sizeof(*e->chain));
	if (!e->chain)
		return error_set(-ENOMEM, "no memory for a chain");
	blk_chain_init(e->chain, &e->block, has_state, &carrier);
	list_append(&s->chained, &e->chained);
	return 0;
}

void blk_chained_release(struct blk_entry *e)
{
	list_remove(&e->chained);
	free(e->chain);
	e->chain = NULL;
}

static void send_away(struct blk_job *j, struct blk_entry *e)
{
	struct blk_answer a = {.status = BLOCK_ELSEWHERE};

	blk_job_chained(j, e, &a);
}

void blk_chained_flush(struct blk_entry *e)
{
	if (e->busy && e->busy->state == BLK_JOB_CHAINS)
		send_away(e->busy, e);
	while (!list_is_empty(&e->waiting))
		send_away(container_of(e->waiting.next, struct blk_job, link),
			  e);
	blk_server_go_on(e->server);
}

int blk_server_configure(struct blk_server *s, uint32_t index,
			 uint64_t generation,
			 const struct blk_chain_config *config)
{
	struct blk_entry *e;

	pthread_mutex_lock(&s->lock);
	e = index < BLK_INDEX_MAX ? s->entry[index] : NULL;
	if (e && (e->generation != generation || !e->chain || e->is_leaving))
		e = NULL;
	if (e) {
		blk_chain_configure(e->chain, config,
				    s->config.now_ns(s->config.ctx));
		blk_server_go_on(s);
		(void)blk_hold_run(s, UINT32_MAX);
	}
	pthread_mutex_unlock(&s->lock);
	return e ? 0 : -ENOENT;
}

/* ---- time ---------------------------------------------------------------- */

static bool is_stuck(const struct blk_job *j, uint64_t now_ns)
{
	return j->since_ns && now_ns > j->since_ns &&
	       now_ns - j->since_ns >= BLK_CHAIN_STUCK_MS * 1000000ull;
}

/* Clients ask the controller who answers now, and repeat themselves. */
static void send_stuck_away(struct blk_entry *e, uint64_t now_ns)
{
	struct list *l, *next;

	if (e->busy && e->busy->state == BLK_JOB_CHAINS &&
	    is_stuck(e->busy, now_ns))
		send_away(e->busy, e);
	for (l = e->waiting.next; l != &e->waiting; l = next) {
		struct blk_job *j = container_of(l, struct blk_job, link);

		next = l->next;
		if (is_stuck(j, now_ns))
			send_away(j, e);
	}
}

/* Who waits for events here needs its lease for the next one; without it others
 * tell them. */
static void keep_watched(struct blk_entry *e, uint64_t now_ns)
{
	if (!list_is_empty(&e->holds) && !blk_chain_may_read(e->chain, now_ns))
		blk_hold_wake(e->server, e, true);
}

void blk_chained_tick(struct blk_server *s, uint64_t now_ns)
{
	if (now_ns - s->ticked_ns < TICK_MS * 1000000ull)
		return;
	s->ticked_ns = now_ns;
	for (struct list *l = s->chained.next; l != &s->chained; l = l->next) {
		struct blk_entry *e =
			container_of(l, struct blk_entry, chained);

		blk_chain_tick(e->chain, now_ns);
		if (!e->busy)
			(void)blk_chain_end_session(e->chain, now_ns);
		send_stuck_away(e, now_ns);
		keep_watched(e, now_ns);
	}
	blk_server_go_on(s);
}
