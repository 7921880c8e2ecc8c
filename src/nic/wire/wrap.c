/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a whole frame again of what a UDP socket delivered. */
#include "wire_priv.h"

static void put_ip4(struct wire_ip4 *ip, const struct wire_outer *o,
		    size_t udp_bytes)
{
	uint32_t w[5];

	*ip = (struct wire_ip4){
		.version_ihl = WIRE_IP4_VERSION_IHL,
		.tos = o->tos,
		.total_len = be16_put((uint16_t)(sizeof(*ip) + udp_bytes)),
		.id = be16_put(o->ip_id),
		.frag = be16_put(WIRE_IP4_DF),
		.ttl = o->ttl,
		.proto = WIRE_IP_PROTO_UDP,
	};
	memcpy(ip->src, o->src_ip + 12, sizeof(ip->src));
	memcpy(ip->dst, o->dst_ip + 12, sizeof(ip->dst));
	/* Summed in the order of the bytes, so stored as it is. */
	memcpy(w, ip, sizeof(w));
	w[0] = ~wire_fold16((uint64_t)w[0] + w[1] + w[2] + w[3] + w[4]);
	memcpy(&ip->check, w, sizeof(ip->check));
}

static void put_ip6(struct wire_ip6 *ip, const struct wire_outer *o,
		    size_t udp_bytes)
{
	ip->version_class_flow = be32_put(6u << 28 | (uint32_t)o->tos << 20);
	ip->payload_len = be16_put((uint16_t)udp_bytes);
	ip->next = WIRE_IP_PROTO_UDP;
	ip->hop_limit = o->ttl;
	memcpy(ip->src, o->src_ip, sizeof(ip->src));
	memcpy(ip->dst, o->dst_ip, sizeof(ip->dst));
}

HOT uint8_t *wire_wrap(const struct wire_outer *o, uint8_t *payload,
		       size_t len_bytes)
{
	bool ipv4 = wire_is_ipv4(o->dst_ip);
	size_t udp_bytes = WIRE_UDP_BYTES + len_bytes;
	struct wire_udp *udp = (void *)(payload - WIRE_UDP_BYTES);
	uint8_t *frame = payload - wire_outer_bytes(ipv4);
	struct wire_eth *eth = (void *)frame;

	udp->src_port = be16_put(o->src_port);
	udp->dst_port = be16_put(WIRE_UDP_PORT);
	udp->len = be16_put((uint16_t)udp_bytes);
	udp->check = be16_put(0);
	if (ipv4)
		put_ip4((void *)(frame + WIRE_ETH_BYTES), o, udp_bytes);
	else
		put_ip6((void *)(frame + WIRE_ETH_BYTES), o, udp_bytes);
	memcpy(eth->dst, o->dst_mac, sizeof(eth->dst));
	memcpy(eth->src, o->src_mac, sizeof(eth->src));
	eth->type = be16_put(ipv4 ? WIRE_ETHERTYPE_IP4 : WIRE_ETHERTYPE_IP6);
	return frame;
}
