/* SPDX-License-Identifier: Apache-2.0 */
/* Protection domains. */
#include <stdlib.h>

#include "verbs_priv.h"

VERBS_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct nic_host *host = verbs_host(context);
	struct verbs_pd *pd;
	int rc;

	if (!host) {
		errno = EIO;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	lock_take(&host->lock);
	rc = nic_pd_create(host->nic, &pd->nic);
	lock_drop(&host->lock);
	if (rc) {
		free(pd);
		errno = -rc;
		return NULL;
	}
	pd->ibv.context = context;
	pd->ibv.handle = verbs_handle(to_ctx(context));
	verbs_obj_link(to_ctx(context), &pd->obj, VERBS_PD);
	return &pd->ibv;
}

VERBS_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct verbs_pd *pd = to_pd(ibpd);
	struct verbs_ctx *ctx = to_ctx(ibpd->context);
	int rc = 0;

	if (pd->nic) {
		struct nic_host *host = verbs_host(&ctx->v.context);

		lock_take(&host->lock);
		rc = nic_pd_destroy(pd->nic);
		lock_drop(&host->lock);
	}
	if (rc)
		return -rc;
	verbs_obj_unlink(ctx, &pd->obj);
	free(pd);
	return 0;
}

void verbs_pd_drop(struct verbs_pd *pd)
{
	int rc = ibv_dealloc_pd(&pd->ibv);

	ASSERT(!rc); /* everything that could use it went before */
}
