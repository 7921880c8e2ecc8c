/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of slots whose records the mover reads by itself, from a block that
 * is mapped: the source only says where they are. So a batch is larger than an
 * answer, and none of it goes through the NIC.
 */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "el_ekv_priv.h"

enum {
	HEAD = sizeof(struct block_kv_batch_wire),
	EACH = sizeof(struct block_kv_answer_wire),
	READS = 64, /* at once */
};

/* True: all were read. */
static bool load(struct el_object *o, uint64_t number,
		 const struct aqdv_read *reads, unsigned count)
{
	const struct el_block *b = el_find(o, number);
	struct el_port *p;

	return b && !el_port_find(o, b->head.node, &p) && p->link &&
	       aqdv_read_now(p->link->qp, reads, count) == (int)count;
}

static bool load_head(struct el_object *o, const struct el_source *s,
		      struct block_head *head)
{
	const struct aqdv_read r = {.remote_addr = s->address,
				    .to = head,
				    .rkey = s->key,
				    .len_bytes = sizeof(*head)};

	return load(o, s->number, &r, 1);
}

bool el_source_is_mapped(struct el_object *o, struct el_source *s,
			 uint64_t deadline_ns)
{
	const struct el_block *b = el_find(o, s->number);
	enum block_status status;
	struct block_head head;
	struct el_stat stat;

	/* Who answers for a chain may change from message to message. */
	if (!b || b->is_chained)
		return false;
	if (!s->address) {
		if (el_stat(o, s->number, &stat, &status, deadline_ns) ||
		    status != BLOCK_OK)
			return false;
		s->address = stat.address;
		s->key = stat.key;
	}
	return load_head(o, s, &head);
}

/* What lies where the list says. -EAGAIN: it cannot be read now. */
static int load_records(struct el_object *o, const struct el_source *s,
			const uint8_t *list, uint32_t count, uint8_t *out,
			uint32_t *used)
{
	struct aqdv_read reads[READS];
	unsigned n = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct block_kv_listed_wire w;
		uint64_t at;
		uint32_t size;

		memcpy(&w, list + i * sizeof(w), sizeof(w));
		at = (uint64_t)be32_get(w.at8) * 8;
		size = be32_get(w.size);
		if (size <= BLOCK_KV_OWN_BYTES || size % 8 ||
		    size > EL_STAGING_BYTES - *used || at > o->block_bytes ||
		    size > o->block_bytes - at)
			return error_set(-EPROTO,
					 "a node answered something else");
		memset(out + *used, 0, BLOCK_KV_OWN_BYTES);
		reads[n++] = (struct aqdv_read){
			.remote_addr = s->address + at + BLOCK_KV_OWN_BYTES,
			.to = out + *used + BLOCK_KV_OWN_BYTES,
			.rkey = s->key,
			.len_bytes = size - BLOCK_KV_OWN_BYTES};
		*used += size;
		if (n < READS && i + 1 < count)
			continue;
		if (!load(o, s->number, reads, n))
			return -EAGAIN;
		n = 0;
	}
	return 0;
}

int el_source_load(struct el_object *o, const struct el_source *s,
		   const struct block_result *r, uint8_t *out, uint32_t *length)
{
	struct block_kv_batch_wire head;
	uint32_t answers, records, used;
	struct block_head block;
	uint64_t moves;
	int err;

	if (!r->data || r->length < HEAD || r->length > EL_STAGING_BYTES)
		return error_set(-EPROTO, "a node answered something else");
	memcpy(&head, r->data, sizeof(head));
	answers = be32_get(head.answers);
	records = be32_get(head.records);
	moves = be64_get(head.room[1]);
	if (answers > r->length / EACH || records > r->length ||
	    r->length != HEAD + answers * EACH +
				 records * sizeof(struct block_kv_listed_wire))
		return error_set(-EPROTO, "a node answered something else");
	/* Another copy of the block may have them at other places. */
	if (be64_get(head.room[0]) != s->address)
		return -EAGAIN;
	memset(head.room, 0, sizeof(head.room));
	used = HEAD + answers * EACH;
	memcpy(out, r->data, used);
	memcpy(out, &head, sizeof(head));
	err = load_records(o, s, r->data + used, records, out, &used);
	if (err)
		return err;
	/* While this stands, nothing has moved (blk_head_moves). */
	if (!load_head(o, s, &block) || be64_get(block.moves) != moves)
		return -EAGAIN;
	*length = used;
	return 0;
}
