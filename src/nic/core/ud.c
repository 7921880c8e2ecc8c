/* SPDX-License-Identifier: Apache-2.0 */
/* Unreliable datagrams, and the address handles that direct them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qp_priv.h"
#include "walk_priv.h"

enum {
	DEFAULT_TTL = 64,
};

/* ---- address handles ---------------------------------------------------- */

/* IPv4 and IPv6 peers alike: the MAC of a link-local address is in it, that of
 * another follows from the address by the rule of the env (gids[].mac). */
static void guess_mac(const uint8_t ip[16], uint8_t mac[6])
{
	if (ip[0] == 0xfe && ip[1] == 0x80) {
		mac[0] = ip[8] ^ 0x02;
		mac[1] = ip[9];
		mac[2] = ip[10];
		mac[3] = ip[13];
		mac[4] = ip[14];
		mac[5] = ip[15];
		return;
	}
	mac[0] = 0x02;
	mac[1] = 0xa9;
	memcpy(mac + 2, ip + 12, 4);
}

int ah_fill(struct nic *nic, const struct ibv_ah_attr *attr, struct nic_ah *ah)
{
	/* RoCE has no addresses but global ones. */
	if (!attr->is_global || attr->port_num != 1 ||
	    attr->grh.sgid_index >= nic->cfg.gid_count)
		return -EINVAL;
	*ah = (struct nic_ah){
		.nic = nic,
		.refs = 1,
		.sgid_index = attr->grh.sgid_index,
		.tos = attr->grh.traffic_class,
		.ttl = attr->grh.hop_limit > 1 ? attr->grh.hop_limit
					       : DEFAULT_TTL,
	};
	memcpy(ah->dst.ip, attr->grh.dgid.raw, 16);
	if (wire_is_ipv4(ah->dst.ip) !=
	    wire_is_ipv4(nic->cfg.gids[ah->sgid_index].ip))
		return -EINVAL;
	guess_mac(ah->dst.ip, ah->dst.mac);
	return 0;
}

int nic_ah_create(struct nic_pd *pd, const struct ibv_ah_attr *attr,
		  struct nic_ah **out)
{
	struct nic *nic = pd->nic;
	struct nic_ah *ah;
	int err;

	if (nic->ah_count >= NIC_AH_MAX)
		return -ENOMEM;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	err = ah_fill(nic, attr, ah);
	if (err) {
		free(ah);
		return err;
	}
	ah->pd = pd;
	pd->users++;
	nic->ah_count++;
	*out = ah;
	return 0;
}

void ah_get(struct nic_ah *ah)
{
	ah->refs++;
}

void ah_put(struct nic_ah *ah)
{
	if (--ah->refs)
		return;
	free(ah);
}

/* Datagrams that are queued keep what they need of it. */
void nic_ah_destroy(struct nic_ah *ah)
{
	ah->pd->users--;
	ah->nic->ah_count--;
	ah_put(ah);
}

/* ---- paths: one per NIC that datagrams go to ---------------------------- */

struct env_path *ud_path_to(struct nic *nic, const struct env_addr *dst,
			    uint32_t qpn)
{
	uint32_t slot = qpn >> NIC_QPN_INDEX_BITS;
	struct ud_path *p;
	uint32_t i;

	for (i = 0; i < nic->ud_path_count; i++) {
		p = &nic->ud_paths[i];
		if (p->slot == slot && memcmp(p->ip, dst->ip, 16) == 0)
			return p->path;
	}
	if (i == NIC_UD_PATH_MAX) {
		/* Any of them may go; the number is as good as random. */
		i = qpn % NIC_UD_PATH_MAX;
		nic->env->ops->path_close(nic->env, nic->ud_paths[i].path);
		nic->ud_paths[i] = nic->ud_paths[--nic->ud_path_count];
		i = nic->ud_path_count;
	}
	p = &nic->ud_paths[i];
	if (nic->env->ops->path_open(nic->env, dst, qpn, &p->path))
		return NULL;
	memcpy(p->ip, dst->ip, 16);
	p->slot = slot;
	nic->ud_path_count++;
	return p->path;
}

void ud_paths_close(struct nic *nic)
{
	while (nic->ud_path_count) {
		struct ud_path *p = &nic->ud_paths[--nic->ud_path_count];

		nic->env->ops->path_close(nic->env, p->path);
	}
}

/* Its slot may soon belong to another process. */
void ud_path_down(struct nic *nic, struct env_path *path)
{
	uint32_t i = 0;

	while (i < nic->ud_path_count) {
		if (nic->ud_paths[i].path != path) {
			i++;
			continue;
		}
		nic->env->ops->path_close(nic->env, path);
		nic->ud_paths[i] = nic->ud_paths[--nic->ud_path_count];
	}
}

/* ---- packets ------------------------------------------------------------ */

int ud_send(struct nic_qp *qp, struct send_slot *slot, const struct send_op *op)
{
	struct nic *nic = qp->nic;
	const struct nic_ah *ah = slot->ah;
	const struct env_addr *src = &nic->cfg.gids[ah->sgid_index];
	struct wire_pkt *out = &qp->out;
	struct env_path *path;
	uint8_t *frame;

	if (op->length > nic->cfg.mtu)
		return -EMSGSIZE;
	path = ud_path_to(nic, &ah->dst, op->dest_qpn);
	if (!path)
		return 1; /* nobody there: lost, as datagrams may be */
	frame = nic->env->ops->tx_begin(nic->env, path, WIRE_FRAME_MAX);
	if (!frame)
		return 0;
	*out = (struct wire_pkt){
		.opcode = op->opcode == WQE_SEND_IMM ? WIRE_UD_SEND_ONLY_IMM
						     : WIRE_UD_SEND_ONLY,
		.tos = ah->tos,
		.ttl = ah->ttl,
		.src_port = nic_src_port(
			nic, path, (uint16_t)(0xc000 | (qp->qpn & 0x3fff))),
		.mig_req = true,
		.solicited = op->flags & WQE_CTRL_SOLICITED,
		.pkey = 0xffff,
		.dest_qpn = op->dest_qpn,
		.psn = qp->req.next_psn,
		/* The top bit asks for the queue pair's own key. */
		.qkey = op->qkey & 0x80000000u ? qp->qkey : op->qkey,
		.src_qpn = qp->qpn,
		.payload_len = op->length,
	};
	memcpy(out->src_ip, src->ip, 16);
	memcpy(out->src_mac, src->mac, 6);
	memcpy(out->dst_ip, ah->dst.ip, 16);
	memcpy(out->dst_mac, ah->dst.mac, 6);
	memcpy(&out->imm, &op->imm, sizeof(out->imm));
	if (sendq_gather(qp, &op->data, 0,
			 frame + wire_header_bytes(out->opcode,
						   wire_is_ipv4(ah->dst.ip)),
			 op->length)) {
		nic->env->ops->tx_end(nic->env, path, 0);
		return -EFAULT;
	}
	nic_tx(qp, path, frame);
	qp->req.next_psn = wire_psn_add(qp->req.next_psn, 1);
	qp->req.una_psn = qp->req.next_psn;
	return 1;
}

void ud_input(struct nic_qp *qp, const struct wire_pkt *pkt,
	      const uint8_t *frame)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];
	uint8_t grh[WIRE_GRH_BYTES];
	struct nic_cqe cqe = {
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = WIRE_GRH_BYTES + pkt->payload_len,
		.src_qp = pkt->src_qpn,
		.solicited = pkt->solicited,
		.wc_flags = IBV_WC_GRH,
		/* RoCEv2 packet type, where UCX looks for it: UDP, IPv4. */
		.sl = wire_is_ipv4(pkt->dst_ip) ? 0x0a : 0x09,
	};

	if (pkt->qkey != qp->qkey) {
		count(qp->nic, NIC_C_drop_qkey);
		return;
	}
	if (UNLIKELY(op->kind != WIRE_SEND)) {
		hop_input(qp, pkt);
		return;
	}
	if (!recvq_take_if(qp, &qp->recv, cqe.byte_len)) {
		count(qp->nic, NIC_C_drop_no_recv);
		return;
	}
	if (!qp->recv.active) {
		/* Whoever knows the queue key, which for management everybody
		 * does, could end the queue pair if this were an error. */
		count(qp->nic, NIC_C_drop_ud_length);
		return;
	}
	wire_grh(frame, grh);
	if (recv_scatter(qp, 0, grh, sizeof(grh)) ||
	    recv_scatter(qp, sizeof(grh), pkt->payload, pkt->payload_len)) {
		cqe.status = IBV_WC_LOC_PROT_ERR;
		qp_complete_recv(qp, &cqe);
		qp_fail(qp);
		return;
	}
	if (op->flags & WIRE_OP_IMM) {
		cqe.wc_flags |= IBV_WC_WITH_IMM;
		memcpy(&cqe.imm_or_key, &pkt->imm, sizeof(cqe.imm_or_key));
	}
	qp_complete_recv(qp, &cqe);
}
