/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, upserts, read-modify-writes and deletes: the part in memory. */
#include <errno.h>
#include <string.h>

#include "hlog_priv.h"

/*
 * Walks the records of one tag from `ref` on. Answers the key's newest record
 * that is in memory, or NULL; then *far is the first one that must be fetched,
 * or 0.
 */
static struct hlog_record *walk(const struct hlog *h,
				const struct hlog_shard *sh, uint64_t key,
				uint64_t ref, uint64_t *at, uint64_t *far)
{
	*far = 0;
	while (ref) {
		struct hlog_record *r = hlog_shard_near(h, sh, ref);

		if (!r) {
			*far = ref;
			return NULL;
		}
		if (le64_get(r->key) == key) {
			*at = ref;
			return r;
		}
		ref = le64_get(r->prev);
	}
	return NULL;
}

/* Fills in a record that was just appended and points the index to it. */
static void publish(uint64_t *entry, uint64_t ref, struct hlog_record *r,
		    uint64_t key, uint32_t value_bytes, uint32_t flags)
{
	r->prev = le64_put(*entry);
	r->key = le64_put(key);
	r->size_flags = le32_put(value_bytes << 8 | flags);
	r->crc = le32_put(0);
	*entry = ref;
}

int hlog_op_fetch(struct hlog_session *s, uint32_t i)
{
	struct hlog_pend *p = &s->pend[i];
	struct hlog *h = s->store;
	int rc;

	rc = h->device->ops->read(
		s->queue, hlog_far_offset(h, p->shard, hlog_ref_addr(p->ref)),
		hlog_ref_size(p->ref), i);
	if (rc < 0)
		return rc;
	s->stats.far_reads++;
	return -EINPROGRESS;
}

/* Sends a new request; the counterpart of finish() in poll.c. */
static int begin(struct hlog_session *s, const struct hlog_pend *p)
{
	uint32_t i = hlog_pend_get(s);
	int rc;

	if (i == HLOG_PEND_NONE)
		return -EAGAIN;
	s->pend[i] = *p;
	rc = hlog_op_fetch(s, i);
	if (rc == -EINPROGRESS)
		s->pending++;
	else
		hlog_pend_put(s, i);
	return rc;
}

/* Room for pages on their way out is never taken by reads. */
static bool is_full(const struct hlog_session *s)
{
	return s->free_count + s->writing <= HLOG_WRITES_MAX;
}

static int copy_out(const struct hlog_record *r, void *value,
		    uint32_t *value_bytes)
{
	uint32_t len = hlog_record_value_bytes(r);

	if (hlog_record_is_tombstone(r))
		return -ENOENT;
	if (len > *value_bytes) {
		*value_bytes = len;
		return -ENOBUFS;
	}
	memcpy(value, r->value, len);
	*value_bytes = len;
	return 0;
}

int hlog_read(struct hlog_session *s, uint64_t key, void *value,
	      uint32_t *value_bytes, uint64_t user)
{
	struct hlog *h = s->store;
	uint64_t hash = hlog_hash(key);
	struct hlog_shard *sh = hlog_shard_of(h, hash);
	uint64_t far = 0, at;
	struct hlog_record *r = NULL;
	uint64_t *entry;
	int rc = -ENOENT;

	lock_take(&sh->lock);
	entry = hlog_index_find(&sh->index, hash);
	if (entry)
		r = walk(h, sh, key, *entry, &at, &far);
	if (r)
		rc = copy_out(r, value, value_bytes);
	lock_drop(&sh->lock);
	if (!far) {
		s->stats.near_reads++;
		return rc;
	}
	if (is_full(s))
		return -EAGAIN;
	return begin(s, &(struct hlog_pend){.kind = PEND_READ,
					    .key = key,
					    .user = user,
					    .ref = far,
					    .shard = sh});
}

/* Under the lock. */
static int upsert(struct hlog_session *s, struct hlog_shard *sh, uint64_t hash,
		  uint64_t key, const void *value, uint32_t value_bytes)
{
	struct hlog *h = s->store;
	uint64_t *entry = hlog_index_make(&sh->index, hash);
	uint64_t at, far, ref;
	struct hlog_record *r;
	int rc;

	if (!entry)
		return -ENOMEM;
	r = walk(h, sh, key, *entry, &at, &far);
	if (r && hlog_shard_is_mutable(h, sh, at) &&
	    hlog_record_value_bytes(r) == value_bytes &&
	    !hlog_record_is_tombstone(r)) {
		memcpy(r->value, value, value_bytes);
		s->stats.in_place++;
		return 0;
	}
	rc = hlog_shard_append(s, sh, hlog_record_bytes(value_bytes),
			       hlog_hash_tag(hash), &ref, &r);
	if (rc < 0)
		return rc;
	publish(entry, ref, r, key, value_bytes, 0);
	memcpy(r->value, value, value_bytes);
	return 0;
}

int hlog_upsert(struct hlog_session *s, uint64_t key, const void *value,
		uint32_t value_bytes)
{
	uint64_t hash = hlog_hash(key);
	struct hlog_shard *sh = hlog_shard_of(s->store, hash);
	int rc;

	if (value_bytes > s->store->value_max)
		return -EMSGSIZE;
	lock_take(&sh->lock);
	rc = upsert(s, sh, hash, key, value, value_bytes);
	lock_drop(&sh->lock);
	return rc;
}

/* Under the lock. */
static int erase(struct hlog_session *s, struct hlog_shard *sh, uint64_t hash,
		 uint64_t key)
{
	struct hlog *h = s->store;
	uint64_t *entry = hlog_index_find(&sh->index, hash);
	uint64_t at, far, ref;
	struct hlog_record *r;
	int rc;

	if (!entry)
		return 0;
	r = walk(h, sh, key, *entry, &at, &far);
	if ((!r && !far) || (r && hlog_record_is_tombstone(r)))
		return 0;
	if (r && hlog_shard_is_mutable(h, sh, at)) {
		/* Its bytes stay, since records lie end to end. */
		r->size_flags =
			le32_put(le32_get(r->size_flags) | HLOG_TOMBSTONE);
		s->stats.in_place++;
		return 0;
	}
	rc = hlog_shard_append(s, sh, hlog_record_bytes(0), hlog_hash_tag(hash),
			       &ref, &r);
	if (rc == 0)
		publish(entry, ref, r, key, 0, HLOG_TOMBSTONE);
	return rc;
}

int hlog_delete(struct hlog_session *s, uint64_t key)
{
	uint64_t hash = hlog_hash(key);
	struct hlog_shard *sh = hlog_shard_of(s->store, hash);
	int rc;

	lock_take(&sh->lock);
	rc = erase(s, sh, hash, key);
	lock_drop(&sh->lock);
	return rc;
}

/* ---- read-modify-write -------------------------------------------------- */

/* Appends the changed copy of `old`, or a new value. Under the lock. `old` is
 * not in a page frame: the append may give its page frame to the new tail. */
static int rmw_append(struct hlog_session *s, struct hlog_shard *sh,
		      const struct hlog_pend *p, uint64_t *entry,
		      const struct hlog_record *old)
{
	bool is_new = !old || hlog_record_is_tombstone(old);
	uint32_t len = is_new ? p->initial_bytes : hlog_record_value_bytes(old);
	uint32_t tag = hlog_hash_tag(hlog_hash(p->key));
	struct hlog_record *r;
	uint64_t ref;
	int rc;

	rc = hlog_shard_append(s, sh, hlog_record_bytes(len), tag, &ref, &r);
	if (rc < 0)
		return rc;
	publish(entry, ref, r, p->key, len, 0);
	if (is_new)
		memset(r->value, 0, len);
	else
		memcpy(r->value, old->value, len);
	p->fn(p->arg, r->value, len);
	return 0;
}

/* Under the lock. */
static int rmw(struct hlog_session *s, struct hlog_shard *sh,
	       struct hlog_pend *p)
{
	struct hlog *h = s->store;
	uint64_t *entry = hlog_index_make(&sh->index, hlog_hash(p->key));
	struct hlog_record *r;
	uint64_t at, far;

	if (!entry)
		return -ENOMEM;
	r = walk(h, sh, p->key, *entry, &at, &far);
	if (far) {
		p->entry = *entry;
		p->ref = far;
		return -EINPROGRESS;
	}
	if (r && hlog_shard_is_mutable(h, sh, at) &&
	    !hlog_record_is_tombstone(r)) {
		p->fn(p->arg, r->value, hlog_record_value_bytes(r));
		s->stats.in_place++;
		return 0;
	}
	if (r)
		memcpy(s->scratch, r, sizeof(*r) + hlog_record_value_bytes(r));
	return rmw_append(s, sh, p, entry,
			  r ? (struct hlog_record *)s->scratch : NULL);
}

int hlog_op_rmw(struct hlog_session *s, struct hlog_pend *p)
{
	int rc;

	lock_take(&p->shard->lock);
	rc = rmw(s, p->shard, p);
	lock_drop(&p->shard->lock);
	return rc;
}

int hlog_op_rmw_far(struct hlog_session *s, struct hlog_pend *p,
		    const struct hlog_record *old)
{
	struct hlog_shard *sh = p->shard;
	uint64_t *entry;
	int rc = -ESTALE;

	lock_take(&sh->lock);
	entry = hlog_index_find(&sh->index, hlog_hash(p->key));
	if (entry && *entry == p->entry)
		rc = rmw_append(s, sh, p, entry, old);
	lock_drop(&sh->lock);
	return rc;
}

int hlog_rmw(struct hlog_session *s, uint64_t key, uint32_t initial_bytes,
	     hlog_rmw_fn fn, void *arg, uint64_t user)
{
	struct hlog_pend p = {.kind = PEND_RMW,
			      .key = key,
			      .user = user,
			      .fn = fn,
			      .arg = arg,
			      .initial_bytes = initial_bytes,
			      .shard = hlog_shard_of(s->store, hlog_hash(key))};
	int rc;

	if (initial_bytes > s->store->value_max)
		return -EMSGSIZE;
	if (is_full(s))
		return -EAGAIN;
	rc = hlog_op_rmw(s, &p);
	return rc == -EINPROGRESS ? begin(s, &p) : rc;
}
