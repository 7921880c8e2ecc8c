/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of far memory on the looped host: batches and the points at which
 * they stop, slots of the living and the dead, and words of chunks. */
#include "kit_rig.h"

#include "base/error.h"

enum {
	SLOTS = 3,
	SLOT_BYTES = 64,
	SLOTS_AT = 128,
	WORDS_AT = 4096,
	WORDS = 20000, /* more than are read at a time */
	MAIN_BYTES = WORDS_AT + 8 * WORDS,
	LOCK_BYTES = 4096,
	FAILURE_MS = 5,
};

enum point {
	POINT_READ,
	POINT_SLOT,
	POINT_WRITE,
	POINT_LOCK,
};

/* Stops a client before the n-th request with this point. */
struct stop {
	int point;
	unsigned after;
};

static bool crash(void *ctx, int point)
{
	struct stop *s = ctx;

	return point == s->point && s->after-- == 0;
}

static struct kit_slot *slot_of(struct kit_rig *r, uint32_t slot)
{
	return (struct kit_slot *)(r->main + SLOTS_AT + slot * SLOT_BYTES);
}

/* Without a slot. Its memory is stage, slot and answer of the kit, and a page
 * of words. */
static uint64_t *open_client(struct kit_rig *r, struct kit_client *k,
			     struct stop *stop)
{
	struct kit_config config = {
		.what = "the structure",
		.points = {POINT_READ, POINT_SLOT, POINT_SLOT, POINT_SLOT},
		.slots = {.at = SLOTS_AT,
			  .count = SLOTS,
			  .slot_bytes = SLOT_BYTES,
			  .epoch_mask = UINT32_MAX},
		.failure_ms = FAILURE_MS,
		.crash = stop ? crash : NULL,
		.crash_ctx = stop};
	struct kit_remote remote = rig_remote(r);
	uint64_t *words;
	struct kit_part part = {&words, 4096};

	memset(k, 0, sizeof(*k));
	assert_int_equal(kit_client_init(k, &remote, &config, &part, 1), 0);
	rng_init_text(&k->rng, remote.conn);
	kit_set_deadline(k, 5000);
	return words;
}

static void with_slot(struct kit_rig *r, struct kit_client *k)
{
	(void)open_client(r, k, NULL);
	assert_int_equal(kit_slot_claim(k), 0);
	assert_int_equal(kit_slot_state(slot_of(r, k->slot)), KIT_SLOT_LIVE);
}

static void leave(struct kit_client *k)
{
	assert_int_equal(kit_slot_leave(k, k->slot, k->epoch), 0);
	assert_false(k->has_slot);
	kit_client_close(k);
}

static uint64_t far_word(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* ---- batches ------------------------------------------------------------ */

static void a_batch_is_executed_in_its_order(void **unused)
{
	struct kit_rig r;
	struct kit_client k;
	uint64_t *w;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	w = open_client(&r, &k, NULL);
	w[0] = 7;
	kit_begin(&k);
	kit_write(&k.main, POINT_WRITE, 0, &w[0], 8);
	kit_masked_cas(&k.locks, POINT_LOCK, 8, 3, 2, 3, &w[1]);
	kit_cas(&k.main, POINT_WRITE, 0, 7, 8, &w[2]);
	kit_masked_cas(&k.locks, POINT_LOCK, 8, 3, 1, 3, &w[3]);
	kit_read(&k.main, 0, &w[4], 8);
	kit_read(&k.locks, 8, &w[5], 8);
	assert_int_equal(kit_run(&k), 0);
	assert_int_equal(w[1], 0);
	assert_int_equal(w[2], 7);
	assert_int_equal(w[3], 2); /* refused: a bit of the mask is set */
	assert_int_equal(w[4], 8);
	assert_int_equal(w[5], 2);
	assert_int_equal(k.trips, 1);
	assert_int_equal(kit_swap_now(&k.main, POINT_WRITE, 0, 8, 9), 0);
	assert_int_equal(kit_swap_now(&k.main, POINT_WRITE, 0, 8, 9), -EAGAIN);
	assert_int_equal(kit_run(&k), 0); /* an empty one */
	assert_int_equal(k.trips, 3);
	kit_client_close(&k);
	kit_rig_break(&r);
}

static void a_client_stops_at_any_request(void **unused)
{
	for (unsigned after = 0; after < 3; after++) {
		struct stop stop = {.point = POINT_WRITE, .after = after};
		struct kit_rig r;
		struct kit_client k;
		uint64_t *w;

		kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
		w = open_client(&r, &k, &stop);
		w[0] = 1;
		kit_begin(&k);
		for (uint64_t i = 0; i < 3; i++)
			kit_write(&k.main, POINT_WRITE, 8 * i, &w[0], 8);
		assert_int_equal(kit_run(&k), -ESHUTDOWN);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(far_word(r.main + 8 * i), i < after);
		/* And does nothing any more. */
		assert_int_equal(kit_read_now(&k.main, 0, w, 8), -ESHUTDOWN);
		assert_int_equal(kit_slot_claim(&k), -ESHUTDOWN);
		kit_client_close(&k);
		kit_rig_break(&r);
	}
}

static void large_reads_come_in_parts(void **unused)
{
	enum {
		BYTES = 2 * KIT_LARGE_BYTES + 8,
	};
	struct kit_rig r;
	struct kit_client k;

	kit_rig_make(&r, BYTES, LOCK_BYTES);
	memset(r.main, 5, BYTES);
	(void)open_client(&r, &k, NULL);
	assert_int_equal(kit_big_reserve(&k, BYTES), 0);
	assert_int_equal(kit_read_now(&k.main, 0, k.big, BYTES), 0);
	assert_memory_equal(k.big, r.main, BYTES);
	assert_int_equal(k.trips, 3);
	kit_client_close(&k);
	kit_rig_break(&r);
}

/* ---- slots -------------------------------------------------------------- */

static void every_client_has_a_slot_of_its_own(void **unused)
{
	struct kit_client k[SLOTS], more;
	struct kit_rig r;
	uint64_t used = 0;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	for (unsigned i = 0; i < SLOTS; i++)
		with_slot(&r, &k[i]);
	assert_true(k[0].slot != k[1].slot && k[1].slot != k[2].slot &&
		    k[2].slot != k[0].slot);
	assert_int_equal(kit_count_words(&k[0].main, SLOTS_AT, SLOTS,
					 SLOT_BYTES, 0xff, &used),
			 0);
	assert_int_equal(used, SLOTS);
	(void)open_client(&r, &more, NULL);
	assert_int_equal(kit_slot_claim(&more), -EAGAIN);
	assert_string_equal(error_last(),
			    "the structure has 3 clients already");
	assert_int_equal(r.fences, 0);
	leave(&k[1]);
	assert_int_equal(kit_slot_claim(&more), 0);
	assert_int_equal(more.slot, k[1].slot);
	assert_int_equal(more.epoch, 2);
	leave(&more);
	leave(&k[0]);
	leave(&k[2]);
	kit_rig_break(&r);
}

static void slots_of_the_gone_are_taken_over(void **unused)
{
	struct kit_client gone, k[SLOTS];
	struct kit_rig r;
	bool is_gone;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	with_slot(&r, &gone);
	for (unsigned i = 1; i < SLOTS; i++)
		with_slot(&r, &k[i]);
	assert_int_equal(
		kit_slot_is_gone(&k[1], gone.slot, gone.epoch, &is_gone), 0);
	assert_false(is_gone);
	r.end[0].is_open = false; /* the node has forgotten it */
	with_slot(&r, &k[0]);
	assert_int_equal(r.fences, 1);
	assert_int_equal(k[0].fenced, 1);
	assert_int_equal(k[0].slot, gone.slot);
	assert_int_equal(k[0].epoch, gone.epoch + 1);
	/* Nothing of the old one is executed, and its epoch has nothing. */
	assert_int_equal(
		kit_cas_now(&gone.main, POINT_WRITE, 0, 0, 1, &(uint64_t){0}),
		-ESTALE);
	assert_int_equal(
		kit_slot_is_gone(&k[1], gone.slot, gone.epoch, &is_gone), 0);
	assert_true(is_gone);
	assert_int_equal(kit_slot_fence(&k[1], gone.slot, gone.epoch), 0);
	assert_int_equal(r.fences, 1);
	for (unsigned i = 0; i < SLOTS; i++)
		leave(&k[i]);
	kit_client_close(&gone);
	kit_rig_break(&r);
}

/* A client that died over its claim has no name yet, and one whose memory is
 * damaged cannot be ended. */
static void half_claims_are_taken_back(void **unused)
{
	struct kit_client k;
	struct kit_rig r;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	for (uint32_t i = 0; i < SLOTS; i++)
		slot_of(&r, i)->state =
			le64_put(kit_slot_word(KIT_SLOT_CLAIMED, 9));
	with_slot(&r, &k);
	assert_int_equal(k.epoch, 10);
	assert_int_equal(r.fences, 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		slot_of(&r, i)->state =
			le64_put(kit_slot_word(KIT_SLOT_LIVE, 20));
	k.has_slot = false;
	assert_int_equal(kit_slot_claim(&k), -EBADMSG);
	kit_client_close(&k);
	kit_rig_break(&r);
}

/* The ordered index once read the slot that it asked about over the others that
 * it had yet to look at, and began again until its deadline. */
static void asking_about_one_slot_keeps_the_others(void **unused)
{
	struct kit_client k[SLOTS], more;
	struct kit_rig r;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct kit_slot *s = slot_of(&r, i);

		(void)open_client(&r, &k[i], NULL);
		s->state = le64_put(kit_slot_word(KIT_SLOT_LIVE, 10 + i));
		assert_int_equal(
			kit_slot_name_put(k[i].remote.conn, 10 + i, s->name),
			0);
	}
	for (unsigned i = 0; i < 8; i++) {
		(void)open_client(&r, &more, NULL);
		assert_int_equal(kit_slot_claim(&more), -EAGAIN);
		/* A look at all, then three at all and at each of them. */
		assert_int_equal(more.trips, 1 + 3 * (1 + SLOTS));
		kit_client_close(&more);
	}
	assert_int_equal(r.fences, 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		kit_client_close(&k[i]);
	kit_rig_break(&r);
}

static void a_name_can_be_changed(void **unused)
{
	char name[KIT_SLOT_NAME_MAX + 1];
	struct kit_client k;
	struct kit_rig r;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	with_slot(&r, &k);
	assert_int_equal(kit_slot_rename(&k, "q0+q7"), 0);
	assert_true(kit_slot_name_get(slot_of(&r, k.slot), name));
	assert_string_equal(name, "q0+q7");
	leave(&k);
	kit_rig_break(&r);
}

static void a_fenced_client_connects_anew(void **unused)
{
	struct kit_client k, other;
	uint32_t slot, epoch;
	struct kit_rig r;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	with_slot(&r, &k);
	with_slot(&r, &other);
	slot = k.slot;
	epoch = k.epoch;
	assert_int_equal(rig_fence(&r, k.remote.conn), 0);
	assert_int_equal(kit_swap_now(&k.main, POINT_WRITE, 0, 0, 1), -ESTALE);
	assert_true(k.is_broken);
	assert_int_equal(far_word(r.main), 0);
	assert_int_equal(kit_reconnect(&k), 0);
	assert_true(k.has_slot);
	assert_int_equal(kit_swap_now(&k.main, POINT_WRITE, 0, 0, 1), 0);
	assert_int_equal(kit_slot_state(slot_of(&r, k.slot)), KIT_SLOT_LIVE);
	/* The old slot was left. */
	assert_true(k.slot != slot || k.epoch != epoch);
	if (k.slot != slot)
		assert_int_equal(kit_slot_state(slot_of(&r, slot)),
				 KIT_SLOT_FREE);
	leave(&k);
	leave(&other);
	kit_rig_break(&r);
}

static int cannot_tell(void *ctx, const char *conn)
{
	return -EHOSTDOWN;
}

static struct ibv_mr *no_memory(struct ibv_pd *pd, void *p, size_t bytes,
				int access)
{
	return NULL;
}

static int renew_without_memory(void *ctx, struct kit_remote *remote)
{
	static struct client_verbs verbs;
	int err = rig_renew(ctx, remote);

	verbs = *remote->link->verbs;
	verbs.reg_mr = no_memory;
	remote->link->verbs = &verbs;
	return err;
}

/* It once went on with its new connection under the number of its old slot, and
 * whoever took that for dead ended the old connection only. */
static void without_a_slot_nothing_goes_on(void **unused)
{
	struct kit_client k, others[SLOTS - 1];
	uint64_t old;
	struct kit_rig r;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	with_slot(&r, &k);
	for (unsigned i = 0; i < SLOTS - 1; i++)
		with_slot(&r, &others[i]);
	k.is_broken = true;
	k.remote.is_alive = cannot_tell;
	assert_int_equal(kit_reconnect(&k), -EHOSTDOWN);
	assert_false(k.has_slot);
	assert_int_equal(kit_cas_now(&k.main, POINT_WRITE, 0, 0, 1, &old),
			 -ESTALE);
	k.remote.is_alive = rig_is_alive;
	k.remote.renew = renew_without_memory;
	assert_int_equal(kit_reconnect(&k), -ENOMEM);
	assert_int_equal(kit_cas_now(&k.main, POINT_WRITE, 0, 0, 1, &old),
			 -ESTALE);
	assert_int_equal(far_word(r.main), 0);
	k.remote.renew = rig_renew;
	leave(&others[0]);
	assert_int_equal(kit_reconnect(&k), 0);
	assert_int_equal(kit_swap_now(&k.main, POINT_WRITE, 0, 0, 1), 0);
	leave(&k);
	leave(&others[1]);
	kit_rig_break(&r);
}

/* ---- chunks ------------------------------------------------------------- */

struct seen {
	uint8_t chunk[WORDS];
	uint64_t stop; /* at this chunk */
	uint64_t first;
	uint64_t count;
};

static int see(void *user, uint64_t chunk, uint64_t word)
{
	struct seen *s = user;

	if (!s->count++)
		s->first = chunk;
	assert_true(chunk < WORDS);
	assert_int_equal(word, chunk * 3);
	s->chunk[chunk]++;
	return chunk == s->stop ? 42 : 0;
}

static void words_of_chunks_are_seen_once(void **unused)
{
	static struct seen s;
	struct kit_client k;
	struct kit_rig r;
	uint64_t hint = 1;

	kit_rig_make(&r, MAIN_BYTES, LOCK_BYTES);
	for (uint64_t i = 0; i < WORDS; i++) {
		le64 w = le64_put(i * 3);

		memcpy(r.main + WORDS_AT + 8 * i, &w, sizeof(w));
	}
	(void)open_client(&r, &k, NULL);
	s.stop = UINT64_MAX;
	assert_int_equal(kit_chunks_each(&k, WORDS_AT, WORDS, NULL, see, &s),
			 0);
	assert_int_equal(s.first, 0);
	assert_int_equal(kit_chunks_each(&k, WORDS_AT, WORDS, &hint, see, &s),
			 0);
	for (unsigned i = 0; i < WORDS; i++)
		assert_int_equal(s.chunk[i], 2);
	s.stop = 9000;
	s.count = 0;
	hint = 1;
	assert_int_equal(kit_chunks_each(&k, WORDS_AT, WORDS, &hint, see, &s),
			 42);
	assert_int_equal(hint, 1); /* where the next one begins */
	assert_true(s.first >= KIT_STAGE_BYTES / 8 &&
		    s.first < 2 * KIT_STAGE_BYTES / 8);
	kit_client_close(&k);
	kit_rig_break(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_is_executed_in_its_order),
		cmocka_unit_test(a_client_stops_at_any_request),
		cmocka_unit_test(large_reads_come_in_parts),
		cmocka_unit_test(every_client_has_a_slot_of_its_own),
		cmocka_unit_test(slots_of_the_gone_are_taken_over),
		cmocka_unit_test(half_claims_are_taken_back),
		cmocka_unit_test(asking_about_one_slot_keeps_the_others),
		cmocka_unit_test(a_name_can_be_changed),
		cmocka_unit_test(a_fenced_client_connects_anew),
		cmocka_unit_test(without_a_slot_nothing_goes_on),
		cmocka_unit_test(words_of_chunks_are_seen_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
