/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that are printed beside the paper's and not judged: memory of a
 * controller for a task and for a block, the time from a node's event to the
 * order that it causes, and the size of the page. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "control_bench.h"
#include "stats.h"
#include "ticks.h"

enum {
	JOB_TASKS = 10000,
	JOBS_FIRST = 2, /* which the allocator grows for */
	JOBS = 4,
	BLOCK_BYTES = 64 << 10,
	FILE_BLOCKS = 31, /* of runs of 1, 2, 4, 8 and 16 */
	FILES_FIRST = 16,
	FILES = 48,
	PATH_BYTES = 64,
	TRY_US = 20000,
	TRIES = 500,
	PAPER_TASK = 64, /* bytes */
	PAPER_BLOCK = 8,
	EVENTS = 100,
	REPLY_BYTES = 1 << 20,
};

static int start(struct control_bed *bed)
{
	double seconds;
	int err = control_bed_make(bed);

	if (!err)
		err = control_bed_start(bed, 0);
	return err ? err : control_bed_await(bed, &seconds);
}

static void row_of(struct bench *b, const char *group, const char *name,
		   double value, const char *unit, const char *what, int paper)
{
	json_t *row = bench_row(b, group, name, value, unit, what);

	if (paper)
		(void)json_object_set_new(row, "paper", json_integer(paper));
}

/* ---- memory -------------------------------------------------------------- */

/* What the process has of its own, in bytes. */
static int memory_of(pid_t pid, double *bytes)
{
	unsigned long kib = 0;
	char line[128];
	FILE *f;

	(void)snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	f = fopen(line, "re");
	if (!f)
		return error_set(-errno, "the controller has ended");
	while (!kib && fgets(line, sizeof(line), f))
		(void)sscanf(line, "RssAnon: %lu", &kib); /* 0 till then */
	(void)fclose(f);
	*bytes = (double)kib * 1024;
	return kib ? 0 : error_set(-EIO, "the system does not say RssAnon");
}

static int measure_tasks(struct control_bed *bed, const char *token,
			 double *bytes)
{
	double before = 0, after = 0;
	char name[16];
	int err = 0;

	for (unsigned i = 0; i < JOBS_FIRST + JOBS && !err; i++) {
		if (i == JOBS_FIRST)
			err = memory_of(bed->control[0], &before);
		(void)snprintf(name, sizeof(name), "job%u", i);
		if (!err)
			err = control_bed_job(bed, token, name, JOB_TASKS);
	}
	if (!err)
		err = memory_of(bed->control[0], &after);
	*bytes = (after - before) / (JOBS * JOB_TASKS);
	return err;
}

/* A file of at least that many blocks. */
static int make_file(struct control_bed *bed, const char *token,
		     unsigned number, size_t *blocks)
{
	char path[PATH_BYTES];
	json_t *reply = NULL;
	unsigned tries = TRIES;
	size_t count = 0;
	int err;

	(void)snprintf(path, sizeof(path), "/v1/ns/figure/f%u", number);
	err = control_bed_ask(bed, token, "POST", path,
			      json_pack("{s:s, s:i, s:b}", "kind", "file",
					"block_bytes", BLOCK_BYTES,
					"make_parents", 1),
			      &reply);
	json_decref(reply);
	(void)snprintf(path, sizeof(path), "/v1/blocks/figure/f%u", number);
	/* A node may have joined, and not said yet that it lends blocks. */
	while ((!err || (err == -ENOSPC && tries--)) && count < FILE_BLOCKS) {
		if (err)
			(void)usleep(TRY_US);
		reply = NULL;
		err = control_bed_ask(
			bed, token, "POST", path,
			json_pack("{s:I}", "after", (json_int_t)count - 1),
			&reply);
		if (!err)
			count = json_array_size(
				json_object_get(reply, "blocks"));
		json_decref(reply);
	}
	*blocks += count;
	return err;
}

static int measure_blocks(struct control_bed *bed, const char *token,
			  double *bytes)
{
	double before = 0, after = 0;
	size_t blocks = 0;
	int err = control_bed_nodes(bed, 1, "512M");

	if (!err)
		err = control_bed_joined(bed, 1);
	for (unsigned i = 0; i < FILES_FIRST + FILES && !err; i++) {
		if (i == FILES_FIRST) {
			blocks = 0;
			err = memory_of(bed->control[0], &before);
		}
		if (!err)
			err = make_file(bed, token, i, &blocks);
	}
	if (!err)
		err = memory_of(bed->control[0], &after);
	*bytes = (after - before) / (double)blocks;
	return err;
}

int control_bench_memory(struct bench *b)
{
	char token[CLIENT_TOKEN_MAX];
	double task = 0, block = 0;
	struct control_bed bed;
	int err = start(&bed);

	if (!err)
		err = client_token_read(NULL, bed.rundir, RACK_TOKEN_DEFAULT,
					token);
	/* What plans leave free in the process would hide what blocks take. */
	if (!err)
		err = measure_blocks(&bed, token, &block);
	if (!err)
		err = measure_tasks(&bed, token, &task);
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	row_of(b, "memory", "task", task, "bytes",
	       "memory of a controller for a task of a plan, its name in it",
	       PAPER_TASK);
	row_of(b, "memory", "block", block, "bytes",
	       "the same for a block of an elastic file of 31", PAPER_BLOCK);
	return 0;
}

/* ---- orders -------------------------------------------------------------- */

struct node {
	char token[CLIENT_TOKEN_MAX];
	json_int_t epoch, bytes, version;
};

#define INCARNATION "0123456789abcdef"

/* This process speaks as a memory node does: of its tenant all is used, and it
 * needs as much again. The answer has the row that it may use then. */
static int beat(struct control_bed *bed, struct node *n)
{
	json_t *reply = NULL, *row;
	size_t i;
	int err = control_bed_ask(
		bed, n->token, "POST", "/v1/nodes/figure/beat",
		json_pack("{s:s, s:I, s:I, s:s, s:[{s:s, s:I, s:I, s:I, s:I}]}",
			  "incarnation", INCARNATION, "epoch", n->epoch, "used",
			  n->bytes, "tenants", "", "shares", "tenant", "t0",
			  "used", n->bytes, "limit", n->bytes, "version",
			  n->version, "wish", n->bytes + (1 << 20)),
		&reply);

	json_array_foreach(json_object_get(reply, "shares"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "tenant")),
			   "t0") != 0)
			continue;
		n->bytes = json_integer_value(json_object_get(row, "bytes"));
		n->version =
			json_integer_value(json_object_get(row, "version"));
	}
	json_decref(reply);
	return err;
}

static int join(struct control_bed *bed, struct node *n)
{
	json_t *reply = NULL;
	int err =
		client_token_read(NULL, bed->rundir, RACK_TOKEN_NODE, n->token);

	if (!err)
		err = control_bed_ask(
			bed, bed->admin, "PATCH", "/v1/tenants/t0",
			json_pack("{s:I}", "quota", (json_int_t)1 << 50),
			&reply);
	json_decref(reply);
	reply = NULL;
	if (!err)
		err = control_bed_ask(
			bed, n->token, "POST", "/v1/nodes",
			json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", "figure",
				  "kind", "memory", "address",
				  "http://127.0.0.1:1", "incarnation",
				  INCARNATION, "size", (json_int_t)1 << 50),
			&reply);
	n->epoch = json_integer_value(json_object_get(reply, "epoch"));
	json_decref(reply);
	return err;
}

int control_bench_order(struct bench *b)
{
	struct node n = {.bytes = 0};
	double us[EVENTS] = {0};
	struct control_bed bed;
	json_t *row;
	int err = start(&bed);

	if (!err)
		err = join(&bed, &n);
	/* The first one is answered at once, whatever it says. */
	if (!err)
		err = beat(&bed, &n);
	for (unsigned i = 0; i < EVENTS && !err; i++) {
		uint64_t since_ns = bench_now_ns();
		json_int_t version = n.version;

		err = beat(&bed, &n);
		us[i] = (double)(bench_now_ns() - since_ns) / 1000;
		if (!err && n.version == version)
			err = error_set(-EPROTO, "a wish was not answered");
	}
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	row = bench_row(b, "order", "event", stats_median(us, EVENTS), "us",
			"a node says that a tenant needs memory: until it has "
			"the order, the commit of sqlite in it");
	(void)json_object_update_new(row, json_pack("{s:f, s:f}", "min", us[0],
						    "max", us[EVENTS - 1]));
	return 0;
}

/* ---- the page ------------------------------------------------------------ */

int control_bench_page(struct bench *b)
{
	static const char *const files[] = {"/", "/page.css", "/page.js",
					    "/icon.svg"};
	struct control_bed bed;
	double bytes = 0;
	int err = start(&bed);

	for (size_t i = 0; i < ARRAY_LEN(files) && !err; i++) {
		const struct client_http_request req = {
			.method = "GET",
			.address = bed.at[0].address,
			.path = files[i],
			.timeout_ms = 5000,
			.max_bytes = REPLY_BYTES,
		};
		struct client_http_reply reply = {0};

		err = client_http_do(bed.http, &req, &reply);
		if (!err && reply.status != 200)
			err = error_set(-ENOENT, "%s is not there", files[i]);
		bytes += (double)reply.len_bytes;
	}
	control_bed_end(&bed);
	if (err)
		return bench_fail(b, err, "%s", error_last());
	(void)bench_row(b, "page", "page_bytes", bytes, "bytes",
			"all files of the page of `aquifer dashboard`; 100 KB "
			"at most, and no others are loaded");
	return 0;
}
