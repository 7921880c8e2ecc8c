/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values on standard output. */
#include "cli_bytes.h"

#include <stdio.h>

void cli_bytes_print(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		if (p[i] >= ' ' && p[i] < 0x7f && p[i] != '\\')
			(void)putchar(p[i]);
		else
			printf("\\x%02x", p[i]);
}

void cli_bytes_print_json(const char *name, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	printf("\"%s\":\"", name);
	for (size_t i = 0; i < len; i++)
		printf("%02x", p[i]);
	printf("\"");
}

void cli_pair_print(bool as_json, const void *key, size_t key_len,
		    const void *value, size_t value_len)
{
	if (as_json) {
		printf("{");
		cli_bytes_print_json("key", key, key_len);
		if (value) {
			printf(",");
			cli_bytes_print_json("value", value, value_len);
		}
		printf("}\n");
		return;
	}
	cli_bytes_print(key, key_len);
	if (value) {
		(void)putchar('\t');
		cli_bytes_print(value, value_len);
	}
	(void)putchar('\n');
}
