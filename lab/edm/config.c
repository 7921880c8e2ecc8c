/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults, names and checks of a run's configuration. */
#include "edm_config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "edm_constants.h"
#include "edm_sizes.h"

void edm_config_init(struct edm_config *c)
{
	*c = (struct edm_config){
		.nodes = 144,
		.gbps = EDM_LINK_GBPS,
		.chunk_bytes = EDM_CHUNK_PAPER,
		.active_max = 3,
		.channels = 1,
		.charge_control = true,
		.pim_iterations = 8,
		.pim_iteration_ps = EDM_PIM_ITERATION_PS,
		.read_retries = 3,
		.cxl_credits = 128,
		.fixed_bytes = 64,
		.load = 0.8,
		.write_ppm = 1000000,
		.messages = 100000,
		.warmup_ppm = 200000,
		.seed = 1,
	};
}

void edm_config_best(struct edm_config *c)
{
	c->nest = true;
	/* Of one chunk each: there is nothing to reserve a port for. */
	if (edm_sizes_max(c) <= c->chunk_bytes)
		return;
	c->discipline = EDM_RESERVE;
	c->policy = EDM_PAIR;
	c->chunk_bytes = 512;
}

static int bad(const char *option, const char *why)
{
	return error_set(-EINVAL, "--%s: %s", option, why);
}

static int check_fabric(const struct edm_config *c)
{
	if (c->nodes < 2 || c->nodes > EDM_NODES_MAX)
		return bad("nodes", "must be in 2..1024");
	if (c->gbps < 10 || c->gbps > 800 || !edm_block_ps(c->gbps))
		return bad("gbps", "must be 10, 25, 40, 50, 100, 200, 400 or "
				   "800");
	if (c->chunk_bytes < 16 || c->chunk_bytes > 65536)
		return bad("chunk", "must be in 16..65536 bytes");
	if (c->active_max < 1 || c->active_max > 255)
		return bad("active", "must be in 1..255");
	if (c->channels < 1 || c->channels > 32)
		return bad("channels", "must be in 1..32");
	if (c->batch_bytes > c->chunk_bytes)
		return bad("batch", "a batch must fit into one chunk");
	if (!c->pim_iterations || c->pim_iterations > 64)
		return bad("pim-iterations", "must be in 1..64");
	if (!c->pim_iteration_ps)
		return bad("pim-ns", "must not be 0");
	if (c->ip_load_ppm > 1000000)
		return bad("ip-load", "must be in 0..1");
	if (c->loss_ppm > 500000)
		return bad("loss", "must be in 0..0.5");
	if (c->cxl_credits < 8)
		return bad("cxl-credits",
			   "must be at least 8 flits, one packet");
	if (c->read_retries > 200)
		return bad("retries", "must be in 0..200");
	if (c->fail_port >= c->nodes)
		return bad("fail-port", "is not a node");
	if (c->loss_ppm && !c->timer_ps)
		return bad("loss", "needs --timer-ns, or runs would not end");
	return 0;
}

/* What a rival does not have must not be asked of it and then ignored. */
static int check_edm_only(const struct edm_config *c)
{
	const struct {
		const char *option;
		bool set;
	} only[] = {
		{"loss", c->loss_ppm != 0},
		{"timer-ns", c->timer_ps != 0},
		{"mirror", c->mirror},
		{"fail-switch-ns", c->fail_switch_ps != 0},
		{"fail-link-ns", c->fail_link_ps != 0},
		{"fail-node-ns", c->fail_node_ps != 0},
		{"ip-load", c->ip_load_ppm != 0},
		{"age-cap-ns", c->age_cap_ps != 0},
		{"batch", c->batch_bytes != 0},
		{"nest", c->nest},
		{"timed", c->timed},
	};

	for (size_t i = 0; c->proto != EDM_PROTO_EDM && i < ARRAY_LEN(only);
	     i++)
		if (only[i].set)
			return bad(only[i].option, "only EDM has this");
	if (c->ip_policy && !c->ip_load_ppm)
		return bad("ip-policy", "needs --ip-load");
	if (c->mirror_skew_ps && !c->mirror)
		return bad("mirror-skew-ns", "needs --mirror");
	return 0;
}

int edm_config_check(const struct edm_config *c)
{
	int rc = check_fabric(c);

	if (!rc)
		rc = check_edm_only(c);
	if (rc)
		return rc;
	if (c->trace)
		return 0;
	if (!isfinite(c->load) || c->load <= 0 || c->load > 2)
		return bad("load", "must be above 0 and at most 2");
	if (c->fixed_bytes < 1 || c->fixed_bytes > EDM_MESSAGE_MAX)
		return bad("size", "must be in 1 byte..16 MB");
	if (c->write_ppm > 1000000 || c->rmw_ppm > 1000000 ||
	    c->write_ppm + c->rmw_ppm > 1000000)
		return bad("writes", "fractions must be in 0..1 together");
	if (c->messages < 1 || c->messages > UINT64_C(1) << 32)
		return bad("messages", "must be in 1..2^32");
	if (c->warmup_ppm >= 1000000)
		return bad("warmup", "must be below 1");
	if (c->pattern == EDM_PATTERN_SPLIT && c->nodes % 2)
		return bad("pattern", "split needs an even number of nodes");
	return 0;
}

const char *edm_discipline_name(enum edm_discipline d)
{
	static const char *const name[] = {"async", "slot", "reserve", "pim"};

	return name[d];
}

const char *edm_policy_name(enum edm_policy p)
{
	static const char *const name[] = {"fcfs", "srpt", "pair"};

	return name[p];
}

const char *edm_sizes_name(enum edm_sizes s)
{
	static const char *const name[] = {"fixed",    "hadoop",   "spark",
					   "sparksql", "graphlab", "memcached",
					   "ycsb"};

	return name[s];
}

uint32_t edm_request_blocks(enum edm_md md, enum edm_op op)
{
	switch (op) {
	case EDM_READ:
		return edm_blocks(md, EDM_ADDRESS_BYTES);
	case EDM_RMW:
		return edm_blocks(md, EDM_RMW_BYTES);
	case EDM_WRITE:
		break;
	}
	return 1;
}

uint32_t edm_data_blocks(const struct edm_config *c, enum edm_op op,
			 uint32_t bytes, uint32_t *chunks)
{
	uint32_t full = (bytes - 1) / c->chunk_bytes; /* all but the last */
	uint32_t rest = bytes - full * c->chunk_bytes;
	uint32_t extra = op == EDM_WRITE ? edm_first_extra(c->md) : 0;

	*chunks = full + 1;
	if (!full)
		return edm_blocks(c->md, rest + extra);
	return edm_blocks(c->md, c->chunk_bytes + extra) +
	       (full - 1) * edm_blocks(c->md, c->chunk_bytes) +
	       edm_blocks(c->md, rest);
}

uint32_t edm_slot_blocks(const struct edm_config *c)
{
	uint32_t bytes = u32_min(c->chunk_bytes, edm_sizes_max(c));

	return edm_blocks(c->md, bytes + EDM_ADDRESS_BYTES) +
	       (c->charge_control ? 1 : 0);
}

void edm_config_sched(const struct edm_config *c, struct edm_sched_config *s)
{
	*s = (struct edm_sched_config){
		.ports = c->nodes,
		/* A pair's writes and its reads the other way round lead to
		 * data in the same direction, and need no common order. */
		.lanes = 2 * c->channels,
		.active_max = c->active_max,
		.chunk_bytes = c->discipline == EDM_SLOT
				       ? u32_max(u32_min(c->chunk_bytes,
							 edm_sizes_max(c)),
						 8)
				       : c->chunk_bytes,
		.block_ps = edm_block_ps(c->gbps),
		.md = c->md,
		.discipline = c->discipline,
		.policy = c->policy,
		.charge_control = c->charge_control,
		.slot_blocks = edm_slot_blocks(c),
		.match_ps = c->timed ? edm_sched_matching_ps(c->nodes,
							     EDM_SCHED_MHZ)
				     : 0,
		.pim_iterations = c->timed ? edm_sched_iterations(c->nodes)
					   : c->pim_iterations,
		.pim_iteration_ps =
			c->timed ? EDM_PIM_ITERATION_PS : c->pim_iteration_ps,
		.age_cap_ps = c->age_cap_ps,
	};
}
