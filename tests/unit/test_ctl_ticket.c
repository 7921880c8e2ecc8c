/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: signed by one, believed by others, and no byte of them can change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "control/ctl_ticket.h"

static const uint8_t seed[CTL_TICKET_SEED_BYTES] = {1, 2, 3};
static const uint8_t other_seed[CTL_TICKET_SEED_BYTES] = {4, 5, 6};

static struct ctl_ticket_keys keys_of(const uint8_t *of, uint32_t id)
{
	struct ctl_ticket_keys keys = {.count = 1};

	keys.key[0].id = id;
	ctl_ticket_public(of, keys.key[0].key);
	return keys;
}

static struct ctl_ticket sample(void)
{
	return (struct ctl_ticket){
		.key_id = 7,
		.object = 0x1122334455667788,
		.end_s = 1000000,
		.rights = CTL_TICKET_READ | CTL_TICKET_CHANGE,
		.kind = CTL_TICKET_QUEUE,
		.tenant = "team",
	};
}

static void a_signed_ticket_says_what_was_signed(void **state)
{
	struct ctl_ticket_keys keys = keys_of(seed, 7);
	struct ctl_ticket in = sample(), out;
	uint8_t bytes[CTL_TICKET_BYTES];

	(void)state;
	/* A name of full length has no zero behind it. */
	memset(in.tenant, 'x', CTL_TICKET_TENANT_MAX);
	memcpy(in.by, "\1\2\3\4\5\6", sizeof(in.by));
	ctl_ticket_sign(&in, seed, bytes);
	assert_memory_equal(bytes, "AQT1\7\0\0\0\x88\x77\x66\x55", 12);
	assert_int_equal(ctl_ticket_verify(bytes, &keys, 0, &out), 0);
	assert_int_equal(out.object, in.object);
	assert_int_equal(out.end_s, in.end_s);
	assert_int_equal(out.rights, in.rights);
	assert_int_equal(out.kind, in.kind);
	assert_string_equal(out.tenant, in.tenant);
	assert_memory_equal(out.by, in.by, sizeof(in.by));
	assert_true(ctl_ticket_is_of(&out, in.by));
	in.by[5]++;
	assert_false(ctl_ticket_is_of(&out, in.by));
}

static void any_other_bit_makes_it_worthless(void **state)
{
	struct ctl_ticket_keys keys = keys_of(seed, 7);
	struct ctl_ticket in = sample(), out;
	uint8_t bytes[CTL_TICKET_BYTES];

	(void)state;
	ctl_ticket_sign(&in, seed, bytes);
	for (unsigned bit = 0; bit < 8 * CTL_TICKET_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(ctl_ticket_verify(bytes, &keys, 0, &out) < 0);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(ctl_ticket_verify(bytes, &keys, 0, &out), 0);
}

static void others_keys_and_the_end_are_told_apart(void **state)
{
	struct ctl_ticket_keys keys = keys_of(seed, 7), none = {0};
	struct ctl_ticket_keys same_id = keys_of(other_seed, 7);
	struct ctl_ticket in = sample(), out;
	uint8_t bytes[CTL_TICKET_BYTES];

	(void)state;
	ctl_ticket_sign(&in, seed, bytes);
	assert_int_equal(ctl_ticket_verify(bytes, &none, 0, &out), -ENOKEY);
	assert_int_equal(ctl_ticket_verify(bytes, &same_id, 0, &out),
			 -EKEYREJECTED);
	assert_int_equal(ctl_ticket_verify(bytes, &keys,
					   in.end_s + CTL_TICKET_SLACK_S, &out),
			 0);
	assert_int_equal(ctl_ticket_verify(bytes, &keys,
					   in.end_s + CTL_TICKET_SLACK_S + 1,
					   &out),
			 -EKEYEXPIRED);
	keys.count = 2;
	keys.key[1] = keys.key[0];
	keys.key[0].id = 8;
	assert_int_equal(ctl_ticket_verify(bytes, &keys, 0, &out), 0);
}

static void a_signature_does_not_excuse_the_form(void **state)
{
	struct ctl_ticket_keys keys = keys_of(seed, 7);
	uint8_t bytes[CTL_TICKET_BYTES];
	struct ctl_ticket out;
	struct ctl_ticket bad[4];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = sample();
	bad[0].rights = 0;
	bad[1].rights = 4;
	bad[2].kind = 4;
	bad[3].tenant[0] = 0;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		ctl_ticket_sign(&bad[i], seed, bytes);
		assert_int_equal(ctl_ticket_verify(bytes, &keys, 0, &out),
				 -EPROTO);
	}
}

static void lists_of_keys_are_whole_or_nothing(void **state)
{
#define KEY "00000000000000000000000000000000000000000000000000000000000000ff"
	static const struct {
		const char *text;
		int err;
		unsigned count;
	} rows[] = {
		{"[]", 0, 0},
		{"[{\"id\":3,\"key\":\"" KEY "\"}]", 0, 1},
		{"{}", -EPROTO, 0},
		{"[3]", -EPROTO, 0},
		{"[{\"id\":-1,\"key\":\"" KEY "\"}]", -EPROTO, 0},
		{"[{\"id\":4294967296,\"key\":\"" KEY "\"}]", -EPROTO, 0},
		{"[{\"id\":1,\"key\":\"" KEY "0\"}]", -EPROTO, 0},
		{"[{\"id\":1,\"key\":\"zz\"}]", -EPROTO, 0},
		{"[{\"id\":1}]", -EPROTO, 0},
		{"[1,2,3,4,5]", -EPROTO, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ctl_ticket_keys keys = {.count = 77};
		json_t *list = json_loads(rows[i].text, 0, NULL);

		assert_int_equal(ctl_ticket_keys_parse(list, &keys),
				 rows[i].err);
		assert_int_equal(keys.count, rows[i].err ? 77 : rows[i].count);
		json_decref(list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signed_ticket_says_what_was_signed),
		cmocka_unit_test(any_other_bit_makes_it_worthless),
		cmocka_unit_test(others_keys_and_the_end_are_told_apart),
		cmocka_unit_test(a_signature_does_not_excuse_the_form),
		cmocka_unit_test(lists_of_keys_are_whole_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
