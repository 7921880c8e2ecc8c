/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a key-value store: what is done to keys, and slots that move. */
#include <stdio.h>

#include "blk_rig.h"

#include "base/rng.h"

enum {
	BYTES = 64 << 10,
};

static uint64_t next_sequence = 1;

/* A request about a key; the value is `extra` bytes of one letter. */
static struct blk_answer ask(struct blk_rig *rig, unsigned client,
			     enum block_opcode opcode, const char *key,
			     uint64_t version, const void *value,
			     uint32_t value_bytes, uint64_t how,
			     uint64_t sequence)
{
	static uint8_t buf[BYTES];
	uint32_t key_bytes = (uint32_t)strlen(key);
	struct block_kv_wire head = {.version = be64_put(version),
				     .key_bytes = be32_put(key_bytes),
				     .value_bytes = be32_put(value_bytes)};
	struct blk_request r = {
		.opcode = opcode,
		.sequence = sequence,
		.acked = sequence > 64 ? sequence - 64 : 0,
		.arg = block_kv_slot(block_kv_hash(key, key_bytes)) |
		       how << BLOCK_KV_HOW_SHIFT,
		.length = (uint32_t)sizeof(head) + key_bytes + value_bytes,
		.value = buf,
		.inside_room = BLOCK_REPLY_MAX - 100,
		.buffer_bytes = BYTES,
	};

	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), key, key_bytes);
	if (value_bytes)
		memcpy(buf + sizeof(head) + key_bytes, value, value_bytes);
	return blk_rig_do(rig, client, r);
}

static struct blk_answer put(struct blk_rig *rig, const char *key,
			     const char *value)
{
	return ask(rig, 1, BLOCK_KV_PUT, key, BLOCK_KV_ANY, value,
		   (uint32_t)strlen(value), 0, next_sequence++);
}

static void assert_value(struct blk_rig *rig, const char *key,
			 const char *value)
{
	struct blk_answer a = ask(rig, 1, BLOCK_KV_GET, key, 0, NULL, 0, 0, 0);

	if (!value) {
		assert_int_equal(a.status, BLOCK_NO_KEY);
		return;
	}
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.length, strlen(value));
	assert_memory_equal(a.data, value, a.length);
}

static void compares_versions(void **state)
{
	struct blk_answer a, c;
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	assert_value(&rig, "k", NULL);
	a = ask(&rig, 1, BLOCK_KV_PUT, "k", 5, "x", 1, 0, next_sequence++);
	assert_int_equal(a.status, BLOCK_VERSION);
	assert_int_equal(a.value, 0);
	a = ask(&rig, 1, BLOCK_KV_PUT, "k", 0, "x", 1, 0, next_sequence++);
	assert_int_equal(a.status, BLOCK_OK);
	c = ask(&rig, 1, BLOCK_KV_PUT, "k", 0, "y", 1, 0, next_sequence++);
	assert_int_equal(c.status, BLOCK_VERSION);
	assert_int_equal(c.value, a.value);
	c = ask(&rig, 1, BLOCK_KV_PUT, "k", a.value, "z", 1, 0,
		next_sequence++);
	assert_int_equal(c.status, BLOCK_OK);
	assert_true(c.value > a.value);
	assert_value(&rig, "k", "z");
	a = ask(&rig, 1, BLOCK_KV_DELETE, "k", a.value, NULL, 0, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_VERSION);
	a = ask(&rig, 1, BLOCK_KV_DELETE, "k", c.value, NULL, 0, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_OK);
	a = ask(&rig, 1, BLOCK_KV_DELETE, "k", BLOCK_KV_ANY, NULL, 0, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_NO_KEY);
	/* A key that is made anew never has a version that it had. */
	a = put(&rig, "k", "q");
	assert_true(a.value > c.value);
	blk_rig_free(&rig);
}

static void repeats_answers_in_any_order(void **state)
{
	struct blk_answer a, b;
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	a = ask(&rig, 2, BLOCK_KV_ADD, "n", 0, "\5\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 12);
	assert_int_equal(a.value, 5);
	/* An older number that another block had refused. */
	b = ask(&rig, 2, BLOCK_KV_ADD, "n", 0, "\1\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 11);
	assert_int_equal(b.value, 6);
	a = ask(&rig, 2, BLOCK_KV_ADD, "n", 0, "\5\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 12);
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.value, 5);
	b = ask(&rig, 2, BLOCK_KV_ADD, "n", 0, "\1\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 11);
	assert_int_equal(b.value, 6);
	/* Number 100 says that all up to 36 are acknowledged. */
	a = ask(&rig, 2, BLOCK_KV_ADD, "n", 0, "\1\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 100);
	assert_int_equal(a.value, 7);
	b = ask(&rig, 2, BLOCK_KV_ADD, "n", 0, "\1\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 11);
	assert_int_equal(b.status, BLOCK_STALE);
	blk_rig_free(&rig);
}

static void accumulates(void **state)
{
	static const struct {
		enum block_kv_how how;
		int64_t add, is;
	} rows[] = {
		{BLOCK_KV_SUM, 7, 7},	{BLOCK_KV_SUM, -9, -2},
		{BLOCK_KV_MIN, 3, -2},	{BLOCK_KV_MIN, -5, -5},
		{BLOCK_KV_MAX, -9, -5}, {BLOCK_KV_MAX, 8, 8},
	};
	struct blk_answer a;
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		le64 n = le64_put((uint64_t)rows[i].add);

		a = ask(&rig, 1, BLOCK_KV_ADD, "n", 0, &n, sizeof(n),
			rows[i].how, next_sequence++);
		assert_int_equal(a.status, BLOCK_OK);
		assert_int_equal((int64_t)a.value, rows[i].is);
	}
	a = ask(&rig, 1, BLOCK_KV_ADD, "t", 0, "ab", 2, BLOCK_KV_APPEND,
		next_sequence++);
	assert_int_equal(a.value, 2);
	a = ask(&rig, 1, BLOCK_KV_ADD, "t", 0, "cd", 2, BLOCK_KV_APPEND,
		next_sequence++);
	assert_int_equal(a.value, 4);
	assert_value(&rig, "t", "abcd");
	a = ask(&rig, 1, BLOCK_KV_ADD, "t", 0, "\1\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, next_sequence++);
	assert_int_equal(a.status, BLOCK_NO_NUMBER);
	a = ask(&rig, 1, BLOCK_KV_ADD, "n", 0, "abc", 3, BLOCK_KV_SUM,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_NO_NUMBER);
	a = ask(&rig, 1, BLOCK_KV_ADD, "n", 0, "abc", 3, BLOCK_KV_HOWS,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_BAD);
	blk_rig_free(&rig);
}

static void refuses_what_no_client_sends(void **state)
{
	static char key[BYTES];
	struct blk_answer a;
	struct blk_rig rig;
	struct blk_request r = {.opcode = BLOCK_KV_GET, .value = (void *)key};

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	for (r.length = 0; r.length < 16; r.length++)
		assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_BAD);
	r.length = 16;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_BAD);
	/* A key in another slot than it says. */
	r.length = 17;
	key[11] = 1;
	r.arg = block_kv_slot(block_kv_hash(key + 16, 1)) ^ 1;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_BAD);
	memset(key, 'k', block_kv_key_max(BYTES) + 1);
	a = ask(&rig, 1, BLOCK_KV_PUT, key, BLOCK_KV_ANY, "", 0, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_TOO_LONG);
	key[block_kv_key_max(BYTES)] = 0;
	a = ask(&rig, 1, BLOCK_KV_PUT, key, BLOCK_KV_ANY, "", 0, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_OK);
	r = (struct blk_request){.opcode = BLOCK_KV_PUT,
				 .sequence = next_sequence++,
				 .length = BYTES};
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_TOO_LONG);
	r.opcode = BLOCK_APPEND;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_BAD);
	blk_rig_free(&rig);
}

static void has_the_largest_value_and_no_larger(void **state)
{
	static uint8_t value[BYTES];
	uint32_t most = (uint32_t)block_kv_value_max(BYTES, 1);
	struct blk_answer a;
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	a = ask(&rig, 1, BLOCK_KV_PUT, "k", BLOCK_KV_ANY, value, most, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_OK);
	a = ask(&rig, 1, BLOCK_KV_PUT, "l", BLOCK_KV_ANY, value, 100, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_NO_ROOM);
	a = ask(&rig, 1, BLOCK_KV_DELETE, "k", BLOCK_KV_ANY, NULL, 0, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_OK);
	a = ask(&rig, 1, BLOCK_KV_PUT, "l", BLOCK_KV_ANY, value, most + 16, 0,
		next_sequence++);
	assert_int_equal(a.status, BLOCK_TOO_LONG);
	blk_rig_free(&rig);
}

/* What leaves for a client stays as it is while the rest is compacted. */
static void pinned_bytes_stay(void **state)
{
	static uint8_t value[8000], other[8000];
	struct blk_answer a, got;
	struct blk_rig rig;

	memset(value, 'a', sizeof(value));
	memset(other, 'b', sizeof(other));
	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	(void)put(&rig, "before", "x");
	a = ask(&rig, 1, BLOCK_KV_PUT, "k", BLOCK_KV_ANY, value, sizeof(value),
		0, next_sequence++);
	assert_int_equal(a.status, BLOCK_OK);
	got = ask(&rig, 1, BLOCK_KV_GET, "k", 0, NULL, 0, 0, 0);
	assert_int_equal(got.length, sizeof(value));
	++*got.pins;
	for (unsigned i = 0; i < 40; i++) {
		a = ask(&rig, 1, BLOCK_KV_PUT, "k", BLOCK_KV_ANY, other,
			sizeof(other), 0, next_sequence++);
		assert_int_equal(a.status, BLOCK_OK);
		(void)put(&rig, "before", i % 2 ? "x" : "yy");
		assert_memory_equal(got.data, value, sizeof(value));
	}
	--*got.pins;
	assert_value(&rig, "before", "x");
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(ask(&rig, 1, BLOCK_KV_PUT, "k", BLOCK_KV_ANY,
				     other, sizeof(other), 0, next_sequence++)
					 .status,
				 BLOCK_OK);
	assert_true(rig.block.ekv.live < 9000);
	blk_rig_free(&rig);
}

/* ---- scanning ------------------------------------------------------------ */

/* All keys, in answers of at most that many bytes. */
static unsigned scan(struct blk_rig *rig, uint32_t room)
{
	uint8_t buf[4096] = {0};
	uint32_t key_bytes = 0;
	unsigned n = 0;
	uint64_t slot = 0;

	while (slot < BLOCK_KV_SLOTS) {
		struct block_kv_wire head = {.key_bytes = be32_put(key_bytes)};
		struct blk_request r = {
			.opcode = BLOCK_KV_SCAN,
			.arg = slot,
			.length = (uint32_t)sizeof(head) + key_bytes,
			.value = buf,
			.inside_room = room,
			.buffer_bytes = BYTES,
		};
		struct blk_answer a;

		memcpy(buf, &head, sizeof(head));
		a = blk_rig_do(rig, 1, r);
		assert_int_equal(a.status, BLOCK_OK);
		for (uint32_t at = 0; at < a.length; n++) {
			memcpy(&head, a.data + at, sizeof(head));
			key_bytes = be32_get(head.key_bytes);
			memcpy(buf + sizeof(head), a.data + at + sizeof(head),
			       key_bytes);
			at += (uint32_t)(sizeof(head) + align_up(key_bytes, 8));
		}
		if (a.value == BLOCK_KV_MORE) {
			slot = block_kv_slot(
				block_kv_hash(buf + sizeof(head), key_bytes));
		} else {
			slot = a.value;
			key_bytes = 0;
		}
	}
	return n;
}

static void scans_each_key_once(void **state)
{
	struct blk_rig rig;
	char key[600];

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, true);
	assert_int_equal(scan(&rig, 4000), 0);
	for (unsigned i = 0; i < 100; i++) {
		memset(key, 'a', sizeof(key));
		snprintf(key + 2 + i % 7 * 80, 20, "%u", i);
		assert_int_equal(put(&rig, key, "v").status, BLOCK_OK);
	}
	assert_int_equal(scan(&rig, 4000), 100);
	assert_int_equal(scan(&rig, 700), 100);
	assert_int_equal(scan(&rig, 100), 100);
	blk_rig_free(&rig);
}

/* ---- moving -------------------------------------------------------------- */

static struct blk_rig make_other(uint64_t generation)
{
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_EKV, BYTES, 0, false);
	rig.block.generation = generation;
	return rig;
}

static struct blk_answer tell_end(struct blk_rig *rig, enum block_opcode opcode,
				  const struct blk_rig *other, uint32_t token,
				  bool is_bottom, bool is_all)
{
	struct block_kv_end_wire w = {
		.generation = be64_put(other->block.generation),
		.token = be32_put(token),
		.is_bottom = be16_put(is_bottom),
		.is_all = be16_put(is_all),
	};

	return blk_rig_do(rig, 9,
			  (struct blk_request){.opcode = opcode,
					       .length = sizeof(w),
					       .value = (uint8_t *)&w});
}

static struct blk_answer tell(struct blk_rig *rig, enum block_opcode opcode,
			      uint32_t token, uint64_t low)
{
	/* Of what goes to the target, and of what is said to the source. */
	bool is_source = opcode == BLOCK_KV_EXPORT || opcode == BLOCK_KV_SETTLE;
	struct block_kv_end_wire w = {
		.generation = be64_put(rig->block.ekv.out.generation),
		.token = be32_put(token),
	};

	return blk_rig_do(
		rig, 9,
		(struct blk_request){
			.opcode = opcode,
			.arg = is_source ? low : (uint64_t)token << 32 | low,
			.length = is_source ? sizeof(w) : 0,
			.value = (uint8_t *)&w,
			.inside_room = BLOCK_REPLY_MAX - 100,
			.buffer_bytes = BYTES});
}

/* A batch of which there is a list; as movers put it together. */
static uint32_t load_list(const struct blk_rig *from,
			  const struct blk_answer *a,
			  struct block_kv_batch_wire *head, uint8_t *out)
{
	const struct block_head *block = (const void *)from->block.mem;
	struct block_kv_listed_wire w;
	uint32_t used, at;

	memcpy(head, a->data, sizeof(*head));
	assert_int_equal(be64_get(head->room[0]), (uintptr_t)from->block.mem);
	assert_int_equal(be64_get(head->room[1]), be64_get(block->moves));
	used = (uint32_t)sizeof(*head) +
	       be32_get(head->answers) *
		       (uint32_t)sizeof(struct block_kv_answer_wire);
	assert_int_equal(a->length, used + be32_get(head->records) * sizeof(w));
	memcpy(out, a->data, used);
	at = used;
	for (uint32_t i = 0; i < be32_get(head->records); i++) {
		memcpy(&w, a->data + at + i * sizeof(w), sizeof(w));
		memcpy(out + used, from->block.mem + 8ull * be32_get(w.at8),
		       be32_get(w.size));
		memset(out + used, 0xff, BLOCK_KV_OWN_BYTES);
		used += be32_get(w.size);
	}
	return used;
}

/* One batch of a move, from the source's part on; as movers do it. Every other
 * one is put together from a list. */
static struct blk_answer carry(struct blk_rig *from, struct blk_rig *to,
			       uint32_t token, uint64_t *batch)
{
	static uint8_t buf[2 * BYTES];
	struct block_kv_batch_wire head = {0};
	struct blk_answer a, b = {.value = 0};
	static unsigned turns;
	uint32_t length;

	for (;;) {
		a = tell(from, BLOCK_KV_EXPORT, token,
			 (uint32_t)b.value | (++turns % 2 ? BLOCK_KV_LIST : 0));
		if (a.status != BLOCK_OK)
			return a;
		if (a.value == BLOCK_KV_LISTED) {
			length = load_list(from, &a, &head, buf);
		} else if (a.value) { /* a record alone */
			memcpy(buf + sizeof(head), a.data, a.length);
			head.first = be32_put((uint32_t)b.value);
			head.answers = be32_put(0);
			head.records = be32_put(1);
			memcpy(buf, &head, sizeof(head));
			length = a.length + (uint32_t)sizeof(head);
		} else {
			memcpy(buf, a.data, a.length);
			memcpy(&head, buf, sizeof(head));
			length = a.length;
		}
		*batch = be64_get(head.number);
		b = blk_rig_do(to, 9,
			       (struct blk_request){
				       .opcode = BLOCK_KV_IMPORT,
				       .arg = (uint64_t)token << 32 | *batch,
				       .length = length,
				       .value = buf});
		if (b.status != BLOCK_OK || b.value == BLOCK_KV_DONE)
			return b;
	}
}

static void move(struct blk_rig *from, struct blk_rig *to, bool is_bottom,
		 bool is_all)
{
	uint32_t token;
	uint64_t batch;
	struct blk_answer a =
		tell_end(to, BLOCK_KV_BIND, from, 0, false, false);

	assert_int_equal(a.status, BLOCK_OK);
	token = (uint32_t)a.value;
	assert_int_equal(
		tell_end(from, BLOCK_KV_START, to, token, is_bottom, is_all)
			.status,
		BLOCK_OK);
	do {
		assert_int_equal(carry(from, to, token, &batch).status,
				 BLOCK_OK);
		a = tell(from, BLOCK_KV_SETTLE, token,
			 (uint32_t)(batch | BLOCK_KV_HAS));
		assert_int_equal(a.status, BLOCK_OK);
	} while (a.value);
	a = tell(to, BLOCK_KV_UNBIND, token, (uint32_t)batch);
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(to->block.ekv.in.generation, 0);
}

static void fill(struct blk_rig *rig, unsigned count)
{
	char key[20], value[200];

	memset(value, 'v', sizeof(value));
	for (unsigned i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		snprintf(value, sizeof(value), "value of %u", i);
		assert_int_equal(ask(rig, 1, BLOCK_KV_PUT, key, BLOCK_KV_ANY,
				     value, sizeof(value), 0, next_sequence++)
					 .status,
				 BLOCK_OK);
	}
}

/* In which of the blocks the key is, once. */
static unsigned where(struct blk_rig *rigs, unsigned count, const char *key)
{
	unsigned found = count;

	for (unsigned i = 0; i < count; i++) {
		struct blk_answer a =
			ask(&rigs[i], 1, BLOCK_KV_GET, key, 0, NULL, 0, 0, 0);

		if (a.status == BLOCK_MOVED)
			continue;
		assert_int_equal(a.status, BLOCK_OK);
		assert_int_equal(found, count);
		found = i;
	}
	assert_true(found < count);
	return found;
}

static void splits_by_bytes_and_merges(void **state)
{
	struct blk_rig rigs[3];
	char key[20];

	blk_rig_make(&rigs[0], BLOCK_EKV, BYTES, 0, true);
	rigs[1] = make_other(8);
	rigs[2] = make_other(9);
	fill(&rigs[0], 180);
	move(&rigs[0], &rigs[1], false, false);
	assert_true(rigs[0].block.ekv.live * 3 < rigs[1].block.ekv.live * 4);
	assert_true(rigs[1].block.ekv.live * 3 < rigs[0].block.ekv.live * 4);
	move(&rigs[1], &rigs[2], false, false);
	for (unsigned i = 0; i < 180; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		(void)where(rigs, 3, key);
	}
	assert_int_equal(rigs[0].block.ekv.hi, rigs[1].block.ekv.lo);
	assert_int_equal(rigs[1].block.ekv.hi, rigs[2].block.ekv.lo);
	/* Into the lower neighbour, and into the upper one. */
	move(&rigs[2], &rigs[1], true, true);
	move(&rigs[0], &rigs[1], false, true);
	assert_int_equal(rigs[1].block.ekv.items, 180);
	assert_int_equal(rigs[1].block.ekv.hi, BLOCK_KV_SLOTS);
	for (unsigned i = 0; i < 180; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		assert_int_equal(where(rigs, 3, key), 1);
	}
	assert_int_equal(tell(&rigs[1], BLOCK_SEAL, 0, 0).status,
			 BLOCK_NO_ROOM);
	for (unsigned i = 0; i < 3; i += 2) {
		assert_false(blk_is_drained(&rigs[i].block));
		assert_int_equal(tell(&rigs[i], BLOCK_SEAL, 0, 0).status,
				 BLOCK_OK);
		assert_true(blk_is_drained(&rigs[i].block));
		assert_int_equal(tell_end(&rigs[i], BLOCK_KV_BIND, &rigs[1], 0,
					  false, false)
					 .status,
				 BLOCK_CLOSED);
	}
	for (unsigned i = 0; i < 3; i++)
		blk_rig_free(&rigs[i]);
}

static void answers_and_versions_move_along(void **state)
{
	struct blk_rig rigs[2];
	struct blk_answer a, b;

	blk_rig_make(&rigs[0], BLOCK_EKV, BYTES, 0, true);
	rigs[1] = make_other(8);
	a = ask(&rigs[0], 3, BLOCK_KV_ADD, "n", 0, "\5\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 7);
	assert_int_equal(a.value, 5);
	move(&rigs[0], &rigs[1], false, true);
	b = ask(&rigs[1], 3, BLOCK_KV_ADD, "n", 0, "\5\0\0\0\0\0\0\0", 8,
		BLOCK_KV_SUM, 7);
	assert_int_equal(b.status, BLOCK_OK);
	assert_int_equal(b.value, 5);
	a = put(&rigs[1], "n", "x");
	assert_int_equal(a.value, 2);
	blk_rig_free(&rigs[0]);
	blk_rig_free(&rigs[1]);
}

static void large_records_move_alone(void **state)
{
	static uint8_t value[20000];
	struct blk_rig rigs[2];
	struct blk_answer a;

	blk_rig_make(&rigs[0], BLOCK_EKV, BYTES, 0, true);
	rigs[1] = make_other(8);
	memset(value, 'L', sizeof(value));
	(void)put(&rigs[0], "small", "s");
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ask(&rigs[0], 1, BLOCK_KV_PUT, i ? "l1" : "l0",
				     BLOCK_KV_ANY, value, sizeof(value), 0,
				     next_sequence++)
					 .status,
				 BLOCK_OK);
	move(&rigs[0], &rigs[1], true, true);
	assert_value(&rigs[1], "small", "s");
	for (unsigned i = 0; i < 2; i++) {
		a = ask(&rigs[1], 1, BLOCK_KV_GET, i ? "l1" : "l0", 0, NULL, 0,
			0, 0);
		assert_int_equal(a.length, sizeof(value));
		assert_memory_equal(a.data, value, sizeof(value));
	}
	blk_rig_free(&rigs[0]);
	blk_rig_free(&rigs[1]);
}

/* Nothing that comes late makes two blocks serve a slot. */
static void late_messages_do_nothing(void **state)
{
	struct blk_rig rigs[2];
	struct blk_answer a;
	uint64_t batch;
	uint32_t token;

	blk_rig_make(&rigs[0], BLOCK_EKV, BYTES, 0, true);
	rigs[1] = make_other(8);
	fill(&rigs[0], 100);
	token = (uint32_t)tell_end(&rigs[1], BLOCK_KV_BIND, &rigs[0], 0, false,
				   false)
			.value;
	/* One at a time, and not both ways. */
	assert_int_equal(
		tell_end(&rigs[1], BLOCK_KV_BIND, &rigs[0], 0, false, false)
			.status,
		BLOCK_REFUSED);
	assert_int_equal(
		tell_end(&rigs[1], BLOCK_KV_START, &rigs[0], 5, false, false)
			.status,
		BLOCK_REFUSED);
	assert_int_equal(tell(&rigs[0], BLOCK_KV_EXPORT, token, 0).status,
			 BLOCK_STALE);
	assert_int_equal(tell_end(&rigs[0], BLOCK_KV_START, &rigs[1], token,
				  false, false)
				 .status,
			 BLOCK_OK);
	/* A token of another target is not good. */
	assert_int_equal(tell_end(&rigs[0], BLOCK_KV_EXPORT, &rigs[0], token,
				  false, false)
				 .status,
			 BLOCK_STALE);
	/* Two movers carry the same batch. */
	a = carry(&rigs[0], &rigs[1], token, &batch);
	assert_int_equal(a.value, BLOCK_KV_DONE);
	a = carry(&rigs[0], &rigs[1], token, &batch);
	assert_int_equal(a.value, BLOCK_KV_DONE);
	assert_int_equal(rigs[1].block.ekv.items + rigs[0].block.ekv.items,
			 100 + rigs[1].block.ekv.items);
	/* Its slots are frozen until the source is told. */
	assert_int_equal(rigs[0].block.ekv.hi, BLOCK_KV_SLOTS);
	assert_true(rigs[0].block.ekv.out.is_frozen);
	/* Who has not seen the last batch does not unbind. */
	assert_int_equal(tell(&rigs[1], BLOCK_KV_UNBIND, token, 0).status,
			 BLOCK_REFUSED);
	a = tell(&rigs[0], BLOCK_KV_SETTLE, token,
		 (uint32_t)(batch | BLOCK_KV_HAS));
	assert_int_equal(a.value, 1);
	assert_int_equal(rigs[0].block.ekv.items + rigs[1].block.ekv.items,
			 100);
	/* Again, and the contrary, too late. */
	a = tell(&rigs[0], BLOCK_KV_SETTLE, token, (uint32_t)batch);
	assert_int_equal(a.value, 1);
	/* The next batch is given up: the source goes on. */
	a = tell(&rigs[0], BLOCK_KV_EXPORT, token, 0);
	assert_int_equal(a.status, BLOCK_OK);
	a = tell(&rigs[0], BLOCK_KV_SETTLE, token, (uint32_t)batch + 1);
	assert_int_equal(a.value, 0);
	assert_false(rigs[0].block.ekv.out.is_frozen);
	assert_int_equal(
		tell(&rigs[1], BLOCK_KV_UNBIND, token, (uint32_t)batch).status,
		BLOCK_OK);
	a = blk_rig_do(
		&rigs[1], 9,
		(struct blk_request){.opcode = BLOCK_KV_IMPORT,
				     .arg = (uint64_t)token << 32 | (batch + 1),
				     .length = 80,
				     .value = rigs[1].mem});
	assert_int_equal(a.status, BLOCK_STALE);
	blk_rig_free(&rigs[0]);
	blk_rig_free(&rigs[1]);
}

static void refuses_what_has_no_room(void **state)
{
	struct blk_rig rigs[2];
	struct blk_answer a;
	uint64_t batch;
	uint32_t token;

	blk_rig_make(&rigs[0], BLOCK_EKV, BYTES, 0, true);
	rigs[1] = make_other(8);
	fill(&rigs[0], 180);
	move(&rigs[0], &rigs[1], false, false);
	/* The upper one is filled up. */
	for (unsigned i = 0; i < 4000; i++) {
		char key[20];

		snprintf(key, sizeof(key), "more%u", i);
		a = put(&rigs[1], key, "0123456789");
		assert_true(a.status == BLOCK_OK || a.status == BLOCK_MOVED ||
			    a.status == BLOCK_NO_ROOM);
	}
	token = (uint32_t)tell_end(&rigs[1], BLOCK_KV_BIND, &rigs[0], 0, false,
				   false)
			.value;
	assert_int_equal(
		tell_end(&rigs[0], BLOCK_KV_START, &rigs[1], token, false, true)
			.status,
		BLOCK_OK);
	a = carry(&rigs[0], &rigs[1], token, &batch);
	assert_int_equal(a.status, BLOCK_REFUSED);
	/* And never later. */
	a = ask(&rigs[1], 1, BLOCK_KV_DELETE, "more1", BLOCK_KV_ANY, NULL, 0, 0,
		next_sequence++);
	a = carry(&rigs[0], &rigs[1], token, &batch);
	assert_int_equal(a.status, BLOCK_REFUSED);
	a = tell(&rigs[0], BLOCK_KV_SETTLE, token, (uint32_t)batch);
	assert_int_equal(a.value, 0);
	blk_rig_free(&rigs[0]);
	blk_rig_free(&rigs[1]);
}

/* Any bytes as a batch are refused, and what is accepted is sound. */
static void takes_no_damaged_batch(void **state)
{
	static uint8_t good[BYTES], bad[BYTES];
	struct rng rng;
	unsigned accepted = 0;

	rng_init(&rng, 5);
	for (unsigned i = 0; i < 400; i++) {
		struct blk_rig rigs[2];
		struct blk_answer a;
		uint32_t n;

		blk_rig_make(&rigs[0], BLOCK_EKV, BYTES, 0, true);
		rigs[1] = make_other(8);
		fill(&rigs[0], 5);
		(void)tell_end(&rigs[1], BLOCK_KV_BIND, &rigs[0], 0, false,
			       false);
		(void)tell_end(&rigs[0], BLOCK_KV_START, &rigs[1], 1, false,
			       true);
		a = tell(&rigs[0], BLOCK_KV_EXPORT, 1, 0);
		n = a.length;
		memcpy(good, a.data, n);
		memcpy(bad, good, n);
		for (unsigned k = (unsigned)rng_below(&rng, 4); k; k--)
			bad[rng_below(&rng, n)] = (uint8_t)rng_u64(&rng);
		if (rng_below(&rng, 4) == 0)
			n = (uint32_t)rng_below(&rng, n) & ~7u;
		a = blk_rig_do(&rigs[1], 9,
			       (struct blk_request){.opcode = BLOCK_KV_IMPORT,
						    .arg = 1ull << 32 | 1,
						    .length = n,
						    .value = bad});
		accepted += a.status == BLOCK_OK;
		/* Whatever it was, the source has it all still. */
		(void)tell(&rigs[0], BLOCK_KV_SETTLE, 1, 1);
		assert_int_equal(scan(&rigs[0], 4000), 5);
		blk_rig_free(&rigs[0]);
		blk_rig_free(&rigs[1]);
	}
	assert_true(accepted > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares_versions),
		cmocka_unit_test(repeats_answers_in_any_order),
		cmocka_unit_test(accumulates),
		cmocka_unit_test(refuses_what_no_client_sends),
		cmocka_unit_test(has_the_largest_value_and_no_larger),
		cmocka_unit_test(pinned_bytes_stay),
		cmocka_unit_test(scans_each_key_once),
		cmocka_unit_test(splits_by_bytes_and_merges),
		cmocka_unit_test(answers_and_versions_move_along),
		cmocka_unit_test(large_records_move_alone),
		cmocka_unit_test(late_messages_do_nothing),
		cmocka_unit_test(refuses_what_has_no_room),
		cmocka_unit_test(takes_no_damaged_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
