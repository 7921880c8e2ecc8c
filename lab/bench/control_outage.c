/* SPDX-License-Identifier: Apache-2.0 */
/* What clients notice of a controller that is away, and what one costs that has
 * nothing to do. */
#include <aquifer/aquifer.h>
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "control_bench.h"
#include "kv_bench.h"
#include "place.h"
#include "ticks.h"

enum {
	REGION_BYTES = 1 << 20,
	READ_BYTES = 64,
	RECORDS = 1000,
	CLOCK_EVERY = 32,
	SLICE_NS = 20000000,
	SETTLE_US = 500000,
	PREFIXES = 1000,
	RENEW_PATHS = 100,
	RENEW_US = 3333333 / (PREFIXES / RENEW_PATHS),
};

struct data {
	struct aq_rack *rack;
	struct aq_region *region;
	struct aq_kv *kv;
	struct aq_kv_client *c;
};

static int open_data(struct data *d)
{
	const struct aq_kv_options o = {.capacity = 4 * RECORDS};
	char key[KV_BENCH_KEY_BYTES + 1];
	int err = place_rack(&d->rack);

	if (!err)
		err = aq_region_create(d->rack, "data", REGION_BYTES, NULL,
				       &d->region);
	if (!err)
		err = aq_kv_create(d->rack, "bench", &o, &d->kv);
	if (!err)
		err = aq_kv_client_open(d->kv, NULL, &d->c);
	for (unsigned i = 0; i < RECORDS && !err; i++) {
		kv_bench_key(i, key);
		err = aq_kv_put(d->c, key, KV_BENCH_KEY_BYTES, key,
				KV_BENCH_VALUE_BYTES, NULL);
	}
	return err ? error_set(err, "%s", aq_last_error()) : 0;
}

static void close_data(struct data *d)
{
	aq_kv_client_close(d->c);
	aq_kv_close(d->kv);
	aq_region_close(d->region);
	aq_rack_close(d->rack);
}

static int read_once(struct data *d, uint64_t at)
{
	char buf[READ_BYTES];

	return aq_read(d->region, at * READ_BYTES % REGION_BYTES, buf,
		       sizeof(buf));
}

static int get_once(struct data *d, uint64_t at)
{
	char key[KV_BENCH_KEY_BYTES + 1], value[KV_BENCH_VALUE_BYTES];
	size_t len;

	kv_bench_key((uint32_t)(at % RECORDS), key);
	return aq_kv_get(d->c, key, KV_BENCH_KEY_BYTES, value, sizeof(value),
			 &len);
}

/* Operations per second of one slice, in short turns of both kinds. */
static int measure_slice(struct data *d, uint64_t ops[2], double rate[2])
{
	static int (*const once[2])(struct data *, uint64_t) = {read_once,
								get_once};
	uint64_t done[2] = {0}, spent[2] = {0};
	uint64_t end = bench_now_ns() + SLICE_NS;
	int err = 0;

	while (!err && bench_now_ns() < end)
		for (unsigned k = 0; k < 2 && !err; k++) {
			uint64_t start = bench_now_ns();

			for (unsigned i = 0; i < CLOCK_EVERY && !err; i++)
				err = once[k](d, ops[k]++);
			done[k] += CLOCK_EVERY;
			spent[k] += bench_now_ns() - start;
		}
	for (unsigned k = 0; k < 2; k++)
		rate[k] = (double)done[k] * 1e9 / (double)spent[k];
	return err ? error_set(err, "%s", aq_last_error()) : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of all slices the one in the middle: what others do on this machine for a
 * moment is in neither figure, and what lasts is in both. */
static int measure(struct data *d, uint64_t window_ns, double rate[2])
{
	unsigned count = (unsigned)u64_max(window_ns / SLICE_NS, 1), n = 0;
	double *slice[2] = {calloc(count, sizeof(double)),
			    calloc(count, sizeof(double))};
	uint64_t ops[2] = {0};
	int err = slice[0] && slice[1] ? 0 : error_set(-ENOMEM, "no memory");

	for (; n < count && !err; n++) {
		double r[2];

		err = measure_slice(d, ops, r);
		for (unsigned k = 0; k < 2 && !err; k++)
			slice[k][n] = r[k];
	}
	for (unsigned k = 0; k < 2; k++) {
		if (!err) {
			qsort(slice[k], count, sizeof(double), compare);
			rate[k] = slice[k][count / 2];
		}
		free(slice[k]);
	}
	return err;
}

static void report(struct bench *b, const double before[2],
		   const double during[2])
{
	static const char *const name[2] = {"read", "kv_get"};
	static const char *const what[2] = {
		"READs of 64 B without a controller / with it",
		"gets of a table without a controller / with it"};
	double worst = 0;

	for (unsigned k = 0; k < 2; k++) {
		double left = during[k] / before[k];
		json_t *row =
			bench_row(b, "outage", name[k], left, "ratio", what[k]);

		(void)json_object_update_new(
			row, json_pack("{s:f, s:f}", "before", before[k],
				       "during", during[k]));
		worst = !k || left < worst ? left : worst;
	}
	bench_ratio_add(b, "ctl_outage_data", worst);
}

/* A controller and two nodes, all of which have joined it. */
static int start(struct control_bed *bed, unsigned nodes, const char *size)
{
	double seconds;
	int err = control_bed_make(bed);

	if (!err)
		err = control_bed_start(bed, 0);
	if (!err)
		err = control_bed_await(bed, &seconds);
	if (!err)
		err = control_bed_nodes(bed, nodes, size);
	return err ? err : control_bed_joined(bed, nodes);
}

int control_bench_outage(struct bench *b)
{
	uint64_t window_ns = bench_number(b, "seconds") * 1000000000ull;
	double before[2], during[2];
	struct data d = {0};
	struct control_bed bed;
	int err = start(&bed, 2, "64M");

	if (!err)
		err = open_data(&d);
	/* Once for the caches of both. */
	if (!err)
		err = measure(&d, window_ns / 10, before);
	if (!err)
		err = measure(&d, window_ns, before);
	if (!err) {
		control_bed_kill(&bed, 0);
		err = measure(&d, window_ns, during);
	}
	close_data(&d);
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	report(b, before, during);
	return 0;
}

/* ---- nothing to do ------------------------------------------------------ */

/* Processor time of a process, in seconds. */
static int cpu_of(pid_t pid, double *seconds)
{
	unsigned long user, system;
	char path[40];
	FILE *f;
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return error_set(-errno, "the controller has ended");
	n = fscanf(f,
		   "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
		   "%lu %lu",
		   &user, &system);
	(void)fclose(f);
	if (n != 2)
		return error_set(-EIO, "%s cannot be read", path);
	*seconds = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	return 0;
}

/* Each of PREFIXES is renewed three times in the ten seconds of a lease, as the
 * library does, a hundred in a request. */
static int renew_all(struct control_bed *bed, const char *token,
		     uint64_t end_ns)
{
	unsigned next = 0;
	int err = 0;

	while (!err && bench_now_ns() < end_ns) {
		json_t *paths = json_array(), *reply = NULL;

		for (unsigned i = 0; i < RENEW_PATHS; i++)
			(void)json_array_append_new(
				paths,
				json_sprintf("/idle/t%u", next++ % PREFIXES));
		err = control_bed_ask(bed, token, "POST", "/v1/renew",
				      json_pack("{s:o}", "paths", paths),
				      &reply);
		json_decref(reply);
		(void)usleep(RENEW_US);
	}
	return err;
}

int control_bench_idle(struct bench *b)
{
	uint64_t window_s = bench_number(b, "seconds");
	double before, after, beats = 0;
	char token[CLIENT_TOKEN_MAX];
	struct control_bed bed;
	uint64_t start_ns;
	int err = start(&bed, CONTROL_NODES, "16M");

	if (!err)
		err = client_token_read(NULL, bed.rundir, RACK_TOKEN_DEFAULT,
					token);
	if (!err)
		err = control_bed_job(&bed, token, "idle", PREFIXES);
	if (!err) {
		(void)usleep(SETTLE_US);
		beats = control_bed_metric(&bed, "aquifer_control_beats_total");
		start_ns = bench_now_ns();
		err = cpu_of(bed.control[0], &before);
		if (!err)
			err = renew_all(&bed, token,
					start_ns + window_s * 1000000000ull);
		if (!err)
			err = cpu_of(bed.control[0], &after);
		window_s = bench_now_ns() - start_ns;
		beats = control_bed_metric(&bed,
					   "aquifer_control_beats_total") -
			beats;
	}
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	(void)bench_row(b, "idle", "beats", beats * 1e9 / (double)window_s,
			"1/s", "beats of 16 nodes that have nothing to say");
	(void)bench_row(b, "idle", "cpu",
			(after - before) * 1e9 / (double)window_s, "cores",
			"processor time of the controller, with 1,000 prefixes "
			"that are renewed");
	bench_ratio_add(b, "ctl_idle_cpu",
			(after - before) * 1e9 / (double)window_s);
	return 0;
}
