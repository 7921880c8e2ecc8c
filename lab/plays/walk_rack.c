/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes, and requests to them. */
#include "walk_rack_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control/ctl_http.h"
#include "sim/fiber.h"
#include "verbs/verbs.h"

enum {
	POOL_BYTES = 8 << 20,
};

#define TOKEN                              \
	"11111111111111111111111111111111" \
	"11111111111111111111111111111111"
#define TOKEN_ADMIN                        \
	"22222222222222222222222222222222" \
	"22222222222222222222222222222222"
#define BUSY_PS (1 * SIM_US)

/* ---- nodes --------------------------------------------------------------- */

/* A process sees the NIC of its own host only. */
static unsigned one_device(void *ctx)
{
	return 1;
}

static const struct nic_provider *rack_provider(const struct walk_node *n)
{
	return sim_rack_provider(rig_stage_rack(n->host->stage));
}

static void describe(void *ctx, unsigned index, char name[64], uint64_t *guid)
{
	const struct walk_node *n = ctx;
	const struct nic_provider *p = rack_provider(n);

	p->describe(p->ctx, sim_host_index(n->host->sim_host), name, guid);
}

static int open_device(void *ctx, unsigned index, const char *rack,
		       struct nic_host **out)
{
	const struct walk_node *n = ctx;
	const struct nic_provider *p = rack_provider(n);

	return p->open(p->ctx, sim_host_index(n->host->sim_host), rack, out);
}

int walk_node_start(struct walk_nodes *all, unsigned index)
{
	struct walk_node *n = &all->node[index];
	struct mem_node_config c = {
		.pool_bytes = POOL_BYTES,
		.default_token = TOKEN,
		.admin_token = TOKEN_ADMIN,
		.walk = all->config,
	};
	char name[8], path[WALK_SWITCH_PATH];
	int err;

	snprintf(name, sizeof(name), "m%u", index);
	err = rig_host_add(all->run->stage, name, &n->host);
	if (err)
		return err;
	n->of = all;
	n->busy = false;
	n->provider = (struct nic_provider){.ctx = n,
					    .count = one_device,
					    .describe = describe,
					    .open = open_device};
	c.name = name;
	if (all->tor) {
		walk_switch_path(n, path);
		c.switch_path = path;
	}
	c.env = sim_host_env(n->host->sim_host);
	verbs_set_provider(&n->provider);
	err = mem_node_create(&c, &n->mem);
	verbs_set_provider(rack_provider(n));
	return err;
}

static void stop(struct walk_node *n)
{
	if (n->mem)
		mem_node_destroy(n->mem);
	n->mem = NULL;
}

void walk_node_kill(struct walk_nodes *all, unsigned index)
{
	struct walk_node *n = &all->node[index];

	while (n->busy)
		sim_fiber_sleep_ps(all->run->sim, BUSY_PS);
	rig_host_kill(n->host);
	n->killed++;
	stop(n);
}

unsigned walk_node_handle(struct walk_node *n, const char *method,
			  const char *path, const char *body, char **text)
{
	const struct ctl_request q = {
		.method = ctl_method_parse(method),
		.path = path,
		.token = TOKEN,
		.body = body,
		.body_bytes = body ? strlen(body) : 0,
	};
	struct ctl_reply reply = {0};
	unsigned status;

	n->busy = true;
	mem_node_handle(n->mem, &q, &reply);
	n->busy = false;
	*text = reply.body ? strndup(reply.body, reply.body_bytes) : NULL;
	status = reply.status;
	ctl_reply_release(&reply);
	return status;
}

static void beat(struct aq_rack *rack)
{
	for (struct walk_link *l = rack->links; l; l = l->next) {
		struct walk_node *n = &rack->all->node[l->link.node];
		char path[CLIENT_PATH_MAX], *text;

		if (!l->id[0] || !n->mem || n->busy)
			continue;
		snprintf(path, sizeof(path), "/v1/connections/%s/heartbeat",
			 l->id);
		l->is_lost |=
			walk_node_handle(n, "POST", path, NULL, &text) >= 400;
		free(text);
	}
}

void walk_nodes_tick(struct walk_nodes *all)
{
	for (unsigned i = 0; i < all->rack_count; i++)
		if (all->rack[i] && !all->rack[i]->host->killed)
			beat(all->rack[i]);
	for (unsigned i = 0; i < all->count; i++)
		if (all->node[i].mem && !all->node[i].busy)
			mem_node_tick(all->node[i].mem);
}

void walk_nodes_close(struct walk_nodes *all)
{
	for (unsigned i = 0; i < all->rack_count; i++)
		if (all->rack[i])
			walk_rack_close(all->rack[i]);
	for (unsigned i = 0; i < all->count; i++)
		stop(&all->node[i]);
}

/* ---- racks --------------------------------------------------------------- */

static int open_nic(struct aq_rack *rack)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		return -ENOMEM;
	rack->context =
		ibv_open_device(list[sim_host_index(rack->host->sim_host)]);
	ibv_free_device_list(list);
	if (rack->context)
		rack->pd = ibv_alloc_pd(rack->context);
	return rack->pd ? 0 : -ENODEV;
}

int walk_rack_open(struct walk_nodes *all, struct rig_host *host,
		   struct aq_rack **out)
{
	struct aq_rack *rack = calloc(1, sizeof(*rack));

	if (!rack)
		return -ENOMEM;
	ASSERT(all->rack_count < WALK_RACKS_MAX);
	rack->all = all;
	rack->host = host;
	for (unsigned i = 0; i < all->count; i++)
		snprintf(rack->node[i].name, sizeof(rack->node[i].name), "m%u",
			 i);
	all->rack[all->rack_count++] = rack;
	*out = rack;
	return open_nic(rack);
}

struct ibv_pd *walk_rack_pd(const struct aq_rack *rack)
{
	return rack->pd;
}

void walk_rack_close(struct aq_rack *rack)
{
	struct walk_nodes *all = rack->all;

	struct aq_region *r;

	while (rack->links)
		client_link_close(&rack->links->link);
	while ((r = rack->regions)) {
		rack->regions = r->next;
		free(r);
	}
	for (unsigned i = 0; i < all->rack_count; i++)
		if (all->rack[i] == rack)
			all->rack[i] = NULL;
	/* All that was made with them is gone. */
	if (rack->pd)
		(void)ibv_dealloc_pd(rack->pd);
	if (rack->context)
		(void)ibv_close_device(rack->context);
	free(rack->text);
	free(rack->answer);
	free(rack);
}

bool walk_rack_is_asking(const struct aq_rack *rack)
{
	return rack->asking > 0;
}

void walk_rack_bar(struct aq_rack *rack, bool is_barred)
{
	rack->is_barred = is_barred;
}

/* Nobody refuses a connection there, so that the caller waits. */
static bool is_silent(const struct aq_rack *rack, const struct walk_node *n)
{
	return !n->mem && n->killed % 2 &&
	       client_keep_now_ns(rack) < rack->until_ns;
}

/* The way to the node and what it says: its status, or 0 if it is gone. */
static unsigned travel(struct aq_rack *rack, struct walk_node *n,
		       const char *method, const char *path)
{
	struct sim *sim = rack->all->run->sim;
	uint64_t half_ps = rack->all->call_ps / 2;
	unsigned status = 0;

	do
		sim_fiber_sleep_ps(sim, half_ps);
	while (rack->is_barred);
	while (n->busy || is_silent(rack, n))
		sim_fiber_sleep_ps(sim, BUSY_PS);
	if (n->mem)
		status = walk_node_handle(n, method, path, rack->text,
					  &rack->answer);
	sim_fiber_sleep_ps(sim, half_ps);
	return status;
}

int walk_rack_ask(struct aq_rack *rack, uint32_t node, const char *method,
		  const char *path, json_t *body, json_t **reply)
{
	struct walk_node *n = &rack->all->node[node];
	struct client_http_reply http = {0};
	int err = 0;

	ASSERT(!rack->asking); /* one thread */
	rack->asking++;
	rack->text = body ? json_dumps(body, 0) : NULL;
	json_decref(body);
	http.status = travel(rack, n, method, path);
	http.text = rack->answer;
	http.len_bytes = rack->answer ? strlen(rack->answer) : 0;
	if (!http.status)
		err = error_set(-EHOSTDOWN, "nobody listens");
	*reply = NULL;
	err = client_reply_take(&rack->node[node], err, &http, reply);
	free(rack->text);
	free(rack->answer);
	rack->text = rack->answer = NULL;
	rack->asking--;
	return err;
}

/* ---- what traverse/ calls of a rack -------------------------------------- */

uint32_t aq_rack_deadline(const struct aq_rack *rack)
{
	return WALK_DEADLINE_MS;
}

uint64_t client_keep_now_ns(const struct aq_rack *rack)
{
	return client_clock_now_ns(&rack->host->clock);
}

int client_keep_device(struct aq_rack *rack, struct client_device *out)
{
	*out = (struct client_device){client_verbs_choose(), rack->context,
				      rack->pd};
	return 0;
}

bool client_keep_has_program(const struct aq_rack *rack, const char *program)
{
	return rack->all->tor && strcmp(program, "walk") == 0;
}

int client_keep_caller(struct aq_rack *rack, const struct client_caller **out)
{
	*out = &rack->caller;
	return 0;
}

const struct client_node *client_keep_node(const struct aq_rack *rack,
					   uint32_t index)
{
	return &rack->node[index];
}

int client_call(const struct client_caller *c, const struct client_node *node,
		const char *method, const char *path, json_t *body,
		uint32_t timeout_ms, size_t max_bytes, json_t **reply)
{
	struct aq_rack *rack =
		container_of(c, struct aq_rack, caller); /* it is not changed */

	rack->until_ns = client_keep_now_ns(rack) + 1000000ull * timeout_ms;
	return walk_rack_ask(rack, (uint32_t)(node - rack->node), method, path,
			     body, reply);
}

/* Nobody waits by this clock: memory of simulated hosts is never mapped, which
 * is known at once when time is over. */
static uint64_t later_ns(void *ctx)
{
	static uint64_t ns;

	return ns += 1000000000;
}

static void no_relax(void *ctx)
{
}

const struct client_clock *client_clock_real(void)
{
	static const struct client_clock self = {.now_ns = later_ns,
						 .relax = no_relax};

	return &self;
}
