/* SPDX-License-Identifier: Apache-2.0 */
/* What this room's files share: the client and its parts. */
#ifndef AQ_KV_PRIV_H
#define AQ_KV_PRIV_H

#include "kv.h"
#include "kv_program.h"

#define KV_NO_ROW UINT64_MAX
/* The replica's state has changed since it was opened, and nothing was done.
 * This code never leaves this room. */
#define KV_E_VIEW (-EUCLEAN)
/* Another client's put has overtaken this one: kv_overtake.c. This code never
 * leaves this room. */
#define KV_E_OVERTAKEN (-EALREADY)

/*
 * Adjacent rows, as many as one lock has or a smaller power of two. Bits per
 * row: known, it was read; synced, it was read under a lock that is held;
 * checked, it is synced and its CRC was right.
 */
struct kv_line {
	uint64_t first; /* KV_NO_ROW: empty */
	uint64_t known;
	uint64_t synced;
	uint64_t checked;
	uint64_t used; /* when used last; the oldest is replaced */
	bool is_pinned;
	uint8_t *rows;
};

/* Locks in the order of their addresses. */
struct kv_lockset {
	unsigned count;
	struct {
		uint64_t word;
		uint64_t mask;
	} group[KV_GROUPS];
};

/* How far a row of changes that go together is. */
enum kv_row_state {
	KV_ROW_NEEDED, /* read with the locks */
	KV_ROW_SPARE,  /* loaded by kv_row_load, once it turns out to be used */
	KV_ROW_HERE,
	KV_ROW_WHOLE, /* here, and its CRC is right */
};

/* Rows of changes that go together, each once, with their bytes. */
struct kv_rows {
	unsigned count;
	uint64_t number[KV_MANY_ROWS];
	uint8_t state[KV_MANY_ROWS]; /* enum kv_row_state */
	uint8_t *bytes;		     /* one behind the other */
};

/* Memory for a value beside the index. */
struct kv_new {
	uint64_t offset;
	uint64_t size_bytes; /* used of it */
	uint32_t stamp;
	bool is_set;	 /* there is one */
	bool is_written; /* map and contents */
};

/* What a put that waits for its locks has seen of its key: kv_overtake.c. */
struct kv_overtake {
	const struct kv_place *place;
	const void *key;
	size_t key_len;
	bool has_entry;
	uint8_t entry[KV_ENTRY_BYTES_MAX];
};

/* Rows that an operation wants locked and read. */
struct kv_want {
	unsigned count;
	uint64_t row[KV_PATH_MAX + 2];
	bool whole; /* all rows of their locks */
	struct kv_lockset set;
	/* An extent with the value of a put, to write with the first request;
	 * may be NULL. */
	struct kv_new *fresh;
	const struct kv_mod *mod;
	struct kv_overtake *overtake; /* NULL: it cannot be overtaken */
	/* Locks of an earlier try, to be let go with the first request. */
	struct kv_lockset owed;
};

struct kv_chunk {
	uint64_t index;
	uint32_t class;
	uint32_t count;
	uint32_t free;
	uint32_t hint;
	uint8_t *used; /* a byte for each, as in the chunk's map */
};

enum kv_get_state {
	KV_GET_IDLE,
	KV_GET_ROWS,
	KV_GET_EXTENT,
	KV_GET_LARGE, /* an extent that kv_get_drain has to read */
	KV_GET_DONE,
};

/* A read under way. */
struct kv_get {
	enum kv_get_state state;
	struct aq_kv_op *op;
	struct kv_place place;
	uint8_t *rows; /* of one of the client's buffers */
	uint8_t *row[2];
	uint8_t *extent;
	uint32_t extent_bytes;
	uint32_t stamp;
	uint32_t skip; /* entries with the same hash and another key */
	uint32_t trips;
	uint32_t tries;
	uint8_t *state_word; /* behind the rows */
	uint64_t asked_ns;
	bool asks_state; /* this look reads the state, too */
	bool is_lean;	 /* reads the second row only if needed */
	uint8_t lean_at; /* which row a lean look is at */
	bool has_crc;	 /* a first look found nothing */
	bool has_entry;	 /* found an entry that has expired */
	uint64_t crc[2];
	uint64_t expire_at_ms;
	uint64_t since_ns; /* without any change; 0: it did not fail yet */
	uint64_t evidence;
	/* An extent that a walk has brought, and where it is; 0: none. */
	const uint8_t *walked;
	uint64_t walked_at;
	uint32_t walked_bytes;
	uint32_t looks; /* that it waits for, where they are loads */
	struct aqdv_read look[KV_LOOKS_MAX];
};

/* How long looks take, to notice that others have filled the link. */
struct kv_pace {
	uint64_t best_ns;  /* 0: none was seen yet */
	uint64_t least_ns; /* the least of late */
	uint32_t looks;
	bool is_busy;
};

enum kv_atom { /* words that requests put their answers in */
	KV_ATOM_LOCK,
	KV_ATOM_LEASE,
	KV_ATOM_OTHER,
	KV_ATOM_UNLOCK, /* not looked at */
	KV_ATOM_STATE,
	KV_ATOM_GROUP = 8, /* and those behind it: of several locks */
	KV_ATOM_COUNT = KV_ATOM_GROUP + KV_GROUPS,
};

/* One client's connection to one replica. */
/* How full the index is, as a client sees it at its own inserts. */
struct kv_fill {
	uint32_t samples;
	uint32_t inserts; /* since the last sample */
	uint32_t milli;
};

void kv_fill_add(struct kv_fill *f, uint32_t used, uint32_t of);
/* How many changes each of so many clients may make, before it counts again, in
 * an index that has `used` of its entries and gets `left` keys copied to it. */
uint64_t kv_room_share(uint64_t entries, uint64_t used, uint64_t left,
		       uint32_t clients);

struct kv_replica {
	struct kit_client kit;
	struct kv_geometry g;
	struct kv_client_config config;
	struct kv_search *search;
	struct aq_kv_stats stats;

	uint32_t depth;
	uint32_t covering_bytes;
	uint64_t deadline_ms;

	uint64_t sequence;
	int64_t count; /* keys added in this slot, net */
	/* For the intent; 0: none. */
	uint64_t new_extent, old_extent;
	uint32_t new_stamp, old_stamp;
	uint32_t intent_flags;
	uint32_t recent_count;
	le32 recent[KV_RECENT];
	/* The state that this client relies on here. It may do so without
	 * looking until valid_ns, see kv_state.c. */
	uint64_t expect;
	uint64_t state; /* seen last */
	uint64_t term_ns;
	uint64_t valid_ns;
	/* The replica whose locks are held while this one works; its intent is
	 * renewed meanwhile. */
	struct kv_replica *outer;
	const struct kv_lockset *held; /* during such work */
	/* What a unit has taken while it is made: no map has it yet. */
	const struct kv_unit *taking;
	uint64_t heartbeat_ns;
	uint32_t leases;	    /* of these regions are ours, as bits */
	uint64_t lease[KV_REGIONS]; /* their words */
	uint64_t lease_ns;	    /* when they were taken or renewed */

	struct kv_pad *pad; /* of walks, or NULL */
	enum kv_walk walk;  /* by the last extent */
	struct kv_pace pace;
	uint32_t many_keys; /* that go together; fewer after a refusal */
	uint32_t many_skip; /* changes that go alone, as others could not */
	bool many_failed;   /* the last group could not go together */

	/* Parts of the registered memory. */
	uint64_t *atom;
	struct kv_intent *intent; /* three: taken, settled, idle */
	uint8_t *lines;
	uint8_t *many_rows; /* twice KV_MANY_ROWS of them */
	uint8_t *get_bytes;
	uint8_t *zeros;	    /* KV_ZERO_BYTES */
	uint8_t *run_words; /* as many */
	uint8_t *ones;	    /* 8 */

	uint32_t line_rows; /* a power of two */
	uint32_t line_count;
	uint64_t line_tick;
	struct kv_line *line;

	struct kv_get *get; /* depth of them */
	uint32_t gets_busy;
	uint32_t get_hint; /* where a free one may be */
	bool has_tending;  /* some gets need more than completions */
	/* A ring of those that have looks to do. */
	uint32_t *look_queue;
	uint32_t look_head, look_count;
	/* Done and not reported yet, oldest first. */
	struct aq_kv_op **done;
	uint32_t done_head, done_count;

	struct kv_chunk *chunk;
	uint32_t chunk_count, chunk_room;
	/* Chunks from this one on are for the client that copies the table;
	 * 0: none are. */
	uint64_t chunk_limit;
	uint64_t short_bytes; /* the last extent that there was no room for */
	/* Of a FROZEN replica: its keys + 1; 0: not counted yet. */
	uint64_t frozen_keys;
	uint32_t stamp;
	struct kv_fill fill;
	/* While keys are copied here: changes before the next look at how many
	 * there are. */
	uint64_t share;
};

/* ---- kv_room.c ---------------------------------------------------------- */

/* After an insert whose rows are here: how full they were. */
void kv_room_note_rows(struct kv_replica *c, const uint8_t *first,
		       const uint8_t *second);
/* After a chunk was taken, or the last one of a run. */
void kv_room_note_chunk(struct kv_replica *c, uint64_t chunk);

/* How long a slot may be taken without a connection's name. */
static inline uint64_t kv_nameless_ns(const struct kv_replica *c)
{
	return u64_max(c->kit.failure_ns, KV_NAMELESS_NS_MIN);
}

/* ---- kv_lock_word.c: requests on words of locks -------------------------- */

/* Add to the batch. Bits: all of mask from 0 to 1, or to 0. */
void kv_add_lock(struct kv_replica *c, uint64_t word, uint64_t mask,
		 enum kv_atom answer);
void kv_add_unlock(struct kv_replica *c, uint64_t word, uint64_t mask);
/* Unlocks for another holder, which is dead. */
void kv_add_unlock_of(struct kv_replica *c, uint64_t word, uint64_t mask,
		      uint64_t holder);
/* ---- kv_state.c --------------------------------------------------------- */

/* Whether a look at the state should go along, asked at that time. */
static inline bool kv_state_is_due(const struct kv_replica *c, uint64_t now_ns)
{
	return now_ns + c->term_ns / 2 > c->valid_ns;
}
/* Adds to the batch. */
void kv_add_state(struct kv_replica *c, void *to);
/* Notes the state that a batch begun at asked_ns has read; returns whether it
 * is the expected one. */
bool kv_state_note(struct kv_replica *c, uint64_t word, uint64_t asked_ns);
/* Whether what was done under locks, or just read, may count: the term is not
 * over, or the state is read now. KV_E_VIEW: it has changed. */
int kv_state_confirm(struct kv_replica *c) MUST_CHECK;
/* Reads it and expects it from now on. */
int kv_state_adopt(struct kv_replica *c) MUST_CHECK;
/* Moves the state from the expected one; KV_E_VIEW: another client did. */
int kv_state_move(struct kv_replica *c, uint64_t to) MUST_CHECK;
/* Waits until all terms that were given before are over. */
void kv_state_outlast(struct kv_replica *c);
/* Waits until all locks that are held now have been let go. */
int kv_locks_outlast(struct kv_replica *c) MUST_CHECK;

/* ---- kv_cache.c --------------------------------------------------------- */

int kv_cache_init(struct kv_replica *c) MUST_CHECK;
/* NULL: no row of that line is here. */
struct kv_line *kv_line_find(struct kv_replica *c, uint64_t row);
/* Finds the line or makes room for it, and keeps it until kv_cache_unpin. */
struct kv_line *kv_line_pin(struct kv_replica *c, uint64_t row);
void kv_cache_unpin(struct kv_replica *c);
void kv_cache_forget(struct kv_replica *c);
uint8_t *kv_line_row(const struct kv_replica *c, const struct kv_line *l,
		     uint64_t row);
/* All that is known, for the first search; only what is synced, for the
 * second. */
struct kv_view kv_cache_view(struct kv_replica *c, bool only_synced);

/* ---- kv_lock.c ---------------------------------------------------------- */

/* Adds the lock of a row. -E2BIG: more than an operation may hold. */
int kv_lockset_add(struct kv_replica *c, struct kv_lockset *s,
		   uint64_t row) MUST_CHECK;
/* The locks of the wanted rows. -E2BIG: more than an operation may hold. */
int kv_want_locks(struct kv_replica *c, struct kv_want *w) MUST_CHECK;
/* Whether the lock of that row is in a word that is taken anyway; `same`: is
 * taken itself. */
bool kv_want_has_lock(const struct kv_replica *c, const struct kv_want *w,
		      uint64_t row, bool same);
/* Adds one row, if it is new, and its lock. */
int kv_want_add(struct kv_replica *c, struct kv_want *w,
		uint64_t row) MUST_CHECK;
/* Takes all locks and reads the rows, which are then synced. KV_E_OVERTAKEN:
 * the caller has no lock, and nothing is left to do. */
int kv_locks_take(struct kv_replica *c, struct kv_want *w) MUST_CHECK;
/* What is due when all locks are held: from then on nobody changes the state
 * and goes on without waiting for them. KV_E_VIEW: it has changed before, and
 * the locks were given back. `was_asked`: at asked_ns, in the batch of the
 * locks. */
int kv_locks_check(struct kv_replica *c, const struct kv_lockset *set,
		   bool was_asked, uint64_t asked_ns) MUST_CHECK;
/* Before locks are tried for: others are told which ones these were. */
void kv_note_recent(struct kv_replica *c, const struct kv_lockset *set);
/* Adds to the batch: gives locks back. An intent that does not name them has to
 * follow. */
void kv_add_unlocks(struct kv_replica *c, const struct kv_lockset *set,
		    unsigned count);
/* The same, and says that there are none. */
void kv_add_release(struct kv_replica *c, const struct kv_lockset *set,
		    unsigned count);
int kv_locks_drop(struct kv_replica *c, const struct kv_lockset *set,
		  unsigned count) MUST_CHECK;
void kv_add_intent(struct kv_replica *c, const struct kv_lockset *set);
/* Writes the same intent again, if it is time to show life. */
void kv_heartbeat(struct kv_replica *c);
/* The value that stands in a lock word of ours, in a table of words. */
uint64_t kv_lock_holder(uint32_t slot, uint32_t epoch);

/* ---- kv_try.c ----------------------------------------------------------- */

/* All of some locks, and rows under them. */
struct kv_try {
	const struct kv_lockset *set;
	struct kv_rows *rows; /* NULL: none */
	uint64_t start_ns;
	bool asks_state;
};

/* Adds it to a batch: it may follow what gives other locks back, which its
 * intent does not name. */
void kv_try_add(struct kv_replica *c, struct kv_try *t);
/* After the batch; then the rows that are needed are here. -EAGAIN: one of the
 * locks is held by another, and the caller has none; KV_E_VIEW: none either. */
int kv_try_end(struct kv_replica *c, const struct kv_try *t) MUST_CHECK;
/* Reads a spare row, under its lock. */
int kv_row_load(struct kv_replica *c, struct kv_rows *rows,
		unsigned at) MUST_CHECK;
/* Both, in one round trip, without rows. */
int kv_locks_try(struct kv_replica *c, const struct kv_lockset *set) MUST_CHECK;

/* ---- kv_overtake.c ------------------------------------------------------ */

/* Looks at the key's rows as they were read while its locks were refused; NULL:
 * rows that were not read. True: the put counts as made. */
bool kv_is_overtaken(struct kv_replica *c, struct kv_overtake *o,
		     uint8_t *const row[2]);

/* ---- kv_look.c ---------------------------------------------------------- */

/* Starts a few READs of a get, in their order; kv_get_completed is called when
 * they are done. */
void kv_look_begin(struct kv_replica *c, struct kv_get *g);
void kv_look_add(struct kv_replica *c, struct kv_get *g, uint64_t offset,
		 void *to, uint64_t len_bytes);
void kv_look_end(struct kv_replica *c, struct kv_get *g);
/* Does some of those that wait. */
void kv_look_run(struct kv_replica *c);

/* ---- kv_pace.c ---------------------------------------------------------- */

/* Notes the time of any round trip: when all clients start at once, the first
 * few tell how long looks would take alone. */
void kv_pace_best(struct kv_pace *p, uint64_t ns);
/* Notes the time of a look that was alone. */
void kv_pace_note(struct kv_pace *p, uint64_t ns);

/* ---- kv_walk.c ---------------------------------------------------------- */

int kv_walk_init(struct kv_replica *c) MUST_CHECK;
/* Has a walk bring what the read needs first, as if its rows had been read;
 * false: they must be. */
bool kv_walk_get(struct kv_replica *c, struct kv_get *g);

/* ---- kv_get.c ----------------------------------------------------------- */

int kv_get_init(struct kv_replica *c) MUST_CHECK;
/* Bytes of registered memory that each read under way has. */
size_t kv_get_stride(const struct kv_replica *c);
/* may_walk: the caller waits for it anyway. -EAGAIN: as many as possible are
 * under way. */
int kv_get_start(struct kv_replica *c, struct aq_kv_op *op, bool may_walk,
		 struct kv_get **out) MUST_CHECK;
/* Withdraws the read that was started last, with its operation. */
void kv_get_withdraw(struct kv_replica *c, struct kv_get *g);
void kv_get_completed(struct kit_client *k, uint64_t index);
/* Polls once and does what there is to do. */
int kv_get_step(struct kv_replica *c) MUST_CHECK;
/* Drives reads until `g` is done, or with NULL until all are. */
int kv_get_drain(struct kv_replica *c, const struct kv_get *g) MUST_CHECK;
/* The entry with that key in a row that is whole; -1. `skip` of those that
 * have its hash only are passed over. */
int kv_row_find(const struct kv_geometry *g, const uint8_t *row,
		const struct kv_place *place, const void *key, size_t key_len,
		uint32_t *skip, struct kv_item *item);
bool kv_is_expired(const struct kv_replica *c, uint64_t expire_at_ms);
/* Reads an extent into c->kit.big. */
int kv_extent_fetch(struct kv_replica *c, const struct kv_item *item,
		    const uint8_t **bytes) MUST_CHECK;

/* ---- kv_modify.c -------------------------------------------------------- */

/* A value that is known before the locks are taken. */
struct kv_put {
	const void *value;
	size_t len;
	uint32_t flags; /* enum aq_kv_put_flags; 0: unconditional */
	uint64_t expire_at_ms;
};

/* One change: a put, or what `fn` decides under the key's locks. */
struct kv_mod {
	const void *key;
	size_t key_len;
	const struct kv_put *put; /* NULL: fn */
	aq_kv_change_fn fn;
	void *user;
	bool needs_old;	  /* fn asks whether there is a value */
	bool needs_value; /* fn reads the value */
	/*
	 * For tables of several replicas; both are called under the key's
	 * locks, and may be NULL. `older`: there is no entry here; fills in
	 * what an older generation has. `mirror`: this change is about to be
	 * made, and nothing but the connection can stop it any more. A return
	 * value other than 0 ends the operation.
	 */
	int (*older)(struct kv_mod *m, struct aq_kv_change *ch);
	int (*mirror)(struct kv_mod *m, const struct aq_kv_change *ch);
	void *ctx;
	/* Deleted keys leave an entry that has expired. */
	bool leaves_graves;
	/* Set: fn was told of an entry of this replica, expired or not. */
	bool had_entry;
	/* Set: the change is on its way to a row, here or at another copy. */
	bool is_sent;
};

int kv_mod_run(struct kv_replica *c, struct kv_mod *m) MUST_CHECK;
/* Adds to the batch: the row with its new CRC, from that entry on. */
void kv_add_row(struct kv_replica *c, uint64_t number, uint8_t *row, int entry);

/* ---- kv_unit.c: several keys as one ---------------------------------------
 */

/* One key of a unit. */
struct kv_unit_key {
	struct kv_place place;
	uint8_t *old; /* a copy of its value; NULL: none */
	int row;      /* of the unit's rows, where its entry is; -1 */
	int entry;
	struct kv_item item; /* points into the row */
	struct kv_new fresh;
};

/* A change of several keys, decided by `fn` under the locks of all. */
struct kv_unit {
	const struct aq_kv_key *keys;
	uint32_t count;
	aq_kv_unit_fn fn;
	void *user;
	/* For tables of several replicas, as in struct kv_mod; `older` is
	 * called for each key that has no entry here. */
	int (*older)(struct kv_unit *u, uint32_t i, struct aq_kv_change *ch);
	int (*mirror)(struct kv_unit *u);
	void *ctx;
	bool leaves_graves;
	/* How a key without room is inserted beforehand: what an older
	 * generation has, and at which other copy. */
	struct kv_mod room;

	struct aq_kv_change *change; /* one for each key */
	struct kv_unit_key *key;     /* the same */
	struct kv_want want;
	uint64_t bytes;	    /* of values */
	uint32_t row_count; /* distinct rows of all keys */
	uint32_t dirty_count;
	uint64_t row[KV_UNIT_ROWS];
	bool is_dirty[KV_UNIT_ROWS];
	uint8_t *rows;	      /* their contents */
	struct kv_new memory; /* for the record, if it needs one */
};

int kv_unit_init(struct kv_unit *u) MUST_CHECK;
void kv_unit_release(struct kv_unit *u);
int kv_unit_run(struct kv_replica *c, struct kv_unit *u) MUST_CHECK;

/* ---- kv_unit_record.c: how it becomes visible ------------------------------
 */

/* Gets the memory that kv_unit_commit needs; after it nothing but the
 * connection can stop that. */
int kv_unit_prepare(struct kv_replica *c, struct kv_unit *u) MUST_CHECK;
/* Writes the rows that are dirty, all or none, and gives the locks back. */
int kv_unit_commit(struct kv_replica *c, struct kv_unit *u) MUST_CHECK;
struct kv_dead;
/* Carries out what a dead client had decided. It had the locks. */
int kv_unit_redo(struct kv_replica *c, struct kv_dead *d) MUST_CHECK;

/* ---- kv_many.c ---------------------------------------------------------- */

/* The most changes that go together. */
uint32_t kv_many_keys_max(const struct kv_replica *c);
/* Runs puts and deletes, whose keys were checked, together, from the first on.
 * Returns how many have their `err` now, and whether the next one must go
 * alone. No read may be under way. */
size_t kv_many_run(struct kv_replica *c, struct aq_kv_op *const *ops,
		   size_t count, bool *next_alone);

/* ---- kv_replica_ops.c --------------------------------------------------- */

/* No other read may be under way. It may be tried again: after a lost
 * connection, too. op->err is what is
 * returned, unless the replica cannot be had: -EHOSTDOWN, KV_E_VIEW. */
int kv_replica_read(struct kv_replica *c, struct aq_kv_op *op,
		    uint64_t *expire_at_ms, bool *has_entry) MUST_CHECK;
int kv_replica_change(struct kv_replica *c, struct kv_mod *m) MUST_CHECK;
int kv_replica_unit(struct kv_replica *c, struct kv_unit *u) MUST_CHECK;
int kv_replica_scan(struct kv_replica *c, uint64_t *row, uint64_t rows,
		    unsigned flags, aq_kv_item_fn each, void *user) MUST_CHECK;
int kv_replica_count(struct kv_replica *c, uint64_t *count) MUST_CHECK;
/* Also how many clients have a slot, this one among them. */
int kv_replica_count_with(struct kv_replica *c, uint64_t *count,
			  uint32_t *clients) MUST_CHECK;
int kv_replica_check(struct kv_replica *c,
		     struct aq_kv_report *report) MUST_CHECK;
int kv_replica_reap(struct kv_replica *c) MUST_CHECK;

/* ---- kv_slab.c ---------------------------------------------------------- */

int kv_new_alloc(struct kv_replica *c, size_t key_len, size_t value_len,
		 struct kv_new *out) MUST_CHECK;
/* Adds to the batch: map and contents; false when they do not fit into it. */
bool kv_new_add(struct kv_replica *c, struct kv_new *n, const void *key,
		size_t key_len, const void *value, size_t value_len);
/* Writes a large one, with as many round trips as it takes. */
int kv_new_write(struct kv_replica *c, struct kv_new *n, const void *key,
		 size_t key_len, const void *value,
		 size_t value_len) MUST_CHECK;
/* Only the contents: for the map it is still free. */
int kv_new_fill(struct kv_replica *c, struct kv_new *n, const void *key,
		size_t key_len, const void *value, size_t value_len) MUST_CHECK;
/* Adds to the batch: the run's chunks have no owner any more, so that they are
 * not taken for an unfinished change. */
void kv_new_add_commit(struct kv_replica *c, const struct kv_new *n);
void kv_extent_add_free(struct kv_replica *c, uint64_t offset,
			uint64_t size_bytes);
/* Gives back chunks, so that other clients may have them. */
int kv_slab_give_back(struct kv_replica *c) MUST_CHECK;
void kv_slab_forget(struct kv_replica *c);
/* Makes the chunks of a dead client available to others and frees what it has
 * not finished. A run at `extent` stays, because it is in the table. */
int kv_slab_orphan(struct kv_replica *c, uint32_t slot, uint64_t extent,
		   uint64_t size_bytes) MUST_CHECK;
/* The class of an extent; 0: whole chunks. */
uint32_t kv_class_of(const struct kv_geometry *g, uint64_t size_bytes);
uint64_t kv_run_of(const struct kv_geometry *g, uint64_t size_bytes);
/* Where its byte of the map is. */
uint64_t kv_map_at(const struct kv_geometry *g, uint64_t offset,
		   uint64_t size_bytes);

/* Looks for clients whose connections are gone and cleans up after them. */
int kv_reap(struct kv_replica *c) MUST_CHECK;

/* ---- kv_lease.c: the right to repair ------------------------------------- */

/* Takes the leases of these regions; none may be held. -errno: it has none. */
int kv_leases_take(struct kv_replica *c, uint32_t regions) MUST_CHECK;
/* A client that repairs calls this often. -ESTALE: a lease is lost. */
int kv_lease_renew(struct kv_replica *c) MUST_CHECK;
/* Forgets them, and says so where the connection works. */
int kv_leases_give(struct kv_replica *c) MUST_CHECK;
/* Waits while somebody repairs in the region; *is_dead: for too long. */
int kv_lease_watch(struct kv_replica *c, uint32_t region,
		   bool *is_dead) MUST_CHECK;

/* ---- kv_repair.c: who is dead, fences ------------------------------------ */

/* Ends what the client of this slot may still have under way. */
int kv_fence(struct kv_replica *c, uint32_t slot,
	     const struct kv_slot *s) MUST_CHECK;

/* A client has held these locks for long: finds out whether it is dead, and if
 * so repairs what it left. 0: try again. */
int kv_recover(struct kv_replica *c, uint64_t word, uint64_t mask) MUST_CHECK;
/* Waits while another client repairs around this word of locks: nobody else may
 * try for them. */
int kv_lease_wait(struct kv_replica *c, uint64_t word) MUST_CHECK;

/* ---- kv_mend.c: what dead clients left ---------------------------------- */

/* One of them. */
struct kv_dead {
	uint32_t slot;
	uint64_t epoch;
	struct kv_intent intent;
	struct kv_lockset set;
	bool holds[KV_GROUPS]; /* of its groups */
	bool is_held;	       /* all of them */
};

/* Repairs everything that these clients had under way. Their connections are
 * gone, and no other client tries for their locks. */
int kv_mend(struct kv_replica *c, struct kv_dead *dead,
	    unsigned count) MUST_CHECK;
/* Gives an extent back that no entry points to, if it still has that stamp;
 * *size_bytes is 0 where it has another. Not the chunks of a large one: their
 * words tell who has them. */
int kv_extent_reclaim(struct kv_replica *c, uint64_t extent, uint32_t stamp,
		      uint64_t *size_bytes) MUST_CHECK;
/* Clears half-written entries; returns how many. */
unsigned kv_row_mend(const struct kv_geometry *g, uint8_t *row);

/* ---- kv_replica.c ------------------------------------------------------- */

int kv_slot_claim(struct kv_replica *c) MUST_CHECK;
/* If it fails, others take the slot for dead after the failure time. */
int kv_slot_leave(struct kv_replica *c);
int kv_replica_create(const struct kit_remote *remote,
		      const struct kv_geometry *g,
		      const struct kv_client_config *config,
		      struct kv_replica **out) MUST_CHECK;
/* After a crash it leaves everything as it is; otherwise it leaves its slot. */
void kv_replica_destroy(struct kv_replica *c);
/* Waits, and shows life where locks are held meanwhile. */
void kv_pause(struct kv_replica *c, uint64_t ns);
int kv_past_deadline(struct kv_replica *c) MUST_CHECK;
/* After -ESTALE or -EHOSTDOWN: takes another connection and slot. */
int kv_reconnect(struct kv_replica *c) MUST_CHECK;
/* Starts the clock of an operation; connects anew when necessary. -EHOSTDOWN:
 * that is not possible, and nothing was done. */
int kv_op_begin(struct kv_replica *c) MUST_CHECK;
/* Converts the error of a broken connection for the caller. */
int kv_op_end(struct kv_replica *c, int err) MUST_CHECK;

#endif
