/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a program and its machine's cache server: a SOCK_SEQPACKET socket in
 * the rack's runtime directory, one connection for each mapping, which lives as
 * long as the connection.
 *
 *  program				server
 *  ask OPEN {address, size, id}	of the segment's whole place
 *					answer, with the file, and the device
 *					for userfaultfds where there is one
 *  ask MAPPED {where, offset, length, stays}, with the userfaultfd
 *					answer: the memory can be used
 *  ask FLUSH {offset, length}
 *					answer, when the memory node has it
 *  ask FETCH_READ, FETCH_WRITE {offset, length}
 *					answer at once; the pages come
 *  ask STAT
 *					answer with counts
 *  ask HELD
 *					answer, with a file: what of all pages
 *					the machine has (sharedd/held.h)
 *
 * A mapping that stays lives until its process ends, executes something else or
 * has unmapped all of it, and needs no connection: so unmodified programs have
 * no descriptor of ours. Their objects (POSIX and System V shared memory) are
 * segments, of which the server asks the lead:
 *
 *  ask FIND {name or id, flags}	answer {id, address, length ...}, with
 *					a placeholder: a descriptor that cannot
 *					be read, written or mapped, whose name
 *					in /proc tells the object's id
 *  ask RESIZE {id, size}, UNLINK {name or id}
 *  ask UNMAP {where, size}		of mappings of this process that stay
 *  ask LISTEN {address of a word}, with the listener of a filter that hands
 *	futex calls of this process and its children over
 */
#ifndef AQ_COHERENT_CHANNEL_H
#define AQ_COHERENT_CHANNEL_H

#include "base/base.h"

enum {
	COHERENT_MAGIC = 0x41516d31, /* "AQm1" */
	COHERENT_SOCKET_MAX = 80,
	COHERENT_NAME_MAX = 64,
};

/* For programs of a group: "<path of the socket> <group> <copies>", where
 * copies is how many memory nodes shall have each object that they make. */
#define COHERENT_ENV "AQUIFER_SHARED"
/* The name of a placeholder, before the object's id in decimals. */
#define COHERENT_PLACEHOLDER "aquifer-object:"

enum coherent_ask_kind {
	COHERENT_OPEN = 1,
	COHERENT_MAPPED,
	COHERENT_FLUSH,
	COHERENT_STAT,
	COHERENT_FIND,
	COHERENT_RESIZE,
	COHERENT_UNLINK,
	COHERENT_UNMAP,
	COHERENT_LISTEN,
	COHERENT_FETCH_READ,
	COHERENT_FETCH_WRITE,
	COHERENT_HELD,
};

enum coherent_flags {
	COHERENT_CREATE = 1 << 0,    /* FIND: make it, if there is none */
	COHERENT_EXCLUSIVE = 1 << 1, /* and only then */
	COHERENT_BARE = 1 << 2,	     /* FIND: without a placeholder */
	COHERENT_STAYS = 1 << 3,     /* MAPPED */
	COHERENT_TWO = 1 << 4, /* FIND: what is made is in two memory nodes */
};

struct coherent_ask {
	uint32_t magic;
	uint32_t kind; /* enum coherent_ask_kind */
	uint64_t va;   /* OPEN: of the segment; FLUSH: of the range; MAPPED,
			  UNMAP:   where */
	uint64_t size_bytes;
	uint64_t id;	 /* OPEN, and of objects; 0: by its name */
	uint64_t offset; /* MAPPED: in the segment */
	uint32_t flags;	 /* enum coherent_flags */
	uint32_t zero;
	char name[COHERENT_NAME_MAX]; /* of an object; with a NUL */
};

struct coherent_answer {
	uint32_t magic;
	int32_t err;
	uint32_t has_device; /* OPEN: the second descriptor is the device */
	uint32_t is_new;     /* FIND: it was made */
	/* Of an object. Without a length it has no address. */
	uint64_t id, va, length_bytes, reserved_bytes;
	/* STAT: of this segment on this machine. */
	uint64_t cached_bytes;
	uint64_t faults, gets, invals, gives;
};

/* The name of the server's socket in the rack's runtime directory: one for each
 * address of a NIC, as it is configured for server and program. */
int coherent_socket_name(char name[COHERENT_SOCKET_MAX]) MUST_CHECK;

#endif
