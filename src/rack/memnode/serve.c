/* SPDX-License-Identifier: Apache-2.0 */
/* The process around a node: places, sockets, signals, clock. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/relax.h"
#include "control/ctl_server.h"
#include "mem_priv.h"
#include "place_priv.h"

/* ---- the env: only what a node needs, not what a NIC does --------------- */

static uint64_t now_ns(struct env *env)
{
	return clock_mono_ns();
}

static void random_bytes(struct env *env, void *buf, size_t len_bytes)
{
	uint8_t *p = buf;

	(void)env;
	while (len_bytes) {
		ssize_t n = getrandom(p, len_bytes, 0);

		if (n < 0) {
			ASSERT(errno == EINTR);
			continue;
		}
		p += n;
		len_bytes -= (size_t)n;
	}
}

static void relax(struct env *env)
{
	(void)env;
	relax_briefly();
}

static const struct env_ops env_ops = {
	.now_ns = now_ns,
	.random = random_bytes,
	.relax = relax,
};

/* ---- life --------------------------------------------------------------- */

static int make_node(const struct mem_serve_options *o,
		     const struct place *place, struct env *env,
		     struct ctl_audit *audit, struct mem_node **out)
{
	char token[CTL_TOKEN_TEXT], admin[CTL_TOKEN_TEXT];
	struct mem_node_config config = {
		.name = o->name,
		.pool_bytes = o->pool_bytes,
		.default_token = token,
		.admin_token = admin,
		.state_path = place->state,
		.env = env,
		.audit = audit,
		.has_auth = o->has_auth,
	};
	char path[256];
	int err = ctl_token_file(place->rundir, "token", token);

	if (o->switch_name) {
		snprintf(path, sizeof(path), "%.200s/switch-%.32s.ctl",
			 place->rundir, o->switch_name);
		config.switch_path = path;
	}
	if (!err)
		err = ctl_token_file(place->rundir, "admin-token", admin);
	return err ? err : mem_node_create(&config, out);
}

static void run(struct mem_node *node, const sigset_t *signals)
{
	const struct timespec tick = {.tv_nsec = MEM_TICK_MS * 1000000};
	int sig;

	for (;;) {
		sig = sigtimedwait(signals, NULL, &tick);
		if (sig > 0)
			break;
		mem_node_tick(node);
	}
	log_info("memnode", "node %s stops: %s", node->name, strsignal(sig));
}

static int serve(const struct mem_serve_options *o, const struct place *place,
		 const sigset_t *signals,
		 void (*ready)(void *ctx, const struct mem_serve_ready *what),
		 void *ctx)
{
	struct mem_serve_ready what = {
		.name = o->name,
		.rack = o->rack,
		.socket = place->socket,
		.pool_bytes = o->pool_bytes,
	};
	struct ctl_server_config http = {
		.unix_path = place->socket,
		.listen = o->listen,
		.tls_cert = o->tls_cert,
		.tls_key = o->tls_key,
		.handle = mem_node_handle,
	};
	struct env env = {.ops = &env_ops};
	struct ctl_server *server;
	struct mem_node *node;
	struct ctl_audit *audit;
	int err = ctl_audit_open(o->audit, o->audit_json, &audit);

	if (err)
		return err;
	err = make_node(o, place, &env, audit, &node);
	if (err) {
		ctl_audit_close(audit);
		return err;
	}
	http.ctx = node;
	err = ctl_server_start(&http, &server);
	if (!err) {
		what.port = ctl_server_port(server);
		ready(ctx, &what);
		run(node, signals);
		ctl_server_stop(server);
	}
	mem_node_destroy(node);
	ctl_audit_close(audit);
	return err;
}

int mem_serve(const struct mem_serve_options *o,
	      void (*ready)(void *ctx, const struct mem_serve_ready *what),
	      void *ctx)
{
	struct place place;
	sigset_t signals;
	int err, lock;

	if (!mem_node_name_is_valid(o->name))
		return error_set(-EINVAL,
				 "a node's name is 1 to %d of a-z, 0-9 and "
				 "'-', not '%.40s'",
				 MEM_NODE_NAME_MAX, o->name);
	/* Before any thread exists, so that only run() gets them. A client that
	 * hangs up must not end the node either. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 ||
	    signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(-EINVAL, "cannot set up signals");
	err = place_find(o->rack, o->name, &place);
	if (err)
		return err;
	lock = place_lock(&place, o->rack, o->name);
	if (lock < 0)
		return lock;
	err = serve(o, &place, &signals, ready, ctx);
	(void)close(lock); /* gives the name back */
	return err;
}
