/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/flush/PATH and /v1/load/PATH: one object, or all below a name. Both begin
 * it; /v1/ns/PATH and /v1/tree/PATH say how it goes on. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "vault_priv.h"

typedef int (*begin_fn)(struct cd_core *core, struct cd_object *o,
			json_t *rows);

/* It has begun, or has not. */
static int begun_flush(struct cd_core *core, const struct cd_object *o, int err,
		       json_t *rows)
{
	char path[CTL_PATH_MAX];

	cd_path_show(core, o->prefix, o, path);
	if (err)
		return error_prefix(err, "%s: ", path);
	(void)json_array_append_new(
		rows, json_pack("{s:s, s:I}", "path", path, "image",
				cd_int(o->flush ? o->flush->image->id : 0)));
	return 0;
}

static int begin_flush(struct cd_core *core, struct cd_object *o, json_t *rows)
{
	return begun_flush(core, o, cd_flush_begin(core, o, false), rows);
}

static int begin_frozen(struct cd_core *core, struct cd_object *o, json_t *rows)
{
	return begun_flush(core, o, cd_flush_begin_frozen(core, o), rows);
}

static int load(struct cd_core *core, struct cd_object *o, bool is_wanted,
		json_t *rows)
{
	char path[CTL_PATH_MAX];
	int err = 0;

	cd_path_show(core, o->prefix, o, path);
	if (o->state == CD_FLUSHING)
		err = error_set(-EAGAIN, "it is being written to the vault");
	else if (is_wanted)
		err = cd_load_begin(core, o, &o);
	if (err)
		return error_prefix(err, "%s: ", path);
	(void)json_array_append_new(rows, json_pack("{s:s, s:s}", "path", path,
						    "state",
						    cd_object_state_name(o)));
	return 0;
}

/* What is there already is well. */
static int begin_load(struct cd_core *core, struct cd_object *o, json_t *rows)
{
	return load(core, o, o->state == CD_FLUSHED || o->lost[0], rows);
}

/* What is there becomes what it was. */
static int begin_back(struct cd_core *core, struct cd_object *o, json_t *rows)
{
	return load(core, o, o->state != CD_LOADING, rows);
}

static bool is_flushable(const struct cd_object *o)
{
	return o->state == CD_READY && !o->lost[0] && !o->flush;
}

static bool is_loadable(const struct cd_object *o)
{
	return o->image && (o->state == CD_FLUSHED || o->lost[0]);
}

static bool has_image(const struct cd_object *o)
{
	return o->image;
}

/* Those that can be; the list of a prefix changes while they are begun. */
static int begin_below(struct cd_core *core, struct cd_prefix *top,
		       bool (*may)(const struct cd_object *), begin_fn begin,
		       json_t *rows)
{
	struct cd_job *job = top->job;
	int err = 0;

	for (unsigned i = 0; i < job->count && !err; i++) {
		struct cd_prefix *p = job->order[i];
		struct cd_object *o = p->objects, *next;

		p->mark = p == top;
		for (unsigned k = 0; k < p->parent_count; k++)
			p->mark |= p->parent[k]->mark;
		for (; p->mark && o && !err; o = next) {
			next = o->next;
			if (!may(o))
				continue;
			/* A transaction has few rows. */
			cd_stage_group(core);
			err = begin(core, o, rows);
		}
	}
	return err;
}

static void handle(struct cd_core *core, struct ctl_call *call,
		   bool (*may)(const struct cd_object *), begin_fn begin)
{
	struct cd_tenant *t = NULL;
	struct cd_at at = {0};
	json_t *rows = json_array();
	int err = cd_tenant_of_names(call, &t);

	if (!err)
		err = cd_path_find(core, t->name, call->rest, &at);
	if (!err && at.object)
		err = begin(core, at.object, rows);
	else if (!err && at.prefix)
		err = begin_below(core, at.prefix, may, begin, rows);
	else if (!err)
		err = error_set(-EINVAL, "the path names nothing");
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 202,
			       json_pack("{s:O}", "objects", rows));
	json_decref(rows);
}

void cd_handle_flush(void *ctx, struct ctl_call *call)
{
	const json_t *freeze = json_object_get(call->body, "freeze");

	if (freeze && !json_is_boolean(freeze))
		ctl_reply_error(call->reply, -EINVAL,
				"\"freeze\" is true or false");
	else
		handle(ctx, call, is_flushable,
		       json_is_true(freeze) ? begin_frozen : begin_flush);
}

void cd_handle_load(void *ctx, struct ctl_call *call)
{
	const json_t *back = json_object_get(call->body, "back");

	if (back && !json_is_boolean(back))
		ctl_reply_error(call->reply, -EINVAL,
				"\"back\" is true or false");
	else if (json_is_true(back))
		handle(ctx, call, has_image, begin_back);
	else
		handle(ctx, call, is_loadable, begin_load);
}
