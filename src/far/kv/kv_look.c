/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks: the READs of a get, which no lock orders. Where the table may be
 * mapped (AQ_KV_DIRECT_READS) those of several gets are collected and done
 * together, as loads; what cannot be done so, and everything elsewhere, is
 * posted.
 */
#include <stdlib.h>

#include "kv_priv.h"

void kv_look_begin(struct kv_replica *c, struct kv_get *g)
{
	kit_begin(&c->kit);
	g->looks = 0;
}

void kv_look_add(struct kv_replica *c, struct kv_get *g, uint64_t offset,
		 void *to, uint64_t len_bytes)
{
	if (!c->kit.remote.look_rkey)
		kit_read(&c->kit.main, offset, to, len_bytes);
	else
		g->look[g->looks++] = (struct aqdv_read){
			.remote_addr = c->kit.remote.look_addr + offset,
			.to = to,
			.rkey = c->kit.remote.look_rkey,
			.len_bytes = (uint32_t)len_bytes};
}

void kv_look_end(struct kv_replica *c, struct kv_get *g)
{
	uint32_t index = (uint32_t)(g - c->get), at;

	if (!c->kit.remote.look_rkey) {
		/* A failure breaks the connection, which kv_get_step sees. */
		(void)kit_post(&c->kit, index);
		return;
	}
	at = c->look_head + c->look_count++;
	c->look_queue[at < c->depth ? at : at - c->depth] = index;
}

/* Through the node's NIC. */
static void post_looks(struct kv_replica *c, const struct kv_get *g)
{
	uint32_t i;

	kit_begin(&c->kit);
	for (i = 0; i < g->looks; i++)
		kit_read(&c->kit.main,
			 g->look[i].remote_addr - c->kit.remote.look_addr,
			 g->look[i].to, g->look[i].len_bytes);
	(void)kit_post(&c->kit, (uint32_t)(g - c->get));
}

void kv_look_run(struct kv_replica *c)
{
	struct aqdv_read list[KV_LOOKS_MAX * KV_LOOK_BATCH];
	uint32_t index[KV_LOOK_BATCH];
	unsigned i, k, count = 0, reads = 0;
	int done = 0, at = 0;

	for (; c->look_count && count < KV_LOOK_BATCH; c->look_count--) {
		const struct kv_get *g = &c->get[c->look_queue[c->look_head]];

		index[count++] = c->look_queue[c->look_head];
		c->look_head =
			c->look_head + 1 < c->depth ? c->look_head + 1 : 0;
		for (k = 0; k < g->looks; k++)
			list[reads++] = g->look[k];
	}
	if (reads)
		done = aqdv_read_now(c->kit.remote.link->qp, list, reads);
	c->kit.polled_ns = kit_now_ns(&c->kit);
	for (i = 0; i < count; i++) {
		const struct kv_get *g = &c->get[index[i]];

		at += (int)g->looks;
		if (at <= done)
			kv_get_completed(&c->kit, index[i]);
		else
			post_looks(c, g);
	}
}
