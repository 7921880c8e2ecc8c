/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of figure 2.9: threads compare and swap one word, as those do who
 * all want the same lock, with one request each on its way: as it is, replaced
 * in the switch, or moved to the shared connection as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rig/tor_sword.h"
#include "sim/fiber.h"
#include "vfig_priv.h"

enum {
	BUFFER = 64,
	OWN_QPN = 0x800001,
	SHARED_PSN = 77,
	REGION = 4096,
};

struct cas;

struct cas_thread {
	struct cas *f;
	struct rig_host *host;
	struct rig_pair pair;
	struct ibv_cq *cq;
	struct rig_region *buffer;
	uint64_t done;
};

struct cas {
	const struct vfig_config *cfg;
	struct vfig_result *res;
	struct rig_stage *stage;
	struct rig_host *node;
	struct rig_host *hosts[VFIG_HOSTS];
	struct rig_region *region;
	struct rig_tor *tor;
	struct ibv_qp *shared;
	struct cas_thread *thread;
	struct hist latency;
	bool is_measuring;
};

static bool is_replaced(const struct cas *f)
{
	return f->cfg->system != VFIG_CAS;
}

/* ---- the control plane -------------------------------------------------- */

static const char *ip_of(struct rig_host *h, char text[INET_ADDRSTRLEN])
{
	const uint8_t *ip = sim_port_addr(sim_host_port(h->sim_host))->ip;

	(void)inet_ntop(AF_INET, ip + 12, text, INET_ADDRSTRLEN);
	return text;
}

static int make_switch(struct cas *f)
{
	struct rig_tor_config cfg = {.programs = {"swordbox"},
				     .program_count = is_replaced(f)};
	char text[256], ip[INET_ADDRSTRLEN], own[INET_ADDRSTRLEN];
	uint8_t own_ip[16];
	int err = rig_tor_create(rig_stage_net(f->stage), &cfg, &f->tor);

	if (err || !is_replaced(f))
		return err;
	memcpy(own_ip, sim_port_addr(sim_host_port(f->node->sim_host))->ip, 16);
	own_ip[15] = 250;
	(void)inet_ntop(AF_INET, own_ip + 12, own, sizeof(own));
	err = rig_sword_shared(f->node, own_ip, OWN_QPN, SHARED_PSN,
			       &f->shared);
	if (err)
		return err;
	snprintf(text, sizeof(text),
		 "swordbox server ip=%s own_ip=%s qpn=%u own_qpn=%u psn=%u",
		 ip_of(f->node, ip), own, f->shared->qp_num, OWN_QPN,
		 SHARED_PSN);
	err = tor_control(rig_tor_get(f->tor), text, NULL);
	snprintf(text, sizeof(text),
		 "swordbox region server=%s rkey=%u va=%" PRIu64 " len=%u", ip,
		 f->region->rkey, f->region->addr, REGION);
	if (!err)
		err = tor_control(rig_tor_get(f->tor), text, NULL);
	return err ? err
		   : tor_control(rig_tor_get(f->tor), "swordbox ready", NULL);
}

static int declare(struct cas *f, const struct rig_pair *pair)
{
	char text[256], ip[INET_ADDRSTRLEN], client[INET_ADDRSTRLEN];

	if (!is_replaced(f))
		return 0;
	snprintf(text, sizeof(text),
		 "swordbox conn server=%s client=%s client_qpn=%u "
		 "server_qpn=%u psn=%u%s",
		 ip_of(f->node, ip), ip_of(pair->near, client),
		 pair->near_qp->qp_num, pair->far_qp->qp_num, pair->near_psn,
		 f->cfg->system == VFIG_CAS_MOVED ? " moved=1" : "");
	return tor_control(rig_tor_get(f->tor), text, NULL);
}

/* ---- threads ------------------------------------------------------------ */

/* Takes the lock and gives it back, by turns, whether it has it or not. */
static int compare_and_swap(struct cas_thread *t, uint64_t turn)
{
	struct ibv_sge sge = {.addr = (uintptr_t)t->buffer->mem,
			      .length = 8,
			      .lkey = t->buffer->mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	int n;

	wr.wr.atomic.remote_addr = t->f->region->addr;
	wr.wr.atomic.rkey = t->f->region->rkey;
	wr.wr.atomic.compare_add = turn & 1;
	wr.wr.atomic.swap = ~turn & 1;
	if (ibv_post_send(t->pair.near_qp, &wr, &bad))
		return -EIO;
	while ((n = ibv_poll_cq(t->cq, 1, &wc)) == 0)
		client_clock_relax(&t->host->clock);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}

static void thread_main(void *arg)
{
	struct cas_thread *t = arg;
	struct sim *sim = rig_stage_sim(t->f->stage);

	for (uint64_t turn = 0;; turn++) {
		uint64_t start = sim_now_ns(sim);

		if (compare_and_swap(t, turn)) {
			t->f->res->errors++;
			return;
		}
		if (!t->f->is_measuring)
			continue;
		t->done++;
		hist_record(&t->f->latency, sim_now_ns(sim) - start);
	}
}

static int start_thread(struct cas *f, unsigned i)
{
	struct cas_thread *t = &f->thread[i];
	struct rig_pair_options o = {.send_depth = 4};
	int err;

	t->f = f;
	t->host = f->hosts[i % VFIG_HOSTS];
	t->cq = rig_cq_create(t->host, 16);
	if (!t->cq)
		return -ENOMEM;
	o.cq = t->cq;
	err = rig_region_create(t->host, BUFFER, false, &t->buffer);
	if (!err)
		err = rig_pair_open(t->host, f->node, &o, &t->pair);
	if (!err)
		err = declare(f, &t->pair);
	return err ? err : rig_host_spawn(t->host, "thread", thread_main, t);
}

/* ---- all of it ---------------------------------------------------------- */

static void measure(void *arg)
{
	struct cas *f = arg;
	struct sim *sim = rig_stage_sim(f->stage);
	struct sim_port *port = sim_host_port(f->node->sim_host);
	uint64_t before;

	sim_fiber_sleep_ps(sim, f->cfg->warm_ps);
	before = sim_port_bytes(port);
	f->is_measuring = true;
	sim_fiber_sleep_ps(sim, f->cfg->span_ps);
	f->is_measuring = false;
	for (unsigned i = 0; i < f->cfg->threads; i++)
		f->res->done += f->thread[i].done;
	f->res->mops = (double)f->res->done * 1e6 / (double)f->cfg->span_ps;
	f->res->success = 1;
	if (f->res->done)
		f->res->bytes = (double)(sim_port_bytes(port) - before) /
				(double)f->res->done;
	f->res->write_p50_us =
		(double)hist_percentile(&f->latency, HIST_MEDIAN) / 1e3;
	f->res->write_p99_us =
		(double)hist_percentile(&f->latency, HIST_P99) / 1e3;
	sim_stop(sim);
}

static int play(struct cas *f)
{
	struct rig_stage_config sc = {.seed = f->cfg->seed, .hardware = true};
	int err = rig_stage_create(&sc, &f->stage);

	if (!err)
		err = rig_host_add(f->stage, "node", &f->node);
	if (!err)
		err = rig_region_create(f->node, REGION, f->cfg->in_device,
					&f->region);
	for (unsigned i = 0; !err && i < VFIG_HOSTS; i++)
		err = rig_host_add(f->stage, "machine", &f->hosts[i]);
	if (!err)
		err = make_switch(f);
	for (unsigned i = 0; !err && i < f->cfg->threads; i++)
		err = start_thread(f, i);
	if (!err)
		err = sim_fiber_spawn(rig_stage_sim(f->stage), "measure",
				      measure, f);
	if (!err)
		(void)sim_run_until(rig_stage_sim(f->stage), SIM_S);
	return err;
}

int vfig_cas_run(const struct vfig_config *cfg, struct vfig_result *res)
{
	struct cas f = {.cfg = cfg, .res = res};
	int err;

	hist_init(&f.latency);
	f.thread = calloc(cfg->threads, sizeof(*f.thread));
	err = f.thread ? play(&f) : -ENOMEM;
	if (f.stage)
		sim_fiber_kill_all(rig_stage_sim(f.stage));
	for (unsigned i = 0; f.thread && i < cfg->threads; i++) {
		if (f.thread[i].pair.near_qp)
			rig_pair_close(&f.thread[i].pair);
		if (f.thread[i].cq)
			(void)ibv_destroy_cq(f.thread[i].cq);
	}
	if (f.shared)
		(void)ibv_destroy_qp(f.shared);
	rig_tor_destroy(f.tor);
	rig_stage_destroy(f.stage);
	free(f.thread);
	return err;
}
