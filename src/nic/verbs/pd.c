/* SPDX-License-Identifier: Apache-2.0 */
/* Protection domains. */
#include <aquifer/aqdv.h>
#include <stdlib.h>

#include "verbs_priv.h"

VERBS_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct nic_host *host = verbs_host(context);
	struct verbs_pd *pd;
	int rc;

	if (!host)
		return verbs_none(EIO);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	lock_take(&host->lock);
	rc = nic_pd_create(host->nic, &pd->nic);
	lock_drop(&host->lock);
	if (rc) {
		free(pd);
		return verbs_none(-rc);
	}
	pd->ibv.context = context;
	pd->ibv.handle = verbs_handle(to_ctx(context));
	verbs_obj_link(to_ctx(context), &pd->obj, VERBS_PD);
	return &pd->ibv;
}

VERBS_EXPORT int aqdv_share_turns(struct ibv_pd *ibpd, struct ibv_pd *with)
{
	struct nic_host *host;
	int rc;

	if (!ibpd || !with)
		return -EINVAL;
	if (!verbs_is_own(ibpd->context) || !verbs_is_own(with->context))
		return -EOPNOTSUPP;
	host = verbs_host(ibpd->context);
	if (!host || !to_pd(ibpd)->nic || !to_pd(with)->nic)
		return -EIO;
	lock_take(&host->lock);
	rc = nic_pd_share_turns(to_pd(ibpd)->nic, to_pd(with)->nic);
	lock_drop(&host->lock);
	return rc;
}

VERBS_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	return -VERBS_END(to_pd(ibpd), nic_pd_destroy);
}
