/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the server's listening sockets. */
#include "listen_priv.h"

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
#include "base/trust.h"
#include "ctl_server.h"

static int fail(int fd, int err, const char *what, const char *where)
{
	if (fd >= 0)
		(void)close(fd); /* nothing was written */
	return error_set(err, "cannot %s %s: %s", what, where, strerror(-err));
}

int listen_unix(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct trust trust;
	struct stat st;
	int fd, err;

	err = trust_load(&trust);
	if (err)
		return err;
	if (strlen(path) >= sizeof(sun.sun_path))
		return error_set(-ENAMETOOLONG,
				 "the socket's path %s has more than %zu "
				 "characters; set AQUIFER_RUNDIR to a shorter "
				 "one",
				 path, sizeof(sun.sun_path) - 1);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	/* Whoever owned it is gone: the caller holds the node's lock. */
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return error_set(-EEXIST, "%s is no socket", path);
		if (unlink(path) < 0)
			return fail(-1, -errno, "remove the old", path);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return fail(fd, -errno, "bind", path);
	/* Before listen(2) nobody can connect, so there is no gap. Members of
	 * the rack's group come with tokens of their own. */
	if (chmod(path, trust.has_group ? 0660 : 0600) < 0 ||
	    listen(fd, CTL_SERVER_BACKLOG) < 0)
		return fail(fd, -errno, "listen on", path);
	return fd;
}

/* "1.2.3.4:80", "[::1]:80" or "name:80" into its two parts. */
static int split(const char *address, char host[256], const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? (size_t)(colon - address) : 0;
	const char *start = address;

	if (!colon || colon[1] == 0 || len == 0 || len >= 256)
		return error_set(-EINVAL,
				 "'%.64s' is no ADDRESS:PORT to listen on",
				 address);
	if (address[0] == '[' && address[len - 1] == ']') {
		start++;
		len -= 2;
	}
	memcpy(host, start, len);
	host[len] = 0;
	*port = colon + 1;
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	if (ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	return ntohs(((struct sockaddr_in *)&ss)->sin_port);
}

static bool is_loopback(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return sa->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
		(IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) &&
		 in6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
}

int listen_tcp(const char *address, bool may_be_public, uint16_t *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *info = NULL;
	const char *service = NULL;
	char host[256];
	int fd, one = 1, err;

	err = split(address, host, &service);
	if (err)
		return err;
	err = getaddrinfo(host, service, &hints, &info);
	if (err || !info)
		return error_set(-EINVAL, "cannot listen on %.64s: %s", address,
				 gai_strerror(err));
	if (!may_be_public && !is_loopback(info->ai_addr)) {
		freeaddrinfo(info);
		return error_set(
			-EPERM,
			"others can reach %.64s, and without TLS whoever sees "
			"the network can use the tokens: give --tls-cert and "
			"--tls-key ('aquifer cert' makes them), or --insecure "
			"where WireGuard or the like is below",
			address);
	}
	fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	/* A node that was killed must not wait for old connections to fade. */
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, info->ai_addr, info->ai_addrlen) < 0 ||
	    listen(fd, CTL_SERVER_BACKLOG) < 0)
		err = -errno;
	freeaddrinfo(info);
	if (err)
		return fail(fd, err, "listen on", address);
	*port = port_of(fd);
	return fd;
}
