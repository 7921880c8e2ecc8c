/* SPDX-License-Identifier: Apache-2.0 */
/* Block messages and answers: built and parsed; what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "wire/block_wire.h"

static size_t build(uint8_t *buf)
{
	struct block_message m = {.tag = 77,
				  .acked = 3,
				  .reply_at = 0x1000,
				  .reply_key = 9,
				  .reply_bytes = 500};
	struct block_op put = {.opcode = BLOCK_PUT,
			       .handle = 1,
			       .index = 2,
			       .generation = 1ull << 40,
			       .sequence = 4,
			       .length = 5,
			       .value = (const uint8_t *)"hello"};
	struct block_op get = {.opcode = BLOCK_GET,
			       .arg = 1,
			       .sequence = 5,
			       .address = 0xabcdef0123,
			       .key = 6,
			       .length = 1 << 20};
	struct block_writer w;

	memset(m.session, 0x5a, sizeof(m.session));
	block_message_begin(&w, buf, BLOCK_MESSAGE_MAX);
	assert_int_equal(block_message_add(&w, &put), 0);
	assert_int_equal(block_message_add(&w, &get), 0);
	return block_message_end(&w, &m);
}

static void message_round_trip(void **state)
{
	uint8_t buf[BLOCK_MESSAGE_MAX];
	struct block_op op[BLOCK_OPS_MAX];
	struct block_message m;
	size_t n = build(buf);

	assert_int_equal(block_message_parse(buf, n, &m, op), 0);
	assert_int_equal(m.count, 2);
	assert_int_equal(m.tag, 77);
	assert_int_equal(m.acked, 3);
	assert_int_equal(m.session[15], 0x5a);
	assert_int_equal(op[0].generation, 1ull << 40);
	assert_memory_equal(op[0].value, "hello", 5);
	assert_null(op[1].value);
	assert_int_equal(op[1].address, 0xabcdef0123);
	assert_int_equal(op[1].length, 1 << 20);
}

/* Every single damaged bit is seen. */
static void damage_is_seen(void **state)
{
	uint8_t buf[BLOCK_MESSAGE_MAX];
	struct block_op op[BLOCK_OPS_MAX];
	struct block_message m;
	size_t n = build(buf);

	for (size_t bit = 0; bit < n * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(block_message_parse(buf, n, &m, op) < 0);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t less = 0; less < n; less++)
		assert_true(block_message_parse(buf, less, &m, op) < 0);
}

static void sum_again(uint8_t *buf, size_t n)
{
	be32 crc;

	memset(buf + 8, 0, 4);
	crc = be32_put(crc32c(0, buf, n));
	memcpy(buf + 8, &crc, 4);
}

/* With a right sum, and nevertheless wrong. */
static void lies_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
		int err;
	} rows[] = {
		{1, BLOCK_WIRE_VERSION + 1, -EPROTONOSUPPORT},
		{3, 0, -EINVAL},
		{3, 1, -EINVAL},
		{3, 3, -EINVAL},
		{3, 65, -EINVAL},
		{7, 1, -EINVAL},
		{57, 0, -EINVAL},
		{57, 99, -EINVAL},
		{59, 2, -EINVAL},
		{56 + 46, 0xff, -EINVAL},
		{56 + 44, 0xff, -EINVAL},
		{59, 0, -EINVAL},
	};
	struct block_op op[BLOCK_OPS_MAX];
	struct block_message m;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t buf[BLOCK_MESSAGE_MAX];
		size_t n = build(buf);

		buf[rows[i].at] = rows[i].byte;
		sum_again(buf, n);
		assert_int_equal(block_message_parse(buf, n, &m, op),
				 rows[i].err);
	}
}

static void messages_have_an_end(void **state)
{
	uint8_t buf[BLOCK_MESSAGE_MAX];
	uint8_t value[BLOCK_INSIDE_MAX] = {0};
	struct block_op op = {
		.opcode = BLOCK_PUT, .length = sizeof(value), .value = value};
	struct block_writer w;
	unsigned n = 0;

	block_message_begin(&w, buf, sizeof(buf));
	while (block_message_add(&w, &op) == 0)
		n++;
	assert_int_equal(n, 3);
	op.length = 0;
	block_message_begin(&w, buf, sizeof(buf));
	for (n = 0; block_message_add(&w, &op) == 0; n++)
		;
	assert_int_equal(n, BLOCK_OPS_MAX);
}

static void reply_round_trip(void **state)
{
	struct block_result in[2] = {
		{.status = BLOCK_OK,
		 .length = 3,
		 .value = 42,
		 .data = (const uint8_t *)"xyz"},
		{.status = BLOCK_TOO_LONG, .length = 1 << 30},
	};
	struct block_result out[BLOCK_OPS_MAX];
	uint8_t buf[BLOCK_REPLY_MAX];
	struct block_writer w;
	unsigned count;
	uint32_t tag;
	size_t n;

	block_reply_begin(&w, buf, sizeof(buf));
	assert_int_equal(block_reply_add(&w, &in[0]), 0);
	assert_int_equal(block_reply_add(&w, &in[1]), 0);
	n = block_reply_end(&w, 5);
	assert_int_equal(block_reply_parse(buf, n, &tag, out, &count), 0);
	assert_int_equal(tag, 5);
	assert_int_equal(count, 2);
	assert_memory_equal(out[0].data, "xyz", 3);
	assert_int_equal(out[1].status, BLOCK_TOO_LONG);
	assert_int_equal(out[1].length, 1 << 30);
	for (size_t bit = 0; bit < n * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(block_reply_parse(buf, n, &tag, out, &count) < 0);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void each_status_has_words(void **state)
{
	for (unsigned i = 0; i < BLOCK_STATUSES; i++) {
		assert_non_null(block_status_text(i));
		assert_int_equal(block_status_errno(i) == 0, i == BLOCK_OK);
	}
}

/* RFC 3720, B.4. */
static void castagnoli(void **state)
{
	uint8_t bytes[32] = {0};

	assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, 32);
	assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
	assert_int_equal(crc32c(crc32c(0, bytes, 7), bytes + 7, 25),
			 0x62a8ab43);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_round_trip),
		cmocka_unit_test(damage_is_seen),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(messages_have_an_end),
		cmocka_unit_test(reply_round_trip),
		cmocka_unit_test(each_status_has_words),
		cmocka_unit_test(castagnoli),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
