/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of control sockets. */
#include "ask.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"

static int dial(const char *path, uint32_t timeout_ms)
{
	struct timeval limit = {.tv_sec = timeout_ms / 1000,
				.tv_usec = timeout_ms % 1000 * 1000};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	int fd, err;

	if (len >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int read_all(int fd, char *text, size_t text_bytes)
{
	size_t len = 0;

	while (len < text_bytes - 1) {
		ssize_t n = recv(fd, text + len, text_bytes - 1 - len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			text[len] = '\0';
			return len ? 0 : -ECONNRESET;
		}
		len += (size_t)n;
	}
	return -EMSGSIZE;
}

int ask_line(const char *path, const char *line, uint32_t timeout_ms,
	     char *reply, size_t reply_bytes)
{
	int fd = dial(path, timeout_ms);
	int err = 0;

	if (fd < 0)
		return fd;
	if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		err = -errno;
	if (!err)
		err = read_all(fd, reply, reply_bytes);
	close(fd);
	return err;
}

int ask_error(const char *reply)
{
	const char *at = strstr(reply, "\"error\"");
	const char *end;

	if (!at)
		return 0;
	at = strchr(at + strlen("\"error\""), '"');
	end = at ? strrchr(at + 1, '"') : NULL;
	if (!end)
		return error_set(-EREMOTEIO, "it refuses");
	return error_set(-EREMOTEIO, "%.*s", (int)(end - at - 1), at + 1);
}
