/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the play "swordbox": random operations on shared words, recorded
 * as it sees them; when its connection breaks it makes another. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fiber.h"
#include "sword_play_priv.h"

enum kind {
	KIND_CAS,
	KIND_FAA,
	KIND_READ,
	KIND_WRITE,
	KIND_BULK,
	KIND_OWN_FAA, /* on the private word */
	KIND_OWN_READ,
	KIND_OWN_WRITE,
	KIND_DATA, /* to be published by ... */
	KIND_FLAG,
	KIND_WATCH_FLAG,
	KIND_WATCH_DATA,
};

/* ---- recording ----------------------------------------------------------- */

/* A compare and swap is recorded as two, of which one did not happen: on
 * failure it was a read, which says more than that the comparison failed. */
static void record_start(struct sp_client *c, struct sp_op *op)
{
	op->lin[0] = op->lin[1] = -1;
	switch (op->kind) {
	case KIND_CAS:
		op->lin[0] = play_invoke(&c->base, op->word, LIN_CAS,
					 op->compare, op->value);
		op->lin[1] = play_invoke(&c->base, op->word, LIN_READ, 0, 0);
		break;
	case KIND_FAA:
		op->lin[0] =
			play_invoke(&c->base, op->word, LIN_FAA, op->value, 0);
		break;
	case KIND_READ:
		op->lin[0] = play_invoke(&c->base, op->word, LIN_READ, 0, 0);
		break;
	case KIND_BULK:
		op->lin[1] = play_invoke(&c->base, op->word + 1, LIN_WRITE,
					 op->value + 1, 0);
		/* fall through */
	case KIND_WRITE:
		op->lin[0] = play_invoke(&c->base, op->word, LIN_WRITE,
					 op->value, 0);
		break;
	default:
		break;
	}
}

static void end(struct sp_client *c, int64_t op, enum lin_type type)
{
	play_return(&c->base, op, type, LIN_SAID_NOTHING);
}

static void end_got(struct sp_client *c, int64_t op, uint64_t got)
{
	lin_return_got(c->p->run.history, op, lin_int(got),
		       play_now_ns(&c->p->run));
}

/* A READ whose answer was lost is executed again, perhaps after what was posted
 * behind it: that is how RC works. It never sees what was before. */
static bool is_later_own(const struct sp_client *c, const struct sp_op *op,
			 uint64_t got)
{
	for (unsigned i = op->own_at + 1; i < c->own_count; i++)
		if (c->own[i] == got)
			return op->kind == KIND_OWN_READ;
	return false;
}

/* What the history does not show: the order of one connection. */
static void check_order(struct sp_client *c, const struct sp_op *op,
			uint64_t got)
{
	struct sword_play_counts *n = c->p->n;

	switch (op->kind) {
	case KIND_OWN_FAA:
	case KIND_OWN_READ:
		n->own++;
		if (got != op->expect && !is_later_own(c, op, got))
			play_fail(
				&c->p->run,
				"client %u: its own word gave %llu instead of "
				"%llu at %llu ns",
				c->base.index, (unsigned long long)got,
				(unsigned long long)op->expect,
				(unsigned long long)play_now_ns(&c->p->run));
		break;
	case KIND_FLAG:
		n->published++;
		break;
	case KIND_WATCH_DATA:
		n->watched++;
		if (got < op->expect)
			play_fail(&c->p->run,
				  "client %u published %llu, but %llu is there "
				  "at %llu ns",
				  op->watched, (unsigned long long)op->expect,
				  (unsigned long long)got,
				  (unsigned long long)play_now_ns(&c->p->run));
		break;
	default:
		break;
	}
}

static void record_ok(struct sp_client *c, const struct sp_op *op, uint64_t got)
{
	struct sword_play_counts *n = c->p->n;

	switch (op->kind) {
	case KIND_CAS:
		if (got == op->compare) {
			n->cas++;
			end_got(c, op->lin[0], got);
			end(c, op->lin[1], LIN_FAIL);
		} else {
			n->cas_failed++;
			end(c, op->lin[0], LIN_FAIL);
			end_got(c, op->lin[1], got);
		}
		c->seen[op->word] = got == op->compare ? op->value : got;
		break;
	case KIND_FAA:
		n->faa++;
		end_got(c, op->lin[0], got);
		c->seen[op->word] = got + op->value;
		break;
	case KIND_READ:
		n->reads++;
		end_got(c, op->lin[0], got);
		c->seen[op->word] = got;
		break;
	case KIND_BULK:
		n->bulk++;
		end(c, op->lin[1], LIN_OK);
		end(c, op->lin[0], LIN_OK);
		break;
	case KIND_WRITE:
		n->writes++;
		end(c, op->lin[0], LIN_OK);
		break;
	default:
		check_order(c, op, got);
		break;
	}
}

/* Nobody knows whether it happened, or will. */
static void record_unknown(struct sp_client *c, const struct sp_op *op)
{
	if (op->kind > KIND_BULK)
		return;
	end(c, op->lin[0], op->kind == KIND_READ ? LIN_FAIL : LIN_INFO);
	if (op->lin[1] >= 0)
		end(c, op->lin[1], op->kind == KIND_CAS ? LIN_FAIL : LIN_INFO);
}

/* ---- requests ------------------------------------------------------------ */

static uint64_t *slot_of(struct sp_client *c, unsigned i)
{
	return (uint64_t *)(void *)(c->buffer->mem + 16 * i);
}

static bool is_moved(struct sp_client *c)
{
	return c->p->is_gappy ? c->base.index == 0
			      : sim_rand_below(&c->base.rand, 2) != 0;
}

static enum kind draw_kind(struct sp_client *c)
{
	static const struct {
		uint8_t share;
		uint8_t kind;
	} shares[] = {
		{24, KIND_CAS},	      {12, KIND_FAA},	   {12, KIND_READ},
		{11, KIND_WRITE},     {1, KIND_BULK},	   {9, KIND_OWN_FAA},
		{8, KIND_OWN_READ},   {7, KIND_OWN_WRITE}, {8, KIND_DATA},
		{8, KIND_WATCH_FLAG},
	};
	unsigned n = sim_rand_below(&c->base.rand, 100);
	unsigned i = 0;

	if (c->p->is_gappy)
		return c->base.index ? KIND_READ : KIND_WRITE;
	while (n >= shares[i].share)
		n -= shares[i++].share;
	if (!c->own_known && shares[i].kind >= KIND_OWN_FAA &&
	    shares[i].kind <= KIND_OWN_WRITE)
		return KIND_READ;
	return (enum kind)shares[i].kind;
}

static bool is_read(enum kind k)
{
	return k == KIND_READ || k == KIND_OWN_READ || k == KIND_WATCH_FLAG ||
	       k == KIND_WATCH_DATA;
}

static void fill_wr(struct sp_client *c, unsigned i, struct ibv_send_wr *wr,
		    struct ibv_sge *sge)
{
	struct sp_op *op = &c->ops[i];
	uint64_t addr = c->p->sword.region->addr + 8 * op->word;
	uint32_t rkey = c->p->sword.region->rkey;

	*sge = (struct ibv_sge){.addr = (uintptr_t)slot_of(c, i),
				.length = op->kind == KIND_BULK ? 16 : 8,
				.lkey = c->buffer->mr->lkey};
	*wr = (struct ibv_send_wr){.wr_id = i,
				   .sg_list = sge,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED};
	wr->opcode = is_read((enum kind)op->kind) ? IBV_WR_RDMA_READ
						  : IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
	if (op->kind == KIND_CAS || op->kind == KIND_FAA ||
	    op->kind == KIND_OWN_FAA) {
		wr->opcode = op->kind == KIND_CAS ? IBV_WR_ATOMIC_CMP_AND_SWP
						  : IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add =
			op->kind == KIND_CAS ? op->compare : op->value;
		wr->wr.atomic.swap = op->value;
	}
}

/* Words and values; a private word's next value is known from here on. */
static void draw_op(struct sp_client *c, struct sp_op *op)
{
	struct rng *r = &c->base.rand;

	/* Most on two words, so that they meet. */
	op->word = sim_rand_below(r, 4) ? sim_rand_below(r, 2)
					: sim_rand_below(r, SP_SHARED - 1);
	if (c->p->is_gappy)
		op->word = SP_DATA; /* of which the switch knows nothing */
	op->value = c->next_value;
	c->next_value += 2;
	op->compare = sim_rand_below(r, 5) ? c->seen[op->word] : 12345;
	switch (op->kind) {
	case KIND_FAA:
		op->value = 1 + 2 * sim_rand_below(r, 99);
		break;
	case KIND_OWN_FAA:
	case KIND_OWN_READ:
	case KIND_OWN_WRITE:
		op->word = SP_PRIVATE + c->base.index;
		op->own_at = c->own_count - 1;
		op->expect = c->own[op->own_at];
		if (op->kind == KIND_OWN_FAA)
			c->own[c->own_count++] = op->expect + op->value;
		else if (op->kind == KIND_OWN_WRITE)
			c->own[c->own_count++] = op->value;
		break;
	case KIND_DATA:
		op->word = SP_DATA + c->base.index;
		op->value = ++c->published;
		break;
	case KIND_FLAG:
		op->word = SP_FLAG + c->base.index;
		op->value = c->published;
		break;
	case KIND_WATCH_FLAG:
		op->watched = sim_rand_below(r, c->p->run.client_count);
		op->word = SP_FLAG + op->watched;
		break;
	default:
		break;
	}
}

static void post_op(struct sp_client *c, const struct sp_op *like)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct sp_op *op;
	unsigned i = 0;

	while (c->ops[i].used)
		i++;
	op = &c->ops[i];
	*op = *like;
	op->used = true;
	slot_of(c, i)[0] = op->value;
	slot_of(c, i)[1] = op->value + 1;
	fill_wr(c, i, &wr, &sge);
	record_start(c, op);
	c->open++;
	if (ibv_post_send(c->pair.near_qp, &wr, &bad))
		play_fail(&c->p->run, "ibv_post_send failed");
}

static void post(struct sp_client *c)
{
	struct sp_op op = {.kind = (uint8_t)draw_kind(c)};

	c->posted++;
	draw_op(c, &op);
	post_op(c, &op);
	if (op.kind != KIND_DATA)
		return;
	/* Right behind: who sees the flag must see the data. */
	op = (struct sp_op){.kind = KIND_FLAG};
	draw_op(c, &op);
	post_op(c, &op);
}

/* A flag was seen: what does the data say now? */
static void follow(struct sp_client *c, const struct sp_op *flag, uint64_t got)
{
	struct sp_op op = {.kind = KIND_WATCH_DATA,
			   .word = SP_DATA + flag->watched,
			   .watched = flag->watched,
			   .expect = got};

	post_op(c, &op);
}

/* ---- connections --------------------------------------------------------- */

static void disconnect(struct sp_client *c)
{
	uint32_t client_qpn, server_qpn;

	if (!c->connected)
		return;
	client_qpn = c->pair.near_qp->qp_num;
	server_qpn = c->pair.far_qp->qp_num;
	c->own_known = false;
	for (unsigned i = 0; i < SP_SLOTS; i++) {
		if (c->ops[i].used)
			record_unknown(c, &c->ops[i]);
		c->ops[i].used = false;
	}
	c->open = 0;
	rig_pair_close(&c->pair);
	c->connected = false;
	/* What is on its way keeps it for a while; nobody uses it again. */
	(void)!rig_sword_say(&c->p->sword, "end", c->base.host, client_qpn,
			     server_qpn, "");
}

static int connect_again(struct sp_client *c)
{
	struct rig_pair_options o = {.cq = c->cq,
				     .send_depth = SP_SLOTS,
				     .rd_atomic = SP_SLOTS,
				     .mtu = IBV_MTU_1024};
	int err = rig_pair_open(c->base.host, c->p->sword.server, &o, &c->pair);
	char more[64];

	if (err)
		return err;
	c->connected = true;
	snprintf(more, sizeof(more), " psn=%u%s", c->pair.near_psn,
		 is_moved(c) ? " moved=1" : "");
	return rig_sword_say(&c->p->sword, "conn", c->base.host,
			     c->pair.near_qp->qp_num, c->pair.far_qp->qp_num,
			     more);
}

/* The switch may be closed just now. */
static bool connect_until(struct sp_client *c)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (connect_again(c) == 0)
			return true;
		disconnect(c);
		sim_fiber_sleep_ps(c->p->run.sim, 100 * SIM_US);
	}
	play_fail(&c->p->run, "client %u cannot connect", c->base.index);
	return false;
}

static bool take_completions(struct sp_client *c)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(c->cq, 1, &wc) == 1) {
		struct sp_op *op = &c->ops[wc.wr_id];
		struct sp_op done;
		uint64_t got;

		/* Of a connection that is gone. */
		if (!c->connected || wc.qp_num != c->pair.near_qp->qp_num)
			continue;
		if (wc.status != IBV_WC_SUCCESS) {
			if (wc.status != IBV_WC_RETRY_EXC_ERR)
				play_fail(&c->p->run, "client %u: status %d",
					  c->base.index, wc.status);
			return false;
		}
		done = *op;
		got = slot_of(c, (unsigned)wc.wr_id)[0];
		op->used = false;
		c->open--;
		record_ok(c, &done, got);
		if (done.kind == KIND_WATCH_FLAG)
			follow(c, &done, got);
	}
	return true;
}

/* Whether it has more to do; who reads what another writes has until then. */
static bool goes_on(const struct sp_client *c)
{
	if (c->p->is_gappy)
		return c->p->clients[0].posted < SP_OPS_GAPPY;
	return c->posted < SP_OPS;
}

static unsigned draw_depth(struct sp_client *c)
{
	if (c->p->is_gappy)
		return c->base.index ? 1 : SP_DEPTH;
	return sim_rand_below(&c->base.rand, 2)
		       ? 1
		       : sim_rand_range(&c->base.rand, 1, SP_DEPTH);
}

static void client(void *arg)
{
	struct sp_client *c = arg;
	unsigned depth = draw_depth(c);

	while (goes_on(c) || c->open) {
		if (!c->connected && !connect_until(c))
			break;
		if (goes_on(c) && c->open < depth)
			post(c);
		if (!take_completions(c)) {
			c->p->n->errors++;
			disconnect(c);
		}
		client_clock_relax(&c->base.host->clock);
	}
	c->p->run.running--;
}

int sp_clients_start(struct sp *p)
{
	unsigned count = sim_rand_range(&p->run.rand, 2, SP_CLIENTS);
	int err = 0;

	for (unsigned i = 0; !err && i < count; i++) {
		struct sp_client *c = &p->clients[i];

		play_client_init(&p->run, &c->base,
				 p->hosts[i % p->host_count]);
		sim_rand_init(&c->base.rand, p->run.opt->seed, 200 + i);
		c->p = p;
		c->next_value = (uint64_t)(i + 1) << 32;
		c->own_known = true;
		c->own_count = 1; /* 0 at first */
		c->cq = rig_cq_create(c->base.host, 64);
		if (!c->cq)
			return -ENOMEM;
		err = rig_region_create(c->base.host, 16 * SP_SLOTS, false,
					&c->buffer);
		if (!err)
			err = connect_again(c);
		if (!err)
			err = rig_host_spawn(c->base.host, "client", client, c);
		p->run.running += !err;
	}
	return err;
}

void sp_clients_stop(struct sp *p)
{
	for (unsigned i = 0; i < p->run.client_count; i++) {
		struct sp_client *c = &p->clients[i];

		if (c->connected)
			rig_pair_close(&c->pair);
		if (c->cq)
			(void)ibv_destroy_cq(c->cq);
	}
}
