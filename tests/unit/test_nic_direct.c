/* SPDX-License-Identifier: Apache-2.0 */
/* The direct port: what it executes, what it leaves to the wire, revocation. */
#include "base/atomic_op.h"
#include "nic_pair.h"

/* One mapping of end 1's memory, as os/ would keep it. */
struct direct_env {
	struct env_ops ops;
	struct env_direct map;
	uint32_t rkey; /* what it is the mapping of; 0: none */
	uint32_t gone; /* last key that was revoked */
	bool revoked;  /* touching it faults */
};

/* The env has no room for a context; there is one test at a time. */
static struct direct_env direct;

static const struct env_direct *find(struct env *env, struct env_path *path,
				     uint32_t local, uint32_t remote,
				     uint32_t rkey)
{
	return rkey == direct.rkey ? &direct.map : NULL;
}

static int copy(struct env *env, enum env_direct_op op, void *far, void *near,
		size_t len)
{
	if (direct.revoked)
		return -EFAULT;
	if (op == ENV_DIRECT_READ)
		memcpy(near, far, len);
	else
		memcpy(far, near, len);
	return 0;
}

static int atomic(struct env *env, const struct atomic_op *op, void *far,
		  uint64_t *original)
{
	if (direct.revoked)
		return -EFAULT;
	*original = atomic_op_execute(op, far);
	return 0;
}

static void revoke(struct env *env, uint32_t rkey)
{
	direct.gone = rkey;
}

static void direct_init(struct conn *c)
{
	conn_init(c, IBV_MTU_256);
	direct = (struct direct_env){
		.ops = pair_env_ops,
		.rkey = c->e[1].key,
		.map = {.base = c->e[1].mem,
			.iova = (uintptr_t)c->e[1].mem,
			.length = END_BYTES,
			.access = END_ACCESS},
	};
	direct.ops.direct_find = find;
	direct.ops.direct_copy = copy;
	direct.ops.direct_atomic = atomic;
	direct.ops.direct_revoke = revoke;
	c->p.side[0].env.ops = &direct.ops;
	c->p.side[1].env.ops = &direct.ops;
}

static void executes_at_once(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	direct_init(&c);
	for (i = 0; i < 1000; i++)
		a->mem[i] = (uint8_t)(i * 3);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 1000), 0);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(a->mem, b->mem, 1000);
	memset(a->mem, 0, 1000);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 2, 0, 1000), 0);
	expect_cqe(a->scq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(a->mem, b->mem, 1000);
	*(uint64_t *)(void *)(b->mem + 64) = 41;
	assert_int_equal(post(a, b, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 64, 8), 0);
	expect_cqe(a->scq, 3, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)(a->mem + 64), 41);
	assert_int_equal(*(uint64_t *)(void *)(b->mem + 64), 42);
	assert_int_equal(c.p.head, 0); /* nothing on the wire */
	assert_int_equal(counter(a, NIC_C_direct_ops), 3);
	conn_release(&c);
}

static void reads_without_a_queue(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	uint8_t got[3][64] = {{0}};
	struct nic_read r[3];
	uint64_t at;
	unsigned i;

	direct_init(&c);
	at = (uintptr_t)b->mem;
	for (i = 0; i < 1000; i++)
		b->mem[i] = (uint8_t)(i * 5);
	for (i = 0; i < 3; i++)
		r[i] = (struct nic_read){at + 64 * i, got[i], b->key, 64};
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 3);
	for (i = 0; i < 3; i++)
		assert_memory_equal(got[i], b->mem + 64 * i, 64);
	assert_int_equal(counter(a, NIC_C_direct_ops), 3);
	/* As far as it can be done: then the rest has to be sent. */
	r[1].addr = at + END_BYTES - 4;
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 1);
	r[1].addr = at - 8;
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 1);
	r[1].addr = at;
	r[1].rkey = b->key + 1;
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 1);
	r[1].rkey = b->key;
	direct.map.access = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 0);
	direct.map.access = END_ACCESS;
	direct.revoked = true;
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 0);
	direct.revoked = false;
	/* What was posted before comes first. */
	assert_int_equal(post_recv(b, 5, 4096, 64), 0);
	assert_int_equal(post(a, b, IBV_WR_SEND, 1, 0, 8), 0);
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(nic_qp_read_now(a->qp, r, 3), 3);
	assert_int_equal(counter(a, NIC_C_direct_faults), 0);
	conn_release(&c);
}

struct left {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint64_t at;
	uint32_t len;
	uint32_t map_access;
	enum ibv_wc_status status;
};

/* What a mapping does not cover is sent, and fails or works as it always
 * does. */
static void leaves_the_rest_to_the_wire(void **state)
{
	static const struct left table[] = {
		{"send", IBV_WR_SEND, 0, 8, END_ACCESS, IBV_WC_SUCCESS},
		{"with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, END_ACCESS,
		 IBV_WC_SUCCESS},
		{"empty", IBV_WR_RDMA_READ, 0, 0, END_ACCESS, IBV_WC_SUCCESS},
		{"no right in the map", IBV_WR_RDMA_WRITE, 0, 8,
		 IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS},
		{"behind the end", IBV_WR_RDMA_WRITE, END_BYTES - 4, 8,
		 END_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{"before the start", IBV_WR_RDMA_READ, (uint64_t)-8, 8,
		 END_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{"misaligned", IBV_WR_ATOMIC_CMP_AND_SWP, 4, 8, END_ACCESS,
		 IBV_WC_REM_INV_REQ_ERR},
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct conn c;
		struct end far;

		direct_init(&c);
		direct.map.access = table[i].map_access;
		far = c.e[1];
		far.mem = (uint8_t *)((uintptr_t)far.mem + table[i].at);
		assert_int_equal(post_recv(&c.e[1], 5, 4096, 64), 0);
		assert_int_equal(post(&c.e[0], &far, table[i].opcode, 1, 0,
				      table[i].len),
				 0);
		assert_true(c.p.head > 0);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 1, table[i].status);
		assert_int_equal(counter(&c.e[0], NIC_C_direct_ops), 0);
		conn_release(&c);
	}
}

/* A request that is on the wire is not overtaken. */
static void keeps_the_order(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	uint32_t rkey;

	direct_init(&c);
	rkey = direct.rkey;
	direct.rkey = 0;
	a->mem[0] = 1;
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 1), 0);
	direct.rkey = rkey; /* mapped meanwhile */
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 2, 0, 1), 0);
	expect_no_cqe(a->scq);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	expect_cqe(a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(a->mem[0], 1);
	/* Now that nothing is on its way. */
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 3, 0, 1), 0);
	expect_cqe(a->scq, 3, IBV_WC_SUCCESS);
	conn_release(&c);
}

static void local_keys_are_checked(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		struct conn c;
		struct end bad;

		direct_init(&c);
		bad = c.e[0];
		bad.key ^= 0x100;
		assert_int_equal(post(&bad, &c.e[1], ops[i], 1, 0, 8), 0);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 1, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(c.e[1].mem[0], 0);
		conn_release(&c);
	}
}

static void revoked_memory_is_an_error(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		struct conn c;

		direct_init(&c);
		direct.revoked = true;
		assert_int_equal(post(&c.e[0], &c.e[1], ops[i], 1, 0, 8), 0);
		expect_cqe(c.e[0].scq, 1, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(counter(&c.e[0], NIC_C_direct_faults), 1);
		assert_int_equal(nic_qp_state(c.e[0].qp), IBV_QPS_ERR);
		conn_release(&c);
	}
}

static void the_end_of_a_key_is_told(void **state)
{
	struct nic_mr_attr attr = {.length = 8};
	struct conn c;
	struct nic_mr *mr;
	uint32_t key;

	direct_init(&c);
	assert_int_equal(nic_mr_reg(c.e[0].pd, &attr, &mr), 0);
	key = nic_mr_key(mr);
	assert_int_equal(
		nic_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, &attr), 0);
	assert_int_equal(direct.gone, key);
	key = nic_mr_key(mr);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(direct.gone, key);
	conn_release(&c);
}

/* Memory that is not mapped is asked for now and then only, but a mapping that
 * comes late is found soon, whatever the request. */
static void late_mapping_is_found(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ,
						     IBV_WR_RDMA_WRITE};
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];

	for (unsigned k = 0; k < 2; k++) {
		uint32_t rkey;
		unsigned i;

		direct_init(&c);
		rkey = direct.rkey;
		direct.rkey = 0;
		for (i = 0; i < 300; i++) {
			assert_int_equal(post(a, b, opcodes[k], i, 0, 64), 0);
			pair_run(&c.p);
			expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		}
		assert_int_equal(counter(a, NIC_C_direct_ops), 0);
		direct.rkey = rkey;
		for (i = 0; !counter(a, NIC_C_direct_ops); i++) {
			assert_true(i < 20);
			assert_int_equal(post(a, b, opcodes[k], i, 0, 64), 0);
			pair_run(&c.p);
			expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		}
		/* And from now on each time. */
		for (i = 0; i < 40; i++) {
			assert_int_equal(post(a, b, opcodes[k], i, 0, 64), 0);
			expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		}
		assert_int_equal(counter(a, NIC_C_direct_ops), 41);
		conn_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executes_at_once),
		cmocka_unit_test(reads_without_a_queue),
		cmocka_unit_test(leaves_the_rest_to_the_wire),
		cmocka_unit_test(keeps_the_order),
		cmocka_unit_test(local_keys_are_checked),
		cmocka_unit_test(revoked_memory_is_an_error),
		cmocka_unit_test(the_end_of_a_key_is_told),
		cmocka_unit_test(late_mapping_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
