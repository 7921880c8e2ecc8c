/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the clients of one process know together: of each key, a committed
 * version that was the newest when one of them saw it. Any client may start
 * from any committed version, because pointers carry a generation; so an old
 * place costs a detour, and never a wrong answer.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/lock.h"
#include "vlist_priv.h"

/* One key's. Key and place belong together: an append at another key's place
 * would be lost in that key's list. */
struct place {
	struct lock lock; /* covers the rest */
	uint64_t key1;	  /* key + 1; 0: nothing */
	uint64_t at;
	uint64_t entry;
	uint64_t head; /* as the entry was last seen */
};

struct vlist_places {
	uint32_t mask;
	struct place place[];
};

int vlist_places_create(uint32_t keys, struct vlist_places **out)
{
	struct vlist_places *p;

	keys = keys ? u32_min(keys, VLIST_CACHE_KEYS_MAX) : VLIST_CACHE_KEYS;
	keys = u32_pow2_ceil(keys);
	p = calloc(1, sizeof(*p) + (size_t)keys * sizeof(p->place[0]));
	if (!p)
		return error_set(-ENOMEM, "no memory for the keys' places");
	p->mask = keys - 1;
	for (uint32_t i = 0; i < keys; i++)
		lock_init(&p->place[i].lock);
	*out = p;
	return 0;
}

void vlist_places_destroy(struct vlist_places *p)
{
	free(p);
}

static struct place *take(struct vlist_client *c, uint64_t key1)
{
	struct vlist_places *p = c->config.places;
	struct place *l = &p->place[vlist_key_slot(key1 - 1) & p->mask];

	lock_take(&l->lock);
	return l;
}

uint64_t vlist_place_of(struct vlist_client *c, struct vlist_memo *m)
{
	struct place *l;

	if (!c->config.places)
		return m->place;
	l = take(c, m->key1);
	if (l->key1 == m->key1) {
		m->place = l->at;
		m->entry = m->entry ? m->entry : l->entry;
		m->head = l->head;
	}
	lock_drop(&l->lock);
	return m->place;
}

/* Another key's place is lost. */
static void begin(struct place *l, uint64_t key1, uint64_t at)
{
	l->key1 = key1;
	l->at = at;
	l->entry = l->head = 0;
}

void vlist_place_set(struct vlist_client *c, struct vlist_memo *m,
		     uint64_t place, bool is_newest)
{
	uint64_t before = m->place;
	struct place *l;

	m->place = place;
	m->since = c->stats.puts;
	if (!c->config.places)
		return;
	l = take(c, m->key1);
	/* A step along the list is news only to who stands where it began. */
	if (l->key1 != m->key1)
		begin(l, m->key1, place);
	else if (is_newest || l->at == before)
		l->at = place;
	l->entry = m->entry ? m->entry : l->entry;
	lock_drop(&l->lock);
}

void vlist_place_void(struct vlist_client *c, struct vlist_memo *m)
{
	uint64_t before = m->place;
	struct place *l;

	m->place = 0;
	if (!c->config.places)
		return;
	l = take(c, m->key1);
	if (l->key1 == m->key1 && l->at == before)
		l->at = 0;
	lock_drop(&l->lock);
}

bool vlist_place_head(struct vlist_client *c, struct vlist_memo *m,
		      uint64_t head)
{
	bool is_news = m->head != head;
	struct place *l;

	m->head = head;
	if (!c->config.places)
		return is_news;
	l = take(c, m->key1);
	if (l->key1 == m->key1)
		l->head = head;
	lock_drop(&l->lock);
	return is_news;
}
