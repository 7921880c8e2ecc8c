/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host for tests: its NIC's only path leads back to itself, and frames move
 * when somebody drives. Any number of threads. Its time is that of the machine,
 * or LOOP_CLOCK_NS, where that is defined before.
 */
#ifndef AQ_TEST_VERBS_LOOP_H
#define AQ_TEST_VERBS_LOOP_H

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/nic_host.h"

enum {
	LOOP_FRAMES = 256,
	LOOP_FRAME_BYTES = 8192,
};

struct loop {
	struct nic_host host;
	struct env env;
	unsigned opens;
	atomic_uint leaves;
	unsigned head;
	unsigned tail;
	size_t len_bytes[LOOP_FRAMES];
	uint8_t frames[LOOP_FRAMES][LOOP_FRAME_BYTES];
};

static struct loop *loop_of(struct env *env)
{
	return container_of(env, struct loop, env);
}

static uint64_t loop_now_ns(struct env *env)
{
#ifdef LOOP_CLOCK_NS
	return LOOP_CLOCK_NS;
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

static void loop_random(struct env *env, void *buf, size_t len_bytes)
{
	if (getrandom(buf, len_bytes, 0) != (ssize_t)len_bytes)
		abort();
}

static void loop_relax(struct env *env)
{
	sched_yield();
}

static void *loop_pages_alloc(struct env *env, size_t len_bytes)
{
	void *p = aligned_alloc(4096, align_up(len_bytes, 4096));

	if (p)
		memset(p, 0, align_up(len_bytes, 4096));
	return p;
}

static void loop_pages_free(struct env *env, void *pages, size_t len_bytes)
{
	free(pages);
}

static int loop_path_open(struct env *env, const struct env_addr *dst,
			  uint32_t qpn, struct env_path **path)
{
	*path = (struct env_path *)loop_of(env);
	return 0;
}

static void loop_path_close(struct env *env, struct env_path *path)
{
}

static uint8_t *loop_tx_begin(struct env *env, struct env_path *path,
			      size_t max_bytes)
{
	struct loop *l = loop_of(env);

	if (l->head - l->tail == LOOP_FRAMES || max_bytes > LOOP_FRAME_BYTES)
		return NULL;
	return l->frames[l->head % LOOP_FRAMES];
}

static void loop_tx_end(struct env *env, struct env_path *path,
			size_t len_bytes)
{
	struct loop *l = loop_of(env);

	if (!len_bytes)
		return;
	l->len_bytes[l->head % LOOP_FRAMES] = len_bytes;
	l->head++;
}

static const struct env_ops loop_env_ops = {
	.now_ns = loop_now_ns,
	.random = loop_random,
	.relax = loop_relax,
	.pages_alloc = loop_pages_alloc,
	.pages_free = loop_pages_free,
	.path_open = loop_path_open,
	.path_close = loop_path_close,
	.tx_begin = loop_tx_begin,
	.tx_end = loop_tx_end,
};

static void loop_drive(struct nic_host *host)
{
	struct loop *l = container_of(host, struct loop, host);
	uint8_t frame[LOOP_FRAME_BYTES];

	if (!lock_try(&host->lock))
		return;
	while (l->head != l->tail) {
		size_t len = l->len_bytes[l->tail % LOOP_FRAMES];

		memcpy(frame, l->frames[l->tail % LOOP_FRAMES], len);
		l->tail++;
		nic_input(host->nic, frame, len, NIC_FROM_NET);
	}
	nic_tick(host->nic);
	nic_flush(host->nic);
	lock_drop(&host->lock);
}

static void loop_leave(struct nic_host *host)
{
	atomic_fetch_add(&container_of(host, struct loop, host)->leaves, 1);
}

static void loop_close(struct nic_host *host)
{
	struct loop *l = container_of(host, struct loop, host);

	if (--l->opens)
		return;
	nic_destroy(host->nic);
	host->nic = NULL;
}

#ifdef LOOP_GRANTS
#include "loop_grant.h"
#endif

static const struct nic_host_ops loop_ops = {
	.drive = loop_drive,
	.leave = loop_leave,
#ifdef LOOP_GRANTS
	.grant_alloc = loop_grant_alloc,
	.grant_free = loop_grant_free,
	.grant_used = loop_grant_used,
	.grant_private = loop_grant_private,
#endif
	.close = loop_close,
};

static unsigned loop_count(void *ctx)
{
	return 1;
}

static void loop_describe(void *ctx, unsigned index, char name[64],
			  uint64_t *guid)
{
	strcpy(name, "loop0");
	*guid = 0x0200000000000001u;
}

static int loop_open(void *ctx, unsigned index, const char *rack,
		     struct nic_host **out)
{
	static const struct nic_config cfg = {
		.slot = 1,
		.gid_count = 2,
		.gids = {{.ip = {0xfe, 0x80, [15] = 1},
			  .mac = {2, 0, 0, 0, 0, 1}},
			 {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
			  .mac = {2, 0, 0, 0, 0, 1}}},
		.node_guid = 0x0200000000000001u,
	};
	struct loop *l = ctx;

	if (!l->opens++) {
		int rc;

		l->env.ops = &loop_env_ops;
		l->host.ops = &loop_ops;
		l->host.env = &l->env;
		l->head = l->tail = 0;
		lock_init(&l->host.lock);
		rc = nic_create(&l->env, &cfg, &l->host.nic);
		if (rc) {
			l->opens = 0;
			return rc;
		}
	}
	*out = &l->host;
	return 0;
}

static const struct nic_provider *loop_provider(void)
{
	static struct loop loop;
	static const struct nic_provider provider = {
		.ctx = &loop,
		.count = loop_count,
		.describe = loop_describe,
		.open = loop_open,
	};

	return &provider;
}

#endif
