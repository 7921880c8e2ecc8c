/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving slots between blocks: a client carries them. Every step may be
 * repeated, by this client or another one; block/blk_ekv.h has the rules. Who
 * finds a move that somebody else left goes on with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "el_ekv_priv.h"

enum {
	HEAD = sizeof(struct block_kv_batch_wire),
	PATIENCE = 4, /* tries until a binding is taken for forgotten */
};

struct move {
	struct aq_ekv *kv;
	uint64_t from, to; /* numbers */
	uint32_t token;
	struct block_kv_end_wire target;
	uint64_t deadline_ns;
	uint64_t batch;
	uint8_t *buf; /* a head, and a record of any size */
	struct ibv_mr *mr;
	struct el_source source;
	/* Where the batch lies that is to be brought. */
	const uint8_t *at;
	uint32_t key;
};

/* ---- messages ------------------------------------------------------------ */

static int tell(struct aq_ekv *kv, uint64_t number, struct block_op *op,
		struct block_result *r, uint64_t deadline_ns)
{
	return el_call_as(&kv->object, number, op, 1, r, kv->acked,
			  deadline_ns);
}

static int tell_arg(struct aq_ekv *kv, uint64_t number,
		    enum block_opcode opcode, uint64_t arg,
		    const struct block_kv_end_wire *end, struct block_result *r,
		    uint64_t deadline_ns)
{
	struct block_op op = {.opcode = opcode,
			      .arg = arg,
			      .length = sizeof(*end),
			      .value = (const uint8_t *)end};

	return tell(kv, number, &op, r, deadline_ns);
}

static int tell_token(struct aq_ekv *kv, uint64_t number,
		      enum block_opcode opcode, uint32_t token, uint64_t low,
		      struct block_result *r, uint64_t deadline_ns)
{
	struct block_op op = {.opcode = opcode,
			      .arg = (uint64_t)token << 32 | (uint32_t)low};

	return tell(kv, number, &op, r, deadline_ns);
}

/* ---- carrying ------------------------------------------------------------ */

/* Memory that a node brings a large record to, and another one fetches from. */
static int make_buf(struct move *m)
{
	size_t bytes = HEAD + m->kv->object.block_bytes;

	if (m->buf)
		return 0;
	m->buf = malloc(bytes);
	m->mr = m->buf ? el_register(&m->kv->object, m->buf, bytes) : NULL;
	return m->mr ? 0 : error_set(-ENOMEM, "no memory to move a record");
}

/* A batch of which a list has come. -EAGAIN: another way. */
static int load_list(struct move *m, struct block_kv_batch_wire *head,
		     const struct block_result *r, uint32_t *length)
{
	struct el_object *o = &m->kv->object;
	uint8_t *out = el_stage(o, &m->key);
	int err = el_source_load(o, &m->source, r, out, length);

	m->at = out;
	if (!err)
		memcpy(head, out, sizeof(*head));
	return err;
}

static void drop_buf(struct move *m)
{
	if (m->mr)
		el_unregister(&m->kv->object, m->mr);
	free(m->buf);
}

/* Parts from one on, into memory; *length is that of the whole message. */
static int fetch(struct move *m, uint32_t part, bool with_list,
		 struct block_kv_batch_wire *head, uint32_t *length,
		 struct block_result *r)
{
	struct el_object *o = &m->kv->object;
	struct block_op op = {.opcode = BLOCK_KV_EXPORT,
			      .arg = part | (with_list ? BLOCK_KV_LIST : 0),
			      .length = sizeof(m->target),
			      .value = (const uint8_t *)&m->target};
	int err = tell(m->kv, m->from, &op, r, m->deadline_ns);

	if (!err && r->status == BLOCK_TOO_LONG) {
		err = make_buf(m);
		if (err)
			return err;
		op.address = (uintptr_t)m->buf + HEAD;
		op.key = m->mr->rkey;
		op.room = (uint32_t)o->block_bytes;
		err = tell(m->kv, m->from, &op, r, m->deadline_ns);
	}
	if (err || r->status != BLOCK_OK)
		return err;
	if (with_list && r->value == BLOCK_KV_LISTED)
		return load_list(m, head, r, length);
	err = make_buf(m);
	if (err)
		return err;
	m->at = m->buf;
	m->key = m->mr->rkey;
	if (r->length > o->block_bytes || (!r->value && r->length < HEAD))
		return error_set(-EPROTO, "a node answered something else");
	*length = r->length;
	if (r->value == BLOCK_KV_WHOLE && r->data) {
		memcpy(m->buf, r->data, r->length);
		memcpy(head, m->buf, sizeof(*head));
		return 0;
	}
	/* A record alone: its head is ours. */
	if (r->data)
		memcpy(m->buf + HEAD, r->data, r->length);
	head->first = be32_put(part);
	head->answers = be32_put(0);
	head->records = be32_put(1);
	memcpy(m->buf, head, sizeof(*head));
	*length += HEAD;
	return 0;
}

static int bring(struct move *m, uint32_t length, struct block_result *r)
{
	struct block_op op = {
		.opcode = BLOCK_KV_IMPORT,
		.arg = (uint64_t)m->token << 32 |
		       (m->batch & (BLOCK_KV_HAS - 1)),
		.address = (uintptr_t)m->at,
		.key = m->key,
		.length = length,
	};

	return tell(m->kv, m->to, &op, r, m->deadline_ns);
}

/* One batch, until the target has decided. *status is what the source or the
 * target said. */
static int carry(struct move *m, enum block_status *status, bool *is_source)
{
	struct block_kv_batch_wire head = {0};
	struct block_result r = {0};
	uint32_t part = 0, length = 0;
	unsigned tries = 0;

	for (;;) {
		bool with_list = el_source_is_mapped(&m->kv->object, &m->source,
						     m->deadline_ns);
		int err = fetch(m, part, with_list, &head, &length, &r);

		if (err == -EAGAIN)
			err = fetch(m, part, false, &head, &length, &r);
		*status = r.status;
		*is_source = true;
		if (err || r.status == BLOCK_STALE)
			return err;
		if (r.status == BLOCK_OK) {
			m->batch = be64_get(head.number);
			err = bring(m, length, &r);
			*status = r.status;
			*is_source = false;
			if (err || r.status != BLOCK_OK ||
			    r.value == BLOCK_KV_DONE)
				return err;
			part = (uint32_t)r.value;
			tries = 0;
		} else if (r.status != BLOCK_LATER ||
			   !el_pause(&tries, m->deadline_ns)) {
			return el_error(&m->kv->object, r.status);
		}
	}
}

/* Until the source has no more to give, or the target takes no more. */
static int drive(struct move *m)
{
	bool has_more = true;
	int err = 0;

	while (has_more && !err) {
		enum block_status status;
		struct block_result r = {0};
		bool is_source, has;

		err = carry(m, &status, &is_source);
		if (err || (is_source && status == BLOCK_STALE))
			break; /* or somebody has ended it */
		has = status == BLOCK_OK;
		if (!has && status != BLOCK_REFUSED && status != BLOCK_STALE) {
			err = el_error(&m->kv->object, status);
			break;
		}
		err = tell_arg(m->kv, m->from, BLOCK_KV_SETTLE,
			       (m->batch & (BLOCK_KV_HAS - 1)) |
				       (has ? BLOCK_KV_HAS : 0),
			       &m->target, &r, m->deadline_ns);
		has_more = r.status == BLOCK_OK && r.value;
		if (!err && el_now_ns() >= m->deadline_ns)
			err = error_set(-ETIMEDOUT,
					"a block of %s was not split in time",
					m->kv->object.path);
	}
	m->kv->look_count = 0;
	return err;
}

static int run(struct aq_ekv *kv, uint64_t from, uint64_t to,
	       uint64_t generation, uint32_t token, uint64_t deadline_ns)
{
	struct move m = {.kv = kv,
			 .from = from,
			 .to = to,
			 .token = token,
			 .target = {.number = be64_put(to),
				    .generation = be64_put(generation),
				    .token = be32_put(token)},
			 .source = {.number = from},
			 .deadline_ns = deadline_ns};
	int err = drive(&m);

	drop_buf(&m);
	return err;
}

/* ---- what others left ---------------------------------------------------- */

static bool is_in_map(struct aq_ekv *kv, uint64_t number, uint64_t generation)
{
	const struct el_block *b = el_find(&kv->object, number);

	return b && b->generation == generation;
}

/* The block is bound: goes on, or unbinds it where its source is at rest. */
static int release(struct aq_ekv *kv, uint64_t number, uint64_t deadline_ns)
{
	struct el_look to, from;
	struct block_result r;
	int err = el_kv_look(kv, number, &to, deadline_ns);

	if (!err && to.from.generation)
		err = el_refresh(&kv->object, deadline_ns);
	if (err || !to.from.generation)
		return err == -ESTALE || err == -EAGAIN ? 0 : err;
	if (is_in_map(kv, to.from.number, to.from.generation)) {
		err = el_kv_look(kv, to.from.number, &from, deadline_ns);
		if (err && err != -ESTALE)
			return err == -EAGAIN ? 0 : err;
		if (!err && from.to.generation == to.generation &&
		    from.to.token == to.from.token)
			return run(kv, to.from.number, number, to.generation,
				   to.from.token, deadline_ns);
	}
	return tell_token(kv, number, BLOCK_KV_UNBIND, to.from.token,
			  to.decided & (BLOCK_KV_HAS - 1), &r, deadline_ns);
}

/*
 * The target of what the block has begun is not in the map: it was unbound and
 * given back before the word to start came here. So it has nothing of the batch
 * under way, which stays; it takes none any more, and the move is over.
 */
static int give_up(struct aq_ekv *kv, const struct el_look *from,
		   uint64_t deadline_ns)
{
	struct move m = {.kv = kv,
			 .from = from->number,
			 .target = {.number = be64_put(from->to.number),
				    .generation = be64_put(from->to.generation),
				    .token = be32_put(from->to.token)},
			 .deadline_ns = deadline_ns};
	struct block_kv_batch_wire head = {0};
	struct block_result r = {0};
	uint32_t length;
	int err = fetch(&m, 0, false, &head, &length, &r);

	/* It has ended, or cannot be now; who comes next finds out. */
	if (!err && r.status == BLOCK_OK)
		err = tell_arg(kv, m.from, BLOCK_KV_SETTLE,
			       be64_get(head.number) & (BLOCK_KV_HAS - 1),
			       &m.target, &r, deadline_ns);
	drop_buf(&m);
	return err;
}

int el_kv_help(struct aq_ekv *kv, uint64_t number, uint64_t deadline_ns)
{
	struct el_look look;
	int err = el_kv_look(kv, number, &look, deadline_ns);

	kv->look_count = 0;
	if (err)
		return err == -ESTALE || err == -EAGAIN ? 0 : err;
	if (look.from.generation)
		return release(kv, number, deadline_ns);
	if (!look.to.generation)
		return 0;
	if (!is_in_map(kv, look.to.number, look.to.generation)) {
		err = el_refresh(&kv->object, deadline_ns);
		if (err)
			return err;
		if (!is_in_map(kv, look.to.number, look.to.generation))
			return give_up(kv, &look, deadline_ns);
	}
	err = run(kv, number, look.to.number, look.to.generation, look.to.token,
		  deadline_ns);
	return err ? err : release(kv, look.to.number, deadline_ns);
}

/* ---- new ones ------------------------------------------------------------ */

/* 0 also where one of them is not free: *is_done says. */
static int move(struct aq_ekv *kv, const struct el_look *from,
		const struct el_look *to, bool is_bottom, bool is_all,
		bool *is_done, uint64_t deadline_ns)
{
	struct block_kv_end_wire end = {
		.number = be64_put(from->number),
		.generation = be64_put(from->generation),
		.is_bottom = be16_put(is_bottom),
		.is_all = be16_put(is_all),
	};
	struct block_result r;
	uint32_t token;
	int err = tell_arg(kv, to->number, BLOCK_KV_BIND, 0, &end, &r,
			   deadline_ns);

	*is_done = false;
	if (err || r.status != BLOCK_OK)
		return err;
	token = (uint32_t)r.value;
	end.number = be64_put(to->number);
	end.generation = be64_put(to->generation);
	end.token = be32_put(token);
	err = tell_arg(kv, from->number, BLOCK_KV_START, 0, &end, &r,
		       deadline_ns);
	if (!err && r.status == BLOCK_OK) {
		*is_done = true;
		err = run(kv, from->number, to->number, to->generation, token,
			  deadline_ns);
	}
	return err ? err : release(kv, to->number, deadline_ns);
}

/* A block that has nothing and is nobody's; or one more. One that somebody has
 * bound for the same source, and not used since, is set free. */
static int find_spare(struct aq_ekv *kv, const struct el_look *from,
		      struct el_look *out, uint64_t deadline_ns)
{
	struct el_object *o = &kv->object;
	unsigned tries = 0;

	for (;;) {
		bool comes;
		int err = el_kv_look_all(kv, deadline_ns);

		if (err)
			return err;
		/* One that its node has not made yet. */
		comes = kv->look_count < o->block_count;
		for (unsigned i = 0; i < kv->look_count; i++) {
			*out = kv->look[i];
			if (out->lo != out->hi || out->to.generation)
				continue;
			if (!out->from.generation)
				return 0;
			if (out->from.generation != from->generation)
				continue;
			comes = true;
			err = tries < PATIENCE
				      ? 0
				      : release(kv, out->number, deadline_ns);
			if (err)
				return err;
			break;
		}
		if (!comes) {
			err = el_grow(o, o->block[o->block_count - 1].number, 1,
				      deadline_ns);
			if (err)
				return err;
		}
		if (!el_pause(&tries, deadline_ns))
			return error_set(-ETIMEDOUT, "%s did not grow in time",
					 o->path);
	}
}

int el_kv_split(struct aq_ekv *kv, uint64_t number, uint64_t deadline_ns)
{
	struct el_look from, to;
	bool is_done;
	int err = el_kv_look(kv, number, &from, deadline_ns);

	if (err)
		return err == -ESTALE || err == -EAGAIN ? 0 : err;
	if (from.to.generation || from.from.generation)
		return el_kv_help(kv, number, deadline_ns);
	if (from.hi - from.lo < 2)
		return error_set(-ENOSPC,
				 "a block of %s is full of keys that cannot be "
				 "parted; larger blocks would help",
				 kv->object.path);
	err = find_spare(kv, &from, &to, deadline_ns);
	if (!err)
		err = move(kv, &from, &to, false, false, &is_done, deadline_ns);
	return err;
}

static const struct el_look *neighbour(const struct aq_ekv *kv,
				       const struct el_look *of)
{
	const struct el_look *best = NULL;

	for (unsigned i = 0; i < kv->look_count; i++) {
		const struct el_look *l = &kv->look[i];

		if (l->lo == l->hi || l->from.generation || l->to.generation ||
		    (l->lo != of->hi && l->hi != of->lo) ||
		    (l->used + of->used) * 1000 > l->room * EL_EKV_MERGED)
			continue;
		if (!best || l->used < best->used)
			best = l;
	}
	return best;
}

/* Blocks that have nothing are not kept. */
static int give_back(struct aq_ekv *kv, uint64_t deadline_ns)
{
	int err = el_kv_look_all(kv, deadline_ns);

	for (unsigned i = 0; i < kv->look_count && !err; i++) {
		const struct el_look *l = &kv->look[i];
		struct block_op op = {.opcode = BLOCK_SEAL};
		struct block_result r;

		if (l->lo == l->hi && !l->from.generation && !l->to.generation)
			err = tell(kv, l->number, &op, &r, deadline_ns);
	}
	return err;
}

int el_kv_merge(struct aq_ekv *kv, uint64_t number, uint64_t deadline_ns)
{
	const struct el_look *to;
	struct el_look from = {0};
	bool is_done;
	int err = el_kv_look_all(kv, deadline_ns);

	for (unsigned i = 0; i < kv->look_count && !err; i++)
		if (kv->look[i].number == number)
			from = kv->look[i];
	if (err || from.lo == from.hi)
		return err;
	if (from.to.generation || from.from.generation)
		return el_kv_help(kv, number, deadline_ns);
	to = from.used * 1000 < from.room * EL_EKV_LOW ? neighbour(kv, &from)
						       : NULL;
	if (!to)
		return 0;
	err = move(kv, &from,
		   &(struct el_look){.number = to->number,
				     .generation = to->generation},
		   to->hi == from.lo, true, &is_done, deadline_ns);
	return err || !is_done ? err : give_back(kv, deadline_ns);
}
