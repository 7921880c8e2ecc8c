/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to etcd. */
#include "etcd_text.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---- numbers and bytes -------------------------------------------------- */

static json_t *number(uint64_t n)
{
	return json_sprintf("%llu", (unsigned long long)n);
}

static json_t *bytes(const char *text, size_t n)
{
	size_t room =
		sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_ORIGINAL);
	char *coded = malloc(room);
	json_t *out;

	if (!coded)
		return NULL;
	(void)sodium_bin2base64(coded, room, (const unsigned char *)text, n,
				sodium_base64_VARIANT_ORIGINAL);
	out = json_string(coded);
	free(coded);
	return out;
}

static json_t *word(const char *text)
{
	return bytes(text, strlen(text));
}

static json_t *leader(uint64_t count, const char *who)
{
	char text[LEDGER_WHO_MAX + 24];

	(void)snprintf(text, sizeof(text), "%llu %s", (unsigned long long)count,
		       who);
	return word(text);
}

static json_t *key_of(const char *prefix, const char *rest)
{
	char key[ETCD_KEY_MAX];

	(void)snprintf(key, sizeof(key), "%s%s", prefix, rest);
	return word(key);
}

/* ---- leases, history, rows ---------------------------------------------- */

json_t *etcd_ask_grant(unsigned ttl_s)
{
	return json_pack("{s:o}", "TTL", number(ttl_s));
}

json_t *etcd_ask_lease(uint64_t lease)
{
	return json_pack("{s:o}", "ID", number(lease));
}

json_t *etcd_ask_compact(uint64_t revision)
{
	return json_pack("{s:o}", "revision", number(revision));
}

/* The first key behind all that begin so. */
static json_t *end_of(const char *prefix)
{
	size_t n = strlen(prefix);
	char end[ETCD_KEY_MAX];

	ASSERT(n > 0 && n < sizeof(end));
	memcpy(end, prefix, n);
	end[n - 1]++;
	return bytes(end, n);
}

json_t *etcd_ask_rows(const char *prefix, const char *from, uint64_t revision)
{
	/* With its NUL a key is the first one behind itself. */
	json_t *first = from ? bytes(from, strlen(from) + 1) : word(prefix);

	return json_pack("{s:o, s:o, s:o, s:o}", "key", first, "range_end",
			 end_of(prefix), "limit", number(ETCD_PAGE_ROWS),
			 "revision", number(revision));
}

json_t *etcd_ask_meta(const char *prefix)
{
	return json_pack("{s:o, s:o}", "key", key_of(prefix, "."), "range_end",
			 key_of(prefix, "/"));
}

/* ---- transactions ------------------------------------------------------- */

static json_t *compare(json_t *key, const char *target, const char *field,
		       json_t *value)
{
	return json_pack("{s:o, s:s, s:s, s:o}", "key", key, "target", target,
			 "result", "EQUAL", field, value);
}

static json_t *put(json_t *key, json_t *value, uint64_t lease)
{
	return json_pack("{s:{s:o, s:o, s:o}}", "request_put", "key", key,
			 "value", value, "lease", number(lease));
}

static json_t *look(const char *prefix)
{
	return json_pack("[{s:o}]", "request_range",
			 json_pack("{s:o}", "key", key_of(prefix, ".lead")));
}

static json_t *txn(const char *prefix, json_t *compares, json_t *success)
{
	return json_pack("{s:o, s:o, s:o}", "compare", compares, "success",
			 success, "failure", look(prefix));
}

json_t *etcd_ask_lead(const char *prefix, const struct etcd_meta *seen,
		      const char *who, uint64_t lease)
{
	char schema[16];
	json_t *compares =
		json_pack("[o, o]",
			  compare(key_of(prefix, ".lead"), "CREATE",
				  "create_revision", number(0)),
			  compare(key_of(prefix, ".term"), "MOD",
				  "mod_revision", number(seen->base_mod)));
	json_t *success = json_pack(
		"[o]", put(key_of(prefix, ".lead"), leader(0, who), lease));

	(void)snprintf(schema, sizeof(schema), "%d", LEDGER_SCHEMA);
	if (seen->schema) {
		(void)json_array_append_new(
			compares, compare(key_of(prefix, ".schema"), "VALUE",
					  "value", word(schema)));
	} else {
		(void)json_array_append_new(
			compares, compare(key_of(prefix, ".schema"), "CREATE",
					  "create_revision", number(0)));
		(void)json_array_append_new(
			success,
			put(key_of(prefix, ".schema"), word(schema), 0));
	}
	return txn(prefix, compares, success);
}

json_t *etcd_ask_base(const char *prefix, uint64_t base)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)base);
	return txn(
		prefix,
		json_pack("[o]", compare(key_of(prefix, ".lead"), "CREATE",
					 "create_revision", number(0))),
		json_pack("[o]", put(key_of(prefix, ".term"), word(text), 0)));
}

/* etcd refuses a transaction that changes a key twice. */
static bool is_last(const struct ledger_change *change, unsigned at,
		    unsigned count)
{
	for (unsigned i = at + 1; i < count; i++)
		if (strcmp(change[i].kind, change[at].kind) == 0 &&
		    strcmp(change[i].key, change[at].key) == 0)
			return false;
	return true;
}

static json_t *operation(const char *prefix, const struct ledger_change *c)
{
	char rest[LEDGER_KIND_MAX + LEDGER_KEY_MAX + 2];
	json_t *key;

	(void)snprintf(rest, sizeof(rest), "%s/%s", c->kind, c->key);
	key = key_of(prefix, rest);
	return c->value ? put(key, word(c->value), 0)
			: json_pack("{s:{s:o}}", "request_delete_range", "key",
				    key);
}

json_t *etcd_ask_commit(const char *prefix, const struct etcd_term *term,
			const char *who, const struct ledger_change *change,
			unsigned count)
{
	json_t *compares =
		json_pack("[o, o]",
			  compare(key_of(prefix, ".lead"), "CREATE",
				  "create_revision", number(term->create)),
			  compare(key_of(prefix, ".lead"), "MOD",
				  "mod_revision", number(term->mod)));
	json_t *success = json_pack("[o]", put(key_of(prefix, ".lead"),
					       leader(term->count + 1, who),
					       term->lease));
	bool whole = true;

	for (unsigned i = 0; i < count; i++)
		if (is_last(change, i, count))
			whole &= json_array_append_new(
					 success,
					 operation(prefix, &change[i])) == 0;
	if (whole)
		return txn(prefix, compares, success);
	json_decref(compares);
	json_decref(success);
	return NULL;
}
