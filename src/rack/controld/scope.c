/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request with a token that opens less may do. Routes are closed unless
 * they are named here; paths are looked up in path.c, which asks here whether
 * the caller may know of what it has found.
 *
 * In a plan a task has many addresses, so what counts is not the text of a path
 * but whether the place of the token is above what it names. That place is
 * looked up anew for each request: it need not be there yet, and may be another
 * one after it was removed and made again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

/* ---- routes -------------------------------------------------------------- */

typedef void (*route_fn)(void *ctx, struct ctl_call *call);

/* Those that are about names, and where nodes are. */
static const route_fn with_a_path[] = {
	cd_handle_status,    cd_handle_page,	 cd_handle_look_token,
	cd_handle_node_list, cd_handle_job_list, cd_handle_renew,
	cd_handle_ns_get,    cd_handle_ns_make,	 cd_handle_ns_patch,
	cd_handle_ns_delete, cd_handle_tree_get, cd_handle_map_get,
	cd_handle_map_grow,  cd_handle_flush,	 cd_handle_load,
};

/* Requests other than GET that change nothing of the tenant's. */
static const route_fn for_reading[] = {
	cd_handle_look,
	cd_handle_look_token,
};

static bool is_one_of(route_fn run, const route_fn *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == run)
			return true;
	return false;
}

int cd_scope_check_route(const struct ctl_call *call, const struct cd_narrow *n)
{
	route_fn run = call->route->run;

	if (n->path[0] && !is_one_of(run, with_a_path, ARRAY_LEN(with_a_path)))
		return error_set(-EACCES,
				 "this token is for the names at %s and below, "
				 "and for nothing else",
				 n->path);
	if (n->reads && call->request->method != CTL_GET &&
	    !is_one_of(run, for_reading, ARRAY_LEN(for_reading)))
		return error_set(-EACCES, "this token may only read");
	return 0;
}

/* ---- places -------------------------------------------------------------- */

/* Tasks have several parents, so all that is below is marked once. Parents come
 * before their children. */
static void mark_below(const struct cd_prefix *top)
{
	const struct cd_job *job = top->job;

	for (unsigned i = 0; i < job->count; i++) {
		struct cd_prefix *p = job->order[i];

		p->mark = p == top;
		for (unsigned k = 0; k < p->parent_count; k++)
			p->mark |= p->parent[k]->mark;
	}
}

void cd_scope_begin(struct cd_core *core, const struct cd_who *who,
		    struct cd_scope *s)
{
	*s = (struct cd_scope){.narrow = who->narrow};
	if (!s->narrow)
		return;
	core->scope = s;
	if (!s->narrow->path[0])
		return;
	if (cd_path_look(core, who->tenant->name, s->narrow->path, &s->at))
		s->at = (struct cd_at){0};
	else if (!s->at.object && s->at.prefix->job->has_plan)
		mark_below(s->at.prefix);
}

static bool has_path(const struct cd_scope *s)
{
	return s && s->narrow->path[0];
}

bool cd_scope_reads(const struct cd_core *core)
{
	return core->scope && core->scope->narrow->reads;
}

bool cd_scope_has_prefix(const struct cd_core *core, const struct cd_prefix *p)
{
	const struct cd_prefix *top =
		core->scope ? core->scope->at.prefix : NULL;
	bool below;

	if (!has_path(core->scope))
		return true;
	if (!top || !p || core->scope->at.object || p->job != top->job)
		return false;
	if (!p->job->has_plan)
		return cd_prefix_is_below(p, top);
	/* A task that this request has made has no mark yet. */
	below = p->mark;
	for (unsigned i = 0; i < p->parent_count; i++)
		below |= p->parent[i]->mark;
	return below;
}

bool cd_scope_has(const struct cd_core *core, const struct cd_at *at)
{
	const struct cd_scope *s = core->scope;

	if (!has_path(s))
		return true;
	return (s->at.object && s->at.object == at->object) ||
	       cd_scope_has_prefix(core, at->prefix);
}

int cd_scope_root(const struct cd_core *core, struct cd_at *out)
{
	*out = (struct cd_at){0};
	if (!has_path(core->scope))
		return 0;
	*out = core->scope->at;
	return out->prefix ? 0
			   : error_set(-ENOENT, "there is no %s",
				       core->scope->narrow->path);
}

int cd_scope_check_change(const struct cd_core *core, const struct cd_at *at)
{
	const struct cd_scope *s = core->scope;

	if (!has_path(s) || s->at.prefix != at->prefix ||
	    s->at.object != at->object)
		return 0;
	return error_set(-EACCES,
			 "%s itself is not this token's to change, only what "
			 "is below it",
			 s->narrow->path);
}

const struct cd_scope *cd_scope_shown(const struct cd_core *core)
{
	return has_path(core->scope) ? core->scope : NULL;
}

uint64_t cd_scope_end_s(const struct cd_core *core, uint64_t end_s)
{
	uint64_t until_s = core->scope ? core->scope->narrow->token.until_s : 0;

	return until_s ? u64_min(until_s, end_s) : end_s;
}
