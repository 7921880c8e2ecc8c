/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of blocks that are in use, and blocks that are halted for them. What
 * would change a halted block waits here until its image is taken, or until it
 * has waited for long enough. Who wants one image of many blocks halts all of
 * them, and takes images when the last one has stopped: each is what the block
 * was at that moment.
 */
#include <errno.h>

#include "base/error.h"
#include "blk_server_priv.h"

static struct blk_entry *find(struct blk_server *s, uint32_t index,
			      uint64_t generation)
{
	struct blk_entry *e = index < BLK_INDEX_MAX ? s->entry[index] : NULL;

	return e && e->generation == generation ? e : NULL;
}

void blk_halt_end(struct blk_entry *e)
{
	if (!e->halted_by)
		return;
	e->halted_by = 0;
	blk_job_let_in(e);
	blk_server_go_on(e->server);
}

void blk_halt_tick(struct blk_entry *e, uint64_t now_ns)
{
	if (e->halted_by && now_ns >= e->halted_until_ns)
		blk_halt_end(e);
}

/* A change has begun: it comes to its end. */
static bool is_changing(const struct blk_entry *e)
{
	return e->busy || (e->chain && blk_chain_is_busy(e->chain));
}

static int halt(struct blk_server *s, struct blk_entry *e, uint64_t by)
{
	uint64_t now_ns = s->config.now_ns(s->config.ctx);

	if (e->is_leaving || e->is_frozen)
		return error_set(-ENOENT, "the block is not in use any more");
	if (e->chain && !blk_chain_is_head(e->chain))
		return error_set(-EAGAIN, "another node has taken its place");
	if (e->halted_by && e->halted_by != by)
		return error_set(-EAGAIN, "the block is frozen already");
	/* Not anew, while what has begun goes on. */
	if (!e->halted_by)
		e->halted_until_ns = now_ns + BLK_HALT_MS * 1000000ull;
	e->halted_by = by;
	return is_changing(e) ? error_set(-EBUSY, "the block is in use") : 0;
}

int blk_server_halt(struct blk_server *s, uint32_t index, uint64_t generation,
		    uint64_t by)
{
	struct blk_entry *e;
	int err;

	pthread_mutex_lock(&s->lock);
	e = find(s, index, generation);
	err = e ? halt(s, e, by)
		: error_set(-ENOENT, "the node has no such block");
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* Nobody uses it from now on. */
static int freeze(struct blk_server *s, struct blk_entry *e)
{
	e->is_frozen = true;
	blk_halt_end(e);
	blk_hold_wake(s, e, true);
	(void)blk_hold_run(s, UINT32_MAX);
	return e->busy || !list_is_empty(&e->waiting)
		       ? error_set(-EBUSY, "the block is in use")
		       : 0;
}

static int check_halt(const struct blk_server *s, const struct blk_entry *e,
		      uint64_t by)
{
	if (e->halted_by != by ||
	    s->config.now_ns(s->config.ctx) >= e->halted_until_ns)
		return error_set(-ETIMEDOUT,
				 "it is not frozen any more: it was not saved "
				 "within %d s, or another node has taken its "
				 "place",
				 BLK_HALT_MS / 1000);
	if (e->chain && !blk_chain_is_head(e->chain))
		return error_set(-EAGAIN, "another node has taken its place");
	return is_changing(e) ? error_set(-EBUSY, "the block is in use") : 0;
}

int blk_server_image(struct blk_server *s, uint32_t index, uint64_t generation,
		     enum blk_image_how how, const struct blk_image_id *id,
		     struct blk_image *out)
{
	struct blk_entry *e;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	e = find(s, index, generation);
	if (!e)
		err = error_set(-ENOENT, "the node has no such block");
	else if (how == BLK_IMAGE_FINAL)
		err = freeze(s, e);
	else if (how == BLK_IMAGE_HALTED)
		err = check_halt(s, e, id->image);
	if (!err)
		err = blk_image_take(&e->block, id, out);
	if (!err && how == BLK_IMAGE_HALTED)
		blk_halt_end(e);
	pthread_mutex_unlock(&s->lock);
	return err;
}
