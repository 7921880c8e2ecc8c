/* SPDX-License-Identifier: Apache-2.0 */
/* Several HTTP requests at the same time, by one thread. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "http_priv.h"

struct client_http_set {
	CURLM *multi;
	int busy; /* requests that were started and not taken */
};

int client_http_set_create(struct client_http_set **out)
{
	struct client_http_set *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(-ENOMEM, "no memory for HTTP requests");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		goto err_free;
	s->multi = curl_multi_init();
	if (!s->multi)
		goto err_cleanup;
	*out = s;
	return 0;

err_cleanup:
	curl_global_cleanup();
err_free:
	free(s);
	return error_set(-ENOMEM, "libcurl cannot be started");
}

void client_http_set_destroy(struct client_http_set *s)
{
	if (!s)
		return;
	(void)curl_multi_cleanup(s->multi); /* it is empty */
	curl_global_cleanup();
	free(s);
}

int client_http_set_start(struct client_http_set *s, struct client_http *h,
			  const struct client_http_request *req)
{
	int err = client_http_begin(h, req);
	CURLMcode code;

	if (err)
		return err;
	curl_easy_setopt(h->curl, CURLOPT_PRIVATE, h);
	code = curl_multi_add_handle(s->multi, h->curl);
	if (code != CURLM_OK) {
		struct client_http_reply none;

		(void)!client_http_end(h, req, CURLE_OUT_OF_MEMORY, &none);
		return error_set(-ENOMEM, "no request can be started: %s",
				 curl_multi_strerror(code));
	}
	h->request = req;
	s->busy++;
	return 0;
}

void client_http_set_wait(struct client_http_set *s, uint32_t timeout_ms)
{
	int running, ready;

	/* What fails here ends with its own deadline. */
	(void)curl_multi_perform(s->multi, &running);
	/* One that was refused at once has ended: its time counts. */
	if (running < s->busy)
		return;
	(void)curl_multi_poll(s->multi, NULL, 0, (int)timeout_ms, &ready);
	(void)curl_multi_perform(s->multi, &running);
}

void client_http_set_wake(struct client_http_set *s)
{
	(void)curl_multi_wakeup(s->multi); /* else it wakes up by itself */
}

struct client_http *client_http_set_next(struct client_http_set *s, int *err,
					 struct client_http_reply *reply)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(s->multi, &left))) {
		const struct client_http_request *req;
		CURLcode code = m->data.result;
		struct client_http *h;
		char *own = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &own);
		h = (struct client_http *)(void *)own;
		(void)curl_multi_remove_handle(s->multi, h->curl);
		s->busy--;
		req = h->request;
		h->request = NULL;
		*err = client_http_end(h, req, code, reply);
		return h;
	}
	return NULL;
}

void client_http_set_drop(struct client_http_set *s, struct client_http *h)
{
	struct client_http_reply none;

	if (!h->request)
		return;
	(void)curl_multi_remove_handle(s->multi, h->curl);
	s->busy--;
	(void)!client_http_end(h, h->request, CURLE_ABORTED_BY_CALLBACK, &none);
	h->request = NULL;
}
