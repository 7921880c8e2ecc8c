/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of Sherman (Wang, Lu and Shu, SIGMOD 2022): leaves of one KiB of a
 * B+tree on eight nodes, whose inner nodes every client has, and locks in
 * device memory. Reads: the leaf. Changes: the lock by CAS, the leaf, then the
 * entry together with the unlocking. Clients of one machine wait for a lock in
 * a local queue and hand it on up to eight times; who has none tries again and
 * again. Requests and numbers are those of its public code. Leaves never split
 * here, and each client has a NIC of its own, which flatters it.
 */
#include <errno.h>
#include <stdlib.h>

#include "kv_fig_rival.h"

enum {
	LEAF_BYTES = 1024,
	LEAF_ENTRIES = 36, /* of 54, as full as B+trees are */
	ENTRY_BYTES = 18,
	LOCKS = 32768, /* words of device memory, on each node */
	HANDED_MAX = 8,
	BUF_LEAF = 0,
	BUF_ANSWER = 2048,
	BUF_ZERO = 2056,
};

#define LOCAL_WAIT_PS (200 * SIM_NS)

/* One lock as the clients of one machine see it. */
struct local {
	bool is_busy;
	bool is_ours; /* the machine has it */
	uint8_t handed;
	uint16_t waiting;
};

struct sherman {
	uint64_t leaves; /* of one node */
	struct scenario_region *leaf[KV_FIG_MACHINES];
	struct scenario_region *lock[KV_FIG_MACHINES];
	struct local (*local)[KV_FIG_MACHINES * LOCKS]; /* of each machine */
};

static int prepare(struct kvf *f)
{
	struct sherman *u = calloc(1, sizeof(*u));
	uint32_t i;
	int err = 0;

	if (!u)
		return -ENOMEM;
	f->rival = u;
	u->local = calloc(KV_FIG_MACHINES, sizeof(u->local[0]));
	u->leaves = f->cfg.capacity / LEAF_ENTRIES / KV_FIG_MACHINES + 1;
	if (!u->local)
		return -ENOMEM;
	for (i = 0; i < f->nodes && !err; i++) {
		err = scenario_region_create(f->node[i], u->leaves * LEAF_BYTES,
					     false, &u->leaf[i]);
		if (!err)
			err = scenario_region_create(f->node[i], LOCKS * 8ull,
						     true, &u->lock[i]);
	}
	return err;
}

static int open_one(struct kvf_client *c)
{
	struct sherman *u = c->f->rival;

	return rival_open(c, u->leaf, KV_FIG_MACHINES,
			  (struct rival **)&c->rival);
}

struct place {
	uint32_t node;
	uint64_t leaf, lock;
};

/* Keys that are next to each other share a leaf; the popular ones are spread
 * among all. */
static struct place place_of(const struct kvf *f, uint64_t record)
{
	const struct sherman *u = f->rival;
	uint64_t leaf = record / LEAF_ENTRIES % (u->leaves * KV_FIG_MACHINES);

	return (struct place){.node = (uint32_t)(leaf % KV_FIG_MACHINES),
			      .leaf = leaf / KV_FIG_MACHINES,
			      .lock = leaf / KV_FIG_MACHINES % LOCKS};
}

static int read_leaf(struct kvf_client *c, const struct place *p)
{
	struct sherman *u = c->f->rival;

	rival_read(c->rival, u->leaf[p->node], p->leaf * LEAF_BYTES, BUF_LEAF,
		   LEAF_BYTES);
	return rival_go(c, c->rival, p->node);
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	struct place p = place_of(c->f, record);

	return read_leaf(c, &p);
}

static int take_lock(struct kvf_client *c, const struct place *p,
		     struct local *l)
{
	struct sherman *u = c->f->rival;
	struct rival *v = c->rival;
	int err = 0;

	l->waiting++;
	while (l->is_busy)
		sim_fiber_sleep_ps(c->f->sim, LOCAL_WAIT_PS);
	l->waiting--;
	l->is_busy = true;
	if (l->is_ours)
		return 0;
	do {
		rival_cas(v, u->lock[p->node], p->lock * 8, BUF_ANSWER, 0,
			  c->index + 1);
		err = rival_go(c, v, p->node);
	} while (!err && *rival_word(v, BUF_ANSWER) && !c->f->is_stopping);
	l->is_ours = !err && !*rival_word(v, BUF_ANSWER);
	l->handed = 0;
	return err;
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	struct place p = place_of(c->f, record);
	struct sherman *u = c->f->rival;
	struct rival *v = c->rival;
	struct local *l =
		&u->local[c->index % KV_FIG_MACHINES][p.node * LOCKS + p.lock];
	int err = take_lock(c, &p, l);

	if (!err)
		err = read_leaf(c, &p);
	if (!err) {
		rival_write(v, u->leaf[p.node],
			    p.leaf * LEAF_BYTES +
				    record % LEAF_ENTRIES * ENTRY_BYTES,
			    BUF_LEAF, ENTRY_BYTES);
		if (!l->waiting || ++l->handed > HANDED_MAX) {
			rival_write(v, u->lock[p.node], p.lock * 8, BUF_ZERO,
				    8);
			err = rival_go(c, v, p.node);
			l->is_ours = false;
		} else {
			err = rival_go(c, v, p.node);
		}
	}
	l->is_busy = false;
	return err;
}

static void close_one(struct kvf_client *c)
{
	rival_close(c->rival);
	c->rival = NULL;
}

static void release(struct kvf *f)
{
	struct sherman *u = f->rival;

	if (u)
		free(u->local);
	free(u);
}

const struct kvf_ops kvf_sherman_ops = {
	.name = "sherman-like",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
