/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer swap`: a swap device in far memory, by nbdkit and the kernel's NBD
 * client. Only the steps are here; the tools do the work. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "cli_place.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_swap.h"
#include "run/run.h"

enum {
	STEPS_MAX = 5,
	HOST_MAX = 256,
	COPIES_MAX = 4,
	PRIORITY_MAX = 32767, /* of swapon(8) */
};

struct swap_args {
	bool json;
	uint64_t size_bytes;
	uint32_t copies;
	const char *mode;
	const char *device;
	uint32_t priority;
	uint32_t timeout_s;
	const char *server; /* elsewhere; NULL: here */
};

/* Commands, and what takes them back. */
struct step {
	const char *word[SWAP_WORDS_MAX];
	const char *undo[SWAP_WORDS_MAX];
};

struct plan {
	struct step step[STEPS_MAX];
	unsigned count;
	bool has_server; /* the first step starts it */
	struct swap_server server;
	char plugin[PATH_MAX];
	char size[32], copies[32], priority[16], timeout[16],
		rack[SWAP_TEXT_MAX], mode[SWAP_TEXT_MAX], host[HOST_MAX];
};

/* ---- running ------------------------------------------------------------ */

static int run(const char *const words[])
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)execvp(words[0], (char *const *)(uintptr_t)words);
		(void)fprintf(stderr, "aquifer: swap: cannot run %s: %s\n",
			      words[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int execute(const struct plan *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		int err =
			p->has_server && i == 0
				? swap_server_start(&p->server, p->step[0].word)
				: run(p->step[i].word);

		if (!err)
			continue;
		cli_error("swap: '%s' failed; taking back what was done",
			  p->step[i].word[0]);
		while (i-- > 0)
			if (p->step[i].undo[0])
				(void)run(p->step[i].undo);
		if (p->has_server)
			swap_server_end(&p->server);
		return err;
	}
	return 0;
}

static int print_plan(const struct plan *p)
{
	json_t *steps = json_array();

	for (unsigned i = 0; i < p->count; i++) {
		json_t *words = json_array();

		for (unsigned k = 0; p->step[i].word[k]; k++)
			(void)json_array_append_new(
				words, json_string(p->step[i].word[k]));
		(void)json_array_append_new(steps, words);
	}
	return cli_report_print(json_pack("{s:o}", "steps", steps), true)
		       ? CLI_FAILED
		       : CLI_OK;
}

/* ---- on ----------------------------------------------------------------- */

static void plan_server(const struct swap_args *a, struct plan *p)
{
	struct step *s = &p->step[p->count++];
	unsigned n = 0;

	p->has_server = true;
	(void)snprintf(p->size, sizeof(p->size), "size=%" PRIu64,
		       a->size_bytes);
	(void)snprintf(p->copies, sizeof(p->copies), "copies=%u", a->copies);
	(void)snprintf(p->mode, sizeof(p->mode), "mode=%s", a->mode);
	/* Not nbdkit's own --swap: that fills 192 MiB which it never uses, and
	 * the plugin's swap=true does more. */
	s->word[n++] = "nbdkit";
	s->word[n++] = "--foreground";
	s->word[n++] = "--unix";
	s->word[n++] = p->server.socket;
	s->word[n++] = p->plugin;
	s->word[n++] = p->size;
	s->word[n++] = p->copies;
	s->word[n++] = p->mode;
	s->word[n++] = "swap=true";
	/* Said although the environment says it, so that who runs the printed
	 * commands has the same rack. */
	if (cli_rack_is_given()) {
		(void)snprintf(p->rack, sizeof(p->rack), "rack=%s",
			       p->server.rack);
		s->word[n++] = p->rack;
	}
}

/* Splits HOST:PORT, [ADDRESS]:PORT for IPv6. */
static int plan_elsewhere(const struct swap_args *a, struct plan *p,
			  const char **port)
{
	const char *colon = strrchr(a->server, ':');
	const char *host = a->server;
	size_t len = colon ? (size_t)(colon - host) : 0;

	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(p->host) || colon[1] == '\0' ||
	    colon[1 + strspn(colon + 1, "0123456789")] != '\0') {
		cli_error("--server is ADDRESS:PORT");
		return -EINVAL;
	}
	(void)snprintf(p->host, sizeof(p->host), "%.*s", (int)len, host);
	*port = colon + 1;
	return 0;
}

static int plan_on(const struct swap_args *a, struct plan *p)
{
	const char *from = "-unix", *at = p->server.socket;
	int err;

	if (a->server) {
		err = plan_elsewhere(a, p, &at);
		if (err)
			return err;
		from = p->host;
	} else {
		plan_server(a, p);
	}
	(void)snprintf(p->timeout, sizeof(p->timeout), "%u", a->timeout_s);
	(void)snprintf(p->priority, sizeof(p->priority), "%u", a->priority);
	p->step[p->count++] =
		(struct step){{"nbd-client", from, at, a->device, "-b", "4096",
			       "-timeout", p->timeout, "-swap", NULL},
			      {"nbd-client", "-d", a->device, NULL}};
	p->step[p->count++] = (struct step){{"mkswap", a->device, NULL}, {0}};
	p->step[p->count++] =
		(struct step){{"swapon", "--discard=pages", "--priority",
			       p->priority, a->device, NULL},
			      {0}};
	return 0;
}

/* Whether the device can be taken. */
static int take_device(const struct swap_args *a, const struct plan *p)
{
	static const char *const load[] = {"modprobe", "-q", "nbd", NULL};
	struct swap_device d;
	struct cli_proc proc;

	swap_device_look(a->device, &d);
	if (!d.is_there) {
		(void)run(load);
		swap_device_look(a->device, &d);
	}
	if (!d.is_there) {
		cli_error("there is no %s: this kernel has no NBD client "
			  "(module nbd); 'aquifer run' needs none",
			  a->device);
		return -ENODEV;
	}
	if (d.is_connected || d.is_swap) {
		cli_error("%s is in use; --device takes another", a->device);
		return -EBUSY;
	}
	if (swap_server_find(&p->server, &proc) == 0) {
		cli_error("process %d already serves %s; 'aquifer swap off' "
			  "ends it",
			  (int)proc.pid, a->device);
		return -EBUSY;
	}
	if (geteuid() != 0) {
		cli_error("swap on needs root");
		return -EPERM;
	}
	return 0;
}

static int swap_on(const struct swap_args *a, struct plan *p)
{
	if (a->size_bytes == 0 && !a->server) {
		cli_error("swap on needs --size SIZE");
		return CLI_USAGE;
	}
	if (cli_place_nbd_plugin(p->plugin) != 0 && !a->server) {
		cli_error("no %s; it is built where nbdkit's headers are",
			  p->plugin);
		return CLI_FAILED;
	}
	if (plan_on(a, p) != 0)
		return CLI_USAGE;
	if (a->json)
		return print_plan(p);
	if (take_device(a, p) != 0 || execute(p) != 0)
		return CLI_FAILED;
	return CLI_OK;
}

/* ---- off ---------------------------------------------------------------- */

/* Whatever there is of it, so that it also clears up after a failure. */
static int swap_off(const struct swap_args *a, struct plan *p)
{
	const struct step off = {{"swapoff", a->device, NULL}, {0}};
	const struct step apart = {{"nbd-client", "-d", a->device, NULL}, {0}};
	struct cli_proc proc;
	struct swap_device d;
	int server = swap_server_find(&p->server, &proc);

	swap_device_look(a->device, &d);
	if (a->json || d.is_swap)
		p->step[p->count++] = off;
	if (a->json || d.is_connected)
		p->step[p->count++] = apart;
	if (a->json)
		return print_plan(p);
	if (p->count == 0 && server == -ENOENT) {
		cli_error("%s is not in use", a->device);
		return CLI_FAILED;
	}
	for (unsigned i = 0; i < p->count; i++) {
		if (run(p->step[i].word) == 0)
			continue;
		if (d.is_swap && i == 0)
			cli_error("swap: the kernel keeps %s: there is too "
				  "little memory for what is in it, or pages "
				  "are lost and the programs that had them "
				  "must end first",
				  a->device);
		return CLI_FAILED;
	}
	swap_server_end(&p->server);
	return CLI_OK;
}

/* ---- status ------------------------------------------------------------- */

static const char *state_of(const struct swap_device *d, int server)
{
	if (d->is_swap)
		return server == -ESRCH || !d->is_connected ? "broken" : "on";
	if (d->is_connected)
		return "connected";
	return server == -ENOENT ? "off" : "left over";
}

/* Exit code 1 only where pages are lost. */
static int swap_status(const struct swap_args *a, const struct plan *p)
{
	json_t *tree = json_object();
	struct swap_device d;
	struct cli_proc proc;
	int server = swap_server_find(&p->server, &proc);
	const char *state;

	swap_device_look(a->device, &d);
	state = state_of(&d, server);
	cli_report_set(tree, "device", "%s", a->device);
	cli_report_set(tree, "state", "%s", state);
	if (d.is_swap) {
		(void)json_object_set_new(
			tree, "size_bytes",
			json_integer((json_int_t)d.size_bytes));
		(void)json_object_set_new(
			tree, "used_bytes",
			json_integer((json_int_t)d.used_bytes));
		(void)json_object_set_new(tree, "priority",
					  json_integer(d.priority));
	}
	if (server == 0)
		(void)json_object_set_new(tree, "server_pid",
					  json_integer(proc.pid));
	else if (server == -ESRCH)
		cli_report_set(tree, "server", "died; see %s/%s.log",
			       p->server.rundir, p->server.name);
	if (cli_report_print(tree, a->json) != 0)
		return CLI_FAILED;
	return strcmp(state, "broken") == 0 ? CLI_FAILED : CLI_OK;
}

/* ---- the command -------------------------------------------------------- */

const struct opt cmd_swap_options[] = {
	OPT_SIZE(struct swap_args, size_bytes, "size", "SIZE", 0, 1ull << 48,
		 "of the swap device: 16G"),
	OPT_U32(struct swap_args, copies, "copies", "N", 1, COPIES_MAX,
		"of every page, on different nodes (default 1)"),
	OPT_WORD(struct swap_args, mode, "mode", RUN_MODES,
		 "how the nodes find room for a page (default chain)"),
	OPT_TEXT(struct swap_args, device, "device", "DEVICE",
		 "an NBD device (default /dev/nbd0)"),
	OPT_U32(struct swap_args, priority, "priority", "N", 0, PRIORITY_MAX,
		"of the device among others (default 100)"),
	OPT_U32(struct swap_args, timeout_s, "timeout", "SECONDS", 1, 86400,
		"until the kernel gives the server up (default 60)"),
	OPT_TEXT(struct swap_args, server, "server", "ADDRESS:PORT",
		 "an nbdkit on another machine, instead of one here"),
	OPT_FLAG(struct swap_args, json, "json",
		 "on, off: print the commands and do not run them"),
	OPT_END,
};

int cmd_swap(const struct cli_command *self, int argc, char **argv)
{
	struct plan p = {.count = 0};
	struct swap_args a = {.copies = 1,
			      .mode = "chain",
			      .device = "/dev/nbd0",
			      .priority = 100,
			      .timeout_s = 60};
	struct cli_words words;
	int code = cli_parse(self, argc, argv, OPT_WORDS_ANY, &a, &words);
	const char *what;

	if (code != CLI_GO)
		return code;
	what = words.count == 1 ? words.word[0] : "";
	if (strcmp(what, "on") != 0 && strcmp(what, "off") != 0 &&
	    strcmp(what, "status") != 0) {
		cli_error("swap needs on, off or status; see 'aquifer help "
			  "swap'");
		return CLI_USAGE;
	}
	if (swap_device_check_name(a.device) != 0)
		return CLI_USAGE;
	if (swap_server_place(a.device, &p.server) != 0)
		return CLI_FAILED;
	if (strcmp(what, "on") == 0)
		return swap_on(&a, &p);
	if (strcmp(what, "off") == 0)
		return swap_off(&a, &p);
	return swap_status(&a, &p);
}
