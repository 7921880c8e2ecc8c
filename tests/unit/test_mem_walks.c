/* SPDX-License-Identifier: Apache-2.0 */
/* Walks on a memory node: programs that it takes and refuses, what they are
 * charged, and their execution for a client on the same looped NIC. */
#include "mem_fixture.h"

#include <aquifer/aqdv.h>

#include "base/hex.h"
#include "walk/build.h"
#include "wire/gather_wire.h"

enum {
	PAD = 24,
	HEX_MAX = 2 * WALK_IMAGE_MAX + 64,
	STRIPE = 4096,
};

/* A list of nodes {key, value, next}; the pad is {key, value, found}. */
struct image {
	char hex[HEX_MAX]; /* as the body of a request */
	char id[17];
	uint64_t hash;
};

/* key_at makes different programs of it; longer than 0: so much more cost. */
static void make_image(struct image *out, int32_t longer, uint16_t flags)
{
	struct walk_build *b = walk_build_create("find", 0, 24, PAD, flags);
	int other = walk_build_label(b);
	struct walk_image image;
	uint8_t bytes[WALK_IMAGE_MAX];
	size_t len;

	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, 0);
	for (int32_t i = 0; i < longer; i++)
		walk_build_op(b, WALK_OP_MOV, 3, 1, 0, 0);
	walk_build_op(b, WALK_OP_LDP8, 2, 0, 0, 0);
	walk_build_jump(b, WALK_OP_JNE, 1, 2, other);
	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, 8);
	walk_build_op(b, WALK_OP_STP8, 0, 1, 0, 8);
	if (flags & WALK_STORES)
		walk_build_op(b, WALK_OP_STN8, 0, 2, 0, 8);
	walk_build_op(b, WALK_OP_LDI, 1, 0, 0, 1);
	walk_build_op(b, WALK_OP_STP8, 0, 1, 0, 16);
	walk_build_op(b, WALK_OP_RET, 0, 0, 0, 0);
	walk_build_place(b, other);
	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, 16);
	walk_build_op(b, WALK_OP_GO, 0, 1, 0, 0);
	assert_int_equal(walk_build_end(b, 1 << 20, &image, NULL), 0);
	len = walk_image_bytes(&image);
	walk_image_write(&image, bytes);
	out->hash = image.hash;
	snprintf(out->id, sizeof(out->id), "%016llx",
		 (unsigned long long)image.hash);
	strcpy(out->hex, "{\"image\":\"");
	hex_write(out->hex + strlen(out->hex), bytes, len);
	strcat(out->hex, "\"}");
	walk_build_destroy(b);
}

static unsigned install(struct mem_fixture *f, const struct image *i)
{
	return ask(f, "POST /v1/walks", i->hex);
}

static unsigned on(struct mem_fixture *f, const char *method, const char *id)
{
	char line[64];

	snprintf(line, sizeof(line), "%s /v1/walks/%s", method, id);
	return ask(f, line, NULL);
}

/* ---- programs ------------------------------------------------------------ */

static void test_programs(void **state)
{
	static struct image a, b;
	struct mem_fixture f = {0};

	make_image(&a, 0, 0);
	make_image(&b, 1, 0);
	fixture_start(&f);
	assert_int_equal(install(&f, &a), 201);
	assert_string_equal(answer_text(&f, "hash"), a.id);
	assert_string_equal(answer_text(&f, "name"), "find");
	assert_int_equal(answer_u64(&f, "pad_bytes"), PAD);
	assert_int_equal(answer_u64(&f, "load_bytes"), 24);
	assert_true(pool_used(&f) > 0);
	/* the same again is there already */
	assert_int_equal(install(&f, &a), 200);
	assert_int_equal(install(&f, &b), 201);
	assert_int_equal(ask(&f, "GET /v1/walks", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "walks")),
			 2);
	assert_int_equal(on(&f, "GET", a.id), 200);
	assert_non_null(strstr(a.hex, answer_text(&f, "image")));
	assert_int_equal(on(&f, "GET", "0000000000000000"), 404);
	assert_int_equal(on(&f, "GET", "find"), 400);
	assert_int_equal(on(&f, "DELETE", a.id), 204);
	assert_int_equal(on(&f, "DELETE", a.id), 404);
	assert_int_equal(on(&f, "DELETE", b.id), 204);
	assert_int_equal(pool_used(&f), 0);
	assert_int_equal(ask(&f, "GET /v1/status", NULL), 200);
	assert_true(json_is_object(json_object_get(f.answer, "walk")));
	fixture_stop(&f);
}

static void test_refused(void **state)
{
	static struct image i;
	struct mem_fixture f = {0};
	static char body[HEX_MAX];
	size_t digits;

	fixture_start(&f);
	assert_int_equal(ask(&f, "POST /v1/walks", "{}"), 400);
	assert_int_equal(ask(&f, "POST /v1/walks", "{\"image\":7}"), 400);
	assert_int_equal(ask(&f, "POST /v1/walks", "{\"image\":\"\"}"), 400);
	assert_int_equal(ask(&f, "POST /v1/walks", "{\"image\":\"zz\"}"), 400);
	assert_int_equal(ask(&f, "POST /v1/walks", "{\"image\":\"00\"}"), 400);
	assert_int_equal(ask(&f, "POST /v1/walks", "{\"walk\":\"00\"}"), 400);
	assert_int_equal(ask_as(&f, NULL, "POST /v1/walks", "{}"), 401);
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "GET /v1/walks", NULL), 403);
	/* whatever digit is another one, what is taken was verified */
	make_image(&i, 0, 0);
	digits = strlen(i.hex) - strlen("{\"image\":\"\"}");
	for (size_t k = 0; k < digits; k++) {
		char *at = body + strlen("{\"image\":\"") + k;
		unsigned status;

		strcpy(body, i.hex);
		*at = *at == 'f' ? '0' : 'f';
		status = ask(&f, "POST /v1/walks", body);
		assert_true(status == 400 || status == 201);
	}
	/* too long a path, and what the machine allows */
	make_image(&i, 2000, 0);
	assert_int_equal(install(&f, &i), 400);
	make_image(&i, 900, 0);
	assert_int_equal(install(&f, &i), 201);
	fixture_stop(&f);
}

static void test_limits(void **state)
{
	struct mem_fixture f = {.config = {.walk = {.programs = 16}}};
	static struct image i;

	fixture_start(&f);
	/* "default" has a quarter of them */
	for (int32_t k = 0; k < 4; k++) {
		make_image(&i, k, 0);
		assert_int_equal(install(&f, &i), 201);
	}
	make_image(&i, 4, 0);
	assert_int_equal(install(&f, &i), 429);
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "PATCH /v1/tenants/default",
				"{\"limits\":{\"walks\":5}}"),
			 200);
	assert_int_equal(install(&f, &i), 201);
	/* a quota of bytes */
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "PATCH /v1/tenants/default",
				"{\"limits\":{\"walks\":6},\"quota\":8192}"),
			 200);
	make_image(&i, 6, 0);
	assert_int_equal(install(&f, &i), 507);
	fixture_stop(&f);
}

static void test_tenants(void **state)
{
	static struct image i;
	struct mem_fixture f = {0};
	char token[65];

	make_image(&i, 0, 0);
	fixture_start(&f);
	assert_int_equal(install(&f, &i), 201);
	assert_int_equal(
		ask_as(&f, TOKEN_ADMIN, "POST /v1/tenants", "{\"name\":\"t\"}"),
		201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	assert_int_equal(ask_as(&f, token, "GET /v1/walks", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "walks")),
			 0);
	assert_int_equal(ask_as(&f, token, "POST /v1/walks", i.hex), 201);
	/* its programs end with it */
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "DELETE /v1/tenants/t", NULL),
			 204);
	assert_int_equal(on(&f, "GET", i.id), 200);
	assert_int_equal(on(&f, "DELETE", i.id), 204);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

/* ---- running ------------------------------------------------------------- */

struct client {
	struct mem_fixture f;
	struct pair pair; /* only a of it */
	char id[32];
	uint64_t addr;
	uint32_t rkey;
};

static unsigned client_ask(struct client *c, const char *walk)
{
	char body[512], hex[33];
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(c->pair.ctx, 1, 1, &gid), 0);
	hex_write(hex, gid.raw, 16);
	snprintf(body, sizeof(body),
		 "{\"proto\":\"1.0\",\"gid\":\"%s\",\"qpn\":%u,\"psn\":7,"
		 "\"mtu\":1024,\"rd_atomic\":4,\"walk\":%s}",
		 hex, c->pair.a.qp->qp_num, walk);
	return ask(&c->f, "POST /v1/connect", body);
}

static void client_connect(struct client *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = 1, .hop_limit = 64}},
	};

	assert_int_equal(client_ask(c, "{\"depth\":8,\"bytes\":64}"), 200);
	snprintf(c->id, sizeof(c->id), "%s", answer_text(&c->f, "connection"));
	assert_int_equal(answer_u64(&c->f, "rd_atomic"), 8);
	attr.dest_qp_num = (uint32_t)answer_u64(&c->f, "qpn");
	attr.rq_psn = (uint32_t)answer_u64(&c->f, "psn");
	assert_int_equal(
		ibv_query_gid(c->pair.ctx, 1, 1, &attr.ah_attr.grh.dgid), 0);
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
				    .max_rd_atomic = 8};
	assert_int_equal(
		ibv_modify_qp(c->pair.a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static void client_grant(struct client *c, const char *region,
			 const char *rights)
{
	char line[96], body[128];

	snprintf(line, sizeof(line), "POST /v1/connections/%s/grants", c->id);
	snprintf(body, sizeof(body), "{\"region\":\"%s\",\"rights\":\"%s\"}",
		 region, rights);
	assert_int_equal(ask(&c->f, line, body), 200);
	c->addr = answer_u64(&c->f, "addr");
	c->rkey = (uint32_t)answer_u64(&c->f, "rkey");
}

static void client_start(struct client *c, const char *region)
{
	char body[128];

	fixture_start(&c->f);
	pair_open(&c->pair);
	c->pair.pd = ibv_alloc_pd(c->pair.ctx);
	side_make(&c->pair, &c->pair.a, IBV_QPT_RC, 0);
	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"size\":16384}",
		 region);
	assert_int_equal(ask(&c->f, "POST /v1/regions", body), 201);
	client_connect(c);
	client_grant(c, region, "rwa");
}

static void client_stop(struct client *c)
{
	side_break(&c->pair.a);
	assert_int_equal(ibv_dealloc_pd(c->pair.pd), 0);
	pair_close(&c->pair);
	fixture_stop(&c->f);
}

static enum ibv_wc_status wait_one(struct client *c)
{
	struct ibv_wc wc;
	int n = 0;

	for (unsigned i = 0; i < PAIR_POLLS && n == 0; i++)
		n = ibv_poll_cq(c->pair.a.cq, 1, &wc);
	assert_int_equal(n, 1);
	return wc.status;
}

static void put_node(struct client *c, uint64_t offset, uint64_t key,
		     uint64_t next)
{
	const uint64_t node[3] = {key, key * 10, next};
	struct ibv_sge sge = {.addr = (uintptr_t)c->pair.a.buf,
			      .length = sizeof(node),
			      .lkey = c->pair.a.mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	memcpy(c->pair.a.buf, node, sizeof(node));
	wr.wr.rdma.remote_addr = c->addr + offset;
	wr.wr.rdma.rkey = c->rkey;
	assert_int_equal(ibv_post_send(c->pair.a.qp, &wr, &bad), 0);
	assert_int_equal(wait_one(c), IBV_WC_SUCCESS);
}

/* The answer is in the buffer: a result, then the pad. */
static enum ibv_wc_status walk(struct client *c, uint64_t hash, uint64_t at,
			       uint64_t key, uint32_t iterations)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->pair.a.buf,
			      .length = AQDV_WALK_RESULT_BYTES + PAD,
			      .lkey = c->pair.a.mr->lkey};
	struct aqdv_walk_wr *bad, wr = {.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.at = at,
					.program = hash,
					.rkey = c->rkey,
					.iterations = iterations,
					.send_bytes = PAD};

	memset(c->pair.a.buf, 0, sge.length);
	memcpy(c->pair.a.buf + AQDV_WALK_RESULT_BYTES, &key, sizeof(key));
	assert_int_equal(aqdv_post_walk(c->pair.a.qp, &wr, &bad), 0);
	return wait_one(c);
}

static struct aqdv_walk_result result(const struct client *c)
{
	struct aqdv_walk_result r;

	memcpy(&r, c->pair.a.buf, sizeof(r));
	return r;
}

static uint64_t pad_word(const struct client *c, unsigned index)
{
	uint64_t word;

	memcpy(&word, c->pair.a.buf + AQDV_WALK_RESULT_BYTES + 8 * index, 8);
	return word;
}

static void test_run(void **state)
{
	struct client c = {.f = {.config = {.walk = {.iterations = 5}}}};
	static struct image i;

	make_image(&i, 0, 0);
	client_start(&c, "r");
	for (uint64_t k = 1; k <= 8; k++)
		put_node(&c, 1000 * k, k, k < 8 ? 1000 * (k + 1) : 0);
	/* nobody has brought it yet */
	assert_int_equal(walk(&c, i.hash, 1000, 3, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_NO_PROGRAM);
	assert_int_equal(install(&c.f, &i), 201);
	assert_int_equal(walk(&c, i.hash, 1000, 3, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_DONE);
	assert_int_equal(result(&c).took, 3);
	assert_int_equal(pad_word(&c, 1), 30);
	assert_int_equal(pad_word(&c, 2), 1);
	/* the node's limit is less than what the client wants */
	assert_int_equal(walk(&c, i.hash, 1000, 8, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_MORE);
	assert_int_equal(result(&c).took, 5);
	assert_int_equal(result(&c).at, 6000);
	/* pointers that lead nowhere */
	put_node(&c, 8000, 8, 1 << 20);
	assert_int_equal(walk(&c, i.hash, 7000, 99, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_FAULT);
	assert_int_equal(result(&c).at, 1 << 20);
	/* a program that is gone */
	assert_int_equal(on(&c.f, "GET", i.id), 200);
	assert_int_equal(answer_u64(&c.f, "runs"), 3);
	assert_int_equal(on(&c.f, "DELETE", i.id), 204);
	assert_int_equal(walk(&c, i.hash, 1000, 3, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_NO_PROGRAM);
	client_stop(&c);
}

/* A piece knows by its name which stripes are its own. */
static void test_stripes(void **state)
{
	struct client c = {0};
	static struct image i;

	make_image(&i, 0, 0);
	client_start(&c, "r.1-2-c");
	assert_int_equal(install(&c.f, &i), 201);
	/* stripe 1 of the region is this piece's first one */
	put_node(&c, 8, 1, 3 * STRIPE + 16);
	put_node(&c, STRIPE + 16, 2, 2 * STRIPE);
	assert_int_equal(walk(&c, i.hash, STRIPE + 8, 99, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_ELSEWHERE);
	assert_int_equal(result(&c).took, 2);
	assert_int_equal(result(&c).at, 2 * STRIPE);
	/* a node that crosses the end of a stripe */
	assert_int_equal(walk(&c, i.hash, 2 * STRIPE - 8, 1, 99),
			 IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_FAULT);
	/* also through a window */
	client_grant(&c, "r.1-2-c", "r");
	assert_int_equal(walk(&c, i.hash, STRIPE + 8, 2, 99), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_DONE);
	client_stop(&c);
}

/* The bytes at these places, 16 each, in one walk without a program. */
static enum ibv_wc_status gather(struct client *c, const uint64_t *at,
				 unsigned count)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->pair.a.buf,
			      .length = AQDV_WALK_RESULT_BYTES + 16 * count,
			      .lkey = c->pair.a.mr->lkey};
	struct aqdv_walk_wr *bad, wr = {.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.program = GATHER_WIRE_PROGRAM,
					.rkey = c->rkey,
					.iterations = count,
					.send_bytes = 8 * count};

	memset(c->pair.a.buf, 0, sge.length);
	for (unsigned i = 0; i < count; i++) {
		le64 word = gather_place_put(
			(struct gather_place){.at = at[i], .len_bytes = 16});

		memcpy(c->pair.a.buf + AQDV_WALK_RESULT_BYTES + 8 * i, &word,
		       8);
	}
	assert_int_equal(aqdv_post_walk(c->pair.a.qp, &wr, &bad), 0);
	return wait_one(c);
}

static void test_gather(void **state)
{
	static const uint64_t at[] = {3000, 1000, 2000, 8000};
	static const uint64_t beyond[] = {1000, 16384 - 8};
	struct client c = {0};

	client_start(&c, "r");
	for (uint64_t k = 1; k <= 8; k++)
		put_node(&c, 1000 * k, k, 0);
	/* Also through a window, which may only be read. */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(gather(&c, at, 4), IBV_WC_SUCCESS);
		assert_int_equal(result(&c).status, AQDV_WALK_DONE);
		assert_int_equal(result(&c).pad_bytes, 64);
		assert_int_equal(result(&c).took, 4);
		for (unsigned k = 0; k < 4; k++) {
			assert_int_equal(pad_word(&c, 2 * k), at[k] / 1000);
			assert_int_equal(pad_word(&c, 2 * k + 1), at[k] / 100);
		}
		client_grant(&c, "r", "r");
	}
	/* More than the region has, and a list that is none. */
	assert_int_equal(gather(&c, beyond, 2), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_FAULT);
	assert_int_equal(result(&c).took, 1);
	assert_int_equal(gather(&c, at, 0), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_NO_PROGRAM);
	/* A key that never was ends the connection, as with a READ. */
	c.rkey += 1u << 8;
	assert_int_not_equal(gather(&c, at, 4), IBV_WC_SUCCESS);
	client_stop(&c);
}

static void test_gather_stripes(void **state)
{
	static const uint64_t here[] = {STRIPE + 8, 3 * STRIPE + 16};
	static const uint64_t there[] = {STRIPE + 8, 2 * STRIPE};
	static const uint64_t across[] = {STRIPE + 8, 2 * STRIPE - 8};
	struct client c = {0};

	client_start(&c, "r.1-2-c");
	put_node(&c, 8, 1, 0);
	put_node(&c, STRIPE + 16, 2, 0);
	assert_int_equal(gather(&c, here, 2), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_DONE);
	assert_int_equal(pad_word(&c, 0), 1);
	assert_int_equal(pad_word(&c, 2), 2);
	assert_int_equal(gather(&c, there, 2), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_ELSEWHERE);
	assert_int_equal(gather(&c, across, 2), IBV_WC_SUCCESS);
	assert_int_equal(result(&c).status, AQDV_WALK_FAULT);
	client_stop(&c);
}

static void test_stores(void **state)
{
	struct client c = {0};
	static struct image i;

	make_image(&i, 0, WALK_STORES);
	client_start(&c, "r");
	assert_int_equal(install(&c.f, &i), 201);
	put_node(&c, 4096, 7, 0);
	assert_int_equal(walk(&c, i.hash, 4096, 7, 9), IBV_WC_SUCCESS);
	assert_int_equal(pad_word(&c, 1), 70);
	/* it wrote the key over the value */
	assert_int_equal(walk(&c, i.hash, 4096, 7, 9), IBV_WC_SUCCESS);
	assert_int_equal(pad_word(&c, 1), 7);
	/* who may only read may not run it */
	client_grant(&c, "r", "r");
	if (walk(&c, i.hash, 4096, 7, 9) == IBV_WC_SUCCESS)
		assert_int_equal(result(&c).status, AQDV_WALK_NO_RIGHT);
	client_stop(&c);
}

static void test_connect(void **state)
{
	static const char *const bad[] = {
		"7",
		"{}",
		"{\"depth\":8}",
		"{\"depth\":0,\"bytes\":64}",
		"{\"depth\":129,\"bytes\":64}",
		"{\"depth\":8,\"bytes\":0}",
		"{\"depth\":8,\"bytes\":4033}",
		"{\"depth\":8,\"bytes\":64,\"more\":1}",
	};
	struct client c = {0};
	uint64_t before;

	client_start(&c, "r");
	before = pool_used(&c.f);
	for (size_t k = 0; k < ARRAY_LEN(bad); k++)
		assert_int_equal(client_ask(&c, bad[k]), 400);
	assert_int_equal(pool_used(&c.f), before);
	/* pads are charged, and given back */
	assert_int_equal(client_ask(&c, "{\"depth\":64,\"bytes\":4032}"), 200);
	assert_true(pool_used(&c.f) >= before + 64 * 4032);
	client_stop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_stripes),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_gather_stripes),
		cmocka_unit_test(test_stores),
		cmocka_unit_test(test_connect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
