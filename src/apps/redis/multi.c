/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of one client's transaction, and the keys that it watches. */
#include "multi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum {
	QUEUE_FIRST = 16,
};

static uint64_t queued_bytes(const struct queued *q)
{
	uint64_t bytes = sizeof(*q) + sizeof(q) + q->argc * sizeof(q->span[0]);

	for (uint32_t i = 0; i < q->argc; i++)
		bytes += q->span[i].len;
	return bytes;
}

static uint64_t watched_bytes(const struct watched *w)
{
	return sizeof(*w) + w->key_len + w->value_len;
}

void multi_discard(struct multi *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		m->bytes -= queued_bytes(m->command[i]);
		free(m->command[i]);
	}
	free(m->command);
	m->command = NULL;
	m->count = m->capacity = 0;
	m->is_on = m->is_aborted = false;
}

void multi_unwatch(struct multi *m)
{
	for (uint32_t i = 0; i < m->watch_count; i++) {
		m->bytes -= watched_bytes(&m->watch[i]);
		free(m->watch[i].key);
		free(m->watch[i].value);
	}
	free(m->watch);
	m->watch = NULL;
	m->watch_count = 0;
}

void multi_release(struct multi *m)
{
	multi_discard(m);
	multi_unwatch(m);
}

/* ---- the queue ------------------------------------------------------------
 */

static int make_room(struct multi *m)
{
	uint32_t more = m->capacity ? 2 * m->capacity : QUEUE_FIRST;
	struct queued **p;

	if (m->count < m->capacity)
		return 0;
	p = realloc(m->command, more * sizeof(*p));
	if (!p)
		return -ENOMEM;
	m->command = p;
	m->capacity = more;
	return 0;
}

int multi_queue(struct multi *m, const struct command *command, uint32_t argc,
		const struct resp_span *span, const char *buf,
		uint64_t bytes_max)
{
	uint64_t head = sizeof(struct queued) + argc * sizeof(span[0]);
	uint64_t total = head;
	struct queued *q;
	int err;

	for (uint32_t i = 0; i < argc; i++)
		total += span[i].len;
	if (m->count == MULTI_COMMANDS_MAX || m->bytes + total > bytes_max)
		return -E2BIG;
	err = make_room(m);
	if (err)
		return err;
	q = malloc(total);
	if (!q)
		return -ENOMEM;
	q->command = command;
	q->argc = argc;
	q->bytes = (char *)q + head;
	for (size_t i = 0, at = 0; i < argc; at += span[i++].len) {
		q->span[i] = (struct resp_span){.at = at, .len = span[i].len};
		memcpy(q->bytes + at, buf + span[i].at, span[i].len);
	}
	m->command[m->count++] = q;
	m->bytes += queued_bytes(q);
	return 0;
}

/* ---- watched keys ---------------------------------------------------------
 */

bool multi_is_watched(const struct multi *m, struct resp_str key)
{
	for (uint32_t i = 0; i < m->watch_count; i++)
		if (m->watch[i].key_len == key.len &&
		    memcmp(m->watch[i].key, key.p, key.len) == 0)
			return true;
	return false;
}

static char *copy_of(const void *bytes, size_t len)
{
	char *p = malloc(len + 1);

	if (p && len)
		memcpy(p, bytes, len);
	return p;
}

int multi_watch(struct multi *m, struct resp_str key,
		const struct aq_kv_change *now, uint64_t bytes_max)
{
	struct watched w = {.key_len = key.len,
			    .value_len = now->value ? now->value_len : 0,
			    .expire_at_ms = now->expire_at_ms};

	if (m->watch_count == MULTI_WATCH_MAX ||
	    m->bytes + watched_bytes(&w) > bytes_max)
		return -E2BIG;
	if (!m->watch)
		m->watch = calloc(MULTI_WATCH_MAX, sizeof(w));
	w.key = copy_of(key.p, key.len);
	if (now->value)
		w.value = copy_of(now->value, now->value_len);
	if (!m->watch || !w.key || (now->value && !w.value)) {
		free(w.key);
		free(w.value);
		return -ENOMEM;
	}
	m->watch[m->watch_count++] = w;
	m->bytes += watched_bytes(&w);
	return 0;
}

bool watched_is_same(const struct watched *w, const struct aq_kv_change *now)
{
	if (!w->value || !now->value)
		return !w->value && !now->value;
	return w->expire_at_ms == now->expire_at_ms &&
	       w->value_len == now->value_len &&
	       memcmp(w->value, now->value, w->value_len) == 0;
}

/* ---- all of its keys ------------------------------------------------------
 */

static int add_key(struct aq_kv_key *keys, uint32_t max, uint32_t *count,
		   const char *key, size_t key_len)
{
	if (key_len < 1 || key_len > AQ_KV_KEY_MAX)
		return 0;
	for (uint32_t i = 0; i < *count; i++)
		if (keys[i].key_len == key_len &&
		    memcmp(keys[i].key, key, key_len) == 0)
			return 0;
	if (*count == max)
		return -E2BIG;
	keys[(*count)++] = (struct aq_kv_key){key, key_len};
	return 0;
}

int multi_keys(const struct multi *m, struct aq_kv_key *keys, uint32_t max,
	       uint32_t *count)
{
	int err = 0;

	*count = 0;
	for (uint32_t i = 0; i < m->watch_count && !err; i++)
		err = add_key(keys, max, count, m->watch[i].key,
			      m->watch[i].key_len);
	for (uint32_t i = 0; i < m->count && !err; i++) {
		const struct queued *q = m->command[i];
		const struct command *cmd = q->command;
		uint32_t last = cmd->key_last < 0
					? q->argc - (uint32_t)-cmd->key_last
					: (uint32_t)cmd->key_last;

		if (!cmd->key_first)
			continue;
		for (uint32_t k = (uint32_t)cmd->key_first;
		     k <= last && k < q->argc && !err;
		     k += (uint32_t)cmd->key_step)
			err = add_key(keys, max, count,
				      q->bytes + q->span[k].at, q->span[k].len);
	}
	return err;
}
