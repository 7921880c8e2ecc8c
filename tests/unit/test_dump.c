/* SPDX-License-Identifier: Apache-2.0 */
/* Dump files: what is built is parsed again, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/dump.h"

enum {
	FILE_MAX = 4096,
	BLOCK_AT = DUMP_START_BYTES, /* the first block of pairs */
	PAIR_AT = BLOCK_AT + sizeof(struct dump_block_head),
	HEAD_AT = sizeof(struct dump_file_head),
};

struct file {
	uint8_t bytes[FILE_MAX];
	size_t len;
};

static const struct dump_pair pairs[] = {
	{"ann", "42", 3, 2, 0},
	{"bob", "", 3, 0, 1234567890123},
	{"\0\1\2", "\377", 3, 1, 0},
};

/* Three pairs in two blocks. */
static void make(struct file *f)
{
	struct dump_head head = {.kind = DUMP_TABLE,
				 .made_ms = 77,
				 .size = {1000, 2000, [DUMP_SIZES - 1] = 3},
				 .name = "users"};
	struct dump_builder b;

	dump_start(&b, &head, f->bytes);
	f->len = DUMP_START_BYTES;
	dump_block_begin(&b, f->bytes + f->len,
			 dump_block_room(3, 2) + dump_block_room(3, 0));
	assert_true(dump_block_add(&b, &pairs[0]));
	assert_true(dump_block_add(&b, &pairs[1]));
	assert_false(dump_block_add(
		&b, &(struct dump_pair){"k", "0123456789", 1, 10, 0}));
	f->len += dump_block_seal(&b);
	dump_block_begin(&b, f->bytes + f->len, FILE_MAX - f->len);
	assert_true(dump_block_add(&b, &pairs[2]));
	f->len += dump_block_seal(&b);
	/* One without pairs is none. */
	dump_block_begin(&b, f->bytes + f->len, FILE_MAX - f->len);
	assert_int_equal(dump_block_seal(&b), 0);
	f->len += dump_end(&b, f->bytes + f->len);
}

/* The pieces lie in memory of exactly their size, so that a sanitizer sees who
 * reads further. *count: pairs that were handed out. */
static int parse(struct dump_parser *p, const struct file *f, unsigned *count)
{
	size_t at = 0, need;
	int err = 0;

	*p = (struct dump_parser){0};
	*count = 0;
	while (!err && (need = dump_need(p)) > 0) {
		struct dump_pair pair;
		uint8_t *piece;

		if (f->len - at < need)
			return dump_parse_eof(p, f->len - at);
		piece = malloc(need);
		assert_non_null(piece);
		memcpy(piece, f->bytes + at, need);
		err = dump_parse(p, piece);
		while (dump_next_pair(p, &pair)) {
			const struct dump_pair *want = &pairs[*count % 3];

			if (!err && *count < 3 && pair.key_bytes == 3 &&
			    pair.value_bytes == want->value_bytes)
				assert_memory_equal(pair.key, want->key, 3);
			++*count;
		}
		free(piece);
		at += need;
	}
	if (!err && at < f->len)
		return dump_parse(p, f->bytes + at);
	return err ? err : dump_parse_eof(p, 0);
}

static void what_is_built_is_parsed(void **state)
{
	struct dump_parser p;
	struct file f;
	unsigned count;

	(void)state;
	make(&f);
	assert_int_equal(parse(&p, &f, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(p.state, DUMP_AT_END);
	assert_int_equal(p.counts.pairs, 3);
	assert_int_equal(p.counts.key_bytes, 9);
	assert_int_equal(p.counts.value_bytes, 3);
	assert_int_equal(p.head.kind, DUMP_TABLE);
	assert_int_equal(p.head.made_ms, 77);
	assert_int_equal(p.head.size[1], 2000);
	assert_int_equal(p.head.size[DUMP_SIZES - 1], 3);
	assert_string_equal(p.head.name, "users");
}

static void a_file_that_breaks_off_anywhere_is_refused(void **state)
{
	struct dump_parser p;
	struct file whole, f;
	unsigned count;

	(void)state;
	make(&whole);
	for (size_t len = 0; len < whole.len; len++) {
		memcpy(f.bytes, whole.bytes, len);
		f.len = len;
		assert_int_equal(parse(&p, &f, &count), -EBADMSG);
		assert_non_null(p.why);
		assert_int_equal(p.bad_at, len);
	}
}

static void every_flipped_bit_is_noticed(void **state)
{
	struct dump_parser p;
	struct file f;
	unsigned count;

	(void)state;
	make(&f);
	for (size_t bit = 0; bit < 8 * f.len; bit++) {
		f.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(parse(&p, &f, &count), -EBADMSG);
		assert_true(p.bad_at <= f.len);
		f.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(parse(&p, &f, &count), 0);
}

/* ---- made with bad intent: checksums are right -------------------------- */

static void reseal(struct file *f, size_t block_at)
{
	struct dump_block_head h;
	uint32_t len;

	memcpy(&h, f->bytes + block_at, sizeof(h));
	len = le32_get(h.payload_bytes);
	if (len > FILE_MAX - block_at - sizeof(h))
		return;
	h.crc = le64_put(
		crc64(crc64(0, &h, offsetof(struct dump_block_head, crc)),
		      f->bytes + block_at + sizeof(h), len));
	memcpy(f->bytes + block_at, &h, sizeof(h));
}

static void hostile_fields_are_refused(void **state)
{
	static const struct {
		size_t at; /* of a le32 */
		uint32_t value;
		size_t block_at; /* whose checksum is made right */
		const char *why;
	} table[] = {
		{0, 0x41414141, HEAD_AT, "not a dump"},
		{8, 2, HEAD_AT, "version"},
		{12, 1, HEAD_AT, "reserved"},
		{HEAD_AT, DUMP_BLOCK_PAIRS, HEAD_AT, "no head"},
		{HEAD_AT, 9, HEAD_AT, "unknown type"},
		{HEAD_AT + 4, 8, HEAD_AT, "length"},
		{HEAD_AT + 8, 1, HEAD_AT, "out of place"},
		{HEAD_AT + 24, 0, HEAD_AT, "unknown kind"},
		{HEAD_AT + 24, 4, HEAD_AT, "unknown kind"},
		{HEAD_AT + 28, 1, HEAD_AT, "reserved"},
		{BLOCK_AT - 4, 0x41414141, HEAD_AT, "name without"},
		{BLOCK_AT, DUMP_BLOCK_HEAD, BLOCK_AT, "second head"},
		{BLOCK_AT, 0, BLOCK_AT, "unknown type"},
		{BLOCK_AT + 4, 0, BLOCK_AT, "length"},
		{BLOCK_AT + 4, 16, BLOCK_AT, "length"},
		{BLOCK_AT + 4, DUMP_PAYLOAD_MAX + 1, BLOCK_AT, "length"},
		{BLOCK_AT + 4, UINT32_MAX, BLOCK_AT, "length"},
		{BLOCK_AT + 4, DUMP_PAYLOAD_MAX, BLOCK_AT, "breaks off"},
		{BLOCK_AT + 4, 39, BLOCK_AT, "pair"},
		{BLOCK_AT + 8, 2, BLOCK_AT, "out of place"},
		{PAIR_AT, 0, BLOCK_AT, "pair"},
		{PAIR_AT, DUMP_KEY_MAX + 1, BLOCK_AT, "pair"},
		{PAIR_AT, UINT32_MAX, BLOCK_AT, "pair"},
		{PAIR_AT + 4, UINT32_MAX, BLOCK_AT, "pair"},
		{PAIR_AT + 4, DUMP_VALUE_MAX, BLOCK_AT, "pair"},
		{PAIR_AT + 4, 1, BLOCK_AT, "pair"},
	};
	struct dump_parser p;
	struct file f;
	unsigned count;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		le32 value = le32_put(table[i].value);

		make(&f);
		memcpy(f.bytes + table[i].at, &value, sizeof(value));
		reseal(&f, table[i].block_at);
		assert_int_equal(parse(&p, &f, &count), -EBADMSG);
		if (!strstr(p.why, table[i].why))
			fail_msg("row %zu: %s", i, p.why);
		/* It is bad for good. */
		assert_int_equal(dump_need(&p), 0);
		assert_int_equal(dump_parse(&p, f.bytes), -EBADMSG);
	}
}

static void the_end_must_count_right_and_be_the_end(void **state)
{
	struct dump_parser p;
	struct file f;
	unsigned count;

	(void)state;
	for (size_t field = 0; field < 3; field++) {
		size_t at;

		make(&f);
		at = f.len - sizeof(struct dump_end_payload);
		f.bytes[at + 8 * field]++;
		reseal(&f, at - sizeof(struct dump_block_head));
		assert_int_equal(parse(&p, &f, &count), -EBADMSG);
		assert_non_null(strstr(p.why, "counts"));
	}
	make(&f);
	f.bytes[f.len++] = 0;
	assert_int_equal(parse(&p, &f, &count), -EBADMSG);
	assert_non_null(strstr(p.why, "follow"));
	assert_int_equal(p.bad_at, f.len - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_built_is_parsed),
		cmocka_unit_test(a_file_that_breaks_off_anywhere_is_refused),
		cmocka_unit_test(every_flipped_bit_is_noticed),
		cmocka_unit_test(hostile_fields_are_refused),
		cmocka_unit_test(the_end_must_count_right_and_be_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
