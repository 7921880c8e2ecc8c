/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of etcd. It is another program on another machine: each member is
 * checked before it is used. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "etcd_text.h"

/* Codes of gRPC. */
enum {
	CODE_INVALID = 3,
	CODE_NOT_FOUND = 5,
	CODE_DENIED = 7,
	CODE_EXHAUSTED = 8,
	CODE_RANGE = 11,
	CODE_UNKNOWN_USER = 16,
};

/* ---- members ------------------------------------------------------------ */

static int digits(const char *text, uint64_t *out)
{
	char *end = NULL;

	if (!text || text[0] < '0' || text[0] > '9' || strlen(text) > 20)
		return -EPROTO;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno || *end ? -EPROTO : 0;
}

/* A number, which is a text there and missing where it is 0. */
static int number_of(const json_t *object, const char *name, uint64_t *out)
{
	const json_t *v = json_object_get(object, name);

	*out = 0;
	if (!v)
		return 0;
	if (json_is_integer(v) && json_integer_value(v) >= 0)
		*out = (uint64_t)json_integer_value(v);
	else if (digits(json_string_value(v), out))
		return error_set(-EPROTO, "etcd's '%s' is no number", name);
	return 0;
}

/* The bytes of a member, with a NUL behind them; free() ends them. */
static int bytes_of(const json_t *object, const char *name, size_t max,
		    char **out, size_t *out_bytes)
{
	const json_t *v = json_object_get(object, name);
	size_t coded = json_string_length(v);
	unsigned char *text;
	size_t n = 0;

	if (v && !json_is_string(v))
		return error_set(-EPROTO, "etcd's '%s' is no text", name);
	if (coded / 4 * 3 > max + 3)
		return error_set(-EPROTO, "etcd's '%s' is too long", name);
	text = malloc(coded / 4 * 3 + 4);
	if (!text)
		return error_set(-ENOMEM, "no memory for rows");
	if (coded && sodium_base642bin(text, coded / 4 * 3 + 3,
				       json_string_value(v), coded, NULL, &n,
				       NULL, sodium_base64_VARIANT_ORIGINAL)) {
		free(text);
		return error_set(-EPROTO, "etcd's '%s' is no base64", name);
	}
	text[n] = 0;
	*out = (char *)text;
	*out_bytes = n;
	return 0;
}

static const json_t *result_of(const json_t *answer)
{
	/* Of a stream that has ended after one answer. */
	const json_t *result = json_object_get(answer, "result");

	return result ? result : answer;
}

/* ---- whole answers ------------------------------------------------------ */

static int code_errno(uint64_t code, const char *words)
{
	switch (code) {
	case CODE_INVALID:
		return strstr(words, "too large") || strstr(words, "too many")
			       ? -EMSGSIZE
			       : -EINVAL;
	case CODE_NOT_FOUND:
		return -ENOENT;
	case CODE_DENIED:
	case CODE_UNKNOWN_USER:
		return -EACCES;
	case CODE_EXHAUSTED:
		return strstr(words, "space") ? -ENOSPC : -EAGAIN;
	case CODE_RANGE:
		return -EAGAIN;
	default:
		return -EHOSTDOWN;
	}
}

int etcd_answer_status(long status, const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");
	const json_t *words = json_object_get(
		json_is_object(error) ? error : answer, "message");
	char message[160] = "";
	uint64_t code = 0;

	if (status == 200 && json_is_object(answer) && !error)
		return 0;
	if (status == 200 && !json_is_object(answer))
		return error_set(-EHOSTDOWN, "the answer is no JSON object");
	if (number_of(answer, "code", &code))
		code = 0;
	for (size_t i = 0; json_string_value(words) && i + 1 < sizeof(message);
	     i++) {
		char c = json_string_value(words)[i];

		if (!c)
			break;
		message[i] = c > 0 && c < ' ' ? ' ' : c;
	}
	return error_set(code_errno(code, message), "etcd says: %s (%ld)",
			 message[0] ? message : "nothing", status);
}

int etcd_answer_grant(const json_t *answer, uint64_t *lease)
{
	int err = number_of(answer, "ID", lease);

	return err || *lease ? err : error_set(-EPROTO, "etcd gave no lease");
}

int etcd_answer_alive(const json_t *answer, uint64_t *ttl_s)
{
	return number_of(result_of(answer), "TTL", ttl_s);
}

int etcd_answer_revision(const json_t *answer, uint64_t *revision)
{
	int err = number_of(json_object_get(result_of(answer), "header"),
			    "revision", revision);

	return err || *revision
		       ? err
		       : error_set(-EPROTO, "etcd's answer has no revision");
}

static int kv_take(const json_t *row, etcd_kv_fn each, void *user,
		   char last[ETCD_KEY_MAX])
{
	struct etcd_kv kv = {0};
	size_t key_bytes = 0;
	char *key = NULL;
	int err = bytes_of(row, "key", ETCD_KEY_MAX - 1, &key, &key_bytes);

	if (!err)
		err = number_of(row, "create_revision", &kv.create);
	if (!err)
		err = number_of(row, "mod_revision", &kv.mod);
	if (!err)
		err = number_of(row, "lease", &kv.lease);
	if (!err && (!key_bytes || key_bytes >= ETCD_KEY_MAX ||
		     strlen(key) != key_bytes))
		err = error_set(-EPROTO, "etcd has a key that is no text");
	if (!err)
		err = bytes_of(row, "value", LEDGER_VALUE_MAX, &kv.value,
			       &kv.value_bytes);
	if (!err) {
		kv.key = key;
		(void)snprintf(last, ETCD_KEY_MAX, "%s", key);
		err = each(user, &kv);
	}
	free(key);
	free(kv.value);
	return err;
}

int etcd_answer_range(const json_t *answer, etcd_kv_fn each, void *user,
		      char last[ETCD_KEY_MAX], bool *more)
{
	const json_t *rows = json_object_get(answer, "kvs"), *row;
	const json_t *rest = json_object_get(answer, "more");
	int err = 0;
	size_t i;

	*more = json_is_true(rest);
	last[0] = 0;
	if ((rows && !json_is_array(rows)) || (rest && !json_is_boolean(rest)))
		return error_set(-EPROTO, "etcd's answer is no list of rows");
	json_array_foreach(rows, i, row)
	{
		char before[ETCD_KEY_MAX];

		memcpy(before, last, sizeof(before));
		err = kv_take(row, each, user, last);
		if (!err && strcmp(before, last) >= 0)
			err = error_set(-EPROTO, "etcd's rows are in no order");
		if (err)
			return err;
	}
	return *more && !last[0] ? error_set(-EPROTO, "etcd's list is empty, "
						      "and goes on")
				 : 0;
}

struct meta_of {
	const char *prefix;
	struct etcd_meta *meta;
};

static int take_meta(void *user, const struct etcd_kv *kv)
{
	const struct meta_of *m = user;

	return etcd_meta_take(m->meta, m->prefix, kv);
}

int etcd_answer_txn(const json_t *answer, const char *prefix,
		    struct etcd_txn *out)
{
	const json_t *rows = json_object_get(answer, "responses");
	const json_t *range =
		json_object_get(json_array_get(rows, 0), "response_range");
	struct meta_of m = {prefix, &out->meta};
	char last[ETCD_KEY_MAX];
	bool more;
	int err = etcd_answer_revision(answer, &out->revision);

	out->succeeded = json_is_true(json_object_get(answer, "succeeded"));
	out->meta = (struct etcd_meta){0};
	if (err || out->succeeded)
		return err;
	if (!range)
		return error_set(-EPROTO, "etcd's refusal does not say why");
	return etcd_answer_range(range, take_meta, &m, last, &more);
}

/* ---- what is in a key --------------------------------------------------- */

bool etcd_is_meta(const char *prefix, const char *key)
{
	size_t n = strlen(prefix);

	return strncmp(key, prefix, n) == 0 && key[n] == '.';
}

static int take_leader(struct etcd_meta *m, const struct etcd_kv *kv)
{
	char *blank = strchr(kv->value, ' ');

	if (!blank || strlen(blank + 1) >= sizeof(m->who) || !kv->create ||
	    !kv->mod)
		return error_set(-EBADMSG, "%.80s in etcd names nobody",
				 kv->key);
	*blank = 0;
	if (digits(kv->value, &m->lead_count))
		return error_set(-EBADMSG, "%.80s in etcd has no number",
				 kv->key);
	(void)snprintf(m->who, sizeof(m->who), "%s", blank + 1);
	m->lead_create = kv->create;
	m->lead_mod = kv->mod;
	m->lead_lease = kv->lease;
	return 0;
}

int etcd_meta_take(struct etcd_meta *m, const char *prefix,
		   const struct etcd_kv *kv)
{
	const char *name = kv->key + strlen(prefix);
	int err = 0;

	if (!etcd_is_meta(prefix, kv->key) ||
	    strlen(kv->value) != kv->value_bytes)
		return error_set(-EBADMSG,
				 "%.80s in etcd is not as it should "
				 "be",
				 kv->key);
	if (strcmp(name, ".lead") == 0) {
		return take_leader(m, kv);
	} else if (strcmp(name, ".schema") == 0) {
		err = digits(kv->value, &m->schema);
		if (!err && !m->schema)
			err = -EPROTO;
	} else if (strcmp(name, ".term") == 0) {
		err = digits(kv->value, &m->base);
		m->base_mod = kv->mod;
		if (m->base > INT64_MAX / 2)
			err = -EPROTO;
	}
	return err ? error_set(-EBADMSG, "%.80s in etcd is no number", kv->key)
		   : 0;
}

int etcd_row_take(const char *prefix, const struct etcd_kv *kv, char *kind,
		  const char **key)
{
	size_t n = strlen(prefix);
	const char *at = kv->key + n;
	const char *slash =
		strncmp(kv->key, prefix, n) == 0 ? strchr(at, '/') : NULL;
	struct ledger_change c = {kind, slash ? slash + 1 : "", kv->value};

	if (!slash || slash - at > LEDGER_KIND_MAX ||
	    strlen(kv->value) != kv->value_bytes)
		return error_set(-EBADMSG, "%.80s in etcd is no row", kv->key);
	(void)snprintf(kind, LEDGER_KIND_MAX + 1, "%.*s", (int)(slash - at),
		       at);
	if (ledger_change_check(&c))
		return error_prefix(-EBADMSG, "%.80s in etcd: ", kv->key);
	*key = c.key;
	return 0;
}
