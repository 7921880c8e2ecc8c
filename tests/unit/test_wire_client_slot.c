/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of clients: who takes one has it alone, whoever was late and wherever
 * it was stopped meanwhile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/client_slot.h"

/* A slot in memory. */
struct slot {
	le64 word[1 + SLOT_NAME_WORDS];
};

static uint64_t cas(struct slot *s, const struct slot_cas *c)
{
	le64 *w = &s->word[c->offset / 8];
	uint64_t old = le64_get(*w);

	if (old == c->compare)
		*w = le64_put(c->swap);
	return old;
}

/* A client on its way. */
struct walker {
	const char *name;
	struct slot_claim claim;
	struct slot_cas next;
	enum slot_verdict verdict;
};

static void set_out(struct walker *w, const struct slot *s, const char *name)
{
	w->name = name;
	w->verdict = SLOT_GO_ON;
	assert_int_equal(slot_claim_begin(&w->claim, s, name, &w->next), 0);
}

static void walk(struct walker *w, struct slot *s)
{
	w->verdict = slot_claim_next(&w->claim, cas(s, &w->next), &w->next);
}

static uint64_t state(const struct slot *s)
{
	return le64_get(s->word[0]);
}

static void names_come_back(void **unused)
{
	static const char *const names[] = {
		"7", "1234567", "12345678", "0123456789abcdef0003",
		"0123456789abcdef0003+0123456789abcdef0004"};
	char got[SLOT_NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct slot s = {0};
		struct walker w;

		s.word[0] = le64_put((uint64_t)(300 + i) << 8);
		set_out(&w, &s, names[i]);
		assert_false(slot_name_get(&s, got));
		while (w.verdict == SLOT_GO_ON)
			walk(&w, &s);
		assert_int_equal(w.verdict, SLOT_OURS);
		assert_int_equal(state(&s),
				 CLIENT_SLOT_LIVE | (uint64_t)(301 + i) << 8);
		assert_true(slot_name_get(&s, got));
		assert_string_equal(got, names[i]);
	}
}

static void long_names_are_refused(void **unused)
{
	char name[SLOT_NAME_MAX + 1];
	struct slot_claim claim;
	struct slot s = {0};
	struct slot_cas first;

	memset(name, 'x', sizeof(name));
	name[SLOT_NAME_MAX] = '\0';
	assert_int_equal(slot_claim_begin(&claim, &s, name, &first),
			 -ENAMETOOLONG);
	name[SLOT_NAME_MAX - 1] = '\0';
	assert_int_equal(slot_claim_begin(&claim, &s, name, &first), 0);
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
	struct slot slot;
	struct walker late, now;
	enum phase phase;
};

static unsigned long worlds;

static void others(struct world *w)
{
	uint64_t at = state(&w->slot);
	struct slot_cas c = {.compare = at, .swap = at >> 8 << 8};

	switch (w->phase) {
	case TAKE_BACK:
		if ((at & 0xff) == CLIENT_SLOT_LIVE) {
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
		if (w->now.verdict != SLOT_GO_ON) {
			assert_int_equal(w->now.verdict, SLOT_OURS);
			w->phase++;
		}
	}
}

/* While the slot is LIVE it has the name of the client that has it. */
static void check(const struct world *w)
{
	char name[SLOT_NAME_MAX + 1];
	bool late_has_it = w->late.verdict == SLOT_OURS;
	uint64_t at = state(&w->slot);

	if (late_has_it)
		assert_int_equal(at,
				 CLIENT_SLOT_LIVE | w->late.claim.epoch << 8);
	if ((at & 0xff) != CLIENT_SLOT_LIVE)
		return;
	assert_true(slot_name_get(&w->slot, name));
	assert_string_equal(name, at >> 8 == w->late.claim.epoch ? w->late.name
								 : w->now.name);
}

static void every_order(struct world w)
{
	struct world next;

	worlds++;
	check(&w);
	if (w.late.verdict == SLOT_GO_ON) {
		next = w;
		walk(&next.late, &next.slot);
		every_order(next);
	}
	if (w.phase != DONE && (w.phase != TAKE_BACK ||
				(state(&w.slot) & 0xff) != CLIENT_SLOT_FREE)) {
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

			w.slot.word[0] = le64_put(epochs[k] << 8);
			if (epochs[k])
				assert_int_equal(slot_name_put("zeroth",
							       epochs[k],
							       &w.slot.word[1]),
						 0);
			set_out(&w.late, &w.slot, late[i]);
			every_order(w);
		}
	}
	print_message("%lu situations\n", worlds);
	assert_true(worlds > 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_back),
		cmocka_unit_test(long_names_are_refused),
		cmocka_unit_test(who_is_late_never_has_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
