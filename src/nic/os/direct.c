/* SPDX-License-Identifier: Apache-2.0 */
/* Maps what peers grant and works on it; granting is in grant.c. */
#include "direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cable.h"
#include "fault_guard.h"
#include "pages.h"
#include "reach.h"

enum direct_state {
	DIRECT_FREE = 0,
	DIRECT_ASKED,
	DIRECT_MAPPED,
	DIRECT_REFUSED,
	DIRECT_REACHED,
};

enum {
	CLOCK_EVERY = 256, /* lookups of a refused key per look at the clock */
};

/* ---- the table ---------------------------------------------------------- */

static uint32_t hash(uint32_t rkey, uint32_t qpn)
{
	return (rkey * 0x9e3779b1u) ^ (qpn * 0x85ebca6bu);
}

/* The entry of this key, or the free one where it would go. */
static struct direct_entry *probe(const struct direct_table *t, uint32_t rkey,
				  uint32_t qpn)
{
	uint32_t mask = t->capacity - 1;
	uint32_t h = hash(rkey, qpn);
	uint32_t i = (h ^ h >> 15) & mask;

	while (t->entries[i].state != DIRECT_FREE &&
	       (t->entries[i].rkey != rkey || t->entries[i].qpn != qpn))
		i = (i + 1) & mask;
	return &t->entries[i];
}

static int grow(struct direct_table *t)
{
	struct direct_table bigger = *t;

	bigger.capacity = t->capacity ? 2 * t->capacity : OS_DIRECT_CACHE;
	if (bigger.capacity > OS_DIRECT_CACHE_MAX)
		return -ENOSPC;
	bigger.entries = calloc(bigger.capacity, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->capacity; i++) {
		const struct direct_entry *e = &t->entries[i];

		if (e->state != DIRECT_FREE)
			*probe(&bigger, e->rkey, e->qpn) = *e;
	}
	free(t->entries);
	*t = bigger;
	return 0;
}

static struct direct_entry *entry_add(struct direct_table *t, uint32_t rkey,
				      uint32_t qpn)
{
	struct direct_entry *e;

	if (t->capacity < 2 * (t->count + 1) && grow(t))
		return NULL;
	e = probe(t, rkey, qpn);
	*e = (struct direct_entry){.rkey = rkey, .qpn = qpn};
	t->count++;
	return e;
}

/* ---- mappings ----------------------------------------------------------- */

static inline bool map_valid(const struct direct_map *m)
{
	/* GRANT-1, with grant.c: a mapping that was taken back is not used
	 * for anything that begins later. */
	return atomic_load_explicit(m->word, memory_order_acquire) ==
	       m->generation;
}

static void map_destroy(struct cable *c, struct direct_map *m)
{
	struct direct_table *t = &c->direct;
	struct os_host *h = c->path.host;

	if (h->direct_last == m)
		h->direct_last = NULL;
	for (uint32_t i = 0; i < t->capacity; i++) {
		struct direct_entry *e = &t->entries[i];

		if (e->state == DIRECT_MAPPED && e->map == m) {
			e->state = DIRECT_REFUSED;
			e->map = NULL;
			e->retry_ns = host_now(h) + OS_DIRECT_NO_NS;
		}
	}
	t->maps[m->index] = NULL;
	munmap(m->d.base, m->map_bytes);
	free(m);
}

void direct_table_release(struct cable *c)
{
	struct direct_table *t = &c->direct;

	for (uint32_t i = 0; i < t->capacity; i++)
		if (t->entries[i].state == DIRECT_REACHED)
			free(t->entries[i].reach);
	for (unsigned i = 0; t->maps && i < OS_DIRECT_WORDS; i++)
		if (t->maps[i])
			map_destroy(c, t->maps[i]);
	free(t->maps);
	free(t->entries);
	*t = (struct direct_table){0};
}

static void ask(struct cable *c, struct direct_entry *e, uint32_t local_qpn)
{
	struct cable_msg msg;

	cable_msg_init(&msg, CABLE_MAP_REQ);
	msg.map_req.owner_qpn = e->qpn;
	msg.map_req.user_qpn = local_qpn;
	msg.map_req.rkey = e->rkey;
	e->state = DIRECT_ASKED;
	/* An answer that does not come is a refusal, for a while. */
	e->retry_ns = host_now(c->path.host) + OS_DIRECT_NO_NS;
	e->lookups = 0;
	if (cable_msg_send(c->sock, &msg, NULL, 0))
		e->state = DIRECT_REFUSED;
}

/* Its owner has taken back all that it gave away, of which this is mostly still
 * to be had. */
static void reach_forget(struct cable *c, struct direct_entry *e)
{
	free(e->reach);
	e->reach = NULL;
	e->state = DIRECT_REFUSED;
	e->was_reached = true;
	e->retry_ns = host_now(c->path.host) + OS_REACH_AGAIN_NS;
}

HOT const struct env_direct *direct_find(struct cable *c, uint32_t local_qpn,
					 uint32_t remote_qpn, uint32_t rkey)
{
	struct direct_table *t = &c->direct;
	struct direct_entry *e = NULL;

	if (LIKELY(t->capacity != 0))
		e = probe(t, rkey, remote_qpn);
	if (LIKELY(e && e->state == DIRECT_MAPPED)) {
		if (LIKELY(map_valid(e->map))) {
			c->path.host->direct_last = e->map;
			return &e->map->d;
		}
		map_destroy(c, e->map);
		return NULL;
	}
	if (LIKELY(e && e->state == DIRECT_REACHED)) {
		if (LIKELY(reach_map_is_valid(e->reach)))
			return &e->reach->d;
		reach_forget(c, e);
		return NULL;
	}
	if (c->state != CABLE_UP)
		return NULL;
	if (!e || e->state == DIRECT_FREE) {
		e = entry_add(t, rkey, remote_qpn);
		if (e)
			ask(c, e, local_qpn);
		return NULL;
	}
	if (++e->lookups % (e->was_reached ? 1 : CLOCK_EVERY) == 0 &&
	    host_now(c->path.host) >= e->retry_ns)
		ask(c, e, local_qpn);
	return NULL;
}

static struct direct_map *map_make(struct cable *c,
				   const struct cable_map_rep *rep, int fd)
{
	bool writable = rep->access & IBV_ACCESS_REMOTE_WRITE;
	struct direct_map *m;
	struct stat st;

	/* The owner may lie about its own memory; it must not make us map
	 * less than we believe. What it truncates later is a fault. Only memory
	 * has seals: touching a file of any file system could make us wait. */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 ||
	    !S_ISREG(st.st_mode) || rep->length == 0 ||
	    (uint64_t)st.st_size < rep->length ||
	    rep->iova + rep->length < rep->iova)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->map_bytes = pages_round(rep->length);
	m->d.base = pages_map(fd, m->map_bytes, writable);
	if (!m->d.base) {
		free(m);
		return NULL;
	}
	m->d.iova = rep->iova;
	m->d.length = rep->length;
	m->d.access = rep->access;
	m->word = &c->words_peer[rep->word];
	m->generation = rep->generation;
	m->index = rep->word;
	return m;
}

/* The mapping of this reply: another connection may have it already. */
static struct direct_map *map_get(struct cable *c,
				  const struct cable_map_rep *rep, int fd)
{
	struct direct_table *t = &c->direct;
	struct direct_map *m;

	if (!t->maps) {
		t->maps = calloc(OS_DIRECT_WORDS, sizeof(struct direct_map *));
		if (!t->maps)
			return NULL;
	}
	m = t->maps[rep->word];
	if (m && m->generation == rep->generation)
		return m;
	if (m)
		map_destroy(c, m);
	m = map_make(c, rep, fd);
	t->maps[rep->word] = m;
	if (m)
		c->path.host->stats->direct_maps++;
	return m;
}

int direct_reply(struct cable *c, const struct cable_msg *msg,
		 struct cable_fds *fds)
{
	const struct cable_map_rep *rep = &msg->map_rep;
	struct direct_table *t = &c->direct;
	struct os_host *h = c->path.host;
	struct direct_entry *e;

	if (!t->capacity)
		return -EBADMSG;
	e = probe(t, rep->rkey, rep->owner_qpn);
	if (e->state != DIRECT_ASKED)
		return e->state == DIRECT_FREE ? -EBADMSG : 0;
	e->was_reached = false;
	if (rep->status == 0 && fds->count == 0 &&
	    rep->word == CABLE_MAP_REACH) {
		e->reach = reach_map_create(c, rep);
		if (e->reach) {
			e->state = DIRECT_REACHED;
			return 0;
		}
	}
	if (rep->status == 0 && fds->count == 1 &&
	    rep->word < OS_DIRECT_WORDS) {
		struct direct_map *m = map_get(c, rep, fds->fd[0]);

		if (m) {
			e->map = m;
			e->state = DIRECT_MAPPED;
			return 0;
		}
	}
	h->stats->direct_refusals++;
	e->state = DIRECT_REFUSED;
	e->retry_ns = host_now(h) + OS_DIRECT_NO_NS;
	return 0;
}

/* ---- operations --------------------------------------------------------- */

static inline bool covers(const struct direct_map *m, const uint8_t *far,
			  size_t len_bytes)
{
	return far >= m->d.base && len_bytes <= m->d.length &&
	       (size_t)(far - m->d.base) <= m->d.length - len_bytes;
}

COLD static struct direct_map *search(struct os_host *h, const uint8_t *far,
				      size_t len_bytes)
{
	for (struct cable *c = h->cables; c; c = c->next)
		for (unsigned i = 0; c->direct.maps && i < OS_DIRECT_WORDS; i++)
			if (c->direct.maps[i] &&
			    covers(c->direct.maps[i], far, len_bytes))
				return c->direct.maps[i];
	return NULL;
}

/* The valid mapping that holds these bytes, or NULL. */
static inline struct direct_map *lookup(struct os_host *h, const uint8_t *far,
					size_t len_bytes)
{
	struct direct_map *m = h->direct_last;

	if (UNLIKELY(!m || !covers(m, far, len_bytes)))
		m = search(h, far, len_bytes);
	return m && map_valid(m) ? m : NULL;
}

HOT int direct_copy(struct env *env, enum env_direct_op op, void *far,
		    void *near, size_t len_bytes)
{
	struct direct_map *m = lookup(host_of_env(env), far, len_bytes);
	struct fault_range r;
	int err;

	if (UNLIKELY(!m))
		return -EFAULT;
	r = (struct fault_range){m->d.base, m->map_bytes};
	if (op == ENV_DIRECT_READ)
		err = fault_guard_read(&r, far, near, len_bytes);
	else
		err = fault_guard_write(&r, far, near, len_bytes);
	if (err || map_valid(m))
		return err;
	/* Taken back meanwhile: what was read does not count. What was written
	 * may have been there in time. */
	return op == ENV_DIRECT_READ ? -EFAULT : -EINPROGRESS;
}

HOT int direct_atomic(struct env *env, const struct atomic_op *op, void *far,
		      uint64_t *original)
{
	struct direct_map *m = lookup(host_of_env(env), far, sizeof(uint64_t));
	struct fault_range r;
	int err;

	if (UNLIKELY(!m || ((uintptr_t)far & 7)))
		return -EFAULT;
	r = (struct fault_range){m->d.base, m->map_bytes};
	err = fault_guard_atomic(&r, op, far, original);
	return err || map_valid(m) ? err : -EINPROGRESS;
}
