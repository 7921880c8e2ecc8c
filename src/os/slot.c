/* SPDX-License-Identifier: Apache-2.0 */
/* Leases and finds slots through names in the abstract unix namespace. */
#include "slot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os_limits.h"

static socklen_t slot_name(struct sockaddr_un *sa, const char *rack,
			   const uint8_t ip[4], uint32_t slot)
{
	int n;

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* The leading zero byte makes it abstract: no file, no remains. */
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
		     "aquifer/%s/%u.%u.%u.%u/%u", rack, ip[0], ip[1], ip[2],
		     ip[3], slot);
	ASSERT(n > 0 && (size_t)n < sizeof(sa->sun_path) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

static socklen_t switch_name(struct sockaddr_un *sa, const char *rack,
			     const char *name)
{
	int n;

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
		     "aquifer/%s/switch/%s", rack, name);
	ASSERT(n > 0 && (size_t)n < sizeof(sa->sun_path) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	return fd < 0 ? -errno : fd;
}

int slot_lease(const char *rack, const uint8_t ip[4], uint32_t start,
	       uint32_t *slot, int *fd)
{
	const uint32_t count = OS_SLOT_COUNT - OS_SLOT_FIRST;
	int s = open_socket();
	int err = -EUSERS;

	if (s < 0)
		return s;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = OS_SLOT_FIRST + (start + i) % count;
		struct sockaddr_un sa;
		socklen_t len = slot_name(&sa, rack, ip, n);

		if (bind(s, (struct sockaddr *)&sa, len) < 0) {
			if (errno == EADDRINUSE)
				continue;
			err = -errno;
			break;
		}
		if (listen(s, OS_BACKLOG) < 0) {
			err = -errno;
			break;
		}
		*slot = n;
		*fd = s;
		return 0;
	}
	close(s);
	return err;
}

static int connect_to(const struct sockaddr_un *sa, socklen_t len, int *fd)
{
	int s = open_socket();

	if (s < 0)
		return s;
	if (connect(s, (const struct sockaddr *)sa, len) < 0) {
		int err = -errno;

		close(s);
		return err;
	}
	*fd = s;
	return 0;
}

int slot_connect(const char *rack, const uint8_t ip[4], uint32_t slot, int *fd)
{
	struct sockaddr_un sa;
	socklen_t len = slot_name(&sa, rack, ip, slot);

	return connect_to(&sa, len, fd);
}

int slot_switch_connect(const char *rack, const char *name, int *fd)
{
	struct sockaddr_un sa;
	socklen_t len = switch_name(&sa, rack, name);

	return connect_to(&sa, len, fd);
}

int slot_switch_listen(const char *rack, const char *name, int *fd)
{
	struct sockaddr_un sa;
	socklen_t len = switch_name(&sa, rack, name);
	int s = open_socket();

	if (s < 0)
		return s;
	if (bind(s, (struct sockaddr *)&sa, len) < 0 ||
	    listen(s, OS_BACKLOG) < 0) {
		int err = -errno;

		close(s);
		return err;
	}
	*fd = s;
	return 0;
}
