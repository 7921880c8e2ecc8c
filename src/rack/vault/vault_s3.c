/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket of S3 as vault: ENDPOINT/BUCKET/PREFIX/TENANT/IMAGE/OBJECT. libcurl
 * signs (SigV4); what its 7.88 leaves to the caller is the sum of the body, and
 * that questions of a query stand in their order. Each request has a connection
 * of its own, and is not repeated here: who asks for it comes again.
 */
#include <curl/curl.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vault_priv.h"

enum {
	URL_BYTES = VAULT_ENDPOINT_MAX +
		    3 * (VAULT_PLACE_MAX + VAULT_IMAGE_MAX + VAULT_OBJECT_MAX) +
		    64,
	ANSWER_MAX = 4 << 20, /* of what is no object */
	CONNECT_S = 10,
	SLOW_BYTES = 1024, /* in a second, or less: it is given up after */
	SLOW_S = 30,
	LIST_ROUNDS = 64, /* of an erase, a thousand objects each */
	KEY_BYTES = VAULT_PLACE_MAX + VAULT_IMAGE_MAX + VAULT_OBJECT_MAX,
};

struct transfer {
	const struct vault_place *place;
	const char *what; /* for words: the object, or the image */
	/* Of what is sent. */
	const struct iovec *parts;
	unsigned count, part;
	size_t at; /* in that part */
	/* Of the answer. */
	char *text;
	size_t len, room, max;
	long status;
};

/* ---- addresses ----------------------------------------------------------- */

static void append(char url[URL_BYTES], const char *text)
{
	size_t len = strlen(url);

	(void)snprintf(url + len, URL_BYTES - len, "%s", text);
}

/* As SigV4 wants them: all but letters, digits and "-._~" as %XX. */
static void append_escaped(char url[URL_BYTES], const char *text, bool is_query)
{
	size_t at = strlen(url);

	for (; *text && at + 4 < URL_BYTES; text++) {
		char c = *text;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9') || strchr("-._~", c) ||
		    (c == '/' && !is_query))
			url[at++] = c;
		else
			at += (size_t)snprintf(url + at, 4, "%%%02X",
					       (unsigned)(uint8_t)c);
	}
	url[at] = 0;
}

/* "" or "PREFIX/". */
static const char *prefix_of(const struct vault_place *p)
{
	const char *slash = strchr(p->path + strlen(VAULT_S3), '/');

	return slash ? slash + 1 : "";
}

static void begin_url(const struct vault_place *p, char url[URL_BYTES])
{
	char bucket[VAULT_PLACE_MAX];

	(void)snprintf(bucket, sizeof(bucket), "%s",
		       p->path + strlen(VAULT_S3));
	bucket[strcspn(bucket, "/")] = 0;
	url[0] = 0;
	append(url, p->endpoint);
	append(url, "/");
	append_escaped(url, bucket, false);
}

/* PREFIX/IMAGE/OBJECT, or PREFIX/IMAGE/ without an object. */
static void key_of(const struct vault_place *p, const char *image,
		   const char *object, char key[KEY_BYTES])
{
	const char *prefix = prefix_of(p);

	(void)snprintf(key, KEY_BYTES, "%s%s%s/%s", prefix, *prefix ? "/" : "",
		       image, object);
}

/* ---- a request ----------------------------------------------------------- */

static size_t give(char *out, size_t one, size_t count, void *user)
{
	struct transfer *t = user;
	size_t room = one * count, done = 0;

	while (done < room && t->part < t->count) {
		const struct iovec *v = &t->parts[t->part];
		size_t n = v->iov_len - t->at;

		if (n > room - done)
			n = room - done;
		if (n)
			memcpy(out + done, (const char *)v->iov_base + t->at,
			       n);
		done += n;
		t->at += n;
		if (t->at == v->iov_len) {
			t->part++;
			t->at = 0;
		}
	}
	return done;
}

static size_t take(char *data, size_t one, size_t count, void *user)
{
	struct transfer *t = user;
	size_t len = one * count;

	if (len > t->max - t->len)
		return 0;
	if (t->len + len + 1 > t->room) {
		size_t room = 2 * (t->len + len) + 1;
		char *more = realloc(t->text, room);

		if (!more)
			return 0;
		t->text = more;
		t->room = room;
	}
	memcpy(t->text + t->len, data, len);
	t->len += len;
	return len;
}

static int watch(void *user, curl_off_t a, curl_off_t b, curl_off_t c,
		 curl_off_t d)
{
	const struct transfer *t = user;

	/* It only ends the wait: nothing is read because of it. */
	return t->place->is_over &&
	       atomic_load_explicit(t->place->is_over, memory_order_relaxed);
}

static size_t sum_of(const struct transfer *t, char text[100])
{
	crypto_hash_sha256_state state;
	uint8_t sum[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(sum) + 1];
	size_t bytes = 0;

	(void)crypto_hash_sha256_init(&state);
	for (unsigned i = 0; i < t->count; i++) {
		(void)crypto_hash_sha256_update(&state, t->parts[i].iov_base,
						t->parts[i].iov_len);
		bytes += t->parts[i].iov_len;
	}
	(void)crypto_hash_sha256_final(&state, sum);
	(void)sodium_bin2hex(hex, sizeof(hex), sum, sizeof(sum));
	(void)snprintf(text, 100, "x-amz-content-sha256: %s", hex);
	return bytes;
}

static struct curl_slist *headers_of(const struct transfer *t, size_t *bytes)
{
	char sum[100], session[VAULT_SESSION_MAX + 32];
	struct curl_slist *list, *more;

	*bytes = sum_of(t, sum);
	list = curl_slist_append(NULL, sum);
	if (!list || !t->place->key.session[0])
		return list;
	(void)snprintf(session, sizeof(session), "x-amz-security-token: %s",
		       t->place->key.session);
	more = curl_slist_append(list, session);
	sodium_memzero(session, sizeof(session));
	if (!more)
		curl_slist_free_all(list);
	return more;
}

static bool set_up(CURL *curl, struct transfer *t, const char *method,
		   const char *url)
{
	const struct vault_place *p = t->place;
	char who[VAULT_KEY_ID_MAX + VAULT_SECRET_MAX + 2];
	char sign[VAULT_REGION_MAX + 32];
	bool is_well;

	(void)snprintf(who, sizeof(who), "%s:%s", p->key.id, p->key.secret);
	(void)snprintf(sign, sizeof(sign), "aws:amz:%s:s3", p->region);
	is_well =
		!curl_easy_setopt(curl, CURLOPT_URL, url) &&
		!curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method) &&
		!curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
		!curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
		!curl_easy_setopt(curl, CURLOPT_PROXY, "") &&
		!curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, sign) &&
		!curl_easy_setopt(curl, CURLOPT_USERPWD, who) &&
		!curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT,
				  (long)CONNECT_S) &&
		!curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT,
				  (long)SLOW_BYTES) &&
		!curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S) &&
		!curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) &&
		!curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch) &&
		!curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t) &&
		!curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take) &&
		!curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	sodium_memzero(who, sizeof(who));
	return is_well;
}

static bool set_body(CURL *curl, struct transfer *t, size_t bytes)
{
	return !curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L) &&
	       !curl_easy_setopt(curl, CURLOPT_READFUNCTION, give) &&
	       !curl_easy_setopt(curl, CURLOPT_READDATA, t) &&
	       !curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE,
				 (curl_off_t)bytes);
}

/* What a failed connection is in our words. */
static int error_of_curl(const struct transfer *t, CURLcode code)
{
	int err = code == CURLE_OPERATION_TIMEDOUT    ? -ETIMEDOUT
		  : code == CURLE_ABORTED_BY_CALLBACK ? -ECANCELED
		  : code == CURLE_OUT_OF_MEMORY	      ? -ENOMEM
						      : -EIO;

	if (code == CURLE_WRITE_ERROR)
		return error_set(-EFBIG,
				 "%s/%s: the answer has more bytes than it may",
				 t->place->path, t->what);
	return error_set(err, "%s/%s at %s: %s", t->place->path, t->what,
			 t->place->endpoint, curl_easy_strerror(code));
}

/* 0, or what the answer's status means. */
static int error_of_status(const struct transfer *t)
{
	const char *at = t->text;
	char why[64] = "no reason";
	int err;

	if (t->status >= 200 && t->status < 300)
		return 0;
	if (at)
		(void)vault_xml_next(&at, at + t->len, "Code", why,
				     sizeof(why));
	switch (t->status) {
	case 401:
	case 403:
		err = -EACCES;
		break;
	case 404:
		err = -ENOENT;
		break;
	case 507:
		err = -ENOSPC;
		break;
	default:
		err = t->status >= 500 ? -EIO : -EPROTO;
		break;
	}
	return error_set(err, "%s/%s at %s: status %ld, %s", t->place->path,
			 t->what, t->place->endpoint, t->status, why);
}

static int run(struct transfer *t, const char *method, const char *url)
{
	struct curl_slist *headers = NULL;
	CURL *curl = NULL;
	CURLcode code;
	size_t bytes;
	int err = error_set(-ENOMEM, "libcurl cannot be started");

	/* Since 7.84 this is safe from any thread and counts its calls. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err;
	if (sodium_init() >= 0)
		curl = curl_easy_init();
	if (curl)
		headers = headers_of(t, &bytes);
	if (headers && set_up(curl, t, method, url) &&
	    !curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) &&
	    (!t->count || set_body(curl, t, bytes))) {
		code = curl_easy_perform(curl);
		(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE,
					&t->status);
		err = code ? error_of_curl(t, code) : error_of_status(t);
	}
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	curl_global_cleanup();
	return err;
}

static int ask(struct transfer *t, const char *method, const char *image,
	       const char *object)
{
	char url[URL_BYTES], key[KEY_BYTES], what[KEY_BYTES];
	int err;

	begin_url(t->place, url);
	key_of(t->place, image, object, key);
	append(url, "/");
	append_escaped(url, key, false);
	(void)snprintf(what, sizeof(what), "%s/%s", image, object);
	t->what = what;
	err = run(t, method, url);
	t->what = NULL;
	return err;
}

/* ---- objects ------------------------------------------------------------- */

int vault_s3_put(const struct vault_place *place, const char *image,
		 const char *object, const struct iovec *parts, unsigned count)
{
	struct transfer t = {.place = place,
			     .parts = parts,
			     .count = count,
			     .max = ANSWER_MAX};
	int err = ask(&t, "PUT", image, object);

	free(t.text);
	return err;
}

int vault_s3_get(const struct vault_place *place, const char *image,
		 const char *object, size_t max_bytes, void **out,
		 size_t *bytes)
{
	struct transfer t = {.place = place, .max = max_bytes};
	int err = ask(&t, "GET", image, object);

	if (!err && !t.text) { /* an empty object */
		t.text = malloc(1);
		err = t.text ? 0
			     : error_set(-ENOMEM, "no memory for an object");
	}
	if (err) {
		free(t.text);
		return err;
	}
	*out = t.text;
	*bytes = t.len;
	return 0;
}

int vault_s3_remove(const struct vault_place *place, const char *image,
		    const char *object)
{
	struct transfer t = {.place = place, .max = ANSWER_MAX};
	int err = ask(&t, "DELETE", image, object);

	free(t.text);
	return t.status == 404 ? 0 : err;
}

/* ---- images -------------------------------------------------------------- */

/* Removes what a list names; *count says how many. */
static int remove_listed(const struct vault_place *place, const char *image,
			 const struct transfer *list, unsigned *count)
{
	const char *at = list->text, *end = at + list->len;
	char key[KEY_BYTES], found[KEY_BYTES];
	int err = 0;

	key_of(place, image, "", key);
	while (!err && at &&
	       vault_xml_next(&at, end, "Key", found, sizeof(found))) {
		if (strncmp(found, key, strlen(key)) != 0 ||
		    strlen(found + strlen(key)) >= VAULT_OBJECT_MAX)
			continue;
		err = vault_s3_remove(place, image, found + strlen(key));
		++*count;
	}
	return err;
}

int vault_s3_erase(const struct vault_place *place, const char *image)
{
	char url[URL_BYTES], key[KEY_BYTES];
	int err = 0;

	key_of(place, image, "", key);
	begin_url(place, url);
	append(url, "?list-type=2&prefix=");
	append_escaped(url, key, true);
	for (unsigned i = 0; i < LIST_ROUNDS; i++) {
		struct transfer t = {
			.place = place, .what = image, .max = ANSWER_MAX};
		unsigned count = 0;

		err = run(&t, "GET", url);
		if (!err)
			err = remove_listed(place, image, &t, &count);
		free(t.text);
		if (err || !count)
			break;
	}
	return err;
}
