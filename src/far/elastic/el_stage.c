/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that values wait in until a node fetches them. A node on this machine
 * may map it, for reading, and then fetches by loads instead of frames.
 *
 * Who maps memory can read it later than it should. So it is given away after a
 * message that was not answered, and never used for anything else: what a node
 * reads then is what the message meant, or a mapping that is over, and a READ
 * of that does not count (os/direct.c).
 */
#include <aquifer/aqdv.h>

#include "client/verbs_api.h"
#include "el_priv.h"

void el_stage_drop(struct el_object *o)
{
	struct el_stage *s = &o->stage;

	if (s->mr) {
		struct ibv_context *context = s->mr->context;
		int err = o->verbs->dereg_mr(s->mr);

		/* Without the key nobody maps it; the pages go with it. */
		ASSERT(err == 0);
		err = aqdv_free(context, s->at);
		ASSERT(err == 0);
	}
	*s = (struct el_stage){0};
}

static bool make(struct el_object *o)
{
	struct el_stage *s = &o->stage;
	struct ibv_context *context = o->mr->context;
	void *at;

	if (aqdv_alloc(context, EL_STAGING_BYTES, AQDV_ALLOC_READ_ONLY, &at))
		return false;
	/* A right to write would keep it from being mapped. */
	s->mr = o->verbs->reg_mr(o->mr->pd, at, EL_STAGING_BYTES,
				 IBV_ACCESS_LOCAL_WRITE |
					 IBV_ACCESS_REMOTE_READ);
	if (!s->mr) {
		(void)aqdv_free(context, at); /* it was made just now */
		return false;
	}
	s->at = at;
	return true;
}

uint8_t *el_stage(struct el_object *o, uint32_t *key)
{
	struct el_stage *s = &o->stage;

	if (s->is_doubtful)
		el_stage_drop(o);
	/* An adapter has no such memory, and there may be no more of it. */
	if (!s->mr && !s->is_plain)
		s->is_plain = !make(o);
	*key = s->mr ? s->mr->rkey : o->mr->rkey;
	return s->mr ? s->at : el_staging(o);
}
