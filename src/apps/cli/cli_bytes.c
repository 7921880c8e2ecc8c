/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values on standard output. */
#include "cli_bytes.h"

#include <stdio.h>

/* Bytes that are no printable ASCII become \xHH; so do backslashes. */
static void print_text(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		if (p[i] >= ' ' && p[i] < 0x7f && p[i] != '\\')
			(void)putchar(p[i]);
		else
			printf("\\x%02x", p[i]);
}

/* "name":"hexadecimal digits", and where it is plain ASCII "name_text":"..." */
static void print_json(const char *name, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	bool is_text = true;

	printf("\"%s\":\"", name);
	for (size_t i = 0; i < len; i++) {
		printf("%02x", p[i]);
		is_text &= p[i] >= ' ' && p[i] < 0x7f;
	}
	printf("\"");
	if (!is_text)
		return;
	printf(",\"%s_text\":\"", name);
	for (size_t i = 0; i < len; i++)
		printf(p[i] == '"' || p[i] == '\\' ? "\\%c" : "%c", p[i]);
	printf("\"");
}

void cli_pair_print(bool as_json, const void *key, size_t key_len,
		    const void *value, size_t value_len, uint64_t expire_at_ms)
{
	if (as_json) {
		printf("{");
		print_json("key", key, key_len);
		if (value) {
			printf(",");
			print_json("value", value, value_len);
		}
		if (expire_at_ms)
			printf(",\"expire_at_ms\":%llu",
			       (unsigned long long)expire_at_ms);
		printf("}\n");
		return;
	}
	print_text(key, key_len);
	if (value) {
		(void)putchar('\t');
		print_text(value, value_len);
	}
	(void)putchar('\n');
}

void cli_value_print(bool as_json, const void *key, size_t key_len,
		     const void *value, size_t value_len)
{
	if (as_json)
		cli_pair_print(true, key, key_len, value, value_len, 0);
	else
		(void)fwrite(value, 1, value_len, stdout);
}

void cli_key_done(bool as_json, const char *what, const void *key,
		  size_t key_len)
{
	if (!as_json)
		return;
	printf("{\"%s\":true,", what);
	print_json("key", key, key_len);
	printf("}\n");
}
