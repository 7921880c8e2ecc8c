/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encode and decode of the blocks of IEEE 802.3 clause 49, from one table of
 * formats. Memory blocks are in block66_mem.c.
 */
#include "block66.h"

#include <string.h>

struct format {
	uint8_t type;
	char chars[WIRE_BLOCK_CHARS + 1]; /* D, C, O, S or T for each */
};

static const struct format formats[WIRE_BLOCK_TYPES] = {
	{WIRE_TYPE_IDLE, "CCCCCCCC"},	{WIRE_TYPE_C_O, "CCCCODDD"},
	{WIRE_TYPE_C_S, "CCCCSDDD"},	{WIRE_TYPE_O_S, "ODDDSDDD"},
	{WIRE_TYPE_O_O, "ODDDODDD"},	{WIRE_TYPE_START, "SDDDDDDD"},
	{WIRE_TYPE_O_C, "ODDDCCCC"},	{WIRE_TYPE_TERM_0, "TCCCCCCC"},
	{WIRE_TYPE_TERM_1, "DTCCCCCC"}, {WIRE_TYPE_TERM_2, "DDTCCCCC"},
	{WIRE_TYPE_TERM_3, "DDDTCCCC"}, {WIRE_TYPE_TERM_4, "DDDDTCCC"},
	{WIRE_TYPE_TERM_5, "DDDDDTCC"}, {WIRE_TYPE_TERM_6, "DDDDDDTC"},
	{WIRE_TYPE_TERM_7, "DDDDDDDT"},
};

/* Control characters and their seven-bit codes (table 49-1). */
static const struct code {
	uint8_t xgmii;
	uint8_t code;
} codes[] = {
	{WIRE_XGMII_IDLE, 0x00},
	{WIRE_XGMII_LPI, 0x06},
	{WIRE_XGMII_ERROR, 0x1e},
	{0x1c, 0x2d},
	{0x3c, 0x33},
	{0x7c, 0x4b},
	{0xbc, 0x55},
	{0xdc, 0x66},
	{0xf7, 0x78},
};

enum {
	O_CODE_SEQUENCE = 0x0,
	O_CODE_SIGNAL = 0xf,
};

static const struct code *code_of_xgmii(uint8_t xgmii)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].xgmii == xgmii)
			return &codes[i];
	return NULL;
}

static const struct code *code_of_bits(uint64_t bits)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].code == bits)
			return &codes[i];
	return NULL;
}

/*
 * The first bit of character i. The type takes eight bits, so control codes of
 * seven bits fill a block from its end; in the first half of a block whose
 * second half holds bytes, they fill from the type. A block that ends a frame
 * has no character for its /T/, which moves its bytes up by one place.
 */
static unsigned place_bit(const struct format *f, unsigned i)
{
	bool ends = f->type >= WIRE_TYPE_TERM_0;

	switch (f->chars[i]) {
	case 'D':
		return 8 * (ends ? i + 1 : i);
	case 'O':
		return i == 0 ? 32 : 36;
	default:
		return i < 4 && f->chars[7] == 'D' ? 8 + 7 * i
						   : 64 - 7 * (8 - i);
	}
}

static char place_of(const struct wire_xgmii *x, unsigned i)
{
	if (!(x->control >> i & 1))
		return 'D';
	switch (x->character[i]) {
	case WIRE_XGMII_START:
		return 'S';
	case WIRE_XGMII_TERMINATE:
		return 'T';
	case WIRE_XGMII_SEQUENCE:
	case WIRE_XGMII_SIGNAL:
		return 'O';
	default:
		return code_of_xgmii(x->character[i]) ? 'C' : '?';
	}
}

static const struct format *format_of_chars(const struct wire_xgmii *x)
{
	char chars[WIRE_BLOCK_CHARS];

	for (unsigned i = 0; i < WIRE_BLOCK_CHARS; i++)
		chars[i] = place_of(x, i);
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!memcmp(chars, formats[i].chars, sizeof(chars)))
			return &formats[i];
	return NULL;
}

static const struct format *format_of_type(uint8_t type)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (formats[i].type == type)
			return &formats[i];
	return NULL;
}

enum wire_block_error wire_block_encode(const struct wire_xgmii *x,
					struct wire_block *b)
{
	const struct format *f;
	uint64_t payload;

	if (x->control == 0) {
		payload = 0;
		for (unsigned i = 0; i < WIRE_BLOCK_CHARS; i++)
			payload |= (uint64_t)x->character[i] << 8 * i;
		*b = (struct wire_block){payload, WIRE_SYNC_DATA};
		return WIRE_BLOCK_OK;
	}
	f = format_of_chars(x);
	if (!f)
		return WIRE_BLOCK_E_CHARS;
	payload = f->type;
	for (unsigned i = 0; i < WIRE_BLOCK_CHARS; i++) {
		uint8_t c = x->character[i];
		uint64_t bits;

		if (f->chars[i] == 'D')
			bits = c;
		else if (f->chars[i] == 'C')
			bits = code_of_xgmii(c)->code;
		else if (f->chars[i] == 'O')
			bits = c == WIRE_XGMII_SIGNAL ? O_CODE_SIGNAL
						      : O_CODE_SEQUENCE;
		else
			continue;
		payload |= bits << place_bit(f, i);
	}
	*b = (struct wire_block){payload, WIRE_SYNC_CONTROL};
	return WIRE_BLOCK_OK;
}

static enum wire_block_error decode_control(const struct format *f,
					    uint64_t payload,
					    struct wire_xgmii *x)
{
	for (unsigned i = 0; i < WIRE_BLOCK_CHARS; i++) {
		uint64_t bits = payload >> place_bit(f, i) % 64;
		const struct code *code;

		x->control |= (uint8_t)((f->chars[i] != 'D') << i);
		switch (f->chars[i]) {
		case 'D':
			x->character[i] = (uint8_t)bits;
			break;
		case 'C':
			code = code_of_bits(bits & 0x7f);
			if (!code)
				return WIRE_BLOCK_E_CODE;
			x->character[i] = code->xgmii;
			break;
		case 'O':
			bits &= 0xf;
			if (bits != O_CODE_SEQUENCE && bits != O_CODE_SIGNAL)
				return WIRE_BLOCK_E_CODE;
			x->character[i] =
				bits ? WIRE_XGMII_SIGNAL : WIRE_XGMII_SEQUENCE;
			break;
		case 'S':
			x->character[i] = WIRE_XGMII_START;
			break;
		default:
			x->character[i] = WIRE_XGMII_TERMINATE;
			break;
		}
	}
	return WIRE_BLOCK_OK;
}

enum wire_block_error wire_block_decode(const struct wire_block *b,
					struct wire_xgmii *x)
{
	struct wire_xgmii out = {{0}, 0};
	const struct format *f;
	enum wire_block_error e;

	if (b->sync == WIRE_SYNC_DATA) {
		for (unsigned i = 0; i < WIRE_BLOCK_CHARS; i++)
			out.character[i] = (uint8_t)(b->payload >> 8 * i);
		*x = out;
		return WIRE_BLOCK_OK;
	}
	if (b->sync != WIRE_SYNC_CONTROL)
		return WIRE_BLOCK_E_SYNC;
	f = format_of_type((uint8_t)b->payload);
	if (!f)
		return WIRE_BLOCK_E_TYPE;
	e = decode_control(f, b->payload, &out);
	if (e == WIRE_BLOCK_OK)
		*x = out;
	return e;
}
