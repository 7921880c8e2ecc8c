/* SPDX-License-Identifier: Apache-2.0 */
/* Sends hails and waits for what comes; judging is left to reach.c. */
#include "hail_ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hail.h"

enum {
	HAIL_BYTES_MAX = 9216,
};

bool client_hail_addr_parse(const char *text, uint16_t port,
			    union client_hail_addr *out)
{
	union client_hail_addr a;

	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
	} else {
		return false;
	}
	*out = a;
	return true;
}

socklen_t client_hail_addr_len(const union client_hail_addr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

bool client_hail_addr_is_loopback(const union client_hail_addr *a)
{
	if (a->sa.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

static const void *addr_bytes(const union client_hail_addr *a)
{
	return a->sa.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
					  : (const void *)&a->v6.sin6_addr;
}

void client_hail_addr_text(const union client_hail_addr *a, char *buf)
{
	if (!inet_ntop(a->sa.sa_family, addr_bytes(a), buf, INET6_ADDRSTRLEN))
		memcpy(buf, "?", 2);
}

int client_hail_open(const union client_hail_addr *to,
		     const union client_hail_addr *from)
{
	bool v4 = to->sa.sa_family == AF_INET;
	int fd = socket(to->sa.sa_family,
			SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int whole = v4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO;
	int err;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
			 v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &whole,
			 sizeof(whole)); /* then only the MTU is not seen */
	if ((!from || bind(fd, &from->sa, client_hail_addr_len(from)) == 0) &&
	    connect(fd, &to->sa, client_hail_addr_len(to)) == 0)
		return fd;
	err = -errno;
	(void)close(fd); /* never used */
	return err;
}

/* What lies in the socket: 1 the answer, 0 nothing of use, or -errno. */
static int take(int fd, uint64_t nonce, enum hail_kind kind)
{
	uint8_t bytes[HAIL_BYTES_MAX];
	struct hail h;
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return hail_parse(bytes, (size_t)n, kind, &h) &&
	       be64_get(h.nonce) == nonce;
}

static int await(int fd, int own_fd, uint64_t nonce, uint64_t end_us)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
			      {.fd = own_fd, .events = POLLIN}};
	uint64_t now;
	int got = 0;

	while (got == 0 && (now = clock_mono_ns() / 1000) < end_us) {
		(void)poll(p, 2, (int)((end_us - now) / 1000) + 1);
		got = take(fd, nonce, HAIL_ANSWER);
		if (got == 0 && own_fd >= 0)
			got = take(own_fd, nonce, HAIL_ASK);
	}
	return got == 0 ? -ETIMEDOUT : got;
}

int client_hail_ask(int fd, int own_fd, size_t len_bytes,
		    const struct client_hail_patience *patience,
		    unsigned *rtt_us)
{
	uint8_t bytes[HAIL_BYTES_MAX];
	uint64_t start_us = clock_mono_ns() / 1000;
	struct hail h;
	int err = -ETIMEDOUT;

	if (len_bytes < sizeof(h))
		len_bytes = sizeof(h);
	if (len_bytes > sizeof(bytes))
		return -EMSGSIZE;
	memset(bytes, 0, len_bytes);
	for (unsigned i = 0; i < patience->tries; i++) {
		uint64_t sent_us = clock_mono_ns() / 1000;
		uint64_t nonce = start_us << 8 | i;

		hail_init(&h, HAIL_ANY_INDEX, nonce);
		memcpy(bytes, &h, sizeof(h));
		if (send(fd, bytes, len_bytes, MSG_DONTWAIT) < 0)
			err = -errno;
		else
			err = await(fd, own_fd, nonce,
				    sent_us + patience->try_ms * 1000ull);
		if (err > 0) {
			*rtt_us = (unsigned)(clock_mono_ns() / 1000 - sent_us);
			return 0;
		}
		if (err != -ETIMEDOUT)
			break;
	}
	return err;
}

unsigned client_hail_mtu(int fd, sa_family_t family)
{
	socklen_t len = sizeof(int);
	int mtu = 0;

	if (getsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
		       family == AF_INET ? IP_MTU : IPV6_MTU, &mtu, &len) < 0)
		return 0;
	return (unsigned)mtu;
}

/* All of 127/8 belongs to the loopback interface. */
static bool is_same(const union client_hail_addr *a, const struct sockaddr *sa)
{
	const union client_hail_addr *b = (const void *)sa;

	if (!sa || sa->sa_family != a->sa.sa_family)
		return false;
	return memcmp(addr_bytes(a), addr_bytes(b),
		      sa->sa_family == AF_INET ? 4 : 16) == 0 ||
	       (sa->sa_family == AF_INET && client_hail_addr_is_loopback(a) &&
		client_hail_addr_is_loopback(b));
}

bool client_hail_interface(const union client_hail_addr *own, char name[16],
			   unsigned *mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifaddrs *all, *i;
	struct ifreq req;
	bool found = false;

	if (fd < 0)
		return false;
	if (getifaddrs(&all) < 0) {
		(void)close(fd); /* never used */
		return false;
	}
	for (i = all; i && !found; i = i->ifa_next) {
		if (!is_same(own, i->ifa_addr))
			continue;
		memset(&req, 0, sizeof(req));
		strncpy(req.ifr_name, i->ifa_name, sizeof(req.ifr_name) - 1);
		memcpy(name, req.ifr_name, 16);
		found = true;
		*mtu = ioctl(fd, SIOCGIFMTU, &req) == 0 ? (unsigned)req.ifr_mtu
							: 0;
	}
	freeifaddrs(all);
	(void)close(fd); /* only asked */
	return found;
}
