/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node tells the switch that its NIC is plugged into: itself, its
 * connections, and regions that the switch may work on. Programs of the switch
 * know nothing but what they are told here, and a switch that was restarted
 * knows nothing at all: then everything is told anew, and connections whose
 * packets the old switch may have held end. The connection that swordbox works
 * through is made in switch_shared.c.
 *
 * A region whose atomics the switch replaces is reached through the switch
 * only. The node makes sure of that: its NIC has no other way (uplink.c), the
 * region has one key, and the node's processor never touches it.
 *
 * With nic.auth = psk a switch can forward packets and lose them, but not
 * change them: it is told nothing, and one that runs swordbox is refused.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "switch_priv.h"

enum {
	WORDS_BYTES = 224,
	GONE_TRIES = 20,
	GONE_PAUSE_US = 10000,
};

/* ---- regions ------------------------------------------------------------- */

static int declare_kind(struct mem_node *node, const struct mem_region *r)
{
	const struct mem_switch *w = &node->at_switch;
	const struct mem_declared *d = &r->declared;
	char server[ADDRESS_TEXT];
	int err = 0;

	if (d->kind == MEM_DECLARED_NOT)
		return 0;
	if (node->has_auth)
		return error_set(-EOPNOTSUPP,
				 "nic.auth = psk: %s of a switch would change "
				 "packets, whose codes it cannot make",
				 d->kind == MEM_DECLARED_ATOMICS ? "swordbox"
								 : "steer");
	err = address_server(node, server);
	if (err)
		return err;
	switch_tell_late(node); /* perhaps of one that had this key */
	if (d->kind == MEM_DECLARED_ATOMICS) {
		if (!w->has_sword)
			return error_set(-EOPNOTSUPP,
					 "no switch here replaces atomics");
		/* The shared connection is in that domain. */
		if (strcmp(r->tenant->name, "default") != 0)
			return error_set(-EOPNOTSUPP,
					 "only the tenant 'default' has "
					 "regions whose atomics the switch "
					 "replaces");
		return ctl_switch_tell(
			&node->at_switch.ctl,
			"tell swordbox region server=%s rkey=%u va=%llu "
			"len=%llu",
			server, r->mr->rkey,
			(unsigned long long)(uintptr_t)r->addr,
			(unsigned long long)(r->size_bytes & ~7ull));
	}
	if (!w->has_steer)
		return error_set(-EOPNOTSUPP, "no switch here steers");
	return ctl_switch_tell(
		&node->at_switch.ctl,
		"tell steer store server=%s rkey=%u va=%llu nodes_at=%llu "
		"nodes=%llu node_bytes=%llu",
		server, r->mr->rkey, (unsigned long long)(uintptr_t)r->addr,
		(unsigned long long)d->nodes_at, (unsigned long long)d->nodes,
		(unsigned long long)d->node_bytes);
}

void declare_region_anew(struct mem_node *node, struct mem_region *r)
{
	if (switch_walk_piece(node, r))
		log_debug("memnode", "region %s: %s", r->name, error_last());
}

int declare_region(struct mem_node *node, struct mem_region *r)
{
	int err = declare_kind(node, r);

	if (!err)
		declare_region_anew(node, r);
	return err;
}

void declare_region_end(struct mem_node *node, const struct mem_region *r)
{
	bool atomics = r->declared.kind == MEM_DECLARED_ATOMICS;
	char line[MEM_LATE_BYTES], server[ADDRESS_TEXT];

	switch_walk_gone(node, r);
	if (r->declared.kind == MEM_DECLARED_NOT ||
	    address_server(node, server))
		return;
	snprintf(line, sizeof(line), "tell %s gone server=%s rkey=%u",
		 atomics ? "swordbox" : "steer", server, r->mr->rkey);
	/* A WRITE to memory that is gone would end the shared connection for
	 * everybody, so those under way come first. */
	for (unsigned i = 0; i < (atomics ? GONE_TRIES : 1); i++) {
		if (switch_tell_end(node, line))
			return;
		(void)usleep(GONE_PAUSE_US);
	}
	pthread_mutex_lock(&node->lock);
	switch_tell_later(node, line);
	pthread_mutex_unlock(&node->lock);
}

/* ---- connections --------------------------------------------------------- */

static void conn_words(const struct mem_conn *c, char *out, size_t bytes)
{
	char server[ADDRESS_TEXT], client[ADDRESS_TEXT];

	snprintf(out, bytes, "server=%s server_qpn=%u client=%s client_qpn=%u",
		 address_text(c->own_gid.raw, server), c->qp->qp_num,
		 address_text(c->client_gid.raw, client), c->client_qpn);
}

int declare_conn(struct mem_node *node, const struct mem_conn *c)
{
	const struct mem_switch *w = &node->at_switch;
	char words[WORDS_BYTES];
	int err = 0;

	if (!w->ctl.path[0])
		return 0;
	switch_tell_late(node); /* perhaps of one with these queue pairs */
	conn_words(c, words, sizeof(words));
	if (w->has_sword)
		err = ctl_switch_tell(&node->at_switch.ctl,
				      "tell swordbox conn %s psn=%u", words,
				      c->client_psn);
	if (!err && w->has_steer)
		err = ctl_switch_tell(&node->at_switch.ctl,
				      "tell steer conn %s", words);
	return err;
}

void declare_conn_end(struct mem_node *node, const struct mem_conn *c)
{
	const struct mem_switch *w = &node->at_switch;
	char words[WORDS_BYTES], line[MEM_LATE_BYTES];

	if (!w->ctl.path[0])
		return;
	conn_words(c, words, sizeof(words));
	for (unsigned i = 0; i < 2; i++) {
		if (!(i ? w->has_steer : w->has_sword))
			continue;
		snprintf(line, sizeof(line), "tell %s end %s",
			 i ? "steer" : "swordbox", words);
		if (!switch_tell_end(node, line))
			switch_tell_later(node, line);
	}
}

/* ---- the switch, and another one in its place ---------------------------- */

/* Shared connections that the switch has given up so far. */
static json_int_t given_up(const json_t *hello)
{
	return json_integer_value(json_object_get(
		ctl_switch_program(hello, "swordbox"), "shared_dead"));
}

static void end_connections(struct mem_node *node)
{
	for (unsigned i = 0; i < MEM_CONN_MAX; i++)
		if (node->conns[i])
			conn_end(node, node->conns[i], MEM_END_BROKEN);
}

/* Of a run of this node before, or more than is true. */
static int forget_us(struct mem_node *node)
{
	char server[ADDRESS_TEXT];
	union ibv_gid gid;
	uint8_t index;
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++)
		if (address_own(node, i == 0, &index, &gid) == 0)
			err = ctl_switch_tell(&node->at_switch.ctl,
					      "tell steer gone server=%s",
					      address_text(gid.raw, server));
	return err;
}

/* What finds no room there works without the switch's help. */
static int unless_refused(int err)
{
	if (err == -EREMOTEIO)
		log_warn("memnode", "%s", error_last());
	return err == -EREMOTEIO ? 0 : err;
}

/* To a switch that knows nothing of us, or nothing that counts. */
static int declare_all(struct mem_node *node)
{
	struct mem_switch *w = &node->at_switch;
	bool sword = w->has_sword, steer = w->has_steer;
	int err = 0;

	w->late_count = 0; /* it does not know those either */
	if (sword) {
		w->has_sword = w->has_steer = false; /* nothing to be said */
		end_connections(node);
		w->has_sword = sword;
		w->has_steer = steer;
		err = switch_shared_open(node);
	}
	if (!err && steer)
		err = forget_us(node);
	if (!err && w->has_walk) {
		err = switch_walk_open(node);
		if (err && err != -EAGAIN) { /* walks go on without it */
			log_warn("memnode", "%s", error_last());
			w->has_walk = false;
			err = 0;
		}
	}
	for (unsigned i = 0; !err && i < MEM_REGION_MAX; i++)
		if (node->regions[i] && !node->regions[i]->busy &&
		    node->regions[i]->move.stage == MEM_STAGE_HOME)
			err = unless_refused(
				declare_region(node, node->regions[i]));
	for (unsigned i = 0; !err && i < MEM_CONN_MAX; i++)
		if (node->conns[i])
			err = unless_refused(
				declare_conn(node, node->conns[i]));
	return err;
}

/* If it is not the one that knows us, it is told everything. */
static int meet(struct mem_node *node, json_t *hello)
{
	struct mem_switch *w = &node->at_switch;
	const char *run = ctl_switch_run(hello);
	int err = 0;

	if (!run) {
		err = error_set(-EBADMSG, "the switch does not say who it is");
	} else if (node->has_auth && ctl_switch_program(hello, "swordbox")) {
		/* What it is not told about it holds up. */
		err = error_set(-EOPNOTSUPP,
				"nic.auth = psk does not go with the program "
				"swordbox, which the switch at %s runs: it "
				"changes packets, whose codes it cannot make",
				w->ctl.path);
	} else if (strcmp(run, w->run) != 0) {
		w->has_sword = ctl_switch_program(hello, "swordbox") != NULL;
		w->has_steer = !node->has_auth &&
			       ctl_switch_program(hello, "steer") != NULL;
		w->has_walk = !node->has_auth && node->walks &&
			      ctl_switch_program(hello, "walk") != NULL;
		err = declare_all(node);
		if (!err) {
			w->given_up = given_up(hello);
			snprintf(w->run, sizeof(w->run), "%s", run);
			log_info("memnode",
				 "declared to the switch at %s (%s%s%s)",
				 w->ctl.path, w->has_sword ? "swordbox " : "",
				 w->has_steer ? "steer " : "",
				 w->has_walk ? "walk" : "");
		}
	}
	return err;
}

int declare_open(struct mem_node *node, const char *path)
{
	struct mem_switch *w = &node->at_switch;
	json_t *hello = NULL;
	int err;

	if (strlen(path) >= sizeof(w->ctl.path))
		return error_set(-ENAMETOOLONG, "%s is too long", path);
	snprintf(w->ctl.path, sizeof(w->ctl.path), "%s", path);
	err = ctl_switch_ask(&node->at_switch.ctl, "hello", &hello);
	if (err == -ENOENT || err == -ECONNREFUSED) {
		/* Its socket is elsewhere, or it comes later: to programs that
		 * were told nothing we are like anybody. */
		log_warn("memnode", "%s", error_last());
		return 0;
	}
	if (!err)
		err = meet(node, hello);
	if (!err)
		lead_look(node, hello);
	if (err)
		w->ctl.path[0] = '\0';
	json_decref(hello);
	return err;
}

void declare_close(struct mem_node *node)
{
	switch_walk_close(node);
	switch_shared_close(node);
}

void declare_tick(struct mem_node *node)
{
	struct mem_switch *w = &node->at_switch;
	uint64_t now_ns = env_now_ns(node->env);
	json_t *hello = NULL;
	bool lost = false;
	struct mem_visit visit;
	int err;

	if (!w->ctl.path[0] || now_ns < w->look_ns)
		return;
	w->look_ns = now_ns + shared_look_ms(node) * 1000000ull;
	/* Requests need not wait for a switch that is busy: its path, when to
	 * look, and the shared connection change in this thread only. */
	err = ctl_switch_ask(&node->at_switch.ctl, "hello", &hello);
	if (!err && given_up(hello) != w->given_up) {
		lost = switch_shared_is_dead(node);
		w->given_up = given_up(hello);
	}
	node_enter(node, &visit);
	if (lost)
		w->run[0] = '\0';
	if (!err)
		err = meet(node, hello);
	if (!err) {
		switch_tell_late(node);
		switch_walk_late(node);
		lead_look(node, hello);
	}
	node_leave(node, &visit);
	json_decref(hello);
	if (!err != w->answers) {
		w->answers = !err;
		if (err)
			log_warn("memnode", "%s", error_last());
	}
}
