/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: the NIC's own, reached by keys and by explicit copies. */
#include <stdlib.h>

#include "verbs_priv.h"

/* Hardware moves whole words; programs are checked against that here too. */
static bool dm_is_aligned(uint64_t offset, size_t length)
{
	return ((offset | length) & (VERBS_DM_ALIGN_BYTES - 1)) == 0;
}

/* From the device to `dst`, or, without one, to it from `src`. */
static int dm_copy(struct ibv_dm *ibdm, uint64_t offset, const void *src,
		   void *dst, size_t length)
{
	struct nic_host *host = verbs_host(ibdm->context);
	struct nic_dm *dm = to_dm(ibdm)->nic;
	int rc;

	if (!host || !dm)
		return EIO;
	if (!dm_is_aligned(offset, length))
		return EINVAL;
	lock_take(&host->lock);
	rc = dst ? nic_dm_read(dm, offset, dst, length)
		 : nic_dm_write(dm, offset, src, length);
	lock_drop(&host->lock);
	return -rc;
}

static int dm_copy_in(struct ibv_dm *ibdm, uint64_t offset, const void *src,
		      size_t length)
{
	return dm_copy(ibdm, offset, src, NULL, length);
}

static int dm_copy_out(void *dst, struct ibv_dm *ibdm, uint64_t offset,
		       size_t length)
{
	return dm_copy(ibdm, offset, NULL, dst, length);
}

struct ibv_dm *verbs_alloc_dm(struct ibv_context *context,
			      struct ibv_alloc_dm_attr *attr)
{
	struct nic_host *host = verbs_host(context);
	struct verbs_dm *dm;
	int rc;

	rc = host ? 0 : -EIO;
	if (!rc && (attr->comp_mask || !attr->length))
		rc = -EINVAL;
	if (rc)
		return verbs_none(-rc);
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	lock_take(&host->lock);
	rc = nic_dm_alloc(host->nic, attr->length, attr->log_align_req,
			  &dm->nic);
	lock_drop(&host->lock);
	if (rc) {
		free(dm);
		return verbs_none(-rc);
	}
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = dm_copy_in;
	dm->ibv.memcpy_from_dm = dm_copy_out;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->ibv.handle = verbs_handle(to_ctx(context));
	verbs_obj_link(to_ctx(context), &dm->obj, VERBS_DM);
	return &dm->ibv;
}

int verbs_free_dm(struct ibv_dm *ibdm)
{
	return -VERBS_END(to_dm(ibdm), nic_dm_free);
}
