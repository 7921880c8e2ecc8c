/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request of HTTP/1 says before its body. It is strict: what could be
 * read in two ways (a length twice, a length and chunks, a folded line, a space
 * before a colon) is refused.
 */
#ifndef AQ_CTL_HEAD_PRIV_H
#define AQ_CTL_HEAD_PRIV_H

#include "base/base.h"

enum {
	HEAD_MAX = 8 << 10,
};

#define HEAD_BODY_MAX (1ull << 40) /* that anybody may announce */

struct head {
	/* All in the text that was parsed. */
	const char *method;
	const char *path;  /* as it came, without the query */
	const char *token; /* what followed "Bearer ", or NULL */
	uint64_t body_bytes;
	bool has_length;
	bool is_chunked; /* the body, and so body_bytes is 0 */
	bool is_old;	 /* HTTP/1.0 */
	bool closes;	 /* the connection ends with the reply */
	bool continues;	 /* the body comes after a "100 Continue" */
};

/* The bytes of the head at the beginning of the text, with the empty line at
 * its end; 0: it is not complete. Nothing is changed. */
size_t head_length(const char *text, size_t text_bytes);
/* Parses that many bytes, into which it writes. 0, or the HTTP status of the
 * refusal; error_last() has the words. */
unsigned head_parse(char *text, size_t head_bytes, struct head *out) MUST_CHECK;

#endif
