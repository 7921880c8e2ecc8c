/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer swap`: a swap device in far memory, by nbdkit and the kernel's NBD
 * client. Only the steps are here; the tools do the work. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cli_place.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"

enum {
	WORDS_MAX = 16,
	STEPS_MAX = 5,
	SERVER_MS = 10000,
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
	bool has_server; /* the first step starts it */
	char rundir[RUNDIR_PATH_MAX];
	char socket[TEXT_MAX];
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
	struct cli_proc proc;

	if (cli_proc_find(p->rundir, p->name, &proc) == 0 &&
	    cli_proc_end(&proc) == 0)
		(void)!cli_proc_wait(&proc, SERVER_MS);
	cli_proc_forget(p->rundir, p->name);
	(void)unlink(p->socket);
}

/* Connects and waits for the greeting: only then the rack was reached. */
static bool greets(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval wait = {.tv_sec = SERVER_MS / 1000};
	char magic[8];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = false;

	if (fd < 0 || strlen(path) >= sizeof(sa.sun_path))
		goto out;
	memcpy(sa.sun_path, path, strlen(path));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	ok = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	     recv(fd, magic, sizeof(magic), MSG_WAITALL) == sizeof(magic) &&
	     memcmp(magic, "NBDMAGIC", sizeof(magic)) == 0;
out:
	if (fd >= 0)
		(void)close(fd);
	return ok;
}

static int start_server(const struct plan *p)
{
	struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	/* env looks for the program and becomes it. */
	const char *word[WORDS_MAX + 1] = {"/usr/bin/env"};
	struct cli_proc proc;
	int err;

	memcpy(word + 1, p->step[0].word, sizeof(p->step[0].word));
	err = cli_proc_start(p->rundir, p->name, (char *const *)(uintptr_t)word,
			     &proc);
	if (err)
		return err;
	for (int i = 0; i < SERVER_MS / LOOK_MS; i++) {
		if (greets(p->socket))
			return 0;
		if (cli_proc_find(p->rundir, p->name, &proc) != 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	cli_error("swap: nbdkit does not come up; %s/%s.log says why",
		  p->rundir, p->name);
	return -ETIMEDOUT;
}

static int execute(const struct plan *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		int err = p->has_server && i == 0 ? start_server(p)
						  : run(p->step[i].word);

		if (!err)
			continue;
		cli_error("swap: '%s' failed; taking back what was done",
			  p->step[i].word[0]);
		while (i-- > 0)
			if (p->step[i].undo[0])
				(void)run(p->step[i].undo);
		if (p->has_server)
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
	/* Not *.sock: those are the rack's nodes. */
	(void)snprintf(p->socket, sizeof(p->socket), "%s/%s.nbd", rack.rundir,
		       p->name);
	(void)snprintf(p->rundir, sizeof(p->rundir), "%s", rack.rundir);
	cli_rack_close(&rack);
	return 0;
}

static void plan_server(const struct swap_args *a, struct plan *p)
{
	struct step *s = &p->step[p->count++];
	unsigned n = 0;

	p->has_server = true;
	(void)snprintf(p->size, sizeof(p->size), "size=%" PRIu64,
		       a->size_bytes);
	(void)snprintf(p->copies, sizeof(p->copies), "copies=%s", a->copies);
	(void)snprintf(p->mode, sizeof(p->mode), "mode=%s", a->mode);
	s->word[n++] = "nbdkit";
	s->word[n++] = "--foreground";
	s->word[n++] = "--swap"; /* never swapped out itself */
	s->word[n++] = "--unix";
	s->word[n++] = p->socket;
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
