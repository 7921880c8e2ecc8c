/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a slot, without the requests; and names in slots. */
#include "client_slot.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

enum {
	STEP_CLAIM = 0,
	STEP_LIVE = SLOT_NAME_WORDS + 1,
	STATE_BITS = 8,
	EPOCH_SHIFT = 8 * SLOT_WORD_CHARS,
};

static uint64_t state_word(enum client_slot_state s, uint64_t epoch)
{
	return (uint64_t)s | epoch << STATE_BITS;
}

static uint8_t word_epoch(uint64_t word)
{
	return (uint8_t)(word >> EPOCH_SHIFT);
}

int slot_name_put(const char *name, uint64_t epoch, le64 words[SLOT_NAME_WORDS])
{
	size_t len = 0;

	while (len < SLOT_NAME_MAX && name[len])
		len++;
	if (len == SLOT_NAME_MAX)
		return error_set(-ENAMETOOLONG,
				 "a connection's name has up to %d characters",
				 SLOT_NAME_MAX - 1);
	for (unsigned i = 0; i < SLOT_NAME_WORDS; i++) {
		uint64_t word = (epoch & 0xff) << EPOCH_SHIFT;

		for (unsigned k = 0; k < SLOT_WORD_CHARS; k++) {
			size_t at = (size_t)i * SLOT_WORD_CHARS + k;

			if (at < len)
				word |= (uint64_t)(uint8_t)name[at] << 8 * k;
		}
		words[i] = le64_put(word);
	}
	return 0;
}

bool slot_name_get(const void *slot, char name[SLOT_NAME_MAX + 1])
{
	le64 state, words[SLOT_NAME_WORDS];

	memcpy(&state, slot, sizeof(state));
	memcpy(words, (const uint8_t *)slot + SLOT_NAME_AT, sizeof(words));
	memset(name, 0, SLOT_NAME_MAX + 1);
	for (unsigned i = 0; i < SLOT_NAME_WORDS; i++) {
		uint64_t word = le64_get(words[i]);

		if (word_epoch(word) !=
		    (uint8_t)(le64_get(state) >> STATE_BITS)) {
			name[0] = '\0';
			return false;
		}
		for (unsigned k = 0; k < SLOT_WORD_CHARS; k++)
			name[i * SLOT_WORD_CHARS + k] =
				(char)(word >> 8 * k & 0xff);
	}
	return name[0] != '\0';
}

int slot_claim_begin(struct slot_claim *c, const void *slot, const char *name,
		     struct slot_cas *first)
{
	le64 state, words[SLOT_NAME_WORDS];
	int err;

	memcpy(&state, slot, sizeof(state));
	ASSERT((le64_get(state) & 0xff) == CLIENT_SLOT_FREE);
	c->step = STEP_CLAIM;
	c->epoch = (le64_get(state) >> STATE_BITS) + 1;
	memcpy(words, (const uint8_t *)slot + SLOT_NAME_AT, sizeof(words));
	for (unsigned i = 0; i < SLOT_NAME_WORDS; i++)
		c->expect[i] = le64_get(words[i]);
	err = slot_name_put(name, c->epoch, words);
	if (err)
		return err;
	for (unsigned i = 0; i < SLOT_NAME_WORDS; i++)
		c->word[i] = le64_get(words[i]);
	*first = (struct slot_cas){
		.compare = le64_get(state),
		.swap = state_word(CLIENT_SLOT_CLAIMED, c->epoch)};
	return 0;
}

/* What is in the way of a word of the name: one of a later client, which ends
 * this claim, or of an earlier one that was late. */
static bool is_later(const struct slot_claim *c, uint64_t word)
{
	return (int8_t)(word_epoch(word) - (uint8_t)c->epoch) > 0;
}

enum slot_verdict slot_claim_next(struct slot_claim *c, uint64_t answer,
				  struct slot_cas *next)
{
	if (c->step == STEP_LIVE)
		return answer == state_word(CLIENT_SLOT_CLAIMED, c->epoch)
			       ? SLOT_OURS
			       : SLOT_TAKEN;
	if (c->step == STEP_CLAIM) {
		if (answer != state_word(CLIENT_SLOT_FREE, c->epoch - 1))
			return SLOT_TAKEN;
		c->step++;
	} else if (answer == c->expect[c->step - 1]) {
		c->step++;
	} else if (is_later(c, answer)) {
		return SLOT_TAKEN;
	} else {
		c->expect[c->step - 1] = answer;
	}
	if (c->step == STEP_LIVE) {
		*next = (struct slot_cas){
			.compare = state_word(CLIENT_SLOT_CLAIMED, c->epoch),
			.swap = state_word(CLIENT_SLOT_LIVE, c->epoch)};
		return SLOT_GO_ON;
	}
	*next = (struct slot_cas){.offset = SLOT_NAME_AT + 8 * (c->step - 1),
				  .compare = c->expect[c->step - 1],
				  .swap = c->word[c->step - 1]};
	return SLOT_GO_ON;
}
