/* SPDX-License-Identifier: Apache-2.0 */
/* Control calls of memory nodes to the switch of the simulated rack: hello, and
 * what they tell its programs. */
#include "walk_node_seam.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "control/ctl_switch.h"
#include "rig/tor_net.h"
#include "walk_rack.h"

enum {
	LINE_BYTES = 512,
};

void walk_switch_path(const struct walk_node *n, char path[WALK_SWITCH_PATH])
{
	snprintf(path, WALK_SWITCH_PATH, "%p", (const void *)n);
}

/* Who calls. A process that is dead says nothing more. */
static struct rig_tor *switch_of(const struct ctl_switch *w)
{
	const struct walk_node *n = NULL;
	void *ptr = NULL;

	if (sscanf(w->path, "%p", &ptr) == 1)
		n = ptr;
	return n && !n->host->killed ? n->of->tor : NULL;
}

static int take_hello(struct rig_tor *tor, json_t **out)
{
	char *text = NULL, run[CTL_SWITCH_RUN_TEXT];
	struct json_out json;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	snprintf(run, sizeof(run), "%u", rig_tor_runs(tor));
	json_out_init(&json, f);
	json_out_object(&json, NULL);
	json_out_string(&json, "run", run);
	tor_report_programs(rig_tor_get(tor), &json);
	json_out_close(&json);
	if (json_out_end(&json) == 0 && fclose(f) == 0)
		*out = json_loads(text, 0, NULL);
	free(text);
	return *out ? 0 : -EBADMSG;
}

int ctl_switch_ask(struct ctl_switch *w, const char *line, json_t **out)
{
	struct rig_tor *tor = switch_of(w);

	if (!tor)
		return error_set(-ECONNREFUSED, "no switch is there");
	if (strcmp(line, "hello") == 0)
		return take_hello(tor, out);
	ASSERT(strncmp(line, "tell ", 5) == 0 && !out);
	return rig_tor_tell(tor, "%s", line + 5)
		       ? error_set(-EREMOTEIO, "the switch refuses")
		       : 0;
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
	return ctl_switch_ask(w, line, NULL);
}
