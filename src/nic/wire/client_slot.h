/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot that a client takes in a structure of far memory, and how it takes
 * it: the same for tables, stores and indexes. A slot begins with
 *
 *	le64 state	FREE, CLAIMED, LIVE or what the structure adds | epoch
 *<< 8 le64 name[6]	the client's connection, as the node calls it
 *
 * Others end a client by ending the connection that its slot names, so the
 * name must be that client's at any time at which it may do something. Three
 * steps, all of them compare-and-swap, because a client may be stopped between
 * any two of them for longer than others wait, and then goes on:
 *
 *	FREE(e) to CLAIMED(e + 1)	nobody else names the slot now
 *	the words of the name		from what is there, each with the epoch
 *	CLAIMED(e + 1) to LIVE(e + 1)	only now the client is one
 *
 * Who finds a slot CLAIMED for too long takes it back, by CLAIMED to FREE. If
 * its client goes on, its last step fails; and before that its name fails as
 * soon as a later client has named the slot, because a word is never replaced
 * by one of an older epoch. What it writes before, the later client finds, and
 * replaces. A word has eight bits of the epoch, so this holds for whoever is
 * late by fewer than 128 clients of the slot.
 */
#ifndef AQ_CLIENT_SLOT_H
#define AQ_CLIENT_SLOT_H

#include "base/base.h"
#include "base/bytes.h"

enum {
	SLOT_NAME_AT = 8, /* in a slot */
	SLOT_NAME_WORDS = 6,
	SLOT_NAME_BYTES = 8 * SLOT_NAME_WORDS,
	SLOT_WORD_CHARS = 7, /* of a word; its last byte has the epoch */
	SLOT_NAME_MAX = SLOT_WORD_CHARS * SLOT_NAME_WORDS, /* with the NUL */
};

/* In the lowest byte of the state; a structure may have others. */
enum client_slot_state {
	CLIENT_SLOT_FREE = 0,
	CLIENT_SLOT_LIVE = 1,
	CLIENT_SLOT_CLAIMED = 3,
};

/* One compare-and-swap; the offset is the slot's. */
struct slot_cas {
	uint32_t offset;
	uint64_t compare;
	uint64_t swap;
};

enum slot_verdict {
	SLOT_GO_ON, /* with the next compare-and-swap */
	SLOT_TAKEN, /* somebody else has it; this client never had it */
	SLOT_OURS,
};

/* A client on its way to a slot. */
struct slot_claim {
	uint64_t epoch;
	unsigned step; /* 0: the first, 1 to 6: a word of the name, 7: the last
			*/
	uint64_t word[SLOT_NAME_WORDS];	  /* of the name */
	uint64_t expect[SLOT_NAME_WORDS]; /* what is there */
};

/* Begins with a slot that was read and found free. -ENAMETOOLONG. */
int slot_claim_begin(struct slot_claim *c, const void *slot, const char *name,
		     struct slot_cas *first) MUST_CHECK;
/* What the last one answered: the word before. */
enum slot_verdict slot_claim_next(struct slot_claim *c, uint64_t answer,
				  struct slot_cas *next);

/* A name as it stands in a slot of that epoch. -ENAMETOOLONG. */
int slot_name_put(const char *name, uint64_t epoch,
		  le64 words[SLOT_NAME_WORDS]) MUST_CHECK;
/* The name in a slot that is LIVE, or was. False: there is none of its epoch,
 * which no client has done. */
bool slot_name_get(const void *slot, char name[SLOT_NAME_MAX + 1]);

#endif
