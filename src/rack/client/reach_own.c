/* SPDX-License-Identifier: Apache-2.0 */
/* Our own end of the way: UDP port 4791 of the NIC's address, and the MTU of
 * the interface that has it. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hail.h"
#include "reach_priv.h"

enum {
	PAYLOAD_GOOD = 1024, /* what an Ethernet of 1500 carries */
};

/* Somebody has the port. A soft NIC says so itself. */
static void judge_taken(struct client_reach_result *out, const char *text,
			int err)
{
	if (err == 0) {
		reach_found(out, CLIENT_REACH_OK,
			    "UDP %d of %s: a soft NIC has it and answers",
			    HAIL_PORT, text);
		return;
	}
	reach_cause(out, CLIENT_REACH_WARN,
		    "UDP %d of %s is in use, and not by a soft NIC that "
		    "answers",
		    HAIL_PORT, text);
	reach_fix(
		out,
		"nft insert rule inet filter input udp dport %d accept, if a "
		"firewall drops what comes (nft list ruleset); ss -ulpn 'sport "
		"= :%d' names the process that has it (rdma link delete NAME, "
		"if it is the kernel's rxe)",
		HAIL_PORT, HAIL_PORT);
}

static void judge_free(struct client_reach_result *out, const char *text,
		       int err)
{
	if (err == 0) {
		reach_found(out, CLIENT_REACH_OK,
			    "UDP %d of %s is free, datagrams arrive", HAIL_PORT,
			    text);
	} else if (err == -ETIMEDOUT) {
		reach_cause(out, CLIENT_REACH_WARN,
			    "UDP %d of %s is blocked: what is sent there "
			    "does not arrive; a firewall drops it",
			    HAIL_PORT, text);
		reach_fix(out,
			  "nft insert rule inet filter input udp dport %d "
			  "accept (nft list ruleset names the table and "
			  "chain that drop it)",
			  HAIL_PORT);
	} else {
		reach_cause(out, CLIENT_REACH_WARN,
			    "UDP %d of %s: sending fails: %s", HAIL_PORT, text,
			    strerror(-err));
		reach_fix(out,
			  "nft insert rule inet filter output udp dport %d "
			  "accept (nft list ruleset names the chain)",
			  HAIL_PORT);
	}
}

static void judge_bind(struct client_reach_result *out, const char *text,
		       int err)
{
	reach_cause(out, CLIENT_REACH_WARN, "UDP %d of %s: %s", HAIL_PORT, text,
		    err == -EADDRNOTAVAIL
			    ? "no interface of this machine has the address"
			    : strerror(-err));
	if (err == -EADDRNOTAVAIL)
		reach_fix(out,
			  "ip addr add %s/24 dev INTERFACE, or set "
			  "nic.address to one that ip -br addr shows",
			  text);
}

/* Our own socket is not shared with NICs: their packets would come to it. */
void client_reach_own_port(const struct config *config,
			   const struct client_hail_patience *patience,
			   struct client_reach_result *out)
{
	char text[INET6_ADDRSTRLEN];
	union client_hail_addr own;
	unsigned rtt_us;
	int fd, ask, err = 0;

	if (!reach_own_address(config, HAIL_PORT, &own)) {
		reach_found(out, CLIENT_REACH_WARN, "nic.address is unknown");
		return;
	}
	client_hail_addr_text(&own, text);
	fd = socket(own.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, &own.sa, client_hail_addr_len(&own)) < 0)
		err = -errno;
	if (err && err != -EADDRINUSE) {
		judge_bind(out, text, err);
	} else {
		ask = client_hail_open(&own, NULL);
		if (ask >= 0) {
			int answer = client_hail_ask(ask, err ? -1 : fd, 0,
						     patience, &rtt_us);

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

void client_reach_own_mtu(const struct config *config,
			  struct client_reach_result *out)
{
	union client_hail_addr own;
	char name[16];
	unsigned mtu = 0;

	if (!reach_own_address(config, 0, &own) ||
	    !client_hail_interface(&own, name, &mtu)) {
		reach_found(out, CLIENT_REACH_WARN,
			    "no interface has nic.address");
		reach_fix(out, "ip -br addr shows what there is");
		return;
	}
	reach_found(out,
		    reach_payload(mtu) < PAYLOAD_GOOD ? CLIENT_REACH_WARN
						      : CLIENT_REACH_OK,
		    "%s has %u: packets carry up to %u bytes", name, mtu,
		    reach_payload(mtu));
	if (out->state != CLIENT_REACH_OK)
		reach_fix(out, "ip link set dev %s mtu 1500", name);
}
