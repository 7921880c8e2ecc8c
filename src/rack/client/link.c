/* SPDX-License-Identifier: Apache-2.0 */
/* Links: queue pairs of their own for rooms that post their own requests. */
#include "link.h"

#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "client_priv.h"

uint64_t client_real_now_ns(void *ctx)
{
	return clock_mono_ns();
}

void client_real_relax(void *ctx)
{
	relax_briefly();
}

/* Polling rests by itself when it has found nothing for a while, and knows for
 * whom it waits (nic_thread.c). A rest at each poll would be one too many. */
static void real_polled(void *ctx)
{
}

const struct client_clock *client_clock_real(void)
{
	static const struct client_clock self = {.now_ns = client_real_now_ns,
						 .relax = client_real_relax,
						 .polled = real_polled};

	return &self;
}

static int check_options(const struct client_link_options *o)
{
	if (o->send_depth > CLIENT_LINK_SEND_DEPTH_MAX ||
	    o->rights > CLIENT_LINK_ALL || o->rd_atomic > 128)
		return error_set(-EINVAL,
				 "a link has at most %d requests under way and "
				 "128 reads",
				 CLIENT_LINK_SEND_DEPTH_MAX);
	return 0;
}

/* Which node has it; -EBUSY: it is on its way to another one. */
static int find_once(struct client_thread *t, const char *name,
		     uint64_t deadline_ns, struct client_piece *out)
{
	uint32_t i, count;
	bool is_busy = false;
	int err, down = 0;

	client_rack_rescan(t->rack);
	count = client_rack_nodes(t->rack);
	for (i = 0; i < count; i++) {
		err = client_piece_stat(t, i, name, deadline_ns, out);
		if (!err)
			return 0;
		if (err == -EHOSTDOWN)
			down = err;
		else if (err == -EBUSY)
			is_busy = true;
		else if (err != -ENOENT)
			return err;
	}
	if (is_busy)
		return error_set(-EBUSY,
				 "region %s is being made, changed, moved or "
				 "deleted",
				 name);
	return down ? error_prefix(down,
				   "%s is not on the nodes that answer: ", name)
		    : error_set(-ENOENT, "there is no region %s in rack %s",
				name, t->rack->name);
}

static int find_piece(struct client_thread *t, const char *name,
		      uint64_t deadline_ns, struct client_piece *out)
{
	int err;

	do
		err = find_once(t, name, deadline_ns, out);
	while (err == -EBUSY && client_follow_nap(t->rack, deadline_ns));
	return err;
}

static int make_queues(struct client_link_inside *l,
		       const struct client_link_options *o)
{
	struct aq_rack *rack = l->rack;
	uint32_t depth = o->send_depth ? o->send_depth : CLIENT_LINK_SEND_DEPTH;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = o->recv_depth ? o->recv_depth : 1,
			.max_send_sge = o->max_sge ? o->max_sge : 1,
			.max_recv_sge = 1,
			.max_inline_data = o->max_inline},
	};

	l->link.cq = o->share_cq;
	if (o->has_channel) {
		l->link.channel =
			rack->verbs->create_comp_channel(rack->context);
		if (!l->link.channel)
			return error_set(-ENOMEM,
					 "the NIC has no completion channel "
					 "left");
	}
	if (!l->link.cq) {
		l->link.cq = rack->verbs->create_cq(
			rack->context, (int)(o->cq_depth ? o->cq_depth : depth),
			NULL, l->link.channel, 0);
		if (!l->link.cq)
			return error_set(-ENOMEM,
					 "the NIC has no completion queue of "
					 "%u left",
					 depth);
		l->owns_cq = true;
	}
	attr.send_cq = attr.recv_cq = l->link.cq;
	l->link.qp = rack->verbs->create_qp(rack->pd, &attr);
	if (!l->link.qp)
		return error_set(-ENOMEM, "the NIC has no queue pair left");
	return client_join_init(
		rack->verbs, l->link.qp,
		(o->accepts_writes ? IBV_ACCESS_REMOTE_WRITE : 0) |
			(o->accepts_reads ? IBV_ACCESS_REMOTE_READ : 0));
}

static bool nic_has_masked(struct ibv_context *context)
{
	const uint32_t masked = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA;
	struct aqdv_device_attr attr = {0};

	return aqdv_query_device(context, &attr) == 0 &&
	       (attr.caps & masked) == masked;
}

static int ask_grant(struct client_thread *t, struct client_link_inside *l,
		     const char *name, const struct client_link_options *o,
		     uint64_t deadline_ns)
{
	static const char *const words[] = {[CLIENT_LINK_READ] = "r",
					    [CLIENT_LINK_WRITE] = "rw",
					    [CLIENT_LINK_ALL] = "rwa"};
	char path[CLIENT_PATH_MAX];
	struct client_key key;
	json_t *reply = NULL;
	int err;

	snprintf(path, sizeof(path), "/v1/connections/%s/grants", l->bond.id);
	err = client_thread_call(t, l->bond.node, "POST", path,
				 json_pack("{s:s, s:s, s:b}", "region", name,
					   "rights", words[o->rights],
					   "revocable", o->is_revocable),
				 deadline_ns, &reply);
	if (!err)
		err = client_key_take(reply, &key);
	json_decref(reply);
	if (err)
		return err;
	l->link.rkey = key.rkey;
	l->link.addr = key.addr;
	l->link.size_bytes = key.size_bytes;
	l->link.epoch = key.epoch;
	return 0;
}

static int connect_link(struct client_thread *t, struct client_link_inside *l,
			const struct client_link_options *o,
			uint64_t deadline_ns)
{
	uint32_t rd = o->rd_atomic ? o->rd_atomic : CLIENT_LINK_RD_ATOMIC;
	struct client_far far;
	int err =
		client_join(t, l->link.qp, rd, o->connect_more,
			    !o->has_no_heartbeat, deadline_ns, &l->bond, &far);

	if (err)
		return err;
	l->has_heartbeat = !o->has_no_heartbeat;
	l->link.node = l->bond.node;
	client_join_peer(l->rack, &far, l->link.peer);
	l->link.has_masked_atomics =
		far.has_masked_atomics && nic_has_masked(l->link.context);
	return 0;
}

/* The connection alone. */
static int open_link(struct client_thread *t, uint32_t node,
		     const struct client_link_options *o, uint64_t deadline_ns,
		     struct client_link_inside **out)
{
	struct aq_rack *rack = t->rack;
	struct client_link_inside *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return error_set(-ENOMEM, "no memory for a link");
	l->rack = rack;
	client_bond_init(&l->bond, node);
	pthread_mutex_lock(&rack->lock);
	err = client_device_open(rack);
	pthread_mutex_unlock(&rack->lock);
	if (!err) {
		l->link.verbs = rack->verbs;
		l->link.context = rack->context;
		l->link.pd = rack->pd;
		l->link.clock = client_clock_real();
		err = make_queues(l, o);
	}
	if (!err)
		err = connect_link(t, l, o, deadline_ns);
	if (err) {
		client_link_close(&l->link);
		return err;
	}
	*out = l;
	return 0;
}

static int open_with_key(struct client_thread *t, uint32_t node,
			 const char *name, const struct client_link_options *o,
			 uint64_t deadline_ns, struct client_link **out)
{
	struct client_link_inside *l;
	int err = open_link(t, node, o, deadline_ns, &l);

	if (err)
		return err;
	err = ask_grant(t, l, name, o, deadline_ns);
	if (err) {
		client_link_close(&l->link);
		return err;
	}
	*out = &l->link;
	return 0;
}

int client_link_open(struct aq_rack *rack, const char *name,
		     const struct client_link_options *options,
		     struct client_link **out)
{
	static const struct client_link_options none = {
		.rights = CLIENT_LINK_ALL};
	const struct client_link_options *o = options ? options : &none;
	uint64_t deadline_ns = client_rack_until_ns(rack, o->deadline_ns);
	struct client_piece piece;
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (!err)
		err = check_options(o);
	while (!err) {
		err = find_piece(t, name, deadline_ns, &piece);
		if (err)
			break;
		err = open_with_key(t, piece.node, name, o, deadline_ns, out);
		/* It began to move since. */
		if (err != -EBUSY || !client_follow_nap(rack, deadline_ns))
			break;
		err = 0;
	}
	return err;
}

int client_link_open_at(struct aq_rack *rack, uint32_t node, const char *name,
			const struct client_link_options *o,
			struct client_link **out)
{
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (!err)
		err = check_options(o);
	if (!err && node >= client_rack_nodes(rack))
		err = error_set(-EINVAL, "the rack has no node %u", node);
	return err ? err
		   : open_with_key(t, node, name, o,
				   client_rack_until_ns(rack, o->deadline_ns),
				   out);
}

uint32_t client_link_node_count(struct aq_rack *rack)
{
	client_rack_rescan(rack);
	return client_rack_nodes(rack);
}

int client_link_join(struct aq_rack *rack, uint32_t node,
		     const struct client_link_options *o,
		     struct client_link **out)
{
	struct client_link_inside *l;
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (!err)
		err = check_options(o);
	if (!err && node >= client_rack_nodes(rack))
		err = error_set(-EINVAL, "the rack has no node %u", node);
	if (!err)
		err = open_link(t, node, o,
				client_rack_until_ns(rack, o->deadline_ns), &l);
	if (!err)
		*out = &l->link;
	return err;
}

void client_link_close(struct client_link *link)
{
	struct client_thread *t;
	struct client_link_inside *l;

	if (!link)
		return;
	l = container_of(link, struct client_link_inside, link);
	if (!*l->rack->is_own) { /* a child: all of it is the parent's */
		free(l);
		return;
	}
	if (l->has_heartbeat)
		client_bond_remove(l->rack, &l->bond);
	if (link->qp)
		(void)link->verbs->destroy_qp(link->qp);
	if (l->owns_cq)
		(void)link->verbs->destroy_cq(link->cq);
	if (link->channel)
		(void)link->verbs->destroy_comp_channel(link->channel);
	/* Without a thread's context the node has to find out by itself. */
	if (client_thread_get(l->rack, &t) == 0)
		client_join_end(t, &l->bond);
	free(l);
}

void client_link_why(const struct client_link *link,
		     char words[CLIENT_REACH_WORDS])
{
	words[0] = '\0';
	/* Only links of a rack have an address. */
	if (link->peer[0])
		client_reach_why(
			container_of(link, struct client_link_inside, link)
				->rack,
			link->node, link->peer, CLIENT_REACH_MS, words);
}

bool client_link_is_lost(const struct client_link *link)
{
	const struct client_link_inside *l =
		container_of(link, struct client_link_inside, link);

	return client_bond_is_lost(&l->bond);
}
