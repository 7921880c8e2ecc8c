/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `bench control`, and the processes that they need: controllers,
 * nodes and an etcd of this run, in a folder of its own. */
#ifndef AQ_BENCH_CONTROL_BENCH_H
#define AQ_BENCH_CONTROL_BENCH_H

#include <sys/types.h>

#include "base/rundir.h"
#include "bench.h"
#include "client/client.h"

enum {
	CONTROL_MANY = 3,     /* controllers, and members of an etcd */
	CONTROL_WAITING = 16, /* clients */
	CONTROL_NODES = 16,
	CONTROL_STORE_BYTES = 160,
};

struct control_bed {
	char dir[64];
	char rundir[RUNDIR_PATH_MAX];
	char admin[CLIENT_TOKEN_MAX];
	/* "": each has a file of its own. */
	char store[CONTROL_STORE_BYTES];
	/* Of TCP on loopback, for a controller with a store of its own; 0:
	 * none. */
	unsigned port;
	unsigned cores; /* of controllers: PLACE_SERVER, PLACE_UNBOUND, or 0 */
	pid_t control[CONTROL_MANY]; /* 0: it does not run */
	struct client_node at[CONTROL_MANY];
	pid_t etcd[CONTROL_MANY];
	pid_t node[CONTROL_NODES];
	struct client_http *http;
};

/* Each 0, or -errno with words in error_last(). */
int control_bed_make(struct control_bed *bed) MUST_CHECK;
/* Ends all processes of it, and removes the folder. */
void control_bed_end(struct control_bed *bed);
/* A port of TCP that is free now; nobody else takes it, as a rule. */
unsigned control_bed_port(void);
/* Three members on loopback, which are `store` then. -ENOENT: it is not
 * installed. */
int control_bed_etcd(struct control_bed *bed) MUST_CHECK;
/* A request to controller 0 with JSON in and out; `body` is taken over, the
 * answer is the caller's. */
int control_bed_ask(struct control_bed *bed, const char *token,
		    const char *method, const char *path, json_t *body,
		    json_t **reply) MUST_CHECK;
/* A job of tasks t0, t1 ..., each with one parent but for the first. Its leases
 * are so long that what is not renewed for a while lives on. */
int control_bed_job(struct control_bed *bed, const char *token,
		    const char *name, unsigned tasks) MUST_CHECK;
int control_bed_start(struct control_bed *bed, unsigned controller) MUST_CHECK;
void control_bed_kill(struct control_bed *bed, unsigned controller);
/* `count` memory nodes that join controller 0. */
int control_bed_nodes(struct control_bed *bed, unsigned count,
		      const char *size) MUST_CHECK;
/* Until so many have. -ETIMEDOUT. */
int control_bed_joined(struct control_bed *bed, unsigned count) MUST_CHECK;
/* One change of a tenant, by whoever leads. */
int control_bed_change(struct control_bed *bed, unsigned controller,
		       struct client_http *http, unsigned tenant,
		       uint64_t value) MUST_CHECK;
/* Until a change is accepted by any of them: the seconds that it took. */
int control_bed_await(struct control_bed *bed, double *seconds) MUST_CHECK;
/* A number of the controller's /metrics; NAN: there is none. */
double control_bed_metric(struct control_bed *bed, const char *name);

/* Each returns 0, or -errno after bench_fail. */
int control_bench_renew(struct bench *b) MUST_CHECK;
int control_bench_batch(struct bench *b) MUST_CHECK;
int control_bench_commit(struct bench *b) MUST_CHECK;
int control_bench_restart(struct bench *b) MUST_CHECK;
int control_bench_failover(struct bench *b) MUST_CHECK;
int control_bench_outage(struct bench *b) MUST_CHECK;
int control_bench_idle(struct bench *b) MUST_CHECK;
int control_bench_memory(struct bench *b) MUST_CHECK;
int control_bench_order(struct bench *b) MUST_CHECK;
int control_bench_page(struct bench *b) MUST_CHECK;

#endif
