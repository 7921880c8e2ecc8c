/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses as 16 bytes and a port, and which of them are ours. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm_priv.h"
#include "wire/wire.h"

bool cm_addr_equal(const struct cm_addr *a, const struct cm_addr *b)
{
	return a->qpn == b->qpn && !memcmp(&a->gid, &b->gid, sizeof(a->gid));
}

int cm_ip_read(const struct sockaddr *sa, uint8_t ip[16], uint16_t *port)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	if (sa->sa_family == AF_INET) {
		memset(ip, 0, 10);
		memset(ip + 10, 0xff, 2);
		memcpy(ip + 12, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
		return 0;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(ip, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
		return 0;
	}
	return -EAFNOSUPPORT;
}

void cm_ip_write(const uint8_t ip[16], uint16_t port,
		 struct sockaddr_storage *sa)
{
	struct sockaddr_in6 *in6 = (void *)sa;
	struct sockaddr_in *in = (void *)sa;

	memset(sa, 0, sizeof(*sa));
	if (wire_is_ipv4(ip)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ip + 12, 4);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, ip, 16);
	}
}

static int datagram_socket(const uint8_t ip[16], struct sockaddr_storage *sa,
			   socklen_t *len)
{
	cm_ip_write(ip, 0, sa);
	*len = sa->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					: sizeof(struct sockaddr_in6);
	return socket(sa->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

bool cm_ip_is_local(const uint8_t ip[16])
{
	struct sockaddr_storage sa;
	socklen_t len;
	bool local;
	int fd;

	for (unsigned i = 0; i < cm.device_count; i++)
		if (!memcmp(cm.devices[i]->gid.raw, ip, 16))
			return true;
	fd = datagram_socket(ip, &sa, &len);
	if (fd < 0)
		return false;
	/* Only an own address can be bound. A link-local one without its
	 * interface cannot, but is nobody's name for a whole machine. */
	local = bind(fd, (struct sockaddr *)&sa, len) == 0;
	close(fd);
	return local;
}

int cm_ip_source(const uint8_t dst[16], uint8_t src[16])
{
	struct sockaddr_storage sa;
	uint16_t unused;
	socklen_t len;
	int err = 0;
	int fd = datagram_socket(dst, &sa, &len);

	if (fd < 0)
		return -errno;
	/* Connecting a datagram socket sends nothing. */
	if (sa.ss_family == AF_INET)
		((struct sockaddr_in *)&sa)->sin_port = htons(WIRE_UDP_PORT);
	else
		((struct sockaddr_in6 *)&sa)->sin6_port = htons(WIRE_UDP_PORT);
	if (connect(fd, (struct sockaddr *)&sa, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		err = -errno;
	else
		err = cm_ip_read((struct sockaddr *)&sa, src, &unused);
	close(fd);
	return err;
}
