/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer shared serve`: this machine's cache of coherent shared memory, until
 * a signal ends it. */
#include "cli_daemon.h"
#include "cli_shared.h"
#include "sharedd/sharedd.h"

static void say_ready(struct daemon *d)
{
	cli_daemon_ready(
		d, json_pack("{s:s, s:s}", "shared", "serve", "rack", d->rack),
		"cache of shared memory of rack %s: ready\n", d->rack);
}

int cli_shared_serve(void *args)
{
	const struct cli_shared_args *a = args;
	struct shd_options options = {.cache_bytes = a->cache_bytes,
				      .idle_ms = a->idle_ms};
	struct cli_daemon d = {
		.daemon.options = {.name = a->name,
				   .user = a->user,
				   .is_unconfined = a->is_unconfined},
		.json = a->common.json};

	return cli_daemon_run(&d, &shd_daemon, &options, say_ready);
}
