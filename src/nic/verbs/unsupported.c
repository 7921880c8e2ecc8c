/* SPDX-License-Identifier: Apache-2.0 */
/* Public verbs that this NIC does not have. Each says so the way its caller
 * expects to hear it. */
#include "verbs_priv.h"

VERBS_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
				  uint16_t lid)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

VERBS_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
				  uint16_t lid)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

VERBS_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	errno = EOPNOTSUPP;
	return NULL;
}

VERBS_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
					  uint32_t handle)
{
	errno = EOPNOTSUPP;
	return NULL;
}

VERBS_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
}

VERBS_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	errno = EOPNOTSUPP;
	return NULL;
}

VERBS_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
}

VERBS_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
					  uint32_t handle)
{
	errno = EOPNOTSUPP;
	return NULL;
}

VERBS_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}

VERBS_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd,
					      uint64_t offset, size_t length,
					      uint64_t iova, int fd, int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}

VERBS_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	/* Whoever asks for no vendor's extension has it already. */
	if (ece && !ece->vendor_id)
		return 0;
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

VERBS_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* The NIC finds the Ethernet address itself when it opens the path. */
VERBS_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
					     struct ibv_ah_attr *attr,
					     uint8_t eth_mac[ETHERNET_LL_SIZE],
					     uint16_t *vid)
{
	errno = EOPNOTSUPP;
	return -EOPNOTSUPP;
}
