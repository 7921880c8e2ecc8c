/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device of this machine: one soft NIC, "aq0", whose host is shared by all
 * users in the process. It is configured by rack.ini and the environment,
 * counts in the process's counter file, and is forgotten by the child of a
 * fork.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "counter.h"
#include "error.h"
#include "os_priv.h"
#include "rundir.h"

#define STAT_COUNT (sizeof(struct os_stats) / sizeof(uint64_t))

/* verbs has one list of devices per process, so there is one of these. */
struct provider {
	pthread_mutex_t mutex; /* held by the last close until all is gone */
	struct os_host *host;
	unsigned users;
	struct counter_file *counters;
};

static struct provider provider = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- configuration ------------------------------------------------------ */

static int read_config(struct os_config *cfg)
{
	const char *address, *rack;
	struct config *c;
	int err;

	os_config_init(cfg);
	err = config_open(NULL, &c);
	if (err)
		return err;
	rack = config_string(c, "rack", "name");
	address = config_string(c, "nic", "address");
	snprintf(cfg->rack, sizeof(cfg->rack), "%s", rack);
	cfg->engine_yields = (uint32_t)config_int(c, "nic", "engine_yields");
	if (inet_pton(AF_INET, address, cfg->address) != 1)
		err = error_set(-EINVAL,
				"nic.address is %s: the soft NIC needs an IPv4 "
				"address",
				address);
	config_destroy(c);
	cfg->pcap_path = getenv("AQUIFER_PCAP");
	return err;
}

/* ---- counters ----------------------------------------------------------- */

static const char *const stat_names[] = {
#define STAT_NAME(name, help) #name,
	OS_STATS(STAT_NAME)
#undef STAT_NAME
};

static const char *const stat_help[] = {
#define STAT_HELP(name, help) help,
	OS_STATS(STAT_HELP)
#undef STAT_HELP
};

/* Counters that nobody can see are no reason not to run. */
static void open_counters(struct os_config *cfg)
{
	char path[RUNDIR_PATH_MAX];
	const char *dir = rundir_make(cfg->rack, path) ? NULL : path;
	struct counter_file *f;

	if (counter_file_create(dir, "nic", NIC_COUNTER_COUNT + STAT_COUNT, 0,
				&f))
		return;
	provider.counters = f;
	cfg->nic_counters =
		counter_file_group(f, "nic", nic_counter_names,
				   nic_counter_help, NIC_COUNTER_COUNT);
	cfg->stats = (void *)counter_file_group(f, "os", stat_names, stat_help,
						STAT_COUNT);
}

static void close_counters(void)
{
	if (provider.counters)
		counter_file_destroy(provider.counters);
	provider.counters = NULL;
}

/* ---- fork --------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&provider.mutex);
	if (provider.host)
		lock_take(&provider.host->base.lock);
}

static void parent_after_fork(void)
{
	if (provider.host)
		lock_drop(&provider.host->base.lock);
	pthread_mutex_unlock(&provider.mutex);
}

/* The inherited host stays in memory, dead: somebody may hold a context. The
 * next open makes a new one. */
static void child_after_fork(void)
{
	if (provider.host)
		host_forget(provider.host);
	provider.host = NULL;
	provider.users = 0;
	provider.counters = NULL;
	pthread_mutex_init(&provider.mutex, NULL);
}

static void watch_forks(void)
{
	int err = pthread_atfork(before_fork, parent_after_fork,
				 child_after_fork);

	if (err)
		log_warn("os", "forks are not watched: %s", error_text(err));
}

/* ---- the device --------------------------------------------------------- */

static bool provider_put(void)
{
	pthread_mutex_lock(&provider.mutex);
	if (--provider.users > 0) {
		pthread_mutex_unlock(&provider.mutex);
		return false;
	}
	return true;
}

static void provider_closed(void)
{
	provider.host = NULL;
	close_counters();
	pthread_mutex_unlock(&provider.mutex);
}

static int open_first(void)
{
	struct nic_host *host;
	struct os_config cfg;
	int err = read_config(&cfg);

	if (err)
		return err;
	open_counters(&cfg);
	err = os_host_open(&cfg, &host);
	if (err) {
		close_counters();
		return err;
	}
	provider.host = host_of(host);
	provider.host->put = provider_put;
	provider.host->closed = provider_closed;
	return 0;
}

static unsigned provider_count(void *ctx)
{
	return 1;
}

static void provider_describe(void *ctx, unsigned index, char name[64],
			      uint64_t *guid)
{
	struct os_config cfg;

	snprintf(name, 64, "aq%u", index);
	/* A bad configuration is reported by open. */
	if (read_config(&cfg))
		os_config_init(&cfg);
	*guid = host_guid(cfg.address);
}

static int provider_open(void *ctx, unsigned index, struct nic_host **out)
{
	int err = 0;

	if (index != 0)
		return -ENODEV;
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&provider.mutex);
	if (!provider.host)
		err = open_first();
	if (!err) {
		provider.users++;
		*out = &provider.host->base;
	}
	pthread_mutex_unlock(&provider.mutex);
	if (err)
		log_err("os", "the soft NIC cannot be opened: %s",
			error_last_code() == err ? error_last()
						 : error_text(err));
	return err;
}

const struct nic_provider *verbs_default_provider(void)
{
	static const struct nic_provider self = {
		.count = provider_count,
		.describe = provider_describe,
		.open = provider_open,
	};

	return &self;
}
