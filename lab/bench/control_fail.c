/* SPDX-License-Identifier: Apache-2.0 */
/* From kill -9 of a controller to the next accepted change. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "control_bench.h"
#include "stats.h"

/* The worst of them is judged. */
static void report(struct bench *b, const char *group, const char *ratio,
		   double *seconds, const char *what)
{
	double median = stats_median(seconds, b->rounds); /* sorts them */
	json_t *row = bench_row(b, group, group, median, "s", what);

	(void)json_object_update_new(row, json_pack("{s:f, s:f, s:i}", "min",
						    seconds[0], "max",
						    seconds[b->rounds - 1],
						    "rounds", (int)b->rounds));
	bench_ratio_add(b, ratio, seconds[b->rounds - 1]);
}

/* What a supervisor does: it sees the end, and starts it anew. */
static int restart(struct control_bed *bed, double *seconds)
{
	int err;

	control_bed_kill(bed, 0);
	err = control_bed_start(bed, 0);
	return err ? err : control_bed_await(bed, seconds);
}

int control_bench_restart(struct bench *b)
{
	double seconds[BENCH_ROUNDS_MAX] = {0}, first;
	struct control_bed bed;
	int err = control_bed_make(&bed);

	if (!err)
		err = control_bed_start(&bed, 0);
	if (!err)
		err = control_bed_await(&bed, &first);
	for (unsigned i = 0; i < b->rounds && !err; i++)
		err = restart(&bed, &seconds[i]);
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	report(b, "restart", "ctl_restart_s", seconds,
	       "kill -9 to the next accepted change, sqlite, started anew at "
	       "once");
	return 0;
}

/* ---- three -------------------------------------------------------------- */

static int find_leader(struct control_bed *bed, unsigned *out)
{
	const struct client_caller caller = {.http = bed->http,
					     .token = bed->admin};

	for (unsigned i = 0; i < CONTROL_MANY; i++) {
		json_t *reply = NULL;
		int err = client_call(&caller, &bed->at[i], "GET", "/v1/status",
				      NULL, 1000, 65536, &reply);
		bool leads =
			!err && json_is_true(json_object_get(reply, "leads"));

		json_decref(reply);
		*out = i;
		if (leads)
			return 0;
	}
	return error_set(-ENOENT, "nobody leads");
}

/* The dead one is started again once another one leads. */
static int fail_over(struct control_bed *bed, double *seconds)
{
	unsigned dead = 0;
	double warm;
	int err = control_bed_await(bed, &warm);

	if (!err)
		err = find_leader(bed, &dead);
	if (err)
		return err;
	control_bed_kill(bed, dead);
	err = control_bed_await(bed, seconds);
	return err ? err : control_bed_start(bed, dead);
}

int control_bench_failover(struct bench *b)
{
	double seconds[BENCH_ROUNDS_MAX] = {0};
	struct control_bed bed;
	int err = control_bed_make(&bed);

	if (!err)
		err = control_bed_etcd(&bed);
	if (err == -ENOENT) {
		bench_row_failed(b, "failover", "failover", "s", error_last());
		bench_void(b, "ctl_failover_s", "%s", error_last());
		control_bed_end(&bed);
		return 0;
	}
	for (unsigned i = 0; i < CONTROL_MANY && !err; i++)
		err = control_bed_start(&bed, i);
	for (unsigned i = 0; i < b->rounds && !err; i++)
		err = fail_over(&bed, &seconds[i]);
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	report(b, "failover", "ctl_failover_s", seconds,
	       "kill -9 of the leader to the next accepted change, three "
	       "controllers on three etcd");
	return 0;
}
