/* SPDX-License-Identifier: Apache-2.0 */
/* Which works run in which places, how large, on which rack, and which of them
 * are counted. */
#include "run_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "offload_bench.h"

enum {
	COUNTED_PART = 10, /* of the touches: counting needs no more */
};
#define MIB (1ull << 20)

static struct run_group *add_group(struct run_plan *p, enum run_work_kind kind,
				   uint64_t mib, uint64_t local_mib,
				   uint64_t count)
{
	struct run_group *g = &p->group[p->groups++];

	*g = (struct run_group){.work = {kind, mib * MIB, count, 0},
				.local_bytes = local_mib * MIB};
	return g;
}

static void plan_cable(struct run_plan *p, bool quick)
{
	struct run_group *g = add_group(p, RUN_WORK_TOUCH, quick ? 32 : 512,
					quick ? 8 : 128, quick ? 2000 : 300000);

	run_group_add(g, RUN_PLACE_CABLE, 0);
	run_group_add(g, RUN_PLACE_ZRAM, 0);
	run_group_add(g, RUN_PLACE_DIRECT, 0);
	run_group_add(g, RUN_PLACE_CHAIN, 0);
	run_group_add(g, RUN_PLACE_DISK, 10);
	for (unsigned k = RUN_WORK_FLOOR; k <= RUN_WORK_FLOOR_SIGNAL; k++) {
		g = add_group(p, (enum run_work_kind)k, quick ? 8 : 128,
			      quick ? 8 : 128, quick ? 2048 : 200000);
		run_group_add(g, RUN_PLACE_LOCAL, 0);
	}
	g = add_group(p, RUN_WORK_SORT, quick ? 8 : 1024, quick ? 4 : 512, 0);
	/* Half a minute each: long enough to be its own median. */
	g->rounds_max = quick ? 0 : 1;
	run_group_add(g, RUN_PLACE_CHAIN, 0);
	run_group_add(g, RUN_PLACE_CABLE, 0);
	run_group_add(g, RUN_PLACE_LOCAL, 0);
	run_group_add(g, RUN_PLACE_DIRECT, 0);
	for (unsigned k = RUN_WORK_SORT; k <= RUN_WORK_OLTP; k++) {
		uint64_t count = k == RUN_WORK_ETC ? (quick ? 1000 : 20000)
						   : (quick ? 300 : 1500);
		/* Streams need much to take a second, and jumps little. */
		uint64_t mib = quick			? 4
			       : k <= RUN_WORK_PAGERANK ? 96
			       : k == RUN_WORK_BETWEEN	? 12
							: 24;

		g = add_group(p, (enum run_work_kind)k, mib, mib / 2, count);
		/* Of a second each: single runs swing by a sixth. */
		g->rounds_times = quick ? 1 : 3;
		run_group_add(g, RUN_PLACE_CHAIN, 0);
		run_group_add(g, RUN_PLACE_CABLE, 0);
	}
}

static void plan_udp(struct run_plan *p, bool quick)
{
	struct run_group *g = add_group(p, RUN_WORK_TOUCH, quick ? 32 : 512,
					quick ? 8 : 128, quick ? 500 : 30000);

	run_group_add(g, RUN_PLACE_UDP, 0);
	g = add_group(p, RUN_WORK_SORT, quick ? 4 : 128, quick ? 2 : 64, 0);
	run_group_add(g, RUN_PLACE_UDP, 0);
	run_group_add(g, RUN_PLACE_LOCAL, 0);
}

void run_plan_init(struct run_plan *p, bool is_udp, bool quick)
{
	static const enum run_place counted[] = {RUN_PLACE_CABLE,
						 RUN_PLACE_CHAIN};

	STATIC_ASSERT(ARRAY_LEN(counted) == RUN_COUNTS_MAX, "counted places");
	*p = (struct run_plan){.is_udp = is_udp, .quick = quick};
	if (is_udp) {
		plan_udp(p, quick);
		return;
	}
	plan_cable(p, quick);
	for (size_t i = 0; i < ARRAY_LEN(counted); i++)
		p->count[p->counts++].place = counted[i];
}

void run_plan_keep_touches(struct run_plan *p)
{
	p->groups = RUN_GROUP_SORT;
	p->counts = 0;
}

static void count_touches(struct run_plan *p)
{
	const struct run_group *g = &p->group[RUN_GROUP_TOUCH];
	struct run_work w = g->work;

	if (!p->quick)
		w.count /= COUNTED_PART;
	w.seed = 1;
	for (unsigned i = 0; i < p->counts; i++) {
		struct run_plan_count *c = &p->count[i];

		c->is_there = run_count(&w, c->place, g->local_bytes,
					&c->counted) == 0;
	}
}

int run_plan_run(struct bench *b, struct run_plan *p, unsigned rounds)
{
	struct offload_rack *rack;
	int err;

	setenv("AQUIFER_NIC_PORT", p->is_udp ? "udp" : "auto", 1);
	if (p->is_udp)
		setenv("AQUIFER_NIC_ADDRESS", "127.0.93.2", 1);
	err = offload_rack_start((p->quick ? 256 : 2560) * MIB, &rack);
	if (err)
		return err;
	if (p->is_udp)
		setenv("AQUIFER_NIC_ADDRESS", "127.0.93.1", 1);
	for (unsigned i = 0; i < p->groups; i++) {
		bench_progress(b, "programs, %s, %s", p->is_udp ? "udp" : "shm",
			       run_work_name(p->group[i].work.kind));
		run_group_run(&p->group[i], rounds);
	}
	count_touches(p);
	offload_rack_stop(rack);
	unsetenv("AQUIFER_NIC_ADDRESS");
	unsetenv("AQUIFER_NIC_PORT");
	return 0;
}
