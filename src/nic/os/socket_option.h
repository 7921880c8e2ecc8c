/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sockets that are a number. */
#ifndef AQ_OS_SOCKET_OPTION_H
#define AQ_OS_SOCKET_OPTION_H

#include <errno.h>
#include <sys/socket.h>

static inline int os_socket_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno
								      : 0;
}

/* A buffer of that size: `forced` is SO_RCVBUFFORCE or its like, for which one
 * needs a capability, `plain` what everybody may. */
static inline void os_socket_buffer(int fd, int forced, int plain, int bytes)
{
	if (os_socket_set(fd, SOL_SOCKET, forced, bytes))
		(void)os_socket_set(fd, SOL_SOCKET, plain, bytes);
}

#endif
