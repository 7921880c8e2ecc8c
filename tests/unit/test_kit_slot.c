/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of clients: who takes one has it alone, whoever was late and wherever
 * it was stopped meanwhile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kit/slot.h"

static uint64_t cas(struct kit_slot *s, const struct kit_slot_cas *c)
{
	le64 *w = (le64 *)((uint8_t *)s + c->offset);
	uint64_t old = le64_get(*w);

	if (!c->offset)
		assert_true(kit_slot_may_move(c->compare, c->swap));
	if (old == c->compare)
		*w = le64_put(c->swap);
	return old;
}

/* A client on its way. */
struct walker {
	const char *name;
	struct kit_slot_claim claim;
	struct kit_slot_cas next;
	enum kit_slot_verdict verdict;
};

static void set_out(struct walker *w, const struct kit_slot *s,
		    const char *name)
{
	w->name = name;
	w->verdict = KIT_SLOT_GO_ON;
	assert_int_equal(kit_slot_claim_begin(&w->claim, s, name, &w->next), 0);
}

static void walk(struct walker *w, struct kit_slot *s)
{
	w->verdict = kit_slot_claim_next(&w->claim, cas(s, &w->next), &w->next);
}

static uint64_t state(const struct kit_slot *s)
{
	return le64_get(s->state);
}

static void names_come_back(void **unused)
{
	static const char *const names[] = {
		"7", "1234567", "12345678", "0123456789abcdef0003",
		"0123456789abcdef0003+0123456789abcdef0004"};
	char got[KIT_SLOT_NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct kit_slot s = {0};
		struct walker w;

		s.state = le64_put((uint64_t)(300 + i) << 8);
		set_out(&w, &s, names[i]);
		assert_false(kit_slot_name_get(&s, got));
		while (w.verdict == KIT_SLOT_GO_ON)
			walk(&w, &s);
		assert_int_equal(w.verdict, KIT_SLOT_OURS);
		assert_int_equal(state(&s), KIT_SLOT_LIVE | (uint64_t)(301 + i)
								    << 8);
		assert_true(kit_slot_name_get(&s, got));
		assert_string_equal(got, names[i]);
	}
}

static void long_names_are_refused(void **unused)
{
	char name[KIT_SLOT_NAME_MAX + 1];
	struct kit_slot_claim claim;
	struct kit_slot s = {0};
	struct kit_slot_cas first;

	memset(name, 'x', sizeof(name));
	name[KIT_SLOT_NAME_MAX] = '\0';
	assert_int_equal(kit_slot_claim_begin(&claim, &s, name, &first),
			 -ENAMETOOLONG);
	name[KIT_SLOT_NAME_MAX - 1] = '\0';
	assert_int_equal(kit_slot_claim_begin(&claim, &s, name, &first), 0);
}

/* What the others do while one is late: the slot is taken back, taken by a
 * second client, left, and taken by a third. */
enum phase {
	TAKE_BACK,
	SECOND,
	LEAVE,
	THIRD,
	DONE,
};

struct world {
	struct kit_slot slot;
	struct walker late, now;
	enum phase phase;
};

static unsigned long worlds;

static void others(struct world *w)
{
	uint64_t at = state(&w->slot);
	struct kit_slot_cas c = {.compare = at, .swap = at >> 8 << 8};

	switch (w->phase) {
	case TAKE_BACK:
		if ((at & 0xff) == KIT_SLOT_LIVE) {
			w->phase = DONE;
			return;
		}
		(void)cas(&w->slot, &c);
		set_out(&w->now, &w->slot, "second");
		w->phase = SECOND;
		break;
	case LEAVE:
		(void)cas(&w->slot, &c);
		set_out(&w->now, &w->slot, "the third client");
		w->phase = THIRD;
		break;
	case SECOND:
	case THIRD:
	case DONE:
		walk(&w->now, &w->slot);
		if (w->now.verdict != KIT_SLOT_GO_ON) {
			assert_int_equal(w->now.verdict, KIT_SLOT_OURS);
			w->phase++;
		}
	}
}

/* While the slot is LIVE it has the name of the client that has it. */
static void check(const struct world *w)
{
	char name[KIT_SLOT_NAME_MAX + 1];
	bool late_has_it = w->late.verdict == KIT_SLOT_OURS;
	uint64_t at = state(&w->slot);

	if (late_has_it)
		assert_int_equal(at, KIT_SLOT_LIVE | w->late.claim.epoch << 8);
	if ((at & 0xff) != KIT_SLOT_LIVE)
		return;
	assert_true(kit_slot_name_get(&w->slot, name));
	assert_string_equal(name, at >> 8 == w->late.claim.epoch ? w->late.name
								 : w->now.name);
}

static void every_order(struct world w)
{
	struct world next;

	worlds++;
	check(&w);
	if (w.late.verdict == KIT_SLOT_GO_ON) {
		next = w;
		walk(&next.late, &next.slot);
		every_order(next);
	}
	if (w.phase != DONE && (w.phase != TAKE_BACK ||
				(state(&w.slot) & 0xff) != KIT_SLOT_FREE)) {
		next = w;
		others(&next);
		every_order(next);
	}
}

/* Two of the same name are the worst: words that were there come back. */
static void who_is_late_never_has_it_too(void **unused)
{
	static const char *const late[] = {"first", "second"};
	static const uint64_t epochs[] = {0, 254};

	for (size_t i = 0; i < ARRAY_LEN(late); i++) {
		for (size_t k = 0; k < ARRAY_LEN(epochs); k++) {
			struct world w = {.phase = TAKE_BACK};

			w.slot.state = le64_put(epochs[k] << 8);
			if (epochs[k])
				assert_int_equal(kit_slot_name_put("zeroth",
								   epochs[k],
								   w.slot.name),
						 0);
			set_out(&w.late, &w.slot, late[i]);
			every_order(w);
		}
	}
	print_message("%lu situations\n", worlds);
	assert_true(worlds > 100000);
}

static void only_steps_of_the_protocol_are_taken(void **unused)
{
	unsigned steps = 0;

	for (unsigned from = 0; from < 256; from++)
		for (unsigned to = 0; to < 256; to++)
			for (uint64_t ahead = 0; ahead < 3; ahead++)
				steps += kit_slot_may_move(
					5 << 8 | from, (5 + ahead) << 8 | to);
	assert_int_equal(steps, 6);
	assert_true(kit_slot_may_move(kit_slot_word(KIT_SLOT_FREE, 5),
				      kit_slot_word(KIT_SLOT_CLAIMED, 6)));
	assert_true(kit_slot_may_move(kit_slot_word(KIT_SLOT_CLAIMED, 6),
				      kit_slot_word(KIT_SLOT_LIVE, 6)));
	/* Without a name, and for whoever had it before. */
	assert_false(kit_slot_may_move(kit_slot_word(KIT_SLOT_FREE, 5),
				       kit_slot_word(KIT_SLOT_LIVE, 6)));
	assert_false(kit_slot_may_move(kit_slot_word(KIT_SLOT_FENCED, 5),
				       kit_slot_word(KIT_SLOT_LIVE, 5)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_back),
		cmocka_unit_test(long_names_are_refused),
		cmocka_unit_test(who_is_late_never_has_it_too),
		cmocka_unit_test(only_steps_of_the_protocol_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
