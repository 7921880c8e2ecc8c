/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports, leased by binding names in the abstract unix namespace: exclusive, and
 * given back by the kernel when their owner dies. Who wants to connect learns
 * there which queue pair to talk to.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bytes.h"
#include "cm_priv.h"
#include "wire.h"

enum {
	EPHEMERAL_FIRST = 32768,
	EPHEMERAL_COUNT = 28232,
	VERSION = 1,
};

struct hello {
	be32 magic;
	be32 version;
	be32 qpn;
	uint8_t gid[16];
};
STATIC_ASSERT(sizeof(struct hello) == 28, "between processes of two builds");

#define MAGIC 0x4151434du /* "AQCM" */

/* "aquifer/<rack>/<address or *>/cm/<port space>/<port>" */
static int name_make(const char *rack, const struct cm_port *p,
		     struct sockaddr_un *sa, socklen_t *len)
{
	char ip[INET6_ADDRSTRLEN] = "*";
	int n;

	if (!cm_ip_is_any(p->ip)) {
		if (wire_is_ipv4(p->ip))
			inet_ntop(AF_INET, p->ip + 12, ip, sizeof(ip));
		else
			inet_ntop(AF_INET6, p->ip, ip, sizeof(ip));
	}
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
		     "aquifer/%s/%s/cm/%x/%u", rack, ip, p->ps, p->port);
	if (n < 0 || (size_t)n >= sizeof(sa->sun_path) - 1)
		return -ENAMETOOLONG;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
	return 0;
}

static int socket_open(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	return fd < 0 ? -errno : fd;
}

static int bind_one(int fd, const char *rack, const struct cm_port *port)
{
	struct sockaddr_un sa;
	socklen_t len;
	int err = name_make(rack, port, &sa, &len);

	if (!err && bind(fd, (struct sockaddr *)&sa, len) < 0)
		err = -errno;
	return err;
}

static int bind_any(int fd, const char *rack, struct cm_port *port)
{
	struct cm_port p = *port;
	uint32_t start;
	int err = -EADDRINUSE;

	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		start = (uint32_t)getpid();
	for (uint32_t i = 0; i < EPHEMERAL_COUNT && err == -EADDRINUSE; i++) {
		p.port = (uint16_t)(EPHEMERAL_FIRST +
				    (start + i) % EPHEMERAL_COUNT);
		err = bind_one(fd, rack, &p);
	}
	if (!err)
		port->port = p.port;
	return err;
}

int cm_lease_bind(const char *rack, struct cm_port *port, int *fd)
{
	int s = socket_open();
	int err;

	if (s < 0)
		return s;
	err = port->port ? bind_one(s, rack, port) : bind_any(s, rack, port);
	if (err) {
		close(s);
		return err;
	}
	*fd = s;
	return 0;
}

int cm_lease_listen(int fd)
{
	return listen(fd, CM_LEASE_BACKLOG) < 0 ? -errno : 0;
}

static int connect_one(const char *rack, const struct cm_port *port, int *fd)
{
	struct sockaddr_un sa;
	socklen_t len;
	int err = name_make(rack, port, &sa, &len);
	int s;

	if (err)
		return err;
	s = socket_open();
	if (s < 0)
		return s;
	if (connect(s, (struct sockaddr *)&sa, len) < 0) {
		err = -errno;
		close(s);
		return err;
	}
	*fd = s;
	return 0;
}

int cm_lease_connect(const char *rack, const struct cm_port *port, int *fd)
{
	struct cm_port any = *port;
	int err = connect_one(rack, port, fd);

	if (err != -ECONNREFUSED)
		return err;
	memset(any.ip, 0, sizeof(any.ip));
	return connect_one(rack, &any, fd);
}

int cm_lease_send(int fd, const struct cm_addr *own)
{
	struct hello h = {
		.magic = be32_put(MAGIC),
		.version = be32_put(VERSION),
		.qpn = be32_put(own->qpn),
	};

	memcpy(h.gid, own->gid.raw, sizeof(h.gid));
	return send(fd, &h, sizeof(h), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int cm_lease_receive(int fd, struct cm_addr *peer)
{
	struct hello h;
	ssize_t n = recv(fd, &h, sizeof(h), 0);

	if (n == 0)
		return -EPIPE;
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	if (n != sizeof(h) || be32_get(h.magic) != MAGIC ||
	    be32_get(h.version) != VERSION)
		return -EBADMSG;
	peer->qpn = be32_get(h.qpn) & WIRE_QPN_MASK;
	memcpy(peer->gid.raw, h.gid, sizeof(h.gid));
	return peer->qpn ? 0 : -EBADMSG;
}
