/* SPDX-License-Identifier: Apache-2.0 */
/* Two hosts, one queue pair, one READ, in small steps of time. */
#include "read_alone.h"

#include <errno.h>
#include <string.h>

#include "client/verbs_api.h"
#include "rig/stage.h"

enum {
	BYTES_MAX = 4096,
	QUEUE_FRAMES = 64,
	STEP_PS = 10, /* all latencies here are multiples of it */
};

#define LIMIT_PS (20 * SIM_US) /* far below the NIC's timer */

/* One end. */
struct side {
	struct rig_host *host;
	struct rig_region *region;
};

static int side_open(struct rig_stage *stage, struct side *s)
{
	int err = rig_host_add(stage, "host", &s->host);

	return err ? err
		   : rig_region_create(s->host, BYTES_MAX, false, &s->region);
}

static int read_once(struct sim *sim, const struct rig_pair *pair,
		     const struct side *side, uint32_t bytes, uint64_t *out)
{
	const struct rig_region *to = side[0].region;
	const struct rig_region *from = side[1].region;
	struct ibv_sge sge = {(uintptr_t)to->mem, bytes, to->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = from->addr,
					     .rkey = from->rkey}},
			   *bad;
	uint64_t start_ps = sim_now_ps(sim);
	struct ibv_wc wc;
	int n;

	memset(from->mem, 0xa5, BYTES_MAX);
	if (ibv_post_send(pair->near_qp, &wr, &bad))
		return -EREMOTEIO;
	while ((n = ibv_poll_cq(side[0].host->cq, 1, &wc)) == 0) {
		if (sim_now_ps(sim) - start_ps > LIMIT_PS)
			return -EREMOTEIO;
		sim_run_until(sim, sim_now_ps(sim) + STEP_PS);
	}
	if (n != 1 || wc.status || memcmp(to->mem, from->mem, bytes) != 0)
		return -EREMOTEIO;
	*out = sim_now_ps(sim) - start_ps;
	return 0;
}

int sim_read_alone_ps(const struct sim_fabric_choice *fabric, uint32_t bytes,
		      uint64_t *out)
{
	struct rig_stage_config cfg = {.seed = 1, .fabric = fabric};
	struct rig_pair_options o = {.send_depth = 1};
	struct rig_pair pair = {0};
	struct rig_stage *stage;
	struct side side[2] = {0};
	int err;

	if (!bytes || bytes > BYTES_MAX)
		return -EINVAL;
	if (fabric)
		cfg.link = fabric->link;
	cfg.link.queue_frames = QUEUE_FRAMES;
	err = rig_stage_create(&cfg, &stage);
	if (err)
		return err;
	if (fabric)
		sim_net_set_switch_ps(rig_stage_net(stage), fabric->switch_ps);
	err = side_open(stage, &side[0]);
	if (!err)
		err = side_open(stage, &side[1]);
	if (!err)
		err = rig_pair_open(side[0].host, side[1].host, &o, &pair);
	if (!err)
		err = read_once(rig_stage_sim(stage), &pair, side, bytes, out);
	rig_pair_close(&pair);
	rig_stage_destroy(stage);
	return err;
}
