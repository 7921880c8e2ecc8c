/* SPDX-License-Identifier: Apache-2.0 */
/* Names of pieces, striping, remote pointers, and the tables of errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "client/client_priv.h"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} rows[] = {
		{"a", true},
		{"Data_1-x", true},
		{"0123456789012345678901234567890123456789", true},
		{"01234567890123456789012345678901234567890", false},
		{"", false},
		{"-a", false},
		{"a.b", false},
		{"a/b", false},
		{"a b", false},
		{"\xc3\xa4", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(piece_region_is_valid(rows[i].name),
				 rows[i].valid);
}

static void test_piece_names(void **state)
{
	static const char *const bad[] = {
		"",	     ".0-2-10",	   "a.0-1-10",	"a.2-2-10", "a.0-2-b",
		"a.0-2-1f",  "a.00-2-10",  "a.0-2-10x", "a.0-2",    "a.-0-2-10",
		"a.0-41-10", "a.0-2-10.1", "a. 0-2-10", "a.b",	    "a.0-2-010",
	};
	struct piece_name id;
	char name[CLIENT_PIECE_NAME_MAX];

	piece_name_write("r", 0, 1, 0, name);
	assert_string_equal(name, "r");
	assert_int_equal(piece_name_parse("r", &id), 0);
	assert_int_equal(id.count, 1);
	for (uint32_t count = 2; count <= CLIENT_NODE_MAX; count++) {
		piece_name_write("0123456789012345678901234567890123456789",
				 count - 1, count, 30, name);
		assert_int_equal(piece_name_parse(name, &id), 0);
		assert_int_equal(id.index, count - 1);
		assert_int_equal(id.count, count);
		assert_int_equal(id.shift, 30);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(piece_name_parse(bad[i], &id), -EINVAL);
}

/* Every byte of the region has a place of its own inside its piece, and the
 * pieces' sizes give the region's size back. */
static void test_striping(void **state)
{
	static const uint64_t sizes[] = {1,    8,     4095,	 4096, 4097,
					 8192, 12289, 65536 * 3, 99999};

	for (uint32_t count = 1; count <= 5; count++)
		for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
			struct client_map m = {.piece_count = count,
					       .stripe_shift = 12};
			uint64_t next[5] = {0};

			for (uint32_t i = 0; i < count; i++)
				m.piece[i].size_bytes = client_piece_bytes(
					sizes[k], i, count, 12);
			m.size_bytes = client_map_size(&m);
			assert_true(m.size_bytes >= sizes[k]);
			for (uint64_t at = 0; at < sizes[k];) {
				struct client_spot s =
					client_map_find(&m, at, sizes[k] - at);

				assert_true(s.piece < count);
				assert_int_equal(s.offset, next[s.piece]);
				assert_true(s.len_bytes > 0);
				next[s.piece] += s.len_bytes;
				assert_true(next[s.piece] <=
					    m.piece[s.piece].size_bytes);
				at += s.len_bytes;
			}
		}
}

static void test_size_is_exact(void **state)
{
	struct client_map m = {.piece_count = 3, .stripe_shift = 16};
	struct rng rng;

	rng_init(&rng, 1);
	for (unsigned round = 0; round < 1000; round++) {
		/* Above one stripe per piece no reserve page is needed. */
		uint64_t size = rng_between(&rng, 3 << 16, 1 << 30);

		for (uint32_t i = 0; i < 3; i++)
			m.piece[i].size_bytes =
				client_piece_bytes(size, i, 3, 16);
		assert_int_equal(client_map_size(&m), size);
	}
}

/* A size that is the same on all nodes is known from any piece of it, others to
 * within a stripe for each node. */
static void test_size_of_a_part(void **state)
{
	static const uint64_t sizes[] = {3 * 4096, 12 * 4096, 13 * 4096 + 5,
					 14 * 4096, 300000};
	struct client_map m = {.piece_count = 3, .stripe_shift = 12};

	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
		for (unsigned i = 0; i < 3; i++)
			m.piece[i].size_bytes =
				client_piece_bytes(sizes[s], i, 3, 12);
		for (uint64_t have = 1; have < 8; have++) {
			uint64_t got = client_map_size_of(&m, have);

			assert_in_range(got,
					sizes[s] - u64_min(sizes[s], 12288),
					sizes[s] + 12288);
			if (sizes[s] % 12288 == 0 || have == 7)
				assert_int_equal(got, sizes[s]);
		}
	}
}

static void test_atomics_stay_in_one_piece(void **state)
{
	struct client_map m = {.piece_count = 7, .stripe_shift = 12};

	for (uint64_t at = 0; at < 1 << 20; at += 8)
		assert_int_equal(client_map_find(&m, at, 8).len_bytes, 8);
}

static void test_pointers(void **state)
{
	aq_ptr p = aq_ptr_make(0xfffe, 0x123456789abcull);

	assert_int_equal(aq_ptr_region(p), 0xfffe);
	assert_int_equal(aq_ptr_offset(p), 0x123456789abcull);
	assert_int_equal(aq_ptr_make(1, 0), 1ull << 48);
	assert_int_equal(aq_ptr_offset(aq_ptr_make(0, UINT64_MAX)),
			 0xffffffffffffull);
}

static void test_completion_errors(void **state)
{
	assert_int_equal(client_wc_errno(IBV_WC_SUCCESS), 0);
	assert_int_equal(client_wc_errno(IBV_WC_REM_ACCESS_ERR), -ESTALE);
	assert_int_equal(client_wc_errno(IBV_WC_RETRY_EXC_ERR), -EHOSTDOWN);
	assert_int_equal(client_wc_errno(IBV_WC_WR_FLUSH_ERR), -ECANCELED);
	assert_int_equal(client_wc_errno(IBV_WC_REM_OP_ERR), -EREMOTEIO);
	assert_int_equal(client_wc_errno(IBV_WC_REM_INV_REQ_ERR), -EREMOTEIO);
	assert_int_equal(client_wc_errno(IBV_WC_LOC_PROT_ERR), -EIO);
}

static void test_status_errors(void **state)
{
	assert_int_equal(client_status_errno(400), -EINVAL);
	assert_int_equal(client_status_errno(401), -EACCES);
	assert_int_equal(client_status_errno(403), -EACCES);
	assert_int_equal(client_status_errno(404), -ENOENT);
	assert_int_equal(client_status_errno(409), -EEXIST);
	assert_int_equal(client_status_errno(410), -ESTALE);
	assert_int_equal(client_status_errno(413), -E2BIG);
	assert_int_equal(client_status_errno(426), -EPROTONOSUPPORT);
	assert_int_equal(client_status_errno(429), -EAGAIN);
	assert_int_equal(client_status_errno(507), -ENOSPC);
	assert_int_equal(client_status_errno(500), -EREMOTEIO);
	assert_int_equal(client_status_errno(302), -EPROTO);
}

static void test_json_values(void **state)
{
	json_t *o = json_pack("{s:i, s:i, s:f, s:s, s:s, s:s}", "n", 5, "minus",
			      -1, "real", 1.5, "word", "ab-1.c", "bad", "a/b",
			      "empty", "");
	uint64_t n = 0;
	char word[8];

	assert_int_equal(client_json_u64(o, "n", 5, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(client_json_u64(o, "n", 4, &n), -EPROTO);
	assert_int_equal(client_json_u64(o, "minus", 9, &n), -EPROTO);
	assert_int_equal(client_json_u64(o, "real", 9, &n), -EPROTO);
	assert_int_equal(client_json_u64(o, "none", 9, &n), -EPROTO);
	assert_int_equal(client_json_word(o, "word", word, 8), 0);
	assert_int_equal(client_json_word(o, "word", word, 6), -EPROTO);
	assert_int_equal(client_json_word(o, "bad", word, 8), -EPROTO);
	assert_int_equal(client_json_word(o, "empty", word, 8), -EPROTO);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_piece_names),
		cmocka_unit_test(test_striping),
		cmocka_unit_test(test_size_is_exact),
		cmocka_unit_test(test_size_of_a_part),
		cmocka_unit_test(test_atomics_stay_in_one_piece),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_completion_errors),
		cmocka_unit_test(test_status_errors),
		cmocka_unit_test(test_json_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
