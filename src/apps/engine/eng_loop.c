/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a whole: its NIC, its counters, its beginning and end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/counter.h"
#include "base/error.h"
#include "eng_priv.h"

enum {
	PORT = 1,
};

static int open_nic(struct eng *eng, bool gather_off)
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
	eng->can_gather = (extra.caps & AQDV_CAP_WALK) && !gather_off;
	if (eng->has_auth && !eng->can_auth)
		return error_set(-EOPNOTSUPP,
				 "nic.auth = psk: this NIC cannot authenticate "
				 "packets");
	eng->pd = ibv_alloc_pd(eng->context);
	return eng->pd ? 0
		       : error_set(-errno, "no protection domain: %s",
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
	struct eng *eng = calloc(1, sizeof(*eng));
	uint64_t incarnation = 0;
	int err;

	if (!eng)
		return error_set(-ENOMEM, "no memory for an engine");
	pthread_mutex_init(&eng->lock, NULL);
	pthread_mutex_init(&eng->rate_lock, NULL);
	atomic_init(&eng->waiting, 0);
	atomic_init(&eng->is_ending, false);
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
		err = open_nic(eng, o->gather_off);
	if (!err && !eng->at_switch)
		err = eng_workers_open(eng, o);
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
	eng_workers_close(eng);
	if (eng->pd)
		(void)ibv_dealloc_pd(eng->pd);
	if (eng->context)
		(void)ibv_close_device(eng->context); /* the end anyway */
	if (eng->counters)
		counter_file_destroy(eng->counters);
	pthread_mutex_destroy(&eng->rate_lock);
	pthread_mutex_destroy(&eng->lock);
	free(eng);
}
