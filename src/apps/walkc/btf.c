/* SPDX-License-Identifier: Apache-2.0 */
/* The types and lines that clang -g leaves in an object for bpf (.BTF and
 * .BTF.ext, as the kernel documents them). Only two things are read: how large
 * the structs are that a function's parameters point to, and which line an
 * instruction comes from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "walkc_priv.h"

enum {
	MAGIC_LO = 0x9f,
	MAGIC_HI = 0xeb,
	TYPE_BYTES = 12,
	TYPES_MAX = 1 << 20,
	STEPS_MAX = 64, /* typedefs of typedefs, arrays of arrays */
	LINE_BYTES = 16,
	LINE_SHIFT = 10, /* below it is the column */
};

enum kind {
	KIND_INT = 1,
	KIND_PTR,
	KIND_ARRAY,
	KIND_STRUCT,
	KIND_UNION,
	KIND_ENUM,
	KIND_FWD,
	KIND_TYPEDEF,
	KIND_VOLATILE,
	KIND_CONST,
	KIND_RESTRICT,
	KIND_FUNC,
	KIND_FUNC_PROTO,
	KIND_VAR,
	KIND_DATASEC,
	KIND_FLOAT,
	KIND_DECL_TAG,
	KIND_TYPE_TAG,
	KIND_ENUM64,
	KIND_COUNT,
};

/* Bytes behind a type: fixed, and for each of its members. */
static const struct {
	uint8_t fixed, each;
} tails[KIND_COUNT] = {
	[KIND_INT] = {4, 0},	  [KIND_ARRAY] = {12, 0},
	[KIND_STRUCT] = {0, 12},  [KIND_UNION] = {0, 12},
	[KIND_ENUM] = {0, 8},	  [KIND_FUNC_PROTO] = {0, 8},
	[KIND_VAR] = {4, 0},	  [KIND_DATASEC] = {0, 12},
	[KIND_DECL_TAG] = {4, 0}, [KIND_ENUM64] = {0, 12},
};

/* A word of a section; the caller has checked that it is there. */
static uint32_t word(struct walkc_bytes b, size_t at)
{
	le32 w;

	memcpy(&w, b.at + at, sizeof(w));
	return le32_get(w);
}

/* A part that a header names, counted from the header's end. */
static struct walkc_bytes part(struct walkc_bytes b, size_t head, uint32_t off,
			       uint32_t len)
{
	if (head > b.len || off > b.len - head || len > b.len - head - off)
		return (struct walkc_bytes){NULL, 0};
	return (struct walkc_bytes){b.at + head + off, len};
}

static bool has_magic(struct walkc_bytes b, size_t head_bytes)
{
	return b.at && b.len >= head_bytes && b.at[0] == MAGIC_LO &&
	       b.at[1] == MAGIC_HI;
}

static const char *string_at(const struct walkc_btf *b, uint32_t at)
{
	if (at >= b->strings.len ||
	    !memchr(b->strings.at + at, 0, b->strings.len - at))
		return "";
	return (const char *)b->strings.at + at;
}

/* ---- types -------------------------------------------------------------- */

struct type {
	const char *name;
	enum kind kind;
	uint32_t members;
	uint32_t of; /* size, or the number of another type */
	size_t tail; /* where what follows it begins */
};

static bool type_at(const struct walkc_btf *b, uint32_t number,
		    struct type *out)
{
	size_t at;
	uint32_t info;

	if (number == 0 || number >= b->type_count)
		return false;
	at = b->type_at[number];
	info = word(b->types, at + 4);
	*out = (struct type){string_at(b, word(b->types, at)),
			     (enum kind)(info >> 24 & 31), info & 0xffff,
			     word(b->types, at + 8), at + TYPE_BYTES};
	return true;
}

/* Finds where each type begins; types behind damage do not exist. */
static int index_types(struct walkc_btf *b)
{
	size_t most = b->types.len / TYPE_BYTES + 1, at = 0;

	if (most > TYPES_MAX)
		most = TYPES_MAX;
	b->type_at = calloc(most + 1, sizeof(*b->type_at));
	if (!b->type_at)
		return error_set(-ENOMEM, "no memory for types");
	b->type_count = 1;
	while (b->type_count < most && at + TYPE_BYTES <= b->types.len) {
		uint32_t info = word(b->types, at + 4);
		unsigned kind = info >> 24 & 31;
		size_t tail;

		if (kind == 0 || kind >= KIND_COUNT)
			break;
		tail = tails[kind].fixed +
		       (size_t)tails[kind].each * (info & 0xffff);
		if (tail > b->types.len - at - TYPE_BYTES)
			break;
		b->type_at[b->type_count++] = (uint32_t)at;
		at += TYPE_BYTES + tail;
	}
	return 0;
}

static bool is_alias(enum kind k)
{
	return k == KIND_TYPEDEF || k == KIND_VOLATILE || k == KIND_CONST ||
	       k == KIND_RESTRICT || k == KIND_TYPE_TAG;
}

/* Through typedefs and qualifiers. */
static bool resolve(const struct walkc_btf *b, uint32_t number,
		    struct type *out)
{
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		if (!type_at(b, number, out))
			return false;
		if (!is_alias(out->kind))
			return true;
		number = out->of;
	}
	return false;
}

/* Bytes of a type; 0: not known. */
static uint64_t size_of(const struct walkc_btf *b, uint32_t number)
{
	uint64_t times = 1;
	struct type t;

	for (unsigned i = 0; i < STEPS_MAX && resolve(b, number, &t); i++) {
		if (t.kind == KIND_PTR)
			return times * 8;
		if (t.kind == KIND_INT || t.kind == KIND_ENUM ||
		    t.kind == KIND_STRUCT || t.kind == KIND_UNION ||
		    t.kind == KIND_FLOAT || t.kind == KIND_ENUM64)
			return times * t.of;
		if (t.kind != KIND_ARRAY)
			return 0;
		number = word(b->types, t.tail);
		times *= word(b->types, t.tail + 8);
		if (times > UINT32_MAX)
			return 0;
	}
	return 0;
}

/* The function's type: of a function, or of a variable that points to one. */
static bool prototype_of(const struct walkc_btf *b, struct type t,
			 struct type *out)
{
	if (t.kind == KIND_VAR && (!resolve(b, t.of, &t) || t.kind != KIND_PTR))
		return false;
	return resolve(b, t.of, out) && out->kind == KIND_FUNC_PROTO;
}

void walkc_btf_parameters(const struct walkc_btf *b, const char *name,
			  uint64_t bytes[2])
{
	struct type t, proto, pointer;

	bytes[0] = bytes[1] = 0;
	for (uint32_t n = 1; type_at(b, n, &t); n++) {
		if ((t.kind != KIND_FUNC && t.kind != KIND_VAR) ||
		    strcmp(t.name, name) != 0 || !prototype_of(b, t, &proto))
			continue;
		for (unsigned i = 0; i < 2 && i < proto.members; i++)
			if (resolve(b, word(b->types, proto.tail + i * 8 + 4),
				    &pointer) &&
			    pointer.kind == KIND_PTR)
				bytes[i] = size_of(b, pointer.of);
		return;
	}
}

/* ---- lines -------------------------------------------------------------- */

/* Looks in the records of one section for the last one at or before `offset`.
 */
static bool find_line(const struct walkc_btf *b, size_t at, uint32_t count,
		      uint32_t stride, uint32_t offset, const char **file,
		      uint32_t *line)
{
	bool found = false;

	for (uint32_t i = 0; i < count; i++, at += stride) {
		if (word(b->lines, at) > offset)
			break;
		/* Line 0 is code of the compiler's own. */
		if (!(word(b->lines, at + 12) >> LINE_SHIFT))
			continue;
		*file = string_at(b, word(b->lines, at + 4));
		*line = word(b->lines, at + 12) >> LINE_SHIFT;
		found = true;
	}
	return found && **file;
}

bool walkc_btf_line(const struct walkc_btf *b, const char *section,
		    uint32_t insn, const char **file, uint32_t *line)
{
	size_t at = 4;
	uint32_t stride;
	const char *found = NULL;

	if (b->lines.len < 4)
		return false;
	stride = word(b->lines, 0);
	if (stride < LINE_BYTES || stride > b->lines.len)
		return false;
	while (b->lines.len - at >= 8) {
		const char *name = string_at(b, word(b->lines, at));
		uint32_t count = word(b->lines, at + 4);

		at += 8;
		if (count > (b->lines.len - at) / stride)
			return false;
		if (strcmp(name, section) == 0 &&
		    find_line(b, at, count, stride,
			      insn * (uint32_t)sizeof(struct bpf_insn), &found,
			      line)) {
			*file = found;
			return true;
		}
		at += (size_t)count * stride;
	}
	return false;
}

/* ---- both --------------------------------------------------------------- */

int walkc_btf_open(struct walkc_btf *b, struct walkc_bytes btf,
		   struct walkc_bytes ext)
{
	enum {
		HEAD = 24,     /* magic, length, types, strings */
		EXT_HEAD = 24, /* magic, length, functions, lines */
	};
	uint32_t head;

	memset(b, 0, sizeof(*b));
	if (has_magic(btf, HEAD)) {
		head = word(btf, 4);
		b->types = part(btf, head, word(btf, 8), word(btf, 12));
		b->strings = part(btf, head, word(btf, 16), word(btf, 20));
	}
	if (has_magic(ext, EXT_HEAD)) {
		head = word(ext, 4);
		b->lines = part(ext, head, word(ext, 16), word(ext, 20));
	}
	return index_types(b);
}

void walkc_btf_close(struct walkc_btf *b)
{
	free(b->type_at);
	memset(b, 0, sizeof(*b));
}
