/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and what they open: the table, regions, domains, device memory. */
#include <errno.h>
#include <string.h>

#include "core/qp_priv.h"
#include "nic_pair.h"

/* ---- the table ------------------------------------------------------------
 */

enum {
	MODEL_KEYS = 1500,
	MODEL_STEPS = 20000,
};

/* Sixteen neighbours at the end of the table: long probes that wrap. */
static uint32_t crowded(struct pair *p, uint32_t word)
{
	return word | 0x3f000;
}

static void check_model(struct nic *nic, struct nic_key *const *live,
			unsigned count)
{
	unsigned i;

	assert_int_equal(nic->keys.count, count);
	for (i = 0; i < count; i++)
		assert_ptr_equal(key_find(&nic->keys, live[i]->key), live[i]);
}

static void table_agrees_with_a_list(void **state)
{
	struct nic_key *keys = calloc(MODEL_KEYS, sizeof(*keys));
	struct nic_key *live[MODEL_KEYS], *spare[MODEL_KEYS];
	unsigned n = 0, step, i;
	struct pair p;
	struct nic *nic;

	assert_non_null(keys);
	pair_init(&p);
	nic = p.side[0].nic;
	p.shape = crowded;
	for (i = 0; i < MODEL_KEYS; i++) {
		keys[i].valid = true;
		spare[i] = &keys[i];
	}
	for (step = 0; step < MODEL_STEPS; step++) {
		/* Fuller and emptier in turn, so that it grows and shrinks. */
		bool fill =
			rng_below(&p.rng, 100) < (step / 4000 % 2 ? 30u : 70u);

		if (n == 0 || (fill && n < MODEL_KEYS)) {
			struct nic_key *k = spare[MODEL_KEYS - n - 1];

			assert_int_equal(key_insert(nic, k), 0);
			assert_int_not_equal(k->key >> 8, 0);
			live[n++] = k;
		} else {
			unsigned victim = (unsigned)rng_below(&p.rng, n);
			struct nic_key *k = live[victim];

			key_remove(nic, k);
			live[victim] = live[--n];
			spare[MODEL_KEYS - n - 1] = k;
			assert_null(key_find(&nic->keys, k->key));
		}
		if (step % 500 == 0)
			check_model(nic, live, n);
	}
	check_model(nic, live, n);
	while (n)
		key_remove(nic, live[--n]);
	check_model(nic, live, 0);
	free(keys);
	pair_release(&p);
}

/* The first is index 0, the second ends a list of receive buffers; neither may
 * become a key. */
static uint32_t reserved_first(struct pair *p, uint32_t word)
{
	static const uint32_t words[] = {0x000000ff, WQE_INVALID_LKEY,
					 0x12345678};

	return words[p->shape_calls % ARRAY_LEN(words)];
}

static void reserved_values_are_not_given_out(void **state)
{
	struct nic_key one = {.valid = true}, two = {.valid = true};
	struct pair p;
	struct nic *nic;

	pair_init(&p);
	nic = p.side[0].nic;
	p.shape = reserved_first;
	assert_int_equal(key_insert(nic, &one), 0);
	assert_int_equal(one.key, 0x12345678);
	/* Nothing else is ever drawn: no endless loop. */
	assert_int_equal(key_insert(nic, &two), -EAGAIN);
	assert_ptr_equal(key_find(&nic->keys, 0x12345678), &one);
	assert_null(key_find(&nic->keys, 0x12345679)); /* the tag counts */
	assert_null(key_find(&nic->keys, 0));
	assert_null(key_find(&nic->keys, 0xff));
	one.valid = false;
	assert_null(key_find(&nic->keys, 0x12345678));
	assert_ptr_equal(key_at(&nic->keys, 0x12345600), &one);
	key_remove(nic, &one);
	assert_null(key_at(&nic->keys, 0x12345600));
	pair_release(&p);
}

static void keys_are_random_in_every_bit(void **state)
{
	enum {
		N = 4096
	};
	struct nic_mr *mr[N];
	unsigned ones[32] = {0}, bit, i;
	struct nic_mr_attr attr = {.length = 1, .access = 0};
	struct nic_pd *pd;
	struct pair p;

	pair_init(&p);
	assert_int_equal(nic_pd_create(p.side[0].nic, &pd), 0);
	for (i = 0; i < N; i++) {
		assert_int_equal(nic_mr_reg(pd, &attr, &mr[i]), 0);
		for (bit = 0; bit < 32; bit++)
			ones[bit] += nic_mr_key(mr[i]) >> bit & 1;
		/* Neighbours say nothing about each other. */
		if (i)
			assert_int_not_equal((nic_mr_key(mr[i]) >> 8) - 1,
					     nic_mr_key(mr[i - 1]) >> 8);
	}
	/* Six standard deviations of a fair coin. */
	for (bit = 0; bit < 32; bit++)
		assert_in_range(ones[bit], N / 2 - 192, N / 2 + 192);
	assert_int_equal(nic_pd_destroy(pd), -EBUSY);
	for (i = 0; i < N; i++)
		assert_int_equal(nic_mr_dereg(mr[i]), 0);
	assert_int_equal(nic_pd_destroy(pd), 0);
	pair_release(&p);
}

/* ---- regions --------------------------------------------------------------
 */

#define LW IBV_ACCESS_LOCAL_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RW IBV_ACCESS_REMOTE_WRITE
#define RA IBV_ACCESS_REMOTE_ATOMIC

static void registration_is_validated(void **state)
{
	static const struct {
		int access;
		uint64_t addr, length, iova;
		int err;
	} table[] = {
		{0, 4096, 64, 4096, 0},
		{RR, 4096, 64, 4096, 0},
		{LW | RW | RA | RR | IBV_ACCESS_MW_BIND, 4096, 64, 0, 0},
		{LW | IBV_ACCESS_RELAXED_ORDERING, 4096, 64, 4096, 0},
		{0, 4096, 0, 4096, 0},
		{RW, 4096, 64, 4096, -EINVAL}, /* remote but not local */
		{RA, 4096, 64, 4096, -EINVAL},
		{RW | RR, 4096, 64, 4096, -EINVAL},
		{IBV_ACCESS_ON_DEMAND, 4096, 64, 4096, -EINVAL},
		{1 << 19, 4096, 64, 4096, -EINVAL},
		{LW, 4096, UINT64_MAX, 4096, -EINVAL},
		{LW, 4096, 64, UINT64_MAX - 63, -EINVAL},
		{LW, UINT64_MAX - 62, 64, 0, -EINVAL},
	};
	struct nic_pd *pd;
	struct pair p;
	unsigned i;

	pair_init(&p);
	assert_int_equal(nic_pd_create(p.side[0].nic, &pd), 0);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct nic_mr_attr attr = {
			.addr = (void *)(uintptr_t)table[i].addr,
			.length = table[i].length,
			.iova = table[i].iova,
			.access = table[i].access,
		};
		struct nic_mr *mr;

		assert_int_equal(nic_mr_reg(pd, &attr, &mr), table[i].err);
		if (!table[i].err)
			assert_int_equal(nic_mr_dereg(mr), 0);
	}
	assert_int_equal(nic_pd_destroy(pd), 0);
	pair_release(&p);
}

/* Every right alone opens its own operation and no other. */
static void each_right_opens_one_operation(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int right;
	} ops[] = {
		{IBV_WR_RDMA_READ, RR},
		{IBV_WR_RDMA_WRITE, RW},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, RA},
		{IBV_WR_ATOMIC_CMP_AND_SWP, RA},
	};
	static const int rights[] = {0, RR, RW, RA, RR | RW, RW | RA, RR | RA};
	struct conn c;
	unsigned o, r;

	conn_init(&c, IBV_MTU_256);
	for (r = 0; r < ARRAY_LEN(rights); r++) {
		struct end *b = &c.e[1];
		struct nic_mr_attr attr = {.addr = b->mem,
					   .length = 4096,
					   .iova = (uintptr_t)b->mem,
					   .access = rights[r] | LW};
		struct nic_mr *mr;
		uint32_t key;

		assert_int_equal(nic_mr_reg(b->pd, &attr, &mr), 0);
		key = nic_mr_key(mr);
		for (o = 0; o < ARRAY_LEN(ops); o++) {
			bool may = rights[r] & ops[o].right;
			uint64_t denied = counter(b, NIC_C_deny_access);

			assert_int_equal(
				remote_op(&c, ops[o].opcode, key, attr.iova, 8),
				may ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
			assert_int_equal(counter(b, NIC_C_deny_access) - denied,
					 may ? 0 : 1);
		}
		assert_int_equal(nic_mr_dereg(mr), 0);
		/* And now it opens nothing. */
		assert_int_equal(
			remote_op(&c, IBV_WR_RDMA_READ, key, attr.iova, 8),
			IBV_WC_REM_ACCESS_ERR);
	}
	conn_release(&c);
}

static void addresses_are_those_of_the_region(void **state)
{
	static const struct {
		uint64_t iova;
		int flags;
		uint64_t first; /* address of its first byte */
	} table[] = {
		{0x1000, 0, 0x1000},
		{0, 0, 0},
		{UINT64_MAX - 4096, 0, UINT64_MAX - 4096},
		{0x777000, IBV_ACCESS_ZERO_BASED, 0},
	};
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct nic_mr_attr attr = {.addr = b->mem + 512,
					   .length = 4096,
					   .iova = table[i].iova,
					   .access = LW | RW | table[i].flags};
		uint64_t first = table[i].first;
		struct nic_mr *mr;
		uint32_t key;

		assert_int_equal(nic_mr_reg(b->pd, &attr, &mr), 0);
		key = nic_mr_key(mr);
		memset(b->mem, 0, 8192);
		memset(a->mem, (int)i + 1, 64);
		assert_int_equal(
			remote_op(&c, IBV_WR_RDMA_WRITE, key, first + 100, 64),
			IBV_WC_SUCCESS);
		assert_int_equal(b->mem[611], 0);
		assert_int_equal(b->mem[612], i + 1);
		assert_int_equal(b->mem[675], i + 1);
		assert_int_equal(b->mem[676], 0);
		/* The last byte, and the one behind it. */
		assert_int_equal(
			remote_op(&c, IBV_WR_RDMA_WRITE, key, first + 4095, 1),
			IBV_WC_SUCCESS);
		assert_int_equal(
			remote_op(&c, IBV_WR_RDMA_WRITE, key, first + 4096, 1),
			IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(
			remote_op(&c, IBV_WR_RDMA_WRITE, key, first - 1, 1),
			IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(
			remote_op(&c, IBV_WR_RDMA_WRITE, key, first + 1, 4096),
			IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(nic_mr_dereg(mr), 0);
	}
	conn_release(&c);
}

static void domains_are_separate(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_mr_attr attr = {.length = 4096, .access = END_ACCESS};
	struct nic_pd *other;
	struct nic_mr *mr;
	struct end foreign;

	conn_init(&c, IBV_MTU_256);
	attr.addr = b->mem;
	attr.iova = (uintptr_t)b->mem;
	assert_int_equal(nic_pd_create(b->nic, &other), 0);
	assert_int_equal(nic_mr_reg(other, &attr, &mr), 0);
	assert_int_equal(
		remote_op(&c, IBV_WR_RDMA_READ, nic_mr_key(mr), attr.iova, 8),
		IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(b, NIC_C_deny_pd), 1);
	/* Nor for local bytes: b sends out of the other domain. */
	foreign = *b;
	foreign.key = nic_mr_key(mr);
	assert_int_equal(post(&foreign, a, IBV_WR_RDMA_WRITE, 5, 0, 8), 0);
	pair_run(&c.p);
	expect_cqe(b->scq, 5, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(nic_pd_destroy(other), -EBUSY);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(nic_pd_destroy(other), 0);
	conn_release(&c);
}

static void rereg_changes_the_key(void **state)
{
	struct conn c;
	struct end *b = &c.e[1];
	struct nic_mr_attr attr = {.length = 4096, .access = LW | RR};
	struct nic_mr_attr next = {.length = 64, .access = LW | RW};
	struct nic_mr_attr bad = {.length = 64, .access = RW};
	struct nic_pd *other;
	struct nic_mr *mr;
	uint32_t old, key;

	conn_init(&c, IBV_MTU_256);
	attr.addr = b->mem;
	attr.iova = (uintptr_t)b->mem;
	next.addr = b->mem + 4096;
	next.iova = attr.iova + 4096;
	assert_int_equal(nic_mr_reg(b->pd, &attr, &mr), 0);
	old = nic_mr_key(mr);
	/* A failure leaves everything as it was. */
	assert_int_equal(
		nic_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, &bad),
		-EINVAL);
	assert_int_equal(nic_mr_key(mr), old);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_READ, old, attr.iova, 8),
			 IBV_WC_SUCCESS);

	assert_int_equal(
		nic_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, &next), 0);
	/* Other rights for the same memory keep the key: programs give it to
	 * their peers before. */
	key = nic_mr_key(mr);
	assert_int_equal(key, old);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_READ, key, attr.iova, 8),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(b, NIC_C_deny_access), 1);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_WRITE, key, attr.iova, 8),
			 IBV_WC_SUCCESS);

	assert_int_equal(
		nic_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &next),
		0);
	key = nic_mr_key(mr);
	assert_int_not_equal(key >> 8, old >> 8);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_WRITE, old, attr.iova, 8),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(b, NIC_C_deny_key), 1);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_WRITE, key, next.iova, 64),
			 IBV_WC_SUCCESS);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_WRITE, key, attr.iova, 8),
			 IBV_WC_REM_ACCESS_ERR);

	assert_int_equal(nic_pd_create(b->nic, &other), 0);
	assert_int_equal(nic_mr_rereg(mr, IBV_REREG_MR_CHANGE_PD, other, NULL),
			 0);
	assert_int_equal(
		remote_op(&c, IBV_WR_RDMA_WRITE, nic_mr_key(mr), next.iova, 8),
		IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(b, NIC_C_deny_pd), 1);
	assert_int_equal(nic_pd_destroy(other), -EBUSY);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(nic_pd_destroy(other), 0);
	conn_release(&c);
}

/* ---- device memory --------------------------------------------------------
 */

static void device_memory_is_bounded(void **state)
{
	struct conn c;
	struct nic *nic;
	struct nic_dm *dm, *more;
	struct nic_mr *mr;
	uint64_t word = 0x1122334455667788, back = 0;

	conn_init(&c, IBV_MTU_256);
	nic = c.e[1].nic;
	assert_int_equal(nic_dm_alloc(nic, 0, 0, &dm), -EINVAL);
	assert_int_equal(nic_dm_alloc(nic, 64, 13, &dm), -EINVAL);
	assert_int_equal(nic_dm_alloc(nic, 64, UINT32_MAX, &dm), -EINVAL);
	assert_int_equal(nic_dm_alloc(nic, UINT64_MAX, 0, &dm), -ENOMEM);
	assert_int_equal(nic_dm_alloc(nic, nic_dm_size_max(nic), 12, &dm), 0);
	assert_int_equal(nic_dm_alloc(nic, 4, 0, &more), -ENOMEM);
	assert_int_equal(nic_dm_free(dm), 0);
	assert_int_equal(nic_dm_alloc(nic, 4096, 3, &dm), 0);

	assert_int_equal(nic_dm_write(dm, 4088, &word, 8), 0);
	assert_int_equal(nic_dm_read(dm, 4088, &back, 8), 0);
	assert_int_equal(back, word);
	assert_int_equal(nic_dm_write(dm, 4092, &word, 8), -EINVAL);
	assert_int_equal(nic_dm_write(dm, UINT64_MAX - 3, &word, 8), -EINVAL);
	assert_int_equal(nic_dm_write(dm, 2, &word, 4), -EINVAL);
	assert_int_equal(nic_dm_read(dm, 0, &back, 3), -EINVAL);

	assert_int_equal(nic_mr_reg_dm(c.e[1].pd, dm, 0, 64, LW, &mr), -EINVAL);
	assert_int_equal(nic_mr_reg_dm(c.e[1].pd, dm, 4096, 4,
				       LW | IBV_ACCESS_ZERO_BASED, &mr),
			 -EINVAL);
	assert_int_equal(nic_mr_reg_dm(c.e[1].pd, dm, UINT64_MAX - 3, 8,
				       LW | IBV_ACCESS_ZERO_BASED, &mr),
			 -EINVAL);
	assert_int_equal(nic_mr_reg_dm(c.e[1].pd, dm, 4032, 64,
				       LW | RR | IBV_ACCESS_ZERO_BASED, &mr),
			 0);
	assert_int_equal(nic_dm_free(dm), -EBUSY);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_READ, nic_mr_key(mr), 56, 8),
			 IBV_WC_SUCCESS);
	assert_memory_equal(c.e[0].mem, &word, 8);
	assert_int_equal(remote_op(&c, IBV_WR_RDMA_READ, nic_mr_key(mr), 60, 8),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(nic_dm_free(dm), 0);
	conn_release(&c);
}

/* ---- the direct port ------------------------------------------------------
 */

static void direct_grants_follow_the_responder(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_mr_attr attr = {.length = 4096, .iova = 4096}, got;
	struct ibv_qp_attr rights = {.qp_access_flags = RR};
	uint32_t local, remote, key;
	struct nic_pd *other;
	struct nic_mr *mr;
	struct nic_mw *mw;

	conn_init(&c, IBV_MTU_256);
	local = nic_qp_number(b->qp);
	remote = nic_qp_number(a->qp);
	attr.addr = b->mem;
	attr.access = LW | RR | RW;
	assert_int_equal(nic_mr_reg(b->pd, &attr, &mr), 0);
	key = nic_mr_key(mr);
	assert_int_equal(nic_direct_grant(b->nic, local, remote, key, &got), 0);
	assert_ptr_equal(got.addr, b->mem);
	assert_int_equal(got.length, 4096);
	assert_int_equal(got.iova, 4096);
	assert_int_equal(got.access & (RR | RW | RA), RR | RW);
	/* The queue pair's rights limit the key's. */
	assert_int_equal(nic_qp_modify(b->qp, &rights, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(nic_direct_grant(b->nic, local, remote, key, &got), 0);
	assert_int_equal(got.access & (RR | RW | RA), RR);

	assert_int_equal(nic_direct_grant(b->nic, local ^ 1, remote, key, &got),
			 -EACCES);
	assert_int_equal(nic_direct_grant(b->nic, local, remote ^ 1, key, &got),
			 -EACCES);
	assert_int_equal(nic_direct_grant(b->nic, local, remote, key ^ 1, &got),
			 -EACCES);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_1, &mw), 0);
	assert_int_equal(
		nic_direct_grant(b->nic, local, remote, nic_mw_key(mw), &got),
		-EACCES);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(nic_direct_grant(b->nic, local, remote, key, &got),
			 -EACCES);
	assert_int_equal(nic_pd_create(b->nic, &other), 0);
	assert_int_equal(nic_mr_reg(other, &attr, &mr), 0);
	assert_int_equal(
		nic_direct_grant(b->nic, local, remote, nic_mr_key(mr), &got),
		-EACCES);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(nic_pd_destroy(other), 0);
	qp_to(b->qp, IBV_QPS_ERR);
	assert_int_equal(nic_direct_grant(b->nic, local, remote, b->key, &got),
			 -EACCES);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_agrees_with_a_list),
		cmocka_unit_test(reserved_values_are_not_given_out),
		cmocka_unit_test(keys_are_random_in_every_bit),
		cmocka_unit_test(registration_is_validated),
		cmocka_unit_test(each_right_opens_one_operation),
		cmocka_unit_test(addresses_are_those_of_the_region),
		cmocka_unit_test(domains_are_separate),
		cmocka_unit_test(rereg_changes_the_key),
		cmocka_unit_test(device_memory_is_bounded),
		cmocka_unit_test(direct_grants_follow_the_responder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
