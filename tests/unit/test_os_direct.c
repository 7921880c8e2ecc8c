/* SPDX-License-Identifier: Apache-2.0 */
/* The direct port: who gets a mapping, what it does, and every way to take it
 * back: key by key, by truncation, under a running operation. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/os_priv.h"
#include "os/pages.h"
#include "os_end.h"

struct fixture {
	struct nic_host *host[2];
	struct end end[2]; /* 0 uses the memory of 1 */
};

static void fixture_init(struct fixture *f, enum end_memory memory)
{
	struct os_config cfg;

	test_config(&cfg);
	for (unsigned i = 0; i < 2; i++) {
		f->host[i] = test_host(&cfg);
		end_init(&f->end[i], f->host[i], i ? memory : END_PLAIN);
	}
	end_connect(&f->end[0], &f->end[1].card);
	end_connect(&f->end[1], &f->end[0].card);
}

static void fixture_release(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++) {
		end_release(&f->end[i]);
		f->host[i]->ops->close(f->host[i]);
	}
}

static uint64_t direct_ops(struct fixture *f)
{
	return nic_counter_get(f->host[0]->nic, NIC_C_direct_ops);
}

/* Reads until one goes over the mapping; false: none does. */
static bool become_direct(struct fixture *f)
{
	uint64_t before = direct_ops(f);

	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(end_do(&f->end[0], &f->end[1].card,
					IBV_WR_RDMA_READ, 0, 8),
				 0);
		if (direct_ops(f) > before)
			return true;
		test_sleep_ms(1);
	}
	return false;
}

static void test_operations(void **state)
{
	struct fixture f;
	struct end *a = &f.end[0], *b = &f.end[1];
	uint64_t before;

	fixture_init(&f, END_GRANT);
	assert_true(become_direct(&f));
	before = direct_ops(&f);
	for (uint32_t len = 1; len < 2000; len += 7) {
		uint32_t at = len % 13;

		for (uint32_t i = 0; i < len; i++)
			a->mem[at + i] = (uint8_t)(i * 5 + len);
		assert_int_equal(
			end_do(a, &b->card, IBV_WR_RDMA_WRITE, at, len), 0);
		assert_memory_equal(a->mem + at, b->mem + at, len);
		memset(a->mem, 0, 2100);
		assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_READ, at, len),
				 0);
		assert_memory_equal(a->mem + at, b->mem + at, len);
	}
	b->mem[4096] = 1;
	assert_int_equal(
		end_do(a, &b->card, IBV_WR_ATOMIC_FETCH_AND_ADD, 4096, 8), 0);
	assert_int_equal(b->mem[4096], 2);
	assert_int_equal(a->mem[4096], 1);
	b->mem[4096] = 1;
	assert_int_equal(
		end_do(a, &b->card, IBV_WR_ATOMIC_CMP_AND_SWP, 4096, 8), 0);
	assert_int_equal(b->mem[4096], 7);
	assert_true(direct_ops(&f) >= before + 2 * 285 + 2);
	assert_int_equal(test_stats(f.host[0]).direct_maps, 1);
	assert_int_equal(test_stats(f.host[1]).direct_grants, 1);
	/* Out of bounds goes the long way, to be refused by the owner. */
	assert_int_equal(
		end_do(a, &b->card, IBV_WR_RDMA_READ, END_BYTES - 4, 4), 0);
	a->card.addr = 0;
	end_post(a,
		 &(struct end_card){b->card.qpn,
				    b->card.rkey,
				    b->card.addr + END_BYTES,
				    {0}},
		 IBV_WR_RDMA_READ, 0, 8);
	assert_int_equal(end_wait(a, true, 2000), IBV_WC_REM_ACCESS_ERR);
	fixture_release(&f);
}

static void test_plain_memory_is_refused(void **state)
{
	struct fixture f;

	fixture_init(&f, END_PLAIN);
	assert_false(become_direct(&f));
	assert_int_equal(direct_ops(&f), 0);
	/* Asked once, not two hundred times. */
	assert_int_equal(test_stats(f.host[1]).direct_denials, 1);
	fixture_release(&f);
}

static void test_read_only(void **state)
{
	struct fixture f;
	struct end *a = &f.end[0], *b = &f.end[1];

	fixture_init(&f, END_GRANT_READ_ONLY);
	b->mem[3] = 9; /* the owner still writes */
	end_sync(b);
	assert_true(become_direct(&f));
	assert_int_equal(a->mem[3], 9);
	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_WRITE, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	fixture_release(&f);
}

static void test_dereg_takes_back(void **state)
{
	struct fixture f;
	struct end *a = &f.end[0], *b = &f.end[1];
	uint64_t before;
	struct nic_host *host;

	fixture_init(&f, END_GRANT);
	host = f.host[1];
	assert_int_equal(host->ops->grant_private(host, b->mem), 1);
	assert_true(become_direct(&f));
	/* And stays so: the peer has its descriptor. */
	assert_int_equal(host->ops->grant_private(host, b->mem), 0);
	before = direct_ops(&f);
	lock_take(&b->host->lock);
	assert_int_equal(nic_mr_dereg(b->mr), 0);
	lock_drop(&b->host->lock);
	b->mr = NULL;
	assert_int_equal(host->ops->grant_private(host, b->mem), 0);
	assert_int_equal(test_stats(f.host[1]).direct_revokes, 1);
	/* As with frames: no such key. */
	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_READ, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(direct_ops(&f), before);
	fixture_release(&f);
}

static void test_free_takes_back(void **state)
{
	struct fixture f;
	struct end *a = &f.end[0], *b = &f.end[1];

	fixture_init(&f, END_GRANT);
	assert_true(become_direct(&f));
	lock_take(&b->host->lock);
	assert_int_equal(nic_mr_dereg(b->mr), 0);
	lock_drop(&b->host->lock);
	b->mr = NULL;
	assert_int_equal(f.host[1]->ops->grant_free(f.host[1], b->mem), 0);
	assert_int_equal(f.host[1]->ops->grant_free(f.host[1], b->mem),
			 -EINVAL);
	b->mem = NULL;
	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_READ, 0, 8),
			 IBV_WC_REM_ACCESS_ERR);
	fixture_release(&f);
}

/* Two grants, keys of both, frees in odd order: lookup stays right. */
static void test_many_grants(void **state)
{
	enum {
		COUNT = 50,
	};
	struct os_config cfg;
	struct nic_host *host;
	void *p[COUNT];

	test_config(&cfg);
	host = test_host(&cfg);
	assert_int_equal(host->ops->grant_alloc(host, 0, 0, &p[0]), -EINVAL);
	assert_int_equal(host->ops->grant_alloc(host, 1, 8, &p[0]), -EINVAL);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(
			host->ops->grant_alloc(host, 1 + 1000 * i, 0, &p[i]),
			0);
		memset(p[i], 1, 1 + 1000 * i);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		unsigned at = i * 7 % COUNT;

		assert_int_equal(host->ops->grant_free(host, p[at]), 0);
		assert_int_equal(host->ops->grant_free(host, p[at]), -EINVAL);
	}
	host->ops->close(host);
}

static void expect_used(struct nic_host *host, void *addr, uint64_t want)
{
	uint64_t used = 1;

	assert_int_equal(host->ops->grant_used(host, addr, &used), 0);
	assert_int_equal(used, want);
}

/* A sparse grant costs what is touched, and is not for peers to enlarge. */
static void test_sparse_grant(void **state)
{
	enum {
		PAGES = 1024,
		PAGE = 4096,
	};
	struct os_config cfg;
	struct nic_host *host;
	const struct grant *g;
	uint64_t used;
	uint8_t *bytes;
	void *p, *full;

	test_config(&cfg);
	host = test_host(&cfg);
	assert_int_equal(
		host->ops->grant_alloc(
			host, PAGE, NIC_GRANT_SPARSE | NIC_GRANT_READ_ONLY, &p),
		-EINVAL);
	assert_int_equal(host->ops->grant_alloc(host, PAGES * PAGE,
						NIC_GRANT_SPARSE, &p),
			 0);
	assert_int_equal(host->ops->grant_alloc(host, PAGE, 0, &full), 0);
	expect_used(host, full, PAGE);
	expect_used(host, p, 0);
	bytes = p;
	bytes[0] = bytes[PAGE * 1000] = bytes[PAGE * 1000 + 1] = 1;
	expect_used(host, p, 2 * PAGE);
	assert_int_equal(madvise(bytes + PAGE * 1000, PAGE, MADV_REMOVE), 0);
	expect_used(host, p, PAGE);
	assert_int_equal(bytes[PAGE * 1000], 0);
	g = &host_of(host)->grants.grants[0];
	g = g->addr == p ? g : g + 1;
	assert_int_equal(ftruncate(g->peer_fd, (PAGES + 1) * PAGE), -1);
	assert_int_equal(fcntl(g->peer_fd, F_ADD_SEALS, F_SEAL_SHRINK), -1);
	assert_int_equal(host->ops->grant_free(host, p), 0);
	assert_int_equal(host->ops->grant_used(host, p, &used), -EINVAL);
	assert_int_equal(host->ops->grant_free(host, full), 0);
	host->ops->close(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_plain_memory_is_refused),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_dereg_takes_back),
		cmocka_unit_test(test_free_takes_back),
		cmocka_unit_test(test_many_grants),
		cmocka_unit_test(test_sparse_grant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
