/* SPDX-License-Identifier: Apache-2.0 */
/* The stage and its hosts. */
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "sim/fiber.h"
#include "sim/model_host.h"
#include "stage_priv.h"
#include "verbs/verbs.h"

enum {
	OWN_CQ_DEPTH = 16,
};

/* ---- the stage ---------------------------------------------------------- */

static int open_traces(struct rig_stage *s)
{
	struct sim_net *net = sim_rack_net(s->rack);

	if (s->cfg.hardware)
		sim_net_set_switch_ps(net, model_connectx5.switch_ps);
	sim_net_hide_addresses(net);
	sim_net_set_trace(net, s->cfg.trace);
	return s->cfg.pcap ? sim_net_set_pcap(net, s->cfg.pcap) : 0;
}

int rig_stage_create(const struct rig_stage_config *cfg, struct rig_stage **out)
{
	struct rig_stage *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->verbs = client_verbs_choose();
	err = sim_create(cfg->seed, &s->sim);
	if (!err)
		err = sim_rack_create(s->sim, &s->rack);
	if (!err)
		err = sim_fabric_plug(cfg->fabric, sim_rack_net(s->rack),
				      RIG_HOSTS_MAX);
	if (!err)
		err = open_traces(s);
	if (err) {
		rig_stage_destroy(s);
		return err;
	}
	verbs_set_provider(sim_rack_provider(s->rack));
	*out = s;
	return 0;
}

static void host_close(struct rig_host *h)
{
	/* A device that does not close is a leak of the play's; the rack's
	 * own assertion would say so. */
	if (h->cq)
		(void)h->stage->verbs->destroy_cq(h->cq);
	if (h->pd)
		(void)h->stage->verbs->dealloc_pd(h->pd);
	if (h->context)
		(void)h->stage->verbs->close_device(h->context);
}

void rig_stage_destroy(struct rig_stage *s)
{
	if (!s)
		return;
	if (s->sim)
		sim_fiber_kill_all(s->sim);
	while (s->links)
		rig_link_close(&s->links->link);
	while (s->regions)
		rig_region_close(s->regions);
	for (unsigned i = 0; i < s->host_count; i++)
		host_close(s->hosts[i]);
	sim_rack_destroy(s->rack);
	for (unsigned i = 0; i < s->host_count; i++) {
		sim_model_host_destroy(s->hosts[i]->model);
		free(s->hosts[i]);
	}
	if (s->rack)
		verbs_set_provider(NULL);
	sim_destroy(s->sim);
	free(s);
}

struct sim *rig_stage_sim(struct rig_stage *s)
{
	return s->sim;
}

struct sim_net *rig_stage_net(struct rig_stage *s)
{
	return sim_rack_net(s->rack);
}

struct sim_rack *rig_stage_rack(struct rig_stage *s)
{
	return s->rack;
}

/* ---- hosts -------------------------------------------------------------- */

static uint64_t clock_now_ns(void *ctx)
{
	struct rig_host *h = ctx;

	return sim_now_ns(h->stage->sim);
}

static void clock_relax(void *ctx)
{
	struct rig_host *h = ctx;

	env_relax(sim_host_env(h->sim_host));
}

static int host_open(struct rig_host *h)
{
	const struct client_verbs *v = h->stage->verbs;
	unsigned index = sim_host_index(h->sim_host);
	struct ibv_device **list;
	int count = 0;

	list = v->get_device_list(&count);
	if (!list)
		return -ENOMEM;
	if (index < (unsigned)count)
		h->context = v->open_device(list[index]);
	v->free_device_list(list);
	if (!h->context)
		return -ENODEV;
	rig_meter_install(h);
	h->pd = v->alloc_pd(h->context);
	h->cq = rig_cq_create(h, OWN_CQ_DEPTH);
	if (!h->pd || !h->cq)
		return -ENOMEM;
	return -v->query_gid(h->context, 1, 0, &h->gid);
}

int rig_host_add(struct rig_stage *s, const char *name, struct rig_host **out)
{
	return rig_host_add_model(s, name, &model_connectx5, out);
}

int rig_host_add_model(struct rig_stage *s, const char *name,
		       const struct model_params *params, struct rig_host **out)
{
	struct sim_host_config cfg = {.link = s->cfg.link,
				      .chain_ps = s->cfg.chain_ps};
	struct rig_host *h;
	int err = 0;

	if (s->host_count == RIG_HOSTS_MAX)
		return -ENOSPC;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->stage = s;
	snprintf(h->name, sizeof(h->name), "%s", name);
	h->clock = (struct client_clock){
		.now_ns = clock_now_ns, .relax = clock_relax, .ctx = h};
	cfg.relax_max_ps = s->cfg.relax_max_ps;
	cfg.knows_senders = s->cfg.knows_senders;
	if (s->cfg.hardware) {
		err = sim_model_host_create(
			s->sim, params, s->cfg.seed + s->host_count, &h->model);
		if (!err)
			sim_model_host_config(h->model, &cfg);
	}
	if (!err)
		err = sim_host_add(s->rack, &cfg, &h->sim_host);
	if (err) {
		sim_model_host_destroy(h->model);
		free(h);
		return err;
	}
	s->hosts[s->host_count++] = h;
	err = host_open(h);
	if (!err)
		*out = h;
	return err;
}

int rig_host_spawn(struct rig_host *h, const char *name, void (*fn)(void *arg),
		   void *arg)
{
	return sim_fiber_spawn_for(h->stage->sim, h, name, fn, arg);
}

void rig_host_kill(struct rig_host *h)
{
	if (h->killed)
		return;
	h->killed = true;
	sim_host_crash(h->sim_host);
	sim_note(h->stage->sim, SIM_NOTE_OTHER, h->name, strlen(h->name));
	sim_fiber_kill(h->stage->sim, h);
}

void rig_host_tell_gone(struct rig_host *h)
{
	struct rig_stage *s = h->stage;

	for (unsigned i = 0; i < s->host_count; i++) {
		if (s->hosts[i] != h)
			sim_host_path_down(s->hosts[i]->sim_host, h->sim_host);
	}
}

void rig_host_work_ps(struct rig_host *h, uint64_t work_ps)
{
	if (work_ps)
		sim_fiber_sleep_ps(h->stage->sim, work_ps);
}
