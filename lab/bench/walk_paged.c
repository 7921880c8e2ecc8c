/* SPDX-License-Identifier: Apache-2.0 */
/* Whole applications by walks, beside the same programs on far pages with
 * little local memory, in turns. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "offload_bench.h"
#include "place.h"
#include "run_bench.h"
#include "walk_app.h"

enum {
	POOL_MORE = 64 << 20,
	FILL_BYTES = 1 << 20,
	ROUNDS_MAX = 3,	       /* a program on far pages takes seconds */
	WAYS = 4,	       /* at most */
	LOCAL_LEAST = 1 << 20, /* `aquifer run` takes no less */
};

/* One application, by one way. */
struct way {
	struct subject_desc desc;
	enum run_work_kind work;
	unsigned local_permyriad; /* of its memory; 0: it has none */
	unsigned ops, ops_quick;
};

#define WAY(name_, what_, work_, local_, ops_, quick_)               \
	{                                                            \
		.desc = {.name = name_, .what = what_},              \
		.work = RUN_WORK_##work_, .local_permyriad = local_, \
		.ops = ops_, .ops_quick = quick_                     \
	}

struct app {
	enum walk_app_kind kind;
	const char *group;
	struct way way[WAYS]; /* up to one without a name */
};

static const struct app apps[] = {
	{WALK_APP_WEB,
	 "web",
	 {WAY("web_walk", "a walk over 48 nodes, then a READ of 8 KiB",
	      WEB_WALK, 0, 100000, 1600),
	  WAY("web_paged6", "the same in C, 6.25 % of its pages local", WEB,
	      625, 1600, 160),
	  WAY("web_paged25", "25 % local", WEB, 2500, 1600, 160)}},
	{WALK_APP_TSV,
	 "tsv",
	 {WAY("tsv_walk", "a reduction over 38 to 227 leaves by a walk",
	      TSV_WALK, 0, 50000, 800),
	  WAY("tsv_paged6", "the same in C, 6.25 % of its pages local", TSV,
	      625, 1600, 160),
	  WAY("tsv_paged25", "25 % local", TSV, 2500, 1600, 160)}},
	{WALK_APP_RANGE,
	 "range",
	 {WAY("range_walk", "a scan of 16 rows of 248 bytes by a walk",
	      RANGE_WALK, 0, 50000, 800),
	  WAY("range_reads", "by a READ for each of its nodes", RANGE_READS, 0,
	      20000, 800),
	  WAY("range_paged6", "the same in C, 6.25 % of its pages local", RANGE,
	      625, 1600, 160),
	  WAY("range_paged25", "25 % local", RANGE, 2500, 1600, 160)}},
};

/* ---- the memory node's copy ---------------------------------------------- */

static int write_region(struct walk_app *a)
{
	struct aq_region *region;
	struct aq_rack *rack;
	int err = walk_app_map(a);

	if (!err)
		err = place_rack(&rack);
	if (!err)
		err = aq_region_create(rack, WALK_APP_REGION, a->bytes, NULL,
				       &region);
	for (uint64_t at = 0; at < a->bytes && !err; at += FILL_BYTES)
		err = aq_write(region, at, a->memory + at,
			       u64_min(FILL_BYTES, a->bytes - at));
	if (err)
		(void)fprintf(stderr, "bench walk: %s\n", aq_last_error());
	return err;
}

/* In a child, which takes its memory with it. */
static int prepare(struct walk_app *a)
{
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(write_region(a) ? 1 : 0);
	return pid < 0 ? -errno : place_wait(pid);
}

/* ---- rounds -------------------------------------------------------------- */

static void run_way(const struct bench *b, const struct way *way,
		    const struct walk_app *a, uint64_t megabytes,
		    unsigned round, struct conduct_track *t)
{
	const struct run_work w = {.kind = way->work,
				   .bytes = megabytes << 20,
				   .count =
					   b->quick ? way->ops_quick : way->ops,
				   .seed = 1 + round};
	const char *why;
	uint64_t ns;

	t->desc = &way->desc;
	if (t->why[0])
		return;
	if (run_work_spawn(&w,
			   way->local_permyriad ? RUN_PLACE_CABLE
						: RUN_PLACE_LOCAL,
			   u64_max(LOCAL_LEAST,
				   a->bytes / 10000 * way->local_permyriad),
			   &ns, &why) == 0)
		conduct_record(t, round, w.count, ns);
	else
		(void)snprintf(t->why, sizeof(t->why), "needs %s", why);
}

static int measure(struct bench *b, const struct app *app, uint64_t megabytes)
{
	static struct conduct_track track[WAYS];
	unsigned most = b->has_rounds ? CONDUCT_ROUNDS_MAX : ROUNDS_MAX;
	struct offload_rack *rack;
	unsigned ways = 0;
	struct walk_app a;
	int err = walk_app_init(&a, app->kind, megabytes);

	if (err)
		return bench_fail(b, err, "%s: --size %llu is too small",
				  app->group, (unsigned long long)megabytes);
	while (ways < WAYS && app->way[ways].desc.name)
		ways++;
	bench_progress(b, "%s", app->group);
	/* The region of walks, and the pages of a program. */
	err = offload_rack_start(2 * a.bytes + POOL_MORE, &rack);
	if (err)
		return bench_fail(b, err, "no rack: %s", strerror(-err));
	memset(track, 0, sizeof(track));
	err = prepare(&a);
	for (unsigned i = 0; i < u32_min(b->rounds, most) && !err; i++)
		for (unsigned k = 0; k < ways; k++)
			run_way(b, &app->way[k], &a, megabytes, i, &track[k]);
	offload_rack_stop(rack);
	if (err)
		return bench_fail(b, err, "the region cannot be written");
	bench_report_tracks(b, app->group, track, ways, NULL);
	return 0;
}

int walk_bench_paged(struct bench *b, uint64_t megabytes)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(apps) && !err; i++)
		if (bench_wants(b, apps[i].group))
			err = measure(b, &apps[i], megabytes);
	return err;
}
