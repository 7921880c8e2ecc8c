/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of walkc/ share: a function of an object file, its blocks,
 * what its registers hold, and the code that is made of it. */
#ifndef AQ_WALKC_PRIV_H
#define AQ_WALKC_PRIV_H

#include "base/error.h"
#include "walkc.h"

/* An instruction of the machine "bpf", as it lies in the file. */
struct bpf_insn {
	uint8_t code;
	uint8_t regs; /* destination low, source high */
	int16_t off;
	int32_t imm;
};
STATIC_ASSERT(sizeof(struct bpf_insn) == 8, "as in the file");

/* Fields of the code (RFC 9669). */
enum {
	BPF_LD = 0,
	BPF_LDX = 1,
	BPF_ST = 2,
	BPF_STX = 3,
	BPF_ALU32 = 4,
	BPF_JMP = 5,
	BPF_JMP32 = 6,
	BPF_ALU64 = 7,

	BPF_CLASS = 0x07,
	BPF_OP = 0xf0,
	BPF_SOURCE = 0x08, /* a register, not the immediate */
	BPF_SIZE = 0x18,
	BPF_MODE = 0xe0,

	BPF_MODE_IMM = 0x00,
	BPF_MODE_MEM = 0x60,
	BPF_MODE_ATOMIC = 0xc0,

	BPF_FRAME = 10, /* the register that points behind the stack */
	BPF_REGS = 11,
};

enum bpf_alu {
	BPF_ADD = 0x00,
	BPF_SUB = 0x10,
	BPF_MUL = 0x20,
	BPF_DIV = 0x30,
	BPF_OR = 0x40,
	BPF_AND = 0x50,
	BPF_LSH = 0x60,
	BPF_RSH = 0x70,
	BPF_NEG = 0x80,
	BPF_MOD = 0x90,
	BPF_XOR = 0xa0,
	BPF_MOV = 0xb0,
	BPF_ARSH = 0xc0,
	BPF_END = 0xd0,
};

enum bpf_jump {
	BPF_JA = 0x00,
	BPF_JEQ = 0x10,
	BPF_JGT = 0x20,
	BPF_JGE = 0x30,
	BPF_JSET = 0x40,
	BPF_JNE = 0x50,
	BPF_JSGT = 0x60,
	BPF_JSGE = 0x70,
	BPF_CALL = 0x80,
	BPF_EXIT = 0x90,
	BPF_JLT = 0xa0,
	BPF_JLE = 0xb0,
	BPF_JSLT = 0xc0,
	BPF_JSLE = 0xd0,
};

enum bpf_atomic {
	BPF_ATOMIC_ADD = 0x00,
	BPF_ATOMIC_FETCH = 0x01,
	BPF_ATOMIC_CMPXCHG = 0xf1,
};

static inline unsigned bpf_class(const struct bpf_insn *i)
{
	return i->code & BPF_CLASS;
}
static inline unsigned bpf_op(const struct bpf_insn *i)
{
	return i->code & BPF_OP;
}
static inline unsigned bpf_dst(const struct bpf_insn *i)
{
	return i->regs & 15;
}
static inline unsigned bpf_src(const struct bpf_insn *i)
{
	return i->regs >> 4;
}
static inline bool bpf_uses_register(const struct bpf_insn *i)
{
	return i->code & BPF_SOURCE;
}
static inline bool bpf_is_wide(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_MODE_IMM | 0x18);
}
/* Bytes that a load or a store moves. */
static inline unsigned bpf_bytes(const struct bpf_insn *i)
{
	static const uint8_t bytes[] = {4, 2, 1, 8};

	return bytes[(i->code & BPF_SIZE) >> 3];
}

/* ---- elf.c, btf.c: the object file ---- */

struct walkc_bytes {
	const uint8_t *at;
	size_t len;
};

/* What a relocation of one instruction names. */
struct walkc_name {
	uint32_t insn;
	const char *symbol;  /* "" where it has no name */
	const char *section; /* where the symbol is; "" if elsewhere */
};

/* The part of a struct that a pointer may reach; bytes 0: not known. */
struct walkc_span {
	int64_t lo;
	uint64_t bytes;
};

struct walkc_function {
	char name[WALKC_NAME_MAX];
	const char *section;
	struct bpf_insn *insns;
	uint32_t count;
	struct walkc_name *names; /* ordered by instruction */
	uint32_t name_count;
	bool is_window_stated;
	struct walkc_span node, pad;
	/* Where lines are looked up, and the file's name without any. */
	const struct walkc_object *object;
};

/* The relocation of that instruction, or NULL. */
const struct walkc_name *walkc_name_of(const struct walkc_function *f,
				       uint32_t insn);

struct walkc_btf {
	struct walkc_bytes types, strings, lines;
	uint32_t *type_at; /* offset by number; [0] is void */
	uint32_t type_count;
};

/* Both sections may be empty. Damaged ones count as empty: they only have
 * names and lines for people, and sizes, which are asked for if missing. */
int walkc_btf_open(struct walkc_btf *b, struct walkc_bytes btf,
		   struct walkc_bytes ext) MUST_CHECK;
void walkc_btf_close(struct walkc_btf *b);
/* Sizes of what the two parameters of a function point to; 0: not known. Of an
 * iterator, `name` is that of its pointer to a function. */
void walkc_btf_parameters(const struct walkc_btf *b, const char *name,
			  uint64_t bytes[2]);
/* The line of an instruction; false if it is not known. */
bool walkc_btf_line(const struct walkc_btf *b, const char *section,
		    uint32_t insn, const char **file, uint32_t *line);

/* Walk `i` of an object. */
const struct walkc_function *walkc_object_function(const struct walkc_object *o,
						   unsigned i);

/* Refuses, with file, line and function in front of the words. */
int walkc_refuse(const struct walkc_function *f, uint32_t insn, const char *fmt,
		 ...) PRINTF(3, 4) MUST_CHECK;

#endif
