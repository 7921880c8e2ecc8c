/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of an append that landed behind a version of which nobody says
 * that it is committed. That happens when a switch sent an append to the end
 * of the list as it knew it, and the append before this one was lost, is still
 * on its way, or failed; and the switch is not there any more to say more.
 *
 * The append takes effect when the one before it does, which is up to that
 * one's client: it will append its version again, here or elsewhere, or has
 * given it up, which it says in the version. If it is gone, or stays silent and
 * is fenced, then its version will not be appended any more; but it may hang
 * behind another one already, of which the same can be said. So the question
 * goes back from version to version until somebody answers it, or there is
 * nothing before, and then what is not in the list will never be.
 */
#include <errno.h>

#include "base/error.h"
#include "vlist_priv.h"

enum {
	STEPS = 1 << 16,
	PAUSE_NS = 20000,
};

struct inquiry {
	uint64_t key;
	uint64_t from;
	uint64_t node;
	uint64_t before; /* whom to ask */
	uint64_t child;	 /* what is behind it */
	bool is_partial; /* the list is seen from the head only */
	bool is_settled; /* nobody will append it any more */
	uint64_t patience_ns;
};

static int own_next(struct vlist_client *c, uint64_t node, uint64_t *word)
{
	int err = kit_read_now(&c->kit.main, vlist_offset(node), c->word, 8);

	*word = *c->word;
	return err;
}

/* Is it in the list? VLIST_LOST: cannot be said. */
static int look_for(struct vlist_client *c, struct inquiry *q,
		    enum vlist_found *found)
{
	uint64_t last, entry, word;
	int err = 0;

	if (!q->is_partial) {
		err = vlist_walk(c, q->key, q->from, q->node, STEPS, found,
				 &last);
		if (err || *found != VLIST_LOST)
			return err;
		q->is_partial = true;
	}
	err = vlist_entry_find(c, q->key, &entry, &q->from);
	if (!err)
		err = vlist_walk(c, q->key, q->from, q->node, STEPS, found,
				 &last);
	if (err || *found != VLIST_NOT_THERE)
		return err;
	/* It might be before the head, but only if something follows it. */
	err = own_next(c, q->node, &word);
	if (!err && vlist_is_pointer(word))
		*found = VLIST_LOST;
	return err;
}

/* Whether the memory of `before` still has the same use; if so, what was read
 * of it before is of that use, too. */
static int is_same(struct vlist_client *c, const struct inquiry *q, bool *same)
{
	int err = kit_read_now(&c->kit.main,
			       vlist_offset(q->before) +
				       offsetof(struct vlist_node, self),
			       c->word, 8);

	*same = !err && *c->word == q->before;
	return err;
}

/* What the version before says. */
static int ask(struct vlist_client *c, const struct inquiry *q, bool *decided,
	       enum vlist_fate *fate)
{
	const struct vlist_node *n = c->seen;
	bool same;
	int err = kit_read_now(&c->kit.main, vlist_offset(q->before), c->seen,
			       VLIST_NODE_HEAD);

	if (!err)
		err = is_same(c, q, &same);
	if (err)
		return err;
	*decided = true;
	if (!same || le64_get(n->self) != q->before)
		*fate = VLIST_UNKNOWN;
	else if (le64_get(n->next) != q->child)
		*fate = q->child == q->node ? VLIST_NOT_LANDED : VLIST_UNKNOWN;
	else if (le64_get(n->state) == VLIST_NODE_ABANDONED)
		*fate = VLIST_DEAD;
	else
		*decided = false;
	return 0;
}

static bool is_before(struct vlist_client *c, uint64_t link,
		      const struct vlist_node *in, void *ctx)
{
	struct inquiry *q = ctx;

	if (link != q->before)
		return false;
	q->child = q->before;
	q->before = le64_get(in->self);
	return true;
}

/* Its client will not append it; is it behind another one already? */
static int go_back(struct vlist_client *c, struct inquiry *q)
{
	uint64_t was = q->before;
	int err = vlist_links_each(c, is_before, q);

	if (!err && q->before == was)
		q->is_settled = true;
	if (!vlist_pointer_is_sane(&c->g, q->before))
		q->before = was;
	q->patience_ns = kit_now_ns(&c->kit) + c->kit.failure_ns;
	return err;
}

static int look_after_owner(struct vlist_client *c, struct inquiry *q)
{
	uint32_t owner = le32_get(c->seen->owner);
	uint32_t epoch = le32_get(c->seen->owner_epoch);
	bool gone = false;
	int err;

	if (owner == c->kit.slot && epoch == c->kit.epoch) {
		gone = true; /* what is mine is not appended twice */
		err = 0;
	} else if (kit_now_ns(&c->kit) > q->patience_ns) {
		gone = true;
		err = kit_slot_fence(&c->kit, owner, epoch);
	} else {
		err = kit_slot_is_gone(&c->kit, owner, epoch, &gone);
	}
	if (err)
		return err;
	if (gone)
		return go_back(c, q);
	kit_pause(&c->kit, PAUSE_NS);
	return 0;
}

static int inquire(struct vlist_client *c, struct inquiry *q,
		   enum vlist_fate *fate)
{
	for (;;) {
		bool was_settled = q->is_settled, decided = false;
		enum vlist_found found;
		int err = look_for(c, q, &found);

		if (err)
			return err;
		*fate = found == VLIST_FOUND  ? VLIST_COMMITTED_NOW
			: found == VLIST_LOST ? VLIST_UNKNOWN
					      : VLIST_DEAD;
		/* What was seen before it was settled may have changed. */
		if (found == VLIST_FOUND || was_settled)
			return 0;
		err = ask(c, q, &decided, fate);
		if (err || decided)
			return err;
		err = look_after_owner(c, q);
		if (err)
			return err;
		if (kit_is_late(&c->kit)) {
			*fate = VLIST_UNKNOWN;
			return 0;
		}
	}
}

int vlist_verify(struct vlist_client *c, uint64_t key, uint64_t from,
		 uint64_t node, uint64_t before, enum vlist_fate *fate)
{
	struct inquiry q = {.key = key,
			    .from = from,
			    .node = node,
			    .before = before,
			    .child = node,
			    .patience_ns =
				    kit_now_ns(&c->kit) + c->kit.failure_ns};
	bool decided;
	int err;

	if (!vlist_pointer_is_sane(&c->g, before)) {
		*fate = VLIST_NOT_LANDED;
		return 0;
	}
	/* The usual case, and quickly decided: it is not there. */
	err = ask(c, &q, &decided, fate);
	if (err || (decided && *fate == VLIST_NOT_LANDED))
		return err;
	err = inquire(c, &q, fate);
	if (err)
		return err;
	c->stats.verified += *fate == VLIST_COMMITTED_NOW;
	c->stats.abandoned += *fate == VLIST_DEAD;
	c->stats.unknown += *fate == VLIST_UNKNOWN;
	return 0;
}
