/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that cannot be far: known before they start, or told at the end. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "exe.h"
#include "near.h"

/* NULL: nothing is known against it. */
static const char *why_not(const struct run_options *o, const char *program)
{
	char path[PATH_MAX];

	if (!exe_find(program, path, sizeof(path)))
		return NULL;
	return exe_why(exe_look(path, o->user->uid, o->user->gid));
}

int run_strict_check(const struct run_options *options, const char *program,
		     char text[RUN_TEXT_MAX])
{
	const char *why = options->is_strict ? why_not(options, program) : NULL;

	if (!why)
		return 0;
	(void)snprintf(text, RUN_TEXT_MAX,
		       "--strict: '%.60s' would have local memory only, "
		       "because %s; run it without --strict, or in a cgroup "
		       "with a limit",
		       program, why);
	return -EOPNOTSUPP;
}

void run_near_finish(const struct run_options *options,
		     struct run_shared *shared, const char *program,
		     uint64_t most_bytes)
{
	struct run_near *near = &shared->near;
	const char *why;

	if (atomic_load_explicit(&shared->stats.spaces_ever,
				 memory_order_relaxed) ||
	    most_bytes <= near->bytes)
		return;
	why = why_not(options, program);
	near->bytes = most_bytes;
	(void)snprintf(near->text, sizeof(near->text),
		       "of '%.60s' was not far, because %s", program,
		       why ? why : near_why(NEAR_UNATTACHED));
	near_clean(near->text);
}
