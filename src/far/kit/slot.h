/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client slot: the entry that a client has in a structure in far memory, and
 * how it takes it. Tables, stores and indexes have an array of slots each;
 * every slot begins with struct kit_slot, and what follows is the structure's.
 *
 * Other clients end a client by ending the connection that its slot names, so
 * the slot must name that client's connection whenever the client may do
 * something. Three steps, all of them compare-and-swap, because a client may be
 * stopped between any two of them for longer than others wait, and then goes
 * on:
 *
 *	FREE(e) to CLAIMED(e + 1)	no other client names the slot now
 *	the words of the name		from what is there, each with the epoch
 *	CLAIMED(e + 1) to LIVE(e + 1)	only now the client is one
 *
 * A slot that stays CLAIMED for too long is taken back, by CLAIMED to FREE. If
 * its client goes on, its last step fails; and before that its name fails as
 * soon as a later client has named the slot, because a word is never replaced
 * by one of an older epoch. Words that it wrote before, the later client finds
 * and replaces. A word has eight bits of the epoch, so this holds for a client
 * that is late by fewer than 128 clients of the slot.
 *
 * This file has no requests in it; client_slot.c sends them.
 */
#ifndef AQ_KIT_SLOT_H
#define AQ_KIT_SLOT_H

#include "base/base.h"
#include "base/bytes.h"

enum {
	KIT_SLOT_NAME_WORDS = 6,
	KIT_SLOT_WORD_CHARS = 7, /* of a word; its last byte has the epoch */
	/* With the NUL. */
	KIT_SLOT_NAME_MAX = KIT_SLOT_WORD_CHARS * KIT_SLOT_NAME_WORDS,
	KIT_SLOT_STATE_BITS = 8,
};

enum kit_slot_state {
	KIT_SLOT_FREE = 0,
	KIT_SLOT_LIVE = 1,
	/* The client is dead, and what it left waits for repair. Structures in
	 * which locks name their holders do not use it: LIVE becomes FREE. */
	KIT_SLOT_FENCED = 2,
	KIT_SLOT_CLAIMED = 3,
};

struct kit_slot {
	le64 state; /* enum kit_slot_state | epoch << KIT_SLOT_STATE_BITS */
	le64 name[KIT_SLOT_NAME_WORDS]; /* the connection, as its node has it */
};

STATIC_ASSERT(sizeof(struct kit_slot) == 56, "client slot");

static inline uint64_t kit_slot_word(enum kit_slot_state s, uint64_t epoch)
{
	return (uint64_t)s | epoch << KIT_SLOT_STATE_BITS;
}

static inline enum kit_slot_state kit_slot_state(const struct kit_slot *s)
{
	return (enum kit_slot_state)(le64_get(s->state) &
				     ((1u << KIT_SLOT_STATE_BITS) - 1));
}

static inline uint64_t kit_slot_epoch(const struct kit_slot *s)
{
	return le64_get(s->state) >> KIT_SLOT_STATE_BITS;
}

/* Whether the protocol has this change of a slot's state word. */
bool kit_slot_may_move(uint64_t from, uint64_t to);

/* One compare-and-swap; the offset is the slot's. */
struct kit_slot_cas {
	uint32_t offset;
	uint64_t compare;
	uint64_t swap;
};

enum kit_slot_verdict {
	KIT_SLOT_GO_ON, /* with the next compare-and-swap */
	KIT_SLOT_TAKEN, /* another client has it; this one never did */
	KIT_SLOT_OURS,
};

/* A claim of a slot in progress. */
struct kit_slot_claim {
	uint64_t epoch;
	/* 0: the first, 1 to 6: a word of the name, 7: the last. */
	unsigned step;
	uint64_t word[KIT_SLOT_NAME_WORDS];   /* of the name */
	uint64_t expect[KIT_SLOT_NAME_WORDS]; /* what is there */
};

/* Begins with a slot that was read and found free. -ENAMETOOLONG. */
int kit_slot_claim_begin(struct kit_slot_claim *c, const struct kit_slot *slot,
			 const char *name,
			 struct kit_slot_cas *first) MUST_CHECK;
/* `answer` is what the last compare-and-swap returned: the former value. */
enum kit_slot_verdict kit_slot_claim_next(struct kit_slot_claim *c,
					  uint64_t answer,
					  struct kit_slot_cas *next);

/* A name as it stands in a slot of that epoch. -ENAMETOOLONG. */
int kit_slot_name_put(const char *name, uint64_t epoch,
		      le64 words[KIT_SLOT_NAME_WORDS]) MUST_CHECK;
/* The name in a slot that is LIVE, or was. False: there is no name of its
 * epoch, which no correct client leaves. */
bool kit_slot_name_get(const struct kit_slot *slot,
		       char name[KIT_SLOT_NAME_MAX + 1]);

#endif
