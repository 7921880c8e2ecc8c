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

typedef struct {
	uint8_t b[2];
} be16;

typedef struct {
	uint8_t b[3];
} be24;

typedef struct {
	uint8_t b[4];
} be32;

typedef struct {
	uint8_t b[8];
} be64;

typedef struct {
	uint8_t b[4];
} le32;

typedef struct {
	uint8_t b[8];
} le64;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_BE16(v) __builtin_bswap16(v)
#define BYTES_BE32(v) __builtin_bswap32(v)
#define BYTES_BE64(v) __builtin_bswap64(v)
#define BYTES_LE32(v) (v)
#define BYTES_LE64(v) (v)
#else
#define BYTES_BE16(v) (v)
#define BYTES_BE32(v) (v)
#define BYTES_BE64(v) (v)
#define BYTES_LE32(v) __builtin_bswap32(v)
#define BYTES_LE64(v) __builtin_bswap64(v)
#endif

static inline uint16_t be16_get(be16 w)
{
	uint16_t v;

	memcpy(&v, w.b, sizeof(v));
	return BYTES_BE16(v);
}

static inline be16 be16_put(uint16_t v)
{
	be16 w;

	v = BYTES_BE16(v);
	memcpy(w.b, &v, sizeof(v));
	return w;
}

static inline uint32_t be24_get(be24 w)
{
	return (uint32_t)w.b[0] << 16 | (uint32_t)w.b[1] << 8 | w.b[2];
}

static inline be24 be24_put(uint32_t v)
{
	return (be24){{(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}};
}

static inline uint32_t be32_get(be32 w)
{
	uint32_t v;

	memcpy(&v, w.b, sizeof(v));
	return BYTES_BE32(v);
}

static inline be32 be32_put(uint32_t v)
{
	be32 w;

	v = BYTES_BE32(v);
	memcpy(w.b, &v, sizeof(v));
	return w;
}

static inline uint64_t be64_get(be64 w)
{
	uint64_t v;

	memcpy(&v, w.b, sizeof(v));
	return BYTES_BE64(v);
}

static inline be64 be64_put(uint64_t v)
{
	be64 w;

	v = BYTES_BE64(v);
	memcpy(w.b, &v, sizeof(v));
	return w;
}

static inline uint32_t le32_get(le32 w)
{
	uint32_t v;

	memcpy(&v, w.b, sizeof(v));
	return BYTES_LE32(v);
}

static inline le32 le32_put(uint32_t v)
{
	le32 w;

	v = BYTES_LE32(v);
	memcpy(w.b, &v, sizeof(v));
	return w;
}

static inline uint64_t le64_get(le64 w)
{
	uint64_t v;

	memcpy(&v, w.b, sizeof(v));
	return BYTES_LE64(v);
}

static inline le64 le64_put(uint64_t v)
{
	le64 w;

	v = BYTES_LE64(v);
	memcpy(w.b, &v, sizeof(v));
	return w;
}

#endif
