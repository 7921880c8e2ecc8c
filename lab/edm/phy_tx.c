/* SPDX-License-Identifier: Apache-2.0 */
/* The sending end: back-pressure, arbitration, preemption, reuse of gaps. */
#include "phy_tx.h"

#include <errno.h>
#include <string.h>

const char *edm_tx_policy_name(enum edm_tx_policy p)
{
	static const char *const names[EDM_TX_POLICIES] = {
		"fair", "memory first", "no preemption", "gaps only", "random"};

	return names[p];
}

int edm_phy_tx_init(struct edm_phy_tx *t, const struct edm_phy_config *c,
		    enum edm_tx_policy policy, struct edm_mac_tx *mac,
		    struct rng *rng)
{
	int err = edm_phy_config_check(c);

	if (err)
		return err;
	ASSERT(policy != EDM_TX_RANDOM || rng);
	memset(t, 0, sizeof(*t));
	t->config = *c;
	t->policy = policy;
	t->mac = mac;
	t->rng = rng;
	return 0;
}

uint32_t edm_phy_tx_backlog(const struct edm_phy_tx *t)
{
	return t->queue_tail - t->queue_head + t->request_tail -
	       t->request_head + t->ctl_tail - t->ctl_head;
}

int edm_phy_tx_message(struct edm_phy_tx *t, const struct wire_mem_head *head,
		       const uint8_t *payload)
{
	struct wire_block blocks[EDM_MSG_BLOCKS_MAX];
	bool nest = t->config.nest && edm_msg_request(head);
	struct edm_tx_entry *queue = nest ? t->request : t->queue;
	uint32_t size = nest ? EDM_TX_REQUEST : EDM_TX_QUEUE;
	uint32_t *tail = nest ? &t->request_tail : &t->queue_tail;
	uint32_t used = *tail - (nest ? t->request_head : t->queue_head);
	int n = edm_msg_encode(&t->config, head, payload, blocks);

	if (n < 0)
		return n;
	if (used + (uint32_t)n > size)
		return -EAGAIN;
	for (int i = 0; i < n; i++)
		queue[(*tail)++ % size] =
			(struct edm_tx_entry){blocks[i], i == 0, i + 1 == n};
	return 0;
}

int edm_phy_tx_control(struct edm_phy_tx *t, enum wire_block_kind kind,
		       const struct wire_mem_head *head)
{
	struct wire_block b;
	int err = edm_ctl_encode(&t->config, kind, head, &b);

	if (err)
		return err;
	if (t->ctl_tail - t->ctl_head == EDM_TX_CTL)
		return -EAGAIN;
	t->ctl[t->ctl_tail++ % EDM_TX_CTL] = b;
	return 0;
}

static bool is_idle(const struct wire_block *b)
{
	return b->sync == WIRE_SYNC_CONTROL && b->payload == WIRE_TYPE_IDLE;
}

/*
 * One block from the MAC, unless a stop that was raised four block times ago
 * reaches it now. Every stop stands for one block that waits: the count of
 * waiting blocks is the count of stops on their way, so the buffer never holds
 * more than four and never runs dry inside a frame.
 */
static void mac_step(struct edm_phy_tx *t)
{
	bool stopped = t->stops & 1;

	t->stops >>= 1;
	if (stopped || !t->mac)
		return;
	ASSERT(t->fifo_count <= EDM_TX_FIFO);
	edm_mac_tx_step(t->mac, &t->fifo[t->fifo_count++]);
}

static void fifo_pop(struct edm_phy_tx *t)
{
	t->fifo_count--;
	memmove(t->fifo, t->fifo + 1, t->fifo_count * sizeof(t->fifo[0]));
}

/* Whether memory may and shall send now; both sides have something. */
static bool memory_wins(struct edm_phy_tx *t)
{
	switch (t->policy) {
	case EDM_TX_FAIR:
		return t->balance <= 0;
	case EDM_TX_MEMORY:
	case EDM_TX_POLICIES:
		return true;
	case EDM_TX_NO_SPLIT:
		return !t->in_frame;
	case EDM_TX_GAPS:
		return false;
	case EDM_TX_RANDOM:
		break;
	}
	return rng_below(t->rng, 2);
}

/* A request goes first, also in the middle of a message. The data blocks of
 * either look like a frame's: no frame block may stand between them. */
static void send_message(struct edm_phy_tx *t, struct edm_tx_out *out)
{
	const struct edm_tx_entry *e;
	bool whole = t->config.md == EDM_MD_DATA;

	if (t->request_head != t->request_tail) {
		e = &t->request[t->request_head++ % EDM_TX_REQUEST];
		t->in_request = whole && !e->last;
	} else {
		e = &t->queue[t->queue_head++ % EDM_TX_QUEUE];
		t->in_message = whole && !e->last;
	}
	*out = (struct edm_tx_out){e->block, EDM_SLOT_MEMORY, e->first,
				   e->last};
}

static void send_memory(struct edm_phy_tx *t, struct edm_tx_out *out)
{
	bool control = t->ctl_head != t->ctl_tail;

	if (control)
		*out = (struct edm_tx_out){t->ctl[t->ctl_head++ % EDM_TX_CTL],
					   EDM_SLOT_CONTROL, true, true};
	else
		send_message(t, out);
	if (out->first)
		t->stats.first_wait_max =
			u32_max(t->stats.first_wait_max, t->head_wait);
	t->stats.head_wait_max = u32_max(t->stats.head_wait_max, t->head_wait);
	t->head_wait = 0;
}

static void send_frame(struct edm_phy_tx *t, struct edm_tx_out *out)
{
	uint8_t type = (uint8_t)t->fifo[0].payload;
	bool data = t->fifo[0].sync == WIRE_SYNC_DATA;

	*out = (struct edm_tx_out){t->fifo[0], EDM_SLOT_FRAME, false, false};
	if (!data) {
		out->last = type >= WIRE_TYPE_TERM_0;
		out->first = !out->last;
		t->in_frame = out->first;
	}
	fifo_pop(t);
}

void edm_phy_tx_step(struct edm_phy_tx *t, struct edm_tx_out *out)
{
	bool memory = edm_phy_tx_backlog(t) != 0;
	bool frame, wins;

	mac_step(t);
	frame = t->fifo_count && !is_idle(&t->fifo[0]);
	if (!memory || !frame)
		t->balance = 0;
	wins = memory &&
	       (t->in_message || t->in_request || !frame || memory_wins(t));
	if (wins) {
		send_memory(t, out);
		if (frame) {
			t->balance++;
			t->stats.preemptions++;
			t->stops |= 1u << (EDM_TX_FIFO - 1);
		} else if (t->fifo_count) {
			fifo_pop(t);
			t->stats.gaps_reused++;
		}
	} else if (frame) {
		send_frame(t, out);
		if (memory) {
			t->balance--;
			t->head_wait++;
		}
	} else {
		*out = (struct edm_tx_out){wire_block_idle(), EDM_SLOT_IDLE,
					   false, false};
		if (t->fifo_count)
			fifo_pop(t);
	}
	t->stats.blocks[out->slot]++;
	t->stats.fifo_max = u32_max(t->stats.fifo_max, t->fifo_count);
}
