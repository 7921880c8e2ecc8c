/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in RESP2 or RESP3, collected in one buffer. Running out of memory, or
 * over its limit, is remembered, and the connection ends. */
#ifndef AQ_REDIS_REPLY_H
#define AQ_REDIS_REPLY_H

#include "base/base.h"

struct reply {
	char *buf;
	size_t len;
	size_t capacity;
	uint32_t proto; /* 2 or 3 */
	size_t limit;	/* bytes that it may have; 0: any number */
	bool is_lost;	/* incomplete: no memory, or too long */
};

void reply_release(struct reply *r);
/* Room for that many bytes more; false: is_lost. */
bool reply_reserve(struct reply *r, size_t more);
void reply_bytes(struct reply *r, const void *bytes, size_t len);

void reply_simple(struct reply *r, const char *text); /* +OK */
/* "ERR ...": line ends in the text become blanks. */
void reply_error(struct reply *r, const char *fmt, ...) PRINTF(2, 3);
void reply_int(struct reply *r, int64_t n);
void reply_bulk(struct reply *r, const void *bytes, size_t len);
void reply_bulk_text(struct reply *r, const char *text);
void reply_nil(struct reply *r);
void reply_nil_array(struct reply *r); /* an array that there is none of */
void reply_array(struct reply *r, size_t count);
void reply_set(struct reply *r, size_t count); /* an array in RESP2 */
/* `pairs` keys, each with its value; an array twice as long in RESP2. */
void reply_map(struct reply *r, size_t pairs);
/* A text of several lines for people. */
void reply_verbatim(struct reply *r, const char *text, size_t len);

/* Answers with the Redis error for a failed operation on the table. */
void reply_kv_error(struct reply *r, int err);

#endif
