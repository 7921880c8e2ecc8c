/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads on one context: each with its own pair, all on one pair, and
 * objects that come and go meanwhile. Meant to be run under TSan too. */
#include "verbs_pair.h"

#include <pthread.h>

enum {
	WORKERS = 3,
	OPS = 2000,
	ROUNDS = 200,
};

struct worker {
	pthread_t thread;
	struct pair pair; /* shares the context */
	struct pair *shared;
	unsigned done;
};

/* cmocka's asserts belong to the main thread. */
static bool write_one(struct side *from, struct side *to, unsigned i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from->buf,
			      .length = 64,
			      .lkey = from->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)to->buf,
			    .rkey = to->mr->rkey},
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(from->qp, &wr, &bad) == 0;
}

static bool reap_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n == 0)
			sched_yield();
	} while (n == 0);
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

static void *work_alone(void *arg)
{
	struct worker *w = arg;
	unsigned i;

	for (i = 0; i < OPS; i++)
		if (write_one(&w->pair.a, &w->pair.b, i) &&
		    reap_one(w->pair.a.cq))
			w->done++;
	return NULL;
}

/* Who reaps whose completion is left to chance; the sum counts. */
static void *work_together(void *arg)
{
	struct worker *w = arg;
	unsigned i;

	for (i = 0; i < OPS; i++)
		if (write_one(&w->shared->a, &w->shared->b, i) &&
		    reap_one(w->shared->a.cq))
			w->done++;
	return NULL;
}

static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	struct ibv_pd *pd = w->pair.pd;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
	};
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq =
			ibv_create_cq(pd->context, 4, NULL, NULL, 0);
		struct ibv_mr *mr = ibv_reg_mr(pd, w->pair.a.buf, 4096, 0);
		struct ibv_qp *qp;

		init.send_cq = init.recv_cq = cq;
		qp = ibv_create_qp(pd, &init);
		if (qp && mr && !ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) &&
		    !ibv_destroy_cq(cq))
			w->done++;
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct worker w[2 * WORKERS + 1] = {0};
	struct pair shared = {0};
	unsigned i;

	pair_open(&shared);
	pair_make(&shared, IBV_QPT_RC, 0);
	for (i = 0; i < ARRAY_LEN(w); i++) {
		w[i].shared = &shared;
		w[i].pair.ctx = shared.ctx;
		pair_make(&w[i].pair, IBV_QPT_RC, 0);
	}
	for (i = 0; i < ARRAY_LEN(w); i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL,
						i < WORKERS ? work_alone
						: i < 2 * WORKERS
							? work_together
							: come_and_go,
						&w[i]),
				 0);
	for (i = 0; i < ARRAY_LEN(w); i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].done, i < 2 * WORKERS ? OPS : ROUNDS);
		pair_break(&w[i].pair);
	}
	pair_break(&shared);
	pair_close(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
