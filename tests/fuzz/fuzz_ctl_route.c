/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any path against a table of patterns, with variable parts and rests. A path
 * that is found is its pattern with the parts put in again; what is found does
 * not depend on how often it is asked for. The first byte chooses the method.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/ctl_http.h"
#include "fuzz.h"

static void run_a(void *ctx, struct ctl_call *call)
{
	ctl_reply_none(call->reply);
}

static void run_b(void *ctx, struct ctl_call *call)
{
	ctl_reply_error(call->reply, -EINVAL, "b");
}

static const struct ctl_route table[] = {
	{CTL_GET, "/", run_a, 0},	  {CTL_GET, "/a/:", run_a, 0},
	{CTL_POST, "/a/:/b/:", run_b, 0}, {CTL_GET, "/a/:/b/:/*", run_a, 0},
	{CTL_GET, "/n/*", run_b, 0},	  {CTL_DELETE, "/n/*", run_a, 0},
	{CTL_PATCH, "/m*", run_b, 0},
};

static const struct ctl_body_max body_max[] = {{run_b, 77}};
static const struct ctl_routes routes = {table, ARRAY_LEN(table), body_max,
					 ARRAY_LEN(body_max)};

/* The pattern with its parts. */
static void build(const struct ctl_call *call, char out[CTL_PATH_MAX])
{
	unsigned segment = 0;
	size_t len = 0;

	for (const char *p = call->route->pattern; *p; p++) {
		const char *part = *p == '*'   ? call->rest
				   : *p == ':' ? call->segment[segment++]
					       : NULL;
		size_t n = part ? strlen(part) : 1;

		ASSERT(len + n < CTL_PATH_MAX);
		memcpy(out + len, part ? part : p, n);
		len += n;
	}
	out[len] = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	enum ctl_method method =
		len_bytes ? (enum ctl_method)(data[0] % (CTL_OTHER + 1))
			  : CTL_GET;
	char *path = calloc(1, len_bytes + 1), again[CTL_PATH_MAX];
	struct ctl_call call = {0};
	int err;

	ASSERT(path);
	if (len_bytes > 1)
		memcpy(path, data + 1, len_bytes - 1);
	err = ctl_route_find(table, ARRAY_LEN(table), method, path, &call);
	ASSERT(err == 0 || err == -ENOENT || err == -EOPNOTSUPP ||
	       err == -E2BIG);
	if (!err) {
		ASSERT(call.route->method == method);
		ASSERT(!call.rest == !strchr(call.route->pattern, '*'));
		build(&call, again);
		ASSERT(strcmp(again, path) == 0);
		ASSERT(ctl_routes_body_max(&routes, method, path) ==
		       (call.route->run == run_b ? 77u : CTL_BODY_MAX));
	}
	free(path);
	return 0;
}
