/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking locks and reading what they guard, in one batch: intent, masked CAS,
 * READs. Words of locks are taken in the order of their addresses and within a
 * bounded time, so nobody waits for another for ever; who cannot get all of
 * them in that time gives back what it has and starts again.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	HEARTBEAT_SHARE = 8, /* of the failure time */
};

/* The order in which everybody takes locks, so that nobody waits in a
 * circle. */
static bool ascends(const struct kv_lockset *s, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (!s->group[i].mask ||
		    (i && s->group[i - 1].word >= s->group[i].word))
			return false;
	return count <= KV_GROUPS;
}

/* Adds one lock, keeping the order. */
static int add_lock(struct kv_replica *c, struct kv_lockset *s, uint64_t lock)
{
	bool words = c->g.flags & KV_WORD_LOCKS;
	uint64_t word = words ? lock : lock / 64;
	uint64_t mask = words ? UINT64_MAX : 1ull << (lock % 64);
	unsigned i, k;

	for (i = 0; i < s->count && s->group[i].word < word; i++)
		;
	if (i < s->count && s->group[i].word == word) {
		s->group[i].mask |= mask;
		return 0;
	}
	if (s->count == KV_GROUPS)
		return -E2BIG;
	for (k = s->count; k > i; k--)
		s->group[k] = s->group[k - 1];
	s->group[i].word = word;
	s->group[i].mask = mask;
	s->count++;
	/* All of it is asserted when it is taken and let go. */
	ASSERT(!i || s->group[i - 1].word < word);
	ASSERT(i + 1 == s->count || word < s->group[i + 1].word);
	return 0;
}

int kv_lockset_add(struct kv_replica *c, struct kv_lockset *s, uint64_t row)
{
	return add_lock(c, s, kv_lock_of(&c->g, row));
}

int kv_want_locks(struct kv_replica *c, struct kv_want *w)
{
	unsigned i;
	int err = 0;

	w->set.count = 0;
	for (i = 0; i < w->count && !err; i++)
		err = add_lock(c, &w->set, kv_lock_of(&c->g, w->row[i]));
	return err;
}

bool kv_want_has_lock(const struct kv_replica *c, const struct kv_want *w,
		      uint64_t row, bool same)
{
	uint64_t lock = kv_lock_of(&c->g, row);
	bool words = c->g.flags & KV_WORD_LOCKS;
	unsigned i;

	for (i = 0; i < w->set.count; i++)
		if (w->set.group[i].word == (words ? lock : lock / 64))
			return words || !same ||
			       w->set.group[i].mask & 1ull << (lock % 64);
	return false;
}

int kv_want_add(struct kv_replica *c, struct kv_want *w, uint64_t row)
{
	unsigned i;
	int err;

	for (i = 0; i < w->count; i++)
		if (w->row[i] == row)
			return 0;
	if (w->count == ARRAY_LEN(w->row))
		return -E2BIG;
	err = add_lock(c, &w->set, kv_lock_of(&c->g, row));
	if (!err)
		w->row[w->count++] = row;
	return err;
}

static void build_intent(struct kv_replica *c, struct kv_intent *t,
			 const struct kv_lockset *set)
{
	unsigned i, n = set ? set->count : 0;

	ASSERT(c->kit.has_slot && n <= KV_GROUPS);
	memset(t, 0, kv_intent_bytes(n));
	t->sequence = le64_put(++c->sequence);
	t->group_count = le32_put(n);
	t->new_stamp = le32_put(c->new_stamp);
	t->old_stamp = le32_put(c->old_stamp);
	t->new_extent = le64_put(c->new_extent);
	t->old_extent = le64_put(c->old_extent);
	t->count = le64_put((uint64_t)c->count);
	t->recent_count = le32_put(c->recent_count);
	t->flags = le32_put(c->intent_flags);
	memcpy(t->recent, c->recent, sizeof(t->recent));
	for (i = 0; i < n; i++)
		t->group[i] = (struct kv_group){
			.word = le32_put((uint32_t)set->group[i].word),
			.mask = le64_put(set->group[i].mask)};
	t->crc = le32_put(kv_intent_crc(t));
}

void kv_note_recent(struct kv_replica *c, const struct kv_lockset *set)
{
	bool words = c->g.flags & KV_WORD_LOCKS;
	unsigned i;

	ASSERT(set->count && ascends(set, set->count));
	for (i = 0; i < set->count; i++) {
		uint64_t word = set->group[i].word;
		uint64_t mask = words ? 1 : set->group[i].mask;

		for (; mask; mask &= mask - 1) {
			uint64_t lock =
				words ? word
				      : 64 * word +
						(uint64_t)__builtin_ctzll(mask);

			c->recent[c->recent_count++ % KV_RECENT] =
				le32_put((uint32_t)lock);
		}
	}
}

void kv_add_intent(struct kv_replica *c, const struct kv_lockset *set)
{
	/* A batch may have two of them. */
	struct kv_intent *t = &c->intent[c->sequence % 2];

	build_intent(c, t, set);
	kit_write(&c->kit.main, KV_POINT_INTENT,
		  kit_slot_at(&c->kit, c->kit.slot) +
			  offsetof(struct kv_slot, intent),
		  t, kv_intent_bytes(set ? set->count : 0));
}

void kv_heartbeat(struct kv_replica *c)
{
	uint64_t now = kit_now_ns(&c->kit);
	int err;

	if (!c->held ||
	    now - c->heartbeat_ns < c->kit.failure_ns / HEARTBEAT_SHARE)
		return;
	c->heartbeat_ns = now;
	kit_begin(&c->kit);
	kv_add_intent(c, c->held);
	err = kit_run(&c->kit);
	if (err)
		c->held = NULL; /* it is broken, which is seen when it ends */
}

void kv_add_unlocks(struct kv_replica *c, const struct kv_lockset *set,
		    unsigned count)
{
	unsigned i;

	ASSERT(ascends(set, count));
	for (i = 0; i < count; i++)
		kv_add_unlock(c, set->group[i].word, set->group[i].mask);
}

void kv_add_release(struct kv_replica *c, const struct kv_lockset *set,
		    unsigned count)
{
	struct kv_intent *t = &c->intent[2];

	kv_add_unlocks(c, set, count);
	build_intent(c, t, NULL);
	kit_write(&c->kit.main, KV_POINT_IDLE,
		  kit_slot_at(&c->kit, c->kit.slot) +
			  offsetof(struct kv_slot, intent),
		  t, kv_intent_bytes(0));
}

int kv_locks_drop(struct kv_replica *c, const struct kv_lockset *set,
		  unsigned count)
{
	kit_begin(&c->kit);
	kv_add_release(c, set, count);
	return kit_run(&c->kit);
}

/* ---- reading ------------------------------------------------------------ */

/* Whether group `at` of the set has the lock of this row. */
static bool is_in_group(const struct kv_replica *c, const struct kv_want *w,
			unsigned at, uint64_t row)
{
	uint64_t lock = kv_lock_of(&c->g, row);

	if (c->g.flags & KV_WORD_LOCKS)
		return w->set.group[at].word == lock;
	return w->set.group[at].word == lock / 64 &&
	       w->set.group[at].mask & 1ull << (lock % 64);
}

/* The rows of one line that are wanted, as a span. */
static void add_span(struct kv_replica *c, struct kv_line *l, uint64_t bits,
		     bool whole)
{
	uint64_t rows = u64_min(c->line_rows, c->g.rows - l->first);
	unsigned low = whole ? 0 : (unsigned)__builtin_ctzll(bits);
	unsigned high = whole ? (unsigned)rows - 1
			      : 63 - (unsigned)__builtin_clzll(bits);
	uint32_t bytes = c->g.row_bytes;

	if (!whole && (high - low + 1) * bytes > c->covering_bytes) {
		/* Too far apart: one by one. */
		for (; bits; bits &= bits - 1) {
			unsigned i = (unsigned)__builtin_ctzll(bits);

			kit_read(&c->kit.main, kv_row_at(&c->g, l->first + i),
				 l->rows + (size_t)i * bytes, bytes);
		}
		return;
	}
	kit_read(&c->kit.main, kv_row_at(&c->g, l->first + low),
		 l->rows + (size_t)low * bytes,
		 (uint64_t)(high - low + 1) * bytes);
}

struct reading {
	unsigned count;
	struct {
		struct kv_line *line;
		uint64_t bits;
	} at[KV_PATH_MAX + 2];
};

static void add_reads(struct kv_replica *c, const struct kv_want *w,
		      unsigned group, struct reading *r)
{
	unsigned i, k;

	r->count = 0;
	for (i = 0; i < w->count; i++) {
		struct kv_line *l;

		if (!is_in_group(c, w, group, w->row[i]))
			continue;
		l = kv_line_pin(c, w->row[i]);
		for (k = 0; k < r->count && r->at[k].line != l; k++)
			;
		if (k == r->count) {
			r->at[k].line = l;
			r->at[k].bits = 0;
			r->count++;
		}
		r->at[k].bits |= 1ull << (w->row[i] - l->first);
	}
	for (k = 0; k < r->count; k++) {
		struct kv_line *l = r->at[k].line;
		uint64_t rows = u64_min(c->line_rows, c->g.rows - l->first);

		add_span(c, l, r->at[k].bits, w->whole);
		if (w->whole)
			r->at[k].bits =
				rows == 64 ? UINT64_MAX : (1ull << rows) - 1;
		l->checked &= ~r->at[k].bits;
	}
}

static void note_reads(struct reading *r, bool locked)
{
	unsigned k;

	for (k = 0; k < r->count; k++) {
		r->at[k].line->known |= r->at[k].bits;
		if (locked)
			r->at[k].line->synced |= r->at[k].bits;
	}
}

/* ---- taking ------------------------------------------------------------- */

/* One acquisition. */
struct taking {
	struct kv_want *want;
	unsigned at; /* groups that are held */
	bool is_retry;
	bool has_intent;    /* the slot names the locks */
	uint64_t intent_ns; /* since when */
	uint64_t start_ns;  /* of this try for all of them */
	/* The lock that was refused last, what was seen there, and since when
	 * that has not changed. Stepping back does not reset it: else who gets
	 * a first lock and waits for the second would never call it stuck. */
	bool is_stuck;
	uint64_t stuck_word;
	uint64_t stuck_ns;
	uint64_t evidence;
	uint64_t backoff_ns;
};

/* The lease of who repairs around this word of locks. */
static uint64_t lease_of(const struct kv_replica *c, uint64_t word)
{
	return kv_lease_at(&c->g, KV_LEASE_REGION) +
	       8ull * kv_region_of(&c->g, word);
}

static int give_up(struct kv_replica *c, struct taking *t)
{
	int err = kv_locks_drop(c, &t->want->set, t->at);

	t->at = 0;
	t->has_intent = false;
	t->start_ns = kit_now_ns(&c->kit);
	kv_cache_unpin(c);
	return err;
}

/* Changes of rows or locks mean that the holder lives. */
static void note_refusal(struct kv_replica *c, struct taking *t,
			 const struct reading *r, uint64_t now)
{
	uint64_t word = t->want->set.group[t->at].word;
	uint64_t seen = c->atom[KV_ATOM_LOCK] & t->want->set.group[t->at].mask;
	unsigned k;

	for (k = 0; k < r->count; k++) {
		unsigned i = (unsigned)__builtin_ctzll(r->at[k].bits);

		seen = seen * 31 +
		       kv_row_crc(&c->g, r->at[k].line->rows +
						 (size_t)i * c->g.row_bytes);
	}
	if (t->is_stuck && t->stuck_word == word && t->evidence == seen)
		return;
	t->is_stuck = true;
	t->stuck_word = word;
	t->evidence = seen;
	t->stuck_ns = now;
}

/* A lock is held by somebody. */
static int handle_refusal(struct kv_replica *c, struct taking *t,
			  const struct reading *r)
{
	uint64_t word = t->want->set.group[t->at].word;
	uint64_t mask = t->want->set.group[t->at].mask;
	uint64_t now = kit_now_ns(&c->kit), lease = c->atom[KV_ATOM_LEASE];
	int err;

	note_refusal(c, t, r, now);
	if (t->is_retry && kv_lease_holder(lease) &&
	    kv_lease_holder(lease) != c->kit.slot + 1) {
		t->is_stuck = false;
		err = give_up(c, t);
		return err ? err : kv_lease_wait(c, word);
	}
	if (now > c->kit.deadline_ns) {
		err = give_up(c, t);
		return err ? err : kv_past_deadline(c);
	}
	if (now - t->stuck_ns > c->kit.failure_ns / 2) {
		t->is_stuck = false;
		err = give_up(c, t);
		return err ? err : kv_recover(c, word, mask);
	}
	t->is_retry = true;
	if (t->at && now - t->start_ns > c->kit.failure_ns / KV_ACQUIRE_SHARE)
		return give_up(c, t);
	kv_pause(c, rng_below(&c->kit.rng, t->backoff_ns) + 1);
	t->backoff_ns = u64_min(2 * t->backoff_ns, KV_BACKOFF_NS_MAX);
	return 0;
}

/* A row of the key, if it was read just now. */
static uint8_t *row_read(struct kv_replica *c, const struct reading *r,
			 uint64_t row)
{
	struct kv_line *l = kv_line_find(c, row);
	unsigned k;

	for (k = 0; k < r->count; k++)
		if (r->at[k].line == l &&
		    r->at[k].bits & 1ull << (row - l->first))
			return kv_line_row(c, l, row);
	return NULL;
}

static bool is_overtaken(struct kv_replica *c, struct kv_want *w,
			 const struct reading *r)
{
	const uint64_t *row = w->overtake->place->row;
	uint8_t *seen[2] = {row_read(c, r, row[0]), row_read(c, r, row[1])};

	return kv_is_overtaken(c, w->overtake, seen);
}

/* Once is enough for who looks for the holder of a lock, but who waits for long
 * has to show life. */
static void add_intent_if_due(struct kv_replica *c, struct taking *t)
{
	uint64_t now = kit_now_ns(&c->kit);

	if (t->has_intent &&
	    now - t->intent_ns < c->kit.failure_ns / HEARTBEAT_SHARE)
		return;
	t->has_intent = true;
	t->intent_ns = now;
	kv_add_intent(c, &t->want->set);
}

/* Before the intent that does not name them any more. */
static void add_owed(struct kv_replica *c, struct kv_want *w)
{
	kv_add_unlocks(c, &w->owed, w->owed.count);
	w->owed.count = 0;
}

static void add_fresh(struct kv_replica *c, const struct kv_want *w)
{
	if (w->fresh && !w->fresh->is_written)
		(void)kv_new_add(c, w->fresh, w->mod->key, w->mod->key_len,
				 w->mod->put->value, w->mod->put->len);
}

int kv_locks_check(struct kv_replica *c, const struct kv_lockset *set,
		   bool was_asked, uint64_t asked_ns)
{
	int err = 0, drop;

	if (!was_asked)
		err = kv_state_confirm(c);
	else if (!kv_state_note(c, c->atom[KV_ATOM_STATE], asked_ns))
		err = KV_E_VIEW;
	if (err != KV_E_VIEW)
		return err;
	drop = kv_locks_drop(c, set, set->count);
	return drop ? drop : err;
}

/* ---- and waiting -------------------------------------------------------- */

int kv_locks_take(struct kv_replica *c, struct kv_want *w)
{
	struct taking t = {.want = w,
			   .start_ns = kit_now_ns(&c->kit),
			   .backoff_ns = KV_BACKOFF_NS_MIN};
	struct reading r;
	bool asks_state = false;
	int err;

	kv_note_recent(c, &w->set);
	while (t.at < w->set.count) {
		uint64_t word = w->set.group[t.at].word;
		uint64_t mask = w->set.group[t.at].mask;

		asks_state = t.at + 1 == w->set.count &&
			     kv_state_is_due(c, t.start_ns);
		kit_begin(&c->kit);
		add_owed(c, w);
		add_intent_if_due(c, &t);
		if (t.at == 0)
			add_fresh(c, w);
		kv_add_lock(c, word, mask, KV_ATOM_LOCK);
		add_reads(c, w, t.at, &r);
		if (t.is_retry)
			kit_read(&c->kit.main, lease_of(c, word),
				 &c->atom[KV_ATOM_LEASE], 8);
		if (asks_state)
			kv_add_state(c, &c->atom[KV_ATOM_STATE]);
		err = kit_run(&c->kit);
		if (err)
			return err;
		c->stats.lock_tries++;
		if (!(c->atom[KV_ATOM_LOCK] & mask)) {
			note_reads(&r, true);
			t.is_retry = false;
			t.at++;
			continue;
		}
		c->stats.lock_fails++;
		note_reads(&r, false);
		if (w->overtake && is_overtaken(c, w, &r)) {
			err = give_up(c, &t);
			return err ? err : KV_E_OVERTAKEN;
		}
		err = handle_refusal(c, &t, &r);
		if (err)
			return err;
	}
	c->stats.lock_sets++;
	c->stats.lock_sets_single += w->set.count == 1;
	return kv_locks_check(c, &w->set, asks_state, t.start_ns);
}
