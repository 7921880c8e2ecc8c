/* SPDX-License-Identifier: Apache-2.0 */
/* Tallies: how they stand in a counter file, and how they are found there. */
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "tally.";

static const char *const kind_names[TALLY_KIND_COUNT] = {
	[TALLY_REGION] = "region", [TALLY_KV] = "kv",
	[TALLY_INDEX] = "index",   [TALLY_REDIS] = "redis",
	[TALLY_NBD] = "nbd",	   [TALLY_RUN] = "run",
	[TALLY_PAGES] = "pages",   [TALLY_ASYNC] = "async",
	[TALLY_OTHER] = "other",
};

#define COUNT(index, word, words)                                       \
	[index] = {.name = word,                                        \
		   .help = words,                                       \
		   .kind = COUNTER_COUNT,                               \
		   .offset = (uint32_t)(offsetof(struct tally, count) + \
					(index) * sizeof(uint64_t))}
#define TEXT(index, member, words)       \
	[index] = {.name = #member,      \
		   .help = words,        \
		   .kind = COUNTER_TEXT, \
		   .offset = (uint32_t)offsetof(struct tally, member)}

enum {
	PART_KIND = TALLY_COUNT,
	PART_OBJECT,
	PART_TENANT,
	PART_LATENCY,
};
STATIC_ASSERT(PART_LATENCY + 1 == (int)TALLY_ENTRIES, "parts of a tally");

static const struct counter_part parts[TALLY_ENTRIES] = {
	COUNT(TALLY_READS, "reads", "reads done"),
	COUNT(TALLY_WRITES, "writes", "writes done"),
	COUNT(TALLY_ATOMICS, "atomics", "atomic operations done"),
	COUNT(TALLY_DELETES, "deletes", "deletes done"),
	COUNT(TALLY_SCANS, "scans", "scans done"),
	COUNT(TALLY_READ_BYTES, "read_bytes", "bytes read"),
	COUNT(TALLY_WRITE_BYTES, "write_bytes", "bytes written"),
	COUNT(TALLY_ERRORS, "errors", "operations that failed"),
	TEXT(PART_KIND, kind, "what kind of client counts here"),
	TEXT(PART_OBJECT, object, "the table, index, disk or run"),
	TEXT(PART_TENANT, tenant, "whose client it is"),
	[PART_LATENCY] = {.name = "op_ns",
			  .help = "time of an operation",
			  .kind = COUNTER_HIST,
			  .offset = offsetof(struct tally, latency)},
};

const char *tally_kind_name(enum tally_kind kind)
{
	return kind < TALLY_KIND_COUNT ? kind_names[kind] : "other";
}

const char *tally_count_name(enum tally_count what)
{
	ASSERT(what < TALLY_COUNT);
	return parts[what].name;
}

struct tally *tally_create(struct counter_file *file, unsigned number,
			   enum tally_kind kind, const char *object,
			   const char *tenant)
{
	char name[sizeof(prefix) + 10];
	struct tally *t;

	snprintf(name, sizeof(name), "%s%u", prefix, number);
	t = counter_file_bundle(file, name, parts, TALLY_ENTRIES, sizeof(*t));
	if (!t)
		return NULL;
	snprintf(t->object, sizeof(t->object), "%s", object);
	snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
	/* Last: without a kind a reader leaves it out. */
	snprintf(t->kind, sizeof(t->kind), "%s", tally_kind_name(kind));
	return t;
}

/* ---- readers ------------------------------------------------------------- */

/* The number and the part's name in "tally.NUMBER.NAME"; NULL: another. */
static const char *part_name(const char *name, unsigned *number)
{
	unsigned long n;
	char *end;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	name += sizeof(prefix) - 1;
	if (*name < '0' || *name > '9')
		return NULL;
	n = strtoul(name, &end, 10);
	if (*end != '.' || n > UINT32_MAX)
		return NULL;
	*number = (unsigned)n;
	return end + 1;
}

static enum tally_kind kind_of(const char *text)
{
	unsigned i;

	for (i = 0; i < TALLY_OTHER && strcmp(kind_names[i], text) != 0; i++)
		;
	return (enum tally_kind)i;
}

static void take_part(struct tally_view *t, const char *name,
		      const struct counter_view *v, bool *has_kind)
{
	unsigned i;

	for (i = 0; i < TALLY_ENTRIES; i++)
		if (strcmp(parts[i].name, name) == 0 &&
		    parts[i].kind == v->kind)
			break;
	if (i < TALLY_COUNT)
		t->count[i] = v->value;
	else if (i == PART_LATENCY)
		t->latency = v->hist;
	else if (i == PART_OBJECT)
		memcpy(t->object, v->text, sizeof(t->object));
	else if (i == PART_TENANT)
		memcpy(t->tenant, v->text, sizeof(t->tenant));
	else if (i == PART_KIND) {
		t->kind = kind_of(v->text);
		*has_kind = v->text[0] != 0;
	}
}

bool tally_next(const struct counter_snapshot *s, unsigned *cursor,
		struct tally_view *out)
{
	bool is_open = false, has_kind = false;
	struct counter_view v;
	unsigned at = *cursor, number;

	/* Its parts stand one after the other: another number is another
	 * tally, which is left for the next call. */
	while (counter_snapshot_next(s, &at, &v)) {
		const char *name = part_name(v.name, &number);

		if (is_open && (!name || number != out->number)) {
			if (has_kind)
				return true;
			is_open = false;
		}
		if (name && !is_open) {
			*out = (struct tally_view){.number = number};
			is_open = true;
			has_kind = false;
		}
		if (name)
			take_part(out, name, &v, &has_kind);
		*cursor = at;
	}
	return is_open && has_kind;
}
