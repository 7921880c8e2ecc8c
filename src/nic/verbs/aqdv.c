/* SPDX-License-Identifier: Apache-2.0 */
/* Our direct verbs (include/aquifer/aqdv.h) on top of the NIC. */
#include <aquifer/aqdv.h>
#include <string.h>

#include "verbs_priv.h"

STATIC_ASSERT(AQDV_ALLOC_READ_ONLY == (unsigned)NIC_GRANT_READ_ONLY &&
		      AQDV_ALLOC_SPARSE == (unsigned)NIC_GRANT_SPARSE,
	      "passed through");

VERBS_EXPORT bool aqdv_is_supported(struct ibv_device *device)
{
	/* By address: a foreign structure has no place to look for a mark. */
	struct verbs_device *dev = verbs_device_find(device);

	if (!dev)
		return false;
	verbs_device_put(dev);
	return true;
}

/* -EOPNOTSUPP: not ours. -EIO: ours, but of the parent process. */
static int own_host(struct ibv_context *context, struct nic_host **host)
{
	if (!verbs_is_own(context))
		return -EOPNOTSUPP;
	*host = verbs_host(context);
	return *host ? 0 : -EIO;
}

int verbs_own_qp(struct ibv_qp *ibqp, struct verbs_qp **qp)
{
	if (!ibqp)
		return -EINVAL;
	if (!verbs_is_own(ibqp->context))
		return -EOPNOTSUPP;
	*qp = to_qp(ibqp);
	return (*qp)->nic ? 0 : -EIO;
}

VERBS_EXPORT int aqdv_query_device(struct ibv_context *context,
				   struct aqdv_device_attr *attr)
{
	struct nic_host *host;
	int rc = own_host(context, &host);

	if (rc)
		return rc;
	if (!attr || attr->comp_mask)
		return -EINVAL;
	*attr = (struct aqdv_device_attr){
		.caps = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA |
			AQDV_CAP_CHAINS | AQDV_CAP_AUTH | AQDV_CAP_WALK,
		.masked_atomic_max_bytes = sizeof(uint64_t),
	};
	if (host->ops->grant_alloc)
		attr->caps |= AQDV_CAP_DIRECT;
	return 0;
}

static int masked_post_one(struct verbs_qp *qp, const struct aqdv_masked_wr *m,
			   bool is_add)
{
	struct nic_masked_atomic masked = {
		.is_add = is_add,
		.remote_addr = m->remote_addr,
		.rkey = m->rkey,
	};
	struct nic_send_extra extra = {.masked = &masked};
	struct ibv_send_wr wr = {
		.wr_id = m->wr_id,
		.sg_list = m->sg_list,
		.num_sge = m->num_sge,
		.opcode = is_add ? IBV_WR_ATOMIC_FETCH_AND_ADD
				 : IBV_WR_ATOMIC_CMP_AND_SWP,
		.send_flags = m->send_flags,
	};

	if (m->send_flags & IBV_SEND_INLINE)
		return -EINVAL;
	if (is_add) {
		masked.swap_add = m->faa.add;
		masked.boundary = m->faa.boundary;
	} else {
		masked.swap_add = m->cas.swap;
		masked.compare = m->cas.compare;
		masked.swap_mask = m->cas.swap_mask;
		masked.compare_mask = m->cas.compare_mask;
	}
	wr.wr.atomic.remote_addr = m->remote_addr;
	wr.wr.atomic.rkey = m->rkey;
	wr.wr.atomic.compare_add = is_add ? m->faa.add : m->cas.compare;
	wr.wr.atomic.swap = is_add ? 0 : m->cas.swap;
	return nic_qp_post_send(qp->nic, &wr, &extra);
}

static int masked_post(struct ibv_qp *ibqp, struct aqdv_masked_wr *wr,
		       struct aqdv_masked_wr **bad_wr, bool is_add)
{
	struct nic_host *host;
	int rc = ibqp ? own_host(ibqp->context, &host) : -EINVAL;

	if (!rc && !to_qp(ibqp)->nic)
		rc = -EIO;
	if (!rc && ibqp->qp_type != IBV_QPT_RC)
		rc = -EINVAL;
	if (rc) {
		if (bad_wr)
			*bad_wr = wr;
		return rc;
	}
	lock_take(&host->lock);
	for (; wr; wr = wr->next) {
		rc = masked_post_one(to_qp(ibqp), wr, is_add);
		if (rc) {
			if (bad_wr)
				*bad_wr = wr;
			break;
		}
	}
	nic_qp_kick(to_qp(ibqp)->nic);
	lock_drop(&host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_post_masked_cas(struct ibv_qp *qp,
				      struct aqdv_masked_wr *wr,
				      struct aqdv_masked_wr **bad_wr)
{
	return masked_post(qp, wr, bad_wr, false);
}

VERBS_EXPORT int aqdv_post_masked_faa(struct ibv_qp *qp,
				      struct aqdv_masked_wr *wr,
				      struct aqdv_masked_wr **bad_wr)
{
	return masked_post(qp, wr, bad_wr, true);
}

VERBS_EXPORT HOT int aqdv_read_now(struct ibv_qp *ibqp,
				   const struct aqdv_read *reads,
				   unsigned count)
{
	struct nic_read list[NIC_READ_NOW_MAX];
	unsigned done = 0, some, n, i;
	struct verbs_qp *qp;
	int rc = verbs_own_qp(ibqp, &qp);

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	do {
		n = u32_min(count - done, NIC_READ_NOW_MAX);
		for (i = 0; i < n; i++)
			list[i] = (struct nic_read){
				.addr = reads[done + i].remote_addr,
				.to = reads[done + i].to,
				.rkey = reads[done + i].rkey,
				.len_bytes = reads[done + i].len_bytes,
			};
		some = nic_qp_read_now(qp->nic, list, n);
		done += some;
	} while (some == n && done < count);
	lock_drop(&qp->host->lock);
	return (int)done;
}

VERBS_EXPORT int aqdv_doze(struct ibv_context *context, uint32_t max_us)
{
	struct nic_host *host;

	if (!verbs_is_own(context))
		return -EOPNOTSUPP;
	host = verbs_host(context);
	if (!host)
		return -EIO;
	if (!host->ops->doze)
		return -EOPNOTSUPP;
	return host->ops->doze(host, max_us * 1000ull) ? 0 : -EAGAIN;
}

VERBS_EXPORT int aqdv_alloc(struct ibv_context *context, size_t len_bytes,
			    unsigned flags, void **addr)
{
	struct nic_host *host;
	int rc = own_host(context, &host);

	if (rc)
		return rc;
	if (!len_bytes || !addr ||
	    (flags & ~(unsigned)(AQDV_ALLOC_READ_ONLY | AQDV_ALLOC_SPARSE)))
		return -EINVAL;
	if (!host->ops->grant_alloc)
		return -EOPNOTSUPP;
	return host->ops->grant_alloc(host, len_bytes, flags, addr);
}

VERBS_EXPORT int aqdv_free(struct ibv_context *context, void *addr)
{
	struct nic_host *host;
	int rc = own_host(context, &host);

	if (rc)
		return rc;
	if (!addr)
		return -EINVAL;
	if (!host->ops->grant_free)
		return -EOPNOTSUPP;
	return host->ops->grant_free(host, addr);
}

VERBS_EXPORT int aqdv_alloc_used(struct ibv_context *context, void *addr,
				 uint64_t *used_bytes)
{
	struct nic_host *host;
	int rc = own_host(context, &host);

	if (rc)
		return rc;
	if (!addr || !used_bytes)
		return -EINVAL;
	if (!host->ops->grant_used)
		return -EOPNOTSUPP;
	return host->ops->grant_used(host, addr, used_bytes);
}

VERBS_EXPORT int aqdv_alloc_private(struct ibv_context *context, void *addr)
{
	struct nic_host *host;
	int rc = own_host(context, &host);

	if (rc)
		return rc;
	if (!addr)
		return -EINVAL;
	if (!host->ops->grant_private)
		return -EOPNOTSUPP;
	return host->ops->grant_private(host, addr);
}

VERBS_EXPORT int aqdv_peer_gone(struct ibv_qp *ibqp)
{
	struct verbs_qp *qp;
	int rc = verbs_own_qp(ibqp, &qp);

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	rc = nic_qp_peer_gone(qp->nic);
	lock_drop(&qp->host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_probe_peer(struct ibv_context *context, uint32_t qp_num)
{
	struct nic_host *host;
	int rc = own_host(context, &host);

	if (rc)
		return rc;
	lock_take(&host->lock);
	rc = nic_qp_probe(host->nic, qp_num);
	lock_drop(&host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_query_path_mtu(struct ibv_context *context,
				     const union ibv_gid *dgid,
				     enum ibv_mtu *mtu)
{
	struct nic_host *host;
	int rc = dgid && mtu ? own_host(context, &host) : -EINVAL;

	if (rc)
		return rc;
	lock_take(&host->lock);
	*mtu = nic_path_mtu(host->nic, dgid->raw);
	lock_drop(&host->lock);
	return 0;
}

STATIC_ASSERT((int)AQDV_AUTH_KEY_BYTES == (int)NIC_AUTH_KEY_BYTES, "the key");

VERBS_EXPORT int aqdv_qp_set_auth(struct ibv_qp *ibqp, const void *key,
				  size_t len_bytes)
{
	struct verbs_qp *qp;
	int rc = key ? verbs_own_qp(ibqp, &qp) : -EINVAL;

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	rc = nic_qp_set_auth(qp->nic, key, len_bytes);
	lock_drop(&qp->host->lock);
	return rc;
}

VERBS_EXPORT const char *aqdv_counter_name(unsigned index)
{
	return index < NIC_COUNTER_COUNT ? nic_counter_names[index] : NULL;
}

VERBS_EXPORT int aqdv_get_counter(struct ibv_context *context, const char *name,
				  uint64_t *value)
{
	struct nic_host *host;
	int rc = own_host(context, &host);
	unsigned i;

	if (rc)
		return rc;
	if (!name || !value)
		return -EINVAL;
	for (i = 0; i < NIC_COUNTER_COUNT; i++) {
		if (strcmp(nic_counter_names[i], name))
			continue;
		lock_take(&host->lock);
		*value = nic_counter_get(host->nic, (enum nic_counter)i);
		lock_drop(&host->lock);
		return 0;
	}
	return -ENOENT;
}
