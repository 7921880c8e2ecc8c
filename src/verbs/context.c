/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: opening and closing a device, the tables through which inline verbs
 * arrive, and the lists of what belongs to a context. */
#include <stdlib.h>
#include <string.h>
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

void verbs_fill_ops(struct verbs_context *v)
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

static int dead_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad_wr)
{
	if (bad_wr)
		*bad_wr = wr;
	return EIO;
}

static int dead_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr)
{
	if (bad_wr)
		*bad_wr = wr;
	return EIO;
}

static int dead_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad_wr)
{
	if (bad_wr)
		*bad_wr = wr;
	return EIO;
}

static int dead_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return -EIO;
}

static int dead_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return EIO;
}

static int dead_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
			struct ibv_mw_bind *bind)
{
	return EIO;
}

/* The data path has no test for a dead context: its table is exchanged. */
void verbs_kill_ops(struct verbs_context *v)
{
	v->context.ops.post_send = dead_post_send;
	v->context.ops.post_recv = dead_post_recv;
	v->context.ops.post_srq_recv = dead_post_srq_recv;
	v->context.ops.poll_cq = dead_poll_cq;
	v->context.ops.req_notify_cq = dead_req_notify_cq;
	v->context.ops.bind_mw = dead_bind_mw;
}

bool verbs_is_own(struct ibv_context *context)
{
	const struct verbs_context *v = context ? verbs_get_ctx(context) : NULL;

	return v && (const void *)v->priv == &verbs_own_mark;
}

struct nic_host *verbs_host(struct ibv_context *context)
{
	if (!verbs_is_own(context) || to_ctx(context)->is_dead)
		return NULL;
	return to_ctx(context)->host;
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
	/* In a forked child the mutex may be held by nobody who lives, and the
	 * child's one thread is alone anyway. */
	if (!ctx->is_dead)
		pthread_mutex_lock(&ctx->v.context.mutex);
	*obj->prev = obj->next;
	if (obj->next)
		obj->next->prev = obj->prev;
	if (!ctx->is_dead)
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
	ctx->host = host;
	ctx->device = dev;
	atomic_init(&ctx->next_handle, 1);
	ctx->v.sz = sizeof(ctx->v);
	/* Only its address is ever looked at, and only by us. */
	ctx->v.priv = (struct verbs_ex_private *)&verbs_own_mark;
	verbs_fill_ops(&ctx->v);
	c->device = &dev->ibv;
	c->cmd_fd = -1;
	c->num_comp_vectors = VERBS_COMP_VECTORS;
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&c->mutex, NULL);

	lock_take(&host->lock);
	nic_set_upcalls(host->nic, &upcalls);
	nic_query_device(host->nic, &ctx->limits);
	lock_drop(&host->lock);
	return ctx;
}

VERBS_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct verbs_device *dev = verbs_device_find(device);
	struct nic_host *host = NULL;
	struct verbs_ctx *ctx;
	int rc;

	if (!dev) {
		errno = ENODEV;
		return NULL;
	}
	rc = dev->provider->open(dev->provider->ctx, dev->index, &host);
	if (rc)
		goto err_put_device;
	ctx = ctx_create(dev, host);
	if (!ctx) {
		rc = -errno;
		goto err_close_host;
	}
	verbs_ctx_register(ctx);
	return &ctx->v.context;

err_close_host:
	host->ops->close(host);
err_put_device:
	verbs_device_put(dev);
	errno = -rc;
	return NULL;
}

static void obj_drop(struct verbs_obj *obj)
{
	switch (obj->kind) {
	case VERBS_QP:
		verbs_qp_drop(container_of(obj, struct verbs_qp, obj));
		break;
	case VERBS_AH:
		verbs_ah_drop(container_of(obj, struct verbs_ah, obj));
		break;
	case VERBS_MW:
		verbs_mw_drop(container_of(obj, struct verbs_mw, obj));
		break;
	case VERBS_MR:
		verbs_mr_drop(container_of(obj, struct verbs_mr, obj));
		break;
	case VERBS_SRQ:
		verbs_srq_drop(container_of(obj, struct verbs_srq, obj));
		break;
	case VERBS_CQ:
		verbs_cq_drop(container_of(obj, struct verbs_cq, obj));
		break;
	case VERBS_CHANNEL:
		verbs_channel_drop(
			container_of(obj, struct verbs_channel, obj));
		break;
	case VERBS_DM:
		verbs_dm_drop(container_of(obj, struct verbs_dm, obj));
		break;
	case VERBS_PD:
		verbs_pd_drop(container_of(obj, struct verbs_pd, obj));
		break;
	case VERBS_KIND_COUNT:
		break;
	}
}

/* A kernel takes back whatever a closed context left behind; so do we. */
VERBS_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct verbs_ctx *ctx;
	unsigned kind;

	if (!verbs_is_own(context))
		return EINVAL;
	ctx = to_ctx(context);
	for (kind = 0; kind < VERBS_KIND_COUNT; kind++)
		while (ctx->objs[kind])
			obj_drop(ctx->objs[kind]);
	verbs_ctx_unregister(ctx);
	if (!ctx->is_dead)
		ctx->host->ops->close(ctx->host);
	verbs_device_put(ctx->device);
	close(context->async_fd);
	close(ctx->async_wr_fd);
	pthread_mutex_destroy(&context->mutex);
	ctx->v.priv = NULL;
	free(ctx);
	return 0;
}
