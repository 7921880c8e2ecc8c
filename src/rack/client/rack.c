/* SPDX-License-Identifier: Apache-2.0 */
/* Racks: discovery, deadline, token, and the end of everything that hangs on
 * the handle. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/config.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rundir.h"
#include "client_priv.h"

enum {
	FORK_PAGE_BYTES = 4096,
};

int client_rack_check(const struct aq_rack *rack)
{
	if (LIKELY(*rack->is_own))
		return 0;
	return error_set(-ESTALE, "the rack was opened by the parent process; "
				  "after fork the child opens its own");
}

uint64_t client_rack_now_ns(const struct aq_rack *rack)
{
	return rack->transport->now_ns(rack->transport_ctx);
}

uint64_t client_rack_deadline_ns(const struct aq_rack *rack)
{
	return client_rack_now_ns(rack) + 1000000ull * aq_rack_deadline(rack);
}

uint32_t client_rack_left_ms(const struct aq_rack *rack, uint64_t deadline_ns)
{
	uint64_t now = client_rack_now_ns(rack);

	return deadline_ns <= now
		       ? 1
		       : (uint32_t)((deadline_ns - now) / 1000000 + 1);
}

uint64_t client_rack_share_ns(const struct aq_rack *rack, uint64_t deadline_ns,
			      uint32_t parts)
{
	uint64_t now = client_rack_now_ns(rack);

	return deadline_ns <= now ? deadline_ns
				  : now + (deadline_ns - now) / parts;
}

uint32_t client_rack_nodes(const struct aq_rack *rack)
{
	/* NODES-1: the nodes below the count are complete. */
	return atomic_load_explicit(&rack->node_count, memory_order_acquire);
}

const struct config *client_rack_listed(const struct aq_rack *rack)
{
	const char *listed = config_string(rack->config, "rack", "name");

	return strcmp(rack->name, listed) == 0 ? rack->config : NULL;
}

void client_rack_rescan(struct aq_rack *rack)
{
	struct client_node *found = calloc(CLIENT_NODE_MAX, sizeof(*found));
	unsigned i, j, count, known;

	if (!found)
		return;
	count = client_nodes_find(client_rack_listed(rack), rack->rundir,
				  found);
	count = client_control_scan(rack, found, count);
	pthread_mutex_lock(&rack->lock);
	known = client_rack_nodes(rack);
	for (i = 0; i < count; i++) {
		for (j = 0; j < known; j++)
			if (strcmp(rack->node[j].name, found[i].name) == 0)
				break;
		if (j < known || known == CLIENT_NODE_MAX)
			continue;
		rack->node[known++] = found[i];
		/* NODES-1, with client_rack_nodes: nobody sees half a node. */
		atomic_store_explicit(&rack->node_count, known,
				      memory_order_release);
	}
	pthread_mutex_unlock(&rack->lock);
	free(found);
}

/* ---- opening ------------------------------------------------------------ */

static int make_fork_page(struct aq_rack *rack)
{
	uint8_t *page = mmap(NULL, FORK_PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return error_set(-ENOMEM, "no memory for a rack");
	/* Without the kernel's help a child is not told apart; it is still
	 * wrong for it to use the rack. */
	if (madvise(page, FORK_PAGE_BYTES, MADV_WIPEONFORK) != 0)
		log_info("client", "a forked child will not be noticed");
	*page = 1;
	rack->is_own = page;
	return 0;
}

static int make_locks(struct aq_rack *rack)
{
	pthread_condattr_t attr;
	int err;

	err = pthread_key_create(&rack->key, NULL);
	if (err)
		return error_set(-err, "no key for per-thread contexts is left "
				       "in this process");
	pthread_mutex_init(&rack->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rack->keepalive_wake, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static int read_settings(struct aq_rack *rack, const char *name)
{
	int err = config_open(NULL, &rack->config);

	if (err)
		return err;
	if (!name)
		name = config_string(rack->config, "rack", "name");
	err = rundir_path(name, rack->rundir);
	if (err)
		return err;
	snprintf(rack->name, sizeof(rack->name), "%s", name);
	atomic_init(&rack->deadline_ms,
		    (uint32_t)config_int(rack->config, "rack", "deadline"));
	return 0;
}

/* At least one node has to answer; the others may come later. */
static int greet_nodes(struct aq_rack *rack)
{
	uint64_t deadline_ns = client_rack_deadline_ns(rack);
	uint32_t i, count = client_rack_nodes(rack);
	struct client_node_status status;
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (err)
		return err;
	if (count == 0)
		return client_nodes_none(rack->name, rack->rundir);
	for (i = 0; i < count; i++) {
		err = client_node_ask(
			t, i,
			client_rack_share_ns(rack, deadline_ns, count - i),
			&status);
		if (!err || err == -EPROTONOSUPPORT)
			return err;
	}
	return err;
}

int client_rack_open(const char *name, const struct client_transport *tr,
		     void *ctx, struct aq_rack **out)
{
	struct aq_rack *rack = calloc(1, sizeof(*rack));
	int err;

	if (!rack)
		return error_set(-ENOMEM, "no memory for a rack");
	rack->transport = tr;
	rack->transport_ctx = ctx;
	rack->heartbeat_ms = CLIENT_HEARTBEAT_MS;
	list_init(&rack->threads);
	list_init(&rack->bonds);
	list_init(&rack->keepalives);
	atomic_init(&rack->node_count, 0);
	err = make_fork_page(rack);
	if (err)
		goto err_free;
	err = make_locks(rack);
	if (err)
		goto err_unmap;
	err = read_settings(rack, name);
	if (err)
		goto err_close;
	/* Who only looks at a rack without a token is told by the node. */
	err = client_token_read(client_rack_listed(rack), rack->rundir,
				RACK_TOKEN_DEFAULT, rack->token);
	if (err && err != -ENOENT && err != -EACCES)
		goto err_close;
	client_rack_rescan(rack);
	err = greet_nodes(rack);
	if (err)
		goto err_close;
	*out = rack;
	return 0;

err_close:
	aq_rack_close(rack);
	return err;
err_unmap:
	munmap((void *)(uintptr_t)rack->is_own, FORK_PAGE_BYTES);
err_free:
	free(rack);
	return err;
}

/* ---- closing ------------------------------------------------------------ */

/* In the child everything belongs to the parent, and a lock may be held by a
 * thread that does not exist here: only the handle's memory is ours. */
static void forget(struct aq_rack *rack)
{
	if (rack->counters)
		counter_file_destroy(rack->counters);
	config_destroy(rack->config);
	munmap((void *)(uintptr_t)rack->is_own, FORK_PAGE_BYTES);
	free(rack);
}

void aq_rack_close(struct aq_rack *rack)
{
	struct list threads;

	if (!rack)
		return;
	pthread_key_delete(rack->key);
	if (!*rack->is_own) {
		forget(rack);
		return;
	}
	client_keep_stop(rack);
	client_heartbeat_stop(rack);
	client_threads_take(rack, &threads);
	while (!list_is_empty(&threads))
		client_thread_destroy(
			container_of(threads.next, struct client_thread, link));
	client_region_free_closed(rack);
	client_http_destroy(rack->control_http);
	if (rack->transport->rack_close)
		rack->transport->rack_close(rack);
	pthread_cond_destroy(&rack->keepalive_wake);
	pthread_mutex_destroy(&rack->lock);
	forget(rack);
}

/* ---- the public functions ----------------------------------------------- */

int aq_rack_open(const char *name, struct aq_rack **rack)
{
	return client_rack_open(name, client_transport_verbs(), NULL, rack);
}

int aq_rack_set_deadline(struct aq_rack *rack, uint32_t milliseconds)
{
	if (milliseconds < 1 || milliseconds > CLIENT_DEADLINE_MS_MAX)
		return error_set(-ERANGE,
				 "a deadline is from 1 to %d milliseconds",
				 CLIENT_DEADLINE_MS_MAX);
	atomic_store_explicit(&rack->deadline_ms, milliseconds,
			      memory_order_relaxed);
	return 0;
}

uint32_t aq_rack_deadline(const struct aq_rack *rack)
{
	return atomic_load_explicit(&rack->deadline_ms, memory_order_relaxed);
}

int aq_rack_set_token(struct aq_rack *rack, const char *token)
{
	if (!client_token_is_valid(token))
		return error_set(-EINVAL, "a token has 64 hexadecimal digits");
	pthread_mutex_lock(&rack->lock); /* the heartbeat may be reading it */
	memcpy(rack->token, token, CLIENT_TOKEN_MAX);
	rack->tenant[0] = 0; /* the next node that is asked says who that is */
	pthread_mutex_unlock(&rack->lock);
	return 0;
}

const char *aq_strerror(int err)
{
	return error_text(err);
}

const char *aq_last_error(void)
{
	return error_last();
}

const char *aq_version(void)
{
	return "1.0";
}
