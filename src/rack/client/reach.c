/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between our NIC and the one of another machine: the route, UDP
 * port 4791 there and here, and the size of packets. */
#include "reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/hail.h"
#include "reach_priv.h"

enum {
	HEADERS = 80, /* that a packet's MTU leaves for headers, as in rxe */
	UDP_HEADERS4 = 28,
	UDP_HEADERS6 = 48,
};

struct client_reach {
	char text[INET6_ADDRSTRLEN];
	union client_hail_addr to;
	union client_hail_addr own;
	char interface[16];
	unsigned interface_mtu;
	struct client_hail_patience patience;
	int fd;	       /* connected, or -errno */
	bool is_heard; /* it answered */
};

void reach_found(struct client_reach_result *out, enum client_reach_state state,
		 const char *fmt, ...)
{
	va_list ap;

	out->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(out->found, sizeof(out->found), fmt, ap);
	va_end(ap);
}

void reach_cause(struct client_reach_result *out, enum client_reach_state state,
		 const char *fmt, ...)
{
	va_list ap;

	out->state = state;
	out->is_cause = true;
	va_start(ap, fmt);
	(void)vsnprintf(out->found, sizeof(out->found), fmt, ap);
	va_end(ap);
}

void reach_fix(struct client_reach_result *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(out->fix, sizeof(out->fix), fmt, ap);
	va_end(ap);
}

bool reach_own_address(const struct config *c, uint16_t port,
		       union client_hail_addr *out)
{
	char text[CONFIG_VALUE_MAX];

	(void)snprintf(text, sizeof(text), "%s",
		       config_string(c, "nic", "addresses"));
	text[strcspn(text, ",")] = '\0';
	if (!text[0])
		(void)snprintf(text, sizeof(text), "%s",
			       config_string(c, "nic", "address"));
	return client_hail_addr_parse(text, port, out);
}

unsigned reach_payload(unsigned mtu)
{
	unsigned p = REACH_PAYLOAD_MAX;

	while (p > REACH_PAYLOAD_MIN && p + HEADERS > mtu)
		p /= 2;
	return p;
}

/* A hail that fills the largest packet of that payload. */
static size_t hail_bytes(unsigned payload, sa_family_t family)
{
	return payload + HEADERS -
	       (family == AF_INET ? UDP_HEADERS4 : UDP_HEADERS6);
}

/* ---- a peer ------------------------------------------------------------- */

/* The address that the kernel would use by itself. */
static bool route_source(const struct client_reach *p, char *text)
{
	union client_hail_addr from;
	socklen_t len = sizeof(from);
	int fd = client_hail_open(&p->to, NULL);
	bool ok;

	if (fd < 0)
		return false;
	ok = getsockname(fd, &from.sa, &len) == 0;
	if (ok)
		client_hail_addr_text(&from, text);
	(void)close(fd); /* only asked */
	return ok;
}

static void check_route(struct client_reach *p, struct client_reach_result *out)
{
	char own[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];

	client_hail_addr_text(&p->own, own);
	if (!route_source(p, from)) {
		reach_cause(out, CLIENT_REACH_MISSING,
			    "no route from here to %s", p->text);
		/* Nothing on another machine is behind the loopback. */
		reach_fix(
			out,
			"ip route add %s dev %s, or: ip route add %s via "
			"GATEWAY (ip -br addr shows what there is)",
			p->text,
			p->interface[0] && !client_hail_addr_is_loopback(&p->own) ? p->interface : "INTERFACE",
			p->text);
		return;
	}
	if (p->own.sa.sa_family != p->to.sa.sa_family ||
	    (strcmp(own, from) && client_hail_addr_is_loopback(&p->own))) {
		reach_cause(out, CLIENT_REACH_MISSING,
			    "the NIC is at %s, which does not reach %s", own,
			    p->text);
		reach_fix(out,
			  "set nic.address = %s in rack.ini, or "
			  "AQUIFER_NIC_ADDRESS=%s",
			  from, from);
		return;
	}
	if (strcmp(own, from)) {
		reach_found(out, CLIENT_REACH_WARN,
			    "the route leaves from %s, the NIC is at %s", from,
			    own);
		reach_fix(out,
			  "set nic.address = %s, or: ip route replace %s "
			  "dev %s src %s",
			  from, p->text,
			  p->interface[0] ? p->interface : "INTERFACE", own);
		return;
	}
	reach_found(out, CLIENT_REACH_OK, "from %s on %s", own,
		    p->interface[0] ? p->interface : "?");
}

static void check_port(struct client_reach *p, struct client_reach_result *out)
{
	unsigned rtt_us = 0;
	int err = p->fd < 0 ? p->fd
			    : client_hail_ask(p->fd, -1, 0, &p->patience,
					      &rtt_us);

	p->is_heard = err == 0;
	if (err == 0) {
		reach_found(out, CLIENT_REACH_OK,
			    "a soft NIC answers after %u us", rtt_us);
	} else if (err == -ECONNREFUSED) {
		reach_cause(out, CLIENT_REACH_WARN,
			    "the machine answers, but nothing has UDP %d",
			    HAIL_PORT);
		reach_fix(out, "on %s: aquifer memory, or aquifer up", p->text);
	} else if (err == -ETIMEDOUT) {
		reach_cause(out, CLIENT_REACH_MISSING,
			    "no answer from UDP %d: it is blocked, or not "
			    "a soft NIC, or the machine is down",
			    HAIL_PORT);
		reach_fix(out,
			  "on %s: nft insert rule inet filter input udp "
			  "dport %d accept; ping %s says whether it is up",
			  p->text, HAIL_PORT, p->text);
	} else if (err == -EPERM) {
		reach_cause(out, CLIENT_REACH_MISSING,
			    "this machine's firewall does not let it out");
		reach_fix(out,
			  "nft insert rule inet filter output udp dport %d "
			  "accept",
			  HAIL_PORT);
	} else {
		reach_cause(out, CLIENT_REACH_MISSING, "%s", strerror(-err));
		reach_fix(out, "ip route get %s", p->text);
	}
}

static bool gets_through(struct client_reach *p, unsigned payload)
{
	size_t bytes = hail_bytes(payload, p->to.sa.sa_family);
	unsigned rtt_us;

	return client_hail_ask(p->fd, -1, bytes, &p->patience, &rtt_us) == 0;
}

/* Halves packets until they get through; returns the payload, 0: none does. */
static unsigned find_payload(struct client_reach *p, unsigned most)
{
	unsigned payload = most;

	while (payload >= REACH_PAYLOAD_MIN && !gets_through(p, payload))
		payload /= 2;
	if (payload < REACH_PAYLOAD_MIN)
		return 0;
	/* Silence may have been a machine that was busy. It has just answered,
	 * so what is silent now is the way. */
	while (payload < most && gets_through(p, 2 * payload))
		payload *= 2;
	return payload;
}

static void check_mtu(struct client_reach *p, struct client_reach_result *out)
{
	unsigned mtu = client_hail_mtu(p->fd, p->to.sa.sa_family);
	unsigned expected, through;

	if (!mtu)
		mtu = p->interface_mtu;
	expected = reach_payload(mtu);
	through = p->is_heard ? find_payload(p, expected) : expected;
	/* What was too large may have taught the kernel. */
	mtu = client_hail_mtu(p->fd, p->to.sa.sa_family);
	if (through < expected && p->is_heard) {
		reach_cause(out, CLIENT_REACH_WARN,
			    "packets of %u bytes get lost on the way, of "
			    "%u they do not: its MTU is wrong",
			    expected + HEADERS, through + HEADERS);
		reach_fix(out,
			  "ip route replace %s dev %s mtu %u, or set "
			  "nic.mtu = %u",
			  p->text, p->interface[0] ? p->interface : "INTERFACE",
			  through + HEADERS, through);
	} else if (p->interface_mtu && mtu < p->interface_mtu &&
		   reach_payload(mtu) < reach_payload(p->interface_mtu)) {
		reach_found(out, CLIENT_REACH_WARN,
			    "the way has %u, %s has %u: packets carry up "
			    "to %u bytes",
			    mtu, p->interface, p->interface_mtu,
			    reach_payload(mtu));
		reach_fix(out,
			  "ip link set dev INTERFACE mtu %u on every "
			  "machine of the way; ip route get %s shows what "
			  "is known here",
			  p->interface_mtu, p->text);
	} else {
		reach_found(out, CLIENT_REACH_OK,
			    "%u: packets carry up to %u bytes%s", mtu, through,
			    p->is_heard ? ", tried" : "");
	}
}

/* A name becomes an address of the family that our NIC has, if it has one. */
static int resolve(const char *host, sa_family_t family,
		   union client_hail_addr *out)
{
	const struct addrinfo hints = {.ai_family = family,
				       .ai_socktype = SOCK_DGRAM};
	struct addrinfo *list;
	int err;

	if (client_hail_addr_parse(host, HAIL_PORT, out))
		return 0;
	err = getaddrinfo(host, "4791", &hints, &list);
	if (err && family != AF_UNSPEC)
		return resolve(host, AF_UNSPEC, out);
	if (err)
		return error_set(-ENOENT,
				 "'%.80s' is no address, and no host "
				 "has this name: %s",
				 host, gai_strerror(err));
	err = list->ai_addrlen <= sizeof(*out) ? 0 : -EAFNOSUPPORT;
	if (!err)
		memcpy(out, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return err;
}

int client_reach_create(const struct config *config, const char *host,
			const struct client_hail_patience *patience,
			struct client_reach **out)
{
	struct client_reach *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return error_set(-ENOMEM, "no memory for a check");
	p->patience = *patience;
	if (!reach_own_address(config, 0, &p->own))
		err = error_set(-EINVAL, "nic.address is no address");
	else
		err = resolve(host, p->own.sa.sa_family, &p->to);
	if (err) {
		free(p);
		return err;
	}
	client_hail_addr_text(&p->to, p->text);
	if (!client_hail_interface(&p->own, p->interface, &p->interface_mtu))
		p->interface[0] = '\0';
	p->fd = client_hail_open(&p->to, &p->own);
	*out = p;
	return 0;
}

void client_reach_look(struct client_reach *p, enum client_reach_row row,
		       struct client_reach_result *out)
{
	static void (*const rows[CLIENT_REACH_ROWS])(
		struct client_reach *, struct client_reach_result *) = {
		check_route, check_port, check_mtu};

	*out = (struct client_reach_result){.state = CLIENT_REACH_OK};
	if (row > 0 && p->fd < 0) {
		reach_cause(out, CLIENT_REACH_MISSING, "not tried: %s",
			    strerror(-p->fd));
		reach_fix(out, "see the route first");
		return;
	}
	rows[row](p, out);
}

void client_reach_destroy(struct client_reach *p)
{
	if (p->fd >= 0)
		(void)close(p->fd); /* only asked */
	free(p);
}
