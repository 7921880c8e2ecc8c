/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datagram protocol on the wire, as the document "rsocket" of rdma-core
 * describes it: a header before what goes over UDP, which says the queue pair
 * of the sender, and one before what goes from queue pair to queue pair, which
 * says the sender's address. Pure: bytes in, values out.
 */
#ifndef AQ_RS_DGRAM_WIRE_H
#define AQ_RS_DGRAM_WIRE_H

#include <sys/socket.h>

#include "base/base.h"

enum {
	RS_UDP_HEADER_MAX = 28,
	RS_UD_HEADER_MAX = 24,
};

/* An address and a port; IPv4 as IPv6 has it. */
struct rs_name {
	uint8_t ip[16];
	uint16_t port;
};

bool rs_name_equal(const struct rs_name *a, const struct rs_name *b);
bool rs_name_is_ipv4(const struct rs_name *name);
/* -EAFNOSUPPORT, or -EINVAL when it is too short. */
int rs_name_read(const struct sockaddr *sa, socklen_t len,
		 struct rs_name *name) MUST_CHECK;
/* Writes the address in the family `domain`; returns its length. */
socklen_t rs_name_write(const struct rs_name *name, int domain,
			struct sockaddr_storage *sa);

struct rs_udp_header {
	bool is_data;	    /* else the answer to it, without data */
	uint32_t qpn;	    /* of the sender; the low 24 bits of a word */
	struct rs_name own; /* of the sender; only its address is carried */
};

/* Both return the length of the header; parsers -EBADMSG. */
uint32_t rs_udp_build(const struct rs_udp_header *h,
		      uint8_t out[RS_UDP_HEADER_MAX]);
int rs_udp_parse(const uint8_t *in, size_t len_bytes,
		 struct rs_udp_header *h) MUST_CHECK;
uint32_t rs_ud_build(const struct rs_name *from, uint8_t out[RS_UD_HEADER_MAX]);
int rs_ud_parse(const uint8_t *in, size_t len_bytes,
		struct rs_name *from) MUST_CHECK;

#endif
