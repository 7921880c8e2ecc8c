/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a key. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

static int copy_value(const struct vlist_client *c, void *buf, size_t buf_bytes,
		      size_t *len)
{
	const struct vlist_node *n = c->seen;

	if (le32_get(n->flags) & VLIST_NODE_DELETED)
		return -ENOENT;
	*len = le32_get(n->len_bytes);
	if (u64_min(*len, buf_bytes))
		memcpy(buf, n + 1, u64_min(*len, buf_bytes));
	return *len > buf_bytes
		       ? error_set(-EMSGSIZE, "the value has %zu bytes", *len)
		       : 0;
}

/* Where a read goes next, and by which kind of READ. */
struct chase {
	uint64_t place;
	uint64_t head;	 /* what the entry said; 0: not asked */
	bool is_news;	 /* and that is not what it said before */
	bool has_jumped; /* there */
	unsigned unvouched;
	unsigned in_vain;    /* steered ones that were not the newest */
	unsigned plain;	     /* so many are not steered */
	unsigned plain_last; /* so many were not the last time */
	bool may_steer;
};

/*
 * A switch that others go round may lead back to where we were, again and
 * again. Stretches without it, each longer than the last, end that; and where
 * it is right, and many write, it is the only way to catch up.
 */
static void doubt(struct chase *s)
{
	if (++s->in_vain < VLIST_STEER_VAIN)
		return;
	s->in_vain = 0;
	s->plain_last = u32_max(VLIST_STEER_VAIN, 2 * s->plain_last);
	s->plain = s->plain_last;
}

static void follow(struct vlist_client *c, struct chase *s,
		   struct vlist_memo *m, enum vlist_verdict verdict,
		   uint64_t self, uint64_t next)
{
	switch (verdict) {
	case VLIST_OLD:
		c->stats.chases++;
		if (vlist_offset(self) != vlist_offset(s->place))
			doubt(s);
		else if (s->plain)
			s->plain--;
		s->place = next;
		vlist_place_set(c, m, next, false);
		break;
	case VLIST_ASTRAY:
		/* Of another key, as this place probably is by now. */
		if (le64_get(c->seen->next) & VLIST_COMMITTED) {
			vlist_place_void(c, m);
			s->place = 0;
		}
		/* fall through */
	case VLIST_UNVOUCHED: /* perhaps only too early */
		c->stats.unvouched++;
		if (++s->unvouched == VLIST_STEER_READS)
			s->may_steer = false;
		break;
	case VLIST_STALE:
	case VLIST_NEWEST: /* which needs no next step */
		c->stats.stale++;
		vlist_place_void(c, m);
		s->place = 0;
	}
}

/* Whether half of this client's own memory was used again since it last saw the
 * key: then that of others probably was, too, and the place is not there any
 * more.
 */
static bool is_doubtful(const struct vlist_client *c,
			const struct vlist_memo *m)
{
	return c->mine_count && c->stats.puts - m->since >= c->mine_count / 2;
}

/* Looks at a place; the remembered one may be old, so the key's entry is read
 * along with it, to go on from there. */
static int look(struct vlist_client *c, struct vlist_memo *m, struct chase *s,
		uint64_t key, enum vlist_verdict *verdict, uint64_t *self,
		uint64_t *next)
{
	bool both = m->entry && s->place == m->place && !s->head &&
		    (c->config.shortcut || is_doubtful(c, m));
	int err;

	kit_begin(&c->kit);
	if (both)
		kit_read(&c->kit.main,
			 m->entry + offsetof(struct vlist_entry, head), c->word,
			 8);
	err = vlist_look_too(c, key, s->place, s->may_steer && !s->plain, true,
			     verdict, self, next);
	if (both && !err) {
		s->head = *c->word;
		s->is_news = vlist_place_head(c, m, s->head);
	}
	return err;
}

/* What the entry said may be nearer to the end than the next version, and is
 * all there is when the remembered one is gone. Once: it does not change. */
static void jump(const struct vlist_client *c, struct chase *s,
		 enum vlist_verdict verdict)
{
	bool is_shorter =
		c->config.shortcut && s->is_news && verdict == VLIST_OLD;

	if (s->head && !s->has_jumped && (!s->place || is_shorter)) {
		s->place = s->head;
		s->has_jumped = true;
	}
}

static int get(struct vlist_client *c, uint64_t key, void *buf,
	       size_t buf_bytes, size_t *len)
{
	struct vlist_memo *m = vlist_memo(c, key);
	struct chase s = {.may_steer = !c->config.no_steer};

	for (unsigned looks = 0;; looks++) {
		enum vlist_verdict verdict;
		uint64_t self = 0, next = 0;
		int err = s.place ? 0 : vlist_start(c, m, key, &s.place);

		if (!err)
			err = look(c, m, &s, key, &verdict, &self, &next);
		if (err)
			return err;
		if (verdict == VLIST_NEWEST) {
			vlist_place_set(c, m, self, true);
			c->stats.reads_first += !looks;
			return copy_value(c, buf, buf_bytes, len);
		}
		follow(c, &s, m, verdict, self, next);
		jump(c, &s, verdict);
		if (kit_is_late(&c->kit))
			return error_set(-ETIMEDOUT,
					 "writers were faster than this read");
	}
}

int vlist_get(struct vlist_client *c, uint64_t key, void *buf, size_t buf_bytes,
	      size_t *len)
{
	int err = -ESTALE;

	if (key == UINT64_MAX)
		return error_set(-EINVAL, "there is no such key");
	kit_set_deadline(&c->kit, c->config.deadline_ms);
	c->stats.gets++;
	for (unsigned i = 0; i < KIT_RECONNECTS && err == -ESTALE; i++) {
		err = c->kit.is_broken ? vlist_reconnect(c) : 0;
		if (!err)
			err = get(c, key, buf, buf_bytes, len);
	}
	return err;
}
