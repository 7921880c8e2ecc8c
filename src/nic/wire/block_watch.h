/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to an object, told to who watches it.
 *
 * Each block keeps its last events in a ring, from its making on, whether
 * somebody reads them or not. Every entry has a serial number; a reader asks
 * for what lies behind the last one that it has (BLOCK_WATCH), and the answer
 * says how many events are gone that it never saw. Nothing at the node belongs
 * to a reader, except a message that waits for the next entry.
 *
 *   WATCH   value: block_watch_ask_wire. Answers with a block_watch_wire and
 *           entries, each a block_event_wire and its bytes in whole eights.
 *           BLOCK_STALE with a length other than 0: the block is gone, and had
 *           so many events in all (the result's value).
 *
 * A message whose operations are all of this kind, and one of which asks for
 * that, waits until one of them has something.
 *
 * Some entries are no events but marks, from which a reader of several blocks
 * knows in which order to tell what they have: see block_reader.
 */
#ifndef AQ_WIRE_BLOCK_WATCH_H
#define AQ_WIRE_BLOCK_WATCH_H

#include "block_wire.h"

enum block_event {
	BLOCK_EVENT_APPEND = 1, /* length of the record; value: its offset */
	BLOCK_EVENT_PUT,	/* length of the item, and its first bytes */
	BLOCK_EVENT_GET,	/* length of the item */
	BLOCK_EVENT_ACK,
	BLOCK_EVENT_BACK,   /* an item whose consumer is gone; its length */
	BLOCK_EVENT_SET,    /* length of the key, and its first bytes; value:
			     * the version */
	BLOCK_EVENT_DELETE, /* the same; value: the version that was there */
	BLOCK_EVENT_ADD,    /* as SET; value: what the change answered */
	BLOCK_EVENT_SEAL,   /* for good */
	BLOCK_EVENTS,
	/* Marks. */
	BLOCK_MARK_SEALED = 32, /* the block that follows has the next ones */
	BLOCK_MARK_GOES, /* slots leave for block `value`, generation `other` */
	BLOCK_MARK_CAME, /* slots came from generation `other`, whose entries
			  * before serial `value` are older */
	BLOCK_MARKS,
};

enum {
	BLOCK_EVENT_INSIDE_MAX = 256, /* bytes of a key or an item */
	BLOCK_WATCH_HOLD = 1,	      /* flag: wait for something */
};

/* As serial: only what comes from now on. */
#define BLOCK_WATCH_NOW UINT64_MAX

struct block_watch_ask_wire {
	be64 serial;
	be32 events; /* a bit for each wanted kind; marks always come */
	be32 flags;
};
STATIC_ASSERT(sizeof(struct block_watch_ask_wire) == 16, "watch request");

struct block_watch_wire {
	be64 next;   /* the serial to ask for next */
	be64 before; /* events before the first entry that was looked at */
	be64 total;  /* events before `next` */
	be32 flags;  /* enum block_flag, of the block */
	be32 unused;
};
STATIC_ASSERT(sizeof(struct block_watch_wire) == 32, "watch answer");

struct block_event_wire {
	be16 what;
	be16 inside; /* bytes that follow */
	be32 length;
	be64 serial;
	be64 value;
	be64 other;
};
STATIC_ASSERT(sizeof(struct block_event_wire) == 32, "event");

static inline uint32_t block_event_bytes(uint32_t inside)
{
	return (uint32_t)sizeof(struct block_event_wire) +
	       (uint32_t)align_up(inside, 8);
}

/* ---- a reader of several blocks ------------------------------------------ */

/* One block, as far as it was read. */
struct block_tail {
	uint64_t number, generation;
	uint64_t next;	    /* the serial to ask for */
	uint64_t delivered; /* all entries before this one were told */
	uint64_t total;	    /* events before `next` */
	uint64_t lost;	    /* that the reader has not been told of yet */
	bool has_lost;	    /* some; how many is not known if `lost` is 0 */
	bool is_started;    /* `next` and `total` are known */
	bool is_sealed;	    /* the mark was read */
	bool is_gone;
	uint32_t at, end; /* of what is not told yet */
	uint8_t *bytes;	  /* the owner's, BLOCK_REPLY_MAX */
};

struct block_reader {
	struct block_tail **tail; /* the owner's */
	unsigned count;
	unsigned turn; /* whose entries are told */
	/* A block is mentioned that is not among them. The owner adds it, from
	 * serial 0 on, or says that there is no such block any more. */
	bool wants_map;
	uint64_t wanted; /* its generation */
	bool is_known_gone;
};

struct block_told {
	unsigned what; /* enum block_event; 0: events were lost */
	const struct block_tail *tail;
	uint64_t lost; /* 0: it is not known how many */
	uint64_t value;
	uint32_t length;
	uint32_t inside;
	const uint8_t *bytes; /* until the tail is filled again */
};

/* The answer to a WATCH of that block, which had nothing left to be told.
 * -EPROTO. */
int block_tail_take(struct block_tail *t, const uint8_t *data,
		    size_t len_bytes) MUST_CHECK;
/* The block is gone; `total` events, if that is known. */
void block_tail_end(struct block_tail *t, bool is_known, uint64_t total);
/* False: nothing can be told before more was read, or wants_map. Events of one
 * key come in their order, whichever blocks have them. */
bool block_reader_next(struct block_reader *r, struct block_told *out);

#endif
