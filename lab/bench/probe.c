/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the hash probe up. */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* How many of the first `record` records are near. */
static uint64_t near_before(uint64_t record)
{
	return (record + PROBE_NEAR_EVERY - 1) / PROBE_NEAR_EVERY;
}

static void fill_record(uint8_t *to, uint64_t key, uint32_t record_bytes)
{
	uint64_t sum = 0, word;
	uint32_t i;

	for (i = 0; i + 8 < record_bytes; i += 8) {
		word = probe_hash(key + i + 1);
		memcpy(to + i, &word, 8);
		sum += word;
	}
	word = probe_hash(key) - sum;
	memcpy(to + i, &word, 8);
}

uint64_t probe_far_bytes(uint64_t record_count, uint32_t record_bytes)
{
	return (record_count - near_before(record_count)) * record_bytes;
}

void probe_far_fill(uint8_t *to, uint64_t first, uint64_t count,
		    uint32_t record_bytes)
{
	for (uint64_t i = 0; i < count; i++)
		fill_record(to + i * record_bytes, probe_far_key(first + i),
			    record_bytes);
}

static void *reserve(size_t len_bytes)
{
	void *m = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

/* Entries lie in an order that has nothing to do with the heads'. */
static void insert(struct probe *p, uint64_t record)
{
	uint64_t key = ycsb_key(record);
	uint32_t *head = &p->head[probe_hash(key) & p->mask];
	struct probe_entry *e = &p->entry[record];
	uint64_t n = near_before(record);

	*e = (struct probe_entry){.key = key, .next = *head};
	*head = (uint32_t)record + 1;
	if (record % PROBE_NEAR_EVERY == 0) {
		fill_record(p->near + n * p->record_bytes, key,
			    p->record_bytes);
		e->place = n * p->record_bytes | PROBE_NEAR;
	} else {
		e->place = (record - n) * p->record_bytes;
	}
}

static size_t near_bytes(const struct probe *p)
{
	return (near_before(p->record_count) + 1) * p->record_bytes;
}

int probe_init(struct probe *p, uint64_t record_count, uint32_t record_bytes,
	       uint64_t seed)
{
	struct probe v = {.record_bytes = record_bytes,
			  .record_count = record_count};
	int rc;

	if (record_count >= UINT32_MAX)
		return -EINVAL;
	rc = ycsb_keys_init(&v.keys, YCSB_UNIFORM, record_count, 0);
	if (rc < 0)
		return rc;
	v.mask = 1;
	while (v.mask < record_count)
		v.mask *= 2;
	v.mask--;
	v.head = reserve((v.mask + 1) * sizeof(*v.head));
	v.entry = reserve(record_count * sizeof(*v.entry));
	v.near = reserve(near_bytes(&v));
	*p = v;
	if (!v.head || !v.entry || !v.near) {
		probe_release(p);
		return -ENOMEM;
	}
	for (uint64_t r = 0; r < record_count; r++)
		insert(p, r);
	ycsb_init(&p->gen, YCSB_C, &p->keys, seed, 0);
	return 0;
}

void probe_release(struct probe *p)
{
	if (p->head)
		munmap(p->head, (p->mask + 1) * sizeof(*p->head));
	if (p->entry)
		munmap(p->entry, p->record_count * sizeof(*p->entry));
	if (p->near)
		munmap(p->near, near_bytes(p));
	p->head = NULL;
	p->entry = NULL;
	p->near = NULL;
}
