/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer ns flush` and `load`: begin it, and wait until all of it has ended.
 * The controller goes on where this command is ended. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli.h"
#include "cli_ns.h"

enum {
	LOOK_MS = 50, /* between two looks */
};

enum progress {
	GOES_ON,
	DONE,
	FAILED,
};

static const char *text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

static const json_t *find(const json_t *names, const char *path)
{
	const json_t *row;
	size_t i;

	json_array_foreach(names, i, row) if (text(row, "path") &&
					      strcmp(text(row, "path"), path) ==
						      0) return row;
	return NULL;
}

static json_int_t image_of(const json_t *row)
{
	return json_integer_value(
		json_object_get(json_object_get(row, "image"), "id"));
}

/* `begun` is what the controller said at the beginning. */
static enum progress flush_state(const json_t *begun, const json_t *now)
{
	if (now && image_of(now) >=
			   json_integer_value(json_object_get(begun, "image")))
		return DONE;
	return now && json_object_get(now, "flush") ? GOES_ON : FAILED;
}

static enum progress load_state(const json_t *begun, const json_t *now)
{
	const char *state = now ? text(now, "state") : NULL;

	if (state && strcmp(state, "loading") == 0)
		return GOES_ON;
	return state && strcmp(state, "ready") == 0 ? DONE : FAILED;
}

struct count {
	size_t all, done, failed;
};

/* Looks at all of them once; says what has failed when nothing goes on. */
static struct count look(const json_t *begun, const json_t *names,
			 enum progress (*state)(const json_t *, const json_t *),
			 bool says)
{
	struct count n = {.all = json_array_size(begun)};
	const json_t *row;
	size_t i;

	json_array_foreach(begun, i, row)
	{
		const json_t *now = find(names, text(row, "path"));
		enum progress p = state(row, now);
		const char *why = now ? text(now, "why") : "it is gone";

		n.done += p == DONE;
		n.failed += p == FAILED;
		if (says && p == FAILED)
			cli_error("%s: %s", text(row, "path"),
				  why ? why : "it was given up");
	}
	return n;
}

static void show(const char *what, const struct count *n)
{
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\r%s: %zu of %zu%s", what, n->done,
			      n->all,
			      n->done + n->failed == n->all ? "\n" : "");
}

static int wait_for(const char *what, const char *path, const json_t *begun,
		    enum progress (*state)(const json_t *, const json_t *),
		    json_t **names)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	struct count n;

	for (;;) {
		json_t *reply;
		int code = cli_ns_ask("GET", "/v1/tree", path, NULL, &reply);

		if (code != CLI_OK)
			return code;
		n = look(begun, json_object_get(reply, "names"), state, false);
		show(what, &n);
		if (n.done + n.failed == n.all) {
			*names = json_incref(json_object_get(reply, "names"));
			json_decref(reply);
			break;
		}
		json_decref(reply);
		(void)nanosleep(&pause, NULL);
	}
	(void)look(begun, *names, state, true);
	return n.failed ? CLI_FAILED : CLI_OK;
}

static void print(const json_t *begun, const json_t *names)
{
	const json_t *row;
	size_t i;

	json_array_foreach(begun, i, row)
	{
		const json_t *now = find(names, text(row, "path"));
		const json_t *image = json_object_get(now, "image");

		printf("%s  %s, image %s, %" PRIu64 " bytes\n",
		       text(row, "path"), now ? text(now, "state") : "gone",
		       image ? text(image, "dir") : "none",
		       (uint64_t)json_integer_value(
			       json_object_get(image, "bytes")));
	}
}

int cli_ns_vault(bool is_load, json_t *body, const char *path, json_t **report)
{
	json_t *reply = NULL, *names = NULL;
	const json_t *begun;
	int code = cli_ns_ask("POST", is_load ? "/v1/load" : "/v1/flush", path,
			      body, &reply);

	if (code != CLI_OK)
		return code;
	begun = json_object_get(reply, "objects");
	code = wait_for(is_load ? "loaded" : "flushed", path, begun,
			is_load ? load_state : flush_state, &names);
	if (code == CLI_OK && report)
		*report = json_pack("{s:O, s:o}", "objects", begun, "names",
				    json_incref(names));
	else if (code == CLI_OK)
		print(begun, names);
	json_decref(names);
	json_decref(reply);
	return code;
}
