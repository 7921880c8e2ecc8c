/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of datagrams as bytes, and names of their ends. */
#include "rs_dgram_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"
#include "rs_wire.h"

#define TAG 0x55555555u

enum {
	UDP_FIXED = 12,
	UD_FIXED = 4,
	FLOW_BYTES = 4, /* of IPv6, in the second header only */
	QPN_MASK = 0xffffff,
};

static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

/* ---- names --------------------------------------------------------------- */

bool rs_name_equal(const struct rs_name *a, const struct rs_name *b)
{
	return a->port == b->port && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

bool rs_name_is_ipv4(const struct rs_name *name)
{
	return !memcmp(name->ip, mapped, sizeof(mapped));
}

int rs_name_read(const struct sockaddr *sa, socklen_t len, struct rs_name *name)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	if (len < sizeof(sa->sa_family))
		return -EINVAL;
	if (sa->sa_family == AF_INET) {
		if (len < sizeof(*in))
			return -EINVAL;
		memcpy(name->ip, mapped, sizeof(mapped));
		memcpy(name->ip + 12, &in->sin_addr, 4);
		name->port = ntohs(in->sin_port);
		return 0;
	}
	if (sa->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (len < sizeof(*in6))
		return -EINVAL;
	memcpy(name->ip, &in6->sin6_addr, 16);
	name->port = ntohs(in6->sin6_port);
	return 0;
}

socklen_t rs_name_write(const struct rs_name *name, int domain,
			struct sockaddr_storage *sa)
{
	struct sockaddr_in6 *in6 = (void *)sa;
	struct sockaddr_in *in = (void *)sa;

	memset(sa, 0, sizeof(*sa));
	if (domain == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons(name->port);
		memcpy(&in->sin_addr, name->ip + 12, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(name->port);
	memcpy(&in6->sin6_addr, name->ip, 16);
	return sizeof(*in6);
}

static uint32_t put_ip(const struct rs_name *name, uint8_t *out)
{
	if (rs_name_is_ipv4(name)) {
		memcpy(out, name->ip + 12, 4);
		return 4;
	}
	memcpy(out, name->ip, 16);
	return 16;
}

static void get_ip(const uint8_t *in, bool ipv4, struct rs_name *name)
{
	if (ipv4) {
		memcpy(name->ip, mapped, sizeof(mapped));
		memcpy(name->ip + 12, in, 4);
	} else {
		memcpy(name->ip, in, 16);
	}
}

/* The version of IP, and the length that a header says it has. */
static int check(uint8_t version, uint8_t length, uint32_t fixed, uint32_t more,
		 size_t len_bytes)
{
	uint32_t want = fixed + (version == 4 ? 4 : 16 + more);

	if ((version != 4 && version != 6) || length != want ||
	    len_bytes < want)
		return -EBADMSG;
	return (int)want;
}

/* ---- over UDP ------------------------------------------------------------ */

uint32_t rs_udp_build(const struct rs_udp_header *h,
		      uint8_t out[RS_UDP_HEADER_MAX])
{
	be32 tag = be32_put(TAG), qpn = be32_put(h->qpn & QPN_MASK);
	uint32_t length = UDP_FIXED + put_ip(&h->own, out + UDP_FIXED);

	memcpy(out, tag.b, sizeof(tag));
	out[4] = rs_name_is_ipv4(&h->own) ? 4 : 6;
	out[5] = h->is_data ? RS_OP_DATA : RS_OP_CTRL;
	out[6] = (uint8_t)length;
	out[7] = 0;
	memcpy(out + 8, qpn.b, sizeof(qpn));
	return length;
}

int rs_udp_parse(const uint8_t *in, size_t len_bytes, struct rs_udp_header *h)
{
	be32 word;
	int length;

	if (len_bytes < UDP_FIXED)
		return -EBADMSG;
	memcpy(word.b, in, sizeof(word));
	if (be32_get(word) != TAG ||
	    (in[5] != RS_OP_DATA && in[5] != RS_OP_CTRL))
		return -EBADMSG;
	length = check(in[4], in[6], UDP_FIXED, 0, len_bytes);
	if (length < 0)
		return length;
	memcpy(word.b, in + 8, sizeof(word));
	h->is_data = in[5] == RS_OP_DATA;
	h->qpn = be32_get(word) & QPN_MASK;
	h->own.port = 0;
	get_ip(in + UDP_FIXED, in[4] == 4, &h->own);
	/* 0 and 1 are for management: nobody's. */
	return h->qpn < 2 ? -EBADMSG : length;
}

/* ---- from queue pair to queue pair --------------------------------------- */

uint32_t rs_ud_build(const struct rs_name *from, uint8_t out[RS_UD_HEADER_MAX])
{
	bool ipv4 = rs_name_is_ipv4(from);
	be16 port = be16_put(from->port);
	uint32_t length = UD_FIXED;

	out[0] = ipv4 ? 4 : 6;
	memcpy(out + 2, port.b, sizeof(port));
	if (!ipv4) {
		memset(out + length, 0, FLOW_BYTES);
		length += FLOW_BYTES;
	}
	length += put_ip(from, out + length);
	out[1] = (uint8_t)length;
	return length;
}

int rs_ud_parse(const uint8_t *in, size_t len_bytes, struct rs_name *from)
{
	be16 port;
	int length;

	if (len_bytes < UD_FIXED)
		return -EBADMSG;
	length = check(in[0], in[1], UD_FIXED, FLOW_BYTES, len_bytes);
	if (length < 0)
		return length;
	memcpy(port.b, in + 2, sizeof(port));
	from->port = be16_get(port);
	get_ip(in + UD_FIXED + (in[0] == 4 ? 0 : FLOW_BYTES), in[0] == 4, from);
	return length;
}
