/* SPDX-License-Identifier: Apache-2.0 */
/* Takes chunks apart. */
#include "chunk_priv.h"

#include <errno.h>

#include "base/error.h"
#include "head_priv.h"

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void end_size(struct chunks *c)
{
	c->at = c->left ? CHUNK_AT_DATA : CHUNK_AT_TRAILER;
	c->digits = 0;
	c->bytes = 0;
	c->in_line = false;
}

static bool take_size(struct chunks *c, char byte)
{
	int digit = digit_of(byte);

	if (c->at == CHUNK_AT_SIZE && digit >= 0) {
		c->left = c->left << 4 | (unsigned)digit;
		c->digits++;
		return c->left <= HEAD_BODY_MAX && c->digits <= 16;
	}
	if (!c->digits || ++c->bytes > CHUNK_LINE_MAX)
		return false;
	if (byte == '\n')
		end_size(c);
	else if (c->at == CHUNK_AT_SIZE && byte != '\r' && byte != ';' &&
		 byte != ' ' && byte != '\t')
		return false;
	else
		c->at = CHUNK_AT_REST;
	return true;
}

static bool take_data_end(struct chunks *c, char byte)
{
	if (byte == '\n') {
		c->at = CHUNK_AT_SIZE;
		c->bytes = 0;
		return true;
	}
	return byte == '\r' && ++c->bytes == 1;
}

/* Fields may follow; an empty line is the end. */
static bool take_trailer(struct chunks *c, char byte)
{
	if (byte == '\n') {
		if (!c->in_line)
			c->at = CHUNK_AT_END;
		c->in_line = false;
	} else if (byte != '\r') {
		c->in_line = true;
	}
	return ++c->bytes <= CHUNK_TRAILER_MAX;
}

ssize_t chunks_take(struct chunks *c, const char *text, size_t text_bytes,
		    const char **data, size_t *data_bytes)
{
	bool is_right;

	*data = text;
	*data_bytes = 0;
	if (c->at == CHUNK_AT_DATA) {
		*data_bytes = u64_min(text_bytes, c->left);
		c->left -= *data_bytes;
		if (!c->left)
			c->at = CHUNK_AT_DATA_END;
		return (ssize_t)*data_bytes;
	}
	if (c->at == CHUNK_AT_DATA_END)
		is_right = take_data_end(c, *text);
	else if (c->at == CHUNK_AT_TRAILER)
		is_right = take_trailer(c, *text);
	else
		is_right = take_size(c, *text);
	return is_right ? 1
			: error_set(-EINVAL, "the chunks of this body cannot "
					     "be taken apart");
}
