/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this machine: one soft NIC per address, "aq0", "aq1" and so
 * on. In each rack that the process opens, a device has a host of its own,
 * which all users in the process share. They are configured by rack.ini and the
 * environment, count in the process's counter files, and are forgotten by the
 * child of a fork.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/config_key.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/rundir.h"
#include "os_priv.h"

#define STAT_COUNT (sizeof(struct os_stats) / sizeof(uint64_t))

enum {
	HOSTS_MAX = 32
};

/* A device in a rack. */
struct place {
	struct os_host *host; /* NULL: nobody has it open */
	unsigned index;	      /* of the device */
	unsigned users;
	char rack[OS_RACK_NAME_MAX];
	struct counter_file *counters;
};

/* verbs has one list of devices per process, so there is one of these. */
struct provider {
	pthread_mutex_t mutex; /* held by the last close until all is gone */
	struct place places[HOSTS_MAX];
};

static struct provider provider = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- configuration ------------------------------------------------------ */

/* The address at `index` of a list; false: it has fewer. */
static bool pick(const char *list, unsigned index, char out[INET6_ADDRSTRLEN])
{
	while (index--) {
		list += strcspn(list, ",");
		list += *list == ',';
	}
	snprintf(out, INET6_ADDRSTRLEN, "%.*s", (int)strcspn(list, ","), list);
	return out[0];
}

static int read_address(const char *text, struct os_config *cfg)
{
	if (inet_pton(AF_INET, text, cfg->address) == 1)
		return 0;
	if (inet_pton(AF_INET6, text, cfg->address6) != 1)
		return error_set(-EINVAL, "nic.address is %s: no IP address",
				 text);
	memcpy(cfg->address, cfg->address6 + 12, sizeof(cfg->address));
	return 0;
}

static void read_port(const char *text, struct os_config *cfg)
{
	if (strcmp(text, "cable") == 0)
		cfg->port = OS_PORT_CABLE;
	else if (strcmp(text, "udp") == 0)
		cfg->port = OS_PORT_UDP;
	if (strncmp(text, "raw:", 4) == 0) {
		cfg->port = OS_PORT_RAW;
		snprintf(cfg->interface, sizeof(cfg->interface), "%s",
			 text + 4);
	}
	if (strncmp(text, "switch:", 7) == 0) {
		cfg->port = OS_PORT_SWITCH;
		snprintf(cfg->interface, sizeof(cfg->interface), "%s",
			 text + 7);
	}
}

static int read_config(unsigned index, const char *rack, struct os_config *cfg)
{
	char address[INET6_ADDRSTRLEN];
	const char *list;
	struct config *c;
	int err;

	os_config_init(cfg);
	err = config_open(NULL, &c);
	if (err)
		return err;
	list = config_string(c, "nic", "addresses");
	if (!list[0])
		list = config_string(c, "nic", "address");
	snprintf(cfg->rack, sizeof(cfg->rack), "%s",
		 rack ? rack : config_string(c, "rack", "name"));
	cfg->idle_turns = (uint32_t)config_int(c, "nic", "engine_yields");
	cfg->mtu = (uint32_t)config_int(c, "nic", "mtu");
	cfg->watch_unmap = config_bool(c, "nic", "watch_unmap");
	cfg->loss_ppm = (uint32_t)config_int(c, "nic", "loss_ppm");
	read_port(config_string(c, "nic", "port"), cfg);
	err = pick(list, index, address) ? read_address(address, cfg) : -ENODEV;
	config_destroy(c);
	cfg->pcap_path = secure_getenv("AQUIFER_PCAP");
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
static void open_counters(struct place *p, struct os_config *cfg)
{
	char path[RUNDIR_PATH_MAX], name[16] = "nic";
	const char *dir = rundir_make(cfg->rack, path) ? NULL : path;
	struct counter_file *f;

	if (p->index)
		snprintf(name, sizeof(name), "nic%u", p->index);
	if (counter_file_create(dir, name, NIC_COUNTER_COUNT + STAT_COUNT, 0,
				&f))
		return;
	p->counters = f;
	cfg->nic_counters =
		counter_file_group(f, "nic", nic_counter_names,
				   nic_counter_help, NIC_COUNTER_COUNT);
	cfg->stats = (void *)counter_file_group(f, "os", stat_names, stat_help,
						STAT_COUNT);
}

static void close_counters(struct place *p)
{
	if (p->counters)
		counter_file_destroy(p->counters);
	p->counters = NULL;
}

/* ---- fork --------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&provider.mutex);
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		if (provider.places[i].host)
			lock_take(&provider.places[i].host->base.lock);
}

static void parent_after_fork(void)
{
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		if (provider.places[i].host)
			lock_drop(&provider.places[i].host->base.lock);
	pthread_mutex_unlock(&provider.mutex);
}

/* The inherited hosts stay in memory, dead: somebody may hold a context. The
 * next open makes a new one. */
static void child_after_fork(void)
{
	for (unsigned i = 0; i < HOSTS_MAX; i++) {
		struct place *p = &provider.places[i];

		if (p->host)
			host_forget(p->host);
		if (p->counters)
			counter_file_after_fork(p->counters);
		*p = (struct place){0};
	}
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

static bool provider_put(unsigned place)
{
	pthread_mutex_lock(&provider.mutex);
	if (--provider.places[place].users > 0) {
		pthread_mutex_unlock(&provider.mutex);
		return false;
	}
	return true;
}

static void provider_closed(unsigned place)
{
	provider.places[place].host = NULL;
	close_counters(&provider.places[place]);
	pthread_mutex_unlock(&provider.mutex);
}

static struct place *find(unsigned index, const char *rack)
{
	for (unsigned i = 0; i < HOSTS_MAX; i++) {
		struct place *p = &provider.places[i];

		if (p->host && p->index == index && strcmp(p->rack, rack) == 0)
			return p;
	}
	return NULL;
}

static struct place *find_free(void)
{
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		if (!provider.places[i].host)
			return &provider.places[i];
	return NULL;
}

static int open_first(unsigned index, struct os_config *cfg, struct place **out)
{
	struct place *p = find_free();
	struct nic_host *host;
	int err;

	if (!p)
		return error_set(-EMFILE, "this process has its %d NICs open",
				 HOSTS_MAX);
	p->index = index;
	memcpy(p->rack, cfg->rack, sizeof(p->rack));
	open_counters(p, cfg);
	err = os_host_open(cfg, &host);
	if (err) {
		close_counters(p);
		return err;
	}
	p->host = host_of(host);
	p->host->place = (unsigned)(p - provider.places);
	p->host->put = provider_put;
	p->host->closed = provider_closed;
	*out = p;
	return 0;
}

/* A bad configuration is reported by open, so there is something to open. */
static unsigned provider_count(void *ctx)
{
	struct os_config cfg;
	unsigned n = 1;

	while (n < CONFIG_ADDRESSES_MAX && read_config(n, NULL, &cfg) == 0)
		n++;
	return n;
}

static void provider_describe(void *ctx, unsigned index, char name[64],
			      uint64_t *guid)
{
	struct os_config cfg;

	snprintf(name, 64, "aq%u", index);
	if (read_config(index, NULL, &cfg))
		os_config_init(&cfg);
	*guid = host_guid(cfg.address);
}

static int provider_open(void *ctx, unsigned index, const char *rack,
			 struct nic_host **out)
{
	struct os_config cfg;
	struct place *p;
	int err;

	if (index >= CONFIG_ADDRESSES_MAX)
		return -ENODEV;
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&provider.mutex);
	err = read_config(index, rack, &cfg);
	if (!err) {
		p = find(index, cfg.rack);
		if (!p)
			err = open_first(index, &cfg, &p);
	}
	if (!err) {
		p->users++;
		*out = &p->host->base;
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
