/* SPDX-License-Identifier: Apache-2.0 */
/* The devices over verbs, on the looped NIC: one-sided in three ways, and
 * batches of messages with a server in another thread. */
#include <pthread.h>

#include "verbs_pair.h"

#include "client/verbs_api.h"
#include "hlog/redy.h"
#include "hlog_fixture.h"

enum {
	DEVICE_BYTES = 2 << 20,
	PAGE = 4096,
	SHARDS = 2,
	KEYS = 1500,
	DEPTH = 400,
};

struct rig {
	struct pair pair; /* its device and domain; not its queue pairs */
	uint8_t *far;	  /* the far memory */
	struct ibv_mr *mr;
	struct hlog_device *device;
	struct client_link *redy[2];
	struct redy_port port; /* the server's */
	pthread_t server;
	atomic_bool stop; /* relaxed: nothing else goes with it */
	unsigned links;
	unsigned break_after; /* links that work */
};

/* ---- links on the looped NIC -------------------------------------------- */

struct test_link {
	struct client_link base;
	struct ibv_qp *peer; /* passive end, or NULL */
};

static void make_end(struct rig *rig, struct side *s, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = REDY_MESSAGES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	s->qp = ibv_create_qp(rig->pair.pd, &attr);
	assert_non_null(s->qp);
	side_init(s);
}

static struct test_link *make_link(struct rig *rig)
{
	struct test_link *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->base = (struct client_link){
		.verbs = client_verbs_choose(),
		.context = rig->pair.ctx,
		.pd = rig->pair.pd,
		.addr = (uintptr_t)rig->far,
		.size_bytes = DEVICE_BYTES,
		.rkey = rig->mr->rkey,
		.clock = client_clock_real(),
	};
	l->base.cq = ibv_create_cq(rig->pair.ctx, 2 * DEPTH, NULL, NULL, 0);
	assert_non_null(l->base.cq);
	return l;
}

static int link_open(void *ctx, const struct client_link_options *opt,
		     struct client_link **out)
{
	struct rig *rig = ctx;
	struct test_link *l = make_link(rig);
	struct side near = {0}, far = {0};

	assert_true(opt->send_depth <= DEPTH);
	make_end(rig, &near, l->base.cq);
	make_end(rig, &far, l->base.cq);
	side_connect(&rig->pair, &near, far.qp->qp_num);
	side_connect(&rig->pair, &far, near.qp->qp_num);
	l->base.qp = near.qp;
	l->peer = far.qp;
	if (rig->links++ >= rig->break_after)
		l->base.rkey ^= 0x55;
	*out = &l->base;
	return 0;
}

static void link_close(void *ctx, struct client_link *link)
{
	struct test_link *l = container_of(link, struct test_link, base);

	assert_int_equal(ibv_destroy_qp(link->qp), 0);
	if (l->peer)
		assert_int_equal(ibv_destroy_qp(l->peer), 0);
	assert_int_equal(ibv_destroy_cq(link->cq), 0);
	free(l);
}

/* ---- the server of the batches ------------------------------------------ */

static bool is_stopped(void *ctx)
{
	struct rig *rig = ctx;

	return atomic_load_explicit(&rig->stop, memory_order_relaxed);
}

static void *serve(void *arg)
{
	struct rig *rig = arg;

	if (redy_serve(&rig->port, rig->far, DEVICE_BYTES, is_stopped, rig) < 0)
		abort();
	return NULL;
}

static void make_redy(struct rig *rig)
{
	struct hlog_redy_options opt = {.size_bytes = DEVICE_BYTES,
					.read_max = HLOG_READ_CHUNK,
					.batch = 20,
					.io_cpu = -1};
	struct side s[2] = {0};

	for (int i = 0; i < 2; i++) {
		rig->redy[i] = &make_link(rig)->base;
		make_end(rig, &s[i], rig->redy[i]->cq);
		rig->redy[i]->qp = s[i].qp;
	}
	for (int i = 0; i < 2; i++)
		side_connect(&rig->pair, &s[i], s[1 - i].qp->qp_num);
	assert_int_equal(
		redy_port_init(&rig->port, rig->redy[1],
			       redy_message_bytes(opt.batch, opt.read_max)),
		0);
	assert_int_equal(pthread_create(&rig->server, NULL, serve, rig), 0);
	opt.link = rig->redy[0];
	assert_int_equal(hlog_device_redy_create(&opt, &rig->device), 0);
}

static void make_verbs(struct rig *rig, const char *kind)
{
	struct hlog_verbs_options opt = {
		.links = {.open = link_open, .close = link_close, .ctx = rig},
		.size_bytes = DEVICE_BYTES,
		.batch = 7,
		.is_sync = strcmp(kind, "sync") == 0,
		.is_quiet = strcmp(kind, "quiet") == 0,
		.rights = CLIENT_LINK_WRITE,
	};

	assert_int_equal(hlog_device_verbs_create(&opt, &rig->device), 0);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	const char *kind = *state;

	assert_non_null(rig);
	pair_open(&rig->pair);
	rig->pair.pd = ibv_alloc_pd(rig->pair.ctx);
	assert_non_null(rig->pair.pd);
	rig->far = calloc(1, DEVICE_BYTES);
	assert_non_null(rig->far);
	rig->mr = ibv_reg_mr(rig->pair.pd, rig->far, DEVICE_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(rig->mr);
	rig->break_after = UINT32_MAX;
	if (strcmp(kind, "redy") == 0)
		make_redy(rig);
	else
		make_verbs(rig, kind);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	hlog_device_destroy(rig->device);
	if (rig->redy[0]) {
		atomic_store_explicit(&rig->stop, true, memory_order_relaxed);
		pthread_join(rig->server, NULL);
		redy_port_release(&rig->port);
		link_close(rig, rig->redy[0]);
		link_close(rig, rig->redy[1]);
	}
	assert_int_equal(ibv_dereg_mr(rig->mr), 0);
	free(rig->far);
	assert_int_equal(ibv_dealloc_pd(rig->pair.pd), 0);
	pair_close(&rig->pair);
	free(rig);
	return 0;
}

/* ---- the tests ---------------------------------------------------------- */

static struct hlog_options options(struct rig *rig)
{
	return (struct hlog_options){.device = rig->device,
				     .local_bytes = 8 * PAGE * SHARDS,
				     .record_count = KEYS,
				     .value_max = FX_VALUE_MAX,
				     .page_bytes = PAGE,
				     .shard_count = SHARDS};
}

static void bump(void *arg, void *value, uint32_t value_bytes)
{
	((uint8_t *)value)[value_bytes - 1]++;
}

/* All operations, most of them far, many at a time; then recovery. */
static void test_operations(void **state)
{
	struct rig *rig = *state;
	struct hlog_options opt = options(rig);
	struct hlog_session *s;
	struct hlog_recovery found;
	struct hlog_done d[16];
	uint8_t value[FX_VALUE_MAX];
	uint32_t len;
	struct hlog *h;

	assert_int_equal(hlog_create(&opt, &h), 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t k = 0; k < KEYS; k++) {
		len = fx_value(value, k, 1, 50 + (uint32_t)k % 100);
		assert_int_equal(FX_INSIST(s, hlog_upsert(s, k, value, len)),
				 0);
	}
	for (uint64_t k = 0; k < KEYS; k += 3) {
		int rc = FX_INSIST(s, hlog_rmw(s, k, 8, bump, NULL, k));

		assert_true(rc == 0 || rc == -EINPROGRESS);
	}
	while (hlog_pending(s)) {
		int n = hlog_poll(s, d, 16);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(d[i].err, 0);
	}
	for (uint64_t k = 1; k < KEYS; k += 3)
		assert_int_equal(FX_INSIST(s, hlog_delete(s, k)), 0);
	assert_int_equal(hlog_sync(s), 0);
	hlog_session_close(s);
	hlog_destroy(h);

	assert_int_equal(hlog_recover(&opt, &found, &h), 0);
	assert_int_equal(found.damaged_shards, 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t k = 0; k < KEYS; k++) {
		int rc = fx_get(s, k, value, &len);

		assert_int_equal(rc, k % 3 == 1 ? -ENOENT : 0);
		if (rc == 0 && k % 3 == 0)
			value[len - 1]--;
		if (rc == 0)
			fx_check(value, len, k, 1, 50 + (uint32_t)k % 100);
	}
	assert_true(hlog_session_stats(s)->far_reads >= KEYS);
	hlog_session_close(s);
	hlog_destroy(h);
}

/* A key that opens nothing: an error for each request, and no hang. */
static void test_refused(void **state)
{
	struct rig *rig = *state;
	struct hlog_options opt = options(rig);
	uint8_t value[FX_VALUE_MAX] = {0};
	struct hlog_session *s;
	struct hlog_done d[16];
	unsigned failed = 0;
	struct hlog *h;

	assert_int_equal(hlog_create(&opt, &h), 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t k = 0; k < KEYS; k++)
		assert_int_equal(FX_INSIST(s, hlog_upsert(s, k, value, 100)),
				 0);
	assert_int_equal(hlog_sync(s), 0);
	hlog_session_close(s);
	rig->break_after = rig->links;
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t k = 0; k < 10; k++) {
		uint32_t len = sizeof(value);
		int rc = hlog_read(s, k, value, &len, k);

		assert_true(rc == -EINPROGRESS || rc == -ESTALE);
	}
	while (hlog_pending(s)) {
		int n = hlog_poll(s, d, 16);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_true(d[i].err == -ESTALE ||
				    d[i].err == -ECANCELED);
			failed++;
		}
	}
	assert_true(failed > 0);
	hlog_session_close(s);
	hlog_destroy(h);
}

/* Requests that a stranger might send to the server. */
static void test_execute(void **state)
{
	struct redy_head head = {.magic = le32_put(REDY_MAGIC),
				 .count = le32_put(2)};
	struct redy_request r[2] = {
		{.offset = le64_put(8), .len_bytes = le32_put(5)},
		{.offset = le64_put(60), .len_bytes = le32_put(5)}};
	uint8_t memory[64], request[48], answer[256];
	uint32_t len = sizeof(answer);
	struct redy_answer a;

	for (unsigned i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)i;
	memcpy(request, &head, 16);
	memcpy(request + 16, r, 32);
	assert_int_equal(redy_execute(memory, 64, request, 48, answer, &len),
			 0);
	assert_int_equal(len, 16 + 8 + 8 + 8);
	assert_memory_equal(answer + 24, memory + 8, 5);
	memcpy(&a, answer + 32, sizeof(a));
	assert_int_equal(le32_get(a.len_bytes), REDY_REFUSED);
	for (uint32_t bytes = 0; bytes < 48; bytes++) {
		len = sizeof(answer);
		assert_int_equal(
			redy_execute(memory, 64, request, bytes, answer, &len),
			-EBADMSG);
	}
	r[1].offset = le64_put(UINT64_MAX - 2);
	r[0].len_bytes = le32_put(UINT32_MAX);
	memcpy(request + 16, r, 32);
	for (uint32_t room = 0; room < 40; room++) {
		len = room;
		(void)!redy_execute(memory, 64, request, 48, answer, &len);
		assert_true(len <= room || room < 16);
	}
}

#define ON(test, kind)                                          \
	{                                                       \
		.name = #test " by " kind, .test_func = test,   \
		.setup_func = setup, .teardown_func = teardown, \
		.initial_state = (void *)(uintptr_t)kind        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(test_operations, "sync"),  ON(test_operations, "async"),
		ON(test_operations, "quiet"), ON(test_operations, "redy"),
		ON(test_refused, "sync"),     ON(test_refused, "async"),
		ON(test_refused, "quiet"),    cmocka_unit_test(test_execute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
