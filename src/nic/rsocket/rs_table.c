/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From numbers to sockets, and the life of a socket. After a fork the child's
 * numbers lead nowhere: the connections are the parent's, as documented; it may
 * only close what it inherited.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "rs_priv.h"

enum {
	BLOCK_BITS = 10,
	BLOCK = 1 << BLOCK_BITS,
	BLOCKS = RS_FD_MAX / BLOCK,
	NAME_BYTES = 16,
};

/* The one thing that the API has no handle for. */
static struct {
	pthread_mutex_t mutex;
	struct rsock **blocks[BLOCKS];
	uint8_t *inherited[BLOCKS]; /* numbers of a parent's sockets */
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

pthread_mutex_t rs_accept_mutex = PTHREAD_MUTEX_INITIALIZER;
_Thread_local unsigned rs_depth;

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

bool rs_thread_is_inside(void)
{
	char name[NAME_BYTES] = "";

	if (rs_depth)
		return true;
	/* The threads of this library and of the NIC have such names. */
	(void)prctl(PR_GET_NAME, name);
	return !strncmp(name, "aq-", 3);
}

/* ---- forks --------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&rs_accept_mutex);
	pthread_mutex_lock(&table.mutex);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&table.mutex);
	pthread_mutex_unlock(&rs_accept_mutex);
}

static void child_after_fork(void)
{
	for (unsigned b = 0; b < BLOCKS; b++) {
		if (!table.blocks[b])
			continue;
		for (unsigned i = 0; i < BLOCK; i++) {
			if (!table.blocks[b][i])
				continue;
			/* Its lock may be held by a thread that is not here:
			 * it is left as it is. */
			if (table.blocks[b][i]->dgram)
				rs_dgram_abandon(table.blocks[b][i]);
			table.blocks[b][i] = NULL;
			table.inherited[b][i] = 1;
		}
	}
	pthread_mutex_init(&table.mutex, NULL);
	pthread_mutex_init(&rs_accept_mutex, NULL);
	rs_service_abandon();
	rs_sleepers_abandon();
}

static void watch_forks(void)
{
	int err = pthread_atfork(before_fork, parent_after_fork,
				 child_after_fork);

	if (err)
		log_warn("rsocket", "forks are not watched: error %d", err);
}

/* Fork takes locks in the reverse order of registration: rdma_cm, whose lock is
 * taken after ours, must have been registered before. */
void rs_watch_forks(void)
{
	pthread_once(&fork_once, watch_forks);
}

/* ---- life ---------------------------------------------------------------- */

struct rsock *rs_new(int domain, int type, const struct rs_options *opt)
{
	struct rsock *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	rs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rs->fd < 0) {
		free(rs);
		return NULL;
	}
	rs->refs = 1;
	rs->domain = domain;
	rs->type = type;
	rs->opt = *opt;
	pthread_mutex_init(&rs->lock, NULL);
	list_init(&rs->sleepers);
	list_init(&rs->local_maps);
	list_init(&rs->accept_node);
	list_init(&rs->accepting);
	list_init(&rs->accepted);
	list_init(&rs->deferred);
	return rs;
}

static void destroy(struct rsock *rs)
{
	if (rs->id) {
		/* The service thread may have an event of it. */
		pthread_mutex_lock(&rs->lock);
		rs->closed = true;
		rs_iomaps_close(rs);
		rs_stream_close(rs);
		pthread_mutex_unlock(&rs->lock);
		(void)rdma_destroy_id(rs->id); /* waits for that thread */
	}
	if (rs->dgram)
		rs_dgram_close(rs);
	close(rs->fd);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

void rs_put(struct rsock *rs)
{
	bool last;

	pthread_mutex_lock(&table.mutex);
	last = --rs->refs == 0;
	pthread_mutex_unlock(&table.mutex);
	if (last)
		destroy(rs);
}

void rs_leave(struct rsock *rs)
{
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	rs_depth--;
}

/* ---- places -------------------------------------------------------------- */

static struct rsock **place(int fd)
{
	struct rsock **block;

	if (fd < 0 || fd >= RS_FD_MAX)
		return NULL;
	block = table.blocks[fd >> BLOCK_BITS];
	return block ? &block[fd & (BLOCK - 1)] : NULL;
}

static bool make_block(unsigned b)
{
	if (!table.blocks[b])
		table.blocks[b] = calloc(BLOCK, sizeof(struct rsock *));
	if (!table.inherited[b])
		table.inherited[b] = calloc(BLOCK, 1);
	return table.blocks[b] && table.inherited[b];
}

int rs_publish(struct rsock *rs)
{
	int err = 0;

	if (rs->fd >= RS_FD_MAX)
		return -EMFILE;
	pthread_mutex_lock(&table.mutex);
	if (make_block((unsigned)rs->fd >> BLOCK_BITS)) {
		*place(rs->fd) = rs;
		table.inherited[rs->fd >> BLOCK_BITS][rs->fd & (BLOCK - 1)] = 0;
	} else {
		err = -ENOMEM;
	}
	pthread_mutex_unlock(&table.mutex);
	return err;
}

struct rsock *rs_find(int fd)
{
	struct rsock **at, *rs = NULL;

	pthread_mutex_lock(&table.mutex);
	at = place(fd);
	if (at && *at) {
		rs = *at;
		rs->refs++;
	}
	pthread_mutex_unlock(&table.mutex);
	return rs;
}

struct rsock *rs_get(int fd)
{
	struct rsock *rs = rs_find(fd);

	if (!rs) {
		errno = EBADF;
		return NULL;
	}
	rs_depth++;
	pthread_mutex_lock(&rs->lock);
	return rs;
}

static bool forget_inherited(int fd)
{
	uint8_t *block;
	bool was;

	if (fd < 0 || fd >= RS_FD_MAX)
		return false;
	block = table.inherited[fd >> BLOCK_BITS];
	was = block && block[fd & (BLOCK - 1)];
	if (was)
		block[fd & (BLOCK - 1)] = 0;
	return was;
}

struct rsock *rs_withdraw(int fd)
{
	struct rsock **at, *rs = NULL;
	bool inherited;

	pthread_mutex_lock(&table.mutex);
	at = place(fd);
	if (at && *at) {
		rs = *at;
		*at = NULL;
	}
	inherited = !rs && forget_inherited(fd);
	pthread_mutex_unlock(&table.mutex);
	if (inherited) {
		close(fd);
		errno = 0;
	} else if (!rs) {
		errno = EBADF;
	}
	return rs;
}

void rs_each(void (*visit)(struct rsock *rs))
{
	for (int fd = 0; fd < RS_FD_MAX; fd++) {
		struct rsock *rs;

		if (!table.blocks[fd >> BLOCK_BITS]) {
			fd |= BLOCK - 1;
			continue;
		}
		rs = rs_find(fd);
		if (!rs)
			continue;
		visit(rs);
		rs_put(rs);
	}
}
