/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number that clients count up, overwrite and delete, and a key whose values
 * expire.
 *
 * The history knows no time. So the end of a life is a compare-and-swap in it
 * from that value to none, which begins when the value's time is over and never
 * returns: it may happen at any later time, and before that it explains nobody
 * who did not find the value. That a value is not found any more after its time
 * is judged beside the history.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv_play_priv.h"

enum {
	ADD_MAX = 9,
	LIFE_MS_MAX = 3,
	NUMBER_BYTES = 24,
};

/* Any time but 0, which is none. */
#define EPOCH_MS 1000000ull

uint64_t kp_now_ms(void *client)
{
	const struct kp_client *c = client;

	return EPOCH_MS + play_now_ns(c->base.run) / 1000000;
}

/* ---- the number ---------------------------------------------------------- */

static void increment(struct kp_client *c)
{
	uint32_t key = KP_NUMBER;
	uint64_t add = sim_rand_range(&c->base.rand, 1, ADD_MAX);
	int64_t op = play_invoke(&c->base, key, LIN_FAA, add, 0), result = 0;
	int err = aq_kv_incr(c->kv, &key, sizeof(key), (int64_t)add, &result);

	kp_of(c)->n->increments++;
	if (err)
		play_return(&c->base, op, play_ended(&c->base, err),
			    LIN_SAID_NOTHING);
	else
		lin_return_got(c->base.run->history, op,
			       lin_int((uint64_t)result - add),
			       play_now_ns(c->base.run));
}

static void overwrite(struct kp_client *c)
{
	uint32_t key = KP_NUMBER;
	uint64_t number = 1000 * ++c->base.run->next_value;
	int64_t op = play_invoke(&c->base, key, LIN_WRITE, number, 0);
	char text[NUMBER_BYTES];
	int len = snprintf(text, sizeof(text), "%" PRIu64, number);
	int err = aq_kv_put(c->kv, &key, sizeof(key), text, (size_t)len, NULL);

	play_return(&c->base, op, play_ended(&c->base, err), LIN_SAID_NOTHING);
}

static void look(struct kp_client *c)
{
	uint32_t key = KP_NUMBER;
	int64_t op = play_invoke(&c->base, key, LIN_READ, 0, 0);
	char text[NUMBER_BYTES] = "", *end;
	size_t len = 0;
	int err = aq_kv_get(c->kv, &key, sizeof(key), text, sizeof(text) - 1,
			    &len);
	uint64_t number;

	if (err && err != -ENOENT) {
		play_return(&c->base, op, play_ended(&c->base, err),
			    LIN_SAID_NOTHING);
		return;
	}
	number = strtoull(text, &end, 10);
	if (!err && (end == text || end != text + len))
		play_fail(c->base.run, "no number: %s", text);
	lin_return_got(c->base.run->history, op,
		       err ? lin_nil() : lin_int(number),
		       play_now_ns(c->base.run));
}

void kp_number_step(struct kp_client *c)
{
	switch (sim_rand_below(&c->base.rand, 8)) {
	case 0:
	case 1:
		overwrite(c);
		break;
	case 2:
		look(c);
		break;
	case 3:
		play_del(&c->base, KP_NUMBER);
		break;
	default:
		increment(c);
	}
}

/* ---- values that expire -------------------------------------------------- */

/* Lives whose time is over end in the history, before anything else that is
 * recorded there from now on. */
static void end_lives(struct kp_client *c)
{
	struct kp *p = kp_of(c);
	uint64_t now_ms = kp_now_ms(c);

	for (unsigned i = 0; i < p->lives; i++) {
		struct kp_life *l = &p->life[i];

		if (l->is_over || !l->end_ms || now_ms < l->end_ms)
			continue;
		l->is_over = true;
		if (lin_invoke(p->run.history, KP_CLIENTS_MAX,
			       lin_int(KP_MORTAL), LIN_CAS, lin_int(l->id),
			       lin_nil(), play_now_ns(&p->run)) < 0)
			play_fail(&p->run, "the history is full");
	}
}

static void write_mortal(struct kp_client *c)
{
	struct kp *p = kp_of(c);
	struct aq_kv_put_options o = {0};
	uint32_t key = KP_MORTAL;
	uint8_t value[KP_VALUE_MAX];
	uint64_t id = ++p->run.next_value;
	bool is_new = sim_rand_below(&c->base.rand, 2);
	size_t len = play_value_make(&p->run, id, value);
	int64_t op;
	int err;

	if (p->lives == KP_LIVES_MAX)
		return;
	if (sim_rand_below(&c->base.rand, 4))
		o.expire_at_ms = kp_now_ms(c) +
				 sim_rand_range(&c->base.rand, 1, LIFE_MS_MAX);
	o.flags = is_new ? AQ_KV_NX : 0;
	p->life[p->lives++] =
		(struct kp_life){.id = id, .end_ms = o.expire_at_ms};
	p->n->mortals++;
	end_lives(c);
	op = play_invoke(&c->base, key, is_new ? LIN_INSERT : LIN_WRITE, id, 0);
	err = aq_kv_put(c->kv, &key, sizeof(key), value, len, &o);
	end_lives(c);
	if (is_new && err == -EEXIST)
		play_return(&c->base, op, LIN_OK, LIN_NO);
	else
		play_return(&c->base, op, play_ended(&c->base, err),
			    is_new && !err ? LIN_YES : LIN_SAID_NOTHING);
}

static void read_mortal(struct kp_client *c)
{
	struct kp *p = kp_of(c);
	uint32_t key = KP_MORTAL;
	uint8_t value[KP_VALUE_MAX];
	uint64_t begin_ms = kp_now_ms(c), id;
	size_t len = 0;
	int64_t op;
	int err;

	end_lives(c);
	op = play_invoke(&c->base, key, LIN_READ, 0, 0);
	err = aq_kv_get(c->kv, &key, sizeof(key), value, sizeof(value), &len);
	end_lives(c);
	id = play_return_read(&c->base, op, err, value, len);
	for (unsigned i = 0; i < p->lives; i++) {
		const struct kp_life *l = &p->life[i];

		p->n->expired +=
			err == -ENOENT && i + 1 == p->lives && l->is_over;
		if (id && l->id == id && l->end_ms && begin_ms >= l->end_ms)
			play_fail(&p->run,
				  "a value that had expired was found: %" PRIu64
				  " at %" PRIu64 ", until %" PRIu64,
				  id, begin_ms, l->end_ms);
	}
}

void kp_mortal_step(struct kp_client *c)
{
	if (sim_rand_below(&c->base.rand, 2))
		write_mortal(c);
	else
		read_mortal(c);
}
