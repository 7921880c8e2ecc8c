/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the far memory of a subject, in its way. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hlog/redy.h"
#include "offload_bench.h"
#include "offload_conn.h"
#include "place.h"
#include "shield.h"
#include "two_sided.h"

const char *offload_way_name(enum offload_way way)
{
	static const char *const names[WAY_COUNT] = {
		[WAY_LOCAL] = "local",
		[WAY_FILE] = "file",
		[WAY_SYNC] = "sync",
		[WAY_ASYNC] = "async",
		[WAY_QUIET] = "quiet",
		[WAY_TWO_SIDED] = "two_sided",
		[WAY_REDY] = "redy",
		[WAY_COW] = "cow",
		[WAY_COW_ALONE] = "cow_alone",
		[WAY_COW_READS] = "cow_reads",
		[WAY_ASYNC_DIRECT] = "async_direct",
		[WAY_COW_BESIDE] = "cow_beside",
		[WAY_P4] = "p4",
		[WAY_SPOT] = "spot",
		[WAY_BARE] = "bare",
	};

	return names[way];
}

/* The words of libaquifer, cut to what a side can tell. */
static int fail(struct side *s, int rc, const char *what)
{
	if (s->why[0] == '\0')
		snprintf(s->why, sizeof(s->why), "%s: %.80s", what,
			 aq_last_error()[0] ? aq_last_error() : strerror(-rc));
	return rc;
}

static int open_rack(struct side *s, struct offload_far *far,
		     const char *region, uint64_t size_bytes)
{
	int rc = place_rack(&far->rack);

	if (rc < 0)
		return fail(s, rc, "rack");
	snprintf(far->region_name, sizeof(far->region_name), "%s", region);
	rc = aq_region_open(far->rack, region, 0, &far->region);
	if (rc == -ENOENT)
		rc = aq_region_create(far->rack, region, size_bytes, NULL,
				      &far->region);
	return rc < 0 ? fail(s, rc, "region") : 0;
}

static int link_open(void *ctx, const struct client_link_options *opt,
		     struct client_link **out)
{
	struct offload_far *far = ctx;

	return client_link_open(far->rack, far->region_name, opt, out);
}

static void link_close(void *ctx, struct client_link *link)
{
	client_link_close(link);
}

static int open_verbs(struct side *s, struct offload_far *far,
		      enum offload_way way, uint64_t size_bytes)
{
	struct hlog_verbs_options opt = {
		.links = {.open = link_open, .close = link_close, .ctx = far},
		.size_bytes = size_bytes,
		.batch = OFFLOAD_BATCH,
		.is_sync = way == WAY_SYNC,
		.is_quiet = way == WAY_QUIET,
		/* Not all rights, not mapped: the bytes must take the cable. */
		.rights = way == WAY_ASYNC_DIRECT ? CLIENT_LINK_ALL
						  : CLIENT_LINK_WRITE,
	};
	int rc = hlog_device_verbs_create(&opt, &far->device);

	return rc < 0 ? fail(s, rc, "device") : 0;
}

struct aq_async_options offload_async_options(enum offload_way way)
{
	/* As offload_rack.c names them: e1 gathers nothing. */
	return (struct aq_async_options){
		.batch = way == WAY_COW_ALONE ? 1 : 0,
		.flags = way == WAY_COW_BESIDE ? AQ_ASYNC_DIRECT : 0,
		.engine =
			way == WAY_SPOT || way == WAY_COW_READS ? "e1" : "e0"};
}

static int open_cow(struct side *s, struct offload_far *far,
		    enum offload_way way)
{
	struct aq_async_options opt = offload_async_options(way);
	int rc = hlog_device_cow_create(far->rack, far->region, &opt,
					&far->device);

	return rc < 0 ? fail(s, rc, "device") : 0;
}

static int open_messages(struct side *s, struct offload_far *far,
			 enum offload_way way, uint64_t size_bytes,
			 uint32_t read_max)
{
	struct hlog_redy_options opt = {.size_bytes = size_bytes,
					.read_max = read_max,
					.batch = OFFLOAD_REDY_BATCH,
					.io_cpu = SHIELD_CPU_SERVER};
	int rc = conn_open(s, NULL, 0, &far->link);

	if (rc < 0)
		return rc;
	opt.link = far->link;
	rc = way == WAY_REDY ? hlog_device_redy_create(&opt, &far->device)
			     : two_sided_create(far->link, size_bytes, read_max,
						&far->device);
	return rc < 0 ? fail(s, rc, "device") : side_meet(s);
}

static int open_file(struct side *s, struct offload_far *far, const char *name,
		     uint64_t size_bytes)
{
	const struct offload_param *p = s->param;
	int rc;

	snprintf(far->path, sizeof(far->path), "%s/%s.log", p->cfg->dir, name);
	rc = hlog_device_file_create(far->path, size_bytes, &far->device);
	return rc < 0 ? fail(s, rc, "file") : 0;
}

int offload_far_open(struct side *s, struct offload_far *far,
		     const char *region, uint64_t size_bytes, uint32_t read_max)
{
	const struct offload_param *p = s->param;
	int rc;

	switch (p->way) {
	case WAY_LOCAL:
		rc = hlog_device_mem_create(size_bytes, &far->device);
		return rc < 0 ? fail(s, rc, "memory") : 0;
	case WAY_FILE:
		return open_file(s, far, region, size_bytes);
	case WAY_TWO_SIDED:
	case WAY_REDY:
		return open_messages(s, far, p->way, size_bytes, read_max);
	case WAY_SYNC:
	case WAY_ASYNC:
	case WAY_QUIET:
	case WAY_ASYNC_DIRECT:
		rc = open_rack(s, far, region, size_bytes);
		return rc < 0 ? rc : open_verbs(s, far, p->way, size_bytes);
	case WAY_COW:
	case WAY_COW_ALONE:
	case WAY_COW_READS:
	case WAY_COW_BESIDE:
	case WAY_P4:
	case WAY_SPOT:
		rc = open_rack(s, far, region, size_bytes);
		return rc < 0 ? rc : open_cow(s, far, p->way);
	case WAY_NONE:
	case WAY_BARE:
	case WAY_COUNT:
		break;
	}
	return side_fail(s, -EINVAL, "way");
}

int offload_far_open_server(struct side *s, struct offload_far *far,
			    uint64_t size_bytes, uint32_t read_max)
{
	const struct offload_param *p = s->param;
	uint32_t batch = p->way == WAY_REDY ? OFFLOAD_REDY_BATCH : 1;
	int rc;

	/* Its contents are the caller's business: conn_open only registers. */
	far->memory_bytes = size_bytes;
	far->memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (far->memory == MAP_FAILED) {
		far->memory = NULL;
		return side_fail(s, -ENOMEM, "memory");
	}
	rc = conn_open(s, far->memory, size_bytes, &far->link);
	if (rc < 0)
		return rc;
	far->port = calloc(1, sizeof(*far->port));
	rc = far->port ? redy_port_init(far->port, far->link,
					redy_message_bytes(batch, read_max))
		       : -ENOMEM;
	return rc < 0 ? fail(s, rc, "messages") : side_meet(s);
}

static bool is_stopped(void *ctx)
{
	return side_stopped(ctx);
}

int offload_far_serve(struct side *s, struct offload_far *far)
{
	int rc = redy_serve(far->port, far->memory, far->memory_bytes,
			    is_stopped, s);

	return rc < 0 ? side_fail(s, rc, "server") : 0;
}

void offload_far_close(struct offload_far *far)
{
	hlog_device_destroy(far->device);
	if (far->port)
		redy_port_release(far->port);
	free(far->port);
	conn_close(far->link);
	aq_region_close(far->region);
	aq_rack_close(far->rack);
	if (far->memory)
		munmap(far->memory, far->memory_bytes);
	if (far->path[0])
		unlink(far->path);
}
