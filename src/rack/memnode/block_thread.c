/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that executes messages about blocks, and whether it believes a
 * ticket. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/error.h"
#include "base/relax.h"
#include "blocks.h"
#include "spill.h"

static uint64_t wall_s(void *ctx)
{
	return (uint64_t)time(NULL);
}

static uint64_t now_ns(void *ctx)
{
	struct mem_blocks *b = ctx;

	return env_now_ns(b->of->env);
}

enum block_status block_ticket_judge(void *ctx, const char *tenant,
				     const uint8_t by[BLK_BY_BYTES],
				     const uint8_t *ticket, uint32_t len_bytes,
				     struct blk_right *out)
{
	struct mem_blocks *b = ctx;
	struct ctl_ticket t;
	int err;

	if (len_bytes != CTL_TICKET_BYTES)
		return BLOCK_DENIED;
	pthread_mutex_lock(&b->keys_lock);
	err = ctl_ticket_verify(ticket, &b->keys, wall_s(NULL), &t);
	pthread_mutex_unlock(&b->keys_lock);
	if (err == -ENOKEY)
		return BLOCK_BUSY; /* the next beat may bring the key */
	if (err || strcmp(t.tenant, tenant) != 0 || !ctl_ticket_is_of(&t, by))
		return BLOCK_DENIED;
	*out = (struct blk_right){
		.object = t.object,
		.end_s = t.end_s + CTL_TICKET_SLACK_S,
		.may_change = t.rights & CTL_TICKET_CHANGE,
	};
	return BLOCK_OK;
}

static bool is_bad(void *ctx, const void *mem, uint64_t bytes)
{
	const struct mem_blocks *b = ctx;

	return b->of->spill && spill_is_bad(b->of->spill, mem, bytes);
}

enum {
	/* Looks without a message where others want the core, before it
	 * sleeps: some 10 us. A client that waits for each answer sends the
	 * next message sooner, and being woken takes 50 us there. */
	LOOKS_CROWDED = 100,
};

/* Whether to look again at once, after so many looks in vain. */
static bool looks_on(unsigned idle)
{
	return relax_is_crowded() ? idle < LOOKS_CROWDED
				  : idle < MEM_PAGE_YIELDS;
}

/* While messages come it sleeps on the next frame, which wakes it sooner than
 * the NIC's thread could. */
static bool dozes(struct mem_blocks *b, uint64_t served_ns)
{
	struct ibv_context *context = b->of->context;

	if (now_ns(b) - served_ns < BLOCKS_DOZY_MS * 1000000ull)
		return aqdv_doze(context, BLOCKS_DOZE_US) == 0;
	(void)aqdv_doze(context, 0); /* no such NIC: nothing is to be done */
	return false;
}

static void *run(void *arg)
{
	struct mem_blocks *b = arg;
	uint64_t served_ns = 0;
	bool has_served = false; /* since it looked at the clock */
	unsigned idle = 0;

	/* By itself, as a confined process can. */
	(void)pthread_setname_np(pthread_self(), "aq-blocks");
	/* Relaxed: nothing else hangs on it. */
	while (!atomic_load_explicit(&b->stops, memory_order_relaxed)) {
		if (blk_server_step(b->server)) {
			idle = 0;
			has_served = true;
		} else if (looks_on(++idle)) {
			if (!relax_is_crowded())
				relax_briefly();
		} else {
			/* It has looked for some microseconds since. */
			if (has_served)
				served_ns = now_ns(b);
			has_served = false;
			if (dozes(b, served_ns))
				continue;
			blk_server_wait(b->server, BLOCKS_SLEEP_MS);
			idle = 0;
		}
	}
	return NULL;
}

int block_thread_start(struct mem_blocks *b)
{
	struct blk_server_config config = {.context = b->of->context,
					   .ctx = b,
					   .judge = block_ticket_judge,
					   .is_bad = is_bad,
					   .wall_s = wall_s,
					   .now_ns = now_ns};
	sigset_t all, before;
	int err = blk_server_create(&config, &b->server);

	if (err)
		return err;
	atomic_init(&b->stops, false);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&b->thread, NULL, run, b);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	b->has_thread = err == 0;
	return err ? error_set(-err, "no thread for blocks: %s", strerror(err))
		   : 0;
}

void block_thread_stop(struct mem_blocks *b)
{
	if (b->has_thread) {
		atomic_store_explicit(&b->stops, true, memory_order_relaxed);
		(void)pthread_join(b->thread, NULL);
	}
}
