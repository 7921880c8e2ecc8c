/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at versions, and following lists of them. */
#include <errno.h>

#include "base/error.h"
#include "base/plant.h"
#include "vlist_priv.h"

/* Whether what was read is one whole version of the key, and its `next`
 * belongs to it. */
static bool is_whole(const struct vlist_client *c, const struct vlist_node *n,
		     uint64_t key, bool with_value)
{
	uint64_t self = le64_get(n->self);
	uint64_t next = le64_get(n->next) & ~VLIST_COMMITTED;
	uint32_t len = le32_get(n->len_bytes);

	if (!vlist_pointer_is_sane(&c->g, self) || le64_get(n->key) != key ||
	    len > c->g.value_max)
		return false;
	if (vlist_is_pointer(next) ? !vlist_pointer_is_sane(&c->g, next)
				   : next != vlist_end_of(self))
		return false;
	return !with_value || le64_get(n->crc) == vlist_node_crc(n, n + 1, len);
}

enum vlist_verdict vlist_judge(struct vlist_client *c,
			       const struct vlist_node *n, uint64_t key,
			       uint64_t place, bool with_value, uint64_t *self,
			       uint64_t *next)
{
	uint64_t word = le64_get(n->next);
	uint64_t who = le64_get(n->self);
	bool is_other = vlist_offset(who) != vlist_offset(place);

	if (!is_whole(c, n, key, with_value))
		return is_other ? VLIST_ASTRAY : VLIST_STALE;
	/* Another use of the same memory, or another version with nobody's
	 * word that it is committed. */
	if (who != place && !is_other)
		return VLIST_STALE;
	if (is_other && !(word & VLIST_COMMITTED) && !PLANTED(trust_all))
		return VLIST_UNVOUCHED;
	c->stats.steered_reads += is_other;
	*self = who;
	*next = word & ~VLIST_COMMITTED;
	return vlist_is_pointer(*next) ? VLIST_OLD : VLIST_NEWEST;
}

int vlist_look_too(struct vlist_client *c, uint64_t key, uint64_t place,
		   bool may_steer, bool with_value, enum vlist_verdict *verdict,
		   uint64_t *self, uint64_t *next)
{
	uint32_t len = VLIST_NODE_HEAD;
	int err;

	if (!vlist_pointer_is_sane(&c->g, place))
		return error_set(-EBADMSG, "the store is damaged: key %llu",
				 (unsigned long long)key);
	if (with_value)
		len = c->g.node_bytes - (may_steer ? 0 : VLIST_NODE_TAIL);
	kit_read(&c->kit.main, vlist_offset(place), c->seen, len);
	err = kit_run(&c->kit);
	if (!err)
		*verdict = vlist_judge(c, c->seen, key, place, with_value, self,
				       next);
	return err;
}

int vlist_look(struct vlist_client *c, uint64_t key, uint64_t place,
	       bool may_steer, bool with_value, enum vlist_verdict *verdict,
	       uint64_t *self, uint64_t *next)
{
	kit_begin(&c->kit);
	return vlist_look_too(c, key, place, may_steer, with_value, verdict,
			      self, next);
}

int vlist_walk(struct vlist_client *c, uint64_t key, uint64_t from,
	       uint64_t target, unsigned steps, enum vlist_found *found,
	       uint64_t *last)
{
	uint64_t at = from;

	for (unsigned i = 0; i < steps && !kit_is_late(&c->kit); i++) {
		enum vlist_verdict verdict;
		uint64_t self, next;
		int err = vlist_look(c, key, at, false, false, &verdict, &self,
				     &next);

		if (err)
			return err;
		if (verdict != VLIST_NEWEST && verdict != VLIST_OLD) {
			*found = VLIST_LOST;
			return 0;
		}
		if (at == target) {
			*found = VLIST_FOUND;
			*last = next;
			return 0;
		}
		if (verdict == VLIST_NEWEST) {
			*found = VLIST_NOT_THERE;
			*last = at;
			return 0;
		}
		at = next;
	}
	*found = VLIST_LOST;
	return 0;
}
