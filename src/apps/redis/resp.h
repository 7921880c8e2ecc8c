/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis protocol as a server reads it: arrays of bulk strings, and inline
 * commands. Bytes in, one command at a time out; no I/O and no copy: arguments
 * point into the caller's buffer.
 */
#ifndef AQ_RESP_H
#define AQ_RESP_H

#include "base/base.h"

enum {
	RESP_INLINE_MAX = 64 << 10, /* bytes of a line, as in Redis */
	RESP_ARGS_MAX = 1 << 20,
	RESP_ARGS_MAX_STRANGER = 10, /* before AUTH, where there is one */
	RESP_BULK_MAX_STRANGER = 16 << 10,
	RESP_ERROR_MAX = 64,
};

struct resp_str {
	const char *p;
	size_t len;
};

/* Zero-initialised, and freed with resp_parser_release. */
struct resp_parser {
	size_t at;	   /* of the next byte to look at, from the start of
			    * the command */
	uint32_t args_due; /* of the array that is being read; 0: none */
	bool in_array;
	bool in_bulk;	 /* its length is known */
	size_t bulk_len; /* when in_bulk */
	uint32_t argc;
	uint32_t capacity;
	struct resp_span {
		size_t at;
		size_t len;
	} * span;
	char error[RESP_ERROR_MAX]; /* after -EPROTO, without "ERR" */
};

struct resp_limits {
	size_t bulk_max;
	bool is_stranger; /* has not given the password */
};

/*
 * Looks at buf[0..len), which begins with the same command as the last time,
 * with more bytes at the end. 1: a command is complete, in argc and resp_arg(),
 * and has p->at bytes; resp_parser_next() before the following one. 0: bytes
 * are missing. -EPROTO: this is no command, and the connection should end;
 * -ENOMEM. A command may have no argument at all: an empty line.
 *
 * Inline commands are decoded in place, so their bytes change.
 */
int resp_parse(struct resp_parser *p, char *buf, size_t len,
	       const struct resp_limits *limits) MUST_CHECK;
void resp_parser_next(struct resp_parser *p);
void resp_parser_release(struct resp_parser *p);

/* How much the command needs at least, as far as is known; for the reader's
 * buffer. */
size_t resp_want_bytes(const struct resp_parser *p);

static inline struct resp_str resp_arg(const struct resp_parser *p,
				       const char *buf, uint32_t i)
{
	return (struct resp_str){buf + p->span[i].at, p->span[i].len};
}

#endif
