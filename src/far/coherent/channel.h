/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a program and its machine's cache server: a SOCK_SEQPACKET socket in
 * the rack's runtime directory, one connection for each mapping, which lives as
 * long as the connection.
 *
 *  program				server
 *  ask OPEN {address, size, id}
 *					answer, with the file, and the device
 *					for userfaultfds where there is one
 *  ask MAPPED, with the userfaultfd
 *					answer: the memory can be used
 *  ask FLUSH {offset, length}
 *					answer, when the memory node has it
 *  ask STAT
 *					answer with counts
 */
#ifndef AQ_COHERENT_CHANNEL_H
#define AQ_COHERENT_CHANNEL_H

#include "base/base.h"

enum {
	COHERENT_MAGIC = 0x41516d31, /* "AQm1" */
	COHERENT_SOCKET_MAX = 80,
};

enum coherent_ask_kind {
	COHERENT_OPEN = 1,
	COHERENT_MAPPED,
	COHERENT_FLUSH,
	COHERENT_STAT,
};

struct coherent_ask {
	uint32_t magic;
	uint32_t kind; /* enum coherent_ask_kind */
	uint64_t va;   /* OPEN: of the segment; FLUSH: of the range */
	uint64_t size_bytes;
	uint64_t id; /* OPEN: of the segment */
};

struct coherent_answer {
	uint32_t magic;
	int32_t err;
	uint32_t has_device; /* OPEN: the second descriptor is the device */
	uint32_t zero;
	/* STAT: of this segment on this machine. */
	uint64_t cached_bytes;
	uint64_t faults, gets, invals, gives;
};

/* The name of the server's socket in the rack's runtime directory: one for each
 * address of a NIC, as it is configured for server and program. */
int coherent_socket_name(char name[COHERENT_SOCKET_MAX]) MUST_CHECK;

#endif
