/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small walker for tests, and a connection whose second end has it. Its nodes
 * have four words: key, value, offset of the next node (0: none) and how often
 * it was visited. The program FIND follows the list to the key in the pad, the
 * program MARK also counts the visit in the node.
 */
#ifndef AQ_TEST_NIC_WALK_H
#define AQ_TEST_NIC_WALK_H

#include <errno.h>

#include "core/nic_limits.h"
#include "nic_pair.h"

enum {
	WALK_ROOM_MAX = 64,
	WALK_PAD = 128,
	FIND = 1,
	MARK = 2,
	NODE_BYTES = 32,
};

struct walk_node {
	uint64_t key, value, next, visits;
};

struct walk_pad {
	uint64_t key, value, found, visited;
};

struct follower {
	struct nic_walker hook;
	unsigned room;
	bool held;	 /* makes no iteration; do not pair_run then */
	unsigned budget; /* iterations per turn at most; 0: as told */
	unsigned next;	 /* whose iteration is next */
	unsigned begun, forgotten, turns, most_in_a_turn;
	struct nic_walk *walk[WALK_ROOM_MAX];
	uint64_t at[WALK_ROOM_MAX];
	uint32_t took[WALK_ROOM_MAX];
};

static inline int follower_start(void *ctx, struct nic_walk *walk)
{
	struct follower *f = ctx;

	assert_true((walk->pad_room == WALK_PAD ||
		     walk->pad_room == NIC_WALK_PAD_MAX) &&
		    !walk->job);
	assert_int_equal((uintptr_t)walk->pad % 64, 0);
	if (walk->program != FIND && walk->program != MARK)
		return -ENOENT;
	for (unsigned i = 0; i < f->room; i++) {
		if (f->walk[i])
			continue;
		f->walk[i] = walk;
		f->at[i] = walk->at;
		f->took[i] = 0;
		f->begun++;
		return 0;
	}
	return -EAGAIN;
}

static inline void follower_end(struct follower *f, unsigned i, uint8_t status)
{
	struct nic_walk *walk = f->walk[i];

	f->walk[i] = NULL;
	walk->answer_bytes =
		u32_min(walk->answer_bytes, (uint32_t)sizeof(struct walk_pad));
	nic_walk_done(walk, status, f->at[i], walk->iterations - f->took[i],
		      f->took[i]);
}

static inline void follower_step(struct follower *f, unsigned i)
{
	static const uint8_t ends[] = {
		[NIC_WALK_ELSEWHERE] = WALK_WIRE_ELSEWHERE,
		[NIC_WALK_FAULT] = WALK_WIRE_FAULT,
		[NIC_WALK_NO_RIGHT] = WALK_WIRE_NO_RIGHT,
	};
	struct nic_walk *walk = f->walk[i];
	struct walk_pad *pad = (void *)walk->pad;
	struct walk_node *node;
	enum nic_walk_where where;
	uint8_t *host;

	if (f->took[i] == walk->iterations) {
		follower_end(f, i, WALK_WIRE_MORE);
		return;
	}
	where = nic_walk_reach(walk, f->at[i], NODE_BYTES,
			       walk->program == MARK, &host);
	if (where != NIC_WALK_HERE) {
		follower_end(f, i, ends[where]);
		return;
	}
	node = (void *)host;
	f->took[i]++;
	pad->visited++;
	if (walk->program == MARK)
		node->visits++;
	if (node->key == pad->key) {
		pad->value = node->value;
		pad->found = 1;
	}
	if (pad->found || !node->next) {
		follower_end(f, i, WALK_WIRE_DONE);
		return;
	}
	f->at[i] = node->next;
}

static inline bool follower_turn(void *ctx, uint32_t iterations)
{
	struct follower *f = ctx;
	unsigned n = 0, idle = 0;

	f->turns++;
	if (f->budget)
		iterations = u32_min(iterations, f->budget);
	while (!f->held && n < iterations && idle < f->room) {
		unsigned i = f->next++ % f->room;

		if (!f->walk[i]) {
			idle++;
			continue;
		}
		idle = 0;
		n++;
		follower_step(f, i);
	}
	if (n > f->most_in_a_turn)
		f->most_in_a_turn = n;
	for (unsigned i = 0; i < f->room; i++)
		if (f->walk[i])
			return true;
	return false;
}

static inline void follower_forget(void *ctx, struct nic_walk *walk)
{
	struct follower *f = ctx;

	for (unsigned i = 0; i < f->room; i++) {
		if (f->walk[i] != walk)
			continue;
		f->walk[i] = NULL;
		f->forgotten++;
		return;
	}
	fail_msg("a walk that is not here is forgotten");
}

static inline void follower_init(struct follower *f, unsigned room)
{
	*f = (struct follower){
		.hook = {.ctx = f,
			 .start = follower_start,
			 .turn = follower_turn,
			 .forget = follower_forget},
		.room = room,
	};
}

/* ---- a connection with it ----------------------------------------------- */

struct walk_conn {
	struct conn c;
	struct follower f;
};

/* Both ends again, with pads at the second. */
static inline void walk_connect(struct walk_conn *w, uint32_t pad_bytes)
{
	qp_to(w->c.e[0].qp, IBV_QPS_RESET);
	qp_to(w->c.e[1].qp, IBV_QPS_RESET);
	assert_int_equal(nic_qp_set_walk_pad(w->c.e[1].qp, pad_bytes), 0);
	end_connect(&w->c.e[0], &w->c.e[1], w->c.mtu);
	end_connect(&w->c.e[1], &w->c.e[0], w->c.mtu);
}

static inline void walk_init(struct walk_conn *w, unsigned room)
{
	conn_init(&w->c, IBV_MTU_1024);
	follower_init(&w->f, room);
	assert_int_equal(nic_set_walker(w->c.e[1].nic, &w->f.hook), 0);
	walk_connect(w, WALK_PAD);
}

static inline void walk_release(struct walk_conn *w)
{
	conn_release(&w->c);
}

static inline struct walk_node *node_at(struct walk_conn *w, uint64_t at)
{
	return (void *)(w->c.e[1].mem + at);
}

/* A list of `n` nodes `gap` bytes apart, from `at` on: keys 1 to n. */
static inline void make_list(struct walk_conn *w, uint64_t at, unsigned n,
			     uint32_t gap)
{
	for (unsigned i = 0; i < n; i++) {
		*node_at(w, at + i * gap) = (struct walk_node){
			.key = i + 1,
			.value = 1000 + i,
			.next = i + 1 < n ? at + (i + 1) * gap : 0,
		};
	}
}

/* Where the list of request `id` is in the memory of the first end. */
static inline uint8_t *walk_list(struct walk_conn *w, uint64_t id)
{
	return w->c.e[0].mem + 4096 + id * 1024;
}

static inline struct nic_walk_result walk_result(struct walk_conn *w,
						 uint64_t id)
{
	struct nic_walk_result r;

	memcpy(&r, walk_list(w, id), sizeof(r));
	return r;
}

static inline struct walk_pad walk_answer(struct walk_conn *w, uint64_t id)
{
	struct walk_pad p;

	memcpy(&p, walk_list(w, id) + sizeof(struct nic_walk_result),
	       sizeof(p));
	return p;
}

struct walk_ask {
	uint64_t program, at, key;
	uint32_t rkey; /* 0: that of the second end */
	uint32_t iterations;
	unsigned flags;
	bool forward;
};

/* Posts from the first end; not kicked. */
static inline int walk_post(struct walk_conn *w, uint64_t id,
			    const struct walk_ask *ask)
{
	uint8_t *list = walk_list(w, id);
	struct walk_pad pad = {.key = ask->key};
	struct ibv_sge sge = {
		.addr = (uintptr_t)list,
		.length = sizeof(struct nic_walk_result) + sizeof(pad),
		.lkey = w->c.e[0].key,
	};
	struct nic_walk_request request = {
		.at = ask->at,
		.program = ask->program,
		.rkey = ask->rkey ? ask->rkey : w->c.e[1].key,
		.iterations = ask->iterations ? ask->iterations : 100,
		.send_bytes = sizeof(pad.key),
		.forward = ask->forward,
	};
	struct nic_send_extra extra = {.walk = &request};
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED | ask->flags,
	};

	memset(list, 0xee, sge.length);
	memcpy(list + sizeof(struct nic_walk_result), &pad, sizeof(pad.key));
	return nic_qp_post_send(w->c.e[0].qp, &wr, &extra);
}

static inline void walk_ask(struct walk_conn *w, uint64_t id,
			    const struct walk_ask *ask)
{
	assert_int_equal(walk_post(w, id, ask), 0);
	nic_qp_kick(w->c.e[0].qp);
}

/* Until the first end has a completion, by its timers if need be. */
static inline void walk_wait(struct walk_conn *w)
{
	pair_run(&w->c.p);
	for (unsigned i = 0; nic_cq_is_empty(w->c.e[0].scq); i++) {
		assert_true(i < 10);
		pair_advance(&w->c.p, 100000000);
	}
}

/* Everything on the wire to the second end arrives, and that is all. */
static inline void walk_arrive(struct walk_conn *w)
{
	while (w->c.p.tail != w->c.p.head)
		pair_deliver(&w->c.p);
	(void)nic_flush(w->c.e[1].nic);
}

#endif
