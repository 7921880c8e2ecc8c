/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer top`: a live view of the rack. It only reads: the nodes' status and
 * the processes' counter files. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_top.h"

enum {
	INTERVAL_MS = 1000,
};

struct top_args {
	bool json;
	bool once;
	uint32_t interval_ms;
};

/* ---- the command -------------------------------------------------------- */

static int take_interval(void *args, const char *word)
{
	struct top_args *a = args;

	a->interval_ms = (uint32_t)(atof(word) * 1000);
	return a->interval_ms >= 10 && a->interval_ms <= 3600000
		       ? 0
		       : error_set(-EINVAL,
				   "--interval is from 0.01 to 3600 seconds");
}

const struct opt cmd_top_options[] = {
	OPT_FLAG(struct top_args, once, "once", "one look, after one interval"),
	OPT_CALL(take_interval, "interval", "SECONDS",
		 "between two looks (default 1)"),
	OPT_FLAG(struct top_args, json, "json", "a JSON object for each look"),
	OPT_END,
};

/* ---- keys and signals ---------------------------------------------------- */

/* What ends the command: signals, and on a terminal the key q. */
struct ends {
	int signal_fd;
	bool has_keys;
	struct termios before;
};

static int ends_open(struct ends *e, bool is_screen)
{
	struct termios raw;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	e->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (e->signal_fd < 0)
		return error_set(-errno, "no signals: %s", strerror(errno));
	e->has_keys = is_screen && isatty(STDIN_FILENO) &&
		      tcgetattr(STDIN_FILENO, &e->before) == 0;
	if (!e->has_keys)
		return 0;
	raw = e->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	e->has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	return 0;
}

static void ends_close(struct ends *e)
{
	if (e->has_keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &e->before);
	close(e->signal_fd);
}

static bool is_quit(struct ends *e)
{
	char key = 0;

	/* A terminal that is gone has no keys any more. */
	if (read(STDIN_FILENO, &key, 1) != 1)
		e->has_keys = false;
	return key == 'q' || key == 'Q';
}

/* False when whoever looks is done. */
static bool wait_interval(struct ends *e, uint32_t ms)
{
	uint64_t now = clock_mono_ns(), end = now + ms * 1000000ull;

	for (; now < end; now = clock_mono_ns()) {
		struct pollfd fds[] = {{.fd = e->signal_fd, .events = POLLIN},
				       {.fd = e->has_keys ? STDIN_FILENO : -1,
					.events = POLLIN}};
		int left_ms = (int)((end - now + 999999) / 1000000);

		if (poll(fds, ARRAY_LEN(fds), left_ms) <= 0)
			continue;
		if (fds[0].revents || (fds[1].revents && is_quit(e)))
			return false;
	}
	return true;
}

/* ---- looking ------------------------------------------------------------- */

/* Whether anybody of the rack is here: a wrong name would else look like a rack
 * that does nothing. */
static bool is_there(const json_t *tree)
{
	static const char *const lists[] = {"nodes", "engines", "switches",
					    "clients"};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (json_array_size(json_object_get(tree, lists[i])))
			return true;
	return false;
}

static int show(const struct cli_rack *rack, json_t *tree,
		const struct top_args *a, bool is_screen)
{
	int none = is_there(tree) ? 0
				  : client_nodes_none(rack->name, rack->rundir);
	int err;

	if (none)
		cli_report_set(tree, "error", "%s", error_last());
	if (a->json) {
		err = cli_report_print(tree, true);
		return err || !a->once ? err : none;
	}
	if (is_screen)
		fputs("\033[H\033[J", stdout);
	if (none)
		printf("%s\n", error_last());
	else
		cli_top_print(tree);
	if (is_screen)
		printf("\nq quits; every %.3g s; clients of this machine only; "
		       "`man aquifer-top` says what the columns are\n",
		       a->interval_ms / 1e3);
	json_decref(tree);
	return a->once ? none : 0;
}

static int run(struct cli_rack *rack, const struct top_args *a)
{
	struct cli_top_sample *s = calloc(3, sizeof(*s));
	bool is_screen = !a->json && !a->once && isatty(STDOUT_FILENO);
	struct ends ends = {0};
	unsigned now = 0;
	int err = s ? ends_open(&ends, is_screen) : -ENOMEM;

	if (err) {
		free(s);
		return err;
	}
	cli_top_take(rack->rundir, &s[0]);
	while (!err && wait_interval(&ends, a->interval_ms)) {
		now = !now;
		cli_top_take(rack->rundir, &s[now]);
		cli_top_diff(&s[!now], &s[now], &s[2]);
		err = show(rack, cli_top_describe(rack, &s[2]), a, is_screen);
		if (fflush(stdout) != 0 || a->once)
			break;
	}
	ends_close(&ends);
	for (now = 0; now < 3; now++)
		cli_top_release(&s[now]);
	free(s);
	return err;
}

int cmd_top(const struct cli_command *self, int argc, char **argv)
{
	struct top_args a = {.interval_ms = INTERVAL_MS};
	struct cli_rack rack;
	int err, code = cli_parse(self, argc, argv, OPT_WORDS_NONE, &a, NULL);

	if (code != CLI_GO)
		return code;
	if (cli_rack_open(&rack, NULL, false))
		return CLI_FAILED;
	err = run(&rack, &a);
	cli_rack_close(&rack);
	return err ? CLI_FAILED : CLI_OK;
}
