/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer ns watch`: a line for everything that is done to an object. A signal
 * ends it, like any program that prints; nothing is left behind. */
#include <aquifer/elastic.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_ns.h"

enum {
	TURN_MS = 1000, /* of waiting, at a time */
};

int cli_ns_watch_kinds(const char *text, uint32_t *out)
{
	*out = 0;
	while (text && *text) {
		size_t len = strcspn(text, ",");
		unsigned k = AQ_EVENT_APPEND;

		for (; k <= AQ_EVENT_SEAL; k++) {
			const char *name = aq_event_name((enum aq_event_kind)k);

			if (strlen(name) == len && !memcmp(name, text, len))
				break;
		}
		if (k > AQ_EVENT_SEAL)
			return error_set(-EINVAL,
					 "there are no events '%.*s'; they are "
					 "append, put, get, ack, back, set, "
					 "delete, add, seal",
					 (int)len, text);
		*out |= 1u << k;
		text += len + (text[len] == ',');
	}
	return 0;
}

static bool has_key(const struct aq_event *e)
{
	return e->kind == AQ_EVENT_SET || e->kind == AQ_EVENT_DELETE ||
	       e->kind == AQ_EVENT_ADD;
}

static json_t *json_of(const struct aq_event *e)
{
	json_t *o = json_pack("{s:s, s:I}", "event", aq_event_name(e->kind),
			      "block", (json_int_t)e->block);
	const char *name = has_key(e) ? "key" : "item";
	json_t *text;

	if (e->kind == AQ_EVENT_LOST) {
		(void)json_object_set_new(
			o, "count",
			e->value ? json_integer((json_int_t)e->value)
				 : json_null());
		return o;
	}
	if (e->kind != AQ_EVENT_SEAL)
		(void)json_object_set_new(
			o, "length", json_integer((json_int_t)e->length_bytes));
	if (has_key(e))
		(void)json_object_set_new(
			o, e->kind == AQ_EVENT_ADD ? "value" : "version",
			json_integer((json_int_t)e->value));
	if (e->kind == AQ_EVENT_APPEND)
		(void)json_object_set_new(o, "offset",
					  json_integer((json_int_t)e->value));
	if (!e->data)
		return o;
	text = json_stringn(e->data, e->data_bytes);
	/* What is no text is left out; its length is there. */
	(void)json_object_set_new(o, name, text ? text : json_null());
	if (e->data_bytes < e->length_bytes)
		(void)json_object_set_new(o, "is_cut", json_true());
	return o;
}

static void print_words(const struct aq_event *e)
{
	switch ((int)e->kind) {
	case AQ_EVENT_LOST:
		if (e->value)
			(void)printf("lost    %llu events",
				     (unsigned long long)e->value);
		else
			(void)printf(
				"lost    events, it is not known how many");
		break;
	case AQ_EVENT_SEAL:
		(void)printf("seal");
		break;
	case AQ_EVENT_APPEND:
		(void)printf("append  %zu bytes at %llu", e->length_bytes,
			     (unsigned long long)e->value);
		break;
	case AQ_EVENT_SET:
	case AQ_EVENT_DELETE:
	case AQ_EVENT_ADD:
		(void)printf("%-6s  ", aq_event_name(e->kind));
		break;
	default:
		(void)printf("%-6s  %zu bytes", aq_event_name(e->kind),
			     e->length_bytes);
	}
	if (e->data) {
		(void)fputs(has_key(e) ? "" : ": ", stdout);
		(void)fwrite(e->data, 1, e->data_bytes, stdout);
		if (e->data_bytes < e->length_bytes)
			(void)fputs("...", stdout);
	}
	(void)putchar('\n');
}

static int print(const struct aq_event *e, bool is_json)
{
	if (is_json) {
		json_t *o = json_of(e);

		(void)json_dumpf(o, stdout, JSON_COMPACT);
		(void)putchar('\n');
		json_decref(o);
	} else {
		print_words(e);
	}
	return fflush(stdout) ? error_set(-EIO, "the output cannot be written")
			      : 0;
}

int cli_ns_watch(struct aq_rack *rack, const char *path, uint32_t events,
		 uint64_t count, uint32_t wait_ms, bool is_json)
{
	struct aq_watch_options options = {.events = events};
	struct aq_watch *w = NULL;
	struct aq_event e;
	uint64_t done = 0, heard_ms;
	int err = aq_watch_open(rack, path, &options, &w);

	if (!err) {
		/* From now on nothing is missed. */
		(void)fprintf(stderr, "watching %s\n", path);
		heard_ms = clock_mono_ms();
	}
	while (!err && (!count || done < count)) {
		err = aq_watch_next(w, &e,
				    wait_ms && wait_ms < TURN_MS ? wait_ms
								 : TURN_MS);
		if (!err) {
			err = print(&e, is_json);
			done++;
			heard_ms = clock_mono_ms();
		} else if (err == -EINTR ||
			   (err == -EAGAIN &&
			    (!wait_ms ||
			     clock_mono_ms() - heard_ms < wait_ms))) {
			err = 0;
		}
	}
	aq_watch_close(w);
	return err;
}
