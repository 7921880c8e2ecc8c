/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks that a switch carries on from another node. They come as datagrams to a
 * queue pair that is for them alone, from the switch's own address, and their
 * answers go back there. Keys and rights are those of that queue pair: its
 * protection domain, and reading. Nothing is kept of a walk that was answered:
 * if the answer is lost, the client asks again, from the first node on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qp_priv.h"
#include "turn_priv.h"
#include "walk_priv.h"

enum {
	TTL = 64,
};

struct hop {
	struct walk_res res;
	struct list node; /* free, or to be sent */
	struct env_addr to;
	struct env_addr from;
	uint32_t to_qpn;
	uint8_t origin[WALK_WIRE_ORIGIN];
};

struct hops {
	uint8_t from_ip[16];
	uint32_t count;
	struct list free;
	struct list due; /* as many as rsp.res_pending */
	uint8_t *pads;
	struct hop hop[];
};

static struct hop *hop_of(struct walk_res *w)
{
	return container_of(w, struct hop, res);
}

/* ---- room ---------------------------------------------------------------- */

static void make_free(struct hops *h)
{
	list_init(&h->free);
	list_init(&h->due);
	for (uint32_t i = 0; i < h->count; i++) {
		list_init(&h->hop[i].node);
		list_append(&h->free, &h->hop[i].node);
	}
}

int nic_qp_set_hops(struct nic_qp *qp, uint32_t count,
		    const uint8_t from_ip[16])
{
	size_t each = align_up(NIC_WALK_PAD_MAX, CACHE_LINE);
	struct hops *h;

	if (qp->type != IBV_QPT_UD || count == 0 || count > NIC_HOPS_MAX ||
	    (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT) ||
	    qp->hops)
		return -EINVAL;
	h = calloc(1, sizeof(*h) + count * sizeof(h->hop[0]));
	if (!h)
		return -ENOMEM;
	h->pads = aligned_alloc(CACHE_LINE, count * each);
	if (!h->pads) {
		free(h);
		return -ENOMEM;
	}
	memcpy(h->from_ip, from_ip, sizeof(h->from_ip));
	h->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct walk_res *w = &h->hop[i].res;

		w->qp = qp;
		w->walk.pad = h->pads + i * each;
		w->walk.pad_room = NIC_WALK_PAD_MAX;
		list_init(&w->wait);
	}
	make_free(h);
	qp->hops = h;
	qp->access = IBV_ACCESS_REMOTE_READ;
	return 0;
}

void hop_forget_all(struct nic_qp *qp)
{
	struct hops *h = qp->hops;

	if (!h)
		return;
	for (uint32_t i = 0; i < h->count; i++)
		walk_forget(&h->hop[i].res);
	make_free(h);
	qp->rsp.res_pending = 0;
}

void hop_release(struct nic_qp *qp)
{
	if (!qp->hops)
		return;
	hop_forget_all(qp);
	free(qp->hops->pads);
	free(qp->hops);
	qp->hops = NULL;
}

/* ---- in ------------------------------------------------------------------ */

/* Whether it is one that a switch may have sent here. */
static bool is_sound(const struct nic_qp *qp, const struct wire_pkt *pkt)
{
	const struct wire_walk *asked = &pkt->walk;
	uint32_t room =
		u32_min(qp->nic->cfg.mtu, WIRE_MTU_MAX) - WALK_WIRE_ORIGIN;

	return pkt->opcode == WIRE_UD_WALK_ON && qp->hops &&
	       qp->nic->walker.start &&
	       memcmp(pkt->src_ip, qp->hops->from_ip, 16) == 0 &&
	       pkt->payload_len >= WALK_WIRE_ORIGIN &&
	       pkt->payload_len - WALK_WIRE_ORIGIN <= room &&
	       asked->pad_bytes <= room && asked->status == 0 && asked->left;
}

/* Where the packet came from, and which of our addresses it was sent to. */
static void note_way(struct nic *nic, const struct wire_pkt *pkt,
		     struct hop *hop)
{
	memcpy(hop->to.ip, pkt->src_ip, 16);
	memcpy(hop->to.mac, pkt->src_mac, 6);
	hop->to_qpn = pkt->src_qpn;
	for (unsigned i = 0; i < nic->cfg.gid_count; i++)
		if (memcmp(nic->cfg.gids[i].ip, pkt->dst_ip, 16) == 0)
			hop->from = nic->cfg.gids[i];
}

void hop_input(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct hops *h = qp->hops;
	struct walk_res *w;
	struct hop *hop;

	if (!is_sound(qp, pkt)) {
		count(qp->nic, NIC_C_drop_hop);
		return;
	}
	if (list_is_empty(&h->free)) {
		count(qp->nic, NIC_C_drop_hop_full);
		return;
	}
	hop = container_of(h->free.next, struct hop, node);
	list_remove(&hop->node);
	memcpy(hop->origin, pkt->payload, WALK_WIRE_ORIGIN);
	note_way(qp->nic, pkt, hop);
	w = &hop->res;
	walk_fill(w, &pkt->walk, pkt->payload + WALK_WIRE_ORIGIN,
		  pkt->payload_len - WALK_WIRE_ORIGIN);
	w->took = pkt->walk.took;
	count(qp->nic, NIC_C_hops);
	/* Only what was declared to the switch has a space. */
	if (!w->refused && w->space) {
		walk_start(w);
		return;
	}
	w->refused = WIRE_NAK_ACCESS;
	w->answer = pkt->walk;
	w->answer.key = 0;
	w->answer.pad_bytes = (uint16_t)u32_min(
		pkt->walk.pad_bytes, pkt->payload_len - WALK_WIRE_ORIGIN);
	hop_ended(w);
	qp_make_ready(qp);
}

/* ---- back ---------------------------------------------------------------- */

void hop_ended(struct walk_res *w)
{
	/* As if nobody had looked: the client comes here and is told why. */
	if (w->refused) {
		w->answer.status = WALK_WIRE_ELSEWHERE;
		count(w->qp->nic, NIC_C_hops_refused);
	}
	list_append(&w->qp->hops->due, &hop_of(w)->node);
	w->qp->rsp.res_pending++;
}

/* False: the path is full. */
static bool send_back(struct nic_qp *qp, const struct hop *hop)
{
	struct nic *nic = qp->nic;
	const struct wire_walk *answer = &hop->res.answer;
	struct env_path *path = ud_path_to(nic, &hop->to, hop->to_qpn);
	struct wire_pkt *out = &qp->out;
	uint32_t bytes = WALK_WIRE_ORIGIN + answer->pad_bytes;
	uint8_t *frame, *payload;

	if (!path)
		return true; /* lost, as datagrams may be */
	frame = nic->env->ops->tx_begin(nic->env, path,
					wire_frame_bound(bytes));
	if (!frame)
		return false;
	*out = (struct wire_pkt){
		.opcode = WIRE_UD_WALK_BACK,
		.ttl = TTL,
		.src_port = nic_src_port(
			nic, path, (uint16_t)(0xc000 | (qp->qpn & 0x3fff))),
		.mig_req = true,
		.pkey = 0xffff,
		.dest_qpn = hop->to_qpn,
		.qkey = qp->qkey,
		.src_qpn = qp->qpn,
		.walk = *answer,
		.payload_len = bytes,
	};
	if (!walk_is_open(&hop->res))
		out->walk.hops = WALK_WIRE_HOPS_MAX;
	memcpy(out->src_ip, hop->from.ip, 16);
	memcpy(out->src_mac, hop->from.mac, 6);
	memcpy(out->dst_ip, hop->to.ip, 16);
	memcpy(out->dst_mac, hop->to.mac, 6);
	payload = frame +
		  wire_header_bytes(out->opcode, wire_is_ipv4(out->dst_ip));
	memcpy(payload, hop->origin, WALK_WIRE_ORIGIN);
	memcpy(payload + WALK_WIRE_ORIGIN, hop->res.walk.pad,
	       answer->pad_bytes);
	nic_tx(qp, path, frame);
	return true;
}

bool hop_run(struct nic_qp *qp)
{
	struct hops *h = qp->hops;
	uint32_t budget = NIC_TURN_PACKETS;

	while (qp->rsp.res_pending) {
		struct hop *hop = container_of(h->due.next, struct hop, node);

		if (budget-- == 0 || turn_is_over(qp->nic)) {
			qp_make_ready(qp);
			return true;
		}
		if (!send_back(qp, hop))
			return false;
		qp->rsp.res_pending--;
		list_remove(&hop->node);
		list_append(&h->free, &hop->node);
	}
	return true;
}
