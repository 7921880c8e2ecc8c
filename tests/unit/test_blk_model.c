/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue's block beside a model, with clients whose messages and answers are
 * lost or late, that connect anew and repeat what was not answered, and that
 * die. As at a node, a session's new connection ends the former one. Every item
 * that was put comes out once, or again only after the consumer that had it
 * parked has died; in the order of the puts that the model saw executed.
 */
#include "base/rng.h"
#include "blk_rig.h"

enum {
	SIZE = BLOCK_BYTES_MIN,
	CLIENTS = 5,
	BOUND = 40,
	ROUNDS = 60000,
	ITEMS_MAX = ROUNDS,
	WAYS = 8, /* copies of messages that are somewhere */
};

enum fate {
	NOT_THERE,
	IN_QUEUE,
	PARKED_BY, /* + client */
	GONE = PARKED_BY + CLIENTS,
};

struct message {
	bool is_used;
	unsigned client;
	unsigned life;
	unsigned conn;
	struct blk_request r;
	uint8_t value[8];
};

struct client {
	unsigned life; /* of its sessions */
	unsigned conn; /* of its connections */
	uint64_t sequence;
	bool is_waiting;
	struct message now;
	bool has_parked;
	uint64_t parked;
	unsigned parked_item;
};

struct model {
	struct blk_rig rig;
	struct rng rng;
	struct client client[CLIENTS];
	struct message way[WAYS];
	unsigned items;
	uint8_t fate[ITEMS_MAX];
	unsigned in; /* how many are in the queue or parked */
};

static unsigned session_of(unsigned client, unsigned life)
{
	return client + CLIENTS * life + 1;
}

static unsigned below(struct model *m, unsigned n)
{
	return (unsigned)rng_below(&m->rng, n);
}

static unsigned oldest(const struct model *m)
{
	for (unsigned i = 0; i < m->items; i++)
		if (m->fate[i] == IN_QUEUE)
			return i;
	return UINT32_MAX;
}

/* The client's next operation. */
static void ask(struct model *m, unsigned at)
{
	struct client *c = &m->client[at];
	struct message *n = &c->now;

	*n = (struct message){.is_used = true,
			      .client = at,
			      .life = c->life,
			      .conn = c->conn};
	n->r.sequence = ++c->sequence;
	n->r.acked = c->sequence - 1;
	n->r.inside_room = BLOCK_INSIDE_MAX;
	if (c->has_parked) {
		n->r.opcode = BLOCK_ACK;
		n->r.arg = c->parked;
	} else if (below(m, 2)) {
		n->r.opcode = BLOCK_PUT;
		n->r.length = sizeof(n->value);
	} else {
		n->r.opcode = BLOCK_GET;
		n->r.arg = below(m, 2);
	}
	c->is_waiting = true;
}

/* What the answer to an executed operation must have been. */
static void check(struct model *m, const struct message *n,
		  const struct blk_answer *a, bool is_first)
{
	struct client *c = &m->client[n->client];
	unsigned item;

	if (n->r.opcode == BLOCK_GET && a->status == BLOCK_OK) {
		uint64_t value;

		assert_int_equal(a->length, sizeof(value));
		memcpy(&value, a->data, sizeof(value));
		item = (unsigned)value;
		if (is_first) {
			assert_int_equal(item, oldest(m));
			m->fate[item] =
				(uint8_t)(n->r.arg ? PARKED_BY + n->client
						   : GONE);
			m->in -= !n->r.arg;
		}
		c->parked_item = item;
		c->parked = a->value;
	} else if (n->r.opcode == BLOCK_GET) {
		assert_int_equal(a->status, BLOCK_EMPTY);
		assert_int_equal(oldest(m), UINT32_MAX);
	} else if (n->r.opcode == BLOCK_PUT && a->status != BLOCK_OK) {
		assert_int_equal(a->status, BLOCK_FULL);
		assert_int_equal(m->in, BOUND);
	} else {
		assert_int_equal(a->status, BLOCK_OK);
	}
	assert_true(m->in <= BOUND);
	assert_int_equal(m->rig.block.queue.items, m->in);
}

/* A message arrives at the node. */
static void arrive(struct model *m, const struct message *from)
{
	struct message n = *from;
	struct client *c = &m->client[n.client];
	uint64_t last = 0, item = m->items;
	struct blk_answer a;
	uint32_t at;

	/* The connection is gone. */
	if (n.life != c->life || n.conn != c->conn)
		return;
	if (!blk_session_find(&m->rig.block,
			      blk_rig_session(session_of(n.client, n.life)),
			      false, &at))
		last = m->rig.block.session[at].last;
	memcpy(n.value, &item, sizeof(item));
	n.r.value = n.value;
	a = blk_rig_do(&m->rig, session_of(n.client, n.life), n.r);
	if (n.r.opcode == BLOCK_PUT && a.status == BLOCK_OK &&
	    n.r.sequence > last) {
		m->fate[m->items++] = IN_QUEUE;
		m->in++;
	}
	if (n.r.opcode == BLOCK_ACK && n.r.sequence > last) {
		m->fate[c->parked_item] = GONE;
		m->in--;
	}
	check(m, &n, &a, n.r.sequence > last);
	if (below(m, 3)) { /* and so does the answer */
		c->is_waiting = false;
		if (n.r.opcode == BLOCK_ACK)
			c->has_parked = false;
		if (n.r.opcode == BLOCK_GET && a.status == BLOCK_OK)
			c->has_parked = n.r.arg;
	}
}

static void die(struct model *m, unsigned at)
{
	struct client *c = &m->client[at];

	blk_leave(&m->rig.block, blk_rig_session(session_of(at, c->life)));
	for (unsigned i = 0; i < m->items; i++)
		if (m->fate[i] == PARKED_BY + at)
			m->fate[i] = IN_QUEUE;
	*c = (struct client){.life = c->life + 1};
}

static void step(struct model *m)
{
	unsigned at = below(m, CLIENTS), way = below(m, WAYS);
	struct client *c = &m->client[at];

	if (below(m, 500) == 0) {
		die(m, at);
		return;
	}
	if (below(m, 2) == 0 && m->way[way].is_used) {
		arrive(m, &m->way[way]);
		m->way[way].is_used = false;
		return;
	}
	if (c->is_waiting && below(m, 2))
		return; /* it has patience */
	if (c->is_waiting)
		c->now.conn = ++c->conn;
	else
		ask(m, at);
	switch (below(m, 4)) {
	case 0:
		break; /* lost */
	case 1:
		m->way[way] = c->now; /* late; another is lost for it */
		break;
	default:
		arrive(m, &c->now);
	}
}

static void queue_against_model(void **state)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	rng_init(&m->rng, 22);
	blk_rig_make(&m->rig, BLOCK_QUEUE, SIZE, BOUND, true);
	for (unsigned i = 0; i < ROUNDS; i++)
		step(m);
	assert_true(m->items > ROUNDS / 20);
	blk_rig_free(&m->rig);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_against_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
