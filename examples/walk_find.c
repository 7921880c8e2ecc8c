/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk in C: finds a key in the chain of a hash table and brings its value.
 *
 *	aquifer walk build walk_find.c
 *
 * makes walk_find.walk of it, which memory nodes execute, and says what it
 * costs. Compiled with any C compiler instead, find() is an ordinary function,
 * which a test can call.
 */
#include <aquifer/walk_prog.h>

enum {
	NAME_BYTES = 24,
	NO_NAME = 1, /* what it fails with */
};

/* As it lies in the region; `next` is the offset of another one there. */
struct entry {
	uint64_t hash;
	uint64_t next;
	char name[NAME_BYTES];
	uint64_t value;
};

/* What the caller gives, and what it gets. */
struct question {
	uint64_t hash;
	char name[NAME_BYTES];
	uint64_t value;
	uint32_t found;
	uint32_t visited;
};

AQ_WALK(find, const struct entry *e, struct question *q)
{
	if (!q->name[0])
		return AQ_WALK_FAIL(NO_NAME);
	q->visited++;
	if (e->hash == q->hash && memcmp(e->name, q->name, NAME_BYTES) == 0) {
		q->value = e->value;
		q->found = 1;
		return AQ_WALK_DONE;
	}
	return e->next; /* 0 ends the walk */
}
