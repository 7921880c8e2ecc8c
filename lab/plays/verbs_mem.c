/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the play's nodes: areas between canaries, and slots that the
 * NIC fills one request at a time, with poison around every piece.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

static uint8_t canary(size_t i)
{
	return (uint8_t)(0xc5 ^ i * 29);
}

int vs_area_add(struct vs_node *node, size_t len_bytes, struct vs_area *out)
{
	uint8_t *p;

	if (node->area_count == VS_AREA_MAX)
		return -ENOSPC;
	/* 64-byte aligned: atomics and the NIC's copies want it. */
	p = aligned_alloc(64, align_up(len_bytes, 64) + 2 * VS_CANARY_BYTES);
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < VS_CANARY_BYTES; i++)
		p[i] = p[VS_CANARY_BYTES + len_bytes + i] = canary(i);
	/* Addresses on the wire must not depend on where malloc puts us. */
	*out = (struct vs_area){
		.base = p + VS_CANARY_BYTES,
		.len_bytes = len_bytes,
		.iova = (uint64_t)(node->index + 1) << 40 |
			(uint64_t)(node->area_count + 1) << 24 |
			sim_rand_below(&node->vs->run.rand, 4096) * 8,
	};
	node->areas[node->area_count++] = *out;
	return 0;
}

void vs_areas_check(struct vs_node *node)
{
	for (unsigned a = 0; a < node->area_count; a++) {
		const struct vs_area *area = &node->areas[a];

		for (size_t i = 0; i < VS_CANARY_BYTES; i++) {
			if (area->base[(ptrdiff_t)i - VS_CANARY_BYTES] !=
				    canary(i) ||
			    area->base[area->len_bytes + i] != canary(i)) {
				vs_fail(node->vs,
					"node %u: a byte outside area %u was "
					"written",
					node->index, a);
				return;
			}
		}
	}
}

void vs_areas_release(struct vs_node *node)
{
	for (unsigned a = 0; a < node->area_count; a++)
		free(node->areas[a].base - VS_CANARY_BYTES);
	node->area_count = 0;
}

struct ibv_mr *vs_reg(struct vs_node *node, const struct vs_area *area,
		      int access)
{
	return ibv_reg_mr_iova(node->pd, area->base, area->len_bytes,
			       area->iova, access);
}

int vs_slots_init(struct vs_node *node, struct vs_slots *slots, unsigned count,
		  uint32_t slot_bytes)
{
	int err;

	*slots = (struct vs_slots){.count = count, .slot_bytes = slot_bytes};
	err = vs_area_add(node, (size_t)count * slot_bytes, &slots->area);
	if (err)
		return err;
	memset(slots->area.base, VS_POISON, slots->area.len_bytes);
	slots->mr = vs_reg(node, &slots->area, IBV_ACCESS_LOCAL_WRITE);
	return slots->mr ? 0 : -errno;
}

void vs_slots_release(struct vs_slots *slots)
{
	if (slots->mr)
		(void)ibv_dereg_mr(slots->mr); /* nothing uses it any more */
	slots->mr = NULL;
}

unsigned vs_pieces(struct rng *r, uint32_t len, unsigned piece_max,
		   struct vs_piece *pieces)
{
	unsigned n = sim_rand_below(r, 3) ? 1 : sim_rand_range(r, 1, piece_max);

	for (unsigned i = 0; i < n; i++) {
		uint32_t part = len;

		if (i + 1 < n)
			part = sim_rand_below(r, 2 * len / (n - i) + 1);
		if (part > len)
			part = len;
		pieces[i] = (struct vs_piece){.len = part};
		len -= part;
	}
	return n;
}

static uint64_t slot_sum(const struct vs_slots *slots, unsigned slot)
{
	const uint8_t *p = slots->area.base + (size_t)slot * slots->slot_bytes;
	uint64_t sum = 0, v;

	for (uint32_t i = 0; i + 8 <= slots->slot_bytes; i += 8) {
		memcpy(&v, p + i, 8);
		sum = (sum ^ v) * 0x9fb21c651e98df25ull;
		sum ^= sum >> 29;
	}
	return sum;
}

static void check_seal(struct vs *vs, struct vs_slots *slots, unsigned slot,
		       const char *what)
{
	if (slots->sealed[slot] && slot_sum(slots, slot) != slots->sum[slot])
		vs_fail(vs, "%s buffer %u was written after its completion",
			what, slot);
}

int vs_slot_take(struct vs *vs, struct vs_slots *slots, struct rng *r,
		 uint32_t len, unsigned piece_max, struct vs_piece *pieces,
		 unsigned *piece_count)
{
	unsigned slot = sim_rand_below(r, slots->count);
	uint32_t off;

	for (unsigned i = 0; slots->busy[slot]; i++) {
		if (i == slots->count)
			return -1;
		slot = (slot + 1) % slots->count;
	}
	check_seal(vs, slots, slot, "a reused");
	slots->busy[slot] = true;
	slots->sealed[slot] = false;
	memset(slots->area.base + (size_t)slot * slots->slot_bytes, VS_POISON,
	       slots->slot_bytes);
	*piece_count = vs_pieces(r, len, piece_max, pieces);
	off = slot * slots->slot_bytes + VS_SLOT_GAP;
	for (unsigned i = 0; i < *piece_count; i++) {
		pieces[i].off = off;
		off += pieces[i].len + sim_rand_range(r, 1, VS_SLOT_GAP);
	}
	return (int)slot;
}

static bool is_poison(const uint8_t *p, size_t len)
{
	return len == 0 ||
	       (p[0] == VS_POISON && memcmp(p, p + 1, len - 1) == 0);
}

void vs_slot_give(struct vs *vs, struct vs_slots *slots, unsigned slot,
		  const struct vs_piece *pieces, unsigned piece_count,
		  const uint8_t *data, uint32_t len, const char *what)
{
	const uint8_t *base = slots->area.base;
	size_t at = (size_t)slot * slots->slot_bytes;
	size_t end = at + slots->slot_bytes;

	ASSERT(slots->busy[slot]);
	for (unsigned i = 0; i < piece_count; i++) {
		const struct vs_piece *p = &pieces[i];
		uint32_t n = u32_min(len, p->len);

		if (!is_poison(base + at, p->off - at))
			vs_fail(vs, "%s: bytes in front of piece %u written",
				what, i);
		at = p->off + p->len;
		if (!data)
			continue;
		if (n && memcmp(base + p->off, data, n) != 0)
			vs_fail(vs, "%s: wrong bytes in piece %u of %u", what,
				i, piece_count);
		if (!is_poison(base + p->off + n, p->len - n))
			vs_fail(vs, "%s: bytes behind the message written",
				what);
		data += n;
		len -= n;
	}
	if (!is_poison(base + at, end - at))
		vs_fail(vs, "%s: bytes behind the last piece written", what);
	slots->busy[slot] = false;
	slots->sealed[slot] = true;
	slots->sum[slot] = slot_sum(slots, slot);
}

void vs_slot_drop(struct vs_slots *slots, unsigned slot)
{
	slots->busy[slot] = false;
	slots->sealed[slot] = false;
}

void vs_slots_check(struct vs *vs, struct vs_slots *slots, const char *what)
{
	for (unsigned i = 0; i < slots->count; i++) {
		if (!slots->busy[i])
			check_seal(vs, slots, i, what);
	}
}
