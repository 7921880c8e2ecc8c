/* SPDX-License-Identifier: Apache-2.0 */
/* All rows of a ledger, read at once and kept in memory: who reads a store that
 * may not answer wants all of them or none. */
#ifndef AQ_LEDGER_ROWS_H
#define AQ_LEDGER_ROWS_H

#include "ledger.h"

struct ledger_rows {
	struct ledger_row {
		char *kind, *key, *value;
	} * row;
	size_t count;
	size_t room;
};

/* As ledger_read. Nothing has to be freed where it fails. */
int ledger_rows_read(struct ledger *l, struct ledger_rows *out) MUST_CHECK;
/* The same, also of a ledger that is not whole. */
int ledger_rows_read_raw(struct ledger *l, struct ledger_rows *out) MUST_CHECK;
/* A ledger_row_fn for a struct ledger_rows, which is {0} at first. -ENOMEM. */
int ledger_rows_add(void *rows, const char *kind, const char *key,
		    const char *value);
/* As ledger_read, from memory. */
int ledger_rows_each(const struct ledger_rows *rows, ledger_row_fn each,
		     void *user) MUST_CHECK;
void ledger_rows_free(struct ledger_rows *rows);

#endif
