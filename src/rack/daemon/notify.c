/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of sd_notify(3): a datagram per change of state. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon_priv.h"

enum {
	SEND_S = 5,
};

int notify_open(void)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const struct timeval wait = {.tv_sec = SEND_S};
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (n == 0)
		return -1;
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof(sa.sun_path)) {
		log_warn("daemon", "NOTIFY_SOCKET=%.120s is no socket", path);
		return -1;
	}
	memcpy(sa.sun_path, path, n);
	if (path[0] == '@') /* a name that is in no directory */
		sa.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* One who does not listen must not hold us up; without the limit we
	 * would only wait longer. */
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait,
				 sizeof(wait));
	if (fd >= 0 &&
	    connect(fd, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) ==
		    0)
		return fd;
	log_warn("daemon", "NOTIFY_SOCKET=%.120s: %s", path, strerror(errno));
	if (fd >= 0)
		(void)close(fd); /* never used */
	return -1;
}

void notify_send(int fd, const char *state)
{
	if (fd >= 0 && send(fd, state, strlen(state), MSG_NOSIGNAL) < 0)
		log_warn("daemon", "%s cannot be told to systemd: %s", state,
			 strerror(errno));
}
