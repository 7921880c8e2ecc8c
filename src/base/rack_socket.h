/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets with a name in the runtime directory of a rack: only processes that
 * may enter the directory can find them. A name belongs to a network namespace,
 * as addresses do. It is taken for as long as its socket lives; a process that
 * is killed leaves a file, which the next process that wants the name removes
 * (decision 14).
 */
#ifndef AQ_RACK_SOCKET_H
#define AQ_RACK_SOCKET_H

#include "base.h"

enum {
	RACK_SOCKET_NAME_MAX = 80, /* with the NUL; sun_path has 108 */
};

/* Where the sockets of a rack are. */
struct rack_sockets {
	int dir_fd;   /* -1: closed */
	uint64_t net; /* the network namespace */
	bool shared;  /* with another user or a group */
};

/* Makes the runtime directory if needed; error_last() has the words. */
int rack_sockets_open(const char *rack, struct rack_sockets *out) MUST_CHECK;
void rack_sockets_close(struct rack_sockets *r);

/* Lets one process at a time take names and give them back. */
int rack_sockets_lock(const struct rack_sockets *r) MUST_CHECK;
void rack_sockets_unlock(const struct rack_sockets *r, int lock);

/*
 * Gives a socket of type SOCK_SEQPACKET a name. The caller holds the lock,
 * until the socket listens if it is to listen. -EADDRINUSE: a living socket has
 * the name, or a dead one of another user. -EINVAL: a slash, or too long.
 */
int rack_socket_bind(const struct rack_sockets *r, const char *name,
		     int fd) MUST_CHECK;
/* Takes the name away and closes the socket. Only the process that bound it may
 * call this; a forked child just closes the socket. */
void rack_socket_release(const struct rack_sockets *r, const char *name,
			 int fd);

/* The file of a name in the directory; -EINVAL as of rack_socket_bind. */
int rack_socket_file(const struct rack_sockets *r, const char *name,
		     char out[RACK_SOCKET_NAME_MAX]) MUST_CHECK;
/* A new socket that is connected, without waiting for the owner to accept.
 * -ECONNREFUSED: no process listens. */
int rack_socket_connect(const struct rack_sockets *r, const char *name,
			int *fd) MUST_CHECK;

/* SOCK_SEQPACKET, non-blocking, closed by exec; fd or -errno. */
int rack_socket_open(void) MUST_CHECK;
/*
 * How to take a name: _begin makes a new socket and takes the lock, or returns
 * -errno; then comes rack_socket_bind; _end gives the lock back. On `err`,
 * which it returns, it closes the socket; else *fd is the socket.
 */
int rack_socket_begin(const struct rack_sockets *r, int *lock) MUST_CHECK;
int rack_socket_end(const struct rack_sockets *r, int lock, int socket, int err,
		    int *fd) MUST_CHECK;

#endif
