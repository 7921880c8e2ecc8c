/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: opening and closing a device, the tables through which inline verbs
 * arrive, and the lists of what belongs to a context. */
#include <aquifer/aqdv.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_priv.h"

const char verbs_own_mark = 'A';

static const struct nic_upcalls upcalls = {
	.cq_event = verbs_on_cq_event,
	.async_event = verbs_on_async_event,
};

/* Slots that only libraries older than the extended ABI call. */
static void *compat_none(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static int compat_query_device(struct ibv_context *context,
			       struct ibv_device_attr *attr)
{
	return ibv_query_device(context, attr);
}

static int compat_query_port(struct ibv_context *context, uint8_t port_num,
			     struct _compat_ibv_port_attr *attr)
{
	return EOPNOTSUPP;
}

static const struct ibv_context_ops live_ops = {
	._compat_query_device = compat_query_device,
	._compat_query_port = compat_query_port,
	._compat_alloc_pd = compat_none,
	._compat_dealloc_pd = compat_none,
	._compat_reg_mr = compat_none,
	._compat_rereg_mr = compat_none,
	._compat_dereg_mr = compat_none,
	.alloc_mw = verbs_alloc_mw,
	.bind_mw = verbs_bind_mw,
	.dealloc_mw = verbs_dealloc_mw,
	._compat_create_cq = compat_none,
	.poll_cq = verbs_poll_cq,
	.req_notify_cq = verbs_req_notify_cq,
	._compat_cq_event = compat_none,
	._compat_resize_cq = compat_none,
	._compat_destroy_cq = compat_none,
	._compat_create_srq = compat_none,
	._compat_modify_srq = compat_none,
	._compat_query_srq = compat_none,
	._compat_destroy_srq = compat_none,
	.post_srq_recv = verbs_post_srq_recv,
	._compat_create_qp = compat_none,
	._compat_query_qp = compat_none,
	._compat_modify_qp = compat_none,
	._compat_destroy_qp = compat_none,
	.post_send = verbs_post_send,
	.post_recv = verbs_post_recv,
	._compat_create_ah = compat_none,
	._compat_destroy_ah = compat_none,
	._compat_attach_mcast = compat_none,
	._compat_detach_mcast = compat_none,
	._compat_async_event = compat_none,
};

/* ibv_close_xrcd is the one inline verb that does not look before it calls. */
static int no_close_xrcd(struct ibv_xrcd *xrcd)
{
	return EOPNOTSUPP;
}

static void fill_ops(struct verbs_context *v)
{
	v->query_port = verbs_query_port;
	v->reg_dm_mr = verbs_reg_dm_mr;
	v->alloc_dm = verbs_alloc_dm;
	v->free_dm = verbs_free_dm;
	v->query_rt_values = verbs_query_rt_values;
	v->create_cq_ex = verbs_create_cq_ex;
	v->query_device_ex = verbs_query_device_ex;
	v->create_qp_ex = verbs_create_qp_ex;
	v->get_srq_num = verbs_get_srq_num;
	v->create_srq_ex = verbs_create_srq_ex;
	v->close_xrcd = no_close_xrcd;
	v->context.ops = live_ops;
}

bool verbs_is_own(struct ibv_context *context)
{
	const struct verbs_context *v = context ? verbs_get_ctx(context) : NULL;

	return v && (const void *)v->priv == &verbs_own_mark;
}

static void host_adopt(struct verbs_ctx *ctx, struct nic_host *host)
{
	lock_take(&host->lock);
	nic_set_upcalls(host->nic, &upcalls);
	nic_query_device(host->nic, &ctx->limits);
	lock_drop(&host->lock);
	/* HOST-1: a thread that sees the host sees the limits too. */
	atomic_store_explicit(&ctx->host, host, memory_order_release);
}

/* The descriptor keeps its number, which the application has seen; what is
 * behind it must not be shared with the parent. */
static int async_renew(struct verbs_ctx *ctx)
{
	struct ibv_context *c = &ctx->v.context;
	int rd, wr;
	int rc = verbs_pipe_open(&rd, &wr);

	if (rc)
		return rc;
	if (dup3(rd, c->async_fd, O_CLOEXEC) < 0) {
		rc = -errno;
		close(rd);
		close(wr);
		return rc;
	}
	close(rd);
	ctx->async_wr_fd = wr;
	return 0;
}

static COLD struct nic_host *host_reopen(struct verbs_ctx *ctx)
{
	const struct nic_provider *p = ctx->device->provider;
	struct nic_host *host = NULL;

	pthread_mutex_lock(&ctx->v.context.mutex);
	if (atomic_load_explicit(&ctx->host, memory_order_relaxed) ||
	    async_renew(ctx))
		goto out;
	if (!p->open(p->ctx, ctx->device->index,
		     ctx->rack[0] ? ctx->rack : NULL, &host))
		host_adopt(ctx, host);
out:
	host = atomic_load_explicit(&ctx->host, memory_order_relaxed);
	pthread_mutex_unlock(&ctx->v.context.mutex);
	return host;
}

struct nic_host *verbs_host(struct ibv_context *context)
{
	struct nic_host *host;

	if (!verbs_is_own(context))
		return NULL;
	/* HOST-1, with host_adopt. */
	host = atomic_load_explicit(&to_ctx(context)->host,
				    memory_order_acquire);
	return LIKELY(host != NULL) ? host : host_reopen(to_ctx(context));
}

#define OBJ(x) container_of(obj, struct verbs_##x, obj)

static void obj_orphan(struct verbs_obj *obj)
{
	struct verbs_channel *ch;

	switch (obj->kind) {
#define ORPHAN(KIND, x)             \
	case VERBS_##KIND:          \
		OBJ(x)->nic = NULL; \
		break;
		VERBS_NIC_OBJECTS(ORPHAN)
#undef ORPHAN
	case VERBS_CHANNEL:
		ch = OBJ(channel);
		close(ch->wr_fd);
		ch->wr_fd = -1;
		break;
	case VERBS_KIND_COUNT:
		break;
	}
}

void verbs_ctx_orphan(struct verbs_ctx *ctx)
{
	struct verbs_obj *obj;
	unsigned kind;

	for (kind = 0; kind < VERBS_KIND_COUNT; kind++)
		for (obj = ctx->objs[kind]; obj; obj = obj->next)
			obj_orphan(obj);
	close(ctx->async_wr_fd);
	ctx->async_wr_fd = -1;
	atomic_store_explicit(&ctx->host, NULL, memory_order_relaxed);
}

void verbs_obj_link(struct verbs_ctx *ctx, struct verbs_obj *obj,
		    enum verbs_kind kind)
{
	struct verbs_obj **head = &ctx->objs[kind];

	obj->kind = kind;
	pthread_mutex_lock(&ctx->v.context.mutex);
	obj->next = *head;
	obj->prev = head;
	if (obj->next)
		obj->next->prev = &obj->next;
	*head = obj;
	pthread_mutex_unlock(&ctx->v.context.mutex);
}

void verbs_obj_unlink(struct verbs_ctx *ctx, struct verbs_obj *obj)
{
	pthread_mutex_lock(&ctx->v.context.mutex);
	*obj->prev = obj->next;
	if (obj->next)
		obj->next->prev = obj->prev;
	pthread_mutex_unlock(&ctx->v.context.mutex);
}

uint32_t verbs_handle(struct verbs_ctx *ctx)
{
	return atomic_fetch_add_explicit(&ctx->next_handle, 1,
					 memory_order_relaxed);
}

static struct verbs_ctx *ctx_create(struct verbs_device *dev,
				    struct nic_host *host)
{
	struct verbs_ctx *ctx = calloc(1, sizeof(*ctx));
	struct ibv_context *c;

	if (!ctx)
		return NULL;
	c = &ctx->v.context;
	if (verbs_pipe_open(&c->async_fd, &ctx->async_wr_fd)) {
		free(ctx);
		return NULL;
	}
	/* No command goes through it, but programs duplicate and close it. */
	c->cmd_fd = eventfd(0, EFD_CLOEXEC);
	ctx->device = dev;
	atomic_init(&ctx->next_handle, 1);
	ctx->v.sz = sizeof(ctx->v);
	/* Only its address is ever looked at, and only by us. */
	ctx->v.priv = (struct verbs_ex_private *)&verbs_own_mark;
	fill_ops(&ctx->v);
	c->device = &dev->ibv;
	c->num_comp_vectors = VERBS_COMP_VECTORS;
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&c->mutex, NULL);
	host_adopt(ctx, host);
	return ctx;
}

VERBS_EXPORT struct ibv_context *aqdv_open_device(struct ibv_device *device,
						  const char *rack)
{
	struct verbs_device *dev = verbs_device_find(device);
	struct nic_host *host = NULL;
	struct verbs_ctx *ctx;
	int rc = rack && !rundir_rack_is_valid(rack) ? -EINVAL : 0;

	if (!dev)
		return verbs_none(ENODEV);
	if (!rc)
		rc = dev->provider->open(dev->provider->ctx, dev->index, rack,
					 &host);
	if (rc)
		goto err_put_device;
	ctx = ctx_create(dev, host);
	if (!ctx) {
		rc = -errno;
		goto err_close_host;
	}
	if (rack)
		strcpy(ctx->rack, rack);
	verbs_ctx_register(ctx);
	return &ctx->v.context;

err_close_host:
	host->ops->close(host);
err_put_device:
	verbs_device_put(dev);
	errno = -rc;
	return NULL;
}

VERBS_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return aqdv_open_device(device, NULL);
}

/* What could use it went before. */
static void obj_drop(struct verbs_obj *obj)
{
	int rc = 0;

	switch (obj->kind) {
	case VERBS_QP:
		verbs_qp_drop(OBJ(qp));
		break;
	case VERBS_AH:
		rc = ibv_destroy_ah(&OBJ(ah)->ibv);
		break;
	case VERBS_MW:
		rc = verbs_dealloc_mw(&OBJ(mw)->ibv);
		break;
	case VERBS_MR:
		rc = ibv_dereg_mr(&OBJ(mr)->ibv);
		break;
	case VERBS_SRQ:
		verbs_srq_drop(OBJ(srq));
		break;
	case VERBS_CQ:
		verbs_cq_drop(OBJ(cq));
		break;
	case VERBS_CHANNEL:
		verbs_channel_drop(OBJ(channel));
		break;
	case VERBS_DM:
		rc = verbs_free_dm(&OBJ(dm)->ibv);
		break;
	case VERBS_PD:
		rc = ibv_dealloc_pd(&OBJ(pd)->ibv);
		break;
	case VERBS_KIND_COUNT:
		break;
	}
	ASSERT(!rc);
}

/* A kernel takes back whatever a closed context left behind; so do we. */
VERBS_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct nic_host *host;
	struct verbs_ctx *ctx;
	unsigned kind;

	if (!verbs_is_own(context))
		return EINVAL;
	ctx = to_ctx(context);
	for (kind = 0; kind < VERBS_KIND_COUNT; kind++)
		while (ctx->objs[kind])
			obj_drop(ctx->objs[kind]);
	verbs_ctx_unregister(ctx);
	host = atomic_load_explicit(&ctx->host, memory_order_relaxed);
	if (host)
		host->ops->close(host);
	verbs_device_put(ctx->device);
	close(context->cmd_fd);
	close(context->async_fd);
	if (ctx->async_wr_fd >= 0)
		close(ctx->async_wr_fd);
	pthread_mutex_destroy(&context->mutex);
	ctx->v.priv = NULL;
	free(ctx);
	return 0;
}
