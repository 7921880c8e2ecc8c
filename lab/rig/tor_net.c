/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of the simulated network as ports of a switch, and its clock. */
#include "tor_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "sim/net_fabric.h"
#include "stage.h"
#include "wire/wire.h"

struct rig_tor {
	struct env env;
	struct sim *sim;
	struct sim_net *net;
	struct rig_tor_config cfg;
	struct rng rand;
	struct tor *tor;
	struct tor_port *ports[TOR_PORT_MAX];
	unsigned port_count; /* of the network that are known */
	struct tor_link *links[TOR_PORT_MAX];
	struct sim_event tick;
	struct waiting *first, **last; /* for the core */
	struct sim_event served;
	uint64_t frames;
	unsigned runs;
	uint64_t restart_at; /* 0: never */
	unsigned restart_when;
	bool is_dying; /* sends one more frame and no other */
	uint32_t last_words;
	void (*restarted)(void *ctx);
	void *restarted_ctx;
};

/* A frame that waits for the core. */
struct waiting {
	struct waiting *next;
	struct sim_port *from;
	size_t len_bytes;
	uint8_t frame[];
};

/* What a port of the switch stands for. */
struct tor_link {
	struct rig_tor *tor;
	struct sim_port *port;
};

static struct rig_tor *of_env(struct env *env)
{
	return container_of(env, struct rig_tor, env);
}

static uint64_t env_now(struct env *env)
{
	return sim_now_ns(of_env(env)->sim);
}

static void env_bytes(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&of_env(env)->rand, buf, len_bytes);
}

static const struct env_ops env_ops = {.now_ns = env_now, .random = env_bytes};

static bool port_tx(void *ctx, const uint8_t *frame, size_t len_bytes,
		    const void *hint)
{
	struct tor_link *l = ctx;

	if (l->tor->is_dying && l->tor->last_words++)
		return true;
	sim_net_emit(l->port, frame, len_bytes);
	return true;
}

static const struct tor_port_ops port_ops = {.tx = port_tx};

/* A timer is due a tick after its deadline at the latest; earlier calls do no
 * harm. */
static void set_tick(struct rig_tor *t)
{
	uint64_t due_ns = tor_next_deadline_ns(t->tor);

	if (due_ns == UINT64_MAX)
		sim_cancel(t->sim, &t->tick);
	else
		sim_schedule_at(t->sim, &t->tick, due_ns * 1000);
}

static void on_tick(struct sim *sim, struct sim_event *ev)
{
	struct rig_tor *t = container_of(ev, struct rig_tor, tick);

	tor_tick(t->tor);
	set_tick(t);
}

static int add_ports(struct rig_tor *t);

static void take_frame(struct rig_tor *t, struct sim_port *from,
		       const uint8_t *frame, size_t len_bytes)
{
	bool dies;

	/* Hosts that came later; one of them may be whom it is for. */
	if (sim_net_port(t->net, t->port_count))
		ASSERT(add_ports(t) == 0);
	t->frames++;
	dies = t->frames == t->restart_at;
	t->is_dying = dies && t->restart_when == RIG_KILL_INSIDE;
	if (!dies || t->restart_when != RIG_KILL_BEFORE) {
		tor_begin(t->tor);
		tor_input(t->ports[sim_port_index(from)], frame, len_bytes,
			  NULL);
		tor_end(t->tor);
	}
	t->is_dying = false;
	if (dies) {
		ASSERT(rig_tor_restart(t) == 0);
		t->restarted(t->restarted_ctx);
	}
	set_tick(t);
}

static void on_served(struct sim *sim, struct sim_event *ev)
{
	struct rig_tor *t = container_of(ev, struct rig_tor, served);
	struct waiting *w = t->first;

	t->first = w->next;
	if (!t->first)
		t->last = &t->first;
	else
		sim_schedule_at(sim, ev, sim_now_ps(sim) + t->cfg.packet_ps);
	take_frame(t, w->from, w->frame, w->len_bytes);
	free(w);
}

static void on_frame(void *ctx, struct sim_port *from, const uint8_t *frame,
		     size_t len_bytes)
{
	struct rig_tor *t = ctx;
	struct waiting *w;

	if (!t->cfg.packet_ps) {
		take_frame(t, from, frame, len_bytes);
		return;
	}
	w = malloc(sizeof(*w) + len_bytes);
	ASSERT(w);
	w->next = NULL;
	w->from = from;
	w->len_bytes = len_bytes;
	memcpy(w->frame, frame, len_bytes);
	if (!t->first)
		sim_schedule_at(t->sim, &t->served,
				sim_now_ps(t->sim) + t->cfg.packet_ps);
	*t->last = w;
	t->last = &w->next;
}

void rig_tor_restart_at(struct rig_tor *t, uint64_t frame, unsigned when,
			void (*fn)(void *ctx), void *ctx)
{
	t->restart_at = frame;
	t->restart_when = when;
	t->restarted = fn;
	t->restarted_ctx = ctx;
}

unsigned rig_tor_runs(const struct rig_tor *t)
{
	return t->runs;
}

uint64_t rig_tor_frames(const struct rig_tor *t)
{
	return t->frames;
}

static int add_ports(struct rig_tor *t)
{
	struct sim_port *p;

	for (unsigned i = t->port_count; (p = sim_net_port(t->net, i)); i++) {
		char name[16];
		struct tor_port_config cfg = {.name = name, .ops = &port_ops};
		int err;

		snprintf(name, sizeof(name), "h%u", i);
		if (!t->links[i]) {
			t->links[i] = malloc(sizeof(*t->links[i]));
			if (!t->links[i])
				return -ENOMEM;
			*t->links[i] = (struct tor_link){t, p};
		}
		cfg.ctx = t->links[i];
		err = tor_port_add(t->tor, &cfg, &t->ports[i]);
		if (!err)
			err = tor_port_claim(t->ports[i], sim_port_addr(p)->ip,
					     0);
		if (err)
			return err;
		t->port_count = i + 1;
	}
	return 0;
}

static int make(struct rig_tor *t)
{
	struct tor_config cfg = {.env = &t->env, .slot_shift = 24};
	int err = tor_create(&cfg, &t->tor);

	t->runs++;
	if (!err)
		err = add_ports(t);
	for (unsigned i = 0; !err && i < t->cfg.program_count; i++)
		err = tor_program_add_text(t->tor, t->cfg.programs[i]);
	return err;
}

int rig_tor_create(struct sim_net *net, const struct rig_tor_config *cfg,
		   struct rig_tor **out)
{
	struct rig_tor *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->env.ops = &env_ops;
	t->net = net;
	t->sim = sim_net_sim(net);
	t->cfg = *cfg;
	sim_rand_init(&t->rand, sim_seed(t->sim), 4242);
	sim_event_init(&t->tick, on_tick);
	sim_event_init(&t->served, on_served);
	t->last = &t->first;
	err = make(t);
	sim_net_set_switch(net, on_frame, t);
	if (err) {
		rig_tor_destroy(t);
		return err;
	}
	*out = t;
	return 0;
}

void rig_tor_destroy(struct rig_tor *t)
{
	if (!t)
		return;
	sim_net_set_switch(t->net, NULL, NULL);
	sim_cancel(t->sim, &t->tick);
	sim_cancel(t->sim, &t->served);
	while (t->first) {
		struct waiting *w = t->first;

		t->first = w->next;
		free(w);
	}
	tor_destroy(t->tor);
	for (unsigned i = 0; i < TOR_PORT_MAX; i++)
		free(t->links[i]);
	free(t);
}

int rig_tor_restart(struct rig_tor *t)
{
	tor_destroy(t->tor);
	t->tor = NULL;
	memset(t->ports, 0, sizeof(t->ports));
	t->port_count = 0;
	sim_cancel(t->sim, &t->tick);
	return make(t);
}

struct tor *rig_tor_get(struct rig_tor *t)
{
	return t->tor;
}

int rig_tor_tell(struct rig_tor *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int err;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tor_tick(t->tor); /* the time of the call */
	err = tor_control(rig_tor_get(t), text, NULL);
	set_tick(t);
	return err;
}

void rig_tor_ask(struct rig_tor *t, const char *line, char *out,
		 size_t out_bytes)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json_out json;

	out[0] = '\0';
	ASSERT(f);
	json_out_init(&json, f);
	json_out_object(&json, NULL);
	if (tor_control(t->tor, line, &json) == 0) {
		json_out_close(&json);
		if (json_out_end(&json) == 0 && fflush(f) == 0)
			snprintf(out, out_bytes, "%s", text);
	}
	fclose(f);
	free(text);
}

uint64_t rig_tor_count(struct rig_tor *t, const char *name)
{
	char *text = NULL, quoted[64];
	uint64_t value = 0;
	struct json_out out;
	const char *at;
	size_t len = 0;
	FILE *f = t ? open_memstream(&text, &len) : NULL;

	if (!f)
		return 0;
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	tor_report(t->tor, &out);
	json_out_close(&out);
	if (json_out_end(&out) == 0 && fclose(f) == 0) {
		snprintf(quoted, sizeof(quoted), "\"%s\":", name);
		at = strstr(text, quoted);
		value = at ? strtoull(at + strlen(quoted), NULL, 10) : 0;
	}
	free(text);
	return value;
}

void rig_ip_text(const uint8_t ip[16], char out[INET6_ADDRSTRLEN])
{
	bool v4 = wire_is_ipv4(ip);

	(void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip + 12 : ip, out,
			INET6_ADDRSTRLEN);
}
