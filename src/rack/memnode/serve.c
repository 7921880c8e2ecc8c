/* SPDX-License-Identifier: Apache-2.0 */
/* The node as a daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "mem_priv.h"

/* ---- the env: only what a node needs, not what a NIC does --------------- */

static uint64_t now_ns(struct env *env)
{
	return clock_mono_ns();
}

static void random_bytes(struct env *env, void *buf, size_t len_bytes)
{
	uint8_t *p = buf;

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
	relax_briefly();
}

static const struct env_ops env_ops = {
	.now_ns = now_ns,
	.random = random_bytes,
	.relax = relax,
};

/* ---- life --------------------------------------------------------------- */

/* All below $AQUIFER_STATEDIR: a file system may be mounted over the rack's own
 * while the node runs. */
static int allow(struct daemon *d)
{
	char state[MEM_STATE_PATH_MAX];
	int err = mem_state_dir(d->rack, state);

	return err ? err
		   : confine_add_parent(&d->confine, CONFINE_WRITE, state);
}

static int open_node(struct daemon *d)
{
	const char *port = config_string(d->config, "nic", "port");
	char token[CTL_TOKEN_TEXT], admin[CTL_TOKEN_TEXT];
	char dir[MEM_STATE_PATH_MAX], state[MEM_STATE_PATH_MAX + 64];
	char path[RUNDIR_PATH_MAX + 64];
	struct mem_serve *s = d->self;
	struct mem_node *node;
	struct mem_node_config config = {
		.name = d->options.name,
		.pool_bytes = s->pool_bytes,
		.default_token = token,
		.admin_token = admin,
		.state_path = state,
		.env = &s->env,
		.audit = d->audit,
		.has_auth = strcmp(config_string(d->config, "nic", "auth"),
				   "psk") == 0,
	};
	int err = mem_state_dir(d->rack, dir);

	s->env.ops = &env_ops;
	if (strncmp(port, "switch:", 7) == 0) {
		(void)snprintf(path, sizeof(path), "%s/switch-%.32s.ctl",
			       d->rundir, port + 7);
		config.switch_path = path;
	}
	if (err)
		return err;
	(void)snprintf(state, sizeof(state), "%s/%.32s.tenants.json", dir,
		       d->options.name);
	err = ctl_token_file(d->rundir, "token", token);
	if (!err)
		err = ctl_token_file(d->rundir, "admin-token", admin);
	if (!err)
		err = mem_node_create(&config, &node);
	if (!err)
		d->served = node;
	return err;
}

static int run(struct daemon *d)
{
	while (!daemon_is_ending(d, MEM_TICK_MS))
		mem_node_tick(d->served);
	return 0;
}

static int close_node(struct daemon *d)
{
	if (d->served)
		mem_node_destroy(d->served);
	return 0;
}

const struct daemon_kind mem_daemon = {
	.what = "a memory node",
	.suffix = "",
	.handle = mem_node_handle,
	.allow = allow,
	.open = open_node,
	.run = run,
	.close = close_node,
};
