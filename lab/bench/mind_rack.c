/* SPDX-License-Identifier: Apache-2.0 */
/* The rack of a run: a switch, a memory node that leads, cache servers. */
#include <aquifer/shared.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mind_bench.h"
#include "place.h"
#include "ticks.h"

enum {
	TRY_US = 5000,
};

#define PATIENCE_NS 60000000000ull
/* A machine under a benchmark may be slow, and is not dead for that. */
#define PROGRAM \
	"coherence:node_ms=60000,fin_ms=60000,peer_ms=60000,rto_us=900000"

void mind_rack_be(unsigned machine)
{
	static const char *const addresses[MIND_MACHINES] = {"127.0.0.2",
							     "127.0.0.3"};

	(void)setenv("AQUIFER_NIC_ADDRESS", addresses[machine], 1);
}

static int start_switch(struct mind_rack *r, bool is_traced)
{
	if (!is_traced)
		return r->tor = place_start_aquifer(0, "switch", "--name",
						    MIND_SWITCH, "--program",
						    PROGRAM, (char *)NULL);
	(void)snprintf(r->trace, sizeof(r->trace), "%s/trace", r->dir);
	return r->tor = place_start_aquifer(0, "switch", "--name", MIND_SWITCH,
					    "--program", PROGRAM, "--trace",
					    r->trace, (char *)NULL);
}

/* A node that comes before its switch ends at once. */
static int await_switch(struct bench *b, struct mind_rack *r)
{
	char path[128];
	int fd, err;

	(void)snprintf(path, sizeof(path), "%s/%s/switch-%s.ctl", r->dir,
		       r->name, MIND_SWITCH);
	err = place_dial(path, &r->tor, &fd);
	if (err)
		return bench_fail(b, err, "the switch does not start");
	(void)close(fd);
	return 0;
}

static int make_segments(void)
{
	static const char *const names[] = {MIND_SEGMENT, MIND_SEGMENT_BARE};
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (err)
		return err;
	for (unsigned i = 0; i < ARRAY_LEN(names) && !err; i++) {
		err = aq_shared_create(rack, names[i],
				       MIND_SEGMENT_PAGES * 4096ull);
		/* It was made by a try whose answer came too late. */
		err = err == -EEXIST ? 0 : err;
	}
	aq_rack_close(rack);
	return err;
}

/* The node, its arena and the switch are there when segments can be made. */
static int await_segments(struct bench *b)
{
	uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
	int err;

	while ((err = make_segments()) && bench_now_ns() < end_ns)
		(void)usleep(TRY_US);
	return err ? bench_fail(b, err, "no shared memory: %s", aq_last_error())
		   : 0;
}

int mind_rack_start(struct bench *b, struct mind_rack *r, bool is_traced)
{
	int err;

	memset(r, 0, sizeof(*r));
	err = place_make(r->dir, "mind");
	if (err)
		return bench_fail(b, err, "no folder for the rack");
	(void)snprintf(r->name, sizeof(r->name), "bench-%d", (int)getpid());
	(void)setenv("AQUIFER_RUNDIR", r->dir, 1);
	(void)setenv("AQUIFER_RACK_NAME", r->name, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
	(void)setenv("AQUIFER_NIC_PORT", "switch:" MIND_SWITCH, 1);
	if (start_switch(r, is_traced) < 0)
		return bench_fail(b, (int)r->tor, "no process for the switch");
	err = await_switch(b, r);
	if (err)
		return err;
	/* It says which pages die with machines that have measured and end. */
	r->memory = place_start_aquifer(PLACE_QUIET, "memory", "--name", "m0",
					"--size", "160M", "--shared", "132M",
					(char *)NULL);
	if (r->memory < 0)
		return bench_fail(b, (int)r->memory, "no memory node");
	return await_segments(b);
}

int mind_rack_serve(struct bench *b, struct mind_rack *r, unsigned machine)
{
	const char *name[MIND_MACHINES] = {"a", "b"};

	mind_rack_be(machine);
	r->server[machine] = place_start_aquifer(0, "shared", "serve", "--name",
						 name[machine], (char *)NULL);
	(void)unsetenv("AQUIFER_NIC_ADDRESS");
	return r->server[machine] < 0 ? bench_fail(b, (int)r->server[machine],
						   "no cache server")
				      : 0;
}

void mind_rack_leave(struct mind_rack *r, unsigned machine)
{
	place_end(r->server[machine]);
	r->server[machine] = 0;
}

void mind_rack_end_switch(struct mind_rack *r)
{
	place_end(r->tor);
	r->tor = 0;
}

void mind_rack_stop(struct mind_rack *r)
{
	for (unsigned i = 0; i < MIND_MACHINES; i++)
		mind_rack_leave(r, i);
	place_end(r->memory);
	mind_rack_end_switch(r);
	(void)unsetenv("AQUIFER_NIC_PORT");
	place_remove(r->dir);
}
