/* SPDX-License-Identifier: Apache-2.0 */
/* Makes listening sockets, and accepts. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "server_priv.h"

enum {
	BACKLOG = 511,
};

static int fail(int fd, int err, const char *where)
{
	if (fd >= 0)
		(void)close(fd); /* nothing was written */
	return error_set(
		err, "cannot listen on %s: %s%s", where, strerror(-err),
		err == -EADDRINUSE ? "; choose another with --port or --socket"
				   : "");
}

int listener_tcp(const char *address, uint16_t port, uint16_t *bound, int *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICHOST};
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addrinfo *info = NULL;
	char service[8];
	int fd, one = 1, err;

	(void)snprintf(service, sizeof(service), "%u", port);
	err = getaddrinfo(address, service, &hints, &info);
	if (err || !info)
		return error_set(-EINVAL, "'%.64s' is no address to listen on",
				 address);
	fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, info->ai_addr, info->ai_addrlen) < 0 ||
	    listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		err = -errno;
	freeaddrinfo(info);
	if (err)
		return fail(fd, err, address);
	*bound = ntohs(ss.ss_family == AF_INET6
			       ? ((struct sockaddr_in6 *)&ss)->sin6_port
			       : ((struct sockaddr_in *)&ss)->sin_port);
	*out = fd;
	return 0;
}

/* Whether somebody answers behind the name. */
static bool is_served(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool answers = fd >= 0 && connect(fd, (const struct sockaddr *)sun,
					  sizeof(*sun)) == 0;

	if (fd >= 0)
		(void)close(fd);
	return answers;
}

int listener_unix(const char *path, int *out)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct stat st;
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		return error_set(-ENAMETOOLONG,
				 "the socket's path has more than %zu "
				 "characters",
				 sizeof(sun.sun_path) - 1);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return error_set(-EEXIST, "%s is no socket", path);
		if (is_served(&sun))
			return fail(-1, -EADDRINUSE, path);
		if (unlink(path) < 0)
			return fail(-1, -errno, path);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    chmod(path, 0600) < 0 || listen(fd, BACKLOG) < 0)
		return fail(fd, -errno, path);
	*out = fd;
	return 0;
}

int listener_accept(int listener_fd, char *address, size_t address_bytes)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd = accept4(listener_fd, (struct sockaddr *)&ss, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (ss.ss_family == AF_UNIX ||
	    getnameinfo((struct sockaddr *)&ss, len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		(void)snprintf(address, address_bytes, "unix:0");
	else
		(void)snprintf(address, address_bytes, "%.50s:%.8s", host,
			       port);
	return fd;
}
