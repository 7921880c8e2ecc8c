/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to a switch, and what its answers say. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ask.h"
#include "base/error.h"
#include "ctl_switch.h"

enum {
	ASK_MS = 1000,
	REPLY_BYTES = 1 << 20,
	LINE_BYTES = 512,
};

int ctl_switch_path(const char *rundir, const char *name,
		    char out[CTL_SWITCH_PATH_MAX])
{
	if ((size_t)snprintf(out, CTL_SWITCH_PATH_MAX, "%s/switch-%.32s.ctl",
			     rundir, name) >= CTL_SWITCH_PATH_MAX)
		return error_set(-ENAMETOOLONG,
				 "the runtime directory's name is too long");
	return 0;
}

static int carry(struct ctl_switch *w, const char *line, char *reply)
{
	return w->carry ? w->carry(w->carry_ctx, line, reply, REPLY_BYTES)
			: ask_line(w->path, line, ASK_MS, reply, REPLY_BYTES);
}

int ctl_switch_ask(struct ctl_switch *w, const char *line, json_t **out)
{
	char *reply = malloc(REPLY_BYTES);
	int err = reply ? carry(w, line, reply) : -ENOMEM;

	/* Only hints: a thread that reads it too early or too late waits once
	 * more, or tells later what could have been told now. */
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

int ctl_switch_tell(struct ctl_switch *w, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	ASSERT(n > 0 && (size_t)n < sizeof(line));
	if (atomic_load_explicit(&w->is_away, memory_order_relaxed))
		return error_set(-EAGAIN, "the switch at %s does not answer",
				 w->path);
	return ctl_switch_ask(w, line, NULL);
}

const char *ctl_switch_run(const json_t *answer)
{
	const char *run = json_string_value(json_object_get(answer, "run"));

	return run && strlen(run) < CTL_SWITCH_RUN_TEXT ? run : NULL;
}

const json_t *ctl_switch_program(const json_t *hello, const char *name)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(hello, "programs"), i, p)
	{
		const char *n = json_string_value(json_object_get(p, "name"));

		if (n && strcmp(n, name) == 0)
			return p;
	}
	return NULL;
}

const uint8_t *ctl_switch_ip(const uint8_t peer[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	static const uint8_t own[2][16] = {
		{[10] = 0xff, 0xff, 127, 255, 255, 254},
		{[0] = 0x01, [15] = 0x01}, /* 100::1, of the discard prefix */
	};

	return own[memcmp(peer, v4, sizeof(v4)) != 0];
}
