/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a switch and its ports; batches and time. */
#include "tor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "own_address.h"
#include "tor_priv.h"

const char *const tor_counter_names[TOR_COUNTER_COUNT] = {
#define NAME(name, help) #name,
	TOR_COUNTERS(NAME)};

const char *const tor_port_counter_names[TOR_PORT_COUNTER_COUNT] = {
	TOR_PORT_COUNTERS(NAME)
#undef NAME
};

const char *const tor_counter_help[TOR_COUNTER_COUNT] = {
#define HELP(name, help) help,
	TOR_COUNTERS(HELP)};

const char *const tor_port_counter_help[TOR_PORT_COUNTER_COUNT] = {
	TOR_PORT_COUNTERS(HELP)
#undef HELP
};

/* ---- life --------------------------------------------------------------- */

int tor_create(const struct tor_config *cfg, struct tor **out)
{
	struct tor *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	err = fdb_init(&t->fdb,
		       cfg->fdb_entries ? cfg->fdb_entries : TOR_FDB_ENTRIES);
	if (err) {
		free(t);
		return err;
	}
	t->env = cfg->env;
	t->slot_shift = cfg->slot_shift;
	t->counters = cfg->counters ? cfg->counters : t->own_counters;
	t->now_ns = env_now_ns(t->env);
	t->epoch = t->wants_epoch = 1;
	timer_wheel_init(&t->timers, t->now_ns);
	*out = t;
	return 0;
}

void tor_destroy(struct tor *tor)
{
	if (!tor)
		return;
	for (unsigned i = 0; i < tor->program_count; i++)
		tor_instance_release(&tor->programs[i]);
	for (unsigned i = 0; i < tor->port_count; i++)
		free(tor->ports[i]);
	fdb_release(&tor->fdb);
	free(tor);
}

uint64_t tor_counter(const struct tor *tor, enum tor_counter c)
{
	return tor->counters[c];
}

struct timer_wheel *tor_timers(struct tor *tor)
{
	return &tor->timers;
}

uint64_t tor_now_ns(const struct tor *tor)
{
	return tor->now_ns;
}

uint64_t tor_awake_ns(const struct tor *tor)
{
	return tor->awake.since_ns;
}

struct env *tor_env(struct tor *tor)
{
	return tor->env;
}

/* ---- ports -------------------------------------------------------------- */

int tor_port_add(struct tor *tor, const struct tor_port_config *cfg,
		 struct tor_port **out)
{
	struct tor_port *p;
	unsigned id = 0;

	while (id < tor->port_count && tor->ports[id])
		id++;
	if (id == TOR_PORT_MAX)
		return -ENOSPC;
	p = aligned_alloc(CACHE_LINE, align_up(sizeof(*p), CACHE_LINE));
	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	p->tor = tor;
	p->id = (uint16_t)id;
	p->up = true;
	p->ops = cfg->ops;
	p->ctx = cfg->ctx;
	p->takes_hints = cfg->takes_hints;
	p->counters = cfg->counters ? cfg->counters : p->own_counters;
	snprintf(p->name, sizeof(p->name), "%s", cfg->name);
	tor->ports[id] = p;
	if (id == tor->port_count)
		tor->port_count++;
	*out = p;
	return 0;
}

static void recount_claims(struct tor *t)
{
	t->claims = 0;
	for (uint32_t i = 0; i < t->fdb.buckets * TOR_FDB_WAYS; i++)
		t->claims += t->fdb.entries[i].key.kind == FDB_CLAIM;
}

void tor_port_remove(struct tor_port *port)
{
	struct tor *t = port->tor;

	ASSERT(!port->touched);
	for (unsigned i = 0; i < t->program_count; i++)
		if (t->programs[i].program->port_gone)
			t->programs[i].program->port_gone(t->programs[i].state,
							  port);
	tor_ends_forget_port(t, port);
	fdb_forget_port(&t->fdb, port->id);
	tor_flows_forget(t);
	recount_claims(t);
	t->ports[port->id] = NULL;
	while (t->port_count && !t->ports[t->port_count - 1])
		t->port_count--;
	free(port);
}

void tor_port_set_up(struct tor_port *port, bool up)
{
	port->up = up;
}

int tor_port_claim(struct tor_port *port, const uint8_t ip[16], uint32_t slot)
{
	struct tor *t = port->tor;
	struct fdb_key key = {.kind = FDB_CLAIM, .slot = slot};
	struct fdb_entry *e, *all;
	bool evicted;

	memcpy(key.addr, ip, 16);
	e = fdb_find(&t->fdb, &key);
	if (e)
		return e->port == port->id ? 0 : -EEXIST;
	e = fdb_place(&t->fdb, &key, &evicted);
	if (!e)
		return -ENOSPC;
	e->port = port->id;
	key.kind = FDB_CLAIMED;
	key.slot = 0;
	all = fdb_place(&t->fdb, &key, &evicted);
	if (!all) {
		*e = (struct fdb_entry){0};
		return -ENOSPC;
	}
	all->uses++;
	port->has_claim = true;
	t->claims++;
	tor_flows_forget(t);
	return 0;
}

const char *tor_port_name(const struct tor_port *port)
{
	return port->name;
}

unsigned tor_port_id(const struct tor_port *port)
{
	return port->id;
}

uint64_t tor_port_counter(const struct tor_port *port, enum tor_port_counter c)
{
	return port->counters[c];
}

uint64_t *tor_port_counters(struct tor_port *port)
{
	return port->counters;
}

/* ---- its own addresses -------------------------------------------------- */

bool tor_is_own(const struct tor *t, const uint8_t ip[16])
{
	for (unsigned i = 0; i < t->own_count; i++)
		if (memcmp(t->own_ip[i], ip, 16) == 0)
			return true;
	return false;
}

int tor_own_add(struct tor *t, const uint8_t ip[16])
{
	if (tor_is_own(t, ip))
		return 0;
	if (t->own_count == TOR_OWN_MAX)
		return error_set(-ENOSPC, "a switch has up to %d own addresses",
				 TOR_OWN_MAX);
	memcpy(t->own_ip[t->own_count++], ip, 16);
	tor_flows_forget(t);
	return 0;
}

/* ---- batches ------------------------------------------------------------ */

HOT void tor_begin(struct tor *tor)
{
	tor->now_ns = env_now_ns(tor->env);
	awake_look(&tor->awake, tor->now_ns, TOR_PAUSE_NS);
}

HOT void tor_input(struct tor_port *port, const uint8_t *frame,
		   size_t len_bytes, const void *hint)
{
	struct tor *t = port->tor;

	count(t, TOR_C_frames);
	if (UNLIKELY(!port->up)) {
		port->counters[TOR_P_rx_down]++;
		return;
	}
	port->counters[TOR_P_rx_frames]++;
	port->counters[TOR_P_rx_bytes] += len_bytes;
	if (UNLIKELY(len_bytes < WIRE_ETH_BYTES)) {
		count(t, TOR_C_short_frames);
		return;
	}
	tor_learn(port, frame, len_bytes);
	if (UNLIKELY(t->address_count) &&
	    own_address_answer(port, frame, len_bytes))
		return;
	if (t->program_count == 0)
		tor_forward(t, port, NULL, frame, len_bytes, hint);
	else
		tor_run_input(port, frame, len_bytes, hint);
}

HOT void tor_end(struct tor *tor)
{
	for (unsigned i = 0; i < tor->program_count; i++)
		if (tor->programs[i].program->batch_end)
			tor->programs[i].program->batch_end(
				tor->programs[i].state);
	for (unsigned i = 0; i < tor->touched_count; i++) {
		struct tor_port *p = tor->touched[i];

		p->touched = false;
		p->ops->flush(p->ctx);
	}
	tor->touched_count = 0;
}

void tor_tick(struct tor *tor)
{
	tor_begin(tor);
	timer_wheel_advance(&tor->timers, tor->now_ns);
	tor_end(tor);
}

uint64_t tor_next_deadline_ns(const struct tor *tor)
{
	return timer_wheel_next_ns(&tor->timers);
}
