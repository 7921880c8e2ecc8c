/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the switch that hosts can find. */
#include "own_address.h"

#include <string.h>

#include "tor_priv.h"

enum {
	ARP_BYTES = 28,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
	ICMP6_BYTES = 8 + 16 + 8, /* with a target and its link address */
	ICMP6_SOLICIT = 135,
	ICMP6_ADVERTISE = 136,
	PROTO_ICMP6 = 58,
	ADVERTISE_SOLICITED = 0x40,
	ADVERTISE_OVERRIDE = 0x20,
	OPTION_TARGET = 2,
};

static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

/* One for all addresses of the switch, made of the first: locally administered,
 * and the same after a restart. */
static void own_mac(const struct tor *t, uint8_t mac[6])
{
	mac[0] = 0x02;
	mac[1] = 0xa9;
	memcpy(mac + 2, t->own_ip[0] + 12, 4);
}

/* An address that was set, not one that a program uses without it. */
static bool is_set(const struct tor *t, const uint8_t ip[16])
{
	for (unsigned i = 0; i < t->address_count; i++)
		if (memcmp(t->own_ip[i], ip, 16) == 0)
			return true;
	return false;
}

/* ---- IPv4 ---------------------------------------------------------------- */

static bool answer_arp(struct tor_port *port, const uint8_t *frame,
		       size_t len_bytes)
{
	static const uint8_t ether_ip4[7] = {0, 1, 8, 0, 6, 4, 0};
	const uint8_t *arp = frame + WIRE_ETH_BYTES;
	uint8_t out[WIRE_ETH_BYTES + ARP_BYTES], ip[16], mac[6];

	if (len_bytes < sizeof(out) ||
	    memcmp(arp, ether_ip4, sizeof(ether_ip4)) != 0 ||
	    arp[7] != ARP_REQUEST)
		return false;
	memcpy(ip, mapped, 12);
	memcpy(ip + 12, arp + 24, 4);
	if (!is_set(port->tor, ip))
		return false;
	own_mac(port->tor, mac);
	memcpy(out, frame + 6, 6);
	memcpy(out + 6, mac, 6);
	memcpy(out + 12, frame + 12, 2 + 7);
	out[WIRE_ETH_BYTES + 7] = ARP_REPLY;
	memcpy(out + WIRE_ETH_BYTES + 8, mac, 6);
	memcpy(out + WIRE_ETH_BYTES + 14, arp + 24, 4);
	memcpy(out + WIRE_ETH_BYTES + 18, arp + 8, 10);
	tor_forward(port->tor, NULL, port, out, sizeof(out), NULL);
	return true;
}

/* ---- IPv6 ---------------------------------------------------------------- */

/* The checksum over a message and its pseudo-header (RFC 4443, 2.3). */
static unsigned checksum6(const uint8_t *ip, const uint8_t *msg, size_t n)
{
	uint64_t sum = n + PROTO_ICMP6;

	for (size_t i = 0; i < 32; i += 2)
		sum += (unsigned)ip[8 + i] << 8 | ip[9 + i];
	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (unsigned)msg[i] << 8 | msg[i + 1];
	if (n % 2)
		sum += (unsigned)msg[n - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (unsigned)~sum & 0xffff;
}

/* A neighbour solicitation as RFC 4861, 7.1.1, wants it; NULL: it is none. */
static const uint8_t *find_solicit(const uint8_t *frame, size_t len_bytes)
{
	const uint8_t *ip = frame + WIRE_ETH_BYTES;
	const uint8_t *msg = ip + WIRE_IP6_BYTES;
	size_t n;

	if (len_bytes < WIRE_ETH_BYTES + WIRE_IP6_BYTES + 24 ||
	    ip[6] != PROTO_ICMP6 || ip[7] != 255 || msg[0] != ICMP6_SOLICIT ||
	    msg[1] != 0)
		return NULL;
	n = (size_t)ip[4] << 8 | ip[5];
	if (n < 24 || n > len_bytes - WIRE_ETH_BYTES - WIRE_IP6_BYTES ||
	    checksum6(ip, msg, n) != 0)
		return NULL;
	return msg;
}

static bool answer_solicit(struct tor_port *port, const uint8_t *frame,
			   size_t len_bytes)
{
	static const uint8_t none[16], all_nodes[16] = {0xff, 2, [15] = 1};
	const uint8_t *from = frame + WIRE_ETH_BYTES + 8;
	const uint8_t *msg = find_solicit(frame, len_bytes);
	/* Who has no address yet asks whether it may have this one. */
	bool is_probe = memcmp(from, none, 16) == 0;
	uint8_t out[WIRE_ETH_BYTES + WIRE_IP6_BYTES + ICMP6_BYTES] = {0};
	uint8_t *ip = out + WIRE_ETH_BYTES, *to = ip + WIRE_IP6_BYTES;
	unsigned sum;

	if (!msg || !is_set(port->tor, msg + 8))
		return false;
	memcpy(out, frame + 6, 6);
	own_mac(port->tor, out + 6);
	memcpy(out + 12, frame + 12, 2);
	ip[0] = 0x60;
	ip[5] = ICMP6_BYTES;
	ip[6] = PROTO_ICMP6;
	ip[7] = 255;
	memcpy(ip + 8, msg + 8, 16);
	memcpy(ip + 24, is_probe ? all_nodes : from, 16);
	to[0] = ICMP6_ADVERTISE;
	to[4] = is_probe ? ADVERTISE_OVERRIDE
			 : ADVERTISE_SOLICITED | ADVERTISE_OVERRIDE;
	memcpy(to + 8, msg + 8, 16);
	to[24] = OPTION_TARGET;
	to[25] = 1;
	own_mac(port->tor, to + 26);
	sum = checksum6(ip, to, ICMP6_BYTES);
	to[2] = (uint8_t)(sum >> 8);
	to[3] = (uint8_t)sum;
	tor_forward(port->tor, NULL, port, out, sizeof(out), NULL);
	return true;
}

bool own_address_answer(struct tor_port *port, const uint8_t *frame,
			size_t len_bytes)
{
	unsigned ethertype = (unsigned)frame[12] << 8 | frame[13];

	if (ethertype == TOR_ETHERTYPE_ARP)
		return answer_arp(port, frame, len_bytes);
	return ethertype == TOR_ETHERTYPE_IP6 &&
	       answer_solicit(port, frame, len_bytes);
}

/* ---- what ends send ------------------------------------------------------ */

void own_address_fill(const struct tor *t, struct wire_pkt *w)
{
	static const uint8_t none[6];
	struct fdb_key key = {.kind = FDB_IP};
	const struct fdb_entry *e;

	if (!is_set(t, w->src_ip))
		return;
	own_mac(t, w->src_mac);
	if (memcmp(w->dst_mac, none, sizeof(none)) != 0)
		return;
	memcpy(key.addr, w->dst_ip, 16);
	e = fdb_find(&t->fdb, &key);
	if (e)
		memcpy(w->dst_mac, e->mac, sizeof(e->mac));
}

int tor_address_set(struct tor *t, const uint8_t ip[16])
{
	int err;

	/* Those that are set stand first. */
	ASSERT(t->own_count == t->address_count);
	err = tor_own_add(t, ip);
	t->address_count = t->own_count;
	return err;
}
