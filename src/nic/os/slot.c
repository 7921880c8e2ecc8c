/* SPDX-License-Identifier: Apache-2.0 */
/* Leases and finds slots, and switches, by names in the runtime directory. */
#include "slot.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os_limits.h"

static void slot_name(const uint8_t ip[4], uint32_t slot,
		      char name[RACK_SOCKET_NAME_MAX])
{
	snprintf(name, RACK_SOCKET_NAME_MAX, "%u.%u.%u.%u:%u", ip[0], ip[1],
		 ip[2], ip[3], slot);
}

static void switch_name(const char *switch_, char name[RACK_SOCKET_NAME_MAX])
{
	snprintf(name, RACK_SOCKET_NAME_MAX, "switch:%s", switch_);
}

/* With the lock: who is bound and does not listen yet counts as alive, but
 * could not be reached. */
static int take(const struct rack_sockets *r, const char *name, int fd)
{
	int err = rack_socket_bind(r, name, fd);

	if (!err && listen(fd, OS_BACKLOG) < 0)
		err = -errno;
	return err;
}

/* Slots beginning at `first`, `count` of them, one after the other. */
static int take_one(const struct rack_sockets *r, const uint8_t ip[4],
		    uint32_t first, uint32_t count, uint32_t *slot, int *fd)
{
	const uint32_t all = OS_SLOT_COUNT - OS_SLOT_FIRST;
	char name[RACK_SOCKET_NAME_MAX];
	int err = -EADDRINUSE, lock, s = rack_socket_begin(r, &lock);
	uint32_t n = first;

	if (s < 0)
		return s;
	for (uint32_t i = 0; i < count && err == -EADDRINUSE; i++) {
		n = OS_SLOT_FIRST + (first - OS_SLOT_FIRST + i) % all;
		slot_name(ip, n, name);
		err = take(r, name, s);
	}
	*slot = n;
	return rack_socket_end(r, lock, s, err, fd);
}

int slot_lease(const struct rack_sockets *r, const uint8_t ip[4],
	       uint32_t start, uint32_t *slot, int *fd)
{
	const uint32_t all = OS_SLOT_COUNT - OS_SLOT_FIRST;
	int err = take_one(r, ip, OS_SLOT_FIRST + start % all, all, slot, fd);

	return err == -EADDRINUSE ? -EUSERS : err;
}

int slot_take(const struct rack_sockets *r, const uint8_t ip[4], uint32_t slot,
	      int *fd)
{
	uint32_t got;

	if (slot < OS_SLOT_FIRST || slot >= OS_SLOT_COUNT)
		return -EINVAL;
	return take_one(r, ip, slot, 1, &got, fd);
}

void slot_release(const struct rack_sockets *r, const uint8_t ip[4],
		  uint32_t slot, int fd)
{
	char name[RACK_SOCKET_NAME_MAX];

	slot_name(ip, slot, name);
	rack_socket_release(r, name, fd);
}

int slot_connect(const struct rack_sockets *r, const uint8_t ip[4],
		 uint32_t slot, int *fd)
{
	char name[RACK_SOCKET_NAME_MAX];

	slot_name(ip, slot, name);
	return rack_socket_connect(r, name, fd);
}

bool slot_is_of(const struct rack_sockets *r, const uint8_t ip[4],
		uint32_t slot, const struct ucred *who)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	bool same;
	int fd;

	if (slot_connect(r, ip, slot, &fd))
		return false;
	/* Of who called listen(2). Processes of another process namespace
	 * all have number 0 here: then the user has to do. */
	same = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.pid == who->pid && cred.uid == who->uid;
	close(fd);
	return same;
}

int slot_switch_connect(const struct rack_sockets *r, const char *name, int *fd)
{
	char full[RACK_SOCKET_NAME_MAX];

	switch_name(name, full);
	return rack_socket_connect(r, full, fd);
}

int slot_switch_listen(const struct rack_sockets *r, const char *name, int *fd)
{
	char full[RACK_SOCKET_NAME_MAX];
	int lock, s = rack_socket_begin(r, &lock);

	if (s < 0)
		return s;
	switch_name(name, full);
	return rack_socket_end(r, lock, s, take(r, full, s), fd);
}

void slot_switch_release(const struct rack_sockets *r, const char *name, int fd)
{
	char full[RACK_SOCKET_NAME_MAX];

	switch_name(name, full);
	rack_socket_release(r, full, fd);
}
