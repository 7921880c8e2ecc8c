/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of one shard: buckets of one cache line with seven references, and
 * overflow buckets behind them. A key is looked for by its tag; two keys of one
 * tag in one bucket share an entry, and the records' `prev` tells them apart.
 * Used under the shard's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "hlog_priv.h"

enum {
	CHUNK_BUCKETS = 1024,
	CHUNK_MAX = 65536,
	HUGE_BYTES = 2 << 20,
};

void *hlog_memory(size_t len_bytes)
{
	void *m = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		return NULL;
	if (len_bytes >= HUGE_BYTES)
		(void)madvise(m, len_bytes, MADV_HUGEPAGE); /* a wish */
	return m;
}

/* Five of seven entries used on average: overflow is rare. */
uint64_t hlog_index_buckets(uint64_t record_count)
{
	uint64_t n = 1;

	while (n < (record_count + 4) / 5)
		n *= 2;
	return n;
}

int hlog_index_init(struct hlog_index *x, uint64_t bucket_count)
{
	struct hlog_index v = {.bucket_count = bucket_count};

	v.bucket = hlog_memory(bucket_count * sizeof(*v.bucket));
	v.chunk = calloc(CHUNK_MAX, sizeof(struct hlog_bucket *));
	if (!v.bucket || !v.chunk) {
		hlog_index_release(&v);
		return -ENOMEM;
	}
	*x = v;
	return 0;
}

void hlog_index_release(struct hlog_index *x)
{
	for (uint32_t i = 0; i < x->chunk_count; i++)
		free(x->chunk[i]);
	free(x->chunk);
	if (x->bucket)
		munmap(x->bucket, x->bucket_count * sizeof(*x->bucket));
	*x = (struct hlog_index){0};
}

static struct hlog_bucket *overflow(struct hlog_index *x, uint64_t next)
{
	uint64_t i = next - 1;

	return &x->chunk[i / CHUNK_BUCKETS][i % CHUNK_BUCKETS];
}

/* The entry, or NULL and the first empty one and the chain's last bucket. */
static uint64_t *search(struct hlog_index *x, uint64_t hash, uint64_t **empty,
			struct hlog_bucket **last)
{
	struct hlog_bucket *b = &x->bucket[hash & (x->bucket_count - 1)];
	uint32_t tag = hlog_hash_tag(hash);

	*empty = NULL;
	for (;;) {
		for (unsigned i = 0; i < HLOG_BUCKET_ENTRIES; i++) {
			uint64_t ref = b->entry[i];

			if (ref && hlog_ref_tag(ref) == tag)
				return &b->entry[i];
			if (!ref && !*empty)
				*empty = &b->entry[i];
		}
		if (!b->next)
			break;
		b = overflow(x, b->next);
	}
	*last = b;
	return NULL;
}

uint64_t *hlog_index_find(struct hlog_index *x, uint64_t hash)
{
	struct hlog_bucket *last;
	uint64_t *empty;

	return search(x, hash, &empty, &last);
}

uint64_t *hlog_index_make(struct hlog_index *x, uint64_t hash)
{
	struct hlog_bucket *last;
	uint64_t *empty;
	uint64_t *found = search(x, hash, &empty, &last);

	if (found || empty)
		return found ? found : empty;
	if (x->overflow_count == (uint64_t)x->chunk_count * CHUNK_BUCKETS) {
		size_t len = CHUNK_BUCKETS * sizeof(struct hlog_bucket);
		void *chunk = x->chunk_count < CHUNK_MAX
				      ? aligned_alloc(CACHE_LINE, len)
				      : NULL;

		if (!chunk)
			return NULL;
		x->chunk[x->chunk_count++] = chunk;
	}
	last->next = ++x->overflow_count;
	last = overflow(x, last->next);
	*last = (struct hlog_bucket){0};
	return &last->entry[0];
}
