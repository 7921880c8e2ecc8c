/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory, in the order in which they came. */
#include "ledger_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void row_free(struct ledger_row *r)
{
	free(r->kind);
	free(r->key);
	free(r->value);
}

int ledger_rows_add(void *ctx, const char *kind, const char *key,
		    const char *value)
{
	struct ledger_rows *rows = ctx;
	struct ledger_row r = {strdup(kind), strdup(key), strdup(value)};

	if (rows->count == rows->room) {
		size_t room = 2 * rows->room + 16;
		struct ledger_row *more =
			realloc(rows->row, room * sizeof(*more));

		if (more) {
			rows->row = more;
			rows->room = room;
		}
	}
	if (!r.kind || !r.key || !r.value || rows->count == rows->room) {
		row_free(&r);
		return error_set(-ENOMEM, "no memory for rows");
	}
	rows->row[rows->count++] = r;
	return 0;
}

int ledger_rows_read(struct ledger *l, struct ledger_rows *out)
{
	int err;

	*out = (struct ledger_rows){0};
	err = ledger_read(l, ledger_rows_add, out);
	if (err)
		ledger_rows_free(out);
	return err;
}

int ledger_rows_read_raw(struct ledger *l, struct ledger_rows *out)
{
	int err;

	*out = (struct ledger_rows){0};
	err = l->ops->read(l, ledger_rows_add, out);
	if (err)
		ledger_rows_free(out);
	return err;
}

int ledger_rows_each(const struct ledger_rows *rows, ledger_row_fn each,
		     void *user)
{
	int err = 0;

	for (size_t i = 0; i < rows->count && !err; i++)
		err = each(user, rows->row[i].kind, rows->row[i].key,
			   rows->row[i].value);
	return err;
}

void ledger_rows_free(struct ledger_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		row_free(&rows->row[i]);
	free(rows->row);
	*rows = (struct ledger_rows){0};
}
