/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All rows of a ledger as text, to move them to another one: lines of JSON. The
 * first says what it is, and how many rows follow, so a text that breaks off is
 * noticed:
 *
 *   {"aquifer": "ledger", "schema": 1, "term": 7, "rows": 2}
 *   {"kind": "node", "key": "m0", "value": {...}}
 *   ...
 */
#ifndef AQ_LEDGER_COPY_H
#define AQ_LEDGER_COPY_H

#include "ledger_rows.h"

enum {
	LEDGER_COPY_MAX = 1 << 30, /* bytes of such a text */
};

struct ledger_copy {
	uint64_t term; /* none of that ledger was larger */
	struct ledger_rows rows;
};

/* Reads a ledger; somebody may lead it meanwhile. */
int ledger_copy_read(struct ledger *l, struct ledger_copy *out) MUST_CHECK;
/*
 * Writes the rows into a ledger that has none; -EEXIST: it has, and nothing was
 * changed. Terms go on from the copy's. Where it breaks off the ledger is not
 * usable, and says so, until it is done again.
 */
int ledger_copy_write(struct ledger *l,
		      const struct ledger_copy *copy) MUST_CHECK;
void ledger_copy_free(struct ledger_copy *c);

/* NULL: no memory. free() ends it. */
char *ledger_copy_print(const struct ledger_copy *c, size_t *out_bytes);
/* -EBADMSG: it is no such text; -EPROTONOSUPPORT: of a newer schema. Nothing
 * has to be freed where it fails. */
int ledger_copy_parse(const char *text, size_t text_bytes,
		      struct ledger_copy *out) MUST_CHECK;

#endif
