/* SPDX-License-Identifier: Apache-2.0 */
/* Names and messages of leases. */
#include "lease.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bytes.h"

enum {
	EPHEMERAL_FIRST = 32768,
	EPHEMERAL_COUNT = 28232,
	VERSION = 1,
	HELLO_BYTES = 32,
};

/* What is on the socket: a hello ends where the request begins. */
struct layout {
	be32 magic;
	be32 version;
	be32 kind;
	be32 qpn;
	uint8_t gid[16];
	uint8_t local_gid[16];
	uint8_t mad[LEASE_MAD_BYTES];
};
STATIC_ASSERT(offsetof(struct layout, local_gid) == HELLO_BYTES, "a hello");
STATIC_ASSERT(sizeof(struct layout) == 304, "between processes of two builds");

#define MAGIC 0x4151434du /* "AQCM" */

static bool is_ipv4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

bool lease_ip_is_any(const uint8_t ip[16])
{
	static const uint8_t zero[16];

	return !memcmp(ip, zero, 16) ||
	       (is_ipv4(ip) && !memcmp(ip + 12, zero, 4));
}

/* "cm:<port space>:<port>:<address or any>" */
static void name_make(const struct lease_port *p,
		      char name[RACK_SOCKET_NAME_MAX])
{
	char ip[INET6_ADDRSTRLEN] = "any";

	if (!lease_ip_is_any(p->ip)) {
		if (is_ipv4(p->ip))
			inet_ntop(AF_INET, p->ip + 12, ip, sizeof(ip));
		else
			inet_ntop(AF_INET6, p->ip, ip, sizeof(ip));
	}
	snprintf(name, RACK_SOCKET_NAME_MAX, "cm:%x:%u:%s", p->ps, p->port, ip);
}

static int bind_one(const struct rack_sockets *r, const struct lease_port *port,
		    int fd)
{
	char name[RACK_SOCKET_NAME_MAX];

	name_make(port, name);
	return rack_socket_bind(r, name, fd);
}

static int bind_any(const struct rack_sockets *r, struct lease_port *port,
		    int fd)
{
	struct lease_port p = *port;
	uint32_t start;
	int err = -EADDRINUSE;

	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		start = (uint32_t)getpid();
	for (uint32_t i = 0; i < EPHEMERAL_COUNT && err == -EADDRINUSE; i++) {
		p.port = (uint16_t)(EPHEMERAL_FIRST +
				    (start + i) % EPHEMERAL_COUNT);
		err = bind_one(r, &p, fd);
	}
	if (!err)
		port->port = p.port;
	return err;
}

int lease_bind(const struct rack_sockets *r, struct lease_port *port, int *fd)
{
	int err, lock, s = rack_socket_begin(r, &lock);

	if (s < 0)
		return s;
	err = port->port ? bind_one(r, port, s) : bind_any(r, port, s);
	return rack_socket_end(r, lock, s, err, fd);
}

void lease_release(const struct rack_sockets *r, const struct lease_port *port,
		   int fd)
{
	char name[RACK_SOCKET_NAME_MAX];

	name_make(port, name);
	rack_socket_release(r, name, fd);
}

static int connect_one(const struct rack_sockets *r,
		       const struct lease_port *port, int *fd)
{
	char name[RACK_SOCKET_NAME_MAX];

	name_make(port, name);
	return rack_socket_connect(r, name, fd);
}

int lease_connect(const struct rack_sockets *r, const struct lease_port *port,
		  int *fd)
{
	struct lease_port any = *port;
	int err = connect_one(r, port, fd);

	if (err != -ECONNREFUSED)
		return err;
	memset(any.ip, 0, sizeof(any.ip));
	return connect_one(r, &any, fd);
}

int lease_send(int fd, const struct lease_msg *msg)
{
	struct layout l = {
		.magic = be32_put(MAGIC),
		.version = be32_put(VERSION),
		.kind = be32_put(msg->kind),
		.qpn = be32_put(msg->qpn),
	};
	size_t bytes = msg->kind == LEASE_MAD ? sizeof(l) : HELLO_BYTES;

	memcpy(l.gid, msg->gid, sizeof(l.gid));
	memcpy(l.local_gid, msg->local_gid, sizeof(l.local_gid));
	memcpy(l.mad, msg->mad, sizeof(l.mad));
	return send(fd, &l, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
								    : 0;
}

int lease_receive(int fd, struct lease_msg *msg)
{
	struct layout l = {0};
	ssize_t n = recv(fd, &l, sizeof(l), MSG_DONTWAIT);

	if (n == 0)
		return -EPIPE;
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	if (n < HELLO_BYTES || be32_get(l.magic) != MAGIC ||
	    be32_get(l.version) != VERSION)
		return -EBADMSG;
	msg->kind = be32_get(l.kind);
	if (n != (msg->kind == LEASE_HELLO ? HELLO_BYTES
		  : msg->kind == LEASE_MAD ? (ssize_t)sizeof(l)
					   : -1))
		return -EBADMSG;
	msg->qpn = be32_get(l.qpn);
	if (!msg->qpn || msg->qpn >> 24)
		return -EBADMSG;
	memcpy(msg->gid, l.gid, sizeof(l.gid));
	memcpy(msg->local_gid, l.local_gid, sizeof(l.local_gid));
	memcpy(msg->mad, l.mad, sizeof(l.mad));
	return 0;
}
