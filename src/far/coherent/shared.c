/* SPDX-License-Identifier: Apache-2.0 */
/* <aquifer/shared.h>: segments, asked for at the lead, and mapped. */
#include <aquifer/shared.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "base/error.h"
#include "client/shared.h"
#include "wire/coherence_wire.h"

enum {
	PATH_BYTES = 256,
	COPIES_MAX = 2,
};

#define SEGMENTS "/v1/shared/segments"

struct aq_shared {
	struct aq_rack *rack;
	struct client_lead lead;
	struct coherent_mapping mapping;
	bool is_read_only;
	char path[PATH_BYTES];
};

static bool is_name_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* NAME, or TENANT/NAME. It becomes a part of a path, so nothing strange may be
 * in it; the lead knows the rest of the rules. */
static int write_path(const char *name, const char *end, char out[PATH_BYTES])
{
	unsigned slashes = 0;

	for (const char *c = name; c && *c; c++) {
		slashes += *c == '/';
		if ((*c != '/' && !is_name_letter(*c)) || slashes > 1)
			name = NULL;
		if (!name)
			break;
	}
	if (!name || !*name || strlen(name) > 2 * AQ_SHARED_NAME_MAX + 1)
		return error_set(-EINVAL,
				 "a segment's name is 1 to %d letters, digits, "
				 "'-', '_' and '.', with or without the "
				 "tenant's and '/' before it",
				 AQ_SHARED_NAME_MAX);
	(void)snprintf(out, PATH_BYTES, SEGMENTS "/%s%s", name, end);
	return 0;
}

/* One request that is about a segment, and no answer but success. */
static int simple(struct aq_rack *rack, const char *name, const char *end,
		  const char *method, json_t *body)
{
	char path[PATH_BYTES];
	struct client_lead lead;
	json_t *reply = NULL;
	int err = write_path(name, end, path);

	if (!err)
		err = client_shared_find(rack, &lead);
	if (err) {
		json_decref(body);
		return err;
	}
	err = client_shared_call(rack, &lead, method, path, body, &reply);
	json_decref(reply);
	return err;
}

static int check_options(uint64_t size_bytes, const struct aq_shared_options *o)
{
	if (size_bytes > INT64_MAX)
		return error_set(-EINVAL, "that is too much");
	if (o->copies > COPIES_MAX)
		return error_set(-EINVAL, "a segment has 1 or %d copies",
				 COPIES_MAX);
	if (o->flags & ~(uint32_t)AQ_SHARED_LAST)
		return error_set(-EINVAL, "unknown flags");
	return 0;
}

AQ_API int aq_shared_create_with(struct aq_rack *rack, const char *name,
				 uint64_t size_bytes,
				 const struct aq_shared_options *options)
{
	static const struct aq_shared_options none;
	const struct aq_shared_options *o = options ? options : &none;
	char path[PATH_BYTES];
	struct client_lead lead;
	json_t *reply = NULL;
	int err = write_path(name, "", path);

	if (!err)
		err = check_options(size_bytes, o);
	if (!err)
		err = client_shared_find(rack, &lead);
	if (err)
		return err;
	err = client_shared_call(
		rack, &lead, "POST", SEGMENTS,
		json_pack("{s:s, s:I, s:I, s:s}", "name", name, "size",
			  (json_int_t)size_bytes, "copies",
			  (json_int_t)(o->copies ? o->copies : 1), "on_loss",
			  o->flags & AQ_SHARED_LAST ? "last" : "error"),
		&reply);
	json_decref(reply);
	return err;
}

AQ_API int aq_shared_create(struct aq_rack *rack, const char *name,
			    uint64_t size_bytes)
{
	return aq_shared_create_with(rack, name, size_bytes, NULL);
}

AQ_API int aq_shared_delete(struct aq_rack *rack, const char *name)
{
	return simple(rack, name, "", "DELETE", NULL);
}

AQ_API int aq_shared_allow_part(struct aq_rack *rack, const char *name,
				const char *tenant, uint64_t offset,
				uint64_t length, enum aq_shared_right right)
{
	static const char *const words[] = {"none", "r", "rw"};
	json_t *body;

	if ((unsigned)right >= ARRAY_LEN(words) || !tenant)
		return error_set(-EINVAL, "no such right");
	if (offset > INT64_MAX || length > INT64_MAX)
		return error_set(-EINVAL, "outside the segment");
	body = json_pack("{s:s, s:s, s:I}", "tenant", tenant, "right",
			 words[right], "offset", (json_int_t)offset);
	if (length)
		(void)json_object_set_new(body, "length",
					  json_integer((json_int_t)length));
	return simple(rack, name, "/allow", "POST", body);
}

AQ_API int aq_shared_allow(struct aq_rack *rack, const char *name,
			   const char *tenant, enum aq_shared_right right)
{
	return aq_shared_allow_part(rack, name, tenant, 0, 0, right);
}

/* ---- mappings ------------------------------------------------------------ */

static int map_segment(struct aq_shared *s, const json_t *segment,
		       unsigned flags)
{
	const char *right =
		json_string_value(json_object_get(segment, "right"));
	bool is_read_only = flags & AQ_SHARED_READ_ONLY;
	struct coherent_segment g;
	int err = client_json_u64(segment, "va", INT64_MAX, &g.va);

	if (!err)
		err = client_json_u64(segment, "size", INT64_MAX,
				      &g.size_bytes);
	if (!err)
		err = client_json_u64(segment, "reserved", INT64_MAX,
				      &g.reserved_bytes);
	if (!err)
		err = client_json_u64(segment, "id", INT64_MAX, &g.id);
	if (err || !right)
		return error_set(-EPROTO, "the lead's answer makes no sense");
	if (!is_read_only && strcmp(right, "rw") != 0)
		return error_set(-EACCES,
				 "this tenant may only read the segment: open "
				 "it with AQ_SHARED_READ_ONLY");
	/* Where we map it: nothing else may be said to be there. */
	if (g.va % COHERENCE_PAGE_BYTES || !g.size_bytes ||
	    g.size_bytes % COHERENCE_PAGE_BYTES || g.va < COHERENCE_BASE ||
	    g.va + g.size_bytes > coherence_arena(COHERENCE_NODES))
		return error_set(-EPROTO, "the lead's answer makes no sense");
	s->is_read_only = is_read_only;
	return coherent_attach(client_shared_rack(s->rack), &g, !is_read_only,
			       &s->mapping);
}

AQ_API int aq_shared_open(struct aq_rack *rack, const char *name,
			  unsigned flags, struct aq_shared **shared)
{
	struct aq_shared *s = calloc(1, sizeof(*s));
	json_t *reply = NULL;
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory");
	s->rack = rack;
	err = flags & ~(unsigned)AQ_SHARED_READ_ONLY
		      ? error_set(-EINVAL, "unknown flags")
		      : write_path(name, "", s->path);
	if (!err)
		err = client_shared_find(rack, &s->lead);
	if (!err)
		err = client_shared_call(rack, &s->lead, "GET", s->path, NULL,
					 &reply);
	if (!err)
		err = map_segment(s, reply, flags);
	json_decref(reply);
	if (err)
		free(s);
	else
		*shared = s;
	return err;
}

AQ_API void aq_shared_close(struct aq_shared *shared)
{
	if (!shared)
		return;
	coherent_detach(&shared->mapping);
	free(shared);
}

AQ_API void *aq_shared_addr(const struct aq_shared *shared)
{
	return (void *)(uintptr_t)shared->mapping.va;
}

AQ_API uint64_t aq_shared_size(const struct aq_shared *shared)
{
	return shared->mapping.size_bytes;
}

/* Asks for something that is about a part of the segment. */
static int ask_range(const struct aq_shared *shared,
		     enum coherent_ask_kind kind, uint64_t offset,
		     uint64_t length)
{
	const struct coherent_mapping *m = &shared->mapping;
	struct coherent_answer a;

	if (offset > m->size_bytes || length > m->size_bytes - offset)
		return error_set(-ERANGE, "outside the segment");
	return coherent_ask(m, kind, m->va + offset, length, &a);
}

AQ_API int aq_shared_flush(struct aq_shared *shared, uint64_t offset,
			   uint64_t length)
{
	return ask_range(shared, COHERENT_FLUSH, offset, length);
}

AQ_API int aq_shared_fetch(struct aq_shared *shared, uint64_t offset,
			   uint64_t length, enum aq_shared_right right)
{
	if (right != AQ_SHARED_READ && right != AQ_SHARED_WRITE)
		return error_set(-EINVAL, "pages come to be read or written");
	if (right == AQ_SHARED_WRITE && shared->is_read_only)
		return error_set(-EACCES, "the segment is open for reading");
	return ask_range(shared,
			 right == AQ_SHARED_WRITE ? COHERENT_FETCH_WRITE
						  : COHERENT_FETCH_READ,
			 offset, length);
}

AQ_API int aq_shared_stat(struct aq_shared *shared, struct aq_shared_info *info)
{
	struct coherent_answer a;
	json_t *reply = NULL;
	uint64_t lost = 0;
	int err = coherent_ask(&shared->mapping, COHERENT_STAT, 0, 0, &a);

	if (!err)
		err = client_shared_call(shared->rack, &shared->lead, "GET",
					 shared->path, NULL, &reply);
	if (!err)
		err = client_json_u64(reply, "lost", INT64_MAX, &lost);
	json_decref(reply);
	if (err)
		return err;
	*info = (struct aq_shared_info){.size_bytes =
						shared->mapping.size_bytes,
					.lost_bytes = lost,
					.cached_bytes = a.cached_bytes,
					.faults = a.faults,
					.gets = a.gets,
					.invalidations = a.invals,
					.given_back = a.gives};
	return 0;
}
