/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a chain, and the turns of this world. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_chain_priv.h"

enum {
	TURNS = 6000,
	CALM = 20000, /* turns in which all must come to its end */
	PATIENCE = 250,
};

uint32_t ec_length(uint32_t id)
{
	return id % 23 ? 8 + id * 37 % 290 : 8 + id * 4799 % (EC_VALUE_MAX - 8);
}

void ec_fill(uint32_t id, uint8_t *out)
{
	uint32_t length = ec_length(id);

	memcpy(out, &id, 4);
	for (uint32_t i = 4; i < length; i++)
		out[i] = (uint8_t)(id * 7 + i);
}

/* ---- operations ---------------------------------------------------------- */

static enum block_opcode choose(struct ec *w)
{
	unsigned n = sim_rand_below(&w->run->rand, 4);

	switch (w->kind) {
	case BLOCK_QUEUE:
		return n < 2 ? BLOCK_PUT : BLOCK_GET;
	case BLOCK_EKV:
		return n < 2 ? BLOCK_KV_GET : BLOCK_KV_PUT;
	case BLOCK_FILE:
	case BLOCK_KINDS:
	default:
		return n < 3 ? BLOCK_APPEND : BLOCK_STAT;
	}
}

static bool begin(struct ec *w, struct ec_client *c)
{
	struct ec_op *op = &w->op[w->op_count];

	if (w->op_count == EC_OPS || w->is_calm)
		return false;
	*op = (struct ec_op){.opcode = choose(w),
			     .client = c->index,
			     .key = sim_rand_below(&w->run->rand, EC_KEYS),
			     .begun = w->turn};
	if (op->opcode == BLOCK_KV_PUT && op->key == EC_KEYS - 1)
		op->opcode = BLOCK_KV_ADD;
	if (op->opcode == BLOCK_APPEND || op->opcode == BLOCK_PUT ||
	    op->opcode == BLOCK_KV_PUT)
		op->id = ++w->ids;
	w->op_count++;
	w->n->ops++;
	c->op = op;
	if (op->opcode != BLOCK_STAT && op->opcode != BLOCK_KV_GET)
		c->sequence++;
	return true;
}

/* As far/elastic puts it together. */
static void put_key(const struct ec_op *op, struct ec_way *m)
{
	uint8_t name[8];
	uint32_t key_bytes =
		(uint32_t)snprintf((char *)name, sizeof(name), "k%u", op->key);
	uint32_t bytes = op->opcode == BLOCK_KV_PUT   ? ec_length(op->id)
			 : op->opcode == BLOCK_KV_ADD ? 8
						      : 0;
	struct block_kv_wire head = {.version = be64_put(BLOCK_KV_ANY),
				     .key_bytes = be32_put(key_bytes),
				     .value_bytes = be32_put(bytes)};
	le64 one = le64_put(1);

	m->arg = block_kv_slot(block_kv_hash(name, key_bytes));
	m->length = (uint32_t)sizeof(head) + key_bytes + bytes;
	m->bytes = malloc(m->length);
	memcpy(m->bytes, &head, sizeof(head));
	memcpy(m->bytes + sizeof(head), name, key_bytes);
	if (op->opcode == BLOCK_KV_PUT)
		ec_fill(op->id, m->bytes + sizeof(head) + key_bytes);
	else if (bytes)
		memcpy(m->bytes + sizeof(head) + key_bytes, &one, sizeof(one));
}

static void send(struct ec *w, struct ec_client *c)
{
	const struct ec_op *op = c->op;
	struct ec_way *m = ec_way_new(w);
	bool reads = op->opcode == BLOCK_STAT || op->opcode == BLOCK_KV_GET;

	c->patience = sim_rand_range(&w->run->rand, 20, PATIENCE);
	c->tag++;
	c->is_waiting = true;
	if (!m || sim_rand_chance(&w->run->rand, 30000)) {
		if (m)
			ec_way_end(m);
		return;
	}
	m->node = reads ? c->reader : c->head;
	m->generation = reads ? c->reader_generation : c->head_generation;
	m->client = c->index;
	m->tag = c->tag;
	m->delay = sim_rand_range(&w->run->rand, 1, 4);
	m->opcode = op->opcode;
	m->sequence = reads ? 0 : c->sequence;
	m->acked = c->sequence - !reads;
	if (w->kind == BLOCK_EKV) {
		put_key(op, m);
	} else if (op->id) {
		m->length = ec_length(op->id);
		m->bytes = malloc(m->length);
		ec_fill(op->id, m->bytes);
	}
}

void ec_client_step(struct ec *w, struct ec_client *c)
{
	if (c->is_waiting && --c->patience)
		return;
	/* Nobody answered: the same again, maybe elsewhere. */
	if (c->is_waiting && sim_rand_below(&w->run->rand, 4) == 0)
		ec_map(w, c);
	if (c->op || (sim_rand_below(&w->run->rand, 3) == 0 && begin(w, c)))
		send(w, c);
}

void ec_client_hear(struct ec *w, struct ec_client *c, const struct ec_way *m)
{
	struct ec_op *op = c->op;

	if (!c->is_waiting || m->tag != c->tag)
		return;
	if (m->result.status == BLOCK_ELSEWHERE ||
	    m->result.status == BLOCK_BUSY) {
		if (sim_rand_below(&w->run->rand, 2))
			ec_map(w, c);
		c->patience = sim_rand_range(&w->run->rand, 1, 20);
		return;
	}
	op->ended = w->turn;
	op->status = m->result.status;
	op->value = m->result.value;
	op->got = m->result.got;
	op->is_whole = m->result.is_whole;
	c->is_waiting = false;
	c->op = NULL;
}

/* ---- turns --------------------------------------------------------------- */

static void travel(struct ec *w, struct ec_way *m)
{
	struct ec_node *n = &w->node[m->node], *from = &w->node[m->from];

	if (!m->is_used || m->delay == UINT32_MAX)
		return;
	m->age++;
	if (m->delay > 1) {
		m->delay--;
		return;
	}
	if (m->is_answer) {
		if (!from->cut_clients && !from->stopped && m->is_watch)
			ec_ear_hear(w, &w->ear[m->client], m);
		else if (!from->cut_clients && !from->stopped)
			ec_client_hear(w, &w->client[m->client], m);
		ec_way_end(m);
		return;
	}
	if (n->dead || (m->is_link && (n->cut_peers || from->cut_peers)) ||
	    (!m->is_link && !m->is_watch &&
	     w->client[m->client].tag != m->tag)) {
		ec_way_end(m);
		return;
	}
	if (!n->stopped)
		(void)ec_node_arrive(w, n, m); /* what waits comes again */
}

static bool is_over(const struct ec *w)
{
	for (unsigned i = 0; i < EC_CLIENTS; i++)
		if (w->client[i].op)
			return false;
	return true;
}

static void turn(struct ec *w)
{
	w->turn++;
	ec_trouble(w);
	for (unsigned i = 0; i < EC_WAYS; i++)
		travel(w, &w->way[i]);
	for (unsigned i = 0; i < EC_NODES; i++)
		if (!w->node[i].dead && !w->node[i].stopped)
			ec_node_step(w, &w->node[i]);
	ec_control_step(w);
	for (unsigned i = 0; i < EC_CLIENTS; i++)
		ec_client_step(w, &w->client[i]);
	for (unsigned i = 0; i < EC_EARS; i++)
		ec_ear_step(w, &w->ear[i]);
}

static int play_kind(struct ec *w)
{
	int err;

	w->copies = sim_rand_range(&w->run->rand, 2, 4);
	w->patience = sim_rand_range(&w->run->rand, 100, 900);
	for (unsigned i = 0; i < EC_NODES; i++) {
		w->node[i].world = w;
		w->node[i].index = i;
		w->node[i].offset_ns =
			1000000000ull * sim_rand_range(&w->run->rand, 1, 999);
	}
	err = ec_control_begin(w);
	for (unsigned i = 0; i < EC_CLIENTS; i++) {
		w->client[i].index = i;
		ec_map(w, &w->client[i]);
	}
	ec_ears_begin(w);
	while (!err && w->turn < TURNS && !w->run->res->violations)
		turn(w);
	w->is_calm = true;
	while (!err && w->turn < TURNS + CALM &&
	       !(is_over(w) && ec_ears_heard(w) && w->turn > TURNS + 1000))
		turn(w);
	if (!err && (!is_over(w) || !ec_ears_heard(w)))
		play_fail(w->run, "a chain hangs in epoch %llu",
			  (unsigned long long)w->epoch);
	else if (!err)
		ec_judge(w);
	return err;
}

int ec_play(struct play_run *run, struct elastic_play_counts *n)
{
	int err = 0;

	for (unsigned k = BLOCK_FILE;
	     k < BLOCK_KINDS && !err && !run->res->violations; k++) {
		struct ec *w = calloc(1, sizeof(*w));

		if (!w)
			return -ENOMEM;
		w->run = run;
		w->n = n;
		w->kind = (enum block_kind)k;
		err = play_kind(w);
		for (unsigned i = 0; i < EC_NODES; i++)
			ec_node_free(&w->node[i]);
		for (unsigned i = 0; i < EC_WAYS; i++)
			ec_way_end(&w->way[i]);
		free(w);
	}
	return err;
}
