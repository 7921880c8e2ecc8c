/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated host: the env of its NIC on the virtual clock. Frames go
 * through the host's port, timers through the event queue; a program that
 * waits sleeps until something happens to its NIC.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain_clock.h"
#include "fiber.h"
#include "rack_priv.h"

enum {
	PAGE_BYTES = 4096,
	PATH_WINDOW_BYTES = 1 << 20,
};

#define RELAX_PS     (100 * SIM_NS)
#define CHAIN_PS     (1000 * SIM_NS) /* until a long chain goes on */
#define RELAX_MAX_PS (1 * SIM_MS)    /* unless told otherwise */

struct env_path {
	struct env_path *next;
	uint8_t ip[16];
	uint32_t users;
	bool down;
};

struct sim_host {
	struct env env;
	struct nic_host nic_host;
	struct sim *sim;
	struct sim_net *net;
	struct sim_port *port;
	struct sim_host_config cfg;
	struct env_addr addr;
	unsigned index;
	unsigned users; /* how often the device is open */
	bool crashed;
	bool flush_again; /* the NIC had more to send than the port took */
	struct rng rand;
	struct env_path *paths;
	struct sim_frame *tx;	 /* the one frame between tx_begin and tx_end */
	struct sim_event settle; /* looks at the NIC's deadline again */
	struct sim_event tick;
	struct sim_event flush;
	struct sim_wait activity;
	uint64_t relax_seen; /* of activity, when somebody relaxed last */
	uint64_t relax_next_ps;
	uint64_t counters[NIC_COUNTER_COUNT];
	struct sim_chain_clock chains;
	void (*other)(void *ctx, const uint8_t *frame, size_t len_bytes);
	void *other_ctx;
};

static struct sim_host *of_env(struct env *env)
{
	return container_of(env, struct sim_host, env);
}

/* ---- the NIC's deadlines ------------------------------------------------ */

/* The NIC may have set a timer: look at its deadline once it is at rest. */
static void touch(struct sim_host *host)
{
	if (!sim_event_is_set(&host->settle) && host->nic_host.nic)
		sim_schedule_in(host->sim, &host->settle, 0);
}

static void on_settle(struct sim *sim, struct sim_event *ev)
{
	struct sim_host *host = container_of(ev, struct sim_host, settle);
	uint64_t deadline_ns;

	if (!host->nic_host.nic || host->crashed)
		return;
	deadline_ns = nic_next_deadline_ns(host->nic_host.nic);
	if (deadline_ns == UINT64_MAX)
		sim_cancel(sim, &host->tick);
	else
		sim_schedule_at(sim, &host->tick, deadline_ns * SIM_NS);
}

static void news(struct sim_host *host)
{
	uint64_t relax_ps = host->cfg.relax_ps;

	sim_wait_notify(host->sim, &host->activity,
			relax_ps ? relax_ps : RELAX_PS);
}

static void on_tick(struct sim *sim, struct sim_event *ev)
{
	struct sim_host *host = container_of(ev, struct sim_host, tick);

	if (!host->nic_host.nic || host->crashed)
		return;
	lock_take(&host->nic_host.lock);
	nic_tick(host->nic_host.nic);
	host->flush_again |= nic_flush(host->nic_host.nic);
	lock_drop(&host->nic_host.lock);
	touch(host);
	news(host);
}

static void on_flush(struct sim *sim, struct sim_event *ev)
{
	struct sim_host *host = container_of(ev, struct sim_host, flush);

	if (!host->nic_host.nic || host->crashed)
		return;
	lock_take(&host->nic_host.lock);
	host->flush_again = nic_flush(host->nic_host.nic);
	if ((nic_has_chains(host->nic_host.nic) ||
	     nic_has_walks(host->nic_host.nic)) &&
	    !sim_event_is_set(&host->flush))
		sim_schedule_in(sim, &host->flush,
				host->cfg.chain_ps ? host->cfg.chain_ps
						   : CHAIN_PS);
	lock_drop(&host->nic_host.lock);
	touch(host);
	news(host);
}

static void resume_chain(struct sim_host *host, uint32_t qpn)
{
	if (!host->nic_host.nic || host->crashed)
		return;
	lock_take(&host->nic_host.lock);
	nic_chain_resume(host->nic_host.nic, qpn);
	host->flush_again |= nic_flush(host->nic_host.nic);
	lock_drop(&host->nic_host.lock);
	touch(host);
	news(host);
}

static uint32_t from_of(const struct sim_port *port)
{
	return port ? sim_port_index(port) + 1 : NIC_FROM_NET;
}

/* ---- frames in ---------------------------------------------------------- */

static void on_input(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);
	struct sim_host *host = f->owner;

	if (host->other && !sim_frame_is_rdma(f)) {
		host->other(host->other_ctx, f->bytes, f->len_bytes);
		sim_frame_free(host->net, f);
		return;
	}
	if (host->nic_host.nic && !host->crashed) {
		lock_take(&host->nic_host.lock);
		nic_input(host->nic_host.nic, f->bytes, f->len_bytes,
			  host->cfg.knows_senders ? from_of(f->from)
						  : NIC_FROM_NET);
		lock_drop(&host->nic_host.lock);
		/* Behind every other frame of this moment: one batch. */
		if (!sim_event_is_set(&host->flush))
			sim_schedule_in(sim, &host->flush, 0);
	}
	sim_frame_free(host->net, f);
}

static void port_rx(void *ctx, struct sim_frame *f)
{
	struct sim_host *host = ctx;
	const struct sim_host_model *m = &host->cfg.model;
	uint64_t ready_ps = sim_now_ps(host->sim);
	uint64_t batch_ps = host->cfg.rx_batch_ps;

	if (m->rx_ready_ps)
		ready_ps = m->rx_ready_ps(m->ctx, host, f->bytes, f->len_bytes);
	if (batch_ps)
		ready_ps = (ready_ps + batch_ps - 1) / batch_ps * batch_ps;
	f->owner = host;
	sim_event_init(&f->ev, on_input);
	sim_schedule_at(host->sim, &f->ev, ready_ps);
}

static void port_room(void *ctx)
{
	struct sim_host *host = ctx;

	if (!sim_event_is_set(&host->flush))
		sim_schedule_in(host->sim, &host->flush, 0);
}

static const struct sim_port_ops port_ops = {.rx = port_rx, .room = port_room};

/* ---- env ---------------------------------------------------------------- */

static uint64_t host_now_ns(struct env *env)
{
	struct sim_host *host = of_env(env);

	/* Whoever asks for the time is about to set a timer. */
	touch(host);
	return sim_now_ns(host->sim);
}

static void host_random(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&of_env(env)->rand, buf, len_bytes);
}

/* Without news the pauses grow, so that a long wait costs few events. */
static void host_relax(struct env *env)
{
	struct sim_host *host = of_env(env);
	struct sim *sim = host->sim;
	uint64_t min_ps = host->cfg.relax_ps ? host->cfg.relax_ps : RELAX_PS;
	uint64_t max_ps =
		host->cfg.relax_max_ps ? host->cfg.relax_max_ps : RELAX_MAX_PS;

	touch(host);
	if (host->relax_seen != host->activity.notify_count) {
		host->relax_seen = host->activity.notify_count;
		host->relax_next_ps = 0;
	}
	host->relax_next_ps = u64_max(host->relax_next_ps, min_ps);
	if (sim_fiber_inside(sim)) {
		(void)sim_wait_for(sim, &host->activity, host->relax_next_ps,
				   true, "its NIC"); /* either way: look */
	} else {
		/* A plain program: it runs the simulation while it waits. */
		sim_run_until(sim, sim_now_ps(sim) + min_ps);
		return;
	}
	host->relax_next_ps = u64_min(host->relax_next_ps * 2, max_ps);
}

static void *host_pages_alloc(struct env *env, size_t len_bytes)
{
	size_t whole = align_up(len_bytes, PAGE_BYTES);
	void *p = aligned_alloc(PAGE_BYTES, whole);

	if (p)
		memset(p, 0, whole);
	return p;
}

static void host_pages_free(struct env *env, void *pages, size_t len_bytes)
{
	free(pages);
}

static int host_path_open(struct env *env, const struct env_addr *dst,
			  uint32_t qpn, struct env_path **out)
{
	struct sim_host *host = of_env(env);
	struct env_path *p;

	for (p = host->paths; p; p = p->next) {
		if (!p->down && memcmp(p->ip, dst->ip, 16) == 0) {
			p->users++;
			*out = p;
			return 0;
		}
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	memcpy(p->ip, dst->ip, 16);
	p->users = 1;
	p->next = host->paths;
	host->paths = p;
	*out = p;
	return 0;
}

static void host_path_close(struct env *env, struct env_path *path)
{
	struct env_path **p = &of_env(env)->paths;

	if (--path->users)
		return;
	while (*p != path)
		p = &(*p)->next;
	*p = path->next;
	free(path);
}

static uint8_t *host_tx_begin(struct env *env, struct env_path *path,
			      size_t max_bytes)
{
	struct sim_host *host = of_env(env);

	touch(host);
	ASSERT(!host->tx);
	host->tx = sim_port_tx_begin(host->port, max_bytes);
	return host->tx ? host->tx->bytes : NULL;
}

static void host_tx_end(struct env *env, struct env_path *path,
			size_t len_bytes)
{
	struct sim_host *host = of_env(env);
	const struct sim_host_model *m = &host->cfg.model;
	struct sim_frame *f = host->tx;
	uint64_t ready_ps = 0;

	ASSERT(f);
	host->tx = NULL;
	if (!len_bytes || path->down || host->crashed) {
		sim_frame_free(host->net, f);
		return;
	}
	if (m->tx_ready_ps)
		ready_ps = m->tx_ready_ps(m->ctx, host, f->bytes, len_bytes);
	sim_port_tx_end(host->port, f, len_bytes, ready_ps);
}

/* A network that loses, unless the host has a cost model: the models are of
 * fabrics that do not. */
static uint32_t host_path_window(struct env *env, struct env_path *path)
{
	return of_env(env)->cfg.model.rx_ready_ps ? 0 : PATH_WINDOW_BYTES;
}

static uint32_t host_path_from(struct env *env, struct env_path *path)
{
	struct sim_host *host = of_env(env);

	return host->cfg.knows_senders
		       ? from_of(sim_net_find(host->net, path->ip))
		       : NIC_FROM_NET;
}

static const struct env_ops env_ops = {
	.now_ns = host_now_ns,
	.random = host_random,
	.relax = host_relax,
	.pages_alloc = host_pages_alloc,
	.pages_free = host_pages_free,
	.path_open = host_path_open,
	.path_close = host_path_close,
	.tx_begin = host_tx_begin,
	.tx_end = host_tx_end,
	.path_window_bytes = host_path_window,
	.path_from = host_path_from,
};

/* ---- the NIC's host ----------------------------------------------------- */

static struct sim_host *of_nic_host(struct nic_host *nh)
{
	return container_of(nh, struct sim_host, nic_host);
}

/* The event queue moves the frames; nobody has to help it. */
static void nic_host_drive(struct nic_host *nh)
{
	touch(of_nic_host(nh));
}

static void nic_host_leave(struct nic_host *nh)
{
	touch(of_nic_host(nh));
}

static void nic_host_close(struct nic_host *nh)
{
	struct sim_host *host = of_nic_host(nh);

	ASSERT(host->users);
	if (--host->users)
		return;
	nic_destroy(nh->nic);
	nh->nic = NULL;
	sim_cancel(host->sim, &host->settle);
	sim_cancel(host->sim, &host->tick);
	sim_cancel(host->sim, &host->flush);
	sim_chain_clock_release(&host->chains);
}

static const struct nic_host_ops nic_host_ops = {
	.drive = nic_host_drive,
	.leave = nic_host_leave,
	.close = nic_host_close,
};

int sim_host_open(struct sim_host *host, uint32_t slot, struct nic_host **out)
{
	struct nic_config cfg = {.slot = slot,
				 .gid_count = 1,
				 .gids = {host->addr},
				 .node_guid = sim_host_guid(host->index),
				 .counters = host->counters,
				 .witness = host->cfg.witness,
				 .chain_turn = host->cfg.chain_ps ? 1 : 0};
	int err;

	if (host->cfg.model.chain_ready_ps)
		cfg.chain_clock = &host->chains.clock;

	if (!host->users) {
		err = nic_create(&host->env, &cfg, &host->nic_host.nic);
		if (err)
			return err;
	}
	host->users++;
	*out = &host->nic_host;
	return 0;
}

uint64_t sim_host_guid(unsigned index)
{
	return 0x0200000000000000ull + index + 1;
}

int sim_host_create(struct sim *sim, struct sim_net *net, unsigned index,
		    const struct sim_host_config *cfg, struct sim_host **out)
{
	struct sim_host *host = calloc(1, sizeof(*host));
	uint32_t number = index + 1;
	int err;

	if (!host)
		return -ENOMEM;
	host->env.ops = &env_ops;
	host->nic_host.ops = &nic_host_ops;
	host->nic_host.env = &host->env;
	lock_init(&host->nic_host.lock);
	host->sim = sim;
	host->net = net;
	host->cfg = *cfg;
	host->index = index;
	host->chains = (struct sim_chain_clock){.sim = sim,
						.host = host,
						.model = &host->cfg.model,
						.resume = resume_chain};
	sim_chain_clock_init(&host->chains);
	host->addr = (struct env_addr){
		.ip = {[10] = 0xff,
		       0xff,
		       10,
		       0,
		       (uint8_t)(number >> 8),
		       (uint8_t)number},
		.mac = {2, 0, 0, 0, (uint8_t)(number >> 8), (uint8_t)number}};
	sim_rand_init(&host->rand, sim_seed(sim), 2000 + index);
	sim_event_init(&host->settle, on_settle);
	host->settle.idle = true; /* each poll looks, too */
	sim_event_init(&host->tick, on_tick);
	sim_event_init(&host->flush, on_flush);
	err = sim_port_attach(net, &host->addr, &cfg->link, &port_ops, host,
			      &host->port);
	if (err) {
		free(host);
		return err;
	}
	*out = host;
	return 0;
}

void sim_host_destroy(struct sim_host *host)
{
	ASSERT(!host->users && !host->paths);
	free(host);
}

unsigned sim_host_index(const struct sim_host *host)
{
	return host->index;
}

struct env *sim_host_env(struct sim_host *host)
{
	return &host->env;
}

struct sim_port *sim_host_port(struct sim_host *host)
{
	return host->port;
}

void sim_host_set_other(struct sim_host *host,
			void (*fn)(void *ctx, const uint8_t *frame,
				   size_t len_bytes),
			void *ctx)
{
	host->other = fn;
	host->other_ctx = ctx;
}

void sim_host_flush(struct sim_host *host)
{
	sim_schedule_in(host->sim, &host->flush, 0);
}

struct nic *sim_host_nic(struct sim_host *host)
{
	return host->nic_host.nic;
}

uint64_t sim_host_counter(const struct sim_host *host, enum nic_counter c)
{
	return host->counters[c];
}

void sim_host_crash(struct sim_host *host)
{
	host->crashed = true;
	sim_port_set_down(host->port, true);
	sim_cancel(host->sim, &host->tick);
	sim_cancel(host->sim, &host->flush);
}

void sim_host_path_down(struct sim_host *host, const struct sim_host *peer)
{
	struct env_path *p = host->paths;

	while (p && (p->down || memcmp(p->ip, peer->addr.ip, 16) != 0))
		p = p->next;
	if (!p || !host->nic_host.nic || host->crashed)
		return;
	/* Later paths to the same address are new ones: it may come back. */
	p->down = true;
	lock_take(&host->nic_host.lock);
	nic_path_down(host->nic_host.nic, p);
	lock_drop(&host->nic_host.lock);
	touch(host);
	news(host);
}
