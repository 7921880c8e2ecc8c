/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this room's files share: the layout of the log, shards, sessions.
 *
 * A shard's log is a sequence of pages. While page p is in memory, it lies in
 * the page frame p % pframe_count; afterwards, at a fixed place of the shard's
 * part of the device. An address is page * page_bytes + offset.
 *
 *	 0 .......... head_page ....... ro_page ........ tail
 *	 far, written | read-only, being | mutable: in
 *	              | written          | place
 *
 * Invariants, under the shard's lock:
 *  - pages before head_page are on the device and in no page frame;
 *  - a page frame is given to another page only in state PFRAME_CLEAN;
 *  - a record before ro_page never changes;
 *  - an index entry points to the newest record of its tag, and `prev` of each
 *    record to the next older one of that tag.
 */
#ifndef AQ_HLOG_PRIV_H
#define AQ_HLOG_PRIV_H

#include "base/bytes.h"
#include "base/layout.h"
#include "base/lock.h"
#include "hlog.h"

/* ---- layout of the log -------------------------------------------------- */

/*
 * A reference to a record: 40 bits of address and 10 bits of size, both in
 * 8-byte words, and 14 bits of the key's hash as tag. 0: none, because a page
 * starts with its header.
 */
enum {
	HLOG_REF_ADDR_BITS = 40,
	HLOG_REF_SIZE_BITS = 10,
	HLOG_REF_TAG_BITS = 14,
	HLOG_WORD = 8,
};

enum hlog_record_flags {
	HLOG_TOMBSTONE = 1u << 0,
};

/* Little-endian; the checksum is filled in when the page becomes read-only. */
struct hlog_record {
	le64 prev; /* a reference */
	le64 key;
	le32 size_flags; /* bytes of the value << 8 | enum hlog_record_flags */
	le32 crc;	 /* CRC-32 of all else, the value included */
	uint8_t value[];
};

STATIC_ASSERT(sizeof(struct hlog_record) == 24, "record header");
STATIC_ASSERT(_Alignof(struct hlog_record) == 1, "any alignment will do");

#define HLOG_PAGE_MAGIC 0x4750474f4c485141ull /* "AQHLOGPG" */

struct hlog_page {
	le64 magic;
	le64 store; /* drawn when the store was created */
	le64 number;
	le32 shard;
	le32 used_bytes; /* header included */
	/* How often the store was recovered before; never falls along a log,
	 * which tells pages that a recovery gave up from later ones. */
	le32 generation;
	le32 record_count;
	uint8_t reserved[16]; /* 0 */
	le64 checksum;	      /* CRC-64 of the above */
};

STATIC_ASSERT(sizeof(struct hlog_page) == 64, "page header");
STATIC_ASSERT(offsetof(struct hlog_page, checksum) == 56, "page checksum");

/* The first block of a device. */
struct hlog_super {
	struct layout_header header;
	le64 store;
	le64 bucket_count; /* of one shard's index */
	le32 shard_count;
	le32 page_bytes;
	le32 value_max;
	le32 generation;
	uint8_t reserved[24];
	le64 checksum; /* CRC-64 from `store` on */
};

STATIC_ASSERT(sizeof(struct hlog_super) == 128, "super block");

extern const struct layout_kind hlog_super_kind;

static inline uint64_t hlog_ref_make(uint64_t addr, uint32_t size_bytes,
				     uint32_t tag)
{
	return (addr / HLOG_WORD) << 24 |
	       (uint64_t)(size_bytes / HLOG_WORD) << HLOG_REF_TAG_BITS | tag;
}

static inline uint64_t hlog_ref_addr(uint64_t ref)
{
	return (ref >> 24) * HLOG_WORD;
}

static inline uint32_t hlog_ref_size(uint64_t ref)
{
	return (uint32_t)(ref >> HLOG_REF_TAG_BITS &
			  ((1u << HLOG_REF_SIZE_BITS) - 1)) *
	       HLOG_WORD;
}

static inline uint32_t hlog_ref_tag(uint64_t ref)
{
	return (uint32_t)(ref & ((1u << HLOG_REF_TAG_BITS) - 1));
}

static inline uint32_t hlog_record_bytes(uint32_t value_bytes)
{
	return (uint32_t)align_up(sizeof(struct hlog_record) + value_bytes,
				  HLOG_WORD);
}

static inline uint32_t hlog_record_value_bytes(const struct hlog_record *r)
{
	return le32_get(r->size_flags) >> 8;
}

static inline bool hlog_record_is_tombstone(const struct hlog_record *r)
{
	return le32_get(r->size_flags) & HLOG_TOMBSTONE;
}

uint32_t hlog_record_crc(const struct hlog_record *r);
/* Bytes of unknown origin: whole, and a record of that size. */
bool hlog_record_is_sound(const void *bytes, uint32_t size_bytes);

/* Fills in header and checksums of a page with `used_bytes`. */
struct hlog_page_id {
	uint64_t store;
	uint64_t number;
	uint32_t shard;
	uint32_t generation;
};
void hlog_page_seal(void *page, uint32_t used_bytes,
		    const struct hlog_page_id *id);
/* Checks a page of unknown origin, records too. Its generation must be in
 * [low, id->generation]. -ENOENT: never written or not of this log; -EBADMSG:
 * damaged. */
int hlog_page_check(const void *page, uint32_t page_bytes,
		    const struct hlog_page_id *id,
		    uint32_t low_generation) MUST_CHECK;

/* ---- the index ---------------------------------------------------------- */

enum {
	HLOG_BUCKET_ENTRIES = 7,
};

struct hlog_bucket {
	uint64_t entry[HLOG_BUCKET_ENTRIES]; /* references; 0: empty */
	uint64_t next;			     /* overflow bucket + 1; 0: none */
} CACHE_ALIGNED;

STATIC_ASSERT(sizeof(struct hlog_bucket) == CACHE_LINE, "one line");

struct hlog_index {
	struct hlog_bucket *bucket;
	uint64_t bucket_count;	    /* a power of two */
	struct hlog_bucket **chunk; /* of overflow buckets */
	uint64_t overflow_count;
	uint32_t chunk_count;
};

/* Zeroed memory, in huge pages where the system gives them; NULL: none left.
 * Freed with munmap. */
void *hlog_memory(size_t len_bytes);

uint64_t hlog_index_buckets(uint64_t record_count);
int hlog_index_init(struct hlog_index *x, uint64_t bucket_count) MUST_CHECK;
void hlog_index_release(struct hlog_index *x);
/* The entry of that tag, or NULL. */
uint64_t *hlog_index_find(struct hlog_index *x, uint64_t hash);
/* The same, with an empty one when there is none; NULL: out of memory. */
uint64_t *hlog_index_make(struct hlog_index *x, uint64_t hash);

static inline uint64_t hlog_hash(uint64_t key)
{
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93ull;
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93ull;
	return key ^ key >> 32;
}

static inline uint32_t hlog_hash_tag(uint64_t hash)
{
	return (uint32_t)(hash >> 40) & ((1u << HLOG_REF_TAG_BITS) - 1);
}

/* ---- shards ------------------------------------------------------------- */

enum hlog_pframe_state {
	PFRAME_FREE,
	PFRAME_OPEN,	/* has the tail, or is mutable */
	PFRAME_SEALED,	/* read-only, waits to be written */
	PFRAME_WRITING, /* some session waits for it */
	PFRAME_CLEAN,	/* on the device, too */
};

struct hlog_shard {
	struct lock lock; /* guards everything below */
	uint32_t number;
	struct hlog_index index;
	uint8_t *memory; /* pframe_count pages */
	uint8_t *state;	 /* enum hlog_pframe_state, of each page frame */
	uint32_t *used;	 /* bytes, of each page frame */
	uint32_t pframe_count;
	uint32_t mutable_count;
	uint64_t head_page;
	uint64_t ro_page;
	uint64_t write_page; /* pages before it were given to the device */
	uint64_t tail_page;
	uint32_t tail_used; /* page_bytes: the next append opens a page */
	bool is_begun;	    /* tail_page exists */
} CACHE_ALIGNED;

struct hlog {
	struct hlog_device *device;
	uint64_t id;
	uint32_t generation;
	uint32_t page_bytes;
	uint32_t shard_count;
	uint32_t shard_shift; /* of the hash */
	uint32_t value_max;
	uint64_t page_max; /* of one shard's part of the device */
	uint64_t bucket_count;
	uint8_t *memory; /* of all page frames, one piece */
	size_t memory_bytes;
	/* F0: the first write that failed; -errno. Read without a lock. */
	atomic_int failed;
	struct hlog_shard *shard;
};

static inline struct hlog_shard *hlog_shard_of(struct hlog *h, uint64_t hash)
{
	return &h->shard[h->shard_count > 1 ? hash >> h->shard_shift : 0];
}

static inline uint64_t hlog_far_offset(const struct hlog *h,
				       const struct hlog_shard *sh,
				       uint64_t addr)
{
	return HLOG_SUPER_BYTES + sh->number * h->page_max * h->page_bytes +
	       addr;
}

/* Where a record that is in memory lies, or NULL. */
static inline struct hlog_record *hlog_shard_near(const struct hlog *h,
						  const struct hlog_shard *sh,
						  uint64_t ref)
{
	uint64_t addr = hlog_ref_addr(ref);
	uint64_t page = addr / h->page_bytes;

	if (page < sh->head_page)
		return NULL;
	return (struct hlog_record *)(sh->memory +
				      page % sh->pframe_count * h->page_bytes +
				      addr % h->page_bytes);
}

static inline bool hlog_shard_is_mutable(const struct hlog *h,
					 const struct hlog_shard *sh,
					 uint64_t ref)
{
	return hlog_ref_addr(ref) / h->page_bytes >= sh->ro_page;
}

/* The functions on shards are called with the lock held. */

/* Room for a record at the tail. -EAGAIN, -ENOSPC or the store's failure. The
 * session writes pages that become read-only. */
int hlog_shard_append(struct hlog_session *s, struct hlog_shard *sh,
		      uint32_t size_bytes, uint32_t tag, uint64_t *ref,
		      struct hlog_record **record) MUST_CHECK;
/* Gives sealed pages to the device, as many as the queue takes. */
void hlog_shard_write(struct hlog_session *s, struct hlog_shard *sh);
/* A page was written, or not. */
void hlog_shard_written(struct hlog *h, struct hlog_shard *sh, uint64_t page,
			int err);
/* Makes all pages read-only; the next append opens a new one. */
void hlog_shard_seal(struct hlog *h, struct hlog_shard *sh);
/* Pages before `end` are on the device. */
bool hlog_shard_is_written(const struct hlog_shard *sh, uint64_t end);

/* ---- sessions ----------------------------------------------------------- */

enum hlog_pend_kind {
	PEND_READ,
	PEND_RMW,
	PEND_WRITE,
};

/* One request under way. */
struct hlog_pend {
	enum hlog_pend_kind kind;
	uint32_t next; /* of the free list or of the retry list */
	uint64_t key;
	uint64_t user;
	uint64_t ref;	/* what is read */
	uint64_t entry; /* of the index, when the walk began */
	uint64_t page;	/* of a write */
	struct hlog_shard *shard;
	hlog_rmw_fn fn;
	void *arg;
	uint32_t initial_bytes;
};

#define HLOG_PEND_NONE UINT32_MAX

/* Owned by one thread. */
struct hlog_session {
	struct hlog *store;
	struct hlog_queue *queue;
	struct hlog_pend *pend;
	uint32_t free_first;
	uint32_t free_count;
	uint32_t pending; /* reads and RMW */
	uint32_t writing; /* pages */
	/* RMW that found no room at the tail; tried again by hlog_poll. */
	uint32_t retry_first;
	uint8_t *scratch; /* a record that is copied within the log */
	struct hlog_stats stats;
};

/* HLOG_PEND_NONE: none left. */
uint32_t hlog_pend_get(struct hlog_session *s);
void hlog_pend_put(struct hlog_session *s, uint32_t i);

/* Asks the device for p->ref; takes no lock. -EINPROGRESS, or -errno and
 * nothing is under way. */
int hlog_op_fetch(struct hlog_session *s, uint32_t i) MUST_CHECK;
/* An RMW from its beginning: 0, -EINPROGRESS (p->ref must be fetched),
 * -errno. */
int hlog_op_rmw(struct hlog_session *s, struct hlog_pend *p) MUST_CHECK;
/* An RMW with its old value from the far log; NULL: there is none. The same
 * results; -ESTALE: another session was faster, begin anew. */
int hlog_op_rmw_far(struct hlog_session *s, struct hlog_pend *p,
		    const struct hlog_record *old) MUST_CHECK;

/* ---- set-up ------------------------------------------------------------- */

/* A store of that geometry, empty; `super` overrules the options unless it is
 * NULL. */
int hlog_store_alloc(const struct hlog_options *opt,
		     const struct hlog_super *super,
		     struct hlog **out) MUST_CHECK;
int hlog_super_read(struct hlog_device *dev, struct hlog_super *out) MUST_CHECK;
int hlog_super_write(struct hlog *h) MUST_CHECK;

#endif
