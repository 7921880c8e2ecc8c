/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: what has blocks. They grow at the end; queues lose blocks at the
 * front, key-value stores anywhere. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "vault_priv.h"

static const char *const kinds[CD_OBJECT_KINDS] = {"file", "queue", "ekv"};

const char *cd_object_kind_name(enum cd_object_kind kind)
{
	return kinds[kind];
}

int cd_object_kind_parse(const char *text, enum cd_object_kind *out)
{
	for (unsigned i = 0; i < CD_OBJECT_KINDS; i++) {
		if (strcmp(text, kinds[i]) != 0)
			continue;
		*out = (enum cd_object_kind)i;
		return 0;
	}
	return error_set(-EINVAL,
			 "\"kind\" is folder, task, prefix, file, queue or "
			 "ekv");
}

struct cd_object *cd_object_find(const struct cd_prefix *p, const char *name)
{
	struct cd_object *o = p->objects;

	while (o && strcmp(o->name, name) != 0)
		o = o->next;
	return o;
}

void cd_object_attach(struct cd_prefix *p, struct cd_object *o)
{
	o->prefix = p;
	o->next = p->objects;
	p->objects = o;
	p->job->object_count++;
}

void cd_object_detach(struct cd_object *o)
{
	struct cd_object **at = &o->prefix->objects;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	o->prefix->job->object_count--;
}

int cd_object_add(struct cd_core *core, struct cd_prefix *p, const char *name,
		  uint64_t id, struct cd_object **out)
{
	struct cd_object *o;
	int err;

	if (core->tree->objects.count >= CD_OBJECTS_MAX)
		return error_set(-EAGAIN,
				 "a rack has %d files, queues and stores at "
				 "most",
				 CD_OBJECTS_MAX);
	o = calloc(1, sizeof(*o));
	err = o ? cd_ids_add(&core->tree->objects, id, o)
		: error_set(-ENOMEM, "no memory for an object");
	if (err) {
		free(o);
		return err;
	}
	o->id = id;
	o->run = 1;
	o->copies = 1;
	o->block_bytes = CD_BLOCK_BYTES;
	(void)snprintf(o->name, sizeof(o->name), "%s", name);
	cd_object_attach(p, o);
	*out = o;
	return 0;
}

void cd_object_remove(struct cd_core *core, struct cd_object *o)
{
	cd_vault_forget(core, o);
	while (o->block_count)
		cd_block_release(core, o->block[o->block_count - 1], false);
	cd_object_detach(o);
	cd_ids_remove(&core->tree->objects, o->id);
	free(o->block);
	free(o);
}

void cd_object_lose(struct cd_core *core, struct cd_object *o, const char *why)
{
	char path[CTL_PATH_MAX];

	if (o->lost[0])
		return;
	(void)snprintf(o->lost, sizeof(o->lost), "%s", why);
	cd_path_format(o->prefix, o, path);
	log_warn("controld", "%s of %s is lost: %s", path,
		 o->prefix->job->tenant, why);
	cd_stage_object(core, o);
}

const char *cd_object_lost(const struct cd_object *o)
{
	if (o->lost[0])
		return o->lost;
	for (unsigned i = 0; i < o->block_count; i++)
		if (!cd_chain_is_up(o->block[i]))
			return "a node with a part of it is down";
	return NULL;
}

/* ---- growing ------------------------------------------------------------ */

static uint64_t last_number(const struct cd_object *o)
{
	return o->block[o->block_count - 1]->number;
}

/* What a node said lately about a block that it could not make. */
static int take_failure(struct cd_object *o)
{
	int err = o->failed;

	o->failed = 0;
	return err == -EDQUOT
		       ? error_set(err, "the tenant's quota has no room for "
					"another block")
		       : 0;
}

static int make_one(struct cd_core *core, struct cd_object *o)
{
	const struct cd_wish wish = {
		.size_bytes = o->block_bytes, .copies = 1, .is_block = true};
	struct cd_node *node[CD_COPIES_MAX] = {NULL};
	uint64_t number = o->block_count ? last_number(o) + 1 : 0;
	struct cd_block *b;
	int err;

	if (o->copies > 1)
		return cd_chain_make(core, o, number);
	err = cd_place_policy("least")(core, &wish, node);
	return err ? err : cd_block_make(core, node[0], o, number, 0, &b);
}

/* An order takes a commit and the way to a node, so who fills blocks faster
 * gets more at a time. Who does not would have blocks that lie idle: the next
 * run is shorter again. */
static unsigned next_run(const struct cd_object *o, uint64_t now_ns)
{
	/* A store fills one block by half of another, and gives blocks back. */
	if (o->kind == CD_EKV || !o->grown_ns)
		return o->run;
	if (now_ns - o->grown_ns < CD_RUN_MS * 1000000ull)
		return o->run < CD_RUN_MAX ? 2 * o->run : CD_RUN_MAX;
	return o->run > 1 ? o->run / 2 : 1;
}

int cd_object_grow(struct cd_core *core, struct cd_object *o, int64_t after,
		   uint64_t most)
{
	uint64_t now_ns = env_now_ns(core->env);
	unsigned made = 0;
	int err;

	if (o->block_count && (after < 0 || last_number(o) > (uint64_t)after))
		return 0;
	err = take_failure(o);
	if (!err)
		o->run = (unsigned)u64_min(next_run(o, now_ns), most);
	/* The first one must be; more are welcome. */
	while (!err && made < o->run) {
		err = make_one(core, o);
		made += !err;
	}
	if (err && !made)
		return err;
	error_clear();
	o->grown_ns = now_ns;
	return 0;
}
