/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the way to other machines: UDP port 4791 of our own address and,
 * for addresses that the user names, route, port and size of packets. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/hail.h"
#include "cli_check.h"
#include "cli_hail.h"

enum {
	HEADERS = 80, /* that a packet's MTU leaves for headers, as in rxe */
	UDP_HEADERS4 = 28,
	UDP_HEADERS6 = 48,
	PAYLOAD_MIN = 256,
	PAYLOAD_MAX = 4096,
	PAYLOAD_GOOD = 1024, /* what an Ethernet of 1500 carries */
};

/* The NIC's address; the first, where there are several. */
static bool own_address(uint16_t port, union cli_hail_addr *out)
{
	struct config *c;
	char text[CONFIG_VALUE_MAX];
	bool ok;

	if (config_open(NULL, &c))
		return false;
	(void)snprintf(text, sizeof(text), "%s",
		       config_string(c, "nic", "addresses"));
	text[strcspn(text, ",")] = '\0';
	if (!text[0])
		(void)snprintf(text, sizeof(text), "%s",
			       config_string(c, "nic", "address"));
	config_destroy(c);
	ok = cli_hail_addr_parse(text, port, out);
	return ok;
}

/* The largest payload of a packet where so many bytes fit on the wire. */
static unsigned payload_of(unsigned mtu)
{
	unsigned p = PAYLOAD_MAX;

	while (p > PAYLOAD_MIN && p + HEADERS > mtu)
		p /= 2;
	return p;
}

/* A hail that fills the largest packet of that payload. */
static size_t hail_bytes(unsigned payload, sa_family_t family)
{
	return payload + HEADERS -
	       (family == AF_INET ? UDP_HEADERS4 : UDP_HEADERS6);
}

/* ---- our own port ------------------------------------------------------- */

/* Somebody has the port. A soft NIC says so itself. */
static void judge_taken(struct cli_check_result *out, const char *text, int err)
{
	if (err == 0) {
		cli_check_found(out, CLI_CHECK_OK,
				"UDP %d of %s: a soft NIC has it and answers",
				HAIL_PORT, text);
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN,
			"UDP %d of %s is in use, and not by a soft NIC that "
			"answers",
			HAIL_PORT, text);
	cli_check_fix(out,
		      "ss -ulpn 'sport = :%d' names the process that has it; "
		      "rdma link delete NAME, if it is the kernel's rxe",
		      HAIL_PORT);
}

static void judge_free(struct cli_check_result *out, const char *text, int err)
{
	if (err == 0) {
		cli_check_found(out, CLI_CHECK_OK,
				"UDP %d of %s is free, datagrams arrive",
				HAIL_PORT, text);
	} else if (err == -ETIMEDOUT) {
		cli_check_found(out, CLI_CHECK_WARN,
				"UDP %d of %s is blocked: what is sent there "
				"does not arrive; a firewall drops it",
				HAIL_PORT, text);
		cli_check_fix(out,
			      "nft insert rule inet filter input udp dport %d "
			      "accept (nft list ruleset names the table and "
			      "chain that drop it)",
			      HAIL_PORT);
	} else {
		cli_check_found(out, CLI_CHECK_WARN,
				"UDP %d of %s: sending fails: %s", HAIL_PORT,
				text, strerror(-err));
		cli_check_fix(out,
			      "nft insert rule inet filter output udp dport %d "
			      "accept (nft list ruleset names the chain)",
			      HAIL_PORT);
	}
}

static void judge_bind(struct cli_check_result *out, const char *text, int err)
{
	cli_check_found(out, CLI_CHECK_WARN, "UDP %d of %s: %s", HAIL_PORT,
			text,
			err == -EADDRNOTAVAIL
				? "no interface of this machine has the address"
				: strerror(-err));
	if (err == -EADDRNOTAVAIL)
		cli_check_fix(out,
			      "ip addr add %s/24 dev INTERFACE, or set "
			      "nic.address to one that ip -br addr shows",
			      text);
}

/* Our own socket is not shared with NICs: their packets would come to it. */
void cli_check_roce_port(struct cli_check_result *out)
{
	char text[INET6_ADDRSTRLEN];
	union cli_hail_addr own;
	unsigned rtt_us;
	int fd, ask, err = 0;

	if (!own_address(HAIL_PORT, &own)) {
		cli_check_found(out, CLI_CHECK_WARN, "nic.address is unknown");
		return;
	}
	cli_hail_addr_text(&own, text);
	fd = socket(own.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, &own.sa, cli_hail_addr_len(&own)) < 0)
		err = -errno;
	if (err && err != -EADDRINUSE) {
		judge_bind(out, text, err);
	} else {
		ask = cli_hail_open(&own, NULL);
		if (ask >= 0) {
			int answer =
				cli_hail_ask(ask, err ? -1 : fd, 0, &rtt_us);

			if (err)
				judge_taken(out, text, answer);
			else
				judge_free(out, text, answer);
			(void)close(ask); /* only asked */
		} else {
			judge_free(out, text, ask);
		}
	}
	if (fd >= 0)
		(void)close(fd); /* only asked */
}

void cli_check_roce_mtu(struct cli_check_result *out)
{
	union cli_hail_addr own;
	char name[16];
	unsigned mtu = 0;

	if (!own_address(0, &own) || !cli_hail_interface(&own, name, &mtu)) {
		cli_check_found(out, CLI_CHECK_WARN,
				"no interface has nic.address");
		cli_check_fix(out, "ip -br addr shows what there is");
		return;
	}
	cli_check_found(out,
			payload_of(mtu) < PAYLOAD_GOOD ? CLI_CHECK_WARN
						       : CLI_CHECK_OK,
			"%s has %u: packets carry up to %u bytes", name, mtu,
			payload_of(mtu));
	if (out->state != CLI_CHECK_OK)
		cli_check_fix(out, "ip link set dev %s mtu 1500", name);
}

/* ---- a peer ------------------------------------------------------------- */

struct cli_check_peer {
	char text[INET6_ADDRSTRLEN];
	union cli_hail_addr to;
	union cli_hail_addr own;
	char interface[16];
	unsigned interface_mtu;
	int fd;	       /* connected, or -errno */
	bool is_heard; /* it answers */
};

/* The address that the kernel would use by itself. */
static bool route_source(const struct cli_check_peer *p, char *text)
{
	union cli_hail_addr from;
	socklen_t len = sizeof(from);
	int fd = cli_hail_open(&p->to, NULL);
	bool ok;

	if (fd < 0)
		return false;
	ok = getsockname(fd, &from.sa, &len) == 0;
	if (ok)
		cli_hail_addr_text(&from, text);
	(void)close(fd); /* only asked */
	return ok;
}

static void check_route(struct cli_check_peer *p, struct cli_check_result *out)
{
	char own[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];

	cli_hail_addr_text(&p->own, own);
	if (!route_source(p, from)) {
		cli_check_found(out, CLI_CHECK_MISSING,
				"no route from here to %s", p->text);
		cli_check_fix(out,
			      "ip route add %s dev %s, or: ip route add %s via "
			      "GATEWAY",
			      p->text,
			      p->interface[0] ? p->interface : "INTERFACE",
			      p->text);
		return;
	}
	if (p->own.sa.sa_family != p->to.sa.sa_family ||
	    (strcmp(own, from) && cli_hail_addr_is_loopback(&p->own))) {
		cli_check_found(out, CLI_CHECK_MISSING,
				"the NIC is at %s, which does not reach %s",
				own, p->text);
		cli_check_fix(out,
			      "set nic.address = %s in rack.ini, or "
			      "AQUIFER_NIC_ADDRESS=%s",
			      from, from);
		return;
	}
	if (strcmp(own, from)) {
		cli_check_found(out, CLI_CHECK_WARN,
				"the route leaves from %s, the NIC is at %s",
				from, own);
		cli_check_fix(out,
			      "set nic.address = %s, or: ip route replace %s "
			      "dev %s src %s",
			      from, p->text,
			      p->interface[0] ? p->interface : "INTERFACE",
			      own);
		return;
	}
	cli_check_found(out, CLI_CHECK_OK, "from %s on %s", own,
			p->interface[0] ? p->interface : "?");
}

static void check_port(struct cli_check_peer *p, struct cli_check_result *out)
{
	unsigned rtt_us = 0;
	int err = p->fd < 0 ? p->fd : cli_hail_ask(p->fd, -1, 0, &rtt_us);

	p->is_heard = err == 0;
	if (err == 0) {
		cli_check_found(out, CLI_CHECK_OK,
				"a soft NIC answers after %u us", rtt_us);
	} else if (err == -ECONNREFUSED) {
		cli_check_found(out, CLI_CHECK_WARN,
				"the machine answers, but nothing has UDP %d",
				HAIL_PORT);
		cli_check_fix(out, "on %s: aquifer memory, or aquifer up",
			      p->text);
	} else if (err == -ETIMEDOUT) {
		cli_check_found(out, CLI_CHECK_MISSING,
				"no answer from UDP %d: it is blocked, or not "
				"a soft NIC, or the machine is down",
				HAIL_PORT);
		cli_check_fix(out,
			      "on %s: nft insert rule inet filter input udp "
			      "dport %d accept; ping %s says whether it is up",
			      p->text, HAIL_PORT, p->text);
	} else if (err == -EPERM) {
		cli_check_found(out, CLI_CHECK_MISSING,
				"this machine's firewall does not let it out");
		cli_check_fix(out,
			      "nft insert rule inet filter output udp dport %d "
			      "accept",
			      HAIL_PORT);
	} else {
		cli_check_found(out, CLI_CHECK_MISSING, "%s", strerror(-err));
		cli_check_fix(out, "ip route get %s", p->text);
	}
}

/* Halves packets until they get through; returns the payload, 0: none does. */
static unsigned find_payload(struct cli_check_peer *p, unsigned payload)
{
	sa_family_t family = p->to.sa.sa_family;
	unsigned rtt_us;

	for (; payload >= PAYLOAD_MIN; payload /= 2) {
		size_t bytes = hail_bytes(payload, family);

		if (cli_hail_ask(p->fd, -1, bytes, &rtt_us) == 0)
			return payload;
	}
	return 0;
}

static void check_mtu(struct cli_check_peer *p, struct cli_check_result *out)
{
	unsigned mtu = cli_hail_mtu(p->fd, p->to.sa.sa_family);
	unsigned expected, through;

	if (!mtu)
		mtu = p->interface_mtu;
	expected = payload_of(mtu);
	through = p->is_heard ? find_payload(p, expected) : expected;
	/* What was too large may have taught the kernel. */
	mtu = cli_hail_mtu(p->fd, p->to.sa.sa_family);
	if (through < expected && p->is_heard) {
		cli_check_found(out, CLI_CHECK_WARN,
				"packets of %u bytes get lost on the way, of "
				"%u they do not: its MTU is wrong",
				expected + HEADERS, through + HEADERS);
		cli_check_fix(out,
			      "ip route replace %s dev %s mtu %u, or set "
			      "nic.mtu = %u",
			      p->text,
			      p->interface[0] ? p->interface : "INTERFACE",
			      through + HEADERS, through);
	} else if (p->interface_mtu && mtu < p->interface_mtu &&
		   payload_of(mtu) < payload_of(p->interface_mtu)) {
		cli_check_found(out, CLI_CHECK_WARN,
				"the way has %u, %s has %u: packets carry up "
				"to %u bytes",
				mtu, p->interface, p->interface_mtu,
				payload_of(mtu));
		cli_check_fix(out,
			      "ip link set dev INTERFACE mtu %u on every "
			      "machine of the way; ip route get %s shows what "
			      "is known here",
			      p->interface_mtu, p->text);
	} else {
		cli_check_found(out, CLI_CHECK_OK,
				"%u: packets carry up to %u bytes%s", mtu,
				through, p->is_heard ? ", tried" : "");
	}
}

int cli_check_peer_create(const char *address, struct cli_check_peer **out)
{
	struct cli_check_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (!cli_hail_addr_parse(address, HAIL_PORT, &p->to) ||
	    !own_address(0, &p->own)) {
		free(p);
		return -EINVAL;
	}
	cli_hail_addr_text(&p->to, p->text);
	if (!cli_hail_interface(&p->own, p->interface, &p->interface_mtu))
		p->interface[0] = '\0';
	p->fd = cli_hail_open(&p->to, &p->own);
	*out = p;
	return 0;
}

void cli_check_peer_run(struct cli_check_peer *p, unsigned row,
			struct cli_check_result *out)
{
	static void (*const rows[])(struct cli_check_peer *,
				    struct cli_check_result *) = {
		check_route, check_port, check_mtu};

	if (row > 0 && p->fd < 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "not tried: %s",
				strerror(-p->fd));
		cli_check_fix(out, "see the route first");
		return;
	}
	rows[row](p, out);
}

void cli_check_peer_destroy(struct cli_check_peer *p)
{
	if (p->fd >= 0)
		(void)close(p->fd); /* only asked */
	free(p);
}
