/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion channels: pipes of struct ibv_cq pointers, one per event.
 *
 * A record may outlive its CQ in the pipe. So a record is only a claim: it
 * counts if the CQ is still attached and owes an event, else it is skipped.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/relax.h"
#include "verbs_priv.h"

enum {
	DRIVE_TRIES = 200, /* then a sleep is cheaper for everybody */
};

int verbs_pipe_open(int *rd_fd, int *wr_fd)
{
	int fds[2];
	int flags;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* The read end blocks unless the application says otherwise. */
	flags = fcntl(fds[1], F_GETFL);
	if (flags < 0 || fcntl(fds[1], F_SETFL, flags | O_NONBLOCK)) {
		flags = errno;
		close(fds[0]);
		close(fds[1]);
		errno = flags;
		return -flags;
	}
	*rd_fd = fds[0];
	*wr_fd = fds[1];
	return 0;
}

void verbs_wait_readable(struct nic_host *host, int fd, atomic_uint *unread)
{
	const struct nic_host_ops *ops = host->ops;
	unsigned i;

	if (fcntl(fd, F_GETFL) & O_NONBLOCK)
		return;
	for (i = 0; i < DRIVE_TRIES || ops->is_simulated; i++) {
		/* Relaxed: only a hint whether the read below will sleep; the
		 * pipe itself orders the record. */
		if (atomic_load_explicit(unread, memory_order_relaxed))
			return;
		ops->drive(host);
		if (!ops->is_simulated && relax_is_crowded())
			break; /* the record wakes us sooner than we look */
		env_relax(host->env);
	}
	ops->leave(host);
}

VERBS_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(
	struct ibv_context *context)
{
	struct verbs_channel *ch;

	if (!verbs_host(context))
		return verbs_none(EIO);
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	if (verbs_pipe_open(&ch->ibv.fd, &ch->wr_fd)) {
		free(ch);
		return NULL;
	}
	ch->ibv.context = context;
	pthread_mutex_init(&ch->mutex, NULL);
	verbs_obj_link(to_ctx(context), &ch->obj, VERBS_CHANNEL);
	return &ch->ibv;
}

void verbs_channel_drop(struct verbs_channel *ch)
{
	verbs_obj_unlink(to_ctx(ch->ibv.context), &ch->obj);
	close(ch->ibv.fd);
	if (ch->wr_fd >= 0)
		close(ch->wr_fd);
	pthread_mutex_destroy(&ch->mutex);
	free(ch);
}

VERBS_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct verbs_channel *ch = to_channel(channel);
	bool busy;

	if (ch->wr_fd >= 0) {
		pthread_mutex_lock(&ch->mutex);
		busy = channel->refcnt != 0;
		pthread_mutex_unlock(&ch->mutex);
		if (busy)
			return EBUSY;
	}
	verbs_channel_drop(ch);
	return 0;
}

static void cq_to_front(struct verbs_channel *ch, struct verbs_cq *cq)
{
	cq->channel_next = ch->cqs;
	cq->channel_prev = &ch->cqs;
	if (cq->channel_next)
		cq->channel_next->channel_prev = &cq->channel_next;
	ch->cqs = cq;
}

static void cq_unhook(struct verbs_cq *cq)
{
	*cq->channel_prev = cq->channel_next;
	if (cq->channel_next)
		cq->channel_next->channel_prev = cq->channel_prev;
}

void verbs_channel_attach(struct verbs_channel *ch, struct verbs_cq *cq)
{
	pthread_mutex_lock(&ch->mutex);
	cq_to_front(ch, cq);
	ch->ibv.refcnt++;
	pthread_mutex_unlock(&ch->mutex);
}

void verbs_channel_detach(struct verbs_channel *ch, struct verbs_cq *cq)
{
	/* Inherited: the mutex may be held by a thread that is no more. */
	bool alone = ch->wr_fd < 0;

	if (!alone)
		pthread_mutex_lock(&ch->mutex);
	cq_unhook(cq);
	ch->ibv.refcnt--;
	if (!alone)
		pthread_mutex_unlock(&ch->mutex);
}

/* Counts first and writes then, so that a reader never finds a record that
 * nobody counted. All relaxed: the pipe orders. */
static void channel_push(struct verbs_channel *ch, struct verbs_cq *cq)
{
	uint64_t record = (uintptr_t)&cq->ibv;

	atomic_fetch_add_explicit(&cq->unread, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&ch->unread, 1, memory_order_relaxed);
	if (write(ch->wr_fd, &record, sizeof(record)) == sizeof(record))
		return;
	atomic_fetch_sub_explicit(&ch->unread, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cq->unread, 1, memory_order_relaxed);
	/* A full pipe means thousands of events that nobody reads. Whoever
	 * reads next makes up for this one. */
	atomic_store_explicit(&cq->owed, true, memory_order_relaxed);
	/* OWED-1: who sees that the channel owes sees which queue it is. */
	atomic_store_explicit(&ch->owed, true, memory_order_release);
}

void verbs_on_cq_event(struct nic_cq *nic, void *owner)
{
	struct verbs_cq *cq = owner;

	if (cq->ibv.channel)
		channel_push(to_channel(cq->ibv.channel), cq);
}

/* Channel's mutex held. */
static void channel_pay(struct verbs_channel *ch)
{
	struct verbs_cq *cq;

	lock_assert_mutex_held(&ch->mutex);
	/* OWED-1, with channel_push. */
	if (!atomic_exchange_explicit(&ch->owed, false, memory_order_acquire))
		return;
	for (cq = ch->cqs; cq; cq = cq->channel_next)
		if (atomic_exchange_explicit(&cq->owed, false,
					     memory_order_relaxed))
			channel_push(ch, cq);
}

/* The CQ that a record stands for, or NULL if it is gone or was served. */
static struct verbs_cq *channel_claim(struct verbs_channel *ch, uint64_t record)
{
	struct verbs_cq *cq;

	pthread_mutex_lock(&ch->mutex);
	for (cq = ch->cqs; cq; cq = cq->channel_next)
		if ((uintptr_t)&cq->ibv == record)
			break;
	if (cq && !atomic_load_explicit(&cq->unread, memory_order_relaxed))
		cq = NULL;
	if (cq) {
		atomic_fetch_sub_explicit(&cq->unread, 1, memory_order_relaxed);
		cq->comp_delivered++;
		/* Busy CQs are found first the next time. */
		cq_unhook(cq);
		cq_to_front(ch, cq);
	}
	channel_pay(ch);
	pthread_mutex_unlock(&ch->mutex);
	return cq;
}

VERBS_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
				  struct ibv_cq **cq, void **cq_context)
{
	struct verbs_channel *ch = to_channel(channel);
	struct nic_host *host = verbs_host(channel->context);
	struct verbs_cq *found;
	uint64_t record;

	if (!host || ch->wr_fd < 0)
		return verbs_fail(EIO);
	do {
		verbs_wait_readable(host, channel->fd, &ch->unread);
		if (read(channel->fd, &record, sizeof(record)) !=
		    sizeof(record))
			return -1;
		atomic_fetch_sub_explicit(&ch->unread, 1, memory_order_relaxed);
		found = channel_claim(ch, record);
	} while (!found);
	*cq = &found->ibv;
	*cq_context = found->ibv.cq_context;
	return 0;
}

VERBS_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
	if (!nevents || !to_cq(cq)->nic)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
