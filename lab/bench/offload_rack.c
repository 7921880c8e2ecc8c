/* SPDX-License-Identifier: Apache-2.0 */
/* The private rack of a run: a memory node and an engine on the server's core,
 * started and ended with the commands that users have. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/counter.h"
#include "machine.h"
#include "offload_bench.h"
#include "place.h"
#include "probe.h"
#include "shield.h"
#include "subject.h"

enum {
	FILL_BYTES = 1 << 20,
};

struct offload_rack {
	char base[64];
	char rundir[OFFLOAD_PATH_MAX];
	struct subject_world world;
};

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

/* Runs `aquifer ARG...` on the server's core, quietly. 0 or -errno. */
static int command(const char *a, const char *b)
{
	return place_wait(
		place_start_aquifer(PLACE_SERVER, a, b, (char *)NULL));
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

	out[0] = out[1] = 0;
	(void)!counter_dir_each(r->rundir, add_counters, out);
}

/* "m0" first, then the engine: their order is that of their names' use. */
static void find_pid(struct offload_rack *r, const char *name)
{
	pid_t pid = place_pid(r->rundir, name);

	if (pid)
		r->world.pid[r->world.pid_count++] = pid;
}

/* ---- life --------------------------------------------------------------- */

int offload_rack_start(uint64_t pool_bytes, struct offload_rack **out)
{
	struct offload_rack *r = calloc(1, sizeof(*r));
	char ini[OFFLOAD_PATH_MAX + 64];
	char name[32];
	int rc;

	if (!r)
		return -ENOMEM;
	rc = place_make(r->base, "bench");
	if (rc < 0) {
		free(r);
		return rc;
	}
	snprintf(name, sizeof(name), "bench-%d", (int)getpid());
	snprintf(r->rundir, sizeof(r->rundir), "%s/%s", r->base, name);
	setenv("AQUIFER_RUNDIR", r->base, 1);
	setenv("AQUIFER_RACK_NAME", name, 1);
	watch_signals(on_signal);
	rc = write_ini(r, pool_bytes, ini, sizeof(ini));
	if (rc == 0)
		rc = command("up", ini);
	find_pid(r, "m0");
	find_pid(r, "e0");
	if (rc == 0 && r->world.pid_count < 2)
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

const struct subject_world *offload_rack_world(const struct offload_rack *r)
{
	return &r->world;
}

void offload_rack_stop(struct offload_rack *r)
{
	if (!r)
		return;
	(void)command("down", NULL);
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
		fprintf(stderr, "aquifer bench offload: %s\n", aq_last_error());
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
