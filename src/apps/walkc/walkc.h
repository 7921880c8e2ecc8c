/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks from C: translates an object file that clang made for the machine "bpf"
 * from a source with <aquifer/walk_prog.h> into the image of a walk. What the
 * translator makes is not trusted: walk_verify judges it here and at every node
 * again.
 *
 * Errors are -EINVAL (this cannot be a walk), -EBADMSG (no such object file)
 * and -ENOMEM; error_last() says what is wrong and what to do about it, with
 * file, line and function where the object was compiled with -g: "find.c:12:
 * find:
 * ...".
 */
#ifndef AQ_WALKC_H
#define AQ_WALKC_H

#include "base/base.h"

enum {
	WALKC_NAME_MAX = 24,	 /* of a walk, with its end */
	WALKC_WALKS_MAX = 64,	 /* of one file */
	WALKC_INSNS_MAX = 16384, /* of a function, before translation */
	WALKC_BYTES_MAX = 16 << 20,
};

struct walkc_object; /* an object file; one thread at a time */

/* Copies the bytes. `file` is the name for messages. */
int walkc_object_open(const void *bytes, size_t len, const char *file,
		      struct walkc_object **out) MUST_CHECK;
void walkc_object_close(struct walkc_object *o); /* NULL is fine */

unsigned walkc_object_count(const struct walkc_object *o); /* at least 1 */
const char *walkc_object_name(const struct walkc_object *o, unsigned i);

/* The file of walk `i`, verified; the caller frees it. `longest_max` is as of
 * walk_verify. */
int walkc_translate(const struct walkc_object *o, unsigned i,
		    uint32_t longest_max, void **image,
		    size_t *image_bytes) MUST_CHECK;

#endif
