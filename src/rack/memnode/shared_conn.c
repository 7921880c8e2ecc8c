/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's connection to the arena of shared memory: whoever leads, each
 * node that has such memory makes its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "pair/pair.h"
#include "shared_priv.h"

enum {
	OWN_QPN = 0xa00000, /* of the switch's end; the rest is random */
	OWN_QPN_MASK = 0xfffff,
	READS = 16, /* of the switch at a time */
};

static int make_qp(struct mem_node *node, const struct pair_end *end)
{
	struct mem_shared *s = node->shared;
	struct ibv_qp_init_attr init = {.send_cq = node->cq,
					.recv_cq = node->cq,
					.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	int err;

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		return -errno;
	err = pair_init(ibv_modify_qp, s->qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	return err ? err : pair_receive(ibv_modify_qp, s->qp, end);
}

/* The connection of a former switch ends first: nothing of a former term
 * arrives later. */
int shared_conn_make(struct mem_node *node, char words[MEM_CONN_WORDS])
{
	struct mem_shared *s = node->shared;
	struct pair_end end = {.mtu = node->mtu,
			       .reads_in = READS,
			       .rnr_timer = PAIR_RNR_TIMER};
	char text[ADDRESS_TEXT], own[ADDRESS_TEXT];
	union ibv_gid gid;
	uint32_t number[2];
	int err = address_first(node, &end.gid_index, &gid);

	if (s->qp)
		(void)ibv_destroy_qp(s->qp);
	s->qp = NULL;
	if (err)
		return err;
	env_random(node->env, number, sizeof(number));
	end.qpn = OWN_QPN | (number[0] & OWN_QPN_MASK);
	end.psn = number[1] & PAIR_PSN_MASK;
	end.gid = s->switch_gid[address_is_ipv4(gid.raw)];
	err = make_qp(node, &end);
	if (err)
		return error_set(err, "no queue pair for the switch: %s",
				 strerror(-err));
	snprintf(words, MEM_CONN_WORDS,
		 "ip=%s qpn=%u psn=%u own_ip=%s own_qpn=%u addr=%llu "
		 "size=%" PRIu64 " rkey=%u mtu=%u reads=%d",
		 address_text(gid.raw, text), s->qp->qp_num, end.psn,
		 address_text(end.gid.raw, own), end.qpn,
		 (unsigned long long)(uintptr_t)s->memory.addr, s->size_bytes,
		 s->memory.mr->rkey, 128u << end.mtu, READS);
	return 0;
}

void shared_conn_addresses(struct mem_shared *s, const json_t *hello)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff}, v6[16] = {1};
	const json_t *row;
	size_t i;

	memcpy(s->switch_gid[0].raw, ctl_switch_ip(v6), 16);
	memcpy(s->switch_gid[1].raw, ctl_switch_ip(v4), 16);
	json_array_foreach(json_object_get(hello, "addresses"), i, row)
	{
		const char *text = json_string_value(row);
		uint8_t ip[16] = {[10] = 0xff, 0xff};
		bool is_v4 = text && inet_pton(AF_INET, text, ip + 12) == 1;

		if (is_v4 || (text && inet_pton(AF_INET6, text, ip) == 1))
			memcpy(s->switch_gid[is_v4].raw, ip, 16);
	}
}
