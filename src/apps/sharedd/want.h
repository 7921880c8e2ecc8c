/* SPDX-License-Identifier: Apache-2.0 */
/* What programs want of the lead: objects, that is segments by their names or
 * ids. One request and its answer. */
#ifndef AQ_SHD_WANT_H
#define AQ_SHD_WANT_H

#include "client/client.h"
#include "coherent/channel.h"

enum shd_want_kind {
	SHD_WANT_OPEN,
	SHD_WANT_CLOSE,
	SHD_WANT_RESIZE,
	SHD_WANT_UNLINK,
};

struct shd_want {
	enum shd_want_kind kind;
	uint64_t serial; /* of who asks; 0: nobody waits for the answer */
	uint64_t id;	 /* 0: by its name */
	uint64_t length_bytes;
	bool creates, is_exclusive, wants_two;
	char name[COHERENT_NAME_MAX];
};

struct shd_got {
	enum shd_want_kind kind;
	uint64_t serial;
	int err;
	bool is_new;
	uint64_t id; /* after an error the one that was asked for; 0: a name */
	/* Of OPEN and RESIZE. */
	uint64_t va, length_bytes, reserved_bytes;
};

/* Asks for it as this member; the error is in the answer. */
void shd_want_do(const struct client_caller *caller,
		 const struct client_node *lead, const char *member,
		 const struct shd_want *want, struct shd_got *out);

#endif
