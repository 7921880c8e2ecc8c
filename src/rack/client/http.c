/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP through libcurl; only what a node's interface needs. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "http_priv.h"

int client_http_create(struct client_http **out)
{
	struct client_http *h = calloc(1, sizeof(*h));

	if (!h)
		return error_set(-ENOMEM, "no memory for an HTTP client");
	/* Since 7.84 this is safe from any thread and counts its calls. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		goto err_free;
	h->curl = curl_easy_init();
	if (!h->curl)
		goto err_cleanup;
	*out = h;
	return 0;

err_cleanup:
	curl_global_cleanup();
err_free:
	free(h);
	return error_set(-ENOMEM, "libcurl cannot be started");
}

void client_http_destroy(struct client_http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->curl);
	curl_global_cleanup();
	free(h->text);
	free(h);
}

static size_t take_bytes(char *data, size_t one, size_t count, void *user)
{
	struct client_http *h = user;
	size_t len = one * count;

	if (len > h->max_bytes - h->len_bytes)
		return 0;
	if (h->len_bytes + len + 1 > h->room_bytes) {
		size_t room = 2 * (h->len_bytes + len) + 1;
		char *text = realloc(h->text, room);

		if (!text)
			return 0;
		h->text = text;
		h->room_bytes = room;
	}
	memcpy(h->text + h->len_bytes, data, len);
	h->len_bytes += len;
	h->text[h->len_bytes] = '\0';
	return len;
}

static int set_address(struct client_http *h,
		       const struct client_http_request *req)
{
	char url[512];
	bool is_unix = strncmp(req->address, "unix:", 5) == 0;
	int n = snprintf(url, sizeof(url), "%s%s",
			 is_unix ? "http://localhost" : req->address,
			 req->path);

	if (n < 0 || (size_t)n >= sizeof(url))
		return error_set(-ENAMETOOLONG,
				 "the address %.60s... is too "
				 "long",
				 req->address);
	curl_easy_setopt(h->curl, CURLOPT_URL, url);
	if (is_unix)
		curl_easy_setopt(h->curl, CURLOPT_UNIX_SOCKET_PATH,
				 req->address + 5);
	curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	/* An environment variable must not send tokens elsewhere. */
	curl_easy_setopt(h->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(h->curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h->curl, CURLOPT_SSLVERSION,
			 (long)CURL_SSLVERSION_TLSv1_2);
	if (req->ca_path)
		curl_easy_setopt(h->curl, CURLOPT_CAINFO, req->ca_path);
	return 0;
}

/* Whether what is sent to this address stays on this machine or is secret. */
static bool is_safe(const char *address)
{
	static const char *const safe[] = {"unix:", "https:", "http://127.",
					   "http://[::1]", "http://localhost:"};

	for (size_t i = 0; i < ARRAY_LEN(safe); i++)
		if (strncmp(address, safe[i], strlen(safe[i])) == 0)
			return true;
	return false;
}

/* Once per process: only a hint, so the order does not matter. */
static void warn_clear(const char *address)
{
	static atomic_bool has_warned;

	if (is_safe(address) ||
	    atomic_exchange_explicit(&has_warned, true, memory_order_relaxed))
		return;
	log_warn("client",
		 "a token is sent in clear to %.100s: whoever sees the network "
		 "can use it; see tls_cert in rack.ini(5)",
		 address);
}

static int set_headers(struct client_http *h,
		       const struct client_http_request *req)
{
	struct curl_slist *list = NULL, *longer;
	char line[160];

	/* "Expect:" empty: curl would wait for a 100 before a large body. */
	longer = curl_slist_append(NULL, "Expect:");
	if (longer) {
		list = longer;
		longer = curl_slist_append(list,
					   "Content-Type: application/json");
	}
	if (longer && req->token) {
		warn_clear(req->address);
		snprintf(line, sizeof(line), "Authorization: Bearer %.64s",
			 req->token);
		longer = curl_slist_append(list, line);
	}
	if (!longer) {
		curl_slist_free_all(list);
		return error_set(-ENOMEM, "no memory for HTTP headers");
	}
	h->headers = list;
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, list);
	return 0;
}

static int explain(struct client_http *h, const struct client_http_request *req,
		   CURLcode code)
{
	const char *why = h->why[0] ? h->why : curl_easy_strerror(code);
	int err;

	switch ((int)code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		err = -EHOSTDOWN;
		break;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
		err = -EACCES;
		break;
	case CURLE_WRITE_ERROR:
		err = -E2BIG;
		why = "the answer is too long";
		break;
	case CURLE_OUT_OF_MEMORY:
		err = -ENOMEM;
		break;
	default:
		err = -EPROTO;
	}
	return error_set(err, "%s %s%s: %s", req->method, req->address,
			 req->path, why);
}

int client_http_begin(struct client_http *h,
		      const struct client_http_request *req)
{
	int err;

	curl_easy_reset(h->curl);
	h->len_bytes = 0;
	h->max_bytes = req->max_bytes;
	h->why[0] = '\0';
	h->is_crowded = false;
	err = set_address(h, req);
	if (!err)
		err = set_headers(h, req);
	if (err)
		return err;
	/* Timeouts without SIGALRM, which belongs to the application. */
	curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS,
			 (long)(req->timeout_ms ? req->timeout_ms : 1));
	curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->why);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
	if (req->body || strcmp(req->method, "POST") == 0)
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS,
				 req->body ? req->body : "");
	curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, req->method);
	return 0;
}

int client_http_end(struct client_http *h,
		    const struct client_http_request *req, CURLcode code,
		    struct client_http_reply *reply)
{
	long os_error = 0;

	if (code == CURLE_OK)
		curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE,
				  &reply->status);
	else
		curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &os_error);
	h->is_crowded = code == CURLE_COULDNT_CONNECT && os_error == EAGAIN;
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(h->headers);
	h->headers = NULL;
	if (code != CURLE_OK)
		return explain(h, req, code);
	reply->text = h->len_bytes ? h->text : NULL;
	reply->len_bytes = h->len_bytes;
	return 0;
}

int client_http_do(struct client_http *h, const struct client_http_request *req,
		   struct client_http_reply *reply)
{
	int err = client_http_begin(h, req);

	return err ? err
		   : client_http_end(h, req, curl_easy_perform(h->curl), reply);
}

bool client_http_is_crowded(const struct client_http *h)
{
	return h->is_crowded;
}
