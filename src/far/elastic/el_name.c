/* SPDX-License-Identifier: Apache-2.0 */
/* Names and leases, for programs: questions to the controller. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "el_priv.h"

/* Names with '/' between them, before they go into a URL. */
static bool is_path(const char *path)
{
	if (*path != '/' || strlen(path) >= AQ_NAME_MAX)
		return false;
	for (path++; *path;) {
		size_t len = strspn(path, "abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789-_.");

		if (!len || *path == '.' || *path == '-' ||
		    (path[len] && (path[len] != '/' || !path[len + 1])))
			return false;
		path += len + (path[len] == '/');
	}
	return true;
}

/* `body` is taken over; *reply may be NULL afterwards. */
static int ask(struct aq_rack *rack, const char *method, const char *route,
	       const char *path, json_t *body, json_t **reply)
{
	uint64_t deadline_ns =
		el_now_ns() + aq_rack_deadline(rack) * 1000000ull;
	char whole[AQ_NAME_MAX + 32];

	*reply = NULL;
	if (*path && !is_path(path)) {
		json_decref(body);
		return error_set(-EINVAL,
				 "'%.60s' is no path: names of letters, "
				 "digits, '-', '_' and '.', each after a '/'",
				 path);
	}
	(void)snprintf(whole, sizeof(whole), "%s%s", route,
		       strcmp(path, "/") == 0 ? "" : path);
	return client_control_call(rack, method, whole, body, deadline_ns,
				   reply);
}

/* Where the answer tells nothing more. */
static int tell(struct aq_rack *rack, const char *method, const char *route,
		const char *path, json_t *body)
{
	json_t *reply;
	int err = ask(rack, method, route, path, body, &reply);

	json_decref(reply);
	return err;
}

/* ---- jobs ---------------------------------------------------------------- */

static json_t *options_json(const struct aq_job_options *o)
{
	json_t *body = json_object();

	if (o && o->lease_ms)
		(void)json_object_set_new(body, "lease_ms",
					  json_integer(o->lease_ms));
	if (o && o->on_expiry)
		(void)json_object_set_new(body, "on_expiry",
					  json_string(o->on_expiry));
	return body;
}

AQ_API int aq_job_create(struct aq_rack *rack, const char *path,
			 const struct aq_job_options *options)
{
	json_t *body = options_json(options), *plan;
	json_error_t why;

	if (!options || !options->plan) {
		(void)json_object_set_new(body, "kind", json_string("folder"));
		return tell(rack, "POST", "/v1/ns", path, body);
	}
	plan = json_loads(options->plan, JSON_REJECT_DUPLICATES, &why);
	if (!plan || !is_path(path) || strchr(path + 1, '/')) {
		json_decref(body);
		json_decref(plan);
		return plan ? error_set(-EINVAL,
					"'%.60s' is no root of a job: /NAME",
					path)
			    : error_set(-EINVAL, "the plan is no JSON: %s",
					why.text);
	}
	(void)json_object_set_new(body, "name", json_string(path + 1));
	(void)json_object_set_new(body, "plan", plan);
	return tell(rack, "POST", "/v1/jobs", "", body);
}

AQ_API int aq_job_renew(struct aq_rack *rack, const char *path,
			uint32_t *period_ms)
{
	uint64_t period = 0;
	json_t *reply;
	int err = ask(rack, "POST", "/v1/renew", "",
		      json_pack("{s:[s]}", "paths", path), &reply);

	if (!err && json_array_size(json_object_get(reply, "unknown")))
		err = error_set(-ENOENT,
				"there is no %.200s, or its lease is over",
				path);
	if (!err)
		err = client_json_u64(reply, "period_ms", UINT32_MAX, &period);
	if (!err && period_ms)
		*period_ms = (uint32_t)period;
	json_decref(reply);
	return err;
}

/* ---- names --------------------------------------------------------------- */

AQ_API int aq_name_make(struct aq_rack *rack, const char *path)
{
	return tell(rack, "POST", "/v1/ns", path,
		    json_pack("{s:s, s:b}", "kind", "prefix", "make_parents",
			      true));
}

AQ_API int aq_name_move(struct aq_rack *rack, const char *path, const char *to)
{
	return tell(rack, "PATCH", "/v1/ns", path,
		    json_pack("{s:s}", "to", to));
}

AQ_API int aq_name_remove(struct aq_rack *rack, const char *path,
			  bool is_recursive)
{
	return tell(rack, "DELETE", "/v1/ns", path,
		    json_pack("{s:b}", "recursive", is_recursive));
}

static enum aq_name_kind kind_of(const char *text)
{
	static const struct {
		const char *text;
		enum aq_name_kind kind;
	} kinds[] = {
		{"file", AQ_NAME_FILE},	  {"queue", AQ_NAME_QUEUE},
		{"ekv", AQ_NAME_EKV},	  {"folder", AQ_NAME_FOLDER},
		{"task", AQ_NAME_FOLDER}, {"job", AQ_NAME_FOLDER},
		{"root", AQ_NAME_FOLDER},
	};

	for (size_t i = 0; text && i < ARRAY_LEN(kinds); i++)
		if (strcmp(text, kinds[i].text) == 0)
			return kinds[i].kind;
	return AQ_NAME_OTHER;
}

static int take(const json_t *row, struct aq_name *out)
{
	const char *state = json_string_value(json_object_get(row, "state"));
	const char *path = json_string_value(json_object_get(row, "path"));
	json_int_t used = json_integer_value(json_object_get(row, "used"));

	*out = (struct aq_name){0};
	if (!path || !is_path(path))
		return error_set(-EPROTO, "the controller's answer has no "
					  "usable path");
	(void)snprintf(out->path, sizeof(out->path), "%s", path);
	out->kind = kind_of(json_string_value(json_object_get(row, "kind")));
	out->is_ready = !state || strcmp(state, "ready") == 0;
	out->used_bytes = used > 0 ? (uint64_t)used : 0;
	return 0;
}

AQ_API int aq_name_stat(struct aq_rack *rack, const char *path,
			struct aq_name *out)
{
	json_t *reply;
	int err = ask(rack, "GET", "/v1/ns", path, NULL, &reply);

	if (!err)
		err = take(reply, out);
	json_decref(reply);
	return err;
}

AQ_API int aq_name_each(struct aq_rack *rack, const char *path, aq_name_fn each,
			void *user)
{
	json_t *reply, *row;
	struct aq_name name;
	size_t i;
	int err = ask(rack, "GET", "/v1/ns", path, NULL, &reply);

	json_array_foreach(json_object_get(reply, "entries"), i, row)
	{
		if (!err)
			err = take(row, &name);
		if (!err)
			err = each(&name, user);
	}
	json_decref(reply);
	return err;
}

/* ---- images -------------------------------------------------------------- */

enum progress {
	GOES_ON,
	DONE,
	FAILED,
};

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

/* `begun` is what the controller said at the beginning, `now` what it says of
 * the name now. */
static enum progress flush_progress(const json_t *begun, const json_t *now)
{
	const json_t *image = json_object_get(now, "image");

	if (image &&
	    json_integer_value(json_object_get(image, "id")) >=
		    json_integer_value(json_object_get(begun, "image")))
		return DONE;
	return json_object_get(now, "flush") ? GOES_ON : FAILED;
}

static enum progress load_progress(const json_t *begun, const json_t *now)
{
	if (strcmp(text_of(now, "state"), "loading") == 0)
		return GOES_ON;
	return strcmp(text_of(now, "state"), "ready") == 0 ? DONE : FAILED;
}

static int wait_for(struct aq_rack *rack, const json_t *begun,
		    enum progress (*progress)(const json_t *, const json_t *),
		    uint64_t end_ns)
{
	const char *path = text_of(begun, "path");
	unsigned tries = 0;

	for (;;) {
		enum progress p = FAILED;
		json_t *now;
		int err = ask(rack, "GET", "/v1/ns", path, NULL, &now);

		if (!err)
			p = progress(begun, now);
		if (!err && p == FAILED)
			err = error_set(-EIO, "%s: %s", path,
					*text_of(now, "why")
						? text_of(now, "why")
						: "it was given up");
		json_decref(now);
		if (err || p == DONE)
			return err;
		if (!el_pause(&tries, end_ns))
			return error_set(-ETIMEDOUT,
					 "%s and the vault: it goes on, but "
					 "not in this time",
					 path);
	}
}

/* Begins it for all below a name, and waits for the end of all; `body` is
 * taken over. */
static int move_images(struct aq_rack *rack, const char *route,
		       const char *path, json_t *body, uint32_t timeout_ms,
		       enum progress (*progress)(const json_t *,
						 const json_t *))
{
	uint64_t end_ns = el_now_ns() + timeout_ms * 1000000ull;
	json_t *reply = NULL, *row;
	unsigned tries = 0;
	size_t i;
	int err;

	do {
		json_decref(reply);
		err = ask(rack, "POST", route, path, json_incref(body), &reply);
	} while (err == -EAGAIN && el_pause(&tries, end_ns));
	json_array_foreach(json_object_get(reply, "objects"), i, row)
	{
		if (!err)
			err = wait_for(rack, row, progress, end_ns);
	}
	json_decref(reply);
	json_decref(body);
	return err;
}

AQ_API int aq_name_flush(struct aq_rack *rack, const char *path,
			 uint32_t timeout_ms)
{
	return move_images(rack, "/v1/flush", path, json_object(), timeout_ms,
			   flush_progress);
}

AQ_API int aq_name_flush_frozen(struct aq_rack *rack, const char *path,
				uint32_t timeout_ms)
{
	return move_images(rack, "/v1/flush", path,
			   json_pack("{s:b}", "freeze", true), timeout_ms,
			   flush_progress);
}

AQ_API int aq_name_load(struct aq_rack *rack, const char *path, bool is_back,
			uint32_t timeout_ms)
{
	return move_images(rack, "/v1/load", path,
			   json_pack("{s:b}", "back", is_back), timeout_ms,
			   load_progress);
}
