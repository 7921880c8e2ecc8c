/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets of the gateway. */
#ifndef AQ_REDIS_DOOR_H
#define AQ_REDIS_DOOR_H

#include "base/base.h"

/* `port` 0: any; *bound is the one. */
int door_tcp(const char *address, uint16_t port, uint16_t *bound,
	     int *fd) MUST_CHECK;
/* A socket that nobody serves any more is replaced. */
int door_unix(const char *path, int *fd) MUST_CHECK;

/* The next client, not blocking, and where it comes from; or -errno. */
int door_accept(int door_fd, char *address, size_t address_bytes) MUST_CHECK;

#endif
