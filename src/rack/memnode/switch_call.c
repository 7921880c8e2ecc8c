/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the switch: one line, one answer. They are made with the node's lock
 * held, so a switch that hangs must not hold the node up: the first call that
 * it does not answer is the last one until it answers again, which the tick
 * finds out without the lock. What ends meanwhile is told later.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ask.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "switch_priv.h"

enum {
	ASK_MS = 1000,
	REPLY_BYTES = 65536,
	LINE_BYTES = 512,
};

int switch_ask(struct mem_node *node, const char *line, json_t **out)
{
	struct mem_switch *w = &node->at_switch;
	char *reply = malloc(REPLY_BYTES);
	int err = reply ? ask_line(w->path, line, ASK_MS, reply, REPLY_BYTES)
			: -ENOMEM;

	/* Only hints: who reads it too early or too late waits once more, or
	 * tells later what could have been told now. */
	if (reply)
		atomic_store_explicit(&w->is_away, err != 0,
				      memory_order_relaxed);
	if (err)
		err = error_set(err, "the switch at %s does not answer: %s",
				w->path, strerror(-err));
	else
		err = ask_error(reply);
	if (!err && out) {
		*out = json_loads(reply, 0, NULL);
		err = *out ? 0
			   : error_set(-EBADMSG, "the switch says nonsense");
	}
	free(reply);
	return err;
}

static int tell(struct mem_node *node, const char *line)
{
	struct mem_switch *w = &node->at_switch;

	if (atomic_load_explicit(&w->is_away, memory_order_relaxed))
		return error_set(-EAGAIN, "the switch at %s does not answer",
				 w->path);
	return switch_ask(node, line, NULL);
}

int switch_tell(struct mem_node *node, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	ASSERT(n > 0 && (size_t)n < sizeof(line));
	return tell(node, line);
}

/* ---- what ends ----------------------------------------------------------- */

/* One that was not known there is one that is gone. */
static bool is_over(int err)
{
	return err == 0 ||
	       (err == -EREMOTEIO && strstr(error_last(), "not declared"));
}

bool switch_tell_end(struct mem_node *node, const char *line)
{
	return is_over(tell(node, line));
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
			 w->path);
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
