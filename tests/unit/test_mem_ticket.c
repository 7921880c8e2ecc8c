/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a memory node believes a ticket, over a connection of which tenant
 * and which token. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* cmocka wants four of them. */
#include <cmocka.h>

#include "memnode/blocks.h"

static const uint8_t seed[CTL_TICKET_SEED_BYTES] = {1, 2, 3};
static const uint8_t other_seed[CTL_TICKET_SEED_BYTES] = {4, 5, 6};
static const uint8_t mine[BLK_BY_BYTES] = {0xaa, 0xbb, 1, 2, 3, 4};
static const uint8_t yours[BLK_BY_BYTES] = {0xaa, 0xbb, 1, 2, 3, 5};

static void know(struct mem_blocks *b)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->keys_lock, NULL);
	b->keys.count = 1;
	b->keys.key[0].id = 7;
	ctl_ticket_public(seed, b->keys.key[0].key);
}

static struct ctl_ticket sample(void)
{
	struct ctl_ticket t = {.key_id = 7,
			       .object = 99,
			       .end_s = (uint64_t)time(NULL) + 3600,
			       .rights = CTL_TICKET_READ,
			       .kind = CTL_TICKET_FILE,
			       .tenant = "team"};

	memcpy(t.by, mine, sizeof(t.by));
	return t;
}

static enum block_status show(struct mem_blocks *b, const struct ctl_ticket *t,
			      const uint8_t *with, const char *tenant,
			      const uint8_t *by, struct blk_right *out)
{
	uint8_t bytes[CTL_TICKET_BYTES];

	ctl_ticket_sign(t, with, bytes);
	return block_ticket_judge(b, tenant, by, bytes, sizeof(bytes), out);
}

static void a_ticket_opens_what_it_says(void **state)
{
	struct ctl_ticket t = sample();
	struct blk_right right;
	struct mem_blocks b;

	(void)state;
	know(&b);
	assert_int_equal(show(&b, &t, seed, "team", mine, &right), BLOCK_OK);
	assert_int_equal(right.object, 99);
	assert_int_equal(right.end_s, t.end_s + CTL_TICKET_SLACK_S);
	assert_false(right.may_change);
	t.rights |= CTL_TICKET_CHANGE;
	assert_int_equal(show(&b, &t, seed, "team", mine, &right), BLOCK_OK);
	assert_true(right.may_change);
	pthread_mutex_destroy(&b.keys_lock);
}

/* The connections of a token that was taken back have ended; those of the
 * tenant's other tokens do not help its tickets. */
static void it_needs_a_connection_of_its_own_token(void **state)
{
	struct ctl_ticket t = sample();
	struct blk_right right;
	struct mem_blocks b;

	(void)state;
	know(&b);
	assert_int_equal(show(&b, &t, seed, "team", yours, &right),
			 BLOCK_DENIED);
	assert_int_equal(show(&b, &t, seed, "others", mine, &right),
			 BLOCK_DENIED);
	memset(t.by, 0, sizeof(t.by));
	assert_int_equal(show(&b, &t, seed, "team", yours, &right), BLOCK_OK);
	pthread_mutex_destroy(&b.keys_lock);
}

static void forged_and_old_ones_open_nothing(void **state)
{
	struct ctl_ticket t = sample();
	uint8_t bytes[CTL_TICKET_BYTES + 1] = {0};
	struct blk_right right;
	struct mem_blocks b;

	(void)state;
	know(&b);
	assert_int_equal(show(&b, &t, other_seed, "team", mine, &right),
			 BLOCK_DENIED);
	ctl_ticket_sign(&t, seed, bytes);
	assert_int_equal(block_ticket_judge(&b, "team", mine, bytes,
					    CTL_TICKET_BYTES - 1, &right),
			 BLOCK_DENIED);
	assert_int_equal(block_ticket_judge(&b, "team", mine, bytes,
					    sizeof(bytes), &right),
			 BLOCK_DENIED);
	for (unsigned i = 0; i < CTL_TICKET_BYTES; i++) {
		enum block_status s;

		bytes[i] ^= 0x40;
		s = block_ticket_judge(&b, "team", mine, bytes,
				       CTL_TICKET_BYTES, &right);
		/* A key that is not known may come with the next beat. */
		assert_true(s == BLOCK_DENIED ||
			    (s == BLOCK_BUSY && i >= 4 && i < 8));
		bytes[i] ^= 0x40;
	}
	t.end_s = (uint64_t)time(NULL) - 2 * CTL_TICKET_SLACK_S;
	assert_int_equal(show(&b, &t, seed, "team", mine, &right),
			 BLOCK_DENIED);
	pthread_mutex_destroy(&b.keys_lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ticket_opens_what_it_says),
		cmocka_unit_test(it_needs_a_connection_of_its_own_token),
		cmocka_unit_test(forged_and_old_ones_open_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
