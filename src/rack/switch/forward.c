/* SPDX-License-Identifier: Apache-2.0 */
/* Where frames go: learning, looking up, flooding, and out through a port. */
#include <string.h>

#include "tor_priv.h"

enum {
	PROTO_UDP = 17,
	ARP_BYTES = 28,
};

/* How often an address that talks all the time is learned again. */
#define LEARN_NS 1000000000ull

/* ---- what a frame says -------------------------------------------------- */

static unsigned load16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void set_ip4(uint8_t ip[16], const uint8_t *at)
{
	memset(ip, 0, 10);
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, at, 4);
}

/* `ip` is the IP header, `end` the frame's; the headers may be cut off. */
static void read_udp(const struct tor *t, const uint8_t *udp,
		     const uint8_t *end, struct addresses *a)
{
	if (end - udp < WIRE_UDP_BYTES + WIRE_BTH_BYTES ||
	    load16(udp + 2) != WIRE_UDP_PORT)
		return;
	a->roce = true;
	a->slot = wire_peek_qpn(udp + WIRE_UDP_BYTES) >> t->slot_shift;
}

void tor_read_addresses(const struct tor *t, const uint8_t *frame,
			size_t len_bytes, struct addresses *a)
{
	const uint8_t *ip = frame + WIRE_ETH_BYTES;
	const uint8_t *end = frame + len_bytes;
	size_t left = len_bytes - WIRE_ETH_BYTES;

	a->dst_mac = frame;
	a->src_mac = frame + 6;
	a->has_ip = a->has_dst_ip = a->roce = false;
	switch (load16(frame + 12)) {
	case TOR_ETHERTYPE_IP4:
		if (left < WIRE_IP4_BYTES)
			return;
		a->has_ip = a->has_dst_ip = true;
		set_ip4(a->src_ip, ip + 12);
		set_ip4(a->dst_ip, ip + 16);
		if (ip[9] == PROTO_UDP && ip[0] == 0x45)
			read_udp(t, ip + WIRE_IP4_BYTES, end, a);
		return;
	case TOR_ETHERTYPE_IP6:
		if (left < WIRE_IP6_BYTES)
			return;
		a->has_ip = a->has_dst_ip = true;
		memcpy(a->src_ip, ip + 8, 16);
		memcpy(a->dst_ip, ip + 24, 16);
		if (ip[6] == PROTO_UDP)
			read_udp(t, ip + WIRE_IP6_BYTES, end, a);
		return;
	case TOR_ETHERTYPE_ARP:
		/* Ethernet and IPv4 only; the sender says where it is. */
		if (left < ARP_BYTES || load16(ip + 2) != TOR_ETHERTYPE_IP4)
			return;
		a->has_ip = true;
		set_ip4(a->src_ip, ip + 14);
		return;
	default:
		return;
	}
}

/* ---- learning ----------------------------------------------------------- */

static void learn_key(struct tor_port *port, const struct fdb_key *key,
		      const uint8_t *mac)
{
	struct tor *t = port->tor;
	bool evicted;
	struct fdb_entry *e = fdb_place(&t->fdb, key, &evicted);

	if (!e)
		return;
	if (evicted)
		count(t, TOR_C_evicted);
	if (e->seen_ns == 0)
		count(t, TOR_C_learned);
	else if (e->port != port->id)
		count(t, TOR_C_moved);
	if (e->seen_ns == 0 || e->port != port->id)
		tor_flows_forget(t);
	e->port = port->id;
	e->seen_ns = t->now_ns;
	memcpy(e->mac, mac, sizeof(e->mac));
}

/* No address of a single station, so nothing to be learned. */
static bool is_group(const uint8_t *mac)
{
	return mac[0] & 1;
}

static bool is_unset(const uint8_t ip[16])
{
	static const uint8_t none[16], none4[16] = {[10] = 0xff, 0xff};

	return memcmp(ip, none, 16) == 0 || memcmp(ip, none4, 16) == 0;
}

static void learn(struct tor_port *port, const uint8_t *frame, size_t len_bytes)
{
	struct tor *t = port->tor;
	struct fdb_key key = {.kind = FDB_MAC};
	struct addresses a;

	tor_read_addresses(t, frame, len_bytes, &a);
	if (is_group(a.src_mac))
		return;
	memcpy(key.addr, a.src_mac, 6);
	learn_key(port, &key, a.src_mac);
	if (!a.has_ip || is_unset(a.src_ip))
		return;
	memcpy(key.addr, a.src_ip, 16);
	/* What a driver says of an address counts more than a frame. */
	key.kind = FDB_CLAIMED;
	if (t->claims && fdb_find(&t->fdb, &key))
		return;
	key.kind = FDB_IP;
	learn_key(port, &key, a.src_mac);
}

HOT void tor_learn(struct tor_port *port, const uint8_t *frame,
		   size_t len_bytes)
{
	uint64_t now_ns = port->tor->now_ns;
	uint64_t mac = 0;
	uint32_t ip4 = 0;

	/* Source MAC and ethertype; IPv4's source is at a fixed place. */
	memcpy(&mac, frame + 6, sizeof(mac));
	if (len_bytes >= WIRE_ETH_BYTES + WIRE_IP4_BYTES)
		memcpy(&ip4, frame + WIRE_ETH_BYTES + 12, sizeof(ip4));
	if (LIKELY(mac == port->src_mac && ip4 == port->src_ip4 &&
		   now_ns - port->src_ns < LEARN_NS))
		return;
	port->src_mac = mac;
	port->src_ip4 = ip4;
	port->src_ns = now_ns;
	learn(port, frame, len_bytes);
}

/* ---- out ---------------------------------------------------------------- */

HOT static void send(struct tor_port *port, const uint8_t *frame,
		     size_t len_bytes, const void *hint)
{
	uint64_t *c = port->counters;

	if (UNLIKELY(!port->up)) {
		c[TOR_P_tx_down]++;
		return;
	}
	if (UNLIKELY(hint && !port->takes_hints)) {
		c[TOR_P_tx_hint]++;
		return;
	}
	if (UNLIKELY(!port->ops->tx(port->ctx, frame, len_bytes, hint))) {
		c[TOR_P_tx_full]++;
		return;
	}
	tor_port_sent(port, len_bytes);
}

static void flood(struct tor *t, const struct tor_port *in,
		  const uint8_t *frame, size_t len_bytes, const void *hint)
{
	count(t, TOR_C_flooded);
	for (unsigned i = 0; i < t->port_count; i++)
		if (t->ports[i] && t->ports[i] != in)
			send(t->ports[i], frame, len_bytes, hint);
}

static struct tor_port *find(const struct tor *t, struct fdb_key *key,
			     enum fdb_kind kind)
{
	const struct fdb_entry *e;

	key->kind = kind;
	e = fdb_find(&t->fdb, key);
	if (!e ||
	    (kind != FDB_CLAIM && t->now_ns - e->seen_ns > TOR_FDB_AGE_NS))
		return NULL;
	return t->ports[e->port];
}

/* The port that a destination leads to, by a claim or as it was learned. NULL
 * with *claimed: nobody has that slot; NULL without: not known. */
static struct tor_port *look_up(struct tor *t, const struct addresses *a,
				bool *claimed)
{
	struct fdb_key key = {0};
	struct tor_port *port;

	*claimed = false;
	if (t->claims && a->has_dst_ip) {
		memcpy(key.addr, a->dst_ip, 16);
		key.slot = a->roce ? a->slot : 0;
		port = find(t, &key, FDB_CLAIM);
		key.slot = 0;
		key.kind = FDB_CLAIMED;
		*claimed = port || fdb_find(&t->fdb, &key);
		if (*claimed)
			return port;
	}
	if (is_group(a->dst_mac))
		return NULL;
	key = (struct fdb_key){0};
	memcpy(key.addr, a->dst_mac, 6);
	port = find(t, &key, FDB_MAC);
	if (port || !a->has_dst_ip)
		return port;
	memcpy(key.addr, a->dst_ip, 16);
	return find(t, &key, FDB_IP);
}

struct tor_port *tor_pkt_route(const struct tor_pkt *pkt)
{
	struct addresses a;
	bool claimed;

	if (pkt->out)
		return pkt->out;
	if (!pkt->frame)
		return NULL;
	tor_read_addresses(pkt->tor, pkt->frame, pkt->len_bytes, &a);
	return look_up(pkt->tor, &a, &claimed);
}

struct tor_port *tor_nic_of(const struct tor *t, const uint8_t ip[16],
			    uint32_t qpn)
{
	struct fdb_key key = {.slot = qpn >> t->slot_shift};

	memcpy(key.addr, ip, 16);
	return find(t, &key, FDB_CLAIM);
}

struct tor_port *tor_port_of(const struct tor *t, const uint8_t ip[16],
			     uint32_t qpn)
{
	struct tor_port *port = tor_nic_of(t, ip, qpn);
	struct fdb_key key = {.kind = FDB_CLAIMED};

	if (port)
		return port;
	memcpy(key.addr, ip, 16);
	return fdb_find(&t->fdb, &key) ? NULL : find(t, &key, FDB_IP);
}

bool tor_is_same_slot(const struct tor *t, uint32_t a, uint32_t b)
{
	return a >> t->slot_shift == b >> t->slot_shift;
}

bool tor_reaches(const struct tor *t, const uint8_t ip[16], uint32_t qpn)
{
	struct fdb_key key = {.slot = qpn >> t->slot_shift};

	memcpy(key.addr, ip, 16);
	if (find(t, &key, FDB_CLAIM))
		return true;
	key.slot = 0;
	key.kind = FDB_CLAIMED;
	if (fdb_find(&t->fdb, &key))
		return false;
	/* Behind a port that claims nothing may be anybody. */
	for (unsigned i = 0; i < t->port_count; i++)
		if (t->ports[i] && !t->ports[i]->has_claim)
			return true;
	return false;
}

/* ---- ways that are remembered ------------------------------------------- */

/*
 * Everything that a look-up depends on, for the usual packet: RoCE over IPv4
 * without options. The address it is from may be in the key; that only makes
 * more kinds of packets. Each field is read once, so a sender that changes the
 * frame meanwhile misleads nobody but itself.
 */
HOT static bool flow_key(const struct tor *t, const uint8_t *f,
			 size_t len_bytes, uint64_t key[2])
{
	const uint8_t *ip = f + WIRE_ETH_BYTES;
	const uint8_t *udp = ip + WIRE_IP4_BYTES;
	uint32_t dst;

	if (UNLIKELY(len_bytes < WIRE_ETH_BYTES + WIRE_IP4_BYTES +
					 WIRE_UDP_BYTES + WIRE_BTH_BYTES ||
		     load16(f + 12) != TOR_ETHERTYPE_IP4 || ip[0] != 0x45 ||
		     ip[9] != PROTO_UDP || load16(udp + 2) != WIRE_UDP_PORT))
		return false;
	memcpy(&key[0], f, sizeof(key[0]));
	memcpy(&dst, ip + 16, sizeof(dst));
	key[1] = (uint64_t)dst << 32 |
		 wire_peek_qpn(udp + WIRE_UDP_BYTES) >> t->slot_shift;
	return true;
}

static struct tor_flow *flow_place(struct tor *t, const uint64_t key[2])
{
	uint64_t h = (key[0] ^ key[1] * 0x9e3779b97f4a7c15ull) *
		     0xff51afd7ed558ccdull;

	return &t->flows[(h >> 32) % TOR_FLOWS];
}

HOT static bool flow_is_known(const struct tor *t, const struct tor_flow *w,
			      const uint64_t key[2])
{
	return w->key[0] == key[0] && w->key[1] == key[1] &&
	       w->epoch == t->epoch && t->now_ns < w->until_ns;
}

static void flow_keep(struct tor *t, const uint64_t key[2],
		      struct tor_port *out)
{
	*flow_place(t, key) =
		(struct tor_flow){.key = {key[0], key[1]},
				  .out = out,
				  .epoch = t->epoch,
				  .until_ns = t->now_ns + LEARN_NS};
}

HOT void tor_forward(struct tor *t, struct tor_port *in, struct tor_port *out,
		     const uint8_t *frame, size_t len_bytes, const void *hint)
{
	bool claimed = true;

	if (!out) {
		struct addresses a;
		uint64_t key[2];
		bool is_plain = flow_key(t, frame, len_bytes, key);

		if (LIKELY(is_plain)) {
			const struct tor_flow *w = flow_place(t, key);

			if (LIKELY(flow_is_known(t, w, key) && w->out != in)) {
				count(t, TOR_C_forwarded);
				send(w->out, frame, len_bytes, hint);
				return;
			}
		}
		tor_read_addresses(t, frame, len_bytes, &a);
		if (a.has_dst_ip && tor_is_own(t, a.dst_ip)) {
			count(t, TOR_C_own_late);
			return;
		}
		out = look_up(t, &a, &claimed);
		if (is_plain && out)
			flow_keep(t, key, out);
	}
	if (UNLIKELY(!out)) {
		if (claimed)
			count(t, TOR_C_no_slot);
		else
			flood(t, in, frame, len_bytes, hint);
		return;
	}
	/* Both ends of a conversation may be behind a port that claimed its
	 * address; what was learned at a port has been seen there already. */
	if (UNLIKELY(out == in && !claimed)) {
		count(t, TOR_C_same_port);
		return;
	}
	count(t, TOR_C_forwarded);
	send(out, frame, len_bytes, hint);
}
