/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a transaction while it runs, under their locks: what each command
 * leaves is what the next one sees. No request leaves from here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store.h"

int stage_init(struct stage *s, const struct aq_kv_key *keys, uint32_t count)
{
	*s = (struct stage){.keys = keys, .count = count};
	s->key = calloc(u32_max(count, 1), sizeof(s->key[0]));
	return s->key ? 0 : error_set(-ENOMEM, "no memory for a transaction");
}

static void forget(struct stage *s)
{
	for (uint32_t i = 0; s->key && i < s->count; i++) {
		free(s->key[i].made);
		s->key[i] = (struct stage_key){0};
	}
	s->bytes = 0;
}

void stage_release(struct stage *s)
{
	forget(s);
	free(s->key);
	s->key = NULL;
}

void stage_begin(struct stage *s, const struct aq_kv_change *changes)
{
	forget(s);
	for (uint32_t i = 0; i < s->count; i++) {
		struct stage_key *k = &s->key[i];

		k->is_there = changes[i].value != NULL;
		k->value = changes[i].value;
		k->len = changes[i].value_len;
		k->expire_at_ms = changes[i].expire_at_ms;
	}
}

void stage_end(struct stage *s, struct aq_kv_change *changes)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct stage_key *k = &s->key[i];
		struct aq_kv_change *ch = &changes[i];

		if (!k->is_changed || (!k->is_there && !ch->value)) {
			ch->verdict = AQ_KV_KEEP;
			continue;
		}
		ch->verdict = k->is_there ? AQ_KV_STORE : AQ_KV_DELETE;
		ch->new_value = k->value;
		ch->new_value_len = k->len;
		ch->expire_at_ms = k->expire_at_ms;
	}
}

static struct stage_key *find(struct stage *s, struct resp_str key)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->keys[i].key_len == key.len &&
		    memcmp(s->keys[i].key, key.p, key.len) == 0)
			return &s->key[i];
	return NULL;
}

static void drop(struct stage *s, struct stage_key *k)
{
	if (k->made)
		s->bytes -= k->len;
	free(k->made);
	*k = (struct stage_key){.is_changed = true};
}

static int store(struct stage *s, struct stage_key *k,
		 const struct aq_kv_change *ch)
{
	size_t len = ch->new_value_len;
	char *made;

	if (len > AQ_KV_VALUE_MAX || s->bytes + len > STAGE_BYTES_MAX)
		return error_set(-ENOMEM, "the values of a transaction have "
					  "at most 128 MiB");
	made = malloc(len + 1);
	if (!made)
		return error_set(-ENOMEM, "no memory for a transaction");
	if (len)
		memcpy(made, ch->new_value, len);
	drop(s, k); /* not before: the new value may be the old one */
	k->made = made;
	k->value = made;
	k->len = len;
	k->expire_at_ms = ch->expire_at_ms;
	k->is_there = true;
	s->bytes += len;
	return 0;
}

int stage_modify(struct stage *s, struct resp_str key, aq_kv_change_fn fn,
		 void *user)
{
	struct stage_key *k = find(s, key);
	struct aq_kv_change ch = {.verdict = AQ_KV_KEEP};
	int err;

	if (!k)
		return error_set(-EINVAL, "a key is not of the transaction");
	if (k->is_there && k->expire_at_ms &&
	    k->expire_at_ms <= clock_real_ms())
		drop(s, k);
	if (k->is_there) {
		ch.value = k->value;
		ch.value_len = k->len;
		ch.expire_at_ms = k->expire_at_ms;
	}
	err = fn(&ch, user);
	if (err || ch.verdict == AQ_KV_KEEP)
		return err;
	if (ch.verdict == AQ_KV_STORE)
		return store(s, k, &ch);
	drop(s, k);
	return 0;
}
