/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and their maps, which the controller has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "el_priv.h"

uint64_t el_now_ns(void)
{
	return clock_mono_ns();
}

uint64_t el_deadline_ns(const struct el_object *o)
{
	return el_now_ns() + aq_rack_deadline(o->rack) * 1000000ull;
}

bool el_pause(unsigned *tries, uint64_t deadline_ns)
{
	uint64_t us = (uint64_t)EL_PAUSE_US << u32_min((*tries)++, 10);
	uint64_t now_ns = el_now_ns();
	struct timespec t;

	if (now_ns >= deadline_ns)
		return false;
	us = u64_min(u64_min(us, EL_PAUSE_MAX_US),
		     (deadline_ns - now_ns) / 1000 + 1);
	t = (struct timespec){.tv_nsec = (long)us * 1000};
	(void)nanosleep(&t, NULL);
	return true;
}

/* ---- the map ------------------------------------------------------------- */

struct el_block *el_find(struct el_object *o, uint64_t number)
{
	for (unsigned i = 0; i < o->block_count; i++)
		if (o->block[i].number == number)
			return &o->block[i];
	return NULL;
}

struct el_block *el_next(struct el_object *o, uint64_t number)
{
	for (unsigned i = 0; i < o->block_count; i++)
		if (o->block[i].number > number)
			return &o->block[i];
	return NULL;
}

static int take_place(const json_t *row, struct el_place *p)
{
	uint64_t index = 0;
	int err = client_json_u64(row, "generation", INT64_MAX, &p->generation);

	if (!err)
		err = client_json_u64(row, "index", UINT16_MAX, &index);
	if (!err)
		err = client_json_word(row, "node", p->node, sizeof(p->node));
	p->index = (uint32_t)index;
	return err;
}

/* The first member takes changes, the last one that counts answers reads. */
static int take_chain(const json_t *rows, struct el_block *b)
{
	const json_t *row;
	size_t i;
	int err;

	b->is_chained = true;
	json_array_foreach(rows, i, row)
	{
		struct el_place p = {0};

		err = take_place(row, &p);
		if (err)
			return err;
		if (!i)
			b->head = p;
		if (!i || json_is_true(json_object_get(row, "full")))
			b->reader = p;
	}
	return i ? 0 : error_set(-EPROTO, "a chain of the map is empty");
}

static int take_block(struct el_object *o, const json_t *row,
		      struct el_block *b)
{
	const json_t *chain = json_object_get(row, "chain");
	const char *state = json_string_value(json_object_get(row, "state"));
	const struct el_block *known;
	struct el_place *p = &b->head;
	int err;

	*b = (struct el_block){0};
	err = client_json_u64(row, "number", INT64_MAX, &b->number);
	if (!err)
		err = take_place(row, p);
	b->generation = p->generation;
	b->reader = *p;
	if (!err && chain)
		err = take_chain(chain, b);
	if (err)
		return err;
	if (state && strcmp(state, "lost") == 0)
		return error_set(
			-ESTALE, "%s has lost block %llu, which node %s had",
			o->path, (unsigned long long)b->number, b->head.node);
	known = el_find(o, b->number);
	if (known && known->generation == b->generation) {
		struct el_place head = b->head, reader = b->reader;

		*b = *known;
		/* Another copy lies elsewhere. */
		b->is_read &= known->reader.generation == reader.generation;
		b->head = head;
		b->reader = reader;
	}
	return 0;
}

static int take_blocks(struct el_object *o, const json_t *rows)
{
	size_t i, n = json_array_size(rows);
	struct el_block *fresh;
	int err = 0;

	if (!json_is_array(rows) || n > EL_BLOCKS_MAX)
		return error_set(-EPROTO, "the controller's map has no blocks");
	fresh = calloc(n + 1, sizeof(*fresh));
	if (!fresh)
		return error_set(-ENOMEM, "no memory for a map");
	for (i = 0; i < n && !err; i++) {
		err = take_block(o, json_array_get(rows, i), &fresh[i]);
		if (!err && i && fresh[i].number <= fresh[i - 1].number)
			err = error_set(-EPROTO, "the controller's map is not "
						 "in order");
	}
	if (err) {
		free(fresh);
		return err;
	}
	free(o->block);
	o->block = fresh;
	o->block_count = (unsigned)n;
	return 0;
}

static const char *kind_name(enum block_kind kind)
{
	static const char *const names[BLOCK_KINDS] = {
		[BLOCK_FILE] = "file",
		[BLOCK_QUEUE] = "queue",
		[BLOCK_EKV] = "ekv",
	};

	return names[kind];
}

static enum block_kind kind_of(const char *name)
{
	for (unsigned i = BLOCK_FILE; name && i < BLOCK_KINDS; i++)
		if (strcmp(name, kind_name((enum block_kind)i)) == 0)
			return (enum block_kind)i;
	return 0;
}

static int take_map(struct el_object *o, const json_t *map)
{
	const char *kind = json_string_value(json_object_get(map, "kind"));
	const char *why = json_string_value(json_object_get(map, "why"));
	const char *state = json_string_value(json_object_get(map, "state"));
	uint64_t id;
	int err = client_json_u64(map, "object", INT64_MAX, &id);

	if (err)
		return err;
	if (o->id && o->id != id)
		return error_set(-ESTALE,
				 "%s is not what was opened: it was removed, "
				 "or its lease is over, and made again",
				 o->path);
	if (!o->kind)
		o->kind = kind_of(kind);
	if (!o->kind)
		return error_set(-EPROTO, "%s is something of a newer release",
				 o->path);
	if (!kind || strcmp(kind, kind_name(o->kind)) != 0)
		return error_set(-EINVAL, "%s is no %s but a %.20s", o->path,
				 kind_name(o->kind), kind ? kind : "riddle");
	if (state && strcmp(state, "lost") == 0)
		return error_set(-ESTALE, "%s is lost: %.200s", o->path,
				 why ? why : "no reason is known");
	if (!hex_read(json_string_value(json_object_get(map, "ticket")),
		      o->ticket, sizeof(o->ticket)))
		return error_set(-EPROTO, "the controller's map has no ticket");
	o->id = id;
	err = client_json_u64(map, "block_bytes", BLOCK_BYTES_MAX,
			      &o->block_bytes);
	if (!err)
		err = client_json_u64(map, "bound", INT64_MAX, &o->bound);
	if (!err)
		err = client_json_u64(map, "copies", INT64_MAX, &o->copies);
	return err ? err : take_blocks(o, json_object_get(map, "blocks"));
}

/* Removed meanwhile, or with its lease. */
static int gone(const struct el_object *o, int err)
{
	return err == -ENOENT && o->id
		       ? error_set(-ESTALE,
				   "%s is gone: it was removed, or nobody "
				   "renewed its lease",
				   o->path)
		       : err;
}

static int take(struct el_object *o, int err, json_t *map)
{
	err = err ? gone(o, err) : take_map(o, map);
	json_decref(map);
	return err;
}

int el_refresh(struct el_object *o, uint64_t deadline_ns)
{
	char path[EL_PATH_MAX + 32];
	json_t *map = NULL;
	int err;

	(void)snprintf(path, sizeof(path), "/v1/map%s", o->path);
	err = client_control_call(o->rack, "GET", path, NULL, deadline_ns,
				  &map);
	return take(o, err, map);
}

int el_map_grow(struct aq_rack *rack, const char *object, uint64_t after,
		unsigned most, uint64_t deadline_ns, json_t **map)
{
	char path[EL_PATH_MAX + 32];
	json_t *body = json_pack("{s:I, s:i}", "after",
				 after == UINT64_MAX ? (json_int_t)-1
						     : (json_int_t)after,
				 "most", (int)most);

	(void)snprintf(path, sizeof(path), "/v1/blocks%s", object);
	return client_control_call(rack, "POST", path, body, deadline_ns, map);
}

int el_grow(struct el_object *o, uint64_t after, unsigned most,
	    uint64_t deadline_ns)
{
	json_t *map = NULL;
	int err = el_map_grow(o->rack, o->path, after, most, deadline_ns, &map);

	return take(o, err, map);
}

int el_map_take_longer(struct el_object *o, const json_t *map)
{
	return json_array_size(json_object_get(map, "blocks")) > o->block_count
		       ? take_map(o, map)
		       : 0;
}

/* ---- opening ------------------------------------------------------------- */

static int create(struct el_object *o, const struct aq_elastic_options *options,
		  uint64_t deadline_ns)
{
	json_t *reply = NULL, *body;
	char path[EL_PATH_MAX + 32];
	int err;

	body = json_pack("{s:s, s:b}", "kind", kind_name(o->kind),
			 "make_parents", true);
	if (options->block_bytes)
		(void)json_object_set_new(
			body, "block_bytes",
			json_integer((json_int_t)options->block_bytes));
	if (options->copies)
		(void)json_object_set_new(
			body, "copies",
			json_integer((json_int_t)options->copies));
	if (options->bound)
		(void)json_object_set_new(
			body, "bound",
			json_integer((json_int_t)options->bound));
	(void)snprintf(path, sizeof(path), "/v1/ns%s", o->path);
	err = client_control_call(o->rack, "POST", path, body, deadline_ns,
				  &reply);
	json_decref(reply);
	return err;
}

/* Begins to load it, if there is anything to load. */
static int ask_to_load(const struct el_object *o, uint64_t deadline_ns)
{
	char path[EL_PATH_MAX + 32];
	json_t *reply = NULL;
	int err;

	(void)snprintf(path, sizeof(path), "/v1/load%s", o->path);
	err = client_control_call(o->rack, "POST", path, NULL, deadline_ns,
				  &reply);
	json_decref(reply);
	return err;
}

/* Until it has been loaded; the controller says -EAGAIN while it is on the way
 * to the vault or back. 0 also where there is no such name. */
static int load(struct el_object *o)
{
	uint64_t end_ns = el_now_ns() + EL_LOAD_MS * 1000000ull;
	unsigned tries = 0;
	int err;

	do {
		err = ask_to_load(o, el_deadline_ns(o));
	} while (err == -EAGAIN && el_pause(&tries, end_ns));
	tries = 0;
	while (!err && (err = el_refresh(o, el_deadline_ns(o))) == -EAGAIN &&
	       el_pause(&tries, end_ns))
		err = 0;
	/* A lost one without an image is -ENOENT, too: opening says more. */
	return err == -ENOENT ? 0 : err;
}

static bool is_path(const char *path)
{
	size_t len = strnlen(path, EL_PATH_MAX);

	return path[0] == '/' && len > 1 && len < EL_PATH_MAX - 1 &&
	       path[len - 1] != '/' && strspn(path, "/") == 1;
}

int el_open(struct el_object *o, struct aq_rack *rack, const char *path,
	    enum block_kind kind, const struct aq_elastic_options *options)
{
	static const struct aq_elastic_options none;
	uint64_t deadline_ns;
	int err;

	if (!options)
		options = &none;
	if (!is_path(path))
		return error_set(-EINVAL,
				 "'%.60s' is no path; one begins with '/' and "
				 "ends with a name",
				 path);
	*o = (struct el_object){.rack = rack, .kind = kind};
	(void)snprintf(o->path, sizeof(o->path), "%s", path);
	if (getrandom(o->session, sizeof(o->session), 0) != sizeof(o->session))
		return error_set(-EIO, "the kernel gives no random numbers");
	err = options->flags & AQ_ELASTIC_LOAD ? load(o) : 0;
	if (err)
		return err;
	deadline_ns = el_deadline_ns(o);
	err = options->flags & (AQ_ELASTIC_CREATE | AQ_ELASTIC_NEW)
		      ? create(o, options, deadline_ns)
		      : 0;
	if (err == -EEXIST && !(options->flags & AQ_ELASTIC_NEW))
		err = 0;
	return err ? err : el_refresh(o, deadline_ns);
}
