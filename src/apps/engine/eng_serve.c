/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a daemon, and its work until a signal comes. */
#include "base/error.h"
#include "base/log.h"
#include "eng_priv.h"
#include "uplink/uplink.h"

static int open_engine(struct daemon *d)
{
	char token[CTL_TOKEN_TEXT];
	struct eng *eng = NULL;
	int err = daemon_token(d, RACK_TOKEN_ENGINE, token);

	if (!err)
		err = eng_create(d, token, &eng);
	d->served = eng;
	return err;
}

/* An engine works without state; only its token is another one after a reboot.
 */
static int allow(struct daemon *d)
{
	if (daemon_allow_state(d))
		log_info("engine", "no state: %s", error_last());
	return 0;
}

/* At each tick of the first thread. */
static bool tick(void *ctx)
{
	struct daemon *d = ctx;
	struct eng *eng = d->served;

	eng_enter(eng);
	eng_tick(eng);
	eng_workers_count(eng);
	eng_leave(eng);
	return !daemon_is_ending(d, 0);
}

static int work(struct daemon *d)
{
	struct eng *eng = d->served;
	int err = 0;

	if (eng->at_switch) {
		while (!daemon_is_ending(d, ENG_TICK_MS))
			eng_switch_tick(eng);
		return 0;
	}
	err = eng_workers_start(eng);
	if (!err)
		eng_worker_loop(&eng->worker[0], tick, d);
	eng_workers_join(eng);
	return err;
}

static int run(struct daemon *d)
{
	struct uplink *up =
		uplink_show(d, &(struct uplink_config){.kind = "engine"});
	int err = work(d);

	uplink_stop(up);
	return err;
}

static int close_engine(struct daemon *d)
{
	if (d->served)
		eng_destroy(d->served);
	return 0;
}

const struct daemon_kind eng_daemon = {
	.what = "an engine",
	.suffix = ".engine",
	.handle = eng_handle,
	.allow = allow,
	.open = open_engine,
	.run = run,
	.close = close_engine,
};
