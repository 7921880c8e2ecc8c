/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP through libcurl; only what a node's interface needs. */
#include <errno.h>
#include <fcntl.h>
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

/* A program that is executed later does not get connections that are kept. */
static int keep_own(void *user, curl_socket_t fd, curlsocktype purpose)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) ? CURL_SOCKOPT_ERROR
					      : CURL_SOCKOPT_OK;
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
	if (req->cert_path) {
		curl_easy_setopt(h->curl, CURLOPT_SSLCERT, req->cert_path);
		curl_easy_setopt(h->curl, CURLOPT_SSLKEY, req->key_path);
	}
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

/* What curl says about a unix socket is about a host and port that it made up.
 */
static const char *socket_words(CURLcode code, long os_error)
{
	switch ((int)code) {
	case CURLE_COULDNT_CONNECT:
		switch (os_error) {
		case ENOENT:
			return "there is no such socket; the process is not "
			       "running";
		case ECONNREFUSED:
			return "nothing listens there; the process has ended";
		case EACCES:
		case EPERM:
			return "this user may not use that socket; see "
			       "rack.group in rack.ini(5)";
		case EAGAIN:
			return "it is there, but accepts nobody";
		default:
			return "nothing listens there";
		}
	case CURLE_OPERATION_TIMEDOUT:
		return "no answer in time";
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		return "it hung up; look at its log";
	default:
		return curl_easy_strerror(code);
	}
}

static int explain(struct client_http *h, const struct client_http_request *req,
		   CURLcode code, long os_error)
{
	const char *why = h->why[0] ? h->why : curl_easy_strerror(code);
	int err;

	if (strncmp(req->address, "unix:", 5) == 0)
		why = socket_words(code, os_error);
	else if (code == CURLE_OPERATION_TIMEDOUT)
		why = "no answer in time";
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
	case CURLE_SSL_CERTPROBLEM:
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
	return error_set(err, "%s: %s", req->address, why);
}

int client_http_begin(struct client_http *h,
		      const struct client_http_request *req)
{
	int err;

	curl_easy_reset(h->curl);
	h->len_bytes = 0;
	h->max_bytes = req->max_bytes;
	h->why[0] = '\0';
	h->may_live = false;
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
	curl_easy_setopt(h->curl, CURLOPT_SOCKOPTFUNCTION, keep_own);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
	if (req->body || strcmp(req->method, "POST") == 0)
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS,
				 req->body ? req->body : "");
	curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, req->method);
	return 0;
}

/* Whether a failure to connect shows that no process is there. A listener whose
 * queue is full does not, and neither does a way that is not there: a cable is
 * out, a switch starts anew, a route is missing for a while. */
static bool says_gone(long os_error)
{
	switch (os_error) {
	case EAGAIN:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ETIMEDOUT:
	case EADDRNOTAVAIL: /* of our own address */
		return false;
	default:
		return true;
	}
}

int client_http_end(struct client_http *h,
		    const struct client_http_request *req, CURLcode code,
		    struct client_http_reply *reply)
{
	curl_off_t retry_s = 0;
	long os_error = 0, sent_bytes = 0;

	if (code == CURLE_OK) {
		curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE,
				  &reply->status);
		curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &retry_s);
	} else {
		curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &os_error);
	}
	h->may_live = code == CURLE_COULDNT_RESOLVE_HOST ||
		      (code == CURLE_COULDNT_CONNECT && !says_gone(os_error));
	curl_easy_getinfo(h->curl, CURLINFO_REQUEST_SIZE, &sent_bytes);
	h->was_sent = sent_bytes > 0;
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(h->headers);
	h->headers = NULL;
	if (code != CURLE_OK)
		return explain(h, req, code, os_error);
	reply->retry_s =
		retry_s > 0 ? (uint32_t)u64_min((uint64_t)retry_s, UINT32_MAX)
			    : 0;
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

bool client_http_may_live(const struct client_http *h)
{
	return h->may_live;
}

bool client_http_was_sent(const struct client_http *h)
{
	return h->was_sent;
}
