/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that answers requests for pages. It starts with the first client
 * that wants to be answered that way. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "base/relax.h"
#include "mem_priv.h"

static void *run(void *arg)
{
	struct mem_node *node = arg;
	unsigned idle = 0;

	/* By itself, as a confined process can. */
	(void)pthread_setname_np(pthread_self(), "aq-pages");
	/* Relaxed: nothing else hangs on it. */
	while (!atomic_load_explicit(&node->server_stops,
				     memory_order_relaxed)) {
		if (pframe_server_step(node->server)) {
			idle = 0;
		} else if (++idle < MEM_PAGE_YIELDS && !relax_is_crowded()) {
			relax_briefly();
		} else {
			/* Among strangers at once: a request wakes us sooner
			 * than we would look, and naps in vain take the core
			 * from who works. */
			pframe_server_wait(node->server, MEM_PAGE_SLEEP_MS);
			idle = 0;
		}
	}
	return NULL;
}

int page_thread_start(struct mem_node *node)
{
	sigset_t all, before;
	int err;

	if (node->server)
		return 0;
	err = pframe_server_create(node->context, &node->server);
	if (err)
		return err;
	atomic_init(&node->server_stops, false);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&node->server_thread, NULL, run, node);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		return 0;
	pframe_server_destroy(node->server);
	node->server = NULL;
	return error_set(-err, "no thread for pages: %s", strerror(err));
}

void page_thread_stop(struct mem_node *node)
{
	if (!node->server)
		return;
	atomic_store_explicit(&node->server_stops, true, memory_order_relaxed);
	(void)pthread_join(node->server_thread, NULL);
	pframe_server_destroy(node->server);
	node->server = NULL;
}
