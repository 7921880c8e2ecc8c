/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers, nodes and an etcd of a run. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "control_bench.h"
#include "place.h"
#include "ticks.h"

enum {
	ASK_MS = 5000,
	TRY_US = 2000,
	REPLY_BYTES = 1 << 20,
	PATIENCE_S = 60,
	PATH_BYTES = 96,
	LEASE_MS = 600000,
};

int control_bed_make(struct control_bed *bed)
{
	char state[96];
	int err;

	memset(bed, 0, sizeof(*bed));
	err = place_make(bed->dir, "control");
	if (err)
		return error_set(err, "%s cannot be made", bed->dir);
	(void)snprintf(state, sizeof(state), "%s/state", bed->dir);
	(void)setenv("AQUIFER_RUNDIR", bed->dir, 1);
	(void)setenv("AQUIFER_STATEDIR", state, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
	(void)setenv("AQUIFER_RACK_NAME", "local", 1);
	(void)setenv("AQUIFER_RACK_CONTROL", "c0", 1);
	(void)unsetenv("AQUIFER_TOKEN");
	(void)unsetenv("AQUIFER_ADMIN_TOKEN");
	(void)unsetenv("AQUIFER_NODE_TOKEN");
	err = rundir_make("local", bed->rundir);
	for (unsigned i = 0; i < CONTROL_MANY; i++) {
		(void)snprintf(bed->at[i].name, sizeof(bed->at[i].name), "c%u",
			       i);
		(void)snprintf(bed->at[i].address, sizeof(bed->at[i].address),
			       "unix:%.200s/c%u.control.sock", bed->rundir, i);
	}
	return err ? err : client_http_create(&bed->http);
}

static void end_process(pid_t *pid, int signal)
{
	if (*pid > 0 && kill(*pid, signal) == 0)
		(void)waitpid(*pid, NULL, 0); /* it has ended */
	*pid = 0;
}

void control_bed_end(struct control_bed *bed)
{
	for (unsigned i = 0; i < CONTROL_NODES; i++)
		end_process(&bed->node[i], SIGTERM);
	for (unsigned i = 0; i < CONTROL_MANY; i++)
		end_process(&bed->control[i], SIGTERM);
	for (unsigned i = 0; i < CONTROL_MANY; i++)
		end_process(&bed->etcd[i], SIGKILL);
	client_http_destroy(bed->http);
	if (bed->dir[0])
		place_remove(bed->dir);
}

/* ---- etcd --------------------------------------------------------------- */

unsigned control_bed_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned port = 0;

	if (fd < 0)
		return 0;
	if (bind(fd, (struct sockaddr *)&a, len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&a, &len) == 0)
		port = ntohs(a.sin_port);
	(void)close(fd);
	return port;
}

struct member {
	char name[8], client[40], peer[40], data[PATH_BYTES];
};

static pid_t start_member(const struct member *m, const char *cluster)
{
	const char *argv[] = {"etcd",	 "--name",
			      m->name,	 "--data-dir",
			      m->data,	 "--listen-client-urls",
			      m->client, "--advertise-client-urls",
			      m->client, "--listen-peer-urls",
			      m->peer,	 "--initial-advertise-peer-urls",
			      m->peer,	 "--initial-cluster",
			      cluster,	 NULL};

	return place_start(PLACE_QUIET, "etcd", (char *const *)(uintptr_t)argv);
}

int control_bed_etcd(struct control_bed *bed)
{
	struct member m[CONTROL_MANY];
	char cluster[3 * 60] = "";
	int status;

	for (unsigned i = 0; i < CONTROL_MANY; i++) {
		(void)snprintf(m[i].name, sizeof(m[i].name), "e%u", i);
		(void)snprintf(m[i].data, sizeof(m[i].data), "%s/e%u", bed->dir,
			       i);
		(void)snprintf(m[i].client, sizeof(m[i].client),
			       "http://127.0.0.1:%u", control_bed_port());
		(void)snprintf(m[i].peer, sizeof(m[i].peer),
			       "http://127.0.0.1:%u", control_bed_port());
		(void)snprintf(cluster + strlen(cluster),
			       sizeof(cluster) - strlen(cluster),
			       "%s%.8s=%.39s", i ? "," : "", m[i].name,
			       m[i].peer);
		(void)snprintf(bed->store + strlen(bed->store),
			       sizeof(bed->store) - strlen(bed->store),
			       "%s%.39s", i ? "," : "etcd:", m[i].client);
	}
	for (unsigned i = 0; i < CONTROL_MANY; i++) {
		bed->etcd[i] = start_member(&m[i], cluster);
		if (bed->etcd[i] < 0)
			return error_set((int)bed->etcd[i], "no process can be "
							    "started");
	}
	(void)usleep(100 * TRY_US);
	if (waitpid(bed->etcd[0], &status, WNOHANG) == bed->etcd[0]) {
		bed->etcd[0] = 0;
		return error_set(-ENOENT, "etcd is not installed");
	}
	return 0;
}

/* ---- controllers and nodes ---------------------------------------------- */

int control_bed_start(struct control_bed *bed, unsigned i)
{
	unsigned flags = PLACE_QUIET | bed->cores;
	const char *option = bed->store[0] ? "--store"
			     : bed->port   ? "--listen"
					   : NULL;
	char listen[24];
	pid_t pid;

	(void)snprintf(listen, sizeof(listen), "127.0.0.1:%u", bed->port);
	pid = place_start_aquifer(flags, "control", "--name", bed->at[i].name,
				  option, bed->store[0] ? bed->store : listen,
				  (char *)NULL);
	if (pid < 0)
		return error_set((int)pid, "no process can be started");
	bed->control[i] = pid;
	return 0;
}

void control_bed_kill(struct control_bed *bed, unsigned i)
{
	end_process(&bed->control[i], SIGKILL);
}

int control_bed_nodes(struct control_bed *bed, unsigned count, const char *size)
{
	for (unsigned i = 0; i < count; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "m%u", i);
		bed->node[i] =
			place_start_aquifer(PLACE_QUIET, "memory", "--name",
					    name, "--size", size, (char *)NULL);
		if (bed->node[i] < 0)
			return error_set((int)bed->node[i],
					 "no process can be started");
	}
	return 0;
}

int control_bed_joined(struct control_bed *bed, unsigned count)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (control_bed_metric(bed,
				       "aquifer_control_nodes{state=\"up\"}") >=
		    count)
			return 0;
		(void)usleep(20000);
	}
	return error_set(-ETIMEDOUT, "the nodes do not join");
}

int control_bed_job(struct control_bed *bed, const char *token,
		    const char *name, unsigned tasks)
{
	json_t *plan = json_object(), *reply = NULL;
	char task[16], parent[16];
	int err;

	for (unsigned i = 0; i < tasks; i++) {
		(void)snprintf(task, sizeof(task), "t%u", i);
		(void)snprintf(parent, sizeof(parent), "t%u", i / 2);
		(void)json_object_set_new(plan, task,
					  i ? json_pack("[s]", parent)
					    : json_array());
	}
	err = control_bed_ask(bed, token, "POST", "/v1/jobs",
			      json_pack("{s:s, s:o, s:i}", "name", name, "plan",
					plan, "lease_ms", LEASE_MS),
			      &reply);
	json_decref(reply);
	return err;
}

/* ---- changes ------------------------------------------------------------ */

static int ask(struct control_bed *bed, unsigned i, struct client_http *http,
	       const char *method, const char *path, json_t *body)
{
	const struct client_caller caller = {.http = http, .token = bed->admin};
	json_t *reply = NULL;
	int err = client_call(&caller, &bed->at[i], method, path, body, ASK_MS,
			      REPLY_BYTES, &reply);

	json_decref(reply);
	return err;
}

int control_bed_ask(struct control_bed *bed, const char *token,
		    const char *method, const char *path, json_t *body,
		    json_t **reply)
{
	const struct client_caller caller = {.http = bed->http, .token = token};

	return client_call(&caller, &bed->at[0], method, path, body, ASK_MS,
			   REPLY_BYTES, reply);
}

int control_bed_change(struct control_bed *bed, unsigned i,
		       struct client_http *http, unsigned tenant,
		       uint64_t value)
{
	char path[PATH_BYTES], name[16];
	int err;

	(void)snprintf(path, sizeof(path), "/v1/tenants/t%u", tenant);
	err = ask(bed, i, http, "PATCH", path,
		  json_pack("{s:I}", "quota",
			    (json_int_t)((value % 1000 + 1) << 20)));
	if (err != -ENOENT)
		return err;
	(void)snprintf(name, sizeof(name), "t%u", tenant);
	return ask(bed, i, http, "POST", "/v1/tenants",
		   json_pack("{s:s}", "name", name));
}

int control_bed_await(struct control_bed *bed, double *seconds)
{
	uint64_t start = bench_now_ns();
	uint64_t end = start + PATIENCE_S * 1000000000ull;
	int err;

	do {
		err = client_token_read(NULL, bed->rundir, RACK_TOKEN_ADMIN,
					bed->admin);
		for (unsigned i = 0; !err && i < CONTROL_MANY; i++) {
			if (!bed->control[i])
				continue;
			err = control_bed_change(bed, i, bed->http, 0,
						 bench_now_ns() / 1000);
			if (!err) {
				*seconds =
					(double)(bench_now_ns() - start) / 1e9;
				return 0;
			}
		}
		(void)usleep(TRY_US);
	} while (bench_now_ns() < end);
	return err ? err : error_set(-ETIMEDOUT, "no change is accepted");
}

double control_bed_metric(struct control_bed *bed, const char *name)
{
	const struct client_http_request req = {
		.method = "GET",
		.address = bed->at[0].address,
		.path = "/metrics",
		.token = bed->admin,
		.timeout_ms = ASK_MS,
		.max_bytes = REPLY_BYTES,
	};
	struct client_http_reply reply = {0};
	char line[PATH_BYTES];
	const char *at;

	(void)snprintf(line, sizeof(line), "\n%s ", name);
	if (client_http_do(bed->http, &req, &reply) || !reply.text)
		return NAN;
	at = strstr(reply.text, line);
	return at ? strtod(at + strlen(line), NULL) : NAN;
}
