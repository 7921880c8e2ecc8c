/* SPDX-License-Identifier: Apache-2.0 */
/* Memory regions. Keys, rights and bounds are the NIC's; here the arguments are
 * checked the way a kernel would before it pins the pages. */
#include <stdlib.h>

#include "verbs_priv.h"

enum {
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		       IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
		       IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
	ACCESS_NEEDS_LOCAL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	ACCESS_WRITES = ACCESS_NEEDS_LOCAL | IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_MW_BIND,
};

/* Without what only a driver would look at: hints, and the page size. */
static int nic_access(unsigned access)
{
	return (int)(access & ~(unsigned)(IBV_ACCESS_OPTIONAL_RANGE |
					  IBV_ACCESS_HUGETLB));
}

int verbs_check_access(unsigned access)
{
	/* Optional rights are hints; who does not know one ignores it. */
	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~(unsigned)ACCESS_KNOWN)
		return -EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	if ((access & ACCESS_NEEDS_LOCAL) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

/* Pages that are read-only cannot be pinned for these. */
static int range_check(const void *addr, size_t length, unsigned access)
{
	return verbs_range_check(addr, length, access & ACCESS_WRITES);
}

/* So that what is mapped there later is left alone. */
static uint64_t watch(struct nic_host *host, const void *addr, size_t length)
{
	return host->ops->memory_watch
		       ? host->ops->memory_watch(host, addr, length)
		       : 0;
}

static void unwatch(struct nic_host *host, const void *addr, size_t length,
		    uint64_t since)
{
	if (since)
		host->ops->memory_unwatch(host, addr, length, since);
}

static void mr_publish(struct verbs_mr *mr, struct ibv_pd *pd, void *addr,
		       size_t length)
{
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.lkey = nic_mr_key(mr->nic);
	mr->ibv.rkey = mr->ibv.lkey;
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length,
			     uint64_t iova, unsigned access)
{
	struct nic_host *host = verbs_host(pd->context);
	struct nic_mr_attr attr = {
		.addr = addr,
		.length = length,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.access = nic_access(access),
	};
	struct verbs_mr *mr;
	int rc;

	rc = host && to_pd(pd)->nic ? verbs_check_access(access) : -EIO;
	if (!rc)
		rc = range_check(addr, length, access);
	if (rc)
		return verbs_none(-rc);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->watched = watch(host, addr, length);
	attr.is_watched = mr->watched;
	lock_take(&host->lock);
	rc = nic_mr_reg(to_pd(pd)->nic, &attr, &mr->nic);
	if (!rc)
		mr_publish(mr, pd, addr, length);
	lock_drop(&host->lock);
	if (rc) {
		unwatch(host, addr, length, mr->watched);
		free(mr);
		return verbs_none(-rc);
	}
	mr->access = access;
	mr->ibv.handle = verbs_handle(to_ctx(pd->context));
	verbs_obj_link(to_ctx(pd->context), &mr->obj, VERBS_MR);
	return &mr->ibv;
}

/* The header renames these two to pick the newer symbol below. */
#undef ibv_reg_mr
VERBS_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
				       size_t length, int access)
{
	return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					    size_t length, uint64_t iova,
					    int access)
{
	return mr_reg(pd, addr, length, iova, (unsigned)access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					     size_t length, uint64_t iova,
					     unsigned access)
{
	return mr_reg(pd, addr, length, iova, access);
}

/* Whether the arguments of a re-registration make sense; -errno if not. */
static int rereg_check(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
		       void *addr, size_t length, int access)
{
	int rc;

	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD &&
	    (!pd || pd->context != mr->context || !to_pd(pd)->nic))
		return -EINVAL;
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS)) {
		if (access)
			return -EINVAL;
		access = (int)to_mr(mr)->access;
	} else {
		rc = verbs_check_access((unsigned)access);
		if (rc)
			return rc;
	}
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		addr = mr->addr;
		length = mr->length;
	} else if (!addr) {
		return -EINVAL;
	}
	/* Device memory has no address, and is ours. */
	return addr ? range_check(addr, length, (unsigned)access) : 0;
}

/* The arguments make sense. */
static int rereg(struct nic_host *host, struct verbs_mr *mr, int flags,
		 struct ibv_pd *pd, const struct nic_mr_attr *attr)
{
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct ibv_mr old = mr->ibv;
	uint64_t watched = moves ? watch(host, attr->addr, attr->length) : 0;
	struct nic_mr_attr next = *attr;
	int rc;

	next.is_watched = watched;
	lock_take(&host->lock);
	rc = nic_mr_rereg(mr->nic, flags, pd ? to_pd(pd)->nic : NULL, &next);
	if (!rc)
		mr_publish(mr, pd ? pd : old.pd, moves ? attr->addr : old.addr,
			   moves ? attr->length : old.length);
	lock_drop(&host->lock);
	if (rc) {
		unwatch(host, attr->addr, attr->length, watched);
	} else if (moves) {
		unwatch(host, old.addr, old.length, mr->watched);
		mr->watched = watched;
	}
	return rc;
}

VERBS_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd,
			      void *addr, size_t length, int access)
{
	struct nic_host *host = verbs_host(ibmr->context);
	struct verbs_mr *mr = to_mr(ibmr);
	struct nic_mr_attr attr = {
		.addr = addr,
		.length = length,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr,
		.access = nic_access((unsigned)access),
	};
	int rc;

	rc = host && mr->nic
		     ? rereg_check(ibmr, flags, pd, addr, length, access)
		     : -EIO;
	if (!rc)
		rc = rereg(host, mr, flags,
			   flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL, &attr);
	if (rc) {
		/* The NIC promises that the old registration stands. */
		errno = -rc;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = (unsigned)access;
	return 0;
}

VERBS_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct verbs_mr *mr = to_mr(ibmr);
	struct verbs_ctx *ctx = to_ctx(ibmr->context);
	int rc = 0;

	if (mr->nic) {
		struct nic_host *host = verbs_host(&ctx->v.context);

		lock_take(&host->lock);
		rc = nic_mr_dereg(mr->nic);
		lock_drop(&host->lock);
		if (!rc)
			unwatch(host, ibmr->addr, ibmr->length, mr->watched);
	}
	if (rc)
		return -rc;
	verbs_obj_unlink(ctx, &mr->obj);
	free(mr);
	return 0;
}

struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			       uint64_t dm_offset, size_t length,
			       unsigned access)
{
	struct nic_host *host = verbs_host(pd->context);
	struct verbs_mr *mr;
	int rc;

	rc = host && to_pd(pd)->nic ? verbs_check_access(access) : -EIO;
	/* Device memory has no address of the host to start from. */
	if (!rc && (!(access & IBV_ACCESS_ZERO_BASED) || !dm ||
		    !to_dm(dm)->nic || dm->context != pd->context))
		rc = -EINVAL;
	if (rc)
		return verbs_none(-rc);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	lock_take(&host->lock);
	rc = nic_mr_reg_dm(to_pd(pd)->nic, to_dm(dm)->nic, dm_offset, length,
			   nic_access(access), &mr->nic);
	if (!rc)
		mr_publish(mr, pd, NULL, length);
	lock_drop(&host->lock);
	if (rc) {
		free(mr);
		return verbs_none(-rc);
	}
	mr->ibv.handle = verbs_handle(to_ctx(pd->context));
	verbs_obj_link(to_ctx(pd->context), &mr->obj, VERBS_MR);
	return &mr->ibv;
}
