/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the node's NIC, and the one of them by which the switch
 * knows the node. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "switch_priv.h"

enum {
	PORT = 1,
};

const char *address_text(const uint8_t ip[16], char out[ADDRESS_TEXT])
{
	return inet_ntop(AF_INET6, ip, out, ADDRESS_TEXT);
}

bool address_is_ipv4(const uint8_t ip[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(ip, v4, sizeof(v4)) == 0;
}

int address_own(struct mem_node *node, bool ipv4, uint8_t *index,
		union ibv_gid *gid)
{
	for (unsigned i = 0; i < UINT8_MAX; i++) {
		struct ibv_gid_entry row;

		if (ibv_query_gid_ex(node->context, PORT, i, &row, 0) ||
		    row.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    address_is_ipv4(row.gid.raw) != ipv4 ||
		    (!ipv4 && row.gid.raw[0] == 0xfe))
			continue;
		*index = (uint8_t)i;
		*gid = row.gid;
		return 0;
	}
	return -ENODEV;
}

int address_first(struct mem_node *node, uint8_t *index, union ibv_gid *gid)
{
	if (address_own(node, true, index, gid) &&
	    address_own(node, false, index, gid))
		return error_set(-ENODEV, "the NIC has no RoCEv2 address");
	return 0;
}

int address_server(struct mem_node *node, char out[ADDRESS_TEXT])
{
	union ibv_gid gid;
	uint8_t index;
	int err = address_first(node, &index, &gid);

	if (!err)
		address_text(gid.raw, out);
	return err;
}
