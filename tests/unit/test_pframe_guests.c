/* SPDX-License-Identifier: Apache-2.0 */
/* Several connections work on one client's pages, and a stranger's space has
 * its pages in the same page frames: nobody keeps a way to what is given
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above. */
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "guest_rig.h"

enum {
	THIEF,
	OWNER,
	A = 0, /* connections of one tenant */
	B = 1,
};

static uint8_t page[RIG_BYTES];

static void start(struct rig *r, uint64_t pframes, bool thief_has_pieces)
{
	rig_start(r, pframes);
	assert_int_equal(rig_space(r, THIEF, thief_has_pieces), 0);
	assert_int_equal(rig_space(r, OWNER, false), 0);
	for (unsigned i = 0; i < RIG_CONNS; i++)
		assert_int_equal(rig_open(r, THIEF, i), 0);
	assert_int_equal(rig_open(r, OWNER, A), 0);
}

static int store(struct rig *r, unsigned tenant, unsigned at, uint64_t index,
		 unsigned value)
{
	rig_fill(page, tenant, value);
	return rig_call(r, tenant, at, PAGE_WIRE_STORE, index, page);
}

static void expect_owners(struct rig *r, uint64_t index, unsigned value)
{
	struct rig_conn *c = &r->tenant[OWNER].conn[A];
	const uint8_t *got = rig_answer(c);

	assert_int_equal(rig_call(r, OWNER, A, PAGE_WIRE_LOAD, index, NULL),
			 PAGE_WIRE_OK);
	rig_fill(page, OWNER, value);
	assert_memory_equal(got, page, RIG_BYTES);
}

static struct page_piece allocate(struct rig *r, unsigned at, uint64_t index)
{
	const struct page_piece *p =
		(const void *)rig_answer(&r->tenant[THIEF].conn[at]);

	assert_int_equal(
		rig_call(r, THIEF, at, PAGE_WIRE_ALLOCATE, index, NULL),
		PAGE_WIRE_OK);
	return *p;
}

static void a_piece_that_is_given_back_has_no_key_left(void **state)
{
	struct page_piece a, b;
	struct rig r;

	start(&r, 1, true);
	a = allocate(&r, A, 0);
	b = allocate(&r, B, 0);
	assert_int_equal(be32_get(a.rkey), be32_get(b.rkey));
	/* The page frame has something in it, of which the next sees
	 * nothing. */
	rig_fill(page, THIEF, 7);
	assert_int_equal(rig_use(&r, THIEF, IBV_WR_RDMA_WRITE, page,
				 be64_get(a.addr), be32_get(a.rkey)),
			 0);
	assert_int_equal(rig_call(&r, THIEF, A, PAGE_WIRE_FREE, 0, NULL),
			 PAGE_WIRE_OK);
	for (unsigned i = 0; i < RIG_BYTES; i++)
		assert_int_equal(r.pool->pframes[i], 0);
	assert_int_equal(store(&r, OWNER, A, 2, 9), PAGE_WIRE_OK);
	memset(page, 0, RIG_BYTES);
	assert_int_not_equal(rig_use(&r, THIEF, IBV_WR_RDMA_READ, page,
				     be64_get(b.addr), be32_get(b.rkey)),
			     0);
	assert_true(rig_is_own(page, THIEF));
	expect_owners(&r, 2, 9);
	rig_stop(&r);
}

static void a_key_outlives_the_guest_that_asked_for_it(void **state)
{
	struct page_piece a;
	struct rig r;

	start(&r, 2, true);
	a = allocate(&r, A, 3);
	rig_close(&r, THIEF, A);
	rig_fill(page, THIEF, 1);
	assert_int_equal(rig_use(&r, THIEF, IBV_WR_RDMA_WRITE, page,
				 be64_get(a.addr), be32_get(a.rkey)),
			 0);
	assert_int_equal(rig_call(&r, THIEF, B, PAGE_WIRE_FREE, 3, NULL),
			 PAGE_WIRE_OK);
	assert_int_equal(pframe_pool_free(r.pool), 2);
	assert_int_not_equal(rig_use(&r, THIEF, IBV_WR_RDMA_WRITE, page,
				     be64_get(a.addr), be32_get(a.rkey)),
			     0);
	rig_stop(&r);
}

/* A's load finds no receive, so the node reads the page frame again and
 * again. */
static void load_without_receive(struct rig *r, const uint8_t **where)
{
	struct rig_conn *a = &r->tenant[THIEF].conn[A];

	assert_int_equal(store(r, THIEF, B, 0, 5), PAGE_WIRE_OK);
	*where = rig_answer(a);
	rig_ask(a, PAGE_WIRE_LOAD, 0, NULL);
	rig_run(r);
}

static void a_page_frame_waits_for_answers_of_all_guests(void **state)
{
	const uint8_t *got;
	struct rig r;

	start(&r, 1, false);
	load_without_receive(&r, &got);
	assert_int_equal(rig_call(&r, THIEF, B, PAGE_WIRE_INVALIDATE, 0, NULL),
			 -1);
	assert_int_equal(pframe_pool_free(r.pool), 0);
	assert_int_equal(pframe_space_used(r.tenant[THIEF].space), 1);
	/* Others wait for the page frame, and only for that. */
	assert_int_equal(store(&r, OWNER, A, 1, 3), PAGE_WIRE_NO_SPACE);
	rig_receive(&r.tenant[THIEF].conn[A]);
	rig_run(&r);
	rig_fill(page, THIEF, 5);
	assert_memory_equal(got, page, RIG_BYTES);
	assert_int_equal(r.tenant[THIEF].conn[B].last >> PAGE_WIRE_TAG_BITS,
			 PAGE_WIRE_OK);
	assert_int_equal(pframe_space_used(r.tenant[THIEF].space), 0);
	assert_int_equal(store(&r, OWNER, A, 1, 3), PAGE_WIRE_OK);
	expect_owners(&r, 1, 3);
	rig_stop(&r);
}

static void a_guest_that_goes_settles_its_answers(void **state)
{
	const uint8_t *got;
	struct rig r;

	start(&r, 1, false);
	load_without_receive(&r, &got);
	assert_int_equal(rig_call(&r, THIEF, B, PAGE_WIRE_INVALIDATE, 0, NULL),
			 -1);
	rig_close(&r, THIEF, A);
	rig_run(&r);
	assert_int_equal(r.tenant[THIEF].conn[B].last >> PAGE_WIRE_TAG_BITS,
			 PAGE_WIRE_OK);
	assert_int_equal(pframe_pool_free(r.pool), 1);
	rig_stop(&r);
}

static void a_page_frame_waits_even_if_who_gave_it_back_is_gone(void **state)
{
	const uint8_t *got;
	struct rig r;

	start(&r, 1, false);
	load_without_receive(&r, &got);
	assert_int_equal(rig_call(&r, THIEF, B, PAGE_WIRE_INVALIDATE, 0, NULL),
			 -1);
	rig_close(&r, THIEF, B);
	rig_run(&r);
	assert_int_equal(pframe_pool_free(r.pool), 0);
	rig_receive(&r.tenant[THIEF].conn[A]);
	rig_run(&r);
	assert_int_equal(pframe_pool_free(r.pool), 1);
	rig_stop(&r);
}

/* Loads that follow each other without a gap: what is given back waits for
 * those before it, not for those behind it. */
static void page_frames_leave_while_loads_go_on(void **state)
{
	struct rig_conn *a, *b;
	struct rig r;

	start(&r, 4, false);
	a = &r.tenant[THIEF].conn[A];
	b = &r.tenant[THIEF].conn[B];
	assert_int_equal(store(&r, THIEF, B, 0, 5), PAGE_WIRE_OK);
	assert_int_equal(store(&r, THIEF, B, 1, 6), PAGE_WIRE_OK);
	rig_ask(a, PAGE_WIRE_LOAD, 1, NULL);
	rig_run(&r);
	rig_receive(b);
	rig_ask(b, PAGE_WIRE_INVALIDATE, 0, NULL);
	rig_run(&r);
	assert_int_equal(pframe_pool_free(r.pool), 2);
	/* One more is under way before the first is taken. */
	rig_ask(a, PAGE_WIRE_LOAD, 1, NULL);
	rig_run(&r);
	rig_receive(a);
	rig_run(&r);
	assert_int_equal(pframe_pool_free(r.pool), 3);
	rig_stop(&r);
}

static void chains_and_guests_do_not_mix(void **state)
{
	struct pframe_chain *chain = NULL;
	struct pframe_guest *guest = NULL;
	struct pframe_space *space;
	struct ibv_pd *pd;
	struct rig r;

	start(&r, 2, false);
	pd = ibv_alloc_pd(r.ctx);
	space = r.tenant[OWNER].space;
	assert_int_equal(
		pframe_chain_create(space, pd, PAGE_CHAIN_LOAD, 0, &chain),
		-EBUSY);
	rig_close(&r, OWNER, A);
	assert_int_equal(
		pframe_chain_create(space, pd, PAGE_CHAIN_LOAD, 0, &chain), 0);
	assert_int_equal(pframe_guest_create(r.server, space, &guest), -EBUSY);
	assert_non_null(strstr(error_last(), "chains"));
	pframe_chain_destroy(chain);
	(void)ibv_dealloc_pd(pd);
	rig_stop(&r);
}

static void a_space_has_a_few_guests_at_most(void **state)
{
	struct pframe_guest *more[PFRAME_SPACE_GUESTS_MAX - 2], *guest = NULL;
	struct pframe_space *space;
	struct rig r;

	start(&r, 2, false); /* with two */
	space = r.tenant[THIEF].space;
	for (unsigned i = 0; i < ARRAY_LEN(more); i++)
		assert_int_equal(pframe_guest_create(r.server, space, &more[i]),
				 0);
	assert_int_equal(pframe_guest_create(r.server, space, &guest), -EAGAIN);
	for (unsigned i = 0; i < ARRAY_LEN(more); i++)
		pframe_guest_destroy(more[i]);
	rig_stop(&r);
}

/* More often than there are lines, while the server does not run. */
static void guests_that_come_and_go_use_nothing_up(void **state)
{
	struct rig r;

	start(&r, 2, false);
	rig_close(&r, OWNER, A);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(rig_open(&r, OWNER, A), 0);
		rig_close(&r, OWNER, A);
	}
	assert_int_equal(rig_open(&r, OWNER, A), 0);
	assert_int_equal(store(&r, OWNER, A, 0, 1), PAGE_WIRE_OK);
	expect_owners(&r, 0, 1);
	rig_stop(&r);
}

/* A tenant with more requests than it can be answered, and one with one. */
static void a_flood_delays_others_by_one_turn(void **state)
{
	struct rig_conn *c;
	struct rig r;

	start(&r, 4, false);
	assert_int_equal(store(&r, OWNER, A, 0, 1), PAGE_WIRE_OK);
	for (unsigned at = A; at <= B; at++)
		for (unsigned i = 0; i < RIG_DEPTH; i++) {
			rig_receive(&r.tenant[THIEF].conn[at]);
			rig_ask(&r.tenant[THIEF].conn[at], PAGE_WIRE_LOAD, 3,
				NULL);
		}
	c = &r.tenant[OWNER].conn[A];
	rig_receive(c);
	rig_ask(c, PAGE_WIRE_LOAD, 0, NULL);
	/* All have arrived; one look at the lines answers the owner, though
	 * the flood came first and is not done. */
	for (unsigned i = 0; i < 4; i++)
		(void)ibv_poll_cq(r.cq, 0, NULL);
	assert_in_range(pframe_server_step(r.server), 2, 5);
	assert_int_equal(r.tenant[OWNER].space->loads[0] +
				 r.tenant[OWNER].space->loads[1],
			 1);
	rig_run(&r);
	expect_owners(&r, 0, 1);
	rig_stop(&r);
}

static void page_frames_are_withdrawn_as_they_become_free(void **state)
{
	uint64_t held[3];
	struct pframe_pool *p;

	assert_int_equal(
		pframe_pool_reserve(16 * RIG_BYTES, RIG_BYTES, false, &p), 0);
	assert_int_equal(pframe_pool_pop(p), 0); /* there are only addresses */
	assert_int_equal(pframe_pool_add(p, 4), 4);
	for (unsigned i = 0; i < ARRAY_LEN(held); i++) {
		held[i] = pframe_pool_pop(p);
		memset((void *)(uintptr_t)held[i], 0xff, RIG_BYTES);
	}
	pframe_pool_withdraw(p, 4);
	assert_int_equal(pframe_pool_count(p), 3);
	assert_int_equal(pframe_pool_owed(p), 3);
	/* Who comes now has what was to go. */
	assert_int_equal(pframe_pool_add(p, 1), 1);
	assert_int_equal(pframe_pool_count(p), 3);
	for (unsigned i = 0; i < ARRAY_LEN(held); i++)
		pframe_pool_push(p, held[i]);
	pframe_pool_withdraw(p, 0);
	assert_int_equal(pframe_pool_count(p), 1);
	pframe_pool_withdraw(p, 1);
	assert_int_equal(pframe_pool_count(p), 0);
	assert_int_equal(pframe_pool_pop(p), 0);
	/* Never more than there are addresses; and nothing is left in them. */
	assert_int_equal(pframe_pool_add(p, 100), 16);
	assert_int_equal(pframe_pool_free(p), 16);
	for (unsigned i = 0; i < 16 * RIG_BYTES; i++)
		assert_int_equal(p->pframes[i], 0);
	pframe_pool_destroy(p);
}

static unsigned calls; /* that gave memory back */

int madvise(void *addr, size_t length, int advice)
{
	calls++;
	return (int)syscall(SYS_madvise, addr, length, advice);
}

/* Programs wait for it when they end: neighbours go by one call, in whatever
 * order they were used. */
static void neighbours_go_together(void **state)
{
	enum {
		FRAMES = 64,
		BYTES = 4096,
		STRIDE = 37
	};
	uint64_t held[FRAMES];
	struct pframe_pool *p;

	assert_int_equal(pframe_pool_create(FRAMES * BYTES, BYTES, &p), 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		held[i] = pframe_pool_pop(p);
		memset((void *)(uintptr_t)held[i], 0xff, BYTES);
	}
	for (unsigned i = 0; i < FRAMES; i++)
		pframe_pool_push(p, held[i * STRIDE % FRAMES]);
	calls = 0;
	pframe_pool_withdraw(p, FRAMES - 1);
	assert_in_range(calls, 1, 2);
	pframe_pool_withdraw(p, 1);
	assert_in_range(calls, 2, 3);
	assert_int_equal(pframe_pool_add(p, FRAMES), FRAMES);
	for (unsigned i = 0; i < FRAMES * BYTES; i++)
		assert_int_equal(p->pframes[i], 0);
	pframe_pool_destroy(p);
}

/* A client asks again as soon as it has an answer, before the node has heard
 * that the answer came. Its NIC was once told to wait then. */
static void asking_again_at_once_does_not_wait(void **state)
{
	struct rig_conn *c;
	struct ibv_wc wc;
	struct rig r;
	struct nic *nic;
	uint64_t before;

	start(&r, 4, false);
	c = &r.tenant[OWNER].conn[A];
	nic = verbs_host(r.ctx)->nic;
	for (unsigned i = 0; i < 3 * RIG_DEPTH; i++)
		rig_receive(c);
	before = nic_counter_get(nic, NIC_C_rnr_naks_sent);
	for (unsigned i = 0; i < RIG_DEPTH; i++)
		rig_ask(c, PAGE_WIRE_LOAD, 0, NULL);
	while (c->answers < RIG_DEPTH) {
		(void)pframe_server_step(r.server);
		while (ibv_poll_cq(r.cq, 1, &wc) > 0) {
			uint32_t had = c->answers;

			rig_take(&r, &wc);
			if (c->answers > had)
				rig_ask(c, PAGE_WIRE_LOAD, 0, NULL);
		}
	}
	assert_int_equal(nic_counter_get(nic, NIC_C_rnr_naks_sent), before);
	rig_run(&r);
	assert_int_equal(c->answers, 2 * RIG_DEPTH);
	rig_stop(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_that_is_given_back_has_no_key_left),
		cmocka_unit_test(a_key_outlives_the_guest_that_asked_for_it),
		cmocka_unit_test(a_page_frame_waits_for_answers_of_all_guests),
		cmocka_unit_test(a_guest_that_goes_settles_its_answers),
		cmocka_unit_test(
			a_page_frame_waits_even_if_who_gave_it_back_is_gone),
		cmocka_unit_test(page_frames_leave_while_loads_go_on),
		cmocka_unit_test(chains_and_guests_do_not_mix),
		cmocka_unit_test(a_space_has_a_few_guests_at_most),
		cmocka_unit_test(page_frames_are_withdrawn_as_they_become_free),
		cmocka_unit_test(neighbours_go_together),
		cmocka_unit_test(guests_that_come_and_go_use_nothing_up),
		cmocka_unit_test(a_flood_delays_others_by_one_turn),
		cmocka_unit_test(asking_again_at_once_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
