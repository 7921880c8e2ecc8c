/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread has of its own in a rack; it ends with the thread or with
 * the rack, whichever is first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "client_priv.h"

static int thread_create(struct aq_rack *rack, struct client_thread **out)
{
	struct client_thread *t = calloc(1, sizeof(*t));
	int err;
	unsigned i;

	if (!t)
		return error_set(-ENOMEM, "no memory for a thread's context");
	t->rack = rack;
	list_init(&t->link);
	for (i = 0; i < CLIENT_NODE_MAX; i++) {
		t->conn[i].thread = t;
		t->conn[i].node = i;
		client_bond_init(&t->conn[i].bond, i);
	}
	err = client_http_create(&t->http);
	if (err)
		goto err_free;
	t->caller = (struct client_caller){.http = t->http,
					   .send = rack->transport->http,
					   .send_ctx = rack->transport_ctx,
					   .token = rack->token};
	err = pthread_setspecific(rack->key, t);
	if (err) {
		err = error_set(-err, "no memory for a thread's context");
		goto err_http;
	}
	err = client_thread_watch_end(t);
	if (err) {
		(void)pthread_setspecific(rack->key, NULL); /* it was set */
		goto err_http;
	}
	pthread_mutex_lock(&rack->lock);
	list_append(&rack->threads, &t->link);
	pthread_mutex_unlock(&rack->lock);
	*out = t;
	return 0;

err_http:
	client_http_destroy(t->http);
err_free:
	free(t);
	return err;
}

int client_thread_get(struct aq_rack *rack, struct client_thread **out)
{
	struct client_thread *t;
	int err = client_rack_check(rack);

	if (UNLIKELY(err))
		return err;
	t = pthread_getspecific(rack->key);
	if (UNLIKELY(!t))
		return thread_create(rack, out);
	*out = t;
	return 0;
}

int client_thread_open(struct client_thread *t)
{
	struct aq_rack *rack = t->rack;
	int err = 0;

	if (LIKELY(t->is_open))
		return 0;
	pthread_mutex_lock(&rack->lock);
	if (!t->counters)
		err = client_tally_thread(t);
	pthread_mutex_unlock(&rack->lock);
	if (!err)
		err = rack->transport->thread_open(t);
	if (!err)
		t->is_open = true;
	return err;
}

void client_thread_destroy(struct client_thread *t)
{
	struct aq_rack *rack = t->rack;
	unsigned i;

	for (i = 0; i < CLIENT_NODE_MAX; i++)
		client_conn_close(&t->conn[i]);
	if (t->is_open)
		rack->transport->thread_close(t);
	pthread_mutex_lock(&rack->lock);
	list_remove(&t->link);
	client_tally_thread_end(t);
	pthread_mutex_unlock(&rack->lock);
	for (i = 0; i < CLIENT_REGION_MAX; i++)
		free(t->view[i]);
	client_http_destroy(t->http);
	free(t);
}

int client_thread_call(struct client_thread *t, uint32_t node,
		       const char *method, const char *path, json_t *body,
		       uint64_t deadline_ns, json_t **reply)
{
	return client_call(&t->caller, &t->rack->node[node], method, path, body,
			   client_rack_left_ms(t->rack, deadline_ns),
			   CLIENT_REPLY_MAX, reply);
}

void client_thread_tell(struct client_thread *t, uint32_t node,
			const char *method, const char *path,
			uint64_t deadline_ns)
{
	char words[ERROR_TEXT_MAX];
	int before = error_last_code(), err;
	json_t *reply = NULL;

	snprintf(words, sizeof(words), "%s", error_last());
	err = client_thread_call(t, node, method, path, NULL, deadline_ns,
				 &reply);
	json_decref(reply);
	if (!err)
		return;
	log_debug("client", "%s %s: %s", method, path, error_last());
	/* Nobody hears of this failure. Whoever closes something because of
	 * another one still has the words of that. */
	if (before)
		(void)error_set(before, "%s", words);
	else
		error_clear();
}
