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
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
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

static uint64_t slot_at(const struct vfig_thread *t, uint64_t key)
{
	return t->f->region->addr + key * SLOT;
}

static uint64_t value_at(const struct vfig_thread *t, uint64_t index)
{
	return t->f->region->addr + VFIG_KEYS * SLOT + index * OBJECT;
}

int vfig_fusee_open(struct vfig_thread *t)
{
	t->buf = calloc(1, BUF_BYTES);
	if (!t->buf)
		return -ENOMEM;
	t->mr = t->link->verbs->reg_mr(t->link->pd, t->buf, BUF_BYTES,
				       IBV_ACCESS_LOCAL_WRITE);
	return t->mr ? 0 : -ENOMEM;
}

void vfig_fusee_close(struct vfig_thread *t)
{
	if (t->mr)
		(void)t->link->verbs->dereg_mr(t->mr);
	free(t->buf);
}

static void fill(struct vfig_thread *t, struct ibv_send_wr *w,
		 struct ibv_sge *s, enum ibv_wr_opcode opcode, uint64_t addr,
		 unsigned at, uint32_t len)
{
	*s = (struct ibv_sge){.addr = (uintptr_t)t->buf + at,
			      .length = len,
			      .lkey = t->mr->lkey};
	*w = (struct ibv_send_wr){
		.opcode = opcode,
		.num_sge = 1,
		.sg_list = s,
		.wr.rdma = {.remote_addr = addr, .rkey = t->f->region->rkey}};
}

static int run(struct vfig_thread *t, struct ibv_send_wr *w, unsigned count)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	for (unsigned i = 0; i + 1 < count; i++)
		w[i].next = &w[i + 1];
	w[count - 1].send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(t->link->qp, w, &bad))
		return -EIO;
	while ((n = ibv_poll_cq(t->link->cq, 1, &wc)) == 0)
		client_clock_relax(t->link->clock);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}

/* The bucket that the key is in, and the other in which it could be. */
static void fill_buckets(struct vfig_thread *t, struct ibv_send_wr w[2],
			 struct ibv_sge s[2], uint64_t key)
{
	uint64_t other = key * UINT64_C(0x9e3779b97f4a7c15) % VFIG_KEYS;

	fill(t, &w[0], &s[0], IBV_WR_RDMA_READ, slot_at(t, key), AT_SLOT,
	     BUCKET);
	fill(t, &w[1], &s[1], IBV_WR_RDMA_READ, slot_at(t, other),
	     AT_SLOT + BUCKET, BUCKET);
}

/* Where the value is, as the bucket that was read says. */
static uint64_t found_at(struct vfig_thread *t, uint64_t key, uint64_t *word)
{
	memcpy(word, t->buf + AT_SLOT, 8);
	return *word ? *word : value_at(t, key);
}

int vfig_fusee_get(struct vfig_thread *t, uint64_t key)
{
	struct ibv_send_wr w[2];
	struct ibv_sge s[2];
	uint64_t word;
	int err;

	t->attempts++;
	fill_buckets(t, w, s, key);
	err = run(t, w, 2);
	if (err)
		return err;
	fill(t, w, s, IBV_WR_RDMA_READ, found_at(t, key, &word), AT_VALUE,
	     OBJECT);
	return run(t, w, 1);
}

int vfig_fusee_put(struct vfig_thread *t, uint64_t key)
{
	uint64_t mine =
		value_at(t, VFIG_KEYS + t->index * PLACES + t->done % PLACES);
	struct ibv_send_wr w[3];
	struct ibv_sge s[3];
	uint64_t old, place, found;
	int err;

	t->attempts++;
	fill(t, &w[0], &s[0], IBV_WR_RDMA_WRITE, mine, AT_VALUE, OBJECT);
	fill_buckets(t, &w[1], &s[1], key);
	err = run(t, w, 3);
	if (err)
		return err;
	place = found_at(t, key, &old);
	fill(t, w, s, IBV_WR_RDMA_READ, place, AT_OLD, OBJECT);
	err = run(t, w, 1);
	if (err)
		return err;
	fill(t, w, s, IBV_WR_ATOMIC_CMP_AND_SWP, slot_at(t, key), AT_WORD, 8);
	w->wr.atomic.remote_addr = slot_at(t, key);
	w->wr.atomic.rkey = t->f->region->rkey;
	w->wr.atomic.compare_add = old;
	w->wr.atomic.swap = mine;
	err = run(t, w, 1);
	memcpy(&found, t->buf + AT_WORD, 8);
	if (err || found == old)
		return err;
	/* Beaten: the other's value is there. */
	t->attempts++;
	fill_buckets(t, w, s, key);
	return run(t, w, 2);
}
