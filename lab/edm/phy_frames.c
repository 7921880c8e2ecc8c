/* SPDX-License-Identifier: Apache-2.0 */
/* Sends every frame of a file once, as fast as the link takes them. */
#include "phy_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "phy_link.h"

enum {
	PENDING = 64, /* messages between the two ends */
	MESSAGE_MAX = 264,
	SPACING = 24, /* block times between messages, on average */
};

struct pending {
	struct wire_mem_head head;
	uint8_t payload[MESSAGE_MAX];
};

struct run {
	const struct edm_pcap *pcap;
	struct edm_phy_link *link;
	struct rng rng;
	uint32_t frames_taken, frames_got;
	struct pending pending[PENDING];
	uint64_t sent, got;
	struct edm_frames_result r;
};

static const uint8_t *frame_next(void *owner, uint32_t *len_bytes)
{
	struct run *w = owner;
	const struct edm_pcap_frame *f = &w->pcap->frame[w->frames_taken];

	if (w->frames_taken == w->pcap->frames)
		return NULL;
	w->frames_taken++;
	*len_bytes = f->len_bytes;
	return w->pcap->bytes + f->offset;
}

/* Short frames come padded with zeros. */
static bool frame_same(const struct run *w, const uint8_t *frame,
		       uint32_t len_bytes)
{
	const struct edm_pcap_frame *f = &w->pcap->frame[w->frames_got];

	if (w->frames_got >= w->frames_taken ||
	    len_bytes != u32_max(f->len_bytes, EDM_FRAME_MIN) ||
	    memcmp(frame, w->pcap->bytes + f->offset, f->len_bytes) != 0)
		return false;
	for (uint32_t i = f->len_bytes; i < len_bytes; i++)
		if (frame[i])
			return false;
	return true;
}

static void frame_got(void *owner, const uint8_t *frame, uint32_t len_bytes)
{
	struct run *w = owner;
	bool same = frame_same(w, frame, len_bytes);

	w->r.frames += same;
	w->r.wrong += !same;
	w->frames_got++;
}

static void message_got(void *owner, const struct wire_mem_head *head,
			const uint8_t *payload, uint32_t len_bytes)
{
	struct run *w = owner;
	const struct pending *p = &w->pending[w->got % PENDING];
	bool same = w->got < w->sent && head->id == p->head.id &&
		    head->node == p->head.node && head->op == p->head.op &&
		    len_bytes == p->head.size_bytes &&
		    memcmp(payload, p->payload, len_bytes) == 0;

	w->r.messages += same;
	w->r.wrong += !same;
	w->got++;
}

static void control_got(void *owner, enum wire_block_kind kind,
			const struct wire_mem_head *head)
{
	((struct run *)owner)->r.wrong++; /* none was sent */
}

static int message_send(struct run *w)
{
	struct pending *p = &w->pending[w->sent % PENDING];
	int rc;

	p->head = (struct wire_mem_head){
		.op = rng_below(&w->rng, 2) ? WIRE_MEM_RRES : WIRE_MEM_WREQ,
		.node = (uint16_t)rng_below(&w->rng, WIRE_MEM_NODES),
		.id = (uint8_t)rng_u64(&w->rng),
		.size_bytes = (uint32_t)rng_between(&w->rng, 1, MESSAGE_MAX),
		.last = true,
	};
	rng_fill(&w->rng, p->payload, p->head.size_bytes);
	rc = edm_phy_tx_message(&w->link->tx, &p->head, p->payload);
	w->sent += !rc;
	return rc;
}

static int run_all(struct run *w)
{
	/* Memory leaves at least an eighth of the link; a frame that has not
	 * come by then is lost. */
	uint64_t limit = 64 * (w->pcap->len_bytes / 8 +
			       16 * (uint64_t)w->pcap->frames + 1000);
	struct edm_tx_out out;
	int rc = 0;

	while (!rc && (w->frames_got < w->pcap->frames || w->got < w->sent)) {
		/* No more messages when the frames are through. */
		if (w->frames_got < w->pcap->frames &&
		    w->sent - w->got < PENDING && !rng_below(&w->rng, SPACING))
			rc = message_send(w);
		if (rc == -EAGAIN)
			rc = 0; /* another time */
		(void)edm_phy_link_step(w->link, &out);
		w->r.wrong += w->link->now > limit;
		if (w->r.wrong)
			break; /* what follows would be compared off by one */
	}
	return rc;
}

int edm_frames_run(const struct edm_pcap *pcap,
		   const struct edm_frames_config *c,
		   struct edm_frames_result *out)
{
	struct run *w;
	int rc;

	if (!pcap->frames)
		return error_set(-EINVAL, "no frame in the capture");
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->pcap = pcap;
	rng_init(&w->rng, c->seed);
	rc = edm_phy_link_create(
		&(struct edm_phy_link_config){
			.phy = c->phy,
			.policy = c->policy,
			.seed = c->seed,
			.source = frame_next,
			.frames = frame_got,
			.frame_owner = w,
			.memory = {message_got, control_got, w},
		},
		&w->link);
	if (!rc) {
		rc = run_all(w);
		w->r.blocks = w->link->now;
		w->r.preemptions = w->link->tx.stats.preemptions;
		w->r.gaps_reused = w->link->tx.stats.gaps_reused;
		w->r.fifo_max = w->link->tx.stats.fifo_max;
		w->r.buffer_max = w->link->rx.stats.buffer_max;
		*out = w->r;
		edm_phy_link_destroy(w->link);
	}
	free(w);
	return rc;
}
