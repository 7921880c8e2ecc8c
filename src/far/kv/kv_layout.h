/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replica of a table of keys and values as it lies in far memory: one region
 * of host memory and one, the locks, that should be device memory, on one node.
 * A table is one replica, or several: shards, copies, generations. All of it is
 * little-endian.
 *
 *	table region				lock region
 *	------------				-----------
 *	struct kv_head	 (512 bytes)		struct layout_header (64 bytes)
 *	leases		 le64 []		le64 [], one bit per lock
 *	clients		 struct kv_slot []	(or one word per lock)
 *	chunk words	 le64 []
 *	index		 rows
 *	chunks		 extents
 *
 * Rows. Entries, then 16 bytes: struct kv_trailer. Only the client that holds a
 * row's lock changes it, one row per WRITE, which is one packet: a row is at
 * most KV_ROW_BYTES_MAX. The CRC covers all before it, so a reader without a
 * lock sees whether what it read is one row; the version changes with every
 * write, so that the CRC does, too.
 *
 * Where an entry may be. A key's hash gives two rows, kv_place(). Invariant:
 * a key is in one of its rows, once; while its lock is held it may stand in
 * both, with the same contents, because it is copied to its other row before
 * it is overwritten in this one.
 *
 * Extents. An entry points to bytes in a chunk. They are written before the
 * entry that points to them and not again until the entry is gone, and then
 * with another stamp; a reader compares stamp, CRC and key. A chunk belongs to
 * one client, which alone takes extents from it. Its map has one byte per
 * extent: 1 from after the extent is written, and before an entry points to it,
 * until the entry is gone.
 *
 * Units. Several rows change as one: what they will be is written into a
 *record, the intent names the record, and then each row is closed, by a CRC
 *that is wrong, before the first of them gets its new contents. Who reads
 *without a lock waits at a closed row, so nobody sees one changed row and then
 *another one as it was.
 *
 * Locks. Lock l of a row is row / rows_per_lock; its bit is l % lock_count.
 * Before a client takes locks it names them in its slot (the intent), and after
 * it has given them back it writes that it has none. Both go over the queue
 * pair that the locks are taken on, in this order; so a lock that is held is
 * always in the intent of its holder.
 */
#ifndef AQ_KV_LAYOUT_H
#define AQ_KV_LAYOUT_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/layout.h"
#include "kit/slot.h"

enum {
	KV_KEY_MAX = 250,
	KV_ENTRY_BYTES_MIN = 16,
	KV_ENTRY_EXTENT_MIN = 32, /* smaller ones have no room for extents */
	KV_ENTRY_BYTES_MAX = 120,
	KV_ENTRIES_MAX = 16,
	KV_ROW_BYTES_MAX = 1024, /* the least MTU of a rack */
	KV_TRAILER_BYTES = 16,
	KV_LEAPS = 32, /* distances to the second row */
	KV_HEAD_BYTES = 512,
	KV_SLOT_BYTES = 960,
	KV_RECENT = 16, /* locks that a client had last */
	/* 64-bit words of locks that an operation may hold. An intent that
	 * names so many is still one packet. */
	KV_GROUPS = 64,
	KV_CLIENTS_MAX = 4096,
	KV_CHUNK_BYTES_MIN = 64 << 10,
	KV_CHUNK_BYTES_MAX = 4 << 20, /* its map has less than 64 KiB */
	KV_EXTENT_UNIT = 16,	      /* bytes; sizes are in units, 23 bits */
	KV_EXTENT_HEAD = 32,
	KV_STAMP_MASK = 0xffffff,
	KV_CLASS_SHIFT_MIN = 6, /* extents of 64 bytes, and so on */
	KV_LEASE_COUNT = 32,	/* words: enum kv_lease */
	KV_REGIONS = 16,	/* of locks, each with a lease to repair */
	KV_SHARDS_MAX = 64,
	KV_COPIES_MAX = 2,
	KV_ALIGN = 4096,
};

/* ---- head --------------------------------------------------------------- */

enum kv_hash {
	KV_HASH_DEPENDENT,
	KV_HASH_BLOCK,
	KV_HASH_INDEPENDENT,
	KV_HASH_COUNT,
};

enum kv_head_flags {
	KV_WORD_LOCKS = 1u << 0,   /* a word per lock: holder, or 0 */
	KV_DEVICE_LOCKS = 1u << 1, /* for information only */
	KV_GROWS = 1u << 2,	   /* by itself, when it gets full */
};

/* Written once, before any client can open the table. */
struct kv_head {
	struct layout_header layout;
	le64 rows;
	le64 lock_count;
	le64 seed;
	le64 chunk_count;
	le32 entries;
	le32 entry_bytes;
	le32 rows_per_lock;
	le32 client_count;
	le32 chunk_bytes;
	le32 hash; /* enum kv_hash */
	le32 locality_milli;
	le32 failure_ms;
	le32 flags;
	le32 generation;
	/* floor(f^(f + z)) for z zero bits, so that clients need not compute
	 * logarithms alike. */
	le64 leap[KV_LEAPS];
	le32 shard;
	le32 shard_count;
	le32 copy;
	le32 copy_count;
	le32 name; /* of all replicas of this generation, 16 bits; 0: the first
		    */
	uint8_t reserved0[4];
	le64 max_bytes; /* that it grows to by itself, all of it; 0: any */
	uint8_t reserved[512 - 64 - 5 * 8 - 16 * 4 - KV_LEAPS * 8 - 8];
	le64 crc; /* of all before it */
};

STATIC_ASSERT(sizeof(struct kv_head) == KV_HEAD_BYTES, "kv head");
STATIC_ASSERT(offsetof(struct kv_head, entries) == 96, "kv head entries");
STATIC_ASSERT(offsetof(struct kv_head, leap) == 136, "kv head leap");
STATIC_ASSERT(offsetof(struct kv_head, max_bytes) == 416, "kv head max_bytes");
STATIC_ASSERT(offsetof(struct kv_head, crc) == 504, "kv head crc");

/* The head in host form, with what follows from it. Offsets are from the
 * region's first byte. */
struct kv_geometry {
	uint64_t rows;
	uint64_t lock_count;
	uint64_t seed;
	uint64_t chunk_count;
	uint32_t entries;
	uint32_t entry_bytes;
	uint32_t rows_per_lock;
	uint32_t client_count;
	uint32_t chunk_bytes;
	uint32_t hash;
	uint32_t locality_milli;
	uint32_t failure_ms;
	uint32_t flags;
	uint32_t generation;
	uint32_t shard;
	uint32_t shard_count;
	uint32_t copy;
	uint32_t copy_count;
	uint32_t name;
	uint64_t max_bytes;
	uint32_t row_bytes;
	uint64_t block_rows; /* under one word of locks */
	uint64_t leap[KV_LEAPS];
	uint64_t lease_offset;
	uint64_t slot_offset;
	uint64_t chunk_word_offset;
	uint64_t row_offset;
	uint64_t chunk_offset;
	uint64_t size_bytes;
	uint64_t lock_bytes; /* of the lock region */
};

/* Fills in what follows from the rest. -EINVAL with words. */
int kv_geometry_derive(struct kv_geometry *g) MUST_CHECK;
/* The moduli of f = milli / 1000. */
void kv_leaps(uint32_t milli, uint64_t leap[KV_LEAPS]);
void kv_head_build(const struct kv_geometry *g, struct kv_head *h);
/* Checks bytes of unknown origin. -EBADMSG, -EPROTONOSUPPORT, with words. */
int kv_head_parse(const struct kv_head *h, uint64_t avail_bytes,
		  struct kv_geometry *g) MUST_CHECK;

extern const struct layout_kind kv_layout;
extern const struct layout_kind kv_lock_layout;

static inline uint64_t kv_row_at(const struct kv_geometry *g, uint64_t row)
{
	return g->row_offset + row * g->row_bytes;
}

static inline uint64_t kv_lock_of(const struct kv_geometry *g, uint64_t row)
{
	uint64_t l = row / g->rows_per_lock;

	return l < g->lock_count ? l : l % g->lock_count;
}

static inline uint64_t kv_lock_at(uint64_t word)
{
	return sizeof(struct layout_header) + word * sizeof(uint64_t);
}

/* ---- where a key may be ------------------------------------------------- */

struct kv_place {
	uint64_t hash;
	uint64_t row[2]; /* two different ones, unless there is only one */
};

uint64_t kv_hash_key(const struct kv_geometry *g, const void *key,
		     size_t key_len);
/* The shard of a hash: by other bits than the rows. */
uint32_t kv_shard_of(uint64_t hash, uint32_t shard_count);
/* The rows of a hash. If the second would equal the first, another row is
 * taken, see kv_place.c; after the last row comes the first. */
void kv_place_of(const struct kv_geometry *g, uint64_t hash,
		 struct kv_place *out);

/* ---- entries and rows --------------------------------------------------- */

/*
 * An entry. Bits of its first word:
 *	0	0: key and value are here; 1: in an extent
 *	1	used
 *	2	has an end (8 bytes: milliseconds since 1970)
 *	3	extent: the key is here, too
 *	4	put without a look at what was there before
 *	5	inline: deleted; it has KV_GONE_MS for its end, without the 8
 *		bytes
 *	8-15	length of the key
 *	16-23	inline: length of the value
 *	16-38	extent: its size in units
 *	40-47	extent: upper bits of its stamp
 *	48-63	check, over the entry with these bits 0
 * Inline: [end] key value. Extent: pointer in 48 bits and the lower 16 of the
 * stamp; hash; [end]; [key].
 */
enum kv_entry_bits {
	KV_E_EXTENT = 1u << 0,
	KV_E_USED = 1u << 1,
	KV_E_EXPIRES = 1u << 2,
	KV_E_HAS_KEY = 1u << 3,
	KV_E_PUT = 1u << 4,
	KV_E_GONE = 1u << 5,
};

enum {
	KV_E_HEAD = 8,
	KV_E_EXTENT_HEAD = 24,
	KV_E_END = 8,
	KV_GONE_MS = 1, /* the end of a key that was deleted */
};

struct kv_trailer {
	uint8_t version;
	uint8_t reserved0;
	uint8_t writer[2]; /* the slot, for information */
	le32 reserved1;
	le64 crc; /* of the whole row before it */
};

STATIC_ASSERT(sizeof(struct kv_trailer) == KV_TRAILER_BYTES, "kv trailer");
STATIC_ASSERT(offsetof(struct kv_trailer, crc) == 8, "kv trailer crc");

/* A parsed entry. Pointers lead into the row. */
struct kv_item {
	bool is_extent;
	uint32_t key_len;
	const uint8_t *key; /* NULL: only in the extent */
	uint32_t value_len; /* inline */
	const uint8_t *value;
	uint64_t expire_at_ms; /* 0: never */
	uint64_t extent;       /* offset in the region */
	uint32_t extent_bytes; /* with its head */
	uint32_t stamp;	       /* 24 bits */
	uint64_t hash;	       /* extent only */
};

static inline uint8_t *kv_entry(const struct kv_geometry *g, void *row,
				unsigned i)
{
	return (uint8_t *)row + (size_t)i * g->entry_bytes;
}

static inline bool kv_entry_used(const uint8_t *entry)
{
	return entry[0] & KV_E_USED;
}

/* Whether key and value fit into an entry. */
bool kv_fits_inline(const struct kv_geometry *g, size_t key_len,
		    size_t value_len, uint64_t expire_at_ms);
static inline bool kv_has_extents(const struct kv_geometry *g)
{
	return g->entry_bytes >= KV_ENTRY_EXTENT_MIN;
}
void kv_entry_inline(const struct kv_geometry *g, uint8_t *entry,
		     const void *key, size_t key_len, const void *value,
		     size_t value_len, uint64_t expire_at_ms);
/* item: extent, extent_bytes, stamp, hash, expire_at_ms. */
void kv_entry_extent(const struct kv_geometry *g, uint8_t *entry,
		     const void *key, size_t key_len,
		     const struct kv_item *item);
/* Marks an entry as stored without a look at the value before. */
void kv_entry_mark_put(const struct kv_geometry *g, uint8_t *entry);
void kv_entry_clear(const struct kv_geometry *g, uint8_t *entry);
/* -ENOENT: free. -EBADMSG: half written, or not an entry. */
int kv_entry_read(const struct kv_geometry *g, const uint8_t *entry,
		  struct kv_item *out) MUST_CHECK;
/* Whether the entry's own check is right; a free entry is zeros. */
bool kv_entry_is_whole(const struct kv_geometry *g, const uint8_t *entry);
/* The hash of a used entry's key. */
uint64_t kv_entry_hash(const struct kv_geometry *g, const struct kv_item *item);

/* A row that was never written is zeros, and whole. */
bool kv_row_is_whole(const struct kv_geometry *g, const void *row);
bool kv_row_is_virgin(const struct kv_geometry *g, const void *row);
uint64_t kv_row_crc(const struct kv_geometry *g, const void *row);
/* A new version and its CRC. */
void kv_row_seal(const struct kv_geometry *g, void *row, uint32_t writer);
/* The place of a free entry, or -1. */
int kv_row_free(const struct kv_geometry *g, const void *row);

/* ---- extents ------------------------------------------------------------ */

/* Stands in front of key and value. */
struct kv_extent {
	le64 crc;   /* of all after it: head, key, value */
	le32 stamp; /* as in the entry */
	le32 key_len;
	le64 value_len;
	le64 reserved;
};

STATIC_ASSERT(sizeof(struct kv_extent) == KV_EXTENT_HEAD, "kv extent");

/* Makes the head for a key and value; returns the size, head included. */
uint64_t kv_extent_build(struct kv_extent *head, const void *key,
			 size_t key_len, const void *value, size_t value_len,
			 uint32_t stamp);
static inline uint64_t kv_extent_size(size_t key_len, size_t value_len)
{
	return align_up(KV_EXTENT_HEAD + key_len + value_len, KV_EXTENT_UNIT);
}

/* Checks all of an extent: avail_bytes were read. -EBADMSG: it is not what the
 * entry points to, or not any more; -ENOENT: it has another key. */
int kv_extent_check(const void *extent, uint64_t avail_bytes, uint32_t stamp,
		    const void *key, size_t key_len, const uint8_t **value,
		    uint64_t *value_len) MUST_CHECK;
/* The same for a caller that does not know the key. */
int kv_extent_read(const void *extent, uint64_t avail_bytes, uint32_t stamp,
		   const uint8_t **key, uint32_t *key_len,
		   const uint8_t **value, uint64_t *value_len) MUST_CHECK;

/*
 * The word of a chunk: owner's slot + 1 in 16 bits (0: none), class in the next
 * 8 (the shift of its extents' size; 0: the chunk is free; KV_CLASS_RUN: a part
 * of one large extent), 32 bits of run length at a run's first chunk.
 */
enum {
	KV_CLASS_RUN = 255,
};

static inline uint64_t kv_chunk_word(uint32_t owner, uint32_t class,
				     uint32_t run)
{
	return (uint64_t)owner | (uint64_t) class << 16 | (uint64_t)run << 32;
}

static inline uint32_t kv_chunk_owner(uint64_t word)
{
	return word & 0xffff;
}

static inline uint32_t kv_chunk_class(uint64_t word)
{
	return word >> 16 & 0xff;
}

static inline uint32_t kv_chunk_run(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* How many extents of that class a chunk has, and where: the map is first. */
uint32_t kv_chunk_extents(const struct kv_geometry *g, uint32_t class);
static inline uint64_t kv_chunk_at(const struct kv_geometry *g, uint64_t chunk)
{
	return g->chunk_offset + chunk * g->chunk_bytes;
}
uint64_t kv_extent_at(const struct kv_geometry *g, uint64_t chunk,
		      uint32_t class, uint32_t index);

/* ---- clients ------------------------------------------------------------ */

/* Locks: bits of one word, or in a table of words the number of one lock. */
struct kv_group {
	le32 word;
	le64 mask;
};

STATIC_ASSERT(sizeof(struct kv_group) == 12, "kv group");

enum kv_intent_flags {
	/* new_extent, new_stamp: the record of a unit (struct kv_unit_record);
	 * old_extent: its size in bytes. From the moment that this intent is
	 * there until the next one is, the unit is decided, and whoever repairs
	 * carries it out. */
	KV_INTENT_UNIT = 1u << 0,
};

/*
 * What a client is about to do. Its client writes it in one WRITE, up to its
 * last group; clients that repair read it. `sequence` changes with every write
 * and so shows that the client lives.
 */
struct kv_intent {
	le64 sequence;
	le32 group_count; /* 0: it has no locks */
	le32 crc;	  /* of all else that is written, folded */
	le32 new_stamp;
	le32 old_stamp;
	/* 0: none. Either the new extent is not in the table yet, or the old
	 * one is not given back yet; the rows under the locks tell which. Both
	 * are taken out of the intent before the locks are let go. */
	le64 new_extent;
	le64 old_extent;
	le64 count; /* keys that this slot's clients have added, net */
	/* A ring of the locks that the client tried for last, and how many
	 * there have been, so that an observer sees what was between two
	 * looks. */
	le32 recent_count;
	le32 flags; /* enum kv_intent_flags */
	le32 recent[KV_RECENT];
	struct kv_group group[KV_GROUPS];
};

struct kv_slot {
	struct kit_slot client;
	struct kv_intent intent;
	uint8_t reserved[KV_SLOT_BYTES - 56 - 120 - KV_GROUPS * 12];
};

STATIC_ASSERT(sizeof(struct kv_intent) == 120 + KV_GROUPS * 12, "kv intent");
STATIC_ASSERT(sizeof(struct kv_slot) == KV_SLOT_BYTES, "kv slot");
STATIC_ASSERT(offsetof(struct kv_slot, intent) == 56, "kv slot intent");
STATIC_ASSERT(sizeof(struct kv_intent) <= KV_ROW_BYTES_MAX, "one packet");

/* Bytes that are written. */
static inline uint32_t kv_intent_bytes(uint32_t group_count)
{
	return (uint32_t)(offsetof(struct kv_intent, group) +
			  group_count * sizeof(struct kv_group));
}
uint32_t kv_intent_crc(const struct kv_intent *intent);
/* Whether the intent is valid; a slot that was never used is zeros. */
bool kv_intent_is_whole(const struct kv_intent *intent);

/* ---- units --------------------------------------------------------------- */

enum {
	KV_UNIT_KEYS = 128,
	KV_UNIT_ROWS = 2 * KV_UNIT_KEYS,
};

/*
 * What a unit of several keys will change: written into an extent that no entry
 * points to and no map names, before the intent that decides. Behind the head:
 * the numbers of the rows (le64), the extents that become entries' and those
 * that do no more (struct kv_unit_extent), and the rows as they will be.
 */
struct kv_unit_record {
	le64 crc; /* of all after it */
	le32 stamp;
	le32 row_count;
	le32 new_count;
	le32 old_count;
	le64 reserved;
};

struct kv_unit_extent {
	le64 offset;
	le64 size_bytes;
	le32 stamp;
	le32 reserved;
};

STATIC_ASSERT(sizeof(struct kv_unit_record) == 32, "kv unit record");
STATIC_ASSERT(sizeof(struct kv_unit_extent) == 24, "kv unit extent");

/* ---- words that many share ---------------------------------------------- */

enum kv_lease {
	KV_LEASE_STATE = 1,
	/* The lease to make the next generation; like repair. The holder's
	 * count is the name of the generation it makes, so two holders never
	 * work on the same one. */
	KV_LEASE_GROW,
	/* No lease: rows of a FROZEN replica, from the first on, whose keys are
	 * all in the next generation. Who goes on with a copy begins there. A
	 * frozen row never changes, so a word that comes late is true as well.
	 */
	KV_LEASE_COPIED,
	/* The leases to repair, one per region. */
	KV_LEASE_REGION = 16,
};

/* As bits. */
#define KV_REGIONS_ALL ((1u << KV_REGIONS) - 1)

STATIC_ASSERT((int)KV_LEASE_REGION + KV_REGIONS <= KV_LEASE_COUNT, "leases");

/* The region of a word of locks; neighbours are in the same one. A number from
 * an intent that is damaged is in the last. */
static inline uint32_t kv_region_of(const struct kv_geometry *g, uint64_t word)
{
	uint64_t words = g->flags & KV_WORD_LOCKS ? g->lock_count
						  : (g->lock_count + 63) / 64;

	return (uint32_t)(u64_min(word, words - 1) * KV_REGIONS / words);
}

static inline uint64_t kv_lease_at(const struct kv_geometry *g,
				   enum kv_lease which)
{
	return g->lease_offset + 8 * (uint64_t)which;
}

/*
 * The state of a replica: what it is for (role) and how far its generation is
 * (phase). Changed by CAS only: FIRST to ONLY, SECOND to RISING to ONLY; YOUNG
 * to STABLE to FREEZING to FROZEN to DONE. Zeros are a table of one replica.
 * docs/kv.md has the reasons.
 */
enum kv_role {
	KV_ROLE_ONLY,	/* its shard's only copy, or the one that is left */
	KV_ROLE_FIRST,	/* serves; changes are made at the second before */
	KV_ROLE_SECOND, /* follows */
	KV_ROLE_RISING, /* the first is gone; soon the only one */
};

enum kv_phase {
	KV_PHASE_STABLE,
	KV_PHASE_YOUNG,	   /* missing keys may be in the generation before */
	KV_PHASE_FREEZING, /* no changes start; those under way end */
	KV_PHASE_FROZEN,   /* changes are made in the next generation */
	KV_PHASE_DONE,	   /* all keys are there, too */
};

static inline uint64_t kv_state_word(enum kv_role role, enum kv_phase phase,
				     uint32_t next)
{
	return (uint64_t)role | (uint64_t)phase << 8 | (uint64_t)next << 32;
}

/* From FREEZING on: the name of the next generation. */
static inline uint32_t kv_state_next(uint64_t word)
{
	return word >> 32 & 0xffff;
}

static inline enum kv_role kv_state_role(uint64_t word)
{
	return (enum kv_role)(word & 0xff);
}

static inline enum kv_phase kv_state_phase(uint64_t word)
{
	return (enum kv_phase)(word >> 8 & 0xff);
}

/* A lease to repair: holder's slot + 1 in 16 bits and 32 bits of its epoch
 * (0: free), 16 bits that change with every holder. */
static inline uint64_t kv_lease_word(uint32_t holder, uint32_t epoch,
				     uint32_t count)
{
	return (uint64_t)(holder & 0xffff) | (uint64_t)epoch << 16 |
	       (uint64_t)(count & 0xffff) << 48;
}

static inline uint32_t kv_lease_holder(uint64_t word)
{
	return word & 0xffff;
}

static inline uint32_t kv_lease_epoch(uint64_t word)
{
	return (uint32_t)(word >> 16);
}

static inline uint32_t kv_lease_count(uint64_t word)
{
	return (uint32_t)(word >> 48);
}

#endif
