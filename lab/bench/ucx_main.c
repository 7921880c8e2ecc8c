/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer: gets by UCX. A program of its own, so that aquifer does not depend on
 * UCX, and a client of our own, because the passive side of ucx_perftest sleeps
 * between operations; here it spins in ucp_worker_progress.
 *
 * Arguments: client|server MODE ctl_fd peer_fd page_fd. Modes: mapped64, lat64,
 * get64, get4k. The transports come from UCX_TLS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "side.h"
#include "ticks.h"

enum {
	UCX_DEPTH_MAX = 64,
	UCX_ADDRESS_MAX = 4096,
	UCX_ALIGN = 4096,
	UCX_SAMPLE_EVERY = 16, /* at depth, so that the clock costs little */
	UCX_PROGRESS_BURST = 64,
};

struct ucx_param {
	const char *mode;
	uint32_t block;
	uint32_t depth;
	bool ucx_memory; /* allocated by UCX, so that the client can map it */
};

static const struct ucx_param ucx_params[] = {
	{"mapped64", 64, 1, true},
	{"lat64", 64, 1, false},
	{"get64", 64, 64, false},
	{"get4k", 4096, 32, false},
};

struct ucx_state;

/* One get in flight. */
struct ucx_slot {
	struct ucx_state *st;
	uint8_t *to;
	uint64_t offset;
	uint64_t t0; /* 0: not sampled */
};

struct ucx_state {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_mem_h mem;
	ucp_rkey_h rkey;
	uint8_t *buf; /* the server's blocks, or where the client's gets go */
	uint64_t remote;
	struct side *side;
	struct ucx_slot slots[UCX_DEPTH_MAX];
	struct ucx_slot *free_slots[UCX_DEPTH_MAX];
	unsigned free_count;
	uint64_t done;
	int error;
};

/* What each side tells the other before anything else. */
struct ucx_hello {
	uint64_t address_len;
	uint64_t rkey_len;
	uint64_t remote;
};

static int ucx_fail(struct side *s, ucs_status_t status, const char *what)
{
	char text[80];

	snprintf(text, sizeof(text), "%s (%s)", what,
		 ucs_status_string(status));
	return side_fail(s, -EIO, text);
}

static int ucx_open(struct side *s, struct ucx_state *st)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
			       .features = UCP_FEATURE_RMA};
	ucp_worker_params_t worker = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_config_t *config;
	ucs_status_t status;

	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_config_read");
	status = ucp_init(&params, config, &st->context);
	ucp_config_release(config);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_init");
	status = ucp_worker_create(st->context, &worker, &st->worker);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_worker_create");
	return 0;
}

/* The memory that the client reads. */
static int ucx_offer(struct side *s, struct ucx_state *st)
{
	const struct ucx_param *p = s->param;
	ucp_mem_map_params_t map = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = side_buffer_bytes(p->block),
		.flags = p->ucx_memory ? UCP_MEM_MAP_ALLOCATE : 0};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucs_status_t status;

	if (!p->ucx_memory) {
		map.address = aligned_alloc(UCX_ALIGN, map.length);
		if (!map.address)
			return side_fail(s, -ENOMEM, "buffer");
	}
	status = ucp_mem_map(st->context, &map, &st->mem);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_mem_map");
	status = ucp_mem_query(st->mem, &attr);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_mem_query");
	st->buf = attr.address;
	side_buffer_fill(st->buf, p->block);
	return 0;
}

static int ucx_say_hello(struct side *s, struct ucx_state *st)
{
	struct ucx_hello hello = {0};
	ucp_address_t *address;
	void *rkey = NULL;
	ucs_status_t status;
	size_t len;
	int rc;

	status = ucp_worker_get_address(st->worker, &address, &len);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_worker_get_address");
	hello.address_len = len;
	if (s->role == SIDE_SERVER) {
		status = ucp_rkey_pack(st->context, st->mem, &rkey, &len);
		if (status != UCS_OK)
			return ucx_fail(s, status, "ucp_rkey_pack");
		hello.rkey_len = len;
		hello.remote = (uintptr_t)st->buf;
	}
	rc = side_send(s->peer_fd, &hello, sizeof(hello));
	if (rc == 0)
		rc = side_send(s->peer_fd, address, hello.address_len);
	if (rc == 0 && rkey)
		rc = side_send(s->peer_fd, rkey, hello.rkey_len);
	ucp_worker_release_address(st->worker, address);
	if (rkey)
		ucp_rkey_buffer_release(rkey);
	return rc < 0 ? side_fail(s, rc, "hello") : 0;
}

static int ucx_hear_hello(struct side *s, struct ucx_state *st)
{
	uint8_t address[UCX_ADDRESS_MAX], rkey[UCX_ADDRESS_MAX];
	ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
			      .address = (ucp_address_t *)address};
	struct ucx_hello hello;
	ucs_status_t status;
	int rc;

	rc = side_recv(s->peer_fd, &hello, sizeof(hello));
	if (rc < 0)
		return side_fail(s, rc, "hello");
	if (hello.address_len > sizeof(address) ||
	    hello.rkey_len > sizeof(rkey))
		return side_fail(s, -EBADMSG, "hello");
	rc = side_recv(s->peer_fd, address, hello.address_len);
	if (rc == 0)
		rc = side_recv(s->peer_fd, rkey, hello.rkey_len);
	if (rc < 0)
		return side_fail(s, rc, "hello");
	status = ucp_ep_create(st->worker, &ep, &st->ep);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_ep_create");
	st->remote = hello.remote;
	if (hello.rkey_len == 0)
		return 0;
	status = ucp_ep_rkey_unpack(st->ep, rkey, &st->rkey);
	if (status != UCS_OK)
		return ucx_fail(s, status, "ucp_ep_rkey_unpack");
	return 0;
}

static int ucx_setup(struct side *s)
{
	const struct ucx_param *p = s->param;
	struct ucx_state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	st->side = s;
	rc = ucx_open(s, st);
	if (rc == 0 && s->role == SIDE_SERVER)
		rc = ucx_offer(s, st);
	if (rc == 0 && s->role == SIDE_CLIENT) {
		st->buf = aligned_alloc(UCX_ALIGN,
					UCX_DEPTH_MAX * (size_t)UCX_ALIGN);
		if (!st->buf)
			return side_fail(s, -ENOMEM, "buffer");
		memset(st->buf, 0, UCX_DEPTH_MAX * (size_t)UCX_ALIGN);
		for (unsigned i = 0; i < p->depth; i++) {
			st->slots[i].st = st;
			st->slots[i].to = st->buf + (size_t)i * p->block;
			st->free_slots[i] = &st->slots[i];
		}
		st->free_count = p->depth;
	}
	if (rc == 0)
		rc = ucx_say_hello(s, st);
	if (rc == 0)
		rc = ucx_hear_hello(s, st);
	return rc;
}

static int ucx_serve(struct side *s)
{
	struct ucx_state *st = s->state;

	while (!side_stopped(s))
		for (int i = 0; i < UCX_PROGRESS_BURST; i++)
			ucp_worker_progress(st->worker);
	return 0;
}

static void slot_done(struct ucx_slot *slot, ucs_status_t status)
{
	struct ucx_state *st = slot->st;

	if (slot->t0)
		side_sample(st->side, 0, bench_ticks() - slot->t0);
	if (status != UCS_OK)
		st->error = -EIO;
	else if (!side_block_ok(slot->to, slot->offset))
		st->error = -EBADMSG;
	st->done++;
	st->free_slots[st->free_count++] = slot;
}

static void on_get(void *request, ucs_status_t status, void *slot)
{
	slot_done(slot, status);
	ucp_request_free(request);
}

static void post_get(struct ucx_state *st, uint64_t i, uint32_t block,
		     uint32_t len)
{
	struct ucx_slot *slot = st->free_slots[--st->free_count];
	ucp_request_param_t param = {.op_attr_mask =
					     UCP_OP_ATTR_FIELD_CALLBACK |
					     UCP_OP_ATTR_FIELD_USER_DATA,
				     .cb.send = on_get,
				     .user_data = slot};
	ucs_status_ptr_t req;

	slot->offset = side_offset(i, block, len);
	slot->t0 = i % UCX_SAMPLE_EVERY == 0 ? bench_ticks() : 0;
	req = ucp_get_nbx(st->ep, slot->to, block, st->remote + slot->offset,
			  st->rkey, &param);
	if (req == NULL || UCS_PTR_IS_ERR(req))
		slot_done(slot, req ? UCS_PTR_STATUS(req) : UCS_OK);
}

static int measure_depth(struct side *s, uint64_t window_ns,
			 struct side_result *out)
{
	const struct ucx_param *p = s->param;
	struct ucx_state *st = s->state;
	uint32_t len = side_buffer_bytes(p->block);
	uint64_t end = side_end_ticks(s, window_ns);
	uint64_t posted = 0;

	st->done = 0;
	while (bench_ticks() < end && st->error == 0) {
		while (st->free_count > 0)
			post_get(st, posted++, p->block, len);
		ucp_worker_progress(st->worker);
	}
	out->ops = st->done;
	while (st->free_count < p->depth)
		ucp_worker_progress(st->worker);
	return st->error < 0 ? side_fail(s, st->error, "get") : 0;
}

/* One get at a time; the time from the call to the data. */
static int measure_single(struct side *s, uint64_t window_ns,
			  struct side_result *out)
{
	const struct ucx_param *p = s->param;
	struct ucx_state *st = s->state;
	uint32_t len = side_buffer_bytes(p->block);
	ucp_request_param_t param = {0};
	uint64_t end = side_end_ticks(s, window_ns);
	uint64_t t0, t1;

	out->ops = 0;
	do {
		uint64_t off = side_offset(out->ops, p->block, len);
		ucs_status_ptr_t req;
		ucs_status_t status = UCS_OK;

		t0 = bench_ticks();
		req = ucp_get_nbx(st->ep, st->buf, p->block, st->remote + off,
				  st->rkey, &param);
		if (UCS_PTR_IS_ERR(req))
			return ucx_fail(s, UCS_PTR_STATUS(req), "ucp_get_nbx");
		if (req) {
			do {
				ucp_worker_progress(st->worker);
				status = ucp_request_check_status(req);
			} while (status == UCS_INPROGRESS);
			ucp_request_free(req);
		}
		t1 = bench_ticks();
		side_sample(s, 0, t1 - t0);
		if (status != UCS_OK)
			return ucx_fail(s, status, "get");
		if (!side_block_ok(st->buf, off))
			return side_fail(s, -EBADMSG, "get");
		out->ops++;
	} while (t1 < end);
	return 0;
}

static int ucx_measure(struct side *s, uint64_t window_ns,
		       struct side_result *out)
{
	const struct ucx_param *p = s->param;

	return p->depth == 1 ? measure_single(s, window_ns, out)
			     : measure_depth(s, window_ns, out);
}

static void ucx_teardown(struct side *s)
{
	struct ucx_state *st = s->state;

	if (st->rkey)
		ucp_rkey_destroy(st->rkey);
	/* The process ends now; a polite close would need the other side,
	 * which may be gone, to make progress. */
}

static const struct side_ops ucx_ops = {
	.setup = ucx_setup,
	.serve = ucx_serve,
	.measure = ucx_measure,
	.teardown = ucx_teardown,
};

int main(int argc, char **argv)
{
	enum side_role role;

	if (argc != 6)
		return 2;
	role = strcmp(argv[1], "client") == 0 ? SIDE_CLIENT : SIDE_SERVER;
	for (size_t i = 0; i < sizeof(ucx_params) / sizeof(ucx_params[0]); i++)
		if (strcmp(argv[2], ucx_params[i].mode) == 0)
			return side_main(&ucx_ops, &ucx_params[i], role,
					 atoi(argv[3]), atoi(argv[4]),
					 atoi(argv[5]), false);
	return 2;
}
