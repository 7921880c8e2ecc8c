/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming JSON writer for the commands' --json. It nests at most
 * JSON_OUT_DEPTH deep and keeps no text: every call goes to the stream. One
 * thread. `key` is NULL inside an array and for the outermost value.
 */
#ifndef AQ_JSON_OUT_H
#define AQ_JSON_OUT_H

#include <stdio.h>

#include "base.h"

enum {
	JSON_OUT_DEPTH = 32,
};

struct json_out {
	FILE *stream; /* not owned */
	unsigned depth;
	bool has_member[JSON_OUT_DEPTH];
	char closer[JSON_OUT_DEPTH];
};

void json_out_init(struct json_out *j, FILE *stream);
/* Ends the document with a newline. All objects and arrays must be closed;
 * -EIO when the stream reported an error on the way. */
int json_out_end(struct json_out *j) MUST_CHECK;

void json_out_object(struct json_out *j, const char *key);
void json_out_array(struct json_out *j, const char *key);
void json_out_close(struct json_out *j); /* whichever is open */

void json_out_string(struct json_out *j, const char *key, const char *text);
void json_out_printf(struct json_out *j, const char *key, const char *fmt, ...)
	PRINTF(3, 4);
void json_out_u64(struct json_out *j, const char *key, uint64_t value);
void json_out_i64(struct json_out *j, const char *key, int64_t value);
/* JSON has no infinities and no NaN; they are written as null. */
void json_out_double(struct json_out *j, const char *key, double value);
void json_out_bool(struct json_out *j, const char *key, bool value);
void json_out_null(struct json_out *j, const char *key);

/*
 * Writes `text` to dst as the inside of a JSON string, ended by NUL, never cut
 * inside an escape or a character; returns its length. Bytes that are no UTF-8
 * become U+FFFD, so the output is always valid. size_bytes is at least 1.
 */
size_t json_out_escape(char *dst, size_t size_bytes, const char *text);

#endif
