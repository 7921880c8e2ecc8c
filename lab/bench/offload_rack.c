/* SPDX-License-Identifier: Apache-2.0 */
/* The private rack of a run: a memory node and two engines, or they and two
 * switches, or two memory nodes at a switch, on the server's core, started and
 * ended with the commands that users have. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/complaint.h"
#include "base/counter.h"
#include "machine.h"
#include "offload_bench.h"
#include "place.h"
#include "probe.h"
#include "shield.h"
#include "subject.h"
#include "switchd/switchd.h"
#include "ticks.h"

enum {
	FILL_BYTES = 1 << 20,
};

enum rack_kind {
	RACK_PLAIN,
	RACK_ANYWHERE, /* the same, as users start it: on any core */
	RACK_ENGINES,  /* at a switch, and another one without a program */
	RACK_WALKS,    /* two memory nodes at a switch that carries walks on */
};

struct offload_rack {
	char base[64];
	char rundir[OFFLOAD_PATH_MAX];
	enum rack_kind kind;
	struct subject_world world;
};

static bool is_without_switch(enum rack_kind kind)
{
	return kind == RACK_PLAIN || kind == RACK_ANYWHERE;
}

/* ---- commands ----------------------------------------------------------- */

/*
 * A run that is ended from outside must not leave a rack behind. The measured
 * processes end with this one; the rack is told by its own command, which finds
 * it through the environment.
 */
static void on_signal(int sig)
{
	/* Async-signal-safe calls only. */
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open("/dev/null", O_WRONLY);

		if (fd >= 0)
			(void)dup2(fd, STDOUT_FILENO);
		execl(machine_aquifer(), "aquifer", "down", (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void watch_signals(void (*handler)(int))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = handler};

	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &sa, NULL);
}

/* Runs `aquifer ARG...` on the server's core, if the rack is there, quietly. 0
 * or -errno. */
static int command(const struct offload_rack *r, const char *a, const char *b)
{
	return place_wait(
		place_start_aquifer(r->kind == RACK_ANYWHERE ? 0 : PLACE_SERVER,
				    a, b, (char *)NULL));
}

static int write_ini(const struct offload_rack *r, uint64_t pool_bytes,
		     char *path, size_t path_bytes)
{
	FILE *f;

	snprintf(path, path_bytes, "%s/rack.ini", r->base);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	fprintf(f, "[memory m0]\nsize = %lluM\n",
		(unsigned long long)(pool_bytes >> 20) + 1);
	/* More sessions than ever at a time: one that is cut off in the middle
	 * must not stand in the way. */
	if (r->kind == RACK_WALKS)
		fprintf(f,
			"[memory m1]\nsize = %lluM\n"
			"[switch " OFFLOAD_SWITCH "]\nprograms = walk\n",
			(unsigned long long)(pool_bytes >> 20) + 1);
	if (r->kind == RACK_PLAIN)
		fprintf(f, "[engine e0]\n[engine e1]\ngather = off\n");
	if (r->kind == RACK_ENGINES)
		fprintf(f, "[switch " OFFLOAD_SWITCH "]\n"
			   "programs = cowbird:sessions=128\n"
			   "[switch " OFFLOAD_SWITCH_BARE "]\n"
			   "[engine e0]\nswitch = " OFFLOAD_SWITCH "\n"
			   "[engine e1]\nswitch = none\ngather = off\n");
	return fclose(f) == 0 ? 0 : -errno;
}

/* ---- what the conductor watches ----------------------------------------- */

static int add_counters(const char *path, void *ctx)
{
	struct counter_snapshot *snap;
	struct counter_view v;
	unsigned cursor = 0;
	double *out = ctx;

	/* A process that ends meanwhile has no part in the round. */
	if (counter_snapshot_read(path, &snap) < 0)
		return 0;
	while (counter_snapshot_next(snap, &cursor, &v)) {
		if (strcmp(v.name, "nic.tx_frames") == 0)
			out[0] += (double)v.value;
		else if (strcmp(v.name, "nic.tx_bytes") == 0)
			out[1] += (double)v.value;
	}
	counter_snapshot_free(snap);
	return 0;
}

static void read_counters(void *ctx, double out[])
{
	struct offload_rack *r = ctx;

	memset(out, 0, OFFLOAD_READ_COUNT * sizeof(*out));
	(void)!counter_dir_each(r->rundir, add_counters, out);
	if (r->kind == RACK_ENGINES)
		(void)!offload_switch_read(out);
}

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

int offload_switch_read(double out[OFFLOAD_READ_COUNT])
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	const json_t *c, *p;
	json_t *stats = NULL;
	int rc = f ? switchd_ask(getenv("AQUIFER_RACK_NAME"), OFFLOAD_SWITCH,
				 "stats", f)
		   : -ENOMEM;

	if (f && fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0)
		stats = json_loads(text, 0, NULL);
	free(text);
	if (!stats)
		return rc ? rc : -EBADMSG;
	c = json_object_get(stats, "counters");
	p = json_array_get(json_object_get(stats, "programs"), 0);
	out[OFFLOAD_READ_SWITCH_IN] = number(c, "frames");
	out[OFFLOAD_READ_SWITCH_MADE] = number(c, "program_frames");
	out[OFFLOAD_READ_APP_WRITES] = number(p, "app_writes");
	out[OFFLOAD_READ_APP_BYTES] = number(p, "app_bytes");
	out[OFFLOAD_READ_PROBES] = number(p, "probes");
	out[OFFLOAD_READ_NS] = (double)bench_now_ns();
	json_decref(stats);
	return 0;
}

/* "m0" first, then the engine: their order is that of their names' use. */
static void find_pid(struct offload_rack *r, const char *name)
{
	pid_t pid = place_pid(r->rundir, name);

	if (pid)
		r->world.pid[r->world.pid_count++] = pid;
}

/* ---- life --------------------------------------------------------------- */

static void find_pids(struct offload_rack *r)
{
	find_pid(r, "m0");
	if (r->kind == RACK_WALKS) {
		find_pid(r, "m1");
		find_pid(r, OFFLOAD_SWITCH);
		return;
	}
	find_pid(r, r->kind == RACK_ENGINES ? "e1" : "e0");
	if (r->kind == RACK_PLAIN)
		find_pid(r, "e1");
	if (is_without_switch(r->kind))
		return;
	find_pid(r, OFFLOAD_SWITCH);
	find_pid(r, OFFLOAD_SWITCH_BARE);
	find_pid(r, "e0");
}

static int start(uint64_t pool_bytes, enum rack_kind kind,
		 struct offload_rack **out)
{
	static const unsigned processes[] = {[RACK_PLAIN] = 3,
					     [RACK_ANYWHERE] = 2,
					     [RACK_ENGINES] = 5,
					     [RACK_WALKS] = 3};
	struct offload_rack *r = calloc(1, sizeof(*r));
	char ini[OFFLOAD_PATH_MAX + 64];
	char name[32];
	int rc;

	if (!r)
		return -ENOMEM;
	r->kind = kind;
	rc = place_make(r->base, "bench");
	if (rc < 0) {
		free(r);
		return rc;
	}
	snprintf(name, sizeof(name), "bench-%d", (int)getpid());
	snprintf(r->rundir, sizeof(r->rundir), "%s/%s", r->base, name);
	setenv("AQUIFER_RUNDIR", r->base, 1);
	setenv("AQUIFER_RACK_NAME", name, 1);
	if (!is_without_switch(kind))
		setenv("AQUIFER_NIC_PORT", "switch:" OFFLOAD_SWITCH, 1);
	watch_signals(on_signal);
	rc = write_ini(r, pool_bytes, ini, sizeof(ini));
	if (rc == 0)
		rc = command(r, "up", ini);
	find_pids(r);
	if (rc == 0 && r->world.pid_count < processes[kind])
		rc = -ESRCH;
	if (rc < 0) {
		offload_rack_stop(r);
		return rc;
	}
	r->world.read = read_counters;
	r->world.ctx = r;
	*out = r;
	return 0;
}

int offload_rack_start(uint64_t pool_bytes, struct offload_rack **out)
{
	return start(pool_bytes, RACK_PLAIN, out);
}

int offload_rack_start_anywhere(uint64_t pool_bytes, struct offload_rack **out)
{
	return start(pool_bytes, RACK_ANYWHERE, out);
}

int offload_rack_start_switch(uint64_t pool_bytes, struct offload_rack **out)
{
	return start(pool_bytes, RACK_ENGINES, out);
}

int offload_rack_start_walks(uint64_t pool_bytes, struct offload_rack **out)
{
	return start(pool_bytes, RACK_WALKS, out);
}

const struct subject_world *offload_rack_world(const struct offload_rack *r)
{
	return &r->world;
}

void offload_rack_stop(struct offload_rack *r)
{
	if (!r)
		return;
	(void)command(r, "down", NULL);
	if (!is_without_switch(r->kind))
		unsetenv("AQUIFER_NIC_PORT");
	watch_signals(SIG_DFL);
	place_remove(r->base);
	free(r);
}

/* ---- the regions of the probe ------------------------------------------- */

static int fill_region(struct aq_rack *rack, const struct offload_config *cfg,
		       uint32_t record_bytes)
{
	uint64_t total = probe_far_bytes(cfg->probe_records, record_bytes);
	uint8_t *buf = malloc(FILL_BYTES);
	struct aq_region *region;
	char name[OFFLOAD_NAME_MAX];
	int rc = -ENOMEM;

	offload_probe_region(name, record_bytes);
	if (buf)
		rc = aq_region_create(rack, name, total, NULL, &region);
	for (uint64_t at = 0; at < total && rc == 0; at += FILL_BYTES) {
		uint64_t len = u64_min(FILL_BYTES, total - at);

		probe_far_fill(buf, at / record_bytes, len / record_bytes,
			       record_bytes);
		rc = aq_write(region, at, buf, len);
	}
	if (rc == 0)
		aq_region_close(region);
	free(buf);
	return rc;
}

static int prepare(const struct offload_config *cfg, const uint32_t *sizes,
		   unsigned size_count)
{
	struct aq_rack *rack;
	int rc = place_rack(&rack);

	for (unsigned i = 0; i < size_count && rc == 0; i++)
		rc = fill_region(rack, cfg, sizes[i]);
	if (rc < 0)
		complain(rc, "bench offload: %s", aq_last_error());
	return rc;
}

int offload_prepare(const struct offload_config *cfg, const uint32_t *sizes,
		    unsigned size_count)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		watch_signals(SIG_DFL);
		_exit(prepare(cfg, sizes, size_count) < 0 ? 1 : 0);
	}
	return pid < 0 ? -errno : place_wait(pid);
}
