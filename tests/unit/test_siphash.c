/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 against the published vectors: key 00..0f, data 00, 01, 02 ... */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/siphash.h"

static void the_published_vectors(void **state)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} table[] = {
		{0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},
		{2, 0x0d6c8009d9a94f5a},  {3, 0x85676696d7fb7e2d},
		{7, 0xab0200f58b01d137},  {8, 0x93f5f5799a932462},
		{15, 0xa129ca6149be45e5}, {63, 0x958a324ceb064572},
	};
	uint8_t bytes[64];
	struct siphash_key key;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	key = siphash_key(bytes);
	for (unsigned i = 0; i < ARRAY_LEN(table); i++)
		/* Wherever the head ends. */
		for (size_t head = 0; head <= table[i].len; head += 8)
			assert_true(siphash(&key, bytes, head, bytes + head,
					    table[i].len - head) ==
				    table[i].hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
