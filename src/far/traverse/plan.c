/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a walk runs: on the node, if it mostly waits for memory there
 * (walk/rule.h). What this process has mapped it reads as quickly as the node
 * does.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "traverse_priv.h"
#include "walk/rule.h"

double plan_load_ns(const uint32_t load_ns[TRAVERSE_LOADS], uint32_t bytes)
{
	uint32_t size = 64;
	unsigned i = 0;

	while (i + 1 < TRAVERSE_LOADS && bytes > size * 4) {
		size *= 4;
		i++;
	}
	if (bytes <= 64 || i + 1 == TRAVERSE_LOADS)
		return load_ns[i];
	return load_ns[i] + ((double)load_ns[i + 1] - load_ns[i]) *
				    (bytes - size) / (3.0 * size);
}

static int choose(struct aq_walk_plan *out, uint32_t where, const char *why)
{
	out->where = where;
	memcpy(out->why, why, strlen(why) + 1);
	return 0;
}

uint32_t plan_cross(const struct plan_facts *f)
{
	if (f->pieces < 2)
		return 0;
	if ((f->stores && !PLANTED(walk_forward_store)) || f->has_window ||
	    f->flags & AQ_WALK_CROSS_BOUNCE)
		return AQ_WALK_CROSS_BOUNCE;
	return f->has_switch || f->flags & AQ_WALK_CROSS_SWITCH
		       ? AQ_WALK_CROSS_SWITCH
		       : AQ_WALK_CROSS_BOUNCE;
}

int plan_decide(const struct plan_facts *f, struct aq_walk_plan *out)
{
	out->cross = plan_cross(f);
	out->eta = WALK_ETA;
	out->compute_ns = f->longest * (double)f->node.step_ps / 1000;
	out->load_ns = plan_load_ns(f->node.load_ns, f->load_bytes);
	out->iterations = f->node.iterations;
	if (f->stores && f->flags & AQ_WALK_HERE)
		return error_set(-EOPNOTSUPP,
				 "a walk that stores runs on the memory node "
				 "only");
	if (f->flags & AQ_WALK_HERE)
		return choose(out, AQ_WALK_HERE, "it was told to run here");
	if (!f->node.has_walks && (f->stores || f->flags & AQ_WALK_THERE))
		return error_set(-EOPNOTSUPP,
				 "the memory node executes no walks");
	if (f->flags & AQ_WALK_THERE)
		return choose(out, AQ_WALK_THERE,
			      "it was told to run on the memory node");
	if (f->stores)
		return choose(out, AQ_WALK_THERE,
			      "it stores, which is done once and in one place");
	if (f->is_mapped)
		return choose(out, AQ_WALK_HERE,
			      "the memory is mapped into this process");
	if (!f->node.has_walks)
		return choose(out, AQ_WALK_HERE,
			      "the memory node executes no walks");
	if (f->node.step_ps &&
	    !walk_rule_offloads(out->compute_ns, out->load_ns))
		return choose(out, AQ_WALK_HERE,
			      "it computes too much for what it loads");
	return choose(out, AQ_WALK_THERE, "it mostly waits for memory");
}
