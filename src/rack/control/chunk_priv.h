/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of HTTP/1.1 that come in chunks, because who sends them does not know
 * their length. */
#ifndef AQ_CTL_CHUNK_PRIV_H
#define AQ_CTL_CHUNK_PRIV_H

#include <sys/types.h>

#include "base/base.h"

enum {
	CHUNK_LINE_MAX = 256,	  /* of a size, with what follows it */
	CHUNK_TRAILER_MAX = 4096, /* of what follows the last chunk */
};

enum chunk_at {
	CHUNK_AT_SIZE,
	CHUNK_AT_REST, /* of that line; it means nothing to us */
	CHUNK_AT_DATA,
	CHUNK_AT_DATA_END,
	CHUNK_AT_TRAILER,
	CHUNK_AT_END, /* all of the body has come */
};

/* Zeroed at the beginning of a body. */
struct chunks {
	enum chunk_at at;
	uint64_t left;	 /* of a chunk */
	unsigned digits; /* of its size */
	unsigned bytes;	 /* of this line, or of the trailer */
	bool in_line;	 /* of the trailer */
};

/* Takes a part of the text, at least a byte of it, and returns how much; a
 * piece of the body in it is *data. It must not be called at the end. -EINVAL;
 * error_last() has the words. */
ssize_t chunks_take(struct chunks *c, const char *text, size_t text_bytes,
		    const char **data, size_t *data_bytes) MUST_CHECK;

#endif
