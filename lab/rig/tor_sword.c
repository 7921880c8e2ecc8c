/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of a connection whose other end is in the switch, and the
 * control plane of a switch that replaces atomics. */
#include "tor_sword.h"
#include "pair/pair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

enum {
	OWN_QPN = 0x800000,
	OWN_HOST = 250, /* the last byte of the switch's address */
};

/* The server's end of the shared connection, ready to receive from the switch,
 * which is `own_qpn` at `own_ip`. */
static int make_shared(struct rig_host *h, const uint8_t own_ip[16],
		       uint32_t own_qpn, uint32_t psn, struct ibv_qp **out)
{
	struct ibv_qp *qp;
	struct ibv_qp_init_attr attr = {.send_cq = h->cq,
					.recv_cq = h->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct pair_end end = {.qpn = own_qpn,
			       .psn = psn,
			       .mtu = IBV_MTU_1024,
			       .reads_in = 16,
			       .rnr_timer = PAIR_RNR_TIMER};
	int err;

	memcpy(end.gid.raw, own_ip, 16);
	qp = ibv_create_qp(h->pd, &attr);
	if (!qp)
		return -errno;
	err = pair_init(ibv_modify_qp, qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC);
	if (!err)
		err = pair_receive(ibv_modify_qp, qp, &end);
	if (err)
		(void)ibv_destroy_qp(qp);
	else
		*out = qp;
	return err;
}

/* ---- the control plane --------------------------------------------------- */

static const uint8_t *ip_of(struct rig_host *h)
{
	return sim_port_addr(sim_host_port(h->sim_host))->ip;
}

static int tell_region(struct rig_sword *s, const char *server, uint64_t at,
		       uint64_t len_bytes, const char *more)
{
	return rig_tor_tell(s->tor,
			    "swordbox region server=%s rkey=%u va=%" PRIu64
			    " len=%" PRIu64 "%s",
			    server, s->region->rkey, s->region->addr + at,
			    len_bytes & ~(uint64_t)7, more);
}

int rig_sword_declare_as(struct rig_sword *s, uint32_t own_qpn, uint32_t psn)
{
	char server[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	uint64_t plain_at = s->plain_at ? s->plain_at : s->region->size_bytes;
	uint8_t own_ip[16];
	int err;

	/* The old one ends before the switch hears of a new one. */
	if (s->shared)
		(void)ibv_destroy_qp(s->shared);
	s->shared = NULL;
	memcpy(own_ip, ip_of(s->server), 16);
	own_ip[15] = OWN_HOST;
	rig_ip_text(ip_of(s->server), server);
	rig_ip_text(own_ip, own);
	err = make_shared(s->server, own_ip, own_qpn, psn, &s->shared);
	if (!err)
		err = rig_tor_tell(
			s->tor,
			"swordbox server ip=%s own_ip=%s qpn=%u own_qpn=%u "
			"psn=%u",
			server, own, s->shared->qp_num, own_qpn, psn);
	if (!err)
		err = tell_region(s, server, 0,
				  s->words_bytes ? s->words_bytes : plain_at,
				  "");
	if (!err && s->plain_at)
		err = tell_region(s, server, plain_at,
				  s->region->size_bytes - plain_at, " plain=1");
	return err ? err : rig_tor_tell(s->tor, "swordbox ready");
}

int rig_sword_declare(struct rig_sword *s)
{
	s->turn++;
	/* A packet number that comes round at once. */
	return rig_sword_declare_as(s, OWN_QPN + s->turn,
				    WIRE_PSN_MASK - s->turn);
}

int rig_sword_create(struct rig_sword *s, struct sim_net *net,
		     struct rig_host *server, struct rig_region *region,
		     const char *options)
{
	struct rig_tor_config cfg = {.program_count = 1,
				     .packet_ps = s->packet_ps};
	int err;

	snprintf(s->program, sizeof(s->program), "swordbox:%s", options);
	cfg.programs[0] = s->program;
	s->server = server;
	s->region = region;
	err = rig_tor_create(net, &cfg, &s->tor);
	return err ? err : rig_sword_declare(s);
}

void rig_sword_destroy(struct rig_sword *s)
{
	if (s->shared)
		(void)ibv_destroy_qp(s->shared);
	if (s->tor)
		rig_tor_destroy(s->tor);
	*s = (struct rig_sword){0};
}

int rig_sword_restart(struct rig_sword *s)
{
	return s->tor ? rig_tor_restart(s->tor) : 0;
}

int rig_sword_say(struct rig_sword *s, const char *what,
		  struct rig_host *client, uint32_t client_qpn,
		  uint32_t server_qpn, const char *more)
{
	char to[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];

	rig_ip_text(ip_of(s->server), to);
	rig_ip_text(ip_of(client), from);
	return rig_tor_tell(
		s->tor,
		"swordbox %s server=%s client=%s client_qpn=%u server_qpn=%u%s",
		what, to, from, client_qpn, server_qpn, more);
}

int rig_sword_conn(struct rig_sword *s, struct rig_host *client,
		   struct client_link *link, const char *more)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	char words[64];

	if (!s->tor)
		return 0;
	if (ibv_query_qp(link->qp, &attr, IBV_QP_SQ_PSN, &init))
		return -EIO;
	snprintf(words, sizeof(words), " psn=%u%s", attr.sq_psn, more);
	return rig_sword_say(s, "conn", client, link->qp->qp_num,
			     rig_link_far_qp(link)->qp_num, words);
}

void rig_sword_end(struct rig_sword *s, struct rig_host *client,
		   struct client_link *link)
{
	/* What is on its way keeps it for a while; nobody uses it again. */
	if (s->tor)
		(void)!rig_sword_say(s, "end", client, link->qp->qp_num,
				     rig_link_far_qp(link)->qp_num, "");
}
