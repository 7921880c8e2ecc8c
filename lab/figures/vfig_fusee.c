/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparator after FUSEE (Shen et al., FAST 2023) without replication, with
 * the requests and sizes of its public code, as in kv_fig_fusee.c: an index of
 * pointers in two-choice buckets, and values in blocks of 256 bytes with their
 * log entry. A read takes both buckets and then the value. A write puts the
 * value in a new place and reads the buckets, reads the old value, because a
 * pointer has eight bits of the key only, then swaps the pointer; who is beaten
 * to it was overwritten at once, looks again and is done. Memory is used again
 * in a circle per thread: enough for a comparison of costs.
 */
#include <string.h>

#include "vfig_priv.h"

enum {
	PLACES = 8,    /* a thread's values, by turns, per key */
	OBJECT = 256,  /* the smallest block: header, key, value, log entry */
	BUCKET = 128,  /* with the overflow bucket beside it */
	SLOT = BUCKET, /* a bucket per key here */
	BUF_BYTES = 1024,
	AT_SLOT = 0,
	AT_VALUE = 256,
	AT_OLD = 512,
	AT_WORD = 768,
};

uint64_t vfig_fusee_bytes(const struct vfig_config *cfg)
{
	return VFIG_KEYS * SLOT + (uint64_t)VFIG_THREADS_MAX * PLACES * OBJECT +
	       VFIG_KEYS * OBJECT;
}

static uint64_t slot_at(uint64_t key)
{
	return key * SLOT;
}

static uint64_t value_at(uint64_t index)
{
	return VFIG_KEYS * SLOT + index * OBJECT;
}

int vfig_fusee_open(struct vfig_thread *t)
{
	return rig_trip_open(&t->trip, t->link, t->f->region, BUF_BYTES);
}

void vfig_fusee_close(struct vfig_thread *t)
{
	rig_trip_close(&t->trip);
}

static void add_read(struct vfig_thread *t, uint64_t at, uint32_t buf_at,
		     uint32_t len_bytes)
{
	rig_trip_add(&t->trip, IBV_WR_RDMA_READ, at, buf_at, len_bytes);
}

/* The bucket that the key is in, and the other in which it could be. */
static void add_buckets(struct vfig_thread *t, uint64_t key)
{
	uint64_t other = key * UINT64_C(0x9e3779b97f4a7c15) % VFIG_KEYS;

	add_read(t, slot_at(key), AT_SLOT, BUCKET);
	add_read(t, slot_at(other), AT_SLOT + BUCKET, BUCKET);
}

/* Where the value is, as the bucket that was read says. */
static uint64_t found_at(struct vfig_thread *t, uint64_t key, uint64_t *word)
{
	memcpy(word, t->trip.buf + AT_SLOT, 8);
	return *word ? *word : value_at(key);
}

int vfig_fusee_get(struct vfig_thread *t, uint64_t key)
{
	uint64_t word;
	int err;

	t->attempts++;
	add_buckets(t, key);
	err = rig_trip_go(&t->trip);
	if (err)
		return err;
	add_read(t, found_at(t, key, &word), AT_VALUE, OBJECT);
	return rig_trip_go(&t->trip);
}

int vfig_fusee_put(struct vfig_thread *t, uint64_t key)
{
	uint64_t mine =
		value_at(VFIG_KEYS + t->index * PLACES + t->done % PLACES);
	uint64_t old, place, found;
	int err;

	t->attempts++;
	rig_trip_add(&t->trip, IBV_WR_RDMA_WRITE, mine, AT_VALUE, OBJECT);
	add_buckets(t, key);
	err = rig_trip_go(&t->trip);
	if (err)
		return err;
	place = found_at(t, key, &old);
	add_read(t, place, AT_OLD, OBJECT);
	err = rig_trip_go(&t->trip);
	if (err)
		return err;
	rig_trip_add_cas(&t->trip, slot_at(key), AT_WORD, old, mine);
	err = rig_trip_go(&t->trip);
	memcpy(&found, t->trip.buf + AT_WORD, 8);
	if (err || found == old)
		return err;
	/* Beaten: the other's value is there. */
	t->attempts++;
	add_buckets(t, key);
	return rig_trip_go(&t->trip);
}
