/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has ended, and what the switch is told of it later. Calls are made with
 * the node's lock held, so one that the switch does not answer is the last one
 * until the tick has found out, without the lock, that it answers again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "switch_priv.h"

/* One that was not known there is one that is gone. */
static bool is_over(int err)
{
	return err == 0 ||
	       (err == -EREMOTEIO && strstr(error_last(), "not declared"));
}

bool switch_tell_end(struct mem_node *node, const char *line)
{
	return is_over(ctl_switch_tell(&node->at_switch.ctl, "%s", line));
}

void switch_tell_later(struct mem_node *node, const char *line)
{
	struct mem_switch *w = &node->at_switch;

	lock_assert_mutex_held(&node->lock);
	if (w->late_count < MEM_LATE_MAX) {
		snprintf(w->late[w->late_count++], MEM_LATE_BYTES, "%s", line);
		return;
	}
	/* It knows more of us than is true, and we do not know what: it is told
	 * everything anew. */
	if (w->run[0])
		log_warn("memnode", "too much to tell the switch at %s",
			 w->ctl.path);
	w->run[0] = '\0';
}

void switch_tell_late(struct mem_node *node)
{
	struct mem_switch *w = &node->at_switch;
	unsigned kept = 0;

	for (unsigned i = 0; i < w->late_count; i++) {
		if (switch_tell_end(node, w->late[i]))
			continue;
		if (kept != i)
			memcpy(w->late[kept], w->late[i], MEM_LATE_BYTES);
		kept++;
	}
	w->late_count = kept;
}
