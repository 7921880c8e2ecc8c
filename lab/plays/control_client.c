/* SPDX-License-Identifier: Apache-2.0 */
/* The administrator of `aquifer sim control`, who makes and removes tenants and
 * forgets nodes; and what goes wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_world.h"

enum doing {
	DOES_CREATE,
	DOES_CREATE_AGAIN, /* the same name, with another token */
	DOES_DELETE,
	DOES_LOOK,
};

static void name_of(const struct world *w, unsigned i, char out[24])
{
	(void)snprintf(out, 24, "x%u-%llu", i,
		       (unsigned long long)w->client[i].generation);
}

static unsigned random_controller(struct world *w)
{
	int leader = controller_leader(w);

	return leader >= 0 && chance(w, 80)
		       ? (unsigned)leader
		       : (unsigned)rng_below(&w->rng, CONTROLLERS);
}

static void send(struct world *w, unsigned i, enum ctl_method method,
		 const char *path, char *body)
{
	struct message m = {
		.controller = random_controller(w),
		.who = i,
		.id = ++w->ids,
		.method = method,
		.token = control_token_admin,
		.body = body,
	};

	(void)snprintf(m.path, sizeof(m.path), "%s", path);
	w->client[i].asked = m.id;
	w->client[i].late_ns = w->now_ns + CLIENT_MS * MS;
	world_ask(w, &m, false);
	free(body);
}

static char *create_body(const char *name, uint64_t quota, const char *token)
{
	json_t *body = json_pack("{s:s, s:I}", "name", name, "quota",
				 (json_int_t)quota);
	char *text;

	if (token)
		(void)json_object_set_new(body, "token", json_string(token));
	text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	return text;
}

static unsigned tell(struct world *w, unsigned controller,
		     enum ctl_method method, const char *path, const char *body)
{
	struct ctl_request r = {
		.method = method,
		.path = path,
		.token = control_token_admin,
		.body = body,
		.body_bytes = body ? strlen(body) : 0,
	};
	struct ctl_reply reply = {0};
	struct cd_held held;
	unsigned status;

	cd_core_handle(w->controller[controller].core, &r, &reply, &held);
	status = reply.status;
	ctl_reply_release(&reply);
	return status;
}

/* The tenants that nodes work for, first of all. */
static void set_up(struct world *w)
{
	int leader = controller_leader(w);
	const struct cd_core *core;
	unsigned there = 0;
	char path[64];

	if (leader < 0)
		return;
	for (unsigned t = 0; t < TENANTS; t++) {
		char *body = create_body(control_tenants[t], w->quota[t],
					 t ? NULL : control_token_tenant);

		(void)snprintf(path, sizeof(path), "/v1/tenants/%s",
			       control_tenants[t]);
		if (tell(w, (unsigned)leader, CTL_GET, path, NULL) == 200)
			there++;
		else
			(void)tell(w, (unsigned)leader, CTL_POST, "/v1/tenants",
				   body);
		free(body);
	}
	core = w->controller[leader].core;
	w->is_set_up =
		there == TENANTS &&
		cd_core_settled(core, cd_core_mark(core)) == CD_COMMITTED;
}

void client_look(struct world *w, unsigned i)
{
	struct client *c = &w->client[i];
	char name[24], path[64];

	world_at(w, w->now_ns + between_ms(w, 100, 900), EV_CLIENT, i);
	if (!w->is_set_up) {
		set_up(w);
		return;
	}
	if (w->is_ending || (c->asked && w->now_ns < c->late_ns))
		return;
	/* Without an answer it may still happen, at any time: the name is not
	 * used again. */
	if (c->asked || c->belief == ABANDONED)
		*c = (struct client){.generation = c->generation + 1};
	name_of(w, i, name);
	(void)snprintf(path, sizeof(path), "/v1/tenants/%s", name);
	if (chance(w, 30)) {
		c->doing = DOES_LOOK;
		send(w, i, CTL_GET, path, NULL);
	} else if (c->belief == ABSENT || chance(w, 30)) {
		c->doing =
			c->belief == ABSENT ? DOES_CREATE : DOES_CREATE_AGAIN;
		send(w, i, CTL_POST, "/v1/tenants", create_body(name, 0, NULL));
	} else {
		c->doing = DOES_DELETE;
		send(w, i, CTL_DELETE, path, NULL);
	}
	w->result->changes++;
}

/* 503: whether it may have happened is said in words, as it is to people. */
bool says_nothing_happened(const struct message *m)
{
	return m->body && strstr(m->body, "nothing was changed");
}

static void take_change(struct world *w, struct client *c,
			const struct message *m)
{
	bool is_delete = c->doing == DOES_DELETE;

	if (m->status == 200 || m->status == 201 || m->status == 204) {
		if (c->doing == DOES_CREATE_AGAIN)
			world_wrong(w, "a tenant that exists was made again");
		c->belief = is_delete ? ABSENT : PRESENT;
	} else if (m->status == 409 && c->doing == DOES_CREATE) {
		world_wrong(w, "a tenant exists that was never made, or was "
			       "removed, or whose making had failed");
	} else if (m->status == 404 && is_delete) {
		world_wrong(w, "a tenant is lost whose making was answered");
	} else if (m->status == 503 && !says_nothing_happened(m)) {
		c->belief = ABANDONED;
	}
}

void client_reply(struct world *w, const struct message *m)
{
	struct client *c = &w->client[m->who];
	/* A controller that does not lead, or not any more, may not know. */
	bool leads = controller_leader(w) == (int)m->controller;

	if (m->id != c->asked)
		return;
	c->asked = 0;
	if (c->doing != DOES_LOOK) {
		take_change(w, c, m);
		return;
	}
	if (!leads ||
	    w->controller[m->controller].lead_ns + CLIENT_MS * MS > w->now_ns)
		return;
	if (m->status == 200 && c->belief == ABSENT)
		world_wrong(w, "a tenant is there that should not be");
	if (m->status == 404 && c->belief == PRESENT)
		world_wrong(w, "a tenant is gone whose making was answered");
}

/* ---- what goes wrong ---------------------------------------------------- */

/* Only one that lives and is heard of: that must be refused. */
static void forget_node(struct world *w, unsigned i)
{
	int leader = controller_leader(w);
	char path[64];

	if (leader < 0 || w->node[i].answered_ns + 1000 * MS < w->now_ns)
		return;
	(void)snprintf(path, sizeof(path), "/v1/nodes/m%u", i);
	(void)tell(w, (unsigned)leader, CTL_DELETE, path, NULL);
}

static void harm_controller(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];

	switch (rng_below(&w->rng, 4)) {
	case 0:
		controller_end(w, i);
		nodes_hung_up(w, i);
		world_at(w, w->now_ns + between_ms(w, 200, 4000), EV_START, i);
		break;
	case 1:
		c->p.stopped_ns = w->now_ns + between_ms(w, 200, 7000);
		break;
	case 2:
		c->cut_store_ns = w->now_ns + between_ms(w, 500, 6000);
		/* Then nothing makes it try a transaction. */
		if (chance(w, 50))
			c->cut_nodes_ns = c->cut_store_ns;
		break;
	default:
		c->p.cut_ns = w->now_ns + between_ms(w, 500, 6000);
		break;
	}
}

/* Perhaps it is started only after a while. */
void world_kill(struct world *w, unsigned i)
{
	if (w->is_ending)
		return;
	controller_break(w, i, true);
	regions_die(w, i);
	node_start(w, i);
	if (chance(w, 40))
		w->node[i].p.cut_ns = w->now_ns + between_ms(w, 500, 5000);
}

void world_fault(struct world *w)
{
	int leader = controller_leader(w);
	unsigned node = (unsigned)rng_below(&w->rng, NODES);
	unsigned any = (unsigned)rng_below(&w->rng, CONTROLLERS);

	/* Now and then there is time for what takes several steps. */
	world_at(w,
		 w->now_ns + (chance(w, 10) ? between_ms(w, 5000, 15000)
					    : between_ms(w, 300, 4000)),
		 EV_FAULT, 0);
	if (w->is_ending)
		return;
	if (chance(w, 50) && leader >= 0)
		harm_controller(w, (unsigned)leader);
	else if (chance(w, 25) && !w->controller[any].p.is_dead)
		harm_controller(w, any);
	else if (chance(w, 50))
		world_kill(w, node);
	else if (chance(w, 40))
		controller_break(w, node, false);
	else if (chance(w, 60))
		w->node[node].p.cut_ns = w->now_ns + between_ms(w, 500, 13000);
	else
		forget_node(w, node);
}
