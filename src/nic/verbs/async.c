/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous events: 16-byte records in the context's pipe. As with
 * completion channels, a record counts only while its object lives.
 */
#include <unistd.h>

#include "verbs_priv.h"

struct async_record {
	uint64_t element; /* address of the object */
	uint32_t type;	  /* enum ibv_event_type */
	uint32_t reserved;
};

STATIC_ASSERT(sizeof(struct async_record) == 16, "as the kernel's");

/* Which kind of object an event is about; VERBS_KIND_COUNT: none of them. */
static enum verbs_kind event_kind(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return VERBS_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return VERBS_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return VERBS_SRQ;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_WQ_FATAL:
		break;
	}
	return VERBS_KIND_COUNT;
}

/* Where the object of an event keeps its bookkeeping. Its address is also that
 * of its public structure, which the application will see. */
static struct verbs_obj *owner_obj(void *owner, enum verbs_kind kind)
{
	if (kind == VERBS_CQ)
		return &((struct verbs_cq *)owner)->obj;
	if (kind == VERBS_QP)
		return &((struct verbs_qp *)owner)->obj;
	return &((struct verbs_srq *)owner)->obj;
}

static struct verbs_ctx *owner_ctx(void *owner)
{
	/* All three public structures begin with their context. */
	STATIC_ASSERT(offsetof(struct ibv_cq, context) == 0, "ABI");
	STATIC_ASSERT(offsetof(struct ibv_qp, context) == 0, "ABI");
	STATIC_ASSERT(offsetof(struct ibv_srq, context) == 0, "ABI");
	return to_ctx(*(struct ibv_context **)owner);
}

void verbs_on_async_event(void *owner, enum ibv_event_type type)
{
	struct async_record rec = {.element = (uintptr_t)owner, .type = type};
	enum verbs_kind kind = event_kind(type);
	struct verbs_obj *obj;
	struct verbs_ctx *ctx;

	if (!owner || kind == VERBS_KIND_COUNT)
		return;
	obj = owner_obj(owner, kind);
	ctx = owner_ctx(owner);
	/* Counted before written, as in a channel. */
	atomic_fetch_add_explicit(&obj->async_unread, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&ctx->async_unread, 1, memory_order_relaxed);
	if (write(ctx->async_wr_fd, &rec, sizeof(rec)) == sizeof(rec))
		return;
	/* Thousands unread: the application does not look at them. */
	atomic_fetch_sub_explicit(&ctx->async_unread, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&obj->async_unread, 1, memory_order_relaxed);
}

static bool event_claim(struct verbs_ctx *ctx, const struct async_record *rec)
{
	enum verbs_kind kind = event_kind((enum ibv_event_type)rec->type);
	struct verbs_obj *wanted;
	struct verbs_obj *obj;

	if (kind == VERBS_KIND_COUNT)
		return false;
	wanted = owner_obj((void *)(uintptr_t)rec->element, kind);
	pthread_mutex_lock(&ctx->v.context.mutex);
	for (obj = ctx->objs[kind]; obj && obj != wanted; obj = obj->next)
		;
	if (obj &&
	    !atomic_load_explicit(&obj->async_unread, memory_order_relaxed))
		obj = NULL;
	if (obj) {
		atomic_fetch_sub_explicit(&obj->async_unread, 1,
					  memory_order_relaxed);
		obj->async_delivered++;
	}
	pthread_mutex_unlock(&ctx->v.context.mutex);
	return obj != NULL;
}

VERBS_EXPORT int ibv_get_async_event(struct ibv_context *context,
				     struct ibv_async_event *event)
{
	struct nic_host *host = verbs_host(context);
	struct verbs_ctx *ctx = to_ctx(context);
	struct async_record rec;

	if (!host)
		return verbs_fail(EIO);
	do {
		/* Nobody is in a hurry for these: the NIC thread serves the NIC
		 * while this thread sleeps. */
		if (host->ops->is_simulated)
			verbs_wait_readable(host, context->async_fd,
					    &ctx->async_unread);
		if (read(context->async_fd, &rec, sizeof(rec)) != sizeof(rec))
			return -1;
		atomic_fetch_sub_explicit(&ctx->async_unread, 1,
					  memory_order_relaxed);
	} while (!event_claim(ctx, &rec));
	event->event_type = (enum ibv_event_type)rec.type;
	event->element.qp = (struct ibv_qp *)(uintptr_t)rec.element;
	return 0;
}

VERBS_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	enum verbs_kind kind = event_kind(event->event_type);
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *count;

	if (kind == VERBS_CQ) {
		mutex = &event->element.cq->mutex;
		cond = &event->element.cq->cond;
		count = &event->element.cq->async_events_completed;
	} else if (kind == VERBS_QP) {
		mutex = &event->element.qp->mutex;
		cond = &event->element.qp->cond;
		count = &event->element.qp->events_completed;
	} else if (kind == VERBS_SRQ) {
		mutex = &event->element.srq->mutex;
		cond = &event->element.srq->cond;
		count = &event->element.srq->events_completed;
	} else {
		return;
	}
	pthread_mutex_lock(mutex);
	(*count)++;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}
