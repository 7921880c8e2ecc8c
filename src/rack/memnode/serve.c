/* SPDX-License-Identifier: Apache-2.0 */
/* The node as a daemon. */
#include <stdio.h>
#include <string.h>

#include "base/config_named.h"
#include "base/error.h"
#include "base/statedir.h"
#include "mem_priv.h"
#include "uplink/uplink.h"

/* ---- life --------------------------------------------------------------- */

static enum rack_token_kind kind_of(bool is_admin)
{
	return is_admin ? RACK_TOKEN_ADMIN : RACK_TOKEN_DEFAULT;
}

static int keep_token(void *ctx, bool is_admin, const char *token)
{
	return daemon_token_keep(ctx, kind_of(is_admin), token);
}

static bool has_jit(const struct daemon *d)
{
	return strcmp(config_string(d->config, "walk", "jit"), "off") != 0;
}

/* Files, and, where walks become machine code, pages that hold it. */
static int allow(struct daemon *d)
{
	const char *vault = config_string(d->config, "rack", "vault");
	const struct mem_serve *s = d->self;
	int err = daemon_allow_state(d);

	if (!err && s->spill_dir[0])
		err = confine_add(&d->confine, CONFINE_WRITE, s->spill_dir);
	d->confine.makes_code = has_jit(d);
	return err || vault_place_is_s3(vault)
		       ? err
		       : confine_add(&d->confine, CONFINE_WRITE, vault);
}

static int set_walks(const struct daemon *d, struct mem_walk_config *c)
{
	c->has_jit = has_jit(d);
	c->iterations = (uint32_t)config_int(d->config, "walk", "iterations");
	c->longest = (uint32_t)config_int(d->config, "walk", "longest");
	c->programs = (uint32_t)config_int(d->config, "walk", "programs");
	return mem_walk_gauge(c->has_jit, &c->gauge);
}

/* Of the nodes of this file that share memory the first one leads, unless it
 * says who. */
static const char *find_lead(const struct daemon *d, const char *told)
{
	const struct config *c = d->config;

	if (told && *told)
		return told;
	for (unsigned i = 0; i < config_named_count(c, "memory"); i++) {
		const char *name = config_named_name(c, "memory", i);
		const char *size = config_named_text(c, "memory", i, "shared");

		if (name && strpbrk(size, "123456789")) /* it is not 0 */
			return name;
	}
	return NULL;
}

static int open_node(struct daemon *d)
{
	const char *port = config_string(d->config, "nic", "port");
	char token[CTL_TOKEN_TEXT], admin[CTL_TOKEN_TEXT];
	char dir[STATEDIR_PATH_MAX], state[STATEDIR_PATH_MAX + 64];
	char path[CTL_SWITCH_PATH_MAX];
	struct mem_serve *s = d->self;
	struct mem_node *node;
	struct mem_node_config config = {
		.name = d->options.name,
		.pool_bytes = s->pool_bytes,
		.shared_bytes = s->shared_bytes,
		.shared_lead = find_lead(d, s->lead),
		.spill_dir = s->spill_dir[0] ? s->spill_dir : NULL,
		.spill_bytes = s->spill_bytes,
		.ready_bytes = s->ready_bytes,
		.has_numa = s->has_numa,
		.numa = s->numa,
		.default_token = token,
		.admin_token = admin,
		.state_path = state,
		.env = &s->env,
		.audit = d->audit,
		.rundir = d->rundir,
		.has_auth = strcmp(config_string(d->config, "nic", "auth"),
				   "psk") == 0,
		.keep_token = keep_token,
		.keep_ctx = d,
		.vault = config_string(d->config, "rack", "vault"),
		.vault_endpoint =
			config_string(d->config, "rack", "vault_endpoint"),
		.vault_region =
			config_string(d->config, "rack", "vault_region"),
	};
	int err = statedir_make(d->rack, dir);

	s->env.ops = &daemon_env_ops;
	if (strncmp(port, "switch:", 7) == 0) {
		if (!err)
			err = ctl_switch_path(d->rundir, port + 7, path);
		config.switch_path = path;
	}
	if (err)
		return err;
	(void)snprintf(state, sizeof(state), "%s/%.32s.tenants.json", dir,
		       d->options.name);
	err = daemon_token(d, RACK_TOKEN_DEFAULT, token);
	if (!err)
		err = daemon_token(d, RACK_TOKEN_ADMIN, admin);
	if (!err)
		err = set_walks(d, &config.walk);
	if (!err)
		err = mem_node_create(&config, &node);
	if (!err)
		d->served = node;
	return err;
}

/* ---- the controller ----------------------------------------------------- */

static void wake(void *ctx)
{
	uplink_wake(ctx);
}

static bool is_fresh(void *ctx)
{
	return uplink_is_fresh(ctx);
}

/* Where rack.control names one: the node joins, and beats until it ends. */
static int join(struct daemon *d)
{
	struct mem_serve *s = d->self;
	const struct uplink_config config = {
		.kind = "memory",
		.incarnation = mem_node_incarnation(d->served),
		.size_bytes = s->pool_bytes,
		.ctx = d->served,
		.joined = mem_node_joined,
		.say = mem_node_say,
		.hear = mem_node_hear,
	};
	int err = uplink_join(d, &config, &s->uplink);

	if (!err && s->uplink)
		mem_node_control(d->served, &(struct mem_control){
						    s->uplink, wake, is_fresh});
	return err;
}

static int run(struct daemon *d)
{
	struct mem_serve *s = d->self;
	int err = join(d);

	if (err)
		return err;
	while (!daemon_is_ending(d, MEM_TICK_MS))
		mem_node_tick(d->served);
	/* Requests under way may still look at it, so it is only forgotten. */
	mem_node_control(d->served, &(struct mem_control){0});
	uplink_stop(s->uplink);
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
	.routes = &mem_routes,
	.allow = allow,
	.open = open_node,
	.run = run,
	.close = close_node,
};
