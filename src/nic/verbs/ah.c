/* SPDX-License-Identifier: Apache-2.0 */
/* Address handles, and how to answer a datagram by its headers. */
#include <endian.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

enum {
	GRH_IPV4_OFFSET = 20, /* RoCEv2 over IPv4: the header ends the GRH */
};

VERBS_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
					  struct ibv_ah_attr *attr)
{
	struct nic_host *host = verbs_host(pd->context);
	struct verbs_ah *ah;
	int rc;

	rc = host && to_pd(pd)->nic ? 0 : -EIO;
	/* RoCE has no addresses but global ones. */
	if (!rc &&
	    (!attr || attr->port_num != VERBS_PORT || !attr->is_global ||
	     attr->grh.sgid_index >= nic_get_config(host->nic)->gid_count))
		rc = -EINVAL;
	if (rc)
		return verbs_none(-rc);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	lock_take(&host->lock);
	rc = nic_ah_create(to_pd(pd)->nic, attr, &ah->nic);
	lock_drop(&host->lock);
	if (rc) {
		free(ah);
		return verbs_none(-rc);
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = verbs_handle(to_ctx(pd->context));
	verbs_obj_link(to_ctx(pd->context), &ah->obj, VERBS_AH);
	return &ah->ibv;
}

VERBS_EXPORT int ibv_destroy_ah(struct ibv_ah *ibah)
{
	struct verbs_ah *ah = to_ah(ibah);
	struct verbs_ctx *ctx = to_ctx(ibah->context);

	if (ah->nic) {
		struct nic_host *host = verbs_host(ibah->context);

		lock_take(&host->lock);
		nic_ah_destroy(ah->nic);
		lock_drop(&host->lock);
	}
	verbs_obj_unlink(ctx, &ah->obj);
	free(ah);
	return 0;
}

/* An IPv4 header has a checksum, so twenty bytes of leftover GRH are not taken
 * for one by accident. */
static bool grh_has_ipv4(const struct ibv_grh *grh, struct iphdr *ip)
{
	uint16_t words[sizeof(*ip) / 2];
	uint32_t sum = 0;
	unsigned i;

	memcpy(ip, (const uint8_t *)grh + GRH_IPV4_OFFSET, sizeof(*ip));
	memcpy(words, ip, sizeof(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		sum += words[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ip->version == 4 && ip->ihl == 5 && sum == 0xffff;
}

static void gid_from_ipv4(union ibv_gid *gid, uint32_t addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	memcpy(&gid->raw[12], &addr, sizeof(addr));
}

static int gid_index(struct nic_host *host, const union ibv_gid *gid)
{
	const struct nic_config *cfg = nic_get_config(host->nic);
	unsigned i;

	for (i = 0; i < cfg->gid_count; i++)
		if (!memcmp(cfg->gids[i].ip, gid->raw, sizeof(gid->raw)))
			return (int)i;
	return -1;
}

VERBS_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context,
				     uint8_t port_num, struct ibv_wc *wc,
				     struct ibv_grh *grh,
				     struct ibv_ah_attr *attr)
{
	struct nic_host *host = verbs_host(context);
	union ibv_gid own;
	struct iphdr ip;
	uint32_t flow;
	int index;

	if (!host)
		return verbs_fail(EIO);
	memset(attr, 0, sizeof(*attr));
	if (port_num != VERBS_PORT || !(wc->wc_flags & IBV_WC_GRH))
		return verbs_fail(EINVAL);
	attr->port_num = port_num;
	attr->is_global = 1;
	attr->dlid = wc->slid;
	attr->src_path_bits = wc->dlid_path_bits;
	if (grh_has_ipv4(grh, &ip)) {
		gid_from_ipv4(&attr->grh.dgid, ip.saddr);
		gid_from_ipv4(&own, ip.daddr);
		attr->grh.hop_limit = 0xff;
		attr->grh.traffic_class = ip.tos;
	} else {
		attr->grh.dgid = grh->sgid;
		own = grh->dgid;
		flow = be32toh(grh->version_tclass_flow);
		attr->grh.flow_label = flow & IB_GRH_FLOWLABEL_MASK;
		attr->grh.traffic_class = (uint8_t)(flow >> 20);
		attr->grh.hop_limit = 0xff;
	}
	index = gid_index(host, &own);
	if (index < 0)
		return verbs_fail(EINVAL);
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

VERBS_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
						  struct ibv_wc *wc,
						  struct ibv_grh *grh,
						  uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
