/* SPDX-License-Identifier: Apache-2.0 */
/* The switch process: its life, its loop, and links as ports. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "base/log.h"
#include "base/rundir.h"
#include "os/os_limits.h"
#include "os/slice.h"
#include "patience.h"
#include "switchd_priv.h"
#include "uplink/uplink.h"

enum {
	BATCH = 64,
	IDLES_PER_NUDGE = 64,
	COUNTER_ENTRIES = 2048, /* ports behind that count unseen */
	STAT_COUNT = sizeof(struct os_board_stats) / sizeof(uint64_t),
};

#define EVENTS_NS 1000000ull /* between looks at sockets while polling */

/* ---- links are ports ---------------------------------------------------- */

static bool port_tx(void *ctx, const uint8_t *frame, size_t len_bytes,
		    const void *hint)
{
	return os_link_tx(ctx, frame, len_bytes, hint);
}

static void port_flush(void *ctx)
{
	os_link_flush(ctx);
}

static bool port_tx_traced(void *ctx, const uint8_t *frame, size_t len_bytes,
			   const void *hint)
{
	const struct switchd *s = os_link_driver(ctx);

	trace_out(s->trace, os_link_user(ctx), frame, len_bytes);
	return os_link_tx(ctx, frame, len_bytes, hint);
}

static uint8_t *port_tx_begin(void *ctx, size_t len_bytes)
{
	return os_link_tx_begin(ctx, len_bytes);
}

static void port_tx_end(void *ctx, size_t len_bytes)
{
	os_link_tx_end(ctx, len_bytes);
}

static const struct tor_port_ops port_ops = {.tx = port_tx,
					     .flush = port_flush};
static const struct tor_port_ops roomy_ops = {.tx = port_tx,
					      .tx_begin = port_tx_begin,
					      .tx_end = port_tx_end,
					      .flush = port_flush};
static const struct tor_port_ops traced_ops = {.tx = port_tx_traced,
					       .flush = port_flush};

static int claim(struct switchd *s, struct tor_port *port,
		 const struct os_link *link)
{
	static const uint8_t none[16];
	uint8_t ips[2][16];
	uint32_t slot;

	if (!os_link_claims(link, ips, &slot))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		int err = memcmp(ips[i], none, 16)
				  ? tor_port_claim(port, ips[i], slot)
				  : 0;

		if (err)
			return err;
		if (memcmp(ips[i], none, 16))
			trace_claim(s->trace, port, ips[i], slot);
	}
	return 0;
}

static const struct tor_port_ops *ops_of(const struct switchd *s,
					 const struct os_link *link)
{
	if (s->trace)
		return &traced_ops;
	return os_link_has_room(link) ? &roomy_ops : &port_ops;
}

static int link_up(void *ctx, struct os_link *link)
{
	struct switchd *s = ctx;
	char prefix[COUNTER_NAME_MAX];
	struct tor_port_config cfg = {
		.name = os_link_name(link),
		.ops = ops_of(s, link),
		.ctx = link,
		.takes_hints = os_link_takes_hints(link),
	};
	struct tor_port *port;
	int err;

	snprintf(prefix, sizeof(prefix), "port.%.24s", cfg.name);
	cfg.counters = counter_file_group(
		s->counters, prefix, tor_port_counter_names,
		tor_port_counter_help, TOR_PORT_COUNTER_COUNT);
	if (!cfg.counters)
		return -ENOMEM;
	err = tor_port_add(s->tor, &cfg, &port);
	if (!err) {
		os_link_set_user(link, port);
		trace_port(s->trace, port, true);
		err = claim(s, port, link);
		if (err)
			trace_port(s->trace, port, false);
		if (err)
			tor_port_remove(port);
	}
	if (err)
		counter_file_release(s->counters, cfg.counters);
	else
		log_info("switch", "port %s is up", cfg.name);
	return err;
}

static void link_down(void *ctx, struct os_link *link)
{
	struct switchd *s = ctx;
	struct tor_port *port = os_link_user(link);
	uint64_t *counters = tor_port_counters(port);

	log_info("switch", "port %s is down", os_link_name(link));
	trace_port(s->trace, port, false);
	tor_port_remove(port);
	counter_file_release(s->counters, counters);
}

HOT static void link_input(void *ctx, struct os_link *link,
			   const uint8_t *frame, size_t len_bytes,
			   const void *hint)
{
	trace_in(((struct switchd *)ctx)->trace, os_link_user(link), frame,
		 len_bytes);
	tor_input(os_link_user(link), frame, len_bytes, hint);
}

static void on_event(void *ctx, int fd)
{
	struct switchd *s = ctx;

	if (fd == s->daemon->signal_fd)
		(void)daemon_is_ending(s->daemon, 0); /* the loop looks, too */
	else
		(void)control_event(s, fd);
}

static const struct os_board_ops board_ops = {
	.link_up = link_up,
	.link_down = link_down,
	.input = link_input,
	.event = on_event,
};

/* ---- the loop ----------------------------------------------------------- */

static int report(const struct switchd *s)
{
	struct json_out out;

	json_out_init(&out, stdout);
	json_out_object(&out, NULL);
	json_out_string(&out, "switch", s->daemon->options.name);
	tor_report(s->tor, &out);
	json_out_close(&out);
	return json_out_end(&out);
}

static void tick(struct switchd *s)
{
	trace_turn(s->trace, s->tor, 't');
	tor_tick(s->tor);
	trace_tick(s->trace);
}

static int work(struct daemon *d)
{
	struct switchd *s = d->served;
	struct env *env = os_board_env(s->board);
	uint64_t start_ns = env_now_ns(env), events_ns = 0;
	struct patience patience;
	bool has_short_slice = false;
	uint32_t idle = 0;

	patience_init(&patience,
		      s->opt->yields ? s->opt->yields
				     : (uint32_t)config_int(d->config, "nic",
							    "engine_yields"));
	while (d->signal == 0) {
		uint64_t now_ns, due_ns;

		trace_turn(s->trace, s->tor, 'b');
		tor_begin(s->tor);
		idle = os_board_poll(s->board, BATCH) ? 0 : idle + 1;
		tor_end(s->tor);
		trace_turn(s->trace, s->tor, 0);
		now_ns = env_now_ns(env);
		due_ns = tor_next_deadline_ns(s->tor);
		if (due_ns <= now_ns)
			tick(s);
		if (s->opt->run_ns && now_ns - start_ns >= s->opt->run_ns)
			break;
		if (now_ns >= events_ns) {
			events_ns = now_ns + EVENTS_NS;
			os_board_events(s->board);
		}
		if (!idle) {
			slice_set(&has_short_slice, false);
			continue;
		}
		if (idle % IDLES_PER_NUDGE == 0)
			os_board_nudge(s->board);
		if (patience_is_over(&patience, idle, now_ns)) {
			slice_set(&has_short_slice, true);
			os_board_sleep(
				s->board,
				u64_min(due_ns, now_ns + OS_SLEEP_MAX_NS));
			idle = 0;
		} else {
			patience_yield(&patience, env, now_ns);
		}
	}
	return s->opt->report ? report(s) : 0;
}

static int run(struct daemon *d)
{
	char address[CLIENT_ADDRESS_MAX];
	struct uplink *up;
	int err;

	(void)snprintf(address, sizeof(address), "unix:%.200s/switch-%.32s.ctl",
		       d->rundir, d->options.name);
	up = uplink_show(d, &(struct uplink_config){.kind = "switch",
						    .address = address});
	err = work(d);
	uplink_stop(up);
	return err;
}

/* ---- life --------------------------------------------------------------- */

static const char *const stat_names[] = {
#define NAME(name, help) #name,
	OS_BOARD_STATS(NAME)
#undef NAME
};

static const char *const stat_help[] = {
#define HELP(name, help) help,
	OS_BOARD_STATS(HELP)
#undef HELP
};

static int open_tor(struct switchd *s)
{
	struct tor_config cfg = {
		.env = os_board_env(s->board),
		.slot_shift = NIC_QPN_INDEX_BITS,
	};
	char name[COUNTER_PROCESS_MAX];
	uint64_t *stats;
	int err;

	snprintf(name, sizeof(name), "switch-%.16s", s->daemon->options.name);
	err = counter_file_create(s->daemon->rundir, name, COUNTER_ENTRIES, 0,
				  &s->counters);
	if (err)
		return err;
	cfg.counters =
		counter_file_group(s->counters, "switch", tor_counter_names,
				   tor_counter_help, TOR_COUNTER_COUNT);
	stats = counter_file_group(s->counters, "board", stat_names, stat_help,
				   STAT_COUNT);
	if (!cfg.counters || !stats)
		return -ENOMEM;
	os_board_set_stats(s->board, (void *)stats);
	return tor_create(&cfg, &s->tor);
}

static int add_programs(const struct switchd_options *o, struct tor *tor,
			struct trace *trace)
{
	for (unsigned i = 0; i < o->program_count; i++) {
		int err = tor_program_add_text(tor, o->programs[i]);

		trace_program(trace, o->programs[i]);

		if (err)
			return err;
	}
	return 0;
}

static int add_addresses(struct switchd *s)
{
	for (unsigned i = 0; i < s->opt->address_count; i++) {
		const char *text = s->opt->addresses[i];
		uint8_t ip[16] = {[10] = 0xff, 0xff};
		int err;

		if (inet_pton(AF_INET, text, ip + 12) != 1 &&
		    inet_pton(AF_INET6, text, ip) != 1)
			return error_set(-EINVAL, "'%.46s' is no IP address",
					 text);
		err = tor_address_set(s->tor, ip);
		if (err)
			return err;
		trace_address(s->trace, ip);
	}
	return 0;
}

static int add_port(struct switchd *s, const char *text)
{
	if (strncmp(text, "raw:", 4) == 0)
		return os_board_add_raw(s->board, text + 4);
	if (strncmp(text, "udp:", 4) == 0)
		return os_board_add_udp(s->board, text + 4);
	return error_set(-EINVAL,
			 "'%.40s' is no port; a port is raw:INTERFACE or "
			 "udp:ADDRESS",
			 text);
}

static int open_all(struct switchd *s)
{
	const struct switchd_options *o = s->opt;
	struct os_board_config cfg = {.rack = s->daemon->rack,
				      .name = s->daemon->options.name,
				      .ops = &board_ops,
				      .ctx = s};
	int err = o->trace ? trace_open(o->trace, &s->trace) : 0;
	uint64_t run;

	if (!err)
		err = os_board_open(&cfg, &s->board);

	if (!err) {
		env_random(os_board_env(s->board), &run, sizeof(run));
		snprintf(s->run, sizeof(s->run), "%016" PRIx64, run);
		err = open_tor(s);
	}
	if (!err)
		err = add_addresses(s);
	if (!err)
		err = add_programs(o, s->tor, s->trace);
	for (unsigned i = 0; !err && i < o->port_count; i++)
		err = add_port(s, o->ports[i]);
	if (!err)
		err = os_board_watch(s->board, s->daemon->signal_fd);
	return err ? err : control_open(s);
}

static int open_switch(struct daemon *d)
{
	struct switchd *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory for a switch");
	s->daemon = d;
	s->opt = d->self;
	s->ctl_fd = -1;
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		s->clients[i] = -1;
	d->served = s;
	err = d->options.listen ? switch_http_create(d, &s->http) : 0;
	return err ? err : open_all(s);
}

static int close_switch(struct daemon *d)
{
	struct switchd *s = d->served;
	int err;

	if (!s)
		return 0;
	control_close(s);
	os_board_close(s->board);
	tor_destroy(s->tor);
	if (s->counters)
		counter_file_destroy(s->counters);
	switch_http_destroy(s->http);
	err = trace_close(s->trace);
	free(s);
	return err;
}

static int allow(struct daemon *d)
{
	const struct switchd_options *o = d->self;
	int err = confine_add_parent(&d->confine, CONFINE_WRITE, o->trace);

	/* For its tokens. */
	return err || !d->options.listen ? err : daemon_allow_state(d);
}

static void handle(void *ctx, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	const struct switchd *s = ctx;

	switch_http_handle(s->http, request, reply);
}

const struct daemon_kind switchd_daemon = {
	.what = "a switch",
	.handle = handle,
	.allow = allow,
	.open = open_switch,
	.run = run,
	.close = close_switch,
};

/* ---- without a process -------------------------------------------------- */

static uint64_t zero_now(struct env *env)
{
	return 1;
}

static void zero_random(struct env *env, void *buf, size_t len_bytes)
{
	memset(buf, 0, len_bytes);
}

int switchd_resources(const struct switchd_options *o, FILE *stream)
{
	static const struct env_ops ops = {.now_ns = zero_now,
					   .random = zero_random};
	struct env env = {.ops = &ops};
	struct tor_config cfg = {.env = &env, .slot_shift = NIC_QPN_INDEX_BITS};
	struct json_out out;
	struct tor *tor;
	int err = tor_create(&cfg, &tor);

	if (err)
		return err;
	err = add_programs(o, tor, NULL);
	if (!err) {
		json_out_init(&out, stream);
		json_out_object(&out, NULL);
		tor_report_resources(tor, &out);
		json_out_close(&out);
		err = json_out_end(&out);
	}
	tor_destroy(tor);
	return err;
}
