/* SPDX-License-Identifier: Apache-2.0 */
/* How daemons join: what of them the controller is told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "uplink.h"

static void make_incarnation(char out[UP_INCARNATION_TEXT])
{
	struct env env = {.ops = &daemon_env_ops};
	uint64_t number;

	env_random(&env, &number, sizeof(number));
	(void)snprintf(out, UP_INCARNATION_TEXT, "%016llx",
		       (unsigned long long)number);
}

static int start(const struct daemon *d, const struct uplink_config *c,
		 const char *token, struct uplink **out)
{
	char address[DAEMON_ADDRESS_MAX], incarnation[UP_INCARNATION_TEXT];
	struct uplink_config config = *c;

	config.config = d->config;
	config.rundir = d->rundir;
	config.token = token;
	if (!config.name)
		config.name = d->options.name;
	if (!config.address) {
		daemon_address(d, address);
		config.address = address;
	}
	if (!config.incarnation) {
		make_incarnation(incarnation);
		config.incarnation = incarnation;
	}
	return uplink_start(&config, out);
}

int uplink_join(const struct daemon *d, const struct uplink_config *c,
		struct uplink **out)
{
	char token[SECRET_TEXT];
	int err;

	*out = NULL;
	if (!uplink_is_wanted(d->config))
		return 0;
	err = daemon_token(d, RACK_TOKEN_NODE, token);
	if (!err)
		err = start(d, c, token, out);
	secret_forget(token);
	return err;
}

struct uplink *uplink_show(const struct daemon *d,
			   const struct uplink_config *c)
{
	struct uplink *u = NULL;
	char token[SECRET_TEXT];
	int err;

	if (!uplink_is_wanted(d->config))
		return NULL;
	err = daemon_token_find(d, RACK_TOKEN_NODE, token);
	if (!err)
		err = start(d, c, token, &u);
	if (err)
		log_info("uplink", "the controller is not told of this %s: %s",
			 c->kind, error_last());
	error_clear();
	secret_forget(token);
	return u;
}
