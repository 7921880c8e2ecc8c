/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's end of the shared connection of swordbox, whose requester is the
 * switch: what it decides reaches the node's memory through it. It is made and
 * told to the switch at once; the switch may give it up.
 */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "pair/pair.h"
#include "switch_priv.h"

enum {
	OWN_QPN = 0x800000, /* of the switch's ends; the rest is random */
};

static int make_shared(struct mem_node *node, const uint8_t ip[16],
		       uint8_t gid_index, uint32_t own_qpn, uint32_t psn)
{
	struct mem_tenant *tenant = tenant_find(node, "default");
	struct ibv_qp_init_attr init = {.send_cq = node->cq,
					.recv_cq = node->cq,
					.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct pair_end end = {.gid_index = gid_index,
			       .qpn = own_qpn,
			       .psn = psn,
			       .mtu = IBV_MTU_1024,
			       .reads_in = 16,
			       .rnr_timer = PAIR_RNR_TIMER};
	struct ibv_qp *qp = ibv_create_qp(tenant->pd, &init);
	int err;

	if (!qp)
		return -errno;
	memcpy(end.gid.raw, ip, 16);
	err = pair_init(ibv_modify_qp, qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!err)
		err = pair_receive(ibv_modify_qp, qp, &end);
	if (err) {
		(void)ibv_destroy_qp(qp);
		return err;
	}
	node->at_switch.shared = qp;
	return 0;
}

static void drop_shared(struct mem_node *node)
{
	if (node->at_switch.shared)
		(void)ibv_destroy_qp(node->at_switch.shared);
	node->at_switch.shared = NULL;
}

int switch_shared_open(struct mem_node *node)
{
	char text[ADDRESS_TEXT], own[ADDRESS_TEXT];
	const uint8_t *switch_ip;
	union ibv_gid gid;
	uint32_t number[2];
	uint8_t index = 0;
	int err = address_first(node, &index, &gid);

	if (err)
		return err;
	drop_shared(node);
	env_random(node->env, number, sizeof(number));
	number[0] = OWN_QPN | (number[0] & 0x3fff);
	number[1] &= PAIR_PSN_MASK;
	switch_ip = ctl_switch_ip(gid.raw);
	err = make_shared(node, switch_ip, index, number[0], number[1]);
	if (err)
		return error_set(err, "no queue pair for the switch: %s",
				 strerror(-err));
	return ctl_switch_tell(
		&node->at_switch.ctl,
		"tell swordbox server name=%s ip=%s qpn=%u psn=%u "
		"own_ip=%s own_qpn=%u",
		node->name, address_text(gid.raw, text),
		node->at_switch.shared->qp_num, number[1],
		address_text(switch_ip, own), number[0]);
}

void switch_shared_close(struct mem_node *node)
{
	char server[ADDRESS_TEXT];

	/* Another one may have its address and its place there. What this does
	 * not reach is replaced when the node comes back. */
	if (node->at_switch.shared && address_server(node, server) == 0)
		(void)!ctl_switch_tell(&node->at_switch.ctl,
				       "tell swordbox leave ip=%s", server);
	drop_shared(node);
}

bool switch_shared_is_dead(struct mem_node *node)
{
	const struct ibv_qp *shared = node->at_switch.shared;
	char own[ADDRESS_TEXT];
	json_t *show = NULL;
	const json_t *v;
	bool found = false;
	size_t i;

	if (!shared || address_server(node, own) ||
	    ctl_switch_ask(&node->at_switch.ctl, "tell swordbox show", &show))
		return false;
	json_array_foreach(json_object_get(show, "servers"), i, v)
	{
		const char *ip = json_string_value(json_object_get(v, "ip"));

		found |= ip && strcmp(ip, own) == 0 &&
			 json_integer_value(json_object_get(v, "qpn")) ==
				 shared->qp_num &&
			 json_is_true(json_object_get(v, "dead"));
	}
	json_decref(show);
	return found;
}
