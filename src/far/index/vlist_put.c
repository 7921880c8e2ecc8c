/* SPDX-License-Identifier: Apache-2.0 */
/* Appending a version to a key's list. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "vlist_priv.h"

struct put {
	uint64_t key;
	const void *value;
	uint32_t len;
	uint32_t flags;
	struct vlist_memo *memo;
	uint32_t mine;	/* the node, or VLIST_NONE */
	uint64_t node;	/* a pointer to it */
	uint64_t place; /* a committed version, perhaps the newest */
	uint64_t head;	/* read before the append; 0: it was not */
	bool is_written;
	unsigned tries;
};

static int take_node(struct vlist_client *c, struct put *p)
{
	struct vlist_node *n = c->node;
	int err = vlist_node_take(c, p->key, &p->mine);

	if (err)
		return err;
	p->node = vlist_mine_pointer(c, p->mine);
	p->is_written = false;
	*n = (struct vlist_node){
		.next = le64_put(vlist_end_of(p->node)),
		.self = le64_put(p->node),
		.key = le64_put(p->key),
		.len_bytes = le32_put(p->len),
		.flags = le32_put(p->flags),
		.owner = le32_put(c->kit.slot),
		.owner_epoch = le32_put(c->kit.epoch),
	};
	if (p->len)
		memcpy(n + 1, p->value, p->len);
	n->crc = le64_put(vlist_node_crc(n, n + 1, p->len));
	return 0;
}

static void add_node(struct vlist_client *c, struct put *p)
{
	if (!p->is_written)
		kit_write(&c->kit.main, VLIST_POINT_NODE, vlist_offset(p->node),
			  c->node, VLIST_NODE_HEAD + p->len);
	p->is_written = true;
}

/* ---- the entry moves on -------------------------------------------------- */

static bool wants_head(const struct vlist_client *c, const struct put *p)
{
	return p->memo->entry && p->memo->newest != VLIST_NONE &&
	       p->memo->writes >= c->config.collect_every;
}

/*
 * The head was read before the append, so the new version is behind it. Where
 * the entry still says so it is moved on, and everything of this client's
 * before the new version is free. That has time until the next write, whose
 * requests it joins. Until then this version stays: it is only freed when the
 * entry has moved past it, and then the entry does not say what it said.
 */
static void move_head_later(struct vlist_client *c, const struct put *p)
{
	if (!p->head)
		return;
	c->later =
		(struct vlist_later){.entry = p->memo->entry,
				     .head = p->head,
				     .node = p->node,
				     .mine = p->mine,
				     .generation = c->mine[p->mine].generation};
	/* Who is beaten to it waits for as many writes again: of a key that
	 * many write, trying each time would make this word, on which a NIC
	 * executes one atomic after the other, the limit of everybody. */
	p->memo->writes = 0;
}

static void add_later(struct vlist_client *c)
{
	if (c->later.entry)
		kit_cas(&c->kit.main, VLIST_POINT_HEAD,
			c->later.entry + offsetof(struct vlist_entry, head),
			c->later.head, c->later.node,
			&c->atom[VLIST_ATOM_LATER]);
}

static void take_later(struct vlist_client *c)
{
	const struct vlist_later l = c->later;

	if (!l.entry)
		return;
	c->later.entry = 0;
	if (c->atom[VLIST_ATOM_LATER] != l.head)
		return;
	c->stats.heads++;
	if (c->mine[l.mine].generation == l.generation &&
	    c->mine[l.mine].state == VLIST_MINE_USED)
		vlist_collect_older(c, l.mine);
}

static int succeed(struct vlist_client *c, struct put *p)
{
	c->stats.appends_first += p->tries <= 1;
	p->memo->writes++;
	vlist_node_committed(c, p->memo, p->mine);
	p->mine = VLIST_NONE;
	return 0;
}

/* ---- the first version --------------------------------------------------- */

static int put_first(struct vlist_client *c, struct put *p)
{
	uint64_t head;
	int err = vlist_entry_take(c, p->key, &p->memo->entry, &head);

	if (err)
		return err;
	p->place = head;
	if (head)
		return -EAGAIN;
	kit_begin(&c->kit);
	add_node(c, p);
	kit_cas(&c->kit.main, VLIST_POINT_FIRST,
		p->memo->entry + offsetof(struct vlist_entry, head), 0, p->node,
		&c->atom[VLIST_ATOM_APPEND]);
	p->tries++;
	err = kit_run(&c->kit);
	if (err)
		return err;
	if (!c->atom[VLIST_ATOM_APPEND])
		return succeed(c, p);
	p->place = c->atom[VLIST_ATOM_APPEND];
	return -EAGAIN;
}

/* ---- what the answer says ------------------------------------------------ */

/* It will never be committed: said in it, for who hangs behind it. */
static int abandon(struct vlist_client *c, struct put *p)
{
	int err;

	*c->word = VLIST_NODE_ABANDONED;
	err = kit_write_now(&c->kit.main, VLIST_POINT_ABANDON,
			    vlist_offset(p->node) +
				    offsetof(struct vlist_node, state),
			    c->word, 8);
	if (err)
		return err;
	vlist_node_give(c, p->mine);
	p->mine = VLIST_NONE;
	return take_node(c, p);
}

static int find_out(struct vlist_client *c, struct put *p, uint64_t before)
{
	enum vlist_fate fate = VLIST_COMMITTED_NOW;
	int err = 0;

	if (vlist_offset(before) == vlist_offset(p->place))
		c->stats.stale++;
	else
		c->stats.unvouched++;
	if (!PLANTED(trust_all))
		err = vlist_verify(c, p->key, p->place, p->node, before, &fate);
	if (err)
		return err;
	p->head = 0;
	switch (fate) {
	case VLIST_COMMITTED_NOW:
		return succeed(c, p);
	case VLIST_DEAD:
		err = abandon(c, p);
		/* fall through */
	case VLIST_NOT_LANDED:
		vlist_place_void(c, p->memo);
		p->place = 0;
		return err ? err : -EAGAIN;
	case VLIST_UNKNOWN:
		break;
	}
	return error_set(-ETIMEDOUT, "nobody knows whether the write happened");
}

/*
 * Another append was first. What the answer points to is newer, but may hang
 * behind a version that is not committed, if a switch chose the place; what
 * this client's own place leads to is.
 */
static int go_on(struct vlist_client *c, struct put *p)
{
	for (unsigned i = 0; i < VLIST_PUT_STEPS; i++) {
		enum vlist_verdict verdict;
		uint64_t self, next;
		int err = vlist_look(c, p->key, p->place, false, false,
				     &verdict, &self, &next);

		if (err)
			return err;
		if (verdict == VLIST_NEWEST)
			break;
		if (verdict != VLIST_OLD) {
			c->stats.stale++;
			vlist_place_void(c, p->memo);
			p->place = 0;
			break;
		}
		c->stats.chases++;
		p->place = next;
		vlist_place_set(c, p->memo, next, false);
	}
	return -EAGAIN;
}

static int take_answer(struct vlist_client *c, struct put *p)
{
	uint64_t said = c->atom[VLIST_ATOM_APPEND],
		 word = said & ~VLIST_COMMITTED;

	if (!word || vlist_is_pointer(word)) {
		/* A switch that steers knows the end by now. */
		if (c->is_steered && p->tries < VLIST_STEER_TRIES)
			return -EAGAIN;
		return go_on(c, p);
	}
	c->is_steered = said & VLIST_COMMITTED;
	if (word == vlist_end_of(p->place) || said & VLIST_COMMITTED) {
		c->stats.steered_appends += word != vlist_end_of(p->place);
		return succeed(c, p);
	}
	/* Also when it is another use of the same memory: that is a failure,
	 * unless a switch sent the append there. */
	return find_out(c, p, word | VLIST_LINK);
}

/* A batch, with whom it takes along. They go first: a switch may hold the
 * answer to an append back, and answers behind a missing one are taken for its
 * loss. */
static void begin(struct vlist_client *c)
{
	kit_begin(&c->kit);
	vlist_gather_add(c, &c->ride);
	add_later(c);
}

static int run(struct vlist_client *c)
{
	int err = kit_run(&c->kit);

	if (err) {
		c->ride.stage = VLIST_GATHER_IDLE;
		c->later.entry = 0;
		return err;
	}
	vlist_gather_take(c, &c->ride);
	take_later(c);
	return 0;
}

static int append(struct vlist_client *c, struct put *p)
{
	uint64_t entry_head =
		p->memo->entry + offsetof(struct vlist_entry, head);
	bool wants = wants_head(c, p);
	int err = 0;

	/* Where a switch steers, others may be sent behind this version as soon
	 * as its append passes: it had better be there. */
	p->head = 0;
	if (c->is_steered && !p->is_written) {
		begin(c);
		add_node(c, p);
		if (wants)
			kit_read(&c->kit.main, entry_head, c->word, 8);
		err = run(c);
		p->head = wants ? *c->word : 0;
		wants = false;
	}
	if (err)
		return err;
	begin(c);
	/* Not a READ: that is executed again when its answer is lost, and then
	 * perhaps after the append. An atomic is not. */
	if (wants)
		kit_cas(&c->kit.main, VLIST_POINT_HEAD, entry_head, 0, 0,
			&c->atom[VLIST_ATOM_HEAD]);
	add_node(c, p);
	kit_cas(&c->kit.main, VLIST_POINT_APPEND, vlist_offset(p->place),
		vlist_end_of(p->place), p->node, &c->atom[VLIST_ATOM_APPEND]);
	c->stats.appends++;
	p->tries++;
	err = run(c);
	if (err)
		return err;
	if (wants)
		p->head = c->atom[VLIST_ATOM_HEAD];
	return take_answer(c, p);
}

/* ---- all of it ----------------------------------------------------------- */

static int try_put(struct vlist_client *c, struct put *p)
{
	int err;

	if (!p->place) {
		err = vlist_start(c, p->memo, p->key, &p->place);
		if (err == -ENOENT)
			return put_first(c, p);
		if (err)
			return err;
	}
	if (!vlist_pointer_is_sane(&c->g, p->place))
		return error_set(-EBADMSG, "the store is damaged: key %llu",
				 (unsigned long long)p->key);
	return append(c, p);
}

static int put(struct vlist_client *c, struct put *p)
{
	uint32_t node;
	int err = take_node(c, p);

	if (err)
		return err;
	node = p->mine;
	vlist_ride_begin(c);
	do {
		err = try_put(c, p);
		node = p->mine != VLIST_NONE ? p->mine : node;
		if (err == -EAGAIN && kit_is_late(&c->kit)) {
			/* Every append so far has failed. */
			vlist_node_give(c, p->mine);
			return error_set(-ETIMEDOUT,
					 "other writers were faster");
		}
	} while (err == -EAGAIN);
	if (!err) {
		p->mine = node;
		move_head_later(c, p);
		return 0;
	}
	if (p->mine != VLIST_NONE && !c->kit.is_broken)
		c->mine[p->mine].state = VLIST_MINE_LIMBO;
	return err;
}

static int put_or_renew(struct vlist_client *c, struct put *p)
{
	int err = c->kit.is_broken ? vlist_reconnect(c) : 0;

	if (err)
		return err;
	p->memo = vlist_memo(c, p->key);
	c->stats.puts++;
	err = put(c, p);
	if (err == -ESTALE && vlist_reconnect(c) == 0)
		err = error_set(-ESTALE,
				"the connection broke; nobody knows whether "
				"the write happened");
	return err;
}

static int check(const struct vlist_client *c, uint64_t key, size_t len)
{
	if (key == UINT64_MAX)
		return error_set(-EINVAL, "there is no such key");
	if (len > c->g.value_max)
		return error_set(-EMSGSIZE, "values here have up to %u bytes",
				 c->g.value_max);
	return 0;
}

int vlist_put(struct vlist_client *c, uint64_t key, const void *value,
	      size_t len)
{
	struct put p = {.key = key,
			.value = value,
			.len = (uint32_t)len,
			.mine = VLIST_NONE};
	int err = check(c, key, len);

	kit_set_deadline(&c->kit, c->config.deadline_ms);
	return err ? err : put_or_renew(c, &p);
}

int vlist_del(struct vlist_client *c, uint64_t key)
{
	struct put p = {
		.key = key, .flags = VLIST_NODE_DELETED, .mine = VLIST_NONE};
	int err = check(c, key, 0);

	kit_set_deadline(&c->kit, c->config.deadline_ms);
	return err ? err : put_or_renew(c, &p);
}
