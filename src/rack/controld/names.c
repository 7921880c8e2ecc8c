/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant's share of the names of a rack: a quarter of them, and half for the
 * tenant "default", as at memory nodes. Rows that are read are never refused.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

static unsigned share_of(const char *tenant, unsigned all)
{
	return strcmp(tenant, "default") == 0 ? all / 2 : all / 4;
}

static int check(const char *tenant, const char *words, unsigned has,
		 unsigned more, unsigned all)
{
	unsigned share = share_of(tenant, all);

	if (more <= share && has <= share - more)
		return 0;
	return error_set(-EAGAIN,
			 "tenant %s has %u %s, of %u that it may have; %u more "
			 "do not fit",
			 tenant, has, words, share, more);
}

int cd_names_admit(const struct cd_core *core, const char *tenant,
		   unsigned prefixes, unsigned objects)
{
	unsigned has_prefixes = 0, has_objects = 0;
	int err;

	for (const struct cd_job *j = cd_job_first(core, tenant); j;
	     j = j->next) {
		if (strcmp(j->tenant, tenant) != 0)
			continue;
		has_prefixes += j->count;
		has_objects += j->object_count;
	}
	err = check(tenant, "folders and tasks", has_prefixes, prefixes,
		    CD_PREFIXES_MAX);
	return err ? err
		   : check(tenant, "files, queues and stores", has_objects,
			   objects, CD_OBJECTS_MAX);
}
