/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the direct verbs: a walker of the program's own, and a request
 * to it. */
#include <aquifer/aqdv.h>
#include <errno.h>

#include "verbs_pair.h"

enum {
	SUM = 7, /* the program: adds up the second words of a list */
	PAD = 64,
};

/* One walk at a time, of nodes {next, value}. */
struct adder {
	struct aqdv_walk *walk;
	uint64_t at;
	uint32_t took;
	struct ibv_qp *qp;
	unsigned forgotten;
};

static int adder_start(void *ctx, struct aqdv_walk *walk)
{
	struct adder *a = ctx;

	if (walk->program != SUM)
		return -ENOENT;
	if (a->walk)
		return -EAGAIN;
	a->walk = walk;
	a->at = walk->at;
	a->took = 0;
	a->qp = walk->qp;
	return 0;
}

static void adder_end(struct adder *a, enum aqdv_walk_status status)
{
	struct aqdv_walk *walk = a->walk;

	a->walk = NULL;
	walk->answer_bytes = 8;
	aqdv_walk_done(walk, status, a->at, walk->iterations - a->took,
		       a->took);
}

static bool adder_turn(void *ctx, uint32_t iterations)
{
	struct adder *a = ctx;

	while (a->walk && iterations--) {
		uint64_t node[2], *sum = (void *)a->walk->pad;
		uint8_t *host;

		if (a->took == a->walk->iterations) {
			adder_end(a, AQDV_WALK_MORE);
		} else if (aqdv_walk_reach(a->walk, a->at, sizeof(node), false,
					   &host) != AQDV_WALK_HERE) {
			adder_end(a, AQDV_WALK_FAULT);
		} else {
			memcpy(node, host, sizeof(node));
			a->took++;
			*sum += node[1];
			a->at = node[0];
			if (!a->at)
				adder_end(a, AQDV_WALK_DONE);
		}
	}
	return a->walk;
}

static void adder_forget(void *ctx, struct aqdv_walk *walk)
{
	struct adder *a = ctx;

	assert_ptr_equal(a->walk, walk);
	a->walk = NULL;
	a->forgotten++;
}

static void open_pair(struct pair *p, struct adder *a)
{
	struct aqdv_walker walker = {.ctx = a,
				     .start = adder_start,
				     .turn = adder_turn,
				     .forget = adder_forget};

	memset(p, 0, sizeof(*p));
	memset(a, 0, sizeof(*a));
	pair_open(p);
	assert_int_equal(aqdv_set_walker(p->ctx, &walker), 0);
	p->pd = ibv_alloc_pd(p->ctx);
	side_make(p, &p->a, IBV_QPT_RC, 0);
	side_make(p, &p->b, IBV_QPT_RC, 0);
	side_init(&p->a);
	side_init(&p->b);
	assert_int_equal(aqdv_qp_set_walk_pad(p->b.qp, PAD), 0);
	side_connect(p, &p->a, p->b.qp->qp_num);
	side_connect(p, &p->b, p->a.qp->qp_num);
	assert_int_equal(aqdv_qp_set_walk_pad(p->b.qp, PAD), -EINVAL);
}

static void close_pair(struct pair *p)
{
	pair_break(p);
	assert_int_equal(aqdv_set_walker(p->ctx, NULL), 0);
	pair_close(p);
}

static int post_walks(struct pair *p, unsigned count, uint64_t program,
		      unsigned flags, unsigned *posted)
{
	struct aqdv_walk_wr wr[4] = {{0}}, *bad = NULL;
	struct ibv_sge sge[4];
	int rc;

	for (unsigned i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)p->a.buf + i * 256,
					  .length = AQDV_WALK_RESULT_BYTES + 8,
					  .lkey = p->a.mr->lkey};
		memset(p->a.buf + i * 256, 0, 256);
		/* The sum begins at 100, 101 ... */
		p->a.buf[i * 256 + AQDV_WALK_RESULT_BYTES] = (uint8_t)(100 + i);
		wr[i] = (struct aqdv_walk_wr){
			.wr_id = 10 + i,
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.at = 16,
			.program = program,
			.rkey = p->b.mr->rkey,
			.iterations = 300,
			.send_bytes = 8,
		};
	}
	wr[count - 1].send_flags |= flags;
	rc = aqdv_post_walk(p->a.qp, wr, &bad);
	*posted = bad ? (unsigned)(bad - wr) : count;
	return rc;
}

/* 200 nodes, with values from 1 on. */
static void make_list(struct pair *p)
{
	uint64_t *words = (void *)p->b.buf;

	for (uint64_t i = 1; i <= 200; i++) {
		words[2 * i] = i < 200 ? 16 * (i + 1) : 0;
		words[2 * i + 1] = i;
	}
}

static void a_list_of_walks(void **state)
{
	struct aqdv_walk_result r;
	uint64_t value, sum;
	struct adder a;
	struct pair p;
	unsigned n;

	open_pair(&p, &a);
	make_list(&p);
	assert_int_equal(post_walks(&p, 4, SUM, 0, &n), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_wc wc = pair_wait(p.a.cq);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 10 + i);
		assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
		assert_int_equal(wc.byte_len, AQDV_WALK_RESULT_BYTES + 8);
		memcpy(&r, p.a.buf + i * 256, sizeof(r));
		memcpy(&sum, p.a.buf + i * 256 + sizeof(r), 8);
		assert_int_equal(r.status, AQDV_WALK_DONE);
		assert_int_equal(r.took, 200);
		assert_int_equal(r.left, 100);
		assert_int_equal(sum, 100 + i + 200 * 201 / 2);
	}
	assert_ptr_equal(a.qp, p.b.qp);
	assert_int_equal(aqdv_get_counter(p.ctx, "walks", &value), 0);
	assert_int_equal(value, 4);
	assert_int_equal(aqdv_get_counter(p.ctx, "walk_iterations", &value), 0);
	assert_int_equal(value, 800);
	close_pair(&p);
}

/* Each walk starts at a node that the WRITE before it makes. */
static void what_is_written_before_is_there(void **state)
{
	struct ibv_send_wr write[4] = {{0}};
	struct aqdv_walk_wr wr[4] = {{0}}, *bad;
	struct ibv_sge sge[4], from[4];
	struct adder a;
	struct pair p;

	open_pair(&p, &a);
	for (unsigned i = 0; i < 4; i++) {
		const uint64_t node[2] = {0, 1000 + i};

		memset(p.a.buf + i * 256, 0, 256);
		memcpy(p.a.buf + i * 256 + 128, node, sizeof(node));
		from[i] = (struct ibv_sge){.addr = (uintptr_t)p.a.buf +
						   i * 256 + 128,
					   .length = sizeof(node),
					   .lkey = p.a.mr->lkey};
		write[i] = (struct ibv_send_wr){
			.sg_list = &from[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = {.remote_addr = (uintptr_t)p.b.buf + 16,
				    .rkey = p.b.mr->rkey}};
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)p.a.buf + i * 256,
					  .length = AQDV_WALK_RESULT_BYTES + 8,
					  .lkey = p.a.mr->lkey};
		wr[i] = (struct aqdv_walk_wr){.wr_id = i,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .send_flags = IBV_SEND_SIGNALED,
					      .at = 16,
					      .program = SUM,
					      .rkey = p.b.mr->rkey,
					      .iterations = 1,
					      .before = &write[i]};
		assert_int_equal(aqdv_post_walk(p.a.qp, &wr[i], &bad), 0);
		/* The WRITE has no completion of its own. */
		assert_int_equal(pair_wait(p.a.cq).wr_id, i);
		assert_int_equal(p.a.buf[i * 256 + AQDV_WALK_RESULT_BYTES],
				 (uint8_t)(1000 + i));
	}
	close_pair(&p);
}

/* The WRITE is refused: it says so, and the walk behind it is not executed. */
static void a_write_that_fails_takes_its_walk_along(void **state)
{
	struct ibv_sge sge, from;
	struct ibv_send_wr write;
	struct aqdv_walk_wr wr, *bad;
	struct adder a;
	struct pair p;
	uint64_t value;
	struct ibv_wc wc;

	open_pair(&p, &a);
	make_list(&p);
	from = (struct ibv_sge){.addr = (uintptr_t)p.a.buf + 512,
				.length = 16,
				.lkey = p.a.mr->lkey};
	write = (struct ibv_send_wr){
		.wr_id = 7,
		.sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)p.b.buf,
			    .rkey = p.b.mr->rkey ^ 0x100}};
	sge = (struct ibv_sge){.addr = (uintptr_t)p.a.buf,
			       .length = AQDV_WALK_RESULT_BYTES + 8,
			       .lkey = p.a.mr->lkey};
	wr = (struct aqdv_walk_wr){.wr_id = 8,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED,
				   .at = 16,
				   .program = SUM,
				   .rkey = p.b.mr->rkey,
				   .iterations = 300,
				   .before = &write};
	assert_int_equal(aqdv_post_walk(p.a.qp, &wr, &bad), 0);
	wc = pair_wait(p.a.cq);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	wc = pair_wait(p.a.cq);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(aqdv_get_counter(p.ctx, "walks", &value), 0);
	assert_int_equal(value, 0);
	close_pair(&p);
}

static void what_is_wrong_is_said(void **state)
{
	struct aqdv_place place = {.space = 1, .count = 2, .shift = 12};
	struct aqdv_device_attr attr = {0};
	struct aqdv_walker none = {.ctx = NULL};
	struct ibv_context foreign = {0};
	struct ibv_qp qp = {.context = &foreign};
	struct aqdv_walk_result r;
	struct adder a;
	struct pair p;
	unsigned n;

	open_pair(&p, &a);
	assert_int_equal(aqdv_query_device(p.ctx, &attr), 0);
	assert_true(attr.caps & AQDV_CAP_WALK);
	assert_int_equal(aqdv_set_walker(p.ctx, &none), -EINVAL);
	assert_int_equal(aqdv_set_place(p.b.mr, &place), 0);
	place.index = 2;
	assert_int_equal(aqdv_set_place(p.b.mr, &place), -EINVAL);
	assert_int_equal(aqdv_set_place(NULL, &place), -EINVAL);
	/* Those before the one that is wrong are posted. */
	assert_int_equal(post_walks(&p, 3, SUM + 1, IBV_SEND_INLINE, &n),
			 -EINVAL);
	assert_int_equal(n, 2);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(pair_wait(p.a.cq).status, IBV_WC_SUCCESS);
		memcpy(&r, p.a.buf + i * 256, sizeof(r));
		assert_int_equal(r.status, AQDV_WALK_NO_PROGRAM);
		assert_int_equal(r.space, 1);
	}
	/* Of another library. */
	assert_int_equal(aqdv_post_walk(&qp, NULL, NULL), -EOPNOTSUPP);
	assert_int_equal(aqdv_qp_set_walk_pad(&qp, 1), -EOPNOTSUPP);
	assert_int_equal(aqdv_set_walker(&foreign, NULL), -EOPNOTSUPP);
	assert_null(aqdv_walk_epoch(&foreign));
	assert_non_null(aqdv_walk_epoch(p.ctx));
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_walks),
		cmocka_unit_test(what_is_written_before_is_there),
		cmocka_unit_test(a_write_that_fails_takes_its_walk_along),
		cmocka_unit_test(what_is_wrong_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
