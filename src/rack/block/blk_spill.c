/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that lie in a file. The disk may fail to bring a page of it, which is
 * a fault of whoever touches it: what operators do then ends midway, and the
 * block is broken from then on. Nothing outside of it has changed, as operators
 * touch nothing else.
 */
#include <errno.h>

#include "base/error.h"
#include "base/landing.h"
#include "blk_server_priv.h"

bool blk_spill_is_broken(struct blk_entry *e)
{
	const struct blk_server_config *c = &e->server->config;

	if (e->is_spilled && !e->is_broken && c->is_bad)
		e->is_broken =
			c->is_bad(c->ctx, e->block.mem, e->block.size_bytes);
	return e->is_broken;
}

/* One call, which touches `mem`. */
struct touch {
	struct blk_entry *e;
	const struct blk_request *r;
	struct blk_answer *a;
	uint8_t *place;
	const uint8_t *session;
	const struct blk_place *p;
	int err;
};

static bool guard(struct blk_entry *e, const void *mem, uint64_t bytes,
		  landing_work *work, void *a, const void *b, uintptr_t c)
{
	if (!e->is_spilled)
		return work(a, b, c);
	if (!landing_call(a, b, c, work, (uintptr_t)mem,
			  (uintptr_t)mem + bytes))
		e->is_broken = true;
	return !blk_spill_is_broken(e);
}

static bool guard_block(struct touch *t, landing_work *work)
{
	return guard(t->e, t->e->block.mem, t->e->block.size_bytes, work, t,
		     NULL, 0);
}

static size_t do_begin(void *a, const void *b, uintptr_t c)
{
	struct touch *t = a;

	t->place = blk_begin(&t->e->block, t->r, t->a);
	return 1;
}

uint8_t *blk_spill_begin(struct blk_entry *e, const struct blk_request *r,
			 struct blk_answer *a)
{
	struct touch t = {.e = e, .r = r, .a = a};

	if (guard_block(&t, do_begin))
		return t.place;
	*a = (struct blk_answer){.status = BLOCK_BROKEN};
	return NULL;
}

static size_t do_finish(void *a, const void *b, uintptr_t c)
{
	struct touch *t = a;

	blk_finish(&t->e->block, t->r, t->a);
	return 1;
}

void blk_spill_finish(struct blk_entry *e, const struct blk_request *r,
		      struct blk_answer *a)
{
	struct touch t = {.e = e, .r = r, .a = a};

	if (!guard_block(&t, do_finish))
		*a = (struct blk_answer){.status = BLOCK_BROKEN};
}

static size_t do_leave(void *a, const void *b, uintptr_t c)
{
	struct touch *t = a;

	blk_leave(&t->e->block, t->session);
	return 1;
}

void blk_spill_leave(struct blk_entry *e, const uint8_t *session)
{
	struct touch t = {.e = e, .session = session};

	if (!blk_spill_is_broken(e))
		(void)guard_block(&t, do_leave);
}

static size_t do_give_back(void *a, const void *b, uintptr_t c)
{
	struct touch *t = a;

	blk_give_back(&t->e->block, t->session);
	return 1;
}

void blk_spill_give_back(struct blk_entry *e, const uint8_t *session)
{
	struct touch t = {.e = e, .session = session};

	if (!blk_spill_is_broken(e))
		(void)guard_block(&t, do_give_back);
}

static size_t do_init(void *a, const void *b, uintptr_t c)
{
	struct touch *t = a;

	t->err = blk_init(&t->e->block, &t->p->options, t->p->mem);
	if (t->err)
		t->err = error_set(t->err, "no memory for a block's sessions");
	if (t->err || !t->p->image)
		return 1;
	t->err = blk_image_load(&t->e->block, t->p->image);
	if (t->err)
		blk_release(&t->e->block);
	return 1;
}

int blk_spill_init(struct blk_entry *e, const struct blk_place *p)
{
	struct touch t = {.e = e, .p = p};

	e->block.mem = p->mem;
	e->block.size_bytes = p->options.size_bytes;
	if (guard(e, p->mem, p->options.size_bytes, do_init, &t, NULL, 0))
		return t.err;
	/* What it had is not given back: it is not known how far it came. */
	return error_set(-EIO, "the disk of the spill tier fails");
}

static size_t do_copy(void *a, const void *b, uintptr_t c)
{
	memcpy(a, b, c);
	return 1;
}

bool blk_spill_copy(struct blk_entry *e, void *to, const void *from,
		    size_t bytes)
{
	return guard(e, e->block.mem, e->block.size_bytes, do_copy, to, from,
		     bytes);
}
