/* SPDX-License-Identifier: Apache-2.0 */
/* From a ledger to a text and back. */
#include "ledger_copy.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void ledger_copy_free(struct ledger_copy *c)
{
	ledger_rows_free(&c->rows);
}

int ledger_copy_read(struct ledger *l, struct ledger_copy *out)
{
	int err = ledger_rows_read(l, &out->rows);

	if (err)
		return err;
	err = ledger_term(l, &out->term);
	if (err)
		ledger_copy_free(out);
	return err;
}

/* ---- writing ------------------------------------------------------------ */

/* A transaction has so many rows; with the mark that it is not whole. */
static int commit(struct ledger *l, uint64_t term,
		  const struct ledger_change *rows, unsigned count,
		  bool is_last)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];

	memcpy(change, rows, count * sizeof(*rows));
	change[count] = (struct ledger_change){
		LEDGER_HALF_KIND, LEDGER_HALF_KEY, is_last ? NULL : "{}"};
	return ledger_commit(l, term, change, count + 1);
}

static int commit_all(struct ledger *l, uint64_t term,
		      const struct ledger_rows *rows, bool is_removal)
{
	struct ledger_change change[LEDGER_CHANGES_MAX - 1];
	size_t done = 0, bytes = 0;
	unsigned count = 0;
	int err = 0;

	for (size_t i = 0; i < rows->count && !err; i++) {
		const struct ledger_row *r = &rows->row[i];

		if (strcmp(r->kind, LEDGER_HALF_KIND) == 0) {
			done++;
			continue;
		}
		change[count++] = (struct ledger_change){
			r->kind, r->key, is_removal ? NULL : r->value};
		bytes += is_removal ? 0 : strlen(r->value);
		if (count < ARRAY_LEN(change) && bytes < LEDGER_COMMIT_BYTES)
			continue;
		err = commit(l, term, change, count, false);
		done += count;
		bytes = count = 0;
	}
	ASSERT(err || done + count == rows->count);
	/* What is removed makes room for what is loaded then. */
	return err ? err : commit(l, term, change, count, !is_removal);
}

static bool is_half(const struct ledger_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->row[i].kind, LEDGER_HALF_KIND) == 0)
			return true;
	return false;
}

int ledger_copy_write(struct ledger *l, const struct ledger_copy *copy)
{
	struct ledger_rows old;
	uint64_t term = 0;
	int err = ledger_raise(l, copy->term);

	if (!err)
		err = ledger_lead(l, "load", &term);
	if (!err)
		/* With the mark, which ledger_read does not show. */
		err = ledger_rows_read_raw(l, &old);
	if (err)
		return err;
	if (old.count && !is_half(&old))
		err = error_set(-EEXIST,
				"it has %zu rows already; load into a new one",
				old.count);
	else if (old.count)
		err = commit_all(l, term, &old, true);
	ledger_rows_free(&old);
	return err ? err : commit_all(l, term, &copy->rows, false);
}

/* ---- text --------------------------------------------------------------- */

static int print_head(FILE *f, const struct ledger_copy *c)
{
	return fprintf(f,
		       "{\"aquifer\": \"ledger\", \"schema\": %d, \"term\": "
		       "%llu, \"rows\": %zu}\n",
		       LEDGER_SCHEMA, (unsigned long long)c->term,
		       c->rows.count) < 0;
}

static int print_row(FILE *f, const struct ledger_row *r)
{
	json_t *value = json_loads(r->value, JSON_DECODE_ANY, NULL);
	json_t *tree = value ? json_pack("{s:s, s:s, s:o}", "kind", r->kind,
					 "key", r->key, "value", value)
			     : NULL;
	int err = !tree || json_dumpf(tree, f, JSON_COMPACT) ||
		  fputc('\n', f) == EOF;

	json_decref(tree);
	return err;
}

char *ledger_copy_print(const struct ledger_copy *c, size_t *out_bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, out_bytes);
	int err;

	if (!f)
		return NULL;
	err = print_head(f, c);
	for (size_t i = 0; i < c->rows.count && !err; i++)
		err = print_row(f, &c->rows.row[i]);
	if (fclose(f) == 0 && !err)
		return text;
	free(text);
	return NULL;
}

static int number_of(const json_t *head, const char *name, uint64_t *out)
{
	const json_t *v = json_object_get(head, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return error_set(-EBADMSG, "its first line has no \"%s\"",
				 name);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

static int parse_head(const json_t *head, struct ledger_copy *c, uint64_t *rows)
{
	const char *what = json_string_value(json_object_get(head, "aquifer"));
	uint64_t schema = 0;
	int err;

	if (!what || strcmp(what, "ledger") != 0)
		return error_set(-EBADMSG, "it is no dump of a controller");
	err = number_of(head, "schema", &schema);
	if (!err && schema != LEDGER_SCHEMA)
		err = error_set(-EPROTONOSUPPORT,
				"it has schema %llu, this program knows %d; "
				"use the release that wrote it",
				(unsigned long long)schema, LEDGER_SCHEMA);
	if (!err)
		err = number_of(head, "term", &c->term);
	if (!err && c->term > INT64_MAX / 2)
		err = error_set(-EBADMSG, "its term is too large");
	return err ? err : number_of(head, "rows", rows);
}

static int parse_row(const json_t *row, struct ledger_copy *c)
{
	const char *kind = json_string_value(json_object_get(row, "kind"));
	const char *key = json_string_value(json_object_get(row, "key"));
	const json_t *value = json_object_get(row, "value");
	const struct ledger_row *last =
		c->rows.count ? &c->rows.row[c->rows.count - 1] : NULL;
	char *text;
	int err;

	if (!kind || !key || !json_is_object(value))
		return error_set(-EBADMSG, "it has no kind, key and value");
	text = json_dumps(value, JSON_COMPACT);
	if (!text)
		return error_set(-ENOMEM, "no memory for rows");
	err = ledger_change_check(&(struct ledger_change){kind, key, text});
	if (err)
		err = -EBADMSG;
	if (!err && (strcmp(kind, LEDGER_HALF_KIND) == 0 ||
		     (last && (strcmp(last->kind, kind) > 0 ||
			       (strcmp(last->kind, kind) == 0 &&
				strcmp(last->key, key) >= 0)))))
		err = error_set(-EBADMSG, "row %.16s %.70s is not in its place",
				kind, key);
	if (!err)
		err = ledger_rows_add(&c->rows, kind, key, text);
	free(text);
	return err;
}

static int parse_line(const char *line, size_t len, struct ledger_copy *c,
		      uint64_t number, uint64_t *rows)
{
	json_t *tree = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	int err;

	if (!json_is_object(tree))
		err = error_set(-EBADMSG, "it is no JSON object");
	else
		err = number == 1 ? parse_head(tree, c, rows)
				  : parse_row(tree, c);
	json_decref(tree);
	return err && err != -EPROTONOSUPPORT
		       ? error_prefix(err,
				      "line %llu: ", (unsigned long long)number)
		       : err;
}

int ledger_copy_parse(const char *text, size_t text_bytes,
		      struct ledger_copy *out)
{
	const char *end = text + text_bytes;
	uint64_t number = 0, rows = 0;
	int err = 0;

	*out = (struct ledger_copy){0};
	while (text < end && !err) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (!stop)
			stop = end;
		err = parse_line(text, (size_t)(stop - text), out, ++number,
				 &rows);
		text = stop + 1;
	}
	if (!err && (!number || out->rows.count != rows))
		err = error_set(-EBADMSG,
				"it has %zu rows and should have %llu",
				out->rows.count, (unsigned long long)rows);
	if (err)
		ledger_copy_free(out);
	return err;
}
