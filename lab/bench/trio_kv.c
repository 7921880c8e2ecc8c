/* SPDX-License-Identifier: Apache-2.0 */
/* A table in a memory node of its own, worked on by one client: through the
 * switch, or over a cable between the two. */
#include <aquifer/kv.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv_bench.h"
#include "machine.h"
#include "stats.h"
#include "ticks.h"
#include "trio.h"

enum {
	RECORDS = 4096,
	DRAWS = 1 << 14,
	DEPTH_MAX = 16,
	PUT_EVERY = 16, /* about YCSB-B */
	NODE_TRIES = 5000,
	DIR_MAX = 64,
};

struct state {
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *c;
	uint32_t *keys;
	uint64_t at;
};

/* Each trio has a directory of its own. For one with cables it is the runtime
 * directory, so that its client finds its node. Those at the switch are in the
 * switch's, where any node serves any client: they take turns. */
static void dir_of(const struct trio *t, char dir[DIR_MAX])
{
	snprintf(dir, DIR_MAX, "/tmp/aquifer-%s-%s-%u", t->rack, t->ops->name,
		 t->depth);
}

static void enter(const struct trio *t)
{
	char dir[DIR_MAX];

	dir_of(t, dir);
	(void)!mkdir(dir, 0700); /* the other process may have made it */
	if (!t->ops->uses_switch)
		(void)setenv("AQUIFER_RUNDIR", dir, 1);
	(void)setenv("AQUIFER_STATEDIR", dir, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
}

/* ---- the node ------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *ftw)
{
	(void)!remove(path); /* what will not go stays in /tmp */
	return 0;
}

static int serve(struct trio *t)
{
	char dir[DIR_MAX], name[16];
	pid_t pid;

	enter(t);
	dir_of(t, dir);
	snprintf(name, sizeof(name), "m%u", t->depth);
	pid = fork();
	if (pid < 0)
		return trio_fail(t, -errno, "fork");
	if (pid == 0) {
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (fd >= 0) {
			/* It says that the switch's socket is elsewhere. */
			(void)dup2(fd, STDOUT_FILENO);
			(void)dup2(fd, STDERR_FILENO);
		}
		execl(machine_aquifer(), "aquifer", "memory", "--size", "32M",
		      "--name", name, (char *)NULL);
		_exit(127);
	}
	trio_ready(t);
	while (!trio_quits(t))
		trio_nap();
	kill(pid, SIGTERM);
	(void)waitpid(pid, NULL, 0);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* ---- the client ---------------------------------------------------------- */

static int load(struct state *s)
{
	char key[KV_BENCH_KEY_BYTES + 1];
	int err = 0;

	for (uint32_t i = 0; i < RECORDS && !err; i++) {
		kv_bench_key(i, key);
		err = aq_kv_put(s->c, key, KV_BENCH_KEY_BYTES, key,
				KV_BENCH_VALUE_BYTES, NULL);
	}
	return err;
}

/* The node starts beside us. */
static int open_rack(struct aq_rack **out)
{
	int err = -ENOENT;

	for (unsigned i = 0; err && i < NODE_TRIES; i++) {
		err = aq_rack_open(NULL, out);
		if (err)
			trio_nap();
	}
	return err;
}

static int setup(struct trio *t)
{
	const struct aq_kv_options o = {.capacity = 2 * RECORDS,
					.entry_bytes = 32,
					.extent_bytes = 1 << 20,
					.seed = 1};
	struct state *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;
	char table[16];

	enter(t);
	snprintf(table, sizeof(table), "bench%u", t->depth);
	t->state = s;
	if (!err)
		err = open_rack(&s->rack);
	if (!err)
		err = aq_kv_create(s->rack, table, &o, &s->kv);
	if (!err)
		err = aq_kv_client_open(s->kv, NULL, &s->c);
	if (!err)
		err = load(s);
	if (err) {
		(void)trio_fail(t, err, "a table");
		snprintf(t->page->why, sizeof(t->page->why), "%s",
			 aq_last_error());
		return err;
	}
	s->keys = kv_bench_zipf(RECORDS, DRAWS, 1);
	return s->keys ? 0 : trio_fail(t, -ENOMEM, "keys");
}

/* ---- one at a time ------------------------------------------------------- */

static int step(struct state *s)
{
	char key[KV_BENCH_KEY_BYTES + 1], value[KV_BENCH_VALUE_BYTES];
	size_t len;

	kv_bench_key(s->keys[s->at % DRAWS], key);
	if (s->at++ % PUT_EVERY == PUT_EVERY - 1)
		return aq_kv_put(s->c, key, KV_BENCH_KEY_BYTES, key,
				 KV_BENCH_VALUE_BYTES, NULL);
	return aq_kv_get(s->c, key, KV_BENCH_KEY_BYTES, value, sizeof(value),
			 &len);
}

static int run_single(struct trio *t, uint64_t end_ns, uint64_t *ops)
{
	struct trio_page *p = t->page;
	struct state *s = t->state;
	uint32_t samples = 0;
	int err = 0;

	while (!err && bench_now_ns() < end_ns) {
		uint64_t t0 = bench_ticks();

		err = step(s);
		p->samples[samples++ % TRIO_SAMPLES] =
			(uint32_t)(bench_ticks() - t0);
	}
	*ops = samples;
	p->result.p50_ns =
		stats_quantile_u32(
			p->samples,
			samples < TRIO_SAMPLES ? samples : TRIO_SAMPLES, 0.5) /
		t->ticks_per_ns;
	return err;
}

/* ---- always so many reads under way -------------------------------------- */

struct slot {
	struct aq_kv_op op;
	char key[KV_BENCH_KEY_BYTES + 1];
	char value[KV_BENCH_VALUE_BYTES];
};

static int submit(struct state *s, struct slot *slot)
{
	kv_bench_key(s->keys[s->at++ % DRAWS], slot->key);
	slot->op = (struct aq_kv_op){.kind = AQ_KV_OP_GET,
				     .key = slot->key,
				     .key_len = KV_BENCH_KEY_BYTES,
				     .value = slot->value,
				     .value_len = KV_BENCH_VALUE_BYTES,
				     .user = slot};
	return aq_kv_submit(s->c, &slot->op);
}

static int run_pipeline(struct trio *t, uint64_t end_ns, uint64_t *ops)
{
	struct slot slots[DEPTH_MAX];
	struct aq_kv_op *done[DEPTH_MAX];
	struct state *s = t->state;
	unsigned under_way = 0;
	int err = 0, n = 0;

	*ops = 0;
	for (; !err && under_way < t->depth; under_way++)
		err = submit(s, &slots[under_way]);
	while (!err && under_way) {
		bool over = bench_now_ns() >= end_ns;

		n = aq_kv_poll(s->c, done, DEPTH_MAX, true);
		err = n < 0 ? n : 0;
		for (int i = 0; i < n && !err; i++) {
			err = done[i]->err;
			(*ops)++;
			if (over)
				under_way--;
			else if (!err)
				err = submit(s, done[i]->user);
		}
	}
	return err;
}

static int measure(struct trio *t, uint64_t window_ns, uint32_t depth,
		   struct trio_result *out)
{
	uint64_t start_ns = bench_now_ns(), end_ns = start_ns + window_ns;
	int err;

	out->p50_ns = 0;
	err = depth == 1 ? run_single(t, end_ns, &out->ops)
			 : run_pipeline(t, end_ns, &out->ops);
	if (err)
		return trio_fail(t, err, "an operation");
	out->elapsed_ns = bench_now_ns() - start_ns;
	return 0;
}

const struct trio_ops trio_kv_switch = {
	.name = "switch_kv",
	.what = "table reads through the switch; one at a time: some changes",
	.uses_switch = true,
	.serve = serve,
	.setup = setup,
	.measure = measure,
};

const struct trio_ops trio_kv_cable = {
	.name = "cable_kv",
	.what = "table reads over a cable; one at a time: some changes",
	.serve = serve,
	.setup = setup,
	.measure = measure,
};
