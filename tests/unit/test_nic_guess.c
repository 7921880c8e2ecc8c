/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that guesses keys. Every guess costs it its connection, eight of them
 * a second of silence for new ones, and nothing outside the rights of a live
 * key is ever read or written. AQUIFER_GUESSES sets how many guesses are made.
 */
#include <stdio.h>

#include "nic_peer.h"

enum {
	GUESSES = 200000,
	REGIONS = 64,
	REGION_BYTES = 4096,
	GAP_BYTES = 4096, /* between regions: no key opens it */
	ARENA_BYTES = REGIONS * (REGION_BYTES + GAP_BYTES),
};

/* Every third region may be read, written, or neither. */
static int region_access(unsigned i)
{
	static const int access[] = {
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};

	return access[i % 3];
}

struct target {
	struct conn c;
	uint8_t *arena;
	struct nic_mr *mr[REGIONS];
};

static void target_init(struct target *t)
{
	struct end *b = &t->c.e[1];
	unsigned i;

	begin(&t->c);
	t->arena = malloc(ARENA_BYTES);
	assert_non_null(t->arena);
	memset(t->arena, CANARY, ARENA_BYTES);
	for (i = 0; i < REGIONS; i++) {
		struct nic_mr_attr attr = {
			.addr = t->arena + i * (REGION_BYTES + GAP_BYTES),
			.length = REGION_BYTES,
			.access = region_access(i),
		};

		attr.iova = (uintptr_t)attr.addr;
		assert_int_equal(nic_mr_reg(b->pd, &attr, &t->mr[i]), 0);
	}
}

static void target_release(struct target *t)
{
	unsigned i;

	for (i = 0; i < REGIONS; i++)
		assert_int_equal(nic_mr_dereg(t->mr[i]), 0);
	free(t->arena);
	done(&t->c);
}

/* Only regions that may be written remotely may have changed. */
static void check_arena(const struct target *t)
{
	static uint8_t canaries[REGION_BYTES + GAP_BYTES];
	unsigned i;

	memset(canaries, CANARY, sizeof(canaries));
	for (i = 0; i < REGIONS; i++) {
		const uint8_t *region = t->arena + i * sizeof(canaries);

		assert_memory_equal(region + REGION_BYTES, canaries, GAP_BYTES);
		if (!(region_access(i) & IBV_ACCESS_REMOTE_WRITE))
			assert_memory_equal(region, canaries, REGION_BYTES);
	}
	assert_untouched(&t->c.e[1]);
}

/* Is this guess right? Then it may have had an effect. */
static bool opens(const struct target *t, const struct wire_pkt *pkt)
{
	bool write = pkt->opcode == WIRE_RC_WRITE_ONLY;
	int right = write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	unsigned i;

	if (pkt->opcode == WIRE_RC_FAA)
		return false; /* no region allows it */
	for (i = 0; i < REGIONS; i++) {
		uint64_t start = (uintptr_t)t->arena +
				 i * (uint64_t)(REGION_BYTES + GAP_BYTES);

		if (pkt->rkey == nic_mr_key(t->mr[i]))
			return (region_access(i) & right) && pkt->va >= start &&
			       pkt->va + pkt->dma_len <= start + REGION_BYTES;
	}
	return false;
}

/* A random key, sometimes a live one, so that rights and bounds are guessed at
 * too. */
static void next_guess(struct target *t, struct wire_pkt *pkt)
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_ONLY, WIRE_RC_READ_REQ,
					  WIRE_RC_FAA};
	struct rng *r = &t->c.p.rng;
	uint32_t live = nic_mr_key(t->mr[rng_below(r, REGIONS)]);

	pkt->opcode = opcodes[rng_below(r, 3)];
	pkt->payload_len = pkt->opcode == WIRE_RC_WRITE_ONLY ? 64 : 0;
	pkt->dma_len = 64;
	pkt->va = (uintptr_t)t->arena + rng_below(r, ARENA_BYTES - 64) / 8 * 8;
	pkt->rkey = (uint32_t)rng_u64(r);
	if (rng_below(r, 64) == 0)
		pkt->rkey = live ^ (uint32_t)rng_below(r, 4);
}

/* The target's application lets the guesser connect again, as a patient or a
 * careless one would. */
static void reconnect(struct target *t)
{
	struct end *b = &t->c.e[1];

	qp_to(b->qp, IBV_QPS_RESET);
	end_connect(b, &t->c.e[0], IBV_MTU_256);
	b->qp_o.event_next = b->qp_o.event_count;
}

/* One guess on a fresh connection; true: it was listened to. */
static bool guess(struct target *t, const struct wire_pkt *pkt)
{
	struct end *b = &t->c.e[1];
	uint64_t blocked = counter(b, NIC_C_drop_blocked);
	bool right = opens(t, pkt);

	inject(b, pkt);
	if (counter(b, NIC_C_drop_blocked) != blocked) {
		assert_int_equal(nic_qp_state(b->qp), IBV_QPS_RTS);
		return false;
	}
	assert_int_equal(nic_qp_state(b->qp),
			 right ? IBV_QPS_RTS : IBV_QPS_ERR);
	if (!right)
		expect_event(&b->qp_o, IBV_EVENT_QP_ACCESS_ERR);
	nic_flush(b->nic);
	t->c.p.tail = t->c.p.head;
	reconnect(t);
	return true;
}

static void guessing_opens_nothing(void **state)
{
	const char *wanted = getenv("AQUIFER_GUESSES");
	uint64_t guesses = wanted ? strtoull(wanted, NULL, 10) : GUESSES;
	uint64_t i, heard = 0, denied;
	struct wire_pkt pkt;
	struct target t;
	struct end *b = &t.c.e[1];

	assert_true(guesses >= 1000);
	target_init(&t);
	pkt = request(&t.c, WIRE_RC_WRITE_ONLY, 0, 64);
	for (i = 0; i < guesses; i++) {
		next_guess(&t, &pkt);
		if (guess(&t, &pkt))
			heard++;
		else if (rng_below(&t.c.p.rng, 4) == 0)
			t.c.p.now_ns += NIC_BLOCK_NS; /* waits and goes on */
		if (i % 10000 == 0)
			check_arena(&t);
	}
	check_arena(&t);
	denied = counter(b, NIC_C_deny_key) + counter(b, NIC_C_deny_pd);
	assert_int_equal(counter(b, NIC_C_keys_guessed), denied);
	printf("%lu guesses, %lu heard, %lu blocks\n", guesses, heard,
	       counter(b, NIC_C_sources_blocked));
	/* Eight wrong keys each, never more; others were refused otherwise. */
	assert_in_range(counter(b, NIC_C_sources_blocked),
			denied / NIC_KEY_FAILURES - 1,
			denied / NIC_KEY_FAILURES);
	assert_int_equal(heard + counter(b, NIC_C_drop_blocked), guesses);
	assert_true(counter(b, NIC_C_drop_blocked) > heard / 8);
	assert_true(counter(b, NIC_C_deny_access) > 0);
	assert_true(counter(b, NIC_C_deny_bounds) > 0);
	target_release(&t);
}

/* The block is the guesser's alone, and it ends. */
static void others_are_not_blocked(void **state)
{
	struct target t;
	struct end other, *b = &t.c.e[1];
	struct wire_pkt pkt;
	struct ibv_qp_attr av = {.ah_attr = {.is_global = 1, .port_num = 1}};
	unsigned i;

	target_init(&t);
	pkt = request(&t.c, WIRE_RC_WRITE_ONLY, 0, 64);
	for (i = 0; i < NIC_KEY_FAILURES; i++) {
		pkt.rkey = b->key ^ 0x100;
		assert_true(guess(&t, &pkt));
	}
	pkt.rkey = nic_mr_key(t.mr[2]);
	pkt.va = (uintptr_t)t.arena + 2 * (REGION_BYTES + GAP_BYTES);
	assert_false(guess(&t, &pkt));
	/* Another address is heard. */
	end_share(&other, b, IBV_QPT_RC);
	end_connect(&other, &t.c.e[0], IBV_MTU_256);
	memcpy(av.ah_attr.grh.dgid.raw,
	       nic_get_config(t.c.e[0].nic)->gids[0].ip, 16);
	av.ah_attr.grh.dgid.raw[15] = 99;
	qp_to(other.qp, IBV_QPS_SQD);
	assert_int_equal(nic_qp_modify(other.qp, &av, IBV_QP_AV), 0);
	pkt.dest_qpn = nic_qp_number(other.qp);
	pkt.src_ip[15] = 99;
	inject(&other, &pkt);
	assert_int_equal(nic_qp_state(other.qp), IBV_QPS_SQD);
	assert_int_equal(t.arena[2 * (REGION_BYTES + GAP_BYTES)], 0);
	/* And the guesser too, in the end. */
	t.c.p.now_ns += NIC_BLOCK_NS;
	pkt.dest_qpn = nic_qp_number(b->qp);
	pkt.src_ip[15] = 1;
	assert_true(guess(&t, &pkt));
	nic_qp_destroy(other.qp);
	target_release(&t);
}

/* A connection that was there before its source's guesses goes on; one that is
 * made after them has to wait. */
static void honest_ones_go_on(void **state)
{
	struct target t;
	struct end honest, *b = &t.c.e[1];
	struct wire_pkt pkt, good;
	unsigned i;

	target_init(&t);
	end_share(&honest, b, IBV_QPT_RC);
	end_connect(&honest, &t.c.e[0], IBV_MTU_256);
	pkt = request(&t.c, WIRE_RC_WRITE_ONLY, 0, 64);
	good = pkt;
	good.dest_qpn = nic_qp_number(honest.qp);
	good.rkey = nic_mr_key(t.mr[2]);
	good.va = (uintptr_t)t.arena + 2 * (REGION_BYTES + GAP_BYTES);
	for (i = 0; i < NIC_KEY_FAILURES; i++) {
		pkt.rkey = b->key ^ 0x100;
		assert_true(guess(&t, &pkt));
	}
	assert_int_equal(counter(b, NIC_C_sources_blocked), 1);
	pkt.rkey = good.rkey;
	pkt.va = good.va;
	assert_false(guess(&t, &pkt));
	for (i = 0; i < 3; i++) {
		inject(&honest, &good);
		good.psn = (good.psn + 1) & WIRE_PSN_MASK;
	}
	assert_int_equal(nic_qp_state(honest.qp), IBV_QPS_RTS);
	assert_int_equal(t.arena[2 * (REGION_BYTES + GAP_BYTES)], 0);
	/* Who kept it for one more guess is silent for longer. */
	good.rkey ^= 0x100;
	inject(&honest, &good);
	assert_int_equal(nic_qp_state(honest.qp), IBV_QPS_ERR);
	t.c.p.now_ns += NIC_BLOCK_NS;
	assert_false(guess(&t, &pkt));
	t.c.p.now_ns += NIC_BLOCK_NS / NIC_KEY_FAILURES;
	assert_true(guess(&t, &pkt));
	nic_qp_destroy(honest.qp);
	target_release(&t);
}

/* A server takes back regions and windows that a client still uses. */
static void stale_keys_are_no_guesses(void **state)
{
	struct target t;
	struct end *b = &t.c.e[1];
	struct wire_pkt pkt;
	unsigned i;

	target_init(&t);
	pkt = request(&t.c, WIRE_RC_WRITE_ONLY, 0, 64);
	for (i = 0; i < 4 * NIC_KEY_FAILURES; i++) {
		struct nic_mr_attr attr = {
			.addr = t.arena,
			.length = REGION_BYTES,
			.iova = (uintptr_t)t.arena,
			.access = IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_REMOTE_WRITE,
		};
		struct nic_mr *mr;

		assert_int_equal(nic_mr_reg(b->pd, &attr, &mr), 0);
		pkt.rkey = nic_mr_key(mr);
		pkt.va = attr.iova;
		if (i % 2) /* the key changes */
			assert_int_equal(
				nic_mr_rereg(mr,
					     IBV_REREG_MR_CHANGE_TRANSLATION,
					     NULL, &attr),
				0);
		else
			assert_int_equal(nic_mr_dereg(mr), 0);
		assert_true(guess(&t, &pkt));
		if (i % 2)
			assert_int_equal(nic_mr_dereg(mr), 0);
	}
	assert_int_equal(counter(b, NIC_C_deny_key), 4 * NIC_KEY_FAILURES);
	assert_int_equal(counter(b, NIC_C_keys_guessed), 0);
	assert_int_equal(counter(b, NIC_C_sources_blocked), 0);
	target_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guessing_opens_nothing),
		cmocka_unit_test(others_are_not_blocked),
		cmocka_unit_test(honest_ones_go_on),
		cmocka_unit_test(stale_keys_are_no_guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
