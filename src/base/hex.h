/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal digits: addresses, keys and tokens in JSON. */
#ifndef AQ_HEX_H
#define AQ_HEX_H

#include "base.h"

/* `text` gets 2 * len_bytes lower case digits and a NUL. */
static inline void hex_write(char *text, const void *bytes, size_t len_bytes)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len_bytes; i++, p++) {
		*text++ = "0123456789abcdef"[*p >> 4];
		*text++ = "0123456789abcdef"[*p & 15];
	}
	*text = '\0';
}

static inline int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* False if the text (NULL included) is not exactly the digits of that many
 * bytes; `bytes` is then undefined. */
static inline bool hex_read(const char *text, void *bytes, size_t len_bytes)
{
	uint8_t *p = bytes;

	for (size_t i = 0; text && i < len_bytes; i++, text += 2) {
		int high = hex_digit(text[0]);
		int low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0)
			return false;
		p[i] = (uint8_t)(high << 4 | low);
	}
	return text && *text == '\0';
}

#endif
