/* SPDX-License-Identifier: Apache-2.0 */
/* Images of blocks: what comes back is what was there, and what is damaged does
 * not come back. */
#include <errno.h>

#include "blk_image.h"
#include "blk_rig.h"

enum {
	SIZE = BLOCK_BYTES_MIN,
};

static const struct blk_image_id id = {.object = 5, .image = 9, .number = 3};

/* The image as bytes, which the caller frees. */
static uint8_t *bytes_of(const struct blk_rig *rig, size_t *len)
{
	struct blk_image image;
	uint8_t *bytes;

	assert_int_equal(blk_image_take(&rig->block, &id, &image), 0);
	blk_image_sum(&image);
	*len = sizeof(image.head) + image.bytes;
	bytes = malloc(*len);
	assert_non_null(bytes);
	memcpy(bytes, &image.head, sizeof(image.head));
	memcpy(bytes + sizeof(image.head), image.payload, image.bytes);
	blk_image_release(&image);
	return bytes;
}

static int load(struct blk_rig *rig, enum block_kind kind, const uint8_t *bytes,
		size_t len)
{
	struct blk_image image;
	int err = blk_image_parse(bytes, len, &id, &image);

	blk_rig_make(rig, kind, SIZE, 0, false);
	return err ? err : blk_image_load(&rig->block, &image);
}

static struct blk_answer get(struct blk_rig *rig, uint64_t sequence)
{
	return blk_rig_do(rig, 2,
			  (struct blk_request){.opcode = BLOCK_GET,
					       .sequence = sequence,
					       .acked = sequence - 1});
}

static void a_file_goes_on_where_it_was(void **state)
{
	struct blk_rig rig, copy;
	struct blk_request r = {.opcode = BLOCK_APPEND,
				.sequence = 1,
				.arg = 4096,
				.length = 3,
				.value = (const uint8_t *)"abc"};
	struct blk_answer a;
	uint8_t *bytes;
	size_t len;

	(void)state;
	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, false);
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	bytes = bytes_of(&rig, &len);
	assert_int_equal(load(&copy, BLOCK_FILE, bytes, len), 0);
	assert_memory_equal(copy.mem + BLOCK_HEAD_BYTES, "abc", 3);
	/* Its start is known: another one is refused. */
	r.arg = 0;
	assert_int_equal(blk_rig_do(&copy, 1, r).status, BLOCK_STALE);
	r.arg = 4096;
	a = blk_rig_do(&copy, 1, r);
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.value, 3);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

static void a_sealed_block_stays_sealed(void **state)
{
	struct blk_rig rig, copy;
	uint8_t *bytes;
	size_t len;

	(void)state;
	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_APPEND, "abc");
	(void)blk_rig_do(&rig, 1,
			 (struct blk_request){.opcode = BLOCK_SEAL,
					      .sequence = 2,
					      .arg = 1});
	bytes = bytes_of(&rig, &len);
	assert_int_equal(load(&copy, BLOCK_FILE, bytes, len), 0);
	assert_int_equal(blk_rig_put(&copy, 1, 1, BLOCK_APPEND, "d").status,
			 BLOCK_CLOSED);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

/* Parked items are in the image, those that were got are not. */
static void a_queue_keeps_its_items_in_order(void **state)
{
	static const char *const left[] = {"parked", "", "four"};
	struct blk_rig rig, copy;
	uint8_t *bytes;
	size_t len;

	(void)state;
	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "got");
	for (unsigned i = 0; i < ARRAY_LEN(left); i++)
		(void)blk_rig_put(&rig, 1, i + 2, BLOCK_PUT, left[i]);
	assert_int_equal(get(&rig, 1).status, BLOCK_OK);
	(void)blk_rig_do(&rig, 3,
			 (struct blk_request){
				 .opcode = BLOCK_GET, .sequence = 1, .arg = 1});
	bytes = bytes_of(&rig, &len);
	assert_int_equal(load(&copy, BLOCK_QUEUE, bytes, len), 0);
	assert_int_equal(copy.block.queue.items, 3);
	for (unsigned i = 0; i < ARRAY_LEN(left); i++) {
		struct blk_answer a = get(&copy, i + 1);

		assert_int_equal(a.status, BLOCK_OK);
		assert_int_equal(a.length, strlen(left[i]));
		assert_memory_equal(a.data, left[i], strlen(left[i]));
	}
	assert_int_equal(get(&copy, 4).status, BLOCK_EMPTY);
	assert_int_equal(blk_rig_put(&copy, 1, 1, BLOCK_PUT, "new").status,
			 BLOCK_OK);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

/* A ring that is full, and has gone round, fits into a fresh one. */
static void a_full_ring_fits(void **state)
{
	struct blk_rig rig, copy;
	char text[1000];
	uint64_t put = 0, got = 0;
	uint8_t *bytes;
	size_t len;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	for (unsigned round = 0; round < 300; round++) {
		text[round % 990] = 0;
		if (blk_rig_put(&rig, 1, put + 1, BLOCK_PUT, text).status ==
		    BLOCK_OK)
			put++;
		else
			got += get(&rig, got + 1).status == BLOCK_OK;
		text[round % 990] = 'x';
	}
	bytes = bytes_of(&rig, &len);
	assert_int_equal(load(&copy, BLOCK_QUEUE, bytes, len), 0);
	assert_int_equal(copy.block.queue.items, rig.block.queue.items);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

static void each_flipped_bit_is_found(void **state)
{
	struct blk_rig rig, copy;
	struct blk_image image;
	uint8_t *bytes;
	size_t len;

	(void)state;
	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "an item");
	bytes = bytes_of(&rig, &len);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(blk_image_parse(bytes, len, &id, &image),
				 -EBADMSG);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(blk_image_parse(bytes, cut, &id, &image),
				 -EBADMSG);
	/* Whole, and of another kind. */
	assert_int_equal(load(&copy, BLOCK_FILE, bytes, len), -EBADMSG);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

static void another_block_is_not_taken_for_it(void **state)
{
	static const struct blk_image_id others[] = {
		{.object = 6, .image = 9, .number = 3},
		{.object = 5, .image = 8, .number = 3},
		{.object = 5, .image = 9, .number = 4},
	};
	struct blk_image image;
	struct blk_rig rig;
	uint8_t *bytes;
	size_t len;

	(void)state;
	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	bytes = bytes_of(&rig, &len);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(
			blk_image_parse(bytes, len, &others[i], &image),
			-EBADMSG);
	blk_rig_free(&rig);
	free(bytes);
}

static uint32_t slot_of(const char *key)
{
	return block_kv_slot(block_kv_hash(key, strlen(key)));
}

static struct blk_answer ask_key(struct blk_rig *rig, enum block_opcode opcode,
				 const char *key, const char *value,
				 uint64_t sequence)
{
	uint8_t buf[200];
	size_t key_bytes = strlen(key), value_bytes = strlen(value);
	struct block_kv_wire head = {.version = be64_put(BLOCK_KV_ANY),
				     .key_bytes = be32_put((uint32_t)key_bytes),
				     .value_bytes =
					     be32_put((uint32_t)value_bytes)};

	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), key, key_bytes);
	memcpy(buf + sizeof(head) + key_bytes, value, value_bytes);
	return blk_rig_do(rig, 1,
			  (struct blk_request){
				  .opcode = opcode,
				  .sequence = sequence,
				  .acked = sequence ? sequence - 1 : 0,
				  .arg = slot_of(key),
				  .length = (uint32_t)(sizeof(head) +
						       key_bytes + value_bytes),
				  .value = buf});
}

/* A store with what was replaced and deleted in its heap, too. */
static uint8_t *make_store(struct blk_rig *rig, size_t *len)
{
	static const char *const keys[] = {"one", "two", "three", "four"};
	uint64_t sequence = 1;

	blk_rig_make(rig, BLOCK_EKV, SIZE, 0, true);
	for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
		(void)ask_key(rig, BLOCK_KV_PUT, keys[i], "old", sequence++);
		(void)ask_key(rig, BLOCK_KV_PUT, keys[i], keys[i], sequence++);
	}
	(void)ask_key(rig, BLOCK_KV_DELETE, "four", "", sequence++);
	return bytes_of(rig, len);
}

static void a_store_keeps_its_keys(void **state)
{
	struct blk_rig rig, copy;
	struct blk_answer a, before;
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = make_store(&rig, &len);
	assert_int_equal(load(&copy, BLOCK_EKV, bytes, len), 0);
	assert_int_equal(copy.block.ekv.items, 3);
	assert_int_equal(copy.block.ekv.lo, 0);
	assert_int_equal(copy.block.ekv.hi, BLOCK_KV_SLOTS);
	a = ask_key(&copy, BLOCK_KV_GET, "three", "", 0);
	assert_int_equal(a.status, BLOCK_OK);
	assert_memory_equal(a.data, "three", a.length);
	assert_int_equal(ask_key(&copy, BLOCK_KV_GET, "four", "", 0).status,
			 BLOCK_NO_KEY);
	/* Versions go on where they were. */
	before = ask_key(&rig, BLOCK_KV_PUT, "four", "x", 10);
	a = ask_key(&copy, BLOCK_KV_PUT, "four", "x", 1);
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.value, before.value);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

static void a_load_takes_the_slots_it_is_told_to(void **state)
{
	struct blk_rig rig, copy;
	struct blk_image image;
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = make_store(&rig, &len);
	assert_int_equal(blk_image_parse(bytes, len, &id, &image), 0);
	image.lo = slot_of("two");
	image.hi = image.lo + 1;
	blk_rig_make(&copy, BLOCK_EKV, SIZE, 0, true);
	assert_int_equal(blk_image_load(&copy.block, &image), 0);
	assert_int_equal(ask_key(&copy, BLOCK_KV_GET, "two", "", 0).status,
			 BLOCK_OK);
	assert_int_equal(ask_key(&copy, BLOCK_KV_GET, "one", "", 0).status,
			 BLOCK_MOVED);
	assert_int_equal(copy.block.ekv.items, 1);
	blk_rig_free(&copy);
	/* None, and more than there are. */
	image.hi = image.lo;
	blk_rig_make(&copy, BLOCK_EKV, SIZE, 0, true);
	assert_int_equal(blk_image_load(&copy.block, &image), -EBADMSG);
	image.lo = 0;
	image.hi = BLOCK_KV_SLOTS + 1;
	assert_int_equal(blk_image_load(&copy.block, &image), -EBADMSG);
	blk_rig_free(&copy);
	blk_rig_free(&rig);
	free(bytes);
}

/* A store's block that is cut off anywhere, or counts wrong, with sums that
 * are right. */
static void lies_about_records_are_refused(void **state)
{
	struct blk_rig rig, copy;
	struct blk_image image;
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = make_store(&rig, &len);
	assert_int_equal(blk_image_parse(bytes, len, &id, &image), 0);
	for (uint64_t cut = image.bytes; cut-- > 0;) {
		struct blk_image lie = image;

		lie.bytes = cut;
		blk_rig_make(&copy, BLOCK_EKV, SIZE, 0, false);
		assert_int_equal(blk_image_load(&copy.block, &lie), -EBADMSG);
		blk_rig_free(&copy);
	}
	for (uint32_t items = 0; items < 5; items++) {
		struct blk_image lie = image;

		lie.head.items = be32_put(items);
		blk_rig_make(&copy, BLOCK_EKV, SIZE, 0, false);
		assert_int_equal(blk_image_load(&copy.block, &lie),
				 items == 3 ? 0 : -EBADMSG);
		blk_rig_free(&copy);
	}
	blk_rig_free(&rig);
	free(bytes);
}

/* Sums are no protection from who makes them. */
static void lies_with_good_sums_are_refused(void **state)
{
	const uint8_t lie[] = {0, 0, 1, 0, 'x'};
	struct blk_image image = {.payload = lie, .bytes = sizeof(lie)};
	struct blk_rig rig;

	(void)state;
	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	image.head.kind = be16_put(BLOCK_QUEUE);
	image.head.items = be32_put(1);
	assert_int_equal(blk_image_load(&rig.block, &image), -EBADMSG);
	blk_rig_free(&rig);
	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	image.head.kind = be16_put(BLOCK_FILE);
	image.bytes = SIZE;
	assert_int_equal(blk_image_load(&rig.block, &image), -EBADMSG);
	image.bytes = 0;
	image.head.flags = be32_put(1u << 31);
	assert_int_equal(blk_image_load(&rig.block, &image), -EBADMSG);
	blk_rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_goes_on_where_it_was),
		cmocka_unit_test(a_sealed_block_stays_sealed),
		cmocka_unit_test(a_queue_keeps_its_items_in_order),
		cmocka_unit_test(a_full_ring_fits),
		cmocka_unit_test(each_flipped_bit_is_found),
		cmocka_unit_test(another_block_is_not_taken_for_it),
		cmocka_unit_test(a_store_keeps_its_keys),
		cmocka_unit_test(a_load_takes_the_slots_it_is_told_to),
		cmocka_unit_test(lies_about_records_are_refused),
		cmocka_unit_test(lies_with_good_sums_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
