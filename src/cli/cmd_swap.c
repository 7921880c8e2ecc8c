/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer swap`: a swap device in far memory, by nbdkit and the kernel's NBD
 * client. Only the steps are here; the tools do the work. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cli_place.h"
#include "cli_rack.h"
#include "cli_report.h"

enum {
	WORDS_MAX = 16,
	STEPS_MAX = 5,
	SOCKET_MS = 10000,
	LOOK_MS = 20,
	TEXT_MAX = PATH_MAX + 64,
};

struct swap_args {
	bool json;
	uint64_t size_bytes;
	const char *copies;
	const char *mode;
	const char *device;
	const char *priority;
	const char *rack;
};

/* Commands, and what takes them back. */
struct step {
	const char *word[WORDS_MAX];
	const char *undo[WORDS_MAX];
};

struct plan {
	struct step step[STEPS_MAX];
	unsigned count;
	char plugin[PATH_MAX];
	char socket[TEXT_MAX], pidfile[TEXT_MAX];
	char size[32], copies[TEXT_MAX], rack[TEXT_MAX], mode[TEXT_MAX],
		name[64];
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

static void end_server(const struct plan *p)
{
	FILE *f = fopen(p->pidfile, "re");
	int pid;

	if (!f)
		return;
	if (fscanf(f, "%d", &pid) == 1 && pid > 1)
		(void)kill(pid, SIGTERM);
	(void)fclose(f);
	(void)unlink(p->pidfile);
	(void)unlink(p->socket);
}

/* nbdkit is in the background before it has reached the rack. */
static int await_socket(const struct plan *p)
{
	struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	struct stat st;

	for (int i = 0; i < SOCKET_MS / LOOK_MS; i++) {
		if (stat(p->pidfile, &st) == 0 && stat(p->socket, &st) == 0)
			return 0;
		(void)nanosleep(&pause, NULL);
	}
	cli_error("swap: nbdkit does not come up; its messages are in the "
		  "system's log");
	return -ETIMEDOUT;
}

static int execute(const struct plan *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		int err = run(p->step[i].word);

		if (!err && i == 0)
			err = await_socket(p);
		if (!err)
			continue;
		cli_error("swap: '%s' failed; taking back what was done",
			  p->step[i].word[0]);
		while (i-- > 0)
			if (p->step[i].undo[0])
				(void)run(p->step[i].undo);
		end_server(p);
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

/* ---- plans -------------------------------------------------------------- */

/* Where the server of the device is found again. */
static int name_places(const struct swap_args *a, struct plan *p)
{
	const char *slash = strrchr(a->device, '/');
	struct cli_rack rack;
	int err;

	if (!slash || strncmp(slash, "/nbd", 4) != 0) {
		cli_error("--device is an NBD device, /dev/nbd0 for example");
		return -EINVAL;
	}
	err = cli_rack_open(&rack, NULL, true);
	if (err)
		return err;
	(void)snprintf(p->name, sizeof(p->name), "swap-%.40s", slash + 1);
	(void)snprintf(p->socket, sizeof(p->socket), "%s/%s.sock", rack.rundir,
		       p->name);
	(void)snprintf(p->pidfile, sizeof(p->pidfile), "%s/%s.pid", rack.rundir,
		       p->name);
	cli_rack_close(&rack);
	return 0;
}

static void plan_server(const struct swap_args *a, struct plan *p)
{
	struct step *s = &p->step[p->count++];
	unsigned n = 0;

	(void)snprintf(p->size, sizeof(p->size), "size=%" PRIu64,
		       a->size_bytes);
	(void)snprintf(p->copies, sizeof(p->copies), "copies=%s", a->copies);
	(void)snprintf(p->mode, sizeof(p->mode), "mode=%s", a->mode);
	s->word[n++] = "nbdkit";
	s->word[n++] = "--swap"; /* never swapped out itself */
	s->word[n++] = "--unix";
	s->word[n++] = p->socket;
	s->word[n++] = "--pidfile";
	s->word[n++] = p->pidfile;
	s->word[n++] = p->plugin;
	s->word[n++] = p->size;
	s->word[n++] = p->copies;
	s->word[n++] = p->mode;
	if (a->rack) {
		(void)snprintf(p->rack, sizeof(p->rack), "rack=%s", a->rack);
		s->word[n++] = p->rack;
	}
}

static void plan_on(const struct swap_args *a, struct plan *p)
{
	plan_server(a, p);
	p->step[p->count++] =
		(struct step){{"nbd-client", "-unix", p->socket, a->device,
			       "-b", "4096", "-swap", NULL},
			      {"nbd-client", "-d", a->device, NULL}};
	p->step[p->count++] = (struct step){{"mkswap", a->device, NULL}, {0}};
	p->step[p->count++] =
		(struct step){{"swapon", "--discard=pages", "--priority",
			       a->priority, a->device, NULL},
			      {0}};
}

static void plan_off(const struct swap_args *a, struct plan *p)
{
	p->step[p->count++] = (struct step){{"swapoff", a->device, NULL}, {0}};
	p->step[p->count++] =
		(struct step){{"nbd-client", "-d", a->device, NULL}, {0}};
}

/* ---- the command -------------------------------------------------------- */

static bool has_device(const char *device)
{
	static const char *const load[] = {"modprobe", "-q", "nbd", NULL};
	struct stat st;

	if (stat(device, &st) == 0 && S_ISBLK(st.st_mode))
		return true;
	(void)run(load);
	if (stat(device, &st) == 0 && S_ISBLK(st.st_mode))
		return true;
	cli_error("there is no %s: this kernel has no NBD client (module nbd); "
		  "'aquifer run' needs none",
		  device);
	return false;
}

static int take_option(int opt, char **argv, struct swap_args *a)
{
	switch (opt) {
	case 'j':
		a->json = true;
		return 0;
	case 's':
		return cli_rack_parse_size("--size", optarg, &a->size_bytes);
	case 'c':
		a->copies = optarg;
		return 0;
	case 'm':
		a->mode = optarg;
		return 0;
	case 'd':
		a->device = optarg;
		return 0;
	case 'p':
		a->priority = optarg;
		return 0;
	case 'r':
		a->rack = optarg;
		return 0;
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return -EINVAL;
	default:
		cli_error("swap has no option '%s'; see 'aquifer help swap'",
			  argv[optind - 1]);
		return -EINVAL;
	}
}

static int parse(const struct cli_command *self, int argc, char **argv,
		 struct swap_args *a)
{
	static const struct option longopts[] = {
		{"json", no_argument, NULL, 'j'},
		{"size", required_argument, NULL, 's'},
		{"copies", required_argument, NULL, 'c'},
		{"mode", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'},
		{"priority", required_argument, NULL, 'p'},
		{"rack", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	*a = (struct swap_args){.copies = "1",
				.mode = "static",
				.device = "/dev/nbd0",
				.priority = "100"};
	optind = 0;
	while ((opt = getopt_long(argc, argv, ":h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			cli_command_help(self, "aquifer");
			return CLI_OK;
		}
		if (take_option(opt, argv, a))
			return CLI_USAGE;
	}
	return CLI_GO;
}

int cmd_swap(const struct cli_command *self, int argc, char **argv)
{
	struct plan p = {.count = 0};
	struct swap_args a;
	int code = parse(self, argc, argv, &a);
	bool on;

	if (code != CLI_GO)
		return code;
	if (argc - optind != 1 || (strcmp(argv[optind], "on") != 0 &&
				   strcmp(argv[optind], "off") != 0)) {
		cli_error("swap needs on or off; see 'aquifer help swap'");
		return CLI_USAGE;
	}
	on = strcmp(argv[optind], "on") == 0;
	if (on && a.size_bytes == 0) {
		cli_error("swap on needs --size SIZE");
		return CLI_USAGE;
	}
	if (name_places(&a, &p) != 0)
		return CLI_USAGE;
	if (on && cli_place_nbd_plugin(p.plugin) != 0) {
		cli_error("no %s; it is built where nbdkit's headers are",
			  p.plugin);
		return CLI_CANNOT_RUN;
	}
	if (on)
		plan_on(&a, &p);
	else
		plan_off(&a, &p);
	if (a.json)
		return print_plan(&p);
	if (!has_device(a.device) || execute(&p) != 0)
		return CLI_FAILED;
	if (!on)
		end_server(&p);
	return CLI_OK;
}
