/* SPDX-License-Identifier: Apache-2.0 */
/* Links of a rack for walks: connections with a key, by requests to a node. */
#include "walk_rack_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "pair/pair.h"
#include "sim/fiber.h"

enum {
	ACK_TIMEOUT = 10, /* 4.2 ms, eight times */
	MTU_BYTES = 4096,
};

static int make_queues(struct walk_link *l, const struct client_link_options *o)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = o->send_depth ? o->send_depth : 16,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	l->link.cq = o->share_cq;
	attr.send_cq = attr.recv_cq = o->share_cq;
	l->link.qp = l->link.verbs->create_qp(l->link.pd, &attr);
	return l->link.qp ? pair_init(l->link.verbs->modify_qp, l->link.qp, 0)
			  : error_set(-ENOMEM, "no queue pair is left");
}

static int parse_end(const json_t *reply, struct walk_link *l,
		     struct pair_end *end)
{
	uint64_t qpn, psn, mtu, reads;
	int err;

	if (!hex_read(json_string_value(json_object_get(reply, "gid")),
		      end->gid.raw, sizeof(end->gid.raw)))
		return error_set(-EPROTO, "no gid");
	err = client_json_word(reply, "connection", l->id, sizeof(l->id));
	if (!err)
		err = client_json_u64(reply, "qpn", PAIR_PSN_MASK, &qpn);
	if (!err)
		err = client_json_u64(reply, "psn", PAIR_PSN_MASK, &psn);
	if (!err)
		err = client_json_u64(reply, "mtu", MTU_BYTES, &mtu);
	if (!err)
		err = client_json_u64(reply, "rd_atomic", 128, &reads);
	if (err)
		return err;
	end->qpn = (uint32_t)qpn;
	end->psn = (uint32_t)psn;
	end->mtu = pair_mtu(mtu);
	end->reads_out = (uint8_t)u64_min(reads, end->reads_out);
	return 0;
}

static int connect_link(struct walk_link *l,
			const struct client_link_options *o)
{
	struct aq_rack *rack = l->rack;
	struct pair_end end = {
		.reads_in = 1,
		.reads_out = (uint8_t)(o->rd_atomic ? o->rd_atomic : 16),
		.timeout = ACK_TIMEOUT,
		.retries = PAIR_RETRIES,
		.rnr_timer = PAIR_RNR_TIMER,
	};
	json_t *body, *reply;
	char gid[33];
	int err;

	env_random(sim_host_env(rack->host->sim_host), &end.own_psn,
		   sizeof(end.own_psn));
	end.own_psn &= PAIR_PSN_MASK;
	hex_write(gid, rack->host->gid.raw, sizeof(rack->host->gid.raw));
	body = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s}", "proto", "1.0",
			 "gid", gid, "qpn", (int)l->link.qp->qp_num, "psn",
			 (int)end.own_psn, "mtu", MTU_BYTES, "rd_atomic",
			 (int)end.reads_out, "client", rack->host->name);
	if (o->connect_more)
		(void)json_object_update(body, o->connect_more);
	err = walk_rack_ask(rack, l->link.node, "POST", "/v1/connect", body,
			    &reply);
	if (!err)
		err = parse_end(reply, l, &end);
	json_decref(reply);
	return err ? err
		   : pair_connect(l->link.verbs->modify_qp, l->link.qp, &end);
}

static int ask_key(struct walk_link *l, const char *name,
		   const struct client_link_options *o)
{
	uint64_t rkey, addr, length, epoch;
	char path[CLIENT_PATH_MAX];
	json_t *reply;
	int err;

	snprintf(path, sizeof(path), "/v1/connections/%s/grants", l->id);
	err = walk_rack_ask(l->rack, l->link.node, "POST", path,
			    json_pack("{s:s, s:s, s:b}", "region", name,
				      "rights", "rwa", "revocable",
				      o->is_revocable),
			    &reply);
	if (!err)
		err = client_json_u64(reply, "rkey", UINT32_MAX, &rkey);
	if (!err)
		err = client_json_u64(reply, "addr", INT64_MAX, &addr);
	if (!err)
		err = client_json_u64(reply, "length", INT64_MAX, &length);
	if (!err)
		err = client_json_u64(reply, "epoch", UINT32_MAX, &epoch);
	if (!err)
		err = client_json_word(reply, "grant", l->grant,
				       sizeof(l->grant));
	json_decref(reply);
	if (err)
		return err;
	l->link.rkey = (uint32_t)rkey;
	l->link.addr = addr;
	l->link.size_bytes = length;
	l->link.epoch = (uint32_t)epoch;
	return 0;
}

int client_link_open_at(struct aq_rack *rack, uint32_t node, const char *name,
			const struct client_link_options *o,
			struct client_link **out)
{
	struct walk_link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	rack->until_ns = o->deadline_ns;
	l->rack = rack;
	l->next = rack->links;
	rack->links = l;
	l->link = (struct client_link){.verbs = client_verbs_choose(),
				       .context = rack->context,
				       .pd = rack->pd,
				       .node = node,
				       .clock = &rack->host->clock};
	err = make_queues(l, o);
	if (!err)
		err = connect_link(l, o);
	if (!err)
		err = ask_key(l, name, o);
	if (err)
		client_link_close(&l->link);
	else
		*out = &l->link;
	return err;
}

/* The node is told, unless the process is dead or the play over. */
static void say_goodbye(struct walk_link *l)
{
	char path[CLIENT_PATH_MAX], words[ERROR_TEXT_MAX];
	int before = error_last_code();
	json_t *reply;

	if (!l->id[0] || l->is_lost || l->rack->host->killed ||
	    !sim_fiber_inside(l->rack->all->run->sim))
		return;
	snprintf(words, sizeof(words), "%s", error_last());
	snprintf(path, sizeof(path), "/v1/connections/%s", l->id);
	(void)walk_rack_ask(l->rack, l->link.node, "DELETE", path, NULL,
			    &reply);
	json_decref(reply);
	if (before)
		(void)error_set(before, "%s", words);
}

void client_link_close(struct client_link *link)
{
	struct walk_link *l = container_of(link, struct walk_link, link);
	struct walk_link **at = &l->rack->links;

	if (link->qp)
		(void)link->verbs->destroy_qp(link->qp);
	link->qp = NULL;
	say_goodbye(l);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	free(l);
}

int client_link_call(struct client_link *link, const char *method,
		     const char *path, json_t *body, uint64_t deadline_ns,
		     json_t **reply)
{
	struct aq_rack *rack = container_of(link, struct walk_link, link)->rack;

	rack->until_ns = deadline_ns;
	return walk_rack_ask(rack, link->node, method, path, body, reply);
}

bool client_link_is_lost(const struct client_link *link)
{
	return container_of(link, struct walk_link, link)->is_lost;
}

const char *client_link_node_name(const struct client_link *link)
{
	const struct walk_link *l = container_of(link, struct walk_link, link);

	return l->rack->node[link->node].name;
}

void client_link_why(const struct client_link *link,
		     char words[CLIENT_REACH_WORDS])
{
	words[0] = '\0';
}

int walk_rack_revoke(struct aq_rack *asker, struct aq_rack *of)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply;
	int err = 0;

	for (struct walk_link *l = of->links; l && !err; l = l->next) {
		if (!l->grant[0])
			continue;
		snprintf(path, sizeof(path), "/v1/connections/%s/grants/%s",
			 l->id, l->grant);
		err = walk_rack_ask(asker, l->link.node, "DELETE", path, NULL,
				    &reply);
		json_decref(reply);
	}
	return err;
}
