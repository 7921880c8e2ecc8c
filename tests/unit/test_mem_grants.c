/* SPDX-License-Identifier: Apache-2.0 */
/* Connections and keys: what a grant opens, what it does not, and when it
 * ends. The client's queue pair is on the same looped NIC. */
#include "mem_fixture.h"

struct client {
	struct mem_fixture f;
	struct pair pair; /* only a of it */
	char id[32], before[32];
	const char *session; /* what connections continue, or NULL */
	int64_t final_psn;   /* of the predecessor; -1: none was told */
	unsigned patience_ms;
};

struct key {
	char grant[32];
	uint64_t addr;
	uint32_t rkey;
	uint64_t length;
};

/* How far that connection came, as the last answer tells; -1: it does not. */
static int64_t final_of(const struct client *c, const char *id)
{
	const json_t *rows = json_object_get(c->f.answer, "finals");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (strcmp(id, json_string_value(json_object_get(
				       row, "connection"))) == 0)
			return json_integer_value(json_object_get(row, "psn"));
	}
	return -1;
}

static void client_connect(struct client *c, const char *access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = 1, .hop_limit = 64}},
	};
	char body[512], hex[33];
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(c->pair.ctx, 1, 1, &gid), 0);
	for (unsigned i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", gid.raw[i]);
	snprintf(body, sizeof(body),
		 "{\"proto\":\"1.0\",\"gid\":\"%s\",\"qpn\":%u,\"psn\":7,"
		 "\"mtu\":1024,\"rd_atomic\":4,\"access\":\"%s\","
		 "\"client\":\"unit\",\"caps\":[],\"patience_ms\":%u%s%s%s}",
		 hex, c->pair.a.qp->qp_num, access, c->patience_ms,
		 c->session ? ",\"session\":\"" : "",
		 c->session ? c->session : "", c->session ? "\"" : "");
	assert_int_equal(ask(&c->f, "POST /v1/connect", body), 200);
	memcpy(c->before, c->id, sizeof(c->id));
	snprintf(c->id, sizeof(c->id), "%s", answer_text(&c->f, "connection"));
	c->final_psn = final_of(c, c->before);
	assert_int_equal(answer_u64(&c->f, "mtu"), 1024);
	assert_int_equal(answer_u64(&c->f, "rd_atomic"), 4);
	assert_string_equal(answer_text(&c->f, "gid"), hex);
	attr.dest_qp_num = (uint32_t)answer_u64(&c->f, "qpn");
	attr.rq_psn = (uint32_t)answer_u64(&c->f, "psn");
	attr.ah_attr.grh.dgid = gid;
	side_init(&c->pair.a);
	assert_int_equal(ibv_modify_qp(c->pair.a.qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = 7,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4};
	assert_int_equal(
		ibv_modify_qp(c->pair.a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static void client_qp(struct client *c)
{
	side_make(&c->pair, &c->pair.a, IBV_QPT_RC, 0);
}

static void client_start(struct client *c)
{
	fixture_start(&c->f);
	pair_open(&c->pair);
	c->pair.pd = ibv_alloc_pd(c->pair.ctx);
	client_qp(c);
	assert_int_equal(ask(&c->f, "POST /v1/regions",
			     "{\"name\":\"r\",\"size\":16384}"),
			 201);
}

static void client_stop(struct client *c)
{
	side_break(&c->pair.a);
	assert_int_equal(ibv_dealloc_pd(c->pair.pd), 0);
	pair_close(&c->pair);
	fixture_stop(&c->f);
}

/* After an error: a new queue pair and a new connection. */
static void client_again(struct client *c, const char *access)
{
	side_break(&c->pair.a);
	client_qp(c);
	client_connect(c, access);
}

static unsigned grant(struct client *c, const char *rights, uint64_t offset,
		      uint64_t length, struct key *key)
{
	char line[128], body[256];
	unsigned status;

	snprintf(line, sizeof(line), "POST /v1/connections/%s/grants", c->id);
	snprintf(body, sizeof(body),
		 "{\"region\":\"r\",\"rights\":\"%s\",\"offset\":%llu,"
		 "\"length\":%llu}",
		 rights, (unsigned long long)offset,
		 (unsigned long long)length);
	status = ask(&c->f, line, body);
	if (status == 200 && key) {
		snprintf(key->grant, sizeof(key->grant), "%s",
			 answer_text(&c->f, "grant"));
		key->addr = answer_u64(&c->f, "addr");
		key->rkey = (uint32_t)answer_u64(&c->f, "rkey");
		key->length = answer_u64(&c->f, "length");
	}
	return status;
}

static enum ibv_wc_status transfer(struct client *c, enum ibv_wr_opcode op,
				   const struct key *key, uint64_t at,
				   uint32_t len_bytes)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = op};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = key->addr + at;
		wr.wr.atomic.rkey = key->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = key->addr + at;
		wr.wr.rdma.rkey = key->rkey;
	}
	assert_int_equal(side_post(&c->pair.a, &wr, 0, len_bytes), 0);
	return pair_wait(c->pair.a.cq).status;
}

static void test_whole(void **state)
{
	struct client c = {0};
	struct key key;

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rwa", 0, 0, &key), 200);
	assert_int_equal(key.length, 16384);
	memcpy(c.pair.a.buf, "far away", 8);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 16376, 8),
			 IBV_WC_SUCCESS);
	memset(c.pair.a.buf, 0, 8);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 16376, 8),
			 IBV_WC_SUCCESS);
	assert_memory_equal(c.pair.a.buf, "far away", 8);
	assert_int_equal(transfer(&c, IBV_WR_ATOMIC_FETCH_AND_ADD, &key, 8, 8),
			 IBV_WC_SUCCESS);
	/* What fits is kept when it grows, and the old key is dead. */
	assert_int_equal(ask(&c.f, "PATCH /v1/regions/r", "{\"size\":32768}"),
			 200);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	client_again(&c, "r");
	assert_int_equal(grant(&c, "r", 0, 0, &key), 200);
	assert_int_equal(key.length, 32768);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 16376, 8),
			 IBV_WC_SUCCESS);
	assert_memory_equal(c.pair.a.buf, "far away", 8);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 8, 8),
			 IBV_WC_SUCCESS);
	assert_int_equal(c.pair.a.buf[0], 1);
	client_stop(&c);
}

/* All of a region with all rights, and yet a key that ends with its grant. */
static void a_revocable_grant_ends_at_once(void **state)
{
	struct client c = {0};
	struct key key;
	char line[128];

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rwa", 0, 0, &key), 200);
	assert_true(json_is_false(json_object_get(c.f.answer, "revocable")));
	assert_int_equal(grant(&c, "rw", 0, 0, &key), 200);
	assert_true(json_is_true(json_object_get(c.f.answer, "revocable")));
	snprintf(line, sizeof(line), "POST /v1/connections/%s/grants", c.id);
	assert_int_equal(ask(&c.f, line,
			     "{\"region\":\"r\",\"rights\":\"rwa\","
			     "\"revocable\":1}"),
			 400);
	assert_int_equal(ask(&c.f, line,
			     "{\"region\":\"r\",\"rights\":\"rwa\","
			     "\"revocable\":true}"),
			 200);
	assert_true(json_is_true(json_object_get(c.f.answer, "revocable")));
	key.rkey = (uint32_t)answer_u64(&c.f, "rkey");
	snprintf(line, sizeof(line), "DELETE /v1/connections/%s/grants/%s",
		 c.id, answer_text(&c.f, "grant"));
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_SUCCESS);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	client_stop(&c);
}

/* Whoever looks sees which keys can be taken back, and no other tenant's. */
static void grants_are_listed(void **state)
{
	struct client c = {0};
	const json_t *rows, *row;
	struct key key;
	size_t i;

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rwa", 0, 0, &key), 200);
	assert_int_equal(grant(&c, "r", 0, 0, &key), 200);
	assert_int_equal(ask(&c.f, "GET /v1/grants", NULL), 200);
	rows = json_object_get(c.f.answer, "grants");
	assert_int_equal(json_array_size(rows), 2);
	json_array_foreach(rows, i, row)
	{
		assert_string_equal(
			json_string_value(json_object_get(row, "region")), "r");
		assert_string_equal(
			json_string_value(json_object_get(row, "connection")),
			c.id);
		assert_int_equal(
			json_is_true(json_object_get(row, "revocable")),
			i == 1);
	}
	client_stop(&c);
}

/* Also of the NIC's own memory, and asking for it breaks nothing. */
static void device_memory_has_windows(void **state)
{
	struct client c = {0};
	struct key key;

	client_start(&c);
	assert_int_equal(ask(&c.f, "DELETE /v1/regions/r", NULL), 204);
	assert_int_equal(ask(&c.f, "POST /v1/regions",
			     "{\"name\":\"r\",\"size\":4096,"
			     "\"memory\":\"device\"}"),
			 201);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rw", 64, 64, &key), 200);
	assert_int_equal(key.addr, 64);
	memcpy(c.pair.a.buf, "on board", 8);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_SUCCESS);
	memset(c.pair.a.buf, 0, 8);
	assert_int_equal(grant(&c, "r", 0, 0, &key), 200);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 64, 8),
			 IBV_WC_SUCCESS);
	assert_memory_equal(c.pair.a.buf, "on board", 8);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	client_stop(&c);
}

/* A window opens exactly what was granted. */
static void test_narrow(void **state)
{
	static const struct {
		const char *rights;
		enum ibv_wr_opcode op;
		uint64_t at;
		uint32_t len_bytes;
		bool works;
	} rows[] = {
		{"r", IBV_WR_RDMA_READ, 0, 4096, true},
		{"r", IBV_WR_RDMA_READ, 0, 4097, false},
		{"r", IBV_WR_RDMA_READ, (uint64_t)-1, 1, false},
		{"r", IBV_WR_RDMA_READ, 4096, 1, false},
		{"r", IBV_WR_RDMA_WRITE, 0, 1, false},
		{"r", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, false},
		{"rw", IBV_WR_RDMA_READ, 8, 8, true},
		{"rw", IBV_WR_RDMA_WRITE, 4088, 8, true},
		{"rw", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, false},
		{"rwa", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, true},
		{"rwa", IBV_WR_ATOMIC_FETCH_AND_ADD, 4096, 8, false},
	};
	struct client c = {0};
	struct key key;

	client_start(&c);
	client_connect(&c, "rw");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum ibv_wc_status got;

		assert_int_equal(grant(&c, rows[i].rights, 4096, 4096, &key),
				 200);
		assert_int_equal(key.length, 4096);
		got = transfer(&c, rows[i].op, &key, rows[i].at,
			       rows[i].len_bytes);
		if ((got == IBV_WC_SUCCESS) != rows[i].works)
			fail_msg("row %zu: status %d", i, (int)got);
		if (!rows[i].works)
			client_again(&c, "rw");
	}
	client_stop(&c);
}

/* A key of one connection opens nothing on another one. */
static void test_bound(void **state)
{
	struct client c = {0};
	struct key key;

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rw", 0, 4096, &key), 200);
	client_again(&c, "rw");
	assert_int_not_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 0, 8),
			     IBV_WC_SUCCESS);
	client_stop(&c);
}

static void test_grant_ends(void **state)
{
	struct client c = {0};
	char line[160];
	struct key key;

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rw", 0, 4096, &key), 200);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_SUCCESS);
	snprintf(line, sizeof(line), "DELETE /v1/connections/%s/grants/%s",
		 c.id, key.grant);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	assert_int_equal(ask(&c.f, line, NULL), 404);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	/* The node's side is broken too: the tick clears it away. */
	mem_node_tick(c.f.node);
	snprintf(line, sizeof(line), "POST /v1/connections/%s/heartbeat", c.id);
	assert_int_equal(ask(&c.f, line, NULL), 410);
	/* With the region, its windows end. */
	client_again(&c, "rw");
	assert_int_equal(grant(&c, "rw", 0, 4096, &key), 200);
	assert_int_equal(ask(&c.f, "DELETE /v1/regions/r", NULL), 204);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_READ, &key, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	client_stop(&c);
}

static void test_grant_refusals(void **state)
{
	struct client c = {0};

	client_start(&c);
	client_connect(&c, "r");
	assert_int_equal(grant(&c, "rw", 0, 0, NULL), 403);
	assert_int_equal(grant(&c, "x", 0, 0, NULL), 400);
	assert_int_equal(grant(&c, "r", 16384, 0, NULL), 400);
	assert_int_equal(grant(&c, "r", 1, 16384, NULL), 400);
	assert_int_equal(grant(&c, "r", 0, 16385, NULL), 400);
	assert_int_equal(grant(&c, "r", INT64_MAX, INT64_MAX, NULL), 400);
	assert_int_equal(grant(&c, "r", 16383, 0, NULL), 200);
	assert_int_equal(ask(&c.f, "DELETE /v1/regions/r", NULL), 204);
	assert_int_equal(grant(&c, "r", 0, 0, NULL), 404);
	client_stop(&c);
}

static void let_pass(struct mem_fixture *f, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += MEM_TICK_MS) {
		f->clock_ns += MEM_TICK_MS * 1000000ull;
		mem_node_tick(f->node);
	}
}

/* Silent for five heartbeats, and it is gone; one of them in time, and not. */
static void test_heartbeats(void **state)
{
	struct client c = {0};
	char line[128];

	client_start(&c);
	client_connect(&c, "rw");
	snprintf(line, sizeof(line), "POST /v1/connections/%s/heartbeat", c.id);
	for (unsigned i = 0; i < 10; i++) {
		let_pass(&c.f, 4 * MEM_HEARTBEAT_MS);
		assert_int_equal(ask(&c.f, line, NULL), 204);
	}
	/* Another tenant can neither keep it nor end it. */
	assert_int_equal(ask_as(&c.f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"t\",\"token\":\"" TOKEN_NOBODY
				"\"}"),
			 201);
	assert_int_equal(ask_as(&c.f, TOKEN_NOBODY, line, NULL), 410);
	assert_int_equal(grant(&c, "rw", 0, 8, NULL), 200);
	let_pass(&c.f, 6 * MEM_HEARTBEAT_MS);
	assert_int_equal(ask(&c.f, line, NULL), 410);
	assert_int_equal(ask(&c.f, "GET /v1/status", NULL), 200);
	assert_int_equal(answer_u64(&c.f, "connections"), 0);
	client_stop(&c);
}

/* One request for several; who is not there, or is another's, is named. */
static void test_heartbeat_of_many(void **state)
{
	static const char gone[] = "0000000000000000ffff";
	struct client c = {0};
	const json_t *lost;
	char body[128];

	client_start(&c);
	client_connect(&c, "rw");
	snprintf(body, sizeof(body), "{\"connections\":[\"%s\",\"%s\"]}", gone,
		 c.id);
	for (unsigned i = 0; i < 3; i++) {
		let_pass(&c.f, 4 * MEM_HEARTBEAT_MS);
		assert_int_equal(ask(&c.f, "POST /v1/heartbeat", body), 200);
		lost = json_object_get(c.f.answer, "lost");
		assert_int_equal(json_array_size(lost), 1);
		assert_string_equal(json_string_value(json_array_get(lost, 0)),
				    gone);
	}
	assert_int_equal(ask_as(&c.f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"t\",\"token\":\"" TOKEN_NOBODY
				"\"}"),
			 201);
	let_pass(&c.f, 4 * MEM_HEARTBEAT_MS);
	assert_int_equal(ask_as(&c.f, TOKEN_NOBODY, "POST /v1/heartbeat", body),
			 200);
	assert_int_equal(json_array_size(json_object_get(c.f.answer, "lost")),
			 2);
	let_pass(&c.f, 2 * MEM_HEARTBEAT_MS);
	assert_int_equal(ask(&c.f, "POST /v1/heartbeat", body), 200);
	assert_int_equal(json_array_size(json_object_get(c.f.answer, "lost")),
			 2);
	client_stop(&c);
}

static void test_heartbeat_refusals(void **state)
{
	struct client c = {0};
	json_t *list = json_array(), *body;
	char *text;

	client_start(&c);
	assert_int_equal(ask(&c.f, "POST /v1/heartbeat", NULL), 400);
	assert_int_equal(
		ask(&c.f, "POST /v1/heartbeat", "{\"connections\":\"x\"}"),
		400);
	assert_int_equal(
		ask(&c.f, "POST /v1/heartbeat", "{\"connections\":[7]}"), 400);
	assert_int_equal(
		ask(&c.f, "POST /v1/heartbeat", "{\"connections\":[\"xyz\"]}"),
		400);
	for (unsigned i = 0; i <= MEM_HEARTBEAT_MAX; i++) {
		assert_int_equal(
			json_array_append_new(
				list, json_string("0000000000000000ffff")),
			0);
		if (i < MEM_HEARTBEAT_MAX - 1)
			continue;
		body = json_pack("{s:O}", "connections", list);
		text = json_dumps(body, 0);
		json_decref(body);
		assert_int_equal(ask(&c.f, "POST /v1/heartbeat", text),
				 i < MEM_HEARTBEAT_MAX ? 200 : 400);
		free(text);
	}
	json_decref(list);
	client_stop(&c);
}

/* The node did not run: heartbeats of that time are still to be read. */
static void test_pause(void **state)
{
	struct client c = {0};
	char line[128];

	client_start(&c);
	client_connect(&c, "rw");
	snprintf(line, sizeof(line), "POST /v1/connections/%s/heartbeat", c.id);
	let_pass(&c.f, 4 * MEM_HEARTBEAT_MS);
	c.f.clock_ns += 60 * 1000000000ull;
	mem_node_tick(c.f.node);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	/* But one pause excuses nobody for ever. */
	c.f.clock_ns += 60 * 1000000000ull;
	let_pass(&c.f, 6 * MEM_HEARTBEAT_MS);
	assert_int_equal(ask(&c.f, line, NULL), 410);
	client_stop(&c);
}

/* Who asks for patience is given it, and queue pairs that last as long. */
static void test_patience(void **state)
{
	struct client c = {.patience_ms = 30000};
	char line[128];

	client_start(&c);
	client_connect(&c, "rw");
	/* 8 * 4.096 us * 2^20 = 34 s. */
	assert_int_equal(answer_u64(&c.f, "ack_timeout"), 20);
	snprintf(line, sizeof(line), "POST /v1/connections/%s/heartbeat", c.id);
	let_pass(&c.f, 29000);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	let_pass(&c.f, 31000);
	assert_int_equal(ask(&c.f, line, NULL), 410);
	client_stop(&c);
}

/*
 * The client had no answer to some attempts, and does not know of the
 * connections that they made: it asks about the one before, which has executed
 * something. It once was told the number of an unknown one, and took everything
 * for written.
 */
static void test_session_after_lost_answers(void **state)
{
	struct client c = {.session = "0123456789abcdef0123456789abcdef"};
	char used[32], idle[32];
	struct key key;

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(grant(&c, "rw", 0, 16384, &key), 200);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 64, 4096),
			 IBV_WC_SUCCESS);
	memcpy(used, c.id, sizeof(used));
	for (unsigned i = 0; i < 2; i++)
		client_again(&c, "rw");
	memcpy(idle, c.before, sizeof(idle));
	assert_int_equal(final_of(&c, used), 7 + 4);
	assert_int_equal(final_of(&c, idle), 7);
	/* What was never used is forgotten first. */
	for (unsigned i = 0; i < MEM_FINALS; i++)
		client_again(&c, "rw");
	assert_int_equal(final_of(&c, used), 7 + 4);
	assert_int_equal(final_of(&c, c.before), 7);
	assert_int_equal(final_of(&c, idle), -1);
	/* Nobody remembers everything. */
	for (unsigned i = 0; i < MEM_FINALS; i++) {
		assert_int_equal(grant(&c, "rw", 0, 16384, &key), 200);
		assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
				 IBV_WC_SUCCESS);
		client_again(&c, "rw");
		assert_int_equal(c.final_psn, 7 + 1);
	}
	assert_int_equal(final_of(&c, used), -1);
	client_stop(&c);
}

/* A successor ends its predecessor and learns how far that one came. */
static void test_sessions(void **state)
{
	struct client c = {.session = "0123456789abcdef0123456789abcdef"};
	char old[32], line[160];
	struct key key;

	client_start(&c);
	client_connect(&c, "rw");
	assert_int_equal(c.final_psn, -1);
	assert_int_equal(grant(&c, "rw", 0, 16384, &key), 200);
	/* Packets of 1024 bytes, from 7 on: one, and four. */
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 0, 8),
			 IBV_WC_SUCCESS);
	assert_int_equal(transfer(&c, IBV_WR_RDMA_WRITE, &key, 64, 4096),
			 IBV_WC_SUCCESS);
	snprintf(old, sizeof(old), "%s", c.id);
	client_again(&c, "rw");
	assert_int_equal(c.final_psn, 7 + 1 + 4);
	snprintf(line, sizeof(line), "POST /v1/connections/%s/heartbeat", old);
	assert_int_equal(ask(&c.f, line, NULL), 410);
	/* One that ended by itself is remembered as well. */
	snprintf(line, sizeof(line), "DELETE /v1/connections/%s", c.id);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	client_again(&c, "rw");
	assert_int_equal(c.final_psn, 7);
	/* Another session knows nothing of it. */
	c.session = "ffffffffffffffffffffffffffffffff";
	client_again(&c, "rw");
	assert_int_equal(c.final_psn, -1);
	/* And after a long time nobody does. */
	snprintf(line, sizeof(line), "DELETE /v1/connections/%s", c.id);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	c.f.clock_ns += (MEM_SESSION_KEEP_S + 1) * 1000000000ull;
	mem_node_tick(c.f.node);
	client_again(&c, "rw");
	assert_int_equal(c.final_psn, -1);
	assert_int_equal(ask(&c.f, "POST /v1/connect",
			     "{\"proto\":\"1.0\",\"gid\":"
			     "\"00000000000000000000ffff7f000001\","
			     "\"qpn\":17,\"psn\":1,\"session\":\"short\"}"),
			 400);
	client_stop(&c);
}

static void test_connection_limit(void **state)
{
	struct client c = {0};
	char line[128];

	client_start(&c);
	assert_int_equal(ask_as(&c.f, TOKEN_ADMIN, "PATCH /v1/tenants/default",
				"{\"limits\":{\"connections\":1}}"),
			 200);
	client_connect(&c, "rw");
	assert_int_equal(ask(&c.f, "POST /v1/connect",
			     "{\"proto\":\"1.0\",\"gid\":"
			     "\"00000000000000000000ffff7f000001\",\"qpn\":17,"
			     "\"psn\":1}"),
			 429);
	snprintf(line, sizeof(line), "DELETE /v1/connections/%s", c.id);
	assert_int_equal(ask(&c.f, line, NULL), 204);
	assert_int_equal(ask(&c.f, line, NULL), 410);
	client_again(&c, "rw");
	client_stop(&c);
}

static void test_grant_limit(void **state)
{
	struct client c = {0};

	client_start(&c);
	client_connect(&c, "rw");
	for (unsigned i = 0; i < MEM_GRANT_PER_CONN; i++)
		assert_int_equal(grant(&c, "r", i, 1, NULL), 200);
	assert_int_equal(grant(&c, "r", 0, 1, NULL), 429);
	client_stop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(a_revocable_grant_ends_at_once),
		cmocka_unit_test(grants_are_listed),
		cmocka_unit_test(device_memory_has_windows),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_grant_ends),
		cmocka_unit_test(test_grant_refusals),
		cmocka_unit_test(test_heartbeats),
		cmocka_unit_test(test_heartbeat_of_many),
		cmocka_unit_test(test_heartbeat_refusals),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_session_after_lost_answers),
		cmocka_unit_test(test_connection_limit),
		cmocka_unit_test(test_grant_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
