/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets with a name in the runtime directory of a rack: who may find them is
 * who may enter the directory. A name belongs to a network namespace, as
 * addresses do. It is taken for as long as its socket lives; a process that is
 * killed leaves a file, which the next who wants the name removes (decision
 * 14).
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
	bool shared;  /* with another user, or the members of a group */
};

/* Makes the runtime directory if needed; error_last() has the words. */
int rack_sockets_open(const char *rack, struct rack_sockets *out) MUST_CHECK;
void rack_sockets_close(struct rack_sockets *r);

/* While names are taken and given back: one process at a time. */
int rack_sockets_lock(const struct rack_sockets *r) MUST_CHECK;
void rack_sockets_unlock(const struct rack_sockets *r, int lock);

/*
 * Gives a socket of type SOCK_SEQPACKET a name; the lock is held until it
 * listens, if it is to. -EADDRINUSE: a living socket has it, or a dead one of
 * somebody else. -EINVAL: a slash, or too long.
 */
int rack_socket_bind(const struct rack_sockets *r, const char *name,
		     int fd) MUST_CHECK;
/* Takes the name away and closes the socket. Only for who bound it: the child
 * of a fork just closes. */
void rack_socket_release(const struct rack_sockets *r, const char *name,
			 int fd);

/* A new socket that is connected, without waiting for the owner to accept.
 * -ECONNREFUSED: nobody listens. */
int rack_socket_connect(const struct rack_sockets *r, const char *name,
			int *fd) MUST_CHECK;

/* SOCK_SEQPACKET, non-blocking, closed by exec; fd or -errno. */
int rack_socket_open(void) MUST_CHECK;
/*
 * To take a name: a new socket and the lock, or -errno; rack_socket_bind; then
 * the lock is given back, and with `err`, which is returned, the socket, else
 * it is *fd.
 */
int rack_socket_begin(const struct rack_sockets *r, int *lock) MUST_CHECK;
int rack_socket_end(const struct rack_sockets *r, int lock, int socket, int err,
		    int *fd) MUST_CHECK;

#endif
