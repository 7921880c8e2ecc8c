/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents: each client takes them from chunks of its own, so that nobody waits
 * for anybody. Others give them back by clearing a byte of the chunk's map,
 * which the owner looks at when it has run out (lazy collection). What is too
 * large for a chunk takes several whole ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "kv_priv.h"

enum {
	CLASS_PREPARING = 254, /* claimed, its map is not cleared yet */
	COLLECT_SHARE = 8,     /* less than 1/8 free: another chunk, too */
};

uint32_t kv_class_of(const struct kv_geometry *g, uint64_t size_bytes)
{
	uint32_t class = KV_CLASS_SHIFT_MIN;

	while ((1ull << class) < size_bytes)
		class ++;
	return 1ull << class > g->chunk_bytes / KV_RUN_OF ? 0 : class;
}

uint64_t kv_run_of(const struct kv_geometry *g, uint64_t size_bytes)
{
	return (size_bytes + g->chunk_bytes - 1) / g->chunk_bytes;
}

static uint64_t word_at(const struct kv_geometry *g, uint64_t chunk)
{
	return g->chunk_word_offset + 8 * chunk;
}

static uint64_t chunk_of(const struct kv_geometry *g, uint64_t offset)
{
	return (offset - g->chunk_offset) / g->chunk_bytes;
}

uint64_t kv_map_at(const struct kv_geometry *g, uint64_t offset,
		   uint64_t size_bytes)
{
	uint32_t class = kv_class_of(g, size_bytes);
	uint64_t chunk = chunk_of(g, offset);

	return kv_chunk_at(g, chunk) +
	       ((offset - kv_extent_at(g, chunk, class, 0)) >> class);
}

/* ---- chunks ------------------------------------------------------------- */

static void keep_taken(struct kv_replica *c, struct kv_chunk *k,
		       const struct kv_new *n)
{
	uint64_t first = kv_extent_at(&c->g, k->index, k->class, 0);
	uint64_t i = (n->offset - first) >> k->class;

	if (!n->is_set || kv_class_of(&c->g, n->size_bytes) != k->class ||
	    chunk_of(&c->g, n->offset) != k->index || k->used[i])
		return;
	k->used[i] = 1;
	k->free--;
}

/* What the map says now, and what a unit has taken that is not in it yet. */
static int read_map(struct kv_replica *c, struct kv_chunk *k)
{
	const struct kv_unit *u = c->taking;
	uint32_t i, before = k->free;
	int err = kit_read_now(&c->kit.main, kv_chunk_at(&c->g, k->index),
			       c->kit.stage, k->count);

	if (err)
		return err;
	k->free = 0;
	for (i = 0; i < k->count; i++) {
		k->used[i] = c->kit.stage[i] != 0;
		k->free += !k->used[i];
	}
	for (i = 0; u && i < u->count; i++)
		keep_taken(c, k, &u->key[i].fresh);
	if (u)
		keep_taken(c, k, &u->memory);
	if (k->free > before)
		c->stats.extents_collected += k->free - before;
	k->hint = 0;
	return 0;
}

static int add_chunk(struct kv_replica *c, uint64_t index, uint32_t class,
		     struct kv_chunk **out)
{
	uint32_t count = kv_chunk_extents(&c->g, class);
	struct kv_chunk *k;

	int err = kit_grow(&c->chunk, &c->chunk_room, c->chunk_count + 1,
			   sizeof(*k));

	if (err)
		return err;
	k = &c->chunk[c->chunk_count];
	*k = (struct kv_chunk){.index = index,
			       .class = class,
			       .count = count,
			       .free = count,
			       .used = calloc(count, 1)};
	if (!k->used)
		return error_set(-ENOMEM, "no memory for a client");
	c->chunk_count++;
	*out = k;
	return 0;
}

/* Makes a free chunk ours. -EAGAIN: somebody else was faster. */
static int claim(struct kv_replica *c, uint64_t index, uint32_t class,
		 struct kv_chunk **out)
{
	uint64_t prep = kv_chunk_word(c->kit.slot + 1, CLASS_PREPARING, 0);
	uint64_t ours = kv_chunk_word(c->kit.slot + 1, class, 0);
	int err = kit_swap_now(&c->kit.main, KV_POINT_MAP,
			       word_at(&c->g, index), 0, prep);

	if (err)
		return err;
	memset(c->kit.stage, 0, KIT_STAGE_BYTES);
	kit_begin(&c->kit);
	kit_write(&c->kit.main, KV_POINT_MAP, kv_chunk_at(&c->g, index),
		  c->kit.stage, kv_chunk_extents(&c->g, class));
	kit_cas(&c->kit.main, KV_POINT_MAP, word_at(&c->g, index), prep, ours,
		&c->atom[KV_ATOM_OTHER]);
	err = kit_run(&c->kit);
	return err ? err : add_chunk(c, index, class, out);
}

/* Takes over a chunk that nobody owns. */
static int adopt(struct kv_replica *c, uint64_t index, uint32_t class,
		 struct kv_chunk **out)
{
	int err =
		kit_swap_now(&c->kit.main, KV_POINT_MAP, word_at(&c->g, index),
			     kv_chunk_word(0, class, 0),
			     kv_chunk_word(c->kit.slot + 1, class, 0));

	if (!err)
		err = add_chunk(c, index, class, out);
	return err ? err : read_map(c, *out);
}

/* All chunks' words, until fn says something. */
static int each_word(struct kv_replica *c, kit_chunk_fn fn, void *user)
{
	return kit_chunks_each(&c->kit, c->g.chunk_word_offset,
			       c->g.chunk_count, NULL, fn, user);
}

struct finding {
	struct kv_replica *replica;
	uint32_t class;
	struct kv_chunk *chunk;
};

enum {
	FOUND = 1, /* ends each_word */
};

/* For somebody else, who needs it more. */
static bool is_kept(const struct kv_replica *c, uint64_t index)
{
	return c->chunk_limit && index >= c->chunk_limit;
}

static int try_word(void *user, uint64_t index, uint64_t word)
{
	struct finding *f = user;
	int err = -EAGAIN;

	if (is_kept(f->replica, index))
		return 0;
	if (word == 0)
		err = claim(f->replica, index, f->class, &f->chunk);
	else if (word == kv_chunk_word(0, f->class, 0))
		err = adopt(f->replica, index, f->class, &f->chunk);
	if (err == -EAGAIN || (!err && f->chunk->free == 0))
		return 0;
	if (!err)
		kv_room_note_chunk(f->replica, index);
	return err ? err : FOUND;
}

/* A chunk of that class with something free. */
static int find_chunk(struct kv_replica *c, uint32_t class,
		      struct kv_chunk **out)
{
	struct finding f = {.replica = c, .class = class};
	uint64_t total = 0, avail = 0;
	uint32_t i;
	int err = 0;

	for (i = 0; i < c->chunk_count; i++)
		if (c->chunk[i].class == class && c->chunk[i].free) {
			*out = &c->chunk[i];
			return 0;
		}
	for (i = 0; i < c->chunk_count && !err; i++) {
		if (c->chunk[i].class != class)
			continue;
		err = read_map(c, &c->chunk[i]);
		total += c->chunk[i].count;
		avail += c->chunk[i].free;
		if (c->chunk[i].free)
			f.chunk = &c->chunk[i];
	}
	if (err)
		return err;
	if (!f.chunk || avail < total / COLLECT_SHARE) {
		uint64_t index = f.chunk ? f.chunk->index : 0;
		bool had = f.chunk != NULL;

		err = each_word(c, try_word, &f);
		if (err < 0)
			return err;
		/* The array may have moved. */
		if (err != FOUND && had)
			for (i = 0; i < c->chunk_count; i++)
				if (c->chunk[i].index == index)
					f.chunk = &c->chunk[i];
		if (err != FOUND && !had)
			return error_set(-ENOSPC,
					 "no memory is left for values");
	}
	*out = f.chunk;
	return 0;
}

/* ---- runs of chunks ----------------------------------------------------- */

struct run_search {
	const struct kv_replica *replica;
	uint64_t wanted;
	uint64_t first;
	uint64_t length;
};

static int extend_run(void *user, uint64_t index, uint64_t word)
{
	struct run_search *s = user;

	if (word || is_kept(s->replica, index)) {
		s->length = 0;
		return 0;
	}
	if (s->length++ == 0)
		s->first = index;
	return s->length == s->wanted ? FOUND : 0;
}

static int claim_run(struct kv_replica *c, uint64_t first, uint64_t length)
{
	uint64_t i;
	int err = 0;

	for (i = 0; i < length && !err; i++)
		err = kit_swap_now(&c->kit.main, KV_POINT_MAP,
				   word_at(&c->g, first + i), 0,
				   kv_chunk_word(c->kit.slot + 1, KV_CLASS_RUN,
						 i ? 0 : (uint32_t)length));
	if (err != -EAGAIN)
		return err;
	for (; i > 1; i--) {
		uint64_t mine = kv_chunk_word(c->kit.slot + 1, KV_CLASS_RUN,
					      i - 2 ? 0 : (uint32_t)length);

		err = kit_swap_now(&c->kit.main, KV_POINT_MAP,
				   word_at(&c->g, first + i - 2), mine, 0);
		if (err && err != -EAGAIN)
			return err;
	}
	return -EAGAIN;
}

static int alloc_run(struct kv_replica *c, uint64_t size_bytes,
		     uint64_t *offset)
{
	struct run_search s = {.replica = c,
			       .wanted = kv_run_of(&c->g, size_bytes)};
	int err, tries;

	for (tries = 0; tries < KV_FULL_TRIES; tries++) {
		s.length = 0;
		err = each_word(c, extend_run, &s);
		if (err == 0)
			break;
		if (err == FOUND)
			err = claim_run(c, s.first, s.wanted);
		if (err == 0) {
			*offset = kv_chunk_at(&c->g, s.first);
			kv_room_note_chunk(c, s.first + s.wanted - 1);
			return 0;
		}
		if (err != -EAGAIN)
			return err;
	}
	return error_set(-ENOSPC, "no memory is left for a value of %s",
			 SIZE_TEXT(size_bytes));
}

/* ---- extents ------------------------------------------------------------ */

int kv_new_alloc(struct kv_replica *c, size_t key_len, size_t value_len,
		 struct kv_new *out)
{
	uint64_t size = kv_extent_size(key_len, value_len);
	uint32_t class = kv_class_of(&c->g, size), i;
	struct kv_chunk *k = NULL;
	int err;

	c->stamp = (c->stamp + 1) & KV_STAMP_MASK;
	*out = (struct kv_new){.size_bytes = size, .stamp = c->stamp};
	err = class ? find_chunk(c, class, &k)
		    : alloc_run(c, size, &out->offset);
	if (err == -ENOSPC)
		c->short_bytes = size;
	out->is_set = !err;
	if (err || !class)
		return err;
	for (i = k->hint; k->used[i]; i = (i + 1) % k->count)
		;
	k->used[i] = 1;
	k->free--;
	k->hint = (i + 1) % k->count;
	out->offset = kv_extent_at(&c->g, k->index, class, i);
	return 0;
}

static void copy_in(uint8_t *to, const struct kv_new *n, const void *key,
		    size_t key_len, const void *value, size_t value_len)
{
	struct kv_extent head;

	(void)kv_extent_build(&head, key, key_len, value, value_len, n->stamp);
	/* A value that is stored again may lie right here. */
	if (value_len)
		memmove(to + sizeof(head) + key_len, value, value_len);
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), key, key_len);
}

/* The contents first: a byte of the map that says "used" means that the stamp
 * is the new one. */
bool kv_new_add(struct kv_replica *c, struct kv_new *n, const void *key,
		size_t key_len, const void *value, size_t value_len)
{
	uint64_t bytes = KV_EXTENT_HEAD + key_len + value_len;

	if (bytes > KIT_STAGE_BYTES)
		return false;
	copy_in(c->kit.stage, n, key, key_len, value, value_len);
	kit_write(&c->kit.main, KV_POINT_EXTENT, n->offset, c->kit.stage,
		  bytes);
	if (kv_class_of(&c->g, n->size_bytes))
		kit_write(&c->kit.main, KV_POINT_MAP,
			  kv_map_at(&c->g, n->offset, n->size_bytes), c->ones,
			  1);
	n->is_written = true;
	return true;
}

static int write_new(struct kv_replica *c, struct kv_new *n, const void *key,
		     size_t key_len, const void *value, size_t value_len,
		     bool marks_map)
{
	uint64_t bytes = KV_EXTENT_HEAD + key_len + value_len, done, part;
	int err = kit_big_reserve(&c->kit, bytes);

	if (err)
		return err;
	copy_in(c->kit.big, n, key, key_len, value, value_len);
	for (done = 0; done < bytes && !err; done += part) {
		part = u64_min(bytes - done, KIT_LARGE_BYTES);
		kit_begin(&c->kit);
		kit_write(&c->kit.main, KV_POINT_EXTENT, n->offset + done,
			  c->kit.big + done, part);
		if (done + part == bytes && marks_map &&
		    kv_class_of(&c->g, n->size_bytes))
			kit_write(&c->kit.main, KV_POINT_MAP,
				  kv_map_at(&c->g, n->offset, n->size_bytes),
				  c->ones, 1);
		err = kit_run(&c->kit);
	}
	n->is_written = !err;
	return err;
}

int kv_new_write(struct kv_replica *c, struct kv_new *n, const void *key,
		 size_t key_len, const void *value, size_t value_len)
{
	return write_new(c, n, key, key_len, value, value_len, true);
}

int kv_new_fill(struct kv_replica *c, struct kv_new *n, const void *key,
		size_t key_len, const void *value, size_t value_len)
{
	return write_new(c, n, key, key_len, value, value_len, false);
}

void kv_new_add_commit(struct kv_replica *c, const struct kv_new *n)
{
	uint64_t chunk = chunk_of(&c->g, n->offset), i;
	uint64_t length = kv_run_of(&c->g, n->size_bytes);

	if (kv_class_of(&c->g, n->size_bytes))
		return;
	ASSERT(8 * length <= KV_ZERO_BYTES);
	for (i = 0; i < length; i++) {
		le64 w = le64_put(kv_chunk_word(0, KV_CLASS_RUN,
						i ? 0 : (uint32_t)length));

		memcpy(c->run_words + 8 * i, &w, 8);
	}
	kit_write(&c->kit.main, KV_POINT_MAP, word_at(&c->g, chunk),
		  c->run_words, 8 * length);
}

void kv_extent_add_free(struct kv_replica *c, uint64_t offset,
			uint64_t size_bytes)
{
	if (kv_class_of(&c->g, size_bytes)) {
		kit_write(&c->kit.main, KV_POINT_FREE,
			  kv_map_at(&c->g, offset, size_bytes), c->zeros, 1);
	} else {
		ASSERT(8 * kv_run_of(&c->g, size_bytes) <= KV_ZERO_BYTES);
		kit_write(&c->kit.main, KV_POINT_FREE,
			  word_at(&c->g, chunk_of(&c->g, offset)), c->zeros,
			  8 * kv_run_of(&c->g, size_bytes));
	}
}

void kv_slab_forget(struct kv_replica *c)
{
	while (c->chunk_count)
		free(c->chunk[--c->chunk_count].used);
}

int kv_slab_give_back(struct kv_replica *c)
{
	uint64_t old;
	int err = 0;

	while (c->chunk_count && !err) {
		struct kv_chunk *k = &c->chunk[c->chunk_count - 1];

		err = kit_cas_now(&c->kit.main, KV_POINT_MAP,
				  word_at(&c->g, k->index),
				  kv_chunk_word(c->kit.slot + 1, k->class, 0),
				  kv_chunk_word(0, k->class, 0), &old);
		free(k->used);
		c->chunk_count--;
	}
	return err;
}

/* ---- what a dead client had --------------------------------------------- */

struct orphaning {
	struct kv_replica *replica;
	uint32_t slot;
	uint64_t keep; /* the first chunk of a run that is in the table */
	uint64_t keep_end;
};

static int orphan(void *user, uint64_t index, uint64_t word)
{
	const struct orphaning *o = user;
	uint32_t class = kv_chunk_class(word);
	uint64_t now = kv_chunk_word(0, class, kv_chunk_run(word)), old;

	if (kv_chunk_owner(word) != o->slot + 1)
		return 0;
	/* What was not finished was never used. */
	if (class == CLASS_PREPARING ||
	    (class == KV_CLASS_RUN &&
	     (index < o->keep || index >= o->keep_end)))
		now = 0;
	return kit_cas_now(&o->replica->kit.main, KV_POINT_MEND,
			   word_at(&o->replica->g, index), word, now, &old);
}

int kv_slab_orphan(struct kv_replica *c, uint32_t slot, uint64_t extent,
		   uint64_t size_bytes)
{
	struct orphaning o = {.replica = c, .slot = slot, .keep = UINT64_MAX};

	if (extent && !kv_class_of(&c->g, size_bytes)) {
		o.keep = chunk_of(&c->g, extent);
		o.keep_end = o.keep + kv_run_of(&c->g, size_bytes);
	}
	return each_word(c, orphan, &o);
}
