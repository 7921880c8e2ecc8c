/* SPDX-License-Identifier: Apache-2.0 */
/* From a method and a path to a row of a route table. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "ctl_http.h"

static const char *const method_names[] = {
	[CTL_GET] = "GET",	 [CTL_POST] = "POST",	[CTL_PATCH] = "PATCH",
	[CTL_DELETE] = "DELETE", [CTL_OTHER] = "OTHER",
};

const char *ctl_method_name(enum ctl_method m)
{
	return method_names[m];
}

enum ctl_method ctl_method_parse(const char *name)
{
	for (unsigned m = 0; m < CTL_METHOD_COUNT; m++)
		if (strcmp(method_names[m], name) == 0)
			return (enum ctl_method)m;
	return CTL_OTHER;
}

/* Whether the path has the pattern's form; long segments are cut, and `fits`
 * says so. */
static bool matches(const char *pattern, const char *path,
		    struct ctl_call *call, bool *fits)
{
	unsigned segment = 0;

	call->rest = NULL;
	while (*pattern) {
		size_t len;

		if (*pattern == '*') {
			ASSERT(pattern[1] == 0);
			call->rest = path;
			return true;
		}
		if (*pattern != ':') {
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		len = strcspn(path, "/");
		if (len == 0)
			return false;
		ASSERT(segment < CTL_SEGMENTS);
		if (len >= CTL_SEGMENT_MAX)
			*fits = false;
		else
			memcpy(call->segment[segment], path, len);
		call->segment[segment++][len < CTL_SEGMENT_MAX ? len : 0] = 0;
		path += len;
		pattern++;
	}
	return *path == 0;
}

int ctl_route_find(const struct ctl_route *table, unsigned count,
		   enum ctl_method method, const char *path,
		   struct ctl_call *call)
{
	bool path_known = false;

	if (strlen(path) >= CTL_PATH_MAX)
		return error_set(-E2BIG, "the path has more than %d characters",
				 CTL_PATH_MAX - 1);
	for (unsigned i = 0; i < count; i++) {
		bool fits = true;

		if (!matches(table[i].pattern, path, call, &fits))
			continue;
		if (!fits)
			return error_set(-E2BIG,
					 "a name in the path has more than %d "
					 "characters",
					 CTL_SEGMENT_MAX - 1);
		path_known = true;
		if (table[i].method != method)
			continue;
		call->route = &table[i];
		return 0;
	}
	if (path_known)
		return error_set(-EOPNOTSUPP, "this path has no such method");
	return error_set(-ENOENT, "no such path; aquifer-memory(1) lists them");
}

uint32_t ctl_routes_body_max(const struct ctl_routes *routes,
			     enum ctl_method method, const char *path)
{
	struct ctl_call call;
	bool fits;

	if (strlen(path) >= CTL_PATH_MAX)
		return CTL_BODY_MAX;
	for (unsigned i = 0; i < routes->route_count; i++) {
		const struct ctl_route *r = &routes->route[i];

		if (r->method != method ||
		    !matches(r->pattern, path, &call, &fits))
			continue;
		for (unsigned k = 0; k < routes->body_max_count; k++)
			if (routes->body_max[k].run == r->run)
				return routes->body_max[k].bytes;
		break;
	}
	return CTL_BODY_MAX;
}
