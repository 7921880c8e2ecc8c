/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that a mover reads itself from a mapped block, whose heap is
 * compacted before, in the middle of and after that. */
#include <errno.h>
#include <stdio.h>

#include <aquifer/aqdv.h>

#include "blk_rig.h"
#include "elastic/el_ekv_priv.h"

enum {
	BYTES = 64 << 10,
	KEYS = 120,
	VALUE = 200,
};

static struct blk_rig source, target;
static uint64_t sequence;
/* Reads left until the source is compacted; 0: it is not. */
static unsigned compact_at;
static uint32_t token;

/* ---- the ways to the node ------------------------------------------------ */

static struct el_block known = {.number = 3};
static struct client_link link_there;
static struct el_port port = {.link = &link_there};

struct el_block *el_find(struct el_object *o, uint64_t number)
{
	return &known;
}

int el_port_find(struct el_object *o, const char *name, struct el_port **out)
{
	*out = &port;
	return 0;
}

int el_stat(struct el_object *o, uint64_t number, struct el_stat *out,
	    enum block_status *status, uint64_t deadline_ns)
{
	*out = (struct el_stat){.address = (uintptr_t)source.mem, .key = 1};
	*status = BLOCK_OK;
	return 0;
}

static void compact(void);

int aqdv_read_now(struct ibv_qp *qp, const struct aqdv_read *reads,
		  unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (compact_at && !--compact_at)
			compact();
		memcpy(reads[i].to, (void *)(uintptr_t)reads[i].remote_addr,
		       reads[i].len_bytes);
	}
	return (int)count;
}

/* ---- keys ---------------------------------------------------------------- */

static void value_of(unsigned key, char out[VALUE])
{
	memset(out, 'a' + key % 26, VALUE);
	snprintf(out, VALUE, "value of %u", key);
}

static struct blk_answer ask(struct blk_rig *rig, enum block_opcode opcode,
			     const char *key, const char *value)
{
	uint8_t buf[sizeof(struct block_kv_wire) + 16 + VALUE];
	uint32_t key_bytes = (uint32_t)strlen(key);
	uint32_t value_bytes = value ? VALUE : 0;
	struct block_kv_wire head = {.version = be64_put(BLOCK_KV_ANY),
				     .key_bytes = be32_put(key_bytes),
				     .value_bytes = be32_put(value_bytes)};

	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), key, key_bytes);
	if (value)
		memcpy(buf + sizeof(head) + key_bytes, value, VALUE);
	sequence += opcode != BLOCK_KV_GET;
	return blk_rig_do(
		rig, 1,
		(struct blk_request){
			.opcode = opcode,
			.sequence = opcode == BLOCK_KV_GET ? 0 : sequence,
			.acked = sequence - 1,
			.arg = block_kv_slot(block_kv_hash(key, key_bytes)),
			.length = (uint32_t)sizeof(head) + key_bytes +
				  value_bytes,
			.value = buf,
			.inside_room = BLOCK_REPLY_MAX - 100});
}

static void key_of(unsigned key, char out[16])
{
	snprintf(out, 16, "key%u", key);
}

/* Records of slots that stay are replaced until the heap is full. */
static void compact(void)
{
	uint64_t before = source.block.ekv.moves;
	char key[16], value[VALUE];

	for (unsigned i = 0; source.block.ekv.moves == before; i++) {
		assert_true(i < 100 * KEYS);
		key_of(i % KEYS, key);
		value_of(i % KEYS, value);
		(void)ask(&source, BLOCK_KV_PUT, key, value);
	}
}

static struct blk_answer tell(struct blk_rig *rig, enum block_opcode opcode,
			      const struct blk_rig *other, uint64_t arg)
{
	struct block_kv_end_wire w = {.generation =
					      be64_put(other->block.generation),
				      .token = be32_put(token)};

	return blk_rig_do(
		rig, 9,
		(struct blk_request){.opcode = opcode,
				     .arg = arg,
				     .length = sizeof(w),
				     .value = (uint8_t *)&w,
				     .inside_room = BLOCK_REPLY_MAX - 100});
}

/* ---- moving -------------------------------------------------------------- */

static int set_up(void **state)
{
	char key[16], value[VALUE];

	blk_rig_make(&source, BLOCK_EKV, BYTES, 0, true);
	blk_rig_make(&target, BLOCK_EKV, BYTES, 0, false);
	target.block.generation++;
	for (unsigned i = 0; i < KEYS; i++) {
		key_of(i, key);
		value_of(i, value);
		assert_int_equal(ask(&source, BLOCK_KV_PUT, key, value).status,
				 BLOCK_OK);
	}
	/* Room below the others, so that they slide. */
	for (unsigned i = 0; i < KEYS; i += 7) {
		key_of(i, key);
		assert_int_equal(
			ask(&source, BLOCK_KV_DELETE, key, NULL).status,
			BLOCK_OK);
	}
	token = (uint32_t)tell(&target, BLOCK_KV_BIND, &source, 0).value;
	assert_int_equal(token, 1);
	assert_int_equal(tell(&source, BLOCK_KV_START, &target, 0).status,
			 BLOCK_OK);
	compact_at = 0;
	return 0;
}

static int tear_down(void **state)
{
	blk_rig_free(&source);
	blk_rig_free(&target);
	return 0;
}

static struct block_result export(uint64_t how)
{
	struct blk_answer a = tell(&source, BLOCK_KV_EXPORT, &target, how);

	assert_int_equal(a.status, BLOCK_OK);
	return (struct block_result){.status = a.status,
				     .value = a.value,
				     .length = a.length,
				     .data = a.data};
}

static int load(uint8_t *out, uint32_t *length)
{
	static uint8_t answer[BLOCK_REPLY_MAX];
	struct el_object o = {.block_bytes = BYTES};
	struct el_source s = {.number = 3};
	struct block_result r;

	assert_true(el_source_is_mapped(&o, &s, 0));
	r = export(BLOCK_KV_LIST);
	assert_int_equal(r.value, BLOCK_KV_LISTED);
	/* It was sent, and its place is used again. */
	memcpy(answer, r.data, r.length);
	r.data = answer;
	return el_source_load(&o, &s, &r, out, length);
}

static void bring(const uint8_t *batch, uint32_t length)
{
	struct block_kv_batch_wire head;
	struct blk_answer a;

	memcpy(&head, batch, sizeof(head));
	a = blk_rig_do(&target, 9,
		       (struct blk_request){.opcode = BLOCK_KV_IMPORT,
					    .arg = (uint64_t)token << 32 |
						   be64_get(head.number),
					    .length = length,
					    .value = batch});
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.value, BLOCK_KV_DONE);
	assert_int_equal(tell(&source, BLOCK_KV_SETTLE, &target,
			      be64_get(head.number) | BLOCK_KV_HAS)
				 .status,
			 BLOCK_OK);
}

/* Every key is in the block that has its slot, as it was put. */
static void assert_all(void)
{
	char key[16], value[VALUE];
	unsigned moved = 0, there = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		struct blk_answer a;

		key_of(i, key);
		value_of(i, value);
		a = ask(&target, BLOCK_KV_GET, key, NULL);
		moved += a.status == BLOCK_OK;
		if (a.status == BLOCK_MOVED)
			a = ask(&source, BLOCK_KV_GET, key, NULL);
		assert_true(a.status == BLOCK_OK || a.status == BLOCK_NO_KEY);
		if (a.status != BLOCK_OK)
			continue;
		there++;
		assert_int_equal(a.length, VALUE);
		assert_memory_equal(a.data, value, VALUE);
	}
	assert_true(moved > 2);
	assert_true(there >= KEYS - KEYS / 7 - 1);
}

static void a_batch_is_read(void **state)
{
	static uint8_t out[EL_STAGING_BYTES];
	uint32_t length = 0;

	assert_int_equal(load(out, &length), 0);
	bring(out, length);
	assert_all();
}

/* Wherever the heap is compacted while a list is read: what was read does not
 * count, and the next list, or the batch itself, has all. */
static void a_list_of_a_compacted_heap_does_not_count(void **state)
{
	static uint8_t out[EL_STAGING_BYTES];
	uint64_t moves = source.block.ekv.moves;
	uint32_t length = 0, records;
	struct block_result r = export(BLOCK_KV_LIST);
	struct block_kv_batch_wire head;

	memcpy(&head, r.data, sizeof(head));
	records = be32_get(head.records);
	assert_true(records > 2);
	/* The first read is of the head, before the list; one of the head again
	 * comes last. */
	for (unsigned at = 2; at <= records + 2; at++) {
		compact_at = at;
		assert_int_equal(load(out, &length), -EAGAIN);
		assert_int_equal(source.block.ekv.moves, ++moves);
	}
	/* By the next list. */
	assert_int_equal(load(out, &length), 0);
	bring(out, length);
	assert_all();
	/* The next batch, as one. */
	compact_at = 2;
	assert_int_equal(load(out, &length), -EAGAIN);
	r = export(0);
	assert_int_equal(r.value, BLOCK_KV_WHOLE);
	memcpy(out, r.data, r.length);
	bring(out, r.length);
	assert_all();
}

/* A list names places of the copy that has made it. */
static void a_list_of_another_copy_does_not_count(void **state)
{
	static uint8_t out[EL_STAGING_BYTES];
	struct el_object o = {.block_bytes = BYTES};
	struct el_source s = {.number = 3,
			      .address = (uintptr_t)source.mem + 8};
	struct block_result r = export(BLOCK_KV_LIST);
	uint32_t length = 0;

	assert_int_equal(el_source_load(&o, &s, &r, out, &length), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_batch_is_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_list_of_a_compacted_heap_does_not_count, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_list_of_another_copy_does_not_count, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
