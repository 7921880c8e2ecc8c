/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a slot, without the requests; and names in slots. */
#include "slot.h"

#include <errno.h>

#include "base/error.h"

enum {
	STEP_CLAIM = 0,
	STEP_LIVE = KIT_SLOT_NAME_WORDS + 1,
	EPOCH_SHIFT = 8 * KIT_SLOT_WORD_CHARS,
};

bool kit_slot_may_move(uint64_t from, uint64_t to)
{
	static const uint8_t may[] = {
		[KIT_SLOT_FREE] = 1u << KIT_SLOT_CLAIMED,
		[KIT_SLOT_LIVE] = 1u << KIT_SLOT_FREE | 1u << KIT_SLOT_FENCED,
		[KIT_SLOT_FENCED] = 1u << KIT_SLOT_FREE,
		[KIT_SLOT_CLAIMED] = 1u << KIT_SLOT_FREE | 1u << KIT_SLOT_LIVE,
	};
	uint8_t a = (uint8_t)from, b = (uint8_t)to;
	/* Each client of a slot has an epoch of its own. */
	uint64_t epoch = (from >> KIT_SLOT_STATE_BITS) + (a == KIT_SLOT_FREE);

	return a < ARRAY_LEN(may) && b < ARRAY_LEN(may) && may[a] >> b & 1 &&
	       to == kit_slot_word((enum kit_slot_state)b, epoch);
}

static uint8_t word_epoch(uint64_t word)
{
	return (uint8_t)(word >> EPOCH_SHIFT);
}

int kit_slot_name_put(const char *name, uint64_t epoch,
		      le64 words[KIT_SLOT_NAME_WORDS])
{
	size_t len = 0;

	while (len < KIT_SLOT_NAME_MAX && name[len])
		len++;
	if (len == KIT_SLOT_NAME_MAX)
		return error_set(-ENAMETOOLONG,
				 "a connection's name has up to %d characters",
				 KIT_SLOT_NAME_MAX - 1);
	for (unsigned i = 0; i < KIT_SLOT_NAME_WORDS; i++) {
		uint64_t word = (epoch & 0xff) << EPOCH_SHIFT;

		for (unsigned k = 0; k < KIT_SLOT_WORD_CHARS; k++) {
			size_t at = (size_t)i * KIT_SLOT_WORD_CHARS + k;

			if (at < len)
				word |= (uint64_t)(uint8_t)name[at] << 8 * k;
		}
		words[i] = le64_put(word);
	}
	return 0;
}

bool kit_slot_name_get(const struct kit_slot *slot,
		       char name[KIT_SLOT_NAME_MAX + 1])
{
	name[KIT_SLOT_NAME_MAX] = '\0';
	for (unsigned i = 0; i < KIT_SLOT_NAME_WORDS; i++) {
		uint64_t word = le64_get(slot->name[i]);

		if (word_epoch(word) != (uint8_t)kit_slot_epoch(slot)) {
			name[0] = '\0';
			return false;
		}
		for (unsigned k = 0; k < KIT_SLOT_WORD_CHARS; k++)
			name[i * KIT_SLOT_WORD_CHARS + k] =
				(char)(word >> 8 * k & 0xff);
	}
	return name[0] != '\0';
}

int kit_slot_claim_begin(struct kit_slot_claim *c, const struct kit_slot *slot,
			 const char *name, struct kit_slot_cas *first)
{
	le64 words[KIT_SLOT_NAME_WORDS];
	int err;

	ASSERT(kit_slot_state(slot) == KIT_SLOT_FREE);
	c->step = STEP_CLAIM;
	c->epoch = kit_slot_epoch(slot) + 1;
	err = kit_slot_name_put(name, c->epoch, words);
	if (err)
		return err;
	for (unsigned i = 0; i < KIT_SLOT_NAME_WORDS; i++) {
		c->expect[i] = le64_get(slot->name[i]);
		c->word[i] = le64_get(words[i]);
	}
	*first = (struct kit_slot_cas){
		.compare = le64_get(slot->state),
		.swap = kit_slot_word(KIT_SLOT_CLAIMED, c->epoch)};
	return 0;
}

/* What is in the way of a word of the name: one of a later client, which ends
 * this claim, or of an earlier one that was late. */
static bool is_later(const struct kit_slot_claim *c, uint64_t word)
{
	return (int8_t)(word_epoch(word) - (uint8_t)c->epoch) > 0;
}

enum kit_slot_verdict kit_slot_claim_next(struct kit_slot_claim *c,
					  uint64_t answer,
					  struct kit_slot_cas *next)
{
	uint64_t claimed = kit_slot_word(KIT_SLOT_CLAIMED, c->epoch);

	ASSERT(c->step <= STEP_LIVE);
	if (c->step == STEP_LIVE)
		return answer == claimed ? KIT_SLOT_OURS : KIT_SLOT_TAKEN;
	if (c->step == STEP_CLAIM) {
		if (answer != kit_slot_word(KIT_SLOT_FREE, c->epoch - 1))
			return KIT_SLOT_TAKEN;
		c->step++;
	} else if (answer == c->expect[c->step - 1]) {
		c->step++;
	} else if (is_later(c, answer)) {
		return KIT_SLOT_TAKEN;
	} else {
		c->expect[c->step - 1] = answer;
	}
	if (c->step == STEP_LIVE)
		*next = (struct kit_slot_cas){
			.compare = claimed,
			.swap = kit_slot_word(KIT_SLOT_LIVE, c->epoch)};
	else
		*next = (struct kit_slot_cas){
			.offset = (uint32_t)offsetof(struct kit_slot, name) +
				  8 * (c->step - 1),
			.compare = c->expect[c->step - 1],
			.swap = c->word[c->step - 1]};
	return KIT_SLOT_GO_ON;
}
