/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's NIC and its loop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/counter.h"
#include "base/error.h"
#include "base/relax.h"
#include "client/verbs_api.h"
#include "eng_priv.h"

enum {
	PORT = 1,
};

static int open_nic(struct eng *eng)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct aqdv_device_attr extra = {0};
	struct ibv_port_attr port;

	if (list && list[0])
		eng->context = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	if (!eng->context)
		return error_set(-ENODEV,
				 "no RDMA device can be opened; 'aquifer "
				 "doctor' says more");
	if (ibv_query_port(eng->context, PORT, &port))
		return error_set(-EIO, "the NIC does not say what it can");
	eng->mtu = port.active_mtu;
	eng->can_auth = aqdv_query_device(eng->context, &extra) == 0 &&
			(extra.caps & AQDV_CAP_AUTH);
	if (eng->has_auth && !eng->can_auth)
		return error_set(-EOPNOTSUPP,
				 "nic.auth = psk: this NIC cannot authenticate "
				 "packets");
	eng->pd = ibv_alloc_pd(eng->context);
	eng->cq = eng->pd ? ibv_create_cq(eng->context, ENG_CQ_DEPTH, NULL,
					  NULL, 0)
			  : NULL;
	return eng->cq ? 0
		       : error_set(-errno, "no completion queue: %s",
				   strerror(errno));
}

static int make_counters(struct eng *eng, const char *rundir)
{
	int err = counter_file_create(rundir, eng->name, OFFLOAD_C_COUNT + 1, 0,
				      &eng->counters);

	if (err)
		return error_set(err, "no counters");
	eng->counter =
		counter_file_group(eng->counters, "engine", eng_counter_names,
				   eng_counter_help, OFFLOAD_C_COUNT);
	eng->sessions = counter_file_gauge(eng->counters, "engine.sessions", "",
					   "application threads attached");
	return eng->counter && eng->sessions
		       ? 0
		       : error_set(-ENOMEM, "no memory for "
					    "counters");
}

int eng_create(const struct daemon *d, const char *token, struct eng **out)
{
	const struct eng_options *o = d->self;
	struct offload_engine_config c = {.cq_depth = ENG_CQ_DEPTH,
					  .sessions_max = ENG_SESSION_MAX,
					  .memory_bytes = o->memory_bytes,
					  .batch = o->batch,
					  .flush_ns = 1000ull * o->flush_us,
					  .probe_max_ns =
						  1000ull * o->probe_max_us};
	struct eng *eng = calloc(1, sizeof(*eng));
	pthread_condattr_t attr;
	uint64_t incarnation = 0;
	int err;

	if (!eng)
		return error_set(-ENOMEM, "no memory for an engine");
	pthread_mutex_init(&eng->lock, NULL);
	pthread_mutex_init(&eng->rate_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&eng->wake, &attr);
	pthread_condattr_destroy(&attr);
	atomic_init(&eng->waiting, 0);
	(void)snprintf(eng->name, sizeof(eng->name), "%s", d->options.name);
	eng->has_auth =
		strcmp(config_string(d->config, "nic", "auth"), "psk") == 0;
	eng->audit = d->audit;
	eng->clock = client_clock_real();
	eng->start_ns = client_clock_now_ns(eng->clock);
	eng->batch = o->batch;
	eng->flush_us = o->flush_us;
	eng->session_max = o->sessions ? o->sessions : ENG_SESSION_MAX;
	err = getrandom(&incarnation, sizeof(incarnation), 0) ==
			      sizeof(incarnation)
		      ? ctl_token_hash(token, &eng->token)
		      : error_set(-EIO, "the kernel gives no random numbers");
	ctl_incarnation_format(incarnation, eng->incarnation);
	if (!err)
		err = make_counters(eng, d->rundir);
	if (!err && o->switch_name)
		err = eng_switch_open(eng, d);
	else if (!err)
		err = open_nic(eng);
	if (!err && !eng->at_switch) {
		c.clock = eng->clock;
		c.verbs = client_verbs_choose();
		c.pd = eng->pd;
		c.cq = eng->cq;
		c.counters = eng->counter;
		err = offload_engine_create(&c, &eng->core);
	}
	if (err) {
		eng_destroy(eng);
		return err;
	}
	*out = eng;
	return 0;
}

void eng_destroy(struct eng *eng)
{
	for (unsigned i = 0; i < ENG_SESSION_MAX; i++)
		if (eng->session[i])
			eng_session_end(eng, eng->session[i]);
	free(eng->at_switch);
	if (eng->core)
		offload_engine_destroy(eng->core);
	if (eng->cq)
		(void)ibv_destroy_cq(eng->cq); /* unused by now */
	if (eng->pd)
		(void)ibv_dealloc_pd(eng->pd);
	if (eng->context)
		(void)ibv_close_device(eng->context); /* the end anyway */
	if (eng->counters)
		counter_file_destroy(eng->counters);
	pthread_cond_destroy(&eng->wake);
	pthread_mutex_destroy(&eng->rate_lock);
	pthread_mutex_destroy(&eng->lock);
	free(eng);
}

static bool is_awaited(struct eng *eng)
{
	/* W1, pairs with W0; the lock orders the rest. */
	return atomic_load_explicit(&eng->waiting, memory_order_relaxed) > 0;
}

uint64_t eng_run(struct eng *eng)
{
	uint64_t now_ns, next_ns;
	unsigned work = 0, i;

	pthread_mutex_lock(&eng->lock);
	for (i = 0; i < ENG_STEPS && !is_awaited(eng); i++) {
		unsigned n = offload_engine_step(eng->core);

		work += n;
		if (n == 0)
			break;
	}
	now_ns = client_clock_now_ns(eng->clock);
	if (now_ns >= eng->tick_ns) {
		eng->tick_ns = now_ns + ENG_TICK_MS * 1000000ull;
		eng_tick(eng);
	}
	next_ns =
		work || is_awaited(eng) ? 0 : offload_engine_next_ns(eng->core);
	if (next_ns == 0) {
		/* Requests are on the wire, or there was something to do. A
		 * peer that does not answer is not worth a whole processor. */
		eng->idle = work ? 0 : eng->idle + 1;
		if (eng->idle > ENG_IDLE_YIELDS)
			next_ns = now_ns + ENG_NAP_NS;
	}
	pthread_mutex_unlock(&eng->lock);
	if (is_awaited(eng))
		relax_briefly();
	return next_ns;
}

void eng_sleep(struct eng *eng, uint64_t until_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(until_ns / 1000000000),
			      .tv_nsec = (long)(until_ns % 1000000000)};

	pthread_mutex_lock(&eng->lock);
	/* Whether time or a start ends it does not matter. */
	(void)pthread_cond_timedwait(&eng->wake, &eng->lock, &ts);
	pthread_mutex_unlock(&eng->lock);
}
