/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a daemon, and the loop until a signal comes. */
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

static int work(struct daemon *d)
{
	struct eng *eng = d->served;
	uint64_t look_ns = 0;

	if (eng->at_switch) {
		while (!daemon_is_ending(d, ENG_TICK_MS))
			eng_switch_tick(eng);
		return 0;
	}
	for (;;) {
		uint64_t next_ns = eng_run(eng);
		uint64_t now_ns = client_clock_now_ns(eng->clock);

		if (now_ns >= look_ns) {
			look_ns = now_ns + ENG_TICK_MS * 1000000ull;
			if (daemon_is_ending(d, 0))
				return 0;
		}
		if (next_ns == 0) {
			client_clock_relax(eng->clock);
		} else if (next_ns > now_ns) {
			eng_sleep(eng,
				  u64_min(next_ns, now_ns + ENG_SLEEP_MAX_NS));
		}
	}
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
