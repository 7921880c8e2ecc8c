/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers as they lie on the wire or in shared layouts. Each is a struct of
 * bytes, so its alignment is 1 and using one without conversion does not
 * compile. gcc 12 and clang 14 turn get/put into one load or store and a bswap.
 */
#ifndef AQ_BYTES_H
#define AQ_BYTES_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_BE(bits, v) __builtin_bswap##bits(v)
#define BYTES_LE(bits, v) (v)
#else
#define BYTES_BE(bits, v) (v)
#define BYTES_LE(bits, v) __builtin_bswap##bits(v)
#endif

/* The type, NAME_get() and NAME_put(). */
#define BYTES_TYPE(name, bits, order)                   \
	typedef struct {                                \
		uint8_t b[bits / 8];                    \
	} name;                                         \
	static inline uint##bits##_t name##_get(name w) \
	{                                               \
		uint##bits##_t v;                       \
                                                        \
		memcpy(&v, w.b, sizeof(v));             \
		return order(bits, v);                  \
	}                                               \
	static inline name name##_put(uint##bits##_t v) \
	{                                               \
		name w;                                 \
                                                        \
		v = order(bits, v);                     \
		memcpy(w.b, &v, sizeof(v));             \
		return w;                               \
	}

BYTES_TYPE(be16, 16, BYTES_BE)
BYTES_TYPE(be32, 32, BYTES_BE)
BYTES_TYPE(be64, 64, BYTES_BE)
BYTES_TYPE(le32, 32, BYTES_LE)
BYTES_TYPE(le64, 64, BYTES_LE)

typedef struct {
	uint8_t b[3];
} be24;

static inline uint32_t be24_get(be24 w)
{
	return (uint32_t)w.b[0] << 16 | (uint32_t)w.b[1] << 8 | w.b[2];
}

static inline be24 be24_put(uint32_t v)
{
	return (be24){{(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}};
}

#endif
