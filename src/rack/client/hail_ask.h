/* SPDX-License-Identifier: Apache-2.0 */
/* Hails to port 4791 of an address, and their outcome. */
#ifndef AQ_CLIENT_HAIL_ASK_H
#define AQ_CLIENT_HAIL_ASK_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/base.h"

/* How long an answer may take. */
struct client_hail_patience {
	unsigned tries;
	unsigned try_ms;
};

union client_hail_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* False if the text is no address. */
bool client_hail_addr_parse(const char *text, uint16_t port,
			    union client_hail_addr *out) MUST_CHECK;
socklen_t client_hail_addr_len(const union client_hail_addr *a);
bool client_hail_addr_is_loopback(const union client_hail_addr *a);
/* At least INET6_ADDRSTRLEN bytes. */
void client_hail_addr_text(const union client_hail_addr *a, char *buf);

/* A socket that is connected to the address and forbids fragments; from our own
 * address unless `from` is NULL. -errno is the kernel's. */
int client_hail_open(const union client_hail_addr *to,
		     const union client_hail_addr *from) MUST_CHECK;

/*
 * Asks with `len_bytes`, several times if need be. 0: answered after *rtt_us.
 * -ETIMEDOUT: silence; -ECONNREFUSED: no process has the port; -EMSGSIZE: the
 * kernel knows a smaller MTU of the path; -EPERM: a local firewall; others. A
 * datagram that arrives at `own_fd` (not -1) counts as an answer.
 */
int client_hail_ask(int fd, int own_fd, size_t len_bytes,
		    const struct client_hail_patience *patience,
		    unsigned *rtt_us) MUST_CHECK;

/* The MTU of the path as the kernel knows it; 0: it does not. */
unsigned client_hail_mtu(int fd, sa_family_t family);

/* The interface that has the address: its name and MTU; false if none has. */
bool client_hail_interface(const union client_hail_addr *own, char name[16],
			   unsigned *mtu) MUST_CHECK;

#endif
