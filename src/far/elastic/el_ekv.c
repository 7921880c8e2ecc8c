/* SPDX-License-Identifier: Apache-2.0 */
/* Key-value stores: operations on one key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "el_ekv_priv.h"

/* ---- opening ------------------------------------------------------------- */

int aq_ekv_open(struct aq_rack *rack, const char *path,
		const struct aq_elastic_options *options, struct aq_ekv **out)
{
	struct aq_ekv *kv = calloc(1, sizeof(*kv));
	int err;

	error_clear();
	if (!kv)
		return error_set(-ENOMEM, "no memory for a store");
	err = el_open(&kv->object, rack, path, BLOCK_EKV, options);
	if (err) {
		aq_ekv_close(kv);
		return err;
	}
	*out = kv;
	return 0;
}

void aq_ekv_close(struct aq_ekv *kv)
{
	if (!kv)
		return;
	el_close(&kv->object);
	free(kv->look);
	free(kv->window);
	free(kv);
}

size_t aq_ekv_key_max(const struct aq_ekv *kv)
{
	return block_kv_key_max(kv->object.block_bytes);
}

uint64_t aq_ekv_value_max(const struct aq_ekv *kv, size_t key_bytes)
{
	return block_kv_value_max(kv->object.block_bytes, key_bytes);
}

/* ---- one key ------------------------------------------------------------- */

int el_kv_check(struct aq_ekv *kv, struct el_kv_ask *ask)
{
	const char *path = kv->object.path;

	if (!ask->key_bytes)
		return error_set(-EINVAL, "a key of %s has at least one byte",
				 path);
	if (ask->key_bytes > aq_ekv_key_max(kv))
		return error_set(-EMSGSIZE, "a key of %s has at most %zu bytes",
				 path, aq_ekv_key_max(kv));
	if (ask->value_bytes > aq_ekv_value_max(kv, ask->key_bytes))
		return error_set(
			-EMSGSIZE,
			"a value of %s has at most %llu bytes with a key of "
			"%zu",
			path,
			(unsigned long long)aq_ekv_value_max(kv,
							     ask->key_bytes),
			ask->key_bytes);
	ask->slot = block_kv_slot(block_kv_hash(ask->key, ask->key_bytes));
	return 0;
}

static int prepare(struct aq_ekv *kv, struct el_kv_ask *ask)
{
	error_clear();
	kv->acked = kv->object.sequence;
	return el_kv_check(kv, ask);
}

int el_kv_error(const struct aq_ekv *kv, const struct el_kv_ask *ask,
		enum block_status status)
{
	const char *path = kv->object.path;

	if (status == BLOCK_VERSION && ask->version == AQ_EKV_ABSENT)
		return error_set(-EEXIST, "%s has the key already", path);
	if (status == BLOCK_TOO_LONG)
		return error_set(-EMSGSIZE, "a value of %s is too long", path);
	return el_error(&kv->object, status);
}

void el_kv_look_after(struct aq_ekv *kv, uint32_t slot, uint32_t use,
		      uint64_t deadline_ns)
{
	bool is_high = use >= EL_EKV_HIGH;

	if ((!is_high && (use >= EL_EKV_LOW || kv->look_count < 2)) ||
	    el_now_ns() < kv->rest_ns)
		return;
	for (unsigned i = 0; i < kv->look_count; i++) {
		uint64_t number = kv->look[i].number;

		if (slot < kv->look[i].lo || slot >= kv->look[i].hi)
			continue;
		if ((is_high ? el_kv_split(kv, number, deadline_ns)
			     : el_kv_merge(kv, number, deadline_ns)))
			error_clear();
		break;
	}
	kv->rest_ns = el_now_ns() + EL_EKV_REST_MS * 1000000ull;
}

static int change(struct aq_ekv *kv, struct el_kv_ask *ask, uint64_t *answer)
{
	uint64_t deadline_ns = el_deadline_ns(&kv->object);
	struct block_result r;
	int err = prepare(kv, ask);

	if (err)
		return err;
	ask->sequence = ++kv->object.sequence;
	err = el_kv_ask(kv, ask, &r, deadline_ns);
	if (err)
		return err;
	kv->acked = kv->object.sequence;
	if (r.status != BLOCK_OK)
		return el_kv_error(kv, ask, r.status);
	if (answer)
		*answer = r.value;
	/* What answers a repetition does not say how full the block is. */
	if (r.length || ask->opcode == BLOCK_KV_DELETE)
		el_kv_look_after(kv, ask->slot, r.length, deadline_ns);
	return 0;
}

int aq_ekv_get(struct aq_ekv *kv, const void *key, size_t key_bytes,
	       void *value, size_t room_bytes, size_t *len_bytes,
	       uint64_t *version)
{
	uint8_t none;
	struct el_kv_ask ask = {
		.opcode = BLOCK_KV_GET,
		.key = key,
		.key_bytes = key_bytes,
		.out = value ? value : &none,
		.room_bytes = room_bytes,
	};
	struct block_result r;
	int err = prepare(kv, &ask);

	if (!err)
		err = el_kv_ask(kv, &ask, &r, el_deadline_ns(&kv->object));
	if (err)
		return err;
	if (r.status == BLOCK_OK && r.length > room_bytes)
		r.status = BLOCK_TOO_LONG;
	if (r.status == BLOCK_OK || r.status == BLOCK_TOO_LONG)
		*len_bytes = r.length;
	if (r.status == BLOCK_OK && version)
		*version = r.value;
	if (r.status == BLOCK_TOO_LONG)
		return error_set(-EMSGSIZE, "the value has %u bytes", r.length);
	return r.status == BLOCK_OK ? 0 : el_kv_error(kv, &ask, r.status);
}

int aq_ekv_put(struct aq_ekv *kv, const void *key, size_t key_bytes,
	       const void *value, size_t value_bytes, uint64_t expect,
	       uint64_t *version)
{
	struct el_kv_ask ask = {.opcode = BLOCK_KV_PUT,
				.key = key,
				.key_bytes = key_bytes,
				.value = value,
				.value_bytes = value_bytes,
				.version = expect};

	return change(kv, &ask, version);
}

int aq_ekv_delete(struct aq_ekv *kv, const void *key, size_t key_bytes,
		  uint64_t expect)
{
	struct el_kv_ask ask = {.opcode = BLOCK_KV_DELETE,
				.key = key,
				.key_bytes = key_bytes,
				.version = expect};

	return change(kv, &ask, NULL);
}

int aq_ekv_add(struct aq_ekv *kv, const void *key, size_t key_bytes,
	       enum aq_ekv_how how, int64_t operand, int64_t *result)
{
	le64 word = le64_put((uint64_t)operand);
	struct el_kv_ask ask = {.opcode = BLOCK_KV_ADD,
				.key = key,
				.key_bytes = key_bytes,
				.value = &word,
				.value_bytes = sizeof(word),
				.how = (uint64_t)how};
	uint64_t answer = 0;
	int err;

	if (how > AQ_EKV_MAX)
		return error_set(-EINVAL, "there is no such operation");
	err = change(kv, &ask, &answer);
	if (!err && result)
		*result = (int64_t)answer;
	return err;
}

int aq_ekv_append(struct aq_ekv *kv, const void *key, size_t key_bytes,
		  const void *data, size_t len_bytes, uint64_t *total_bytes)
{
	struct el_kv_ask ask = {.opcode = BLOCK_KV_ADD,
				.key = key,
				.key_bytes = key_bytes,
				.value = data,
				.value_bytes = len_bytes,
				.how = BLOCK_KV_APPEND};

	return change(kv, &ask, total_bytes);
}

/* ---- all of them --------------------------------------------------------- */

int aq_ekv_stat(struct aq_ekv *kv, struct aq_ekv_stat *out)
{
	int err;

	error_clear();
	*out = (struct aq_ekv_stat){0};
	kv->acked = kv->object.sequence;
	err = el_kv_look_all(kv, el_deadline_ns(&kv->object));
	if (err)
		return err;
	out->blocks = kv->object.block_count;
	for (unsigned i = 0; i < kv->look_count; i++) {
		out->keys += kv->look[i].items;
		out->used_bytes += kv->look[i].used;
	}
	return 0;
}
