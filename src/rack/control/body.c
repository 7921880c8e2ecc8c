/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what a request says: bounded JSON, typed members, names, versions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "ctl_http.h"

enum {
	NUMBER_MAX = 0xffffff, /* of queue pairs and packets */
	NAME_SHOWN = 40,       /* of a member's name */
	MEMBER_MAX = NAME_SHOWN + 8,
};

/* jansson's own bound is 2048 levels, on the stack of a small thread. Counting
 * brackets outside strings is exact for any text that jansson accepts. */
static bool too_deep(const char *body, size_t body_bytes)
{
	unsigned depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < body_bytes; i++) {
		char c = body[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > CTL_DEPTH_MAX)
				return true;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		}
	}
	return false;
}

/* In words, the member of the object in which that place is. */
static void name_member(const char *body, size_t place, char out[MEMBER_MAX])
{
	size_t start = 0, end = 0;
	bool in_string = false;
	unsigned depth = 0;

	*out = 0;
	for (size_t i = 0; i < place; i++) {
		char c = body[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			end = i;
		} else if (c == '"') {
			in_string = true;
			start = end = i + 1;
		} else if (c == ':' && depth == 1) {
			(void)snprintf(out, MEMBER_MAX, ", in \"%.*s\"",
				       (int)u64_min(end - start, NAME_SHOWN),
				       body + start);
		} else if (c == '{' || c == '[') {
			depth++;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		}
	}
}

int ctl_body_parse(const char *body, size_t body_bytes, json_t **out)
{
	char member[MEMBER_MAX];
	json_error_t why;
	json_t *tree;

	if (body_bytes && !body)
		return error_set(-E2BIG, "the body has more than %zu bytes",
				 body_bytes - 1);
	if (body_bytes == 0) {
		tree = json_object();
	} else {
		if (too_deep(body, body_bytes))
			return error_set(-EINVAL,
					 "the JSON nests more than %d deep",
					 CTL_DEPTH_MAX);
		tree = json_loadb(body, body_bytes, JSON_REJECT_DUPLICATES,
				  &why);
		if (!tree) {
			name_member(body,
				    u64_min((uint64_t)why.position, body_bytes),
				    member);
			return error_set(-EINVAL,
					 "not valid JSON: line %d%s: %s",
					 why.line, member, why.text);
		}
	}
	if (!tree)
		return error_set(-ENOMEM, "no memory for the request");
	if (!json_is_object(tree)) {
		json_decref(tree);
		return error_set(-EINVAL, "the body is no JSON object");
	}
	*out = tree;
	return 0;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == len && memcmp(words, word, n) == 0)
			return true;
	}
	return false;
}

int ctl_body_check(const struct ctl_call *call, const struct ctl_members *table,
		   unsigned count)
{
	const char *name;
	json_t *value;
	unsigned i;

	for (i = 0; i < count && table[i].run != call->route->run; i++)
		;
	if (i == count)
		return 0;
	json_object_foreach(call->body, name, value)
	{
		if (!has_word(table[i].words, name))
			return error_set(-EINVAL,
					 "\"%.40s\" is not known here; this "
					 "request has: %s",
					 name,
					 *table[i].words ? table[i].words
							 : "no body");
	}
	return 0;
}

int ctl_field_u64(const json_t *body, const char *name, bool required,
		  uint64_t min, uint64_t max, uint64_t *out)
{
	const json_t *j = json_object_get(body, name);
	json_int_t v;

	if (!j && !required)
		return 0;
	v = json_integer_value(j);
	if (!json_is_integer(j) || v < 0 || (uint64_t)v < min ||
	    (uint64_t)v > max)
		return error_set(-EINVAL,
				 "\"%s\" must be a whole number from %" PRIu64
				 " to %" PRIu64,
				 name, min, max);
	*out = (uint64_t)v;
	return 0;
}

int ctl_field_string(const json_t *body, const char *name, bool required,
		     const char **out)
{
	const json_t *j = json_object_get(body, name);

	if (!j && !required)
		return 0;
	/* A NUL inside would hide the rest from every check that follows. */
	if (!json_is_string(j) ||
	    strlen(json_string_value(j)) != json_string_length(j))
		return error_set(-EINVAL, "\"%s\" must be a string", name);
	*out = json_string_value(j);
	return 0;
}

static int field_mtu(const json_t *body, uint8_t *code)
{
	uint64_t bytes = 4096;
	int err = ctl_field_u64(body, "mtu", false, 256, 4096, &bytes);

	for (*code = 1; !err && *code <= 5; ++*code)
		if (128ull << *code == bytes)
			return 0;
	return err ? err
		   : error_set(-EINVAL,
			       "\"mtu\" is 256, 512, 1024, 2048 or 4096");
}

int ctl_field_pair(const json_t *body, struct ctl_pair *out)
{
	uint64_t qpn = 0, psn = 0, rd_atomic = 16;
	const char *gid = NULL;
	int err = ctl_field_string(body, "gid", true, &gid);

	if (!err && !hex_read(gid, out->gid, sizeof(out->gid)))
		err = error_set(-EINVAL, "\"gid\" has %zu hex digits",
				2 * sizeof(out->gid));
	if (!err)
		err = ctl_field_u64(body, "qpn", true, 2, NUMBER_MAX, &qpn);
	if (!err)
		err = ctl_field_u64(body, "psn", true, 0, NUMBER_MAX, &psn);
	if (!err)
		err = field_mtu(body, &out->mtu);
	if (!err)
		err = ctl_field_u64(body, "rd_atomic", false, 1, UINT8_MAX,
				    &rd_atomic);
	out->qpn = (uint32_t)qpn;
	out->psn = (uint32_t)psn;
	out->rd_atomic = (uint8_t)rd_atomic;
	return err;
}

bool ctl_name_is_valid(const char *name, size_t max_chars)
{
	size_t len = strlen(name);

	return len >= 1 && len <= max_chars &&
	       strspn(name,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		      "0123456789-_.") == len &&
	       name[0] != '-' && name[0] != '.';
}

void ctl_incarnation_format(uint64_t number, char out[CTL_INCARNATION_TEXT])
{
	(void)snprintf(out, CTL_INCARNATION_TEXT, "%016" PRIx64, number);
}

int ctl_proto_check(const char *proto)
{
	char *end;
	unsigned long major;

	major = strtoul(proto, &end, 10);
	if (proto[0] < '0' || proto[0] > '9' || *end != '.' || end[1] < '0' ||
	    end[1] > '9' || strspn(end + 1, "0123456789") != strlen(end + 1))
		return error_set(-EINVAL,
				 "\"proto\" is a version like " CTL_PROTO);
	if (major != strtoul(CTL_PROTO, NULL, 10))
		return error_set(-EPROTONOSUPPORT,
				 "\"proto\": protocol " CTL_PROTO
				 " is spoken here, the client has %.16s",
				 proto);
	return 0;
}
