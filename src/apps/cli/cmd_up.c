/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer up`: the switches, memory nodes and engines of a rack on this
 * machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complaint.h"
#include "base/config.h"
#include "base/config_named.h"
#include "base/error.h"
#include "base/rundir.h"
#include "cli.h"
#include "cli_place.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_switch.h"

enum {
	READY_MS = 15000,
	LOOK_MS = 20,
	ARG_MAX_COUNT = 32,
	LOG_TAIL_BYTES = 2000,
};

/* A kind of daemon: the section of rack.ini and the command, its socket, and
 * the keys that are options, too. */
struct kind {
	const char *name;
	const char *suffix;   /* of its name in the socket's */
	const char *fallback; /* the one without configuration */
	const char *keys[13];
};

static const struct kind memory_kind = {
	"memory",
	".sock",
	"m0",
	{"size", "shared", "lead", "numa", "spill", "ready", "listen",
	 "tls_cert", "tls_key", "tls_ca", "insecure", "audit", NULL}};
static const struct kind engine_kind = {
	"engine",
	".engine.sock",
	"e0",
	{"listen", "tls_cert", "tls_key", "tls_ca", "insecure", "batch",
	 "flush_us", "sessions", "threads", "gather", NULL}};

static const struct kind control_kind = {
	"control",
	".control.sock",
	"c0",
	{"listen", "tls_cert", "tls_key", "tls_ca", "insecure", "store",
	 "store_ca", "store_cert", "store_key", "audit", NULL}};

/* One of them, as configured or as it is without configuration. */
struct role {
	const struct kind *kind;
	const char *name;
	int index; /* of its section; -1: there is none */
};

static const char *text_of(const struct cli_rack *rack, const struct role *r,
			   const char *key)
{
	if (r->index < 0)
		return strcmp(key, "size") == 0 ? "1G" : "";
	return config_named_text(rack->config, r->kind->name,
				 (unsigned)r->index, key);
}

/* A switch that is off. */
static bool is_no(const char *key, const char *text)
{
	return strcmp(key, "insecure") == 0 && strcmp(text, "yes") != 0;
}

static char *word(const char *text)
{
	return (char *)(uintptr_t)text; /* execv changes none */
}

static int start(const struct cli_rack *rack, const struct role *r,
		 struct cli_proc *proc)
{
	char *argv[ARG_MAX_COUNT] = {NULL, word(r->kind->name), word("--name"),
				     word(r->name)};
	char program[PATH_MAX], options[ARRAY_LEN(r->kind->keys)][32];
	ssize_t n = readlink("/proc/self/exe", program, PATH_MAX - 1);
	const char *at_switch = NULL;
	unsigned count = 4;

	if (n < 0)
		return error_set(-errno, "/proc/self/exe cannot be read");
	program[n] = '\0';
	argv[0] = program;
	for (unsigned i = 0; r->kind->keys[i]; i++) {
		const char *key = r->kind->keys[i];
		const char *text = text_of(rack, r, key);

		if (!text[0] || is_no(key, text))
			continue;
		(void)snprintf(options[i], sizeof(options[i]), "--%s", key);
		for (char *c = options[i]; *c; c++)
			*c = *c == '_' ? '-' : *c;
		argv[count++] = options[i];
		if (strcmp(key, "insecure") != 0) /* which takes no value */
			argv[count++] = word(text);
		if (strcmp(key, "audit") == 0) /* the file is for programs */
			argv[count++] = word("--audit-json");
	}
	if (r->kind == &engine_kind)
		at_switch = cli_switch_engine(rack, text_of(rack, r, "switch"));
	if (at_switch) {
		argv[count++] = word("--switch");
		argv[count++] = word(at_switch);
	}
	return cli_proc_start(rack->rundir, r->name, argv, proc);
}

/* The end of its log says why a node did not start. */
static void show_log(const struct cli_rack *rack, const char *name, json_t *row)
{
	char path[PATH_MAX], text[LOG_TAIL_BYTES + 1];
	ssize_t n;
	off_t end;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.log", rack->rundir, name);
	fd = rundir_file_open(path, O_RDONLY);
	if (fd < 0)
		return;
	end = lseek(fd, 0, SEEK_END);
	n = pread(fd, text, LOG_TAIL_BYTES,
		  end > LOG_TAIL_BYTES ? end - LOG_TAIL_BYTES : 0);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (complaint_is_json())
		cli_report_set(row, "log", "%s", text);
	else
		fprintf(stderr, "--- the end of %s\n%s", path, text);
}

static bool answers(const struct cli_rack *rack, const struct role *role)
{
	struct client_node node = {.ca_path = ""};
	json_t *status;

	snprintf(node.name, sizeof(node.name), "%s", role->name);
	snprintf(node.address, sizeof(node.address), "unix:%.200s/%s%s",
		 rack->rundir, role->name, role->kind->suffix);
	if (cli_rack_ask(rack, &node, 1000, &status))
		return false;
	json_decref(status);
	return true;
}

static int wait_ready(const struct cli_rack *rack, const struct role *role,
		      const struct cli_proc *proc)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	uint64_t end_ms = clock_mono_ms() + READY_MS;

	/* By the clock: one look may take as long as an answer may. */
	while (clock_mono_ms() < end_ms) {
		if (answers(rack, role))
			return 0;
		if (waitpid(proc->pid, NULL, WNOHANG) == proc->pid)
			return error_set(-EHOSTDOWN,
					 "%s ended while it was starting",
					 role->name);
		(void)nanosleep(&pause, NULL);
	}
	return error_set(-ETIMEDOUT, "%s did not answer within %d s",
			 role->name, READY_MS / 1000);
}

/* `row` gets what is said about it. */
static int bring_up(const struct cli_rack *rack, const struct role *role,
		    json_t *row)
{
	struct cli_proc proc = {0};
	int err = cli_proc_find(rack->rundir, role->name, &proc);

	cli_report_set(row, "name", "%s", role->name);
	if (answers(rack, role)) {
		/* Perhaps not by us, but it is what was asked for. */
		cli_report_set(row, "state", "already up");
	} else if (err == 0) {
		err = error_set(-EBUSY,
				"%s runs as pid %d, but does not answer; "
				"'aquifer down' ends it",
				role->name, (int)proc.pid);
		goto failed;
	} else {
		if (err == -ESRCH)
			cli_proc_forget(rack->rundir, role->name);
		err = start(rack, role, &proc);
		if (err)
			goto failed;
		err = wait_ready(rack, role, &proc);
		if (err) {
			if (cli_proc_end(&proc) == 0 &&
			    cli_proc_wait(&proc, 2000) >= 0)
				cli_proc_forget(rack->rundir, role->name);
			goto failed;
		}
		cli_report_set(row, "state", "up");
	}
	/* The last column, so that it is also readable in words. */
	if (proc.pid)
		(void)json_object_set_new(row, "pid", json_integer(proc.pid));
	return 0;

failed:
	cli_report_set(row, "state", "failed");
	cli_error("%s", error_last());
	show_log(rack, role->name, row);
	return err;
}

static int bring_up_one(const struct cli_rack *rack, const struct kind *kind,
			int index, json_t *rows)
{
	const struct role role = {
		kind,
		index < 0 ? kind->fallback
			  : config_named_name(rack->config, kind->name,
					      (unsigned)index),
		index};
	json_t *row = json_object();
	int err = bring_up(rack, &role, row);

	if (!err && kind == &memory_kind)
		cli_report_set(row, "size", "%s", text_of(rack, &role, "size"));
	(void)json_array_append_new(rows, row);
	return err ? 1 : 0;
}

/* Those of the file that run here; without any, one. */
static int bring_up_engines(const struct cli_rack *rack, json_t *rows)
{
	unsigned count = config_named_count(rack->config, "engine");
	int failed = 0;

	if (count == 0)
		return bring_up_one(rack, &engine_kind, -1, rows);
	for (unsigned i = 0; i < count; i++)
		if (!config_named_text(rack->config, "engine", i, "address")[0])
			failed +=
				bring_up_one(rack, &engine_kind, (int)i, rows);
	return failed;
}

/* The controller of this machine, if rack.control names one, with what its
 * section says. */
static int bring_up_control(const struct cli_rack *rack, json_t *rows)
{
	const char *name = config_string(rack->config, "rack", "control");
	unsigned count = config_named_count(rack->config, "control");
	struct role role = {&control_kind, name, -1};
	json_t *row;
	int err;

	if (strcmp(name, "none") == 0 || !rundir_rack_is_valid(name))
		return 0;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(config_named_name(rack->config, "control", i),
			   name) == 0)
			role.index = (int)i;
	row = json_object();
	err = bring_up(rack, &role, row);
	(void)json_array_append_new(rows, row);
	return err ? 1 : 0;
}

/* Two at a time would start the same node twice. Held until the exit. */
static int take_lock(const struct cli_rack *rack)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/up.lock", rack->rundir);
	fd = rundir_file_open(path, O_RDWR | O_CREAT);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -EBUSY;
}

static int bring_up_all(struct cli_rack *rack, bool as_json)
{
	unsigned i, count = config_named_count(rack->config, "memory");
	json_t *tree = json_object(), *rows = json_array();
	json_t *engines = json_array(), *switches = json_array();
	json_t *controllers = json_array();
	char *address = secure_getenv("AQUIFER_NIC_ADDRESS"), own[16];
	int failed = 0, lock = take_lock(rack);

	if (lock < 0) {
		cli_error("%s", lock == -EBUSY
					? "another 'aquifer up' is at work"
					: error_last());
		json_decref(controllers);
		json_decref(switches);
		json_decref(engines);
		json_decref(rows);
		json_decref(tree);
		return CLI_FAILED;
	}
	failed += bring_up_control(rack, controllers);
	failed += (int)cli_switch_up(rack, switches);
	for (i = 0; i < (count ? count : 1); i++) {
		if (!address && cli_switch_address(rack, i, own))
			(void)setenv("AQUIFER_NIC_ADDRESS", own, 1);
		failed += bring_up_one(rack, &memory_kind, count ? (int)i : -1,
				       rows);
		if (!address)
			(void)unsetenv("AQUIFER_NIC_ADDRESS");
	}
	if (!failed && cli_switch_open(rack, count ? count : 1)) {
		cli_error("%s", error_last());
		failed++;
	}
	failed += bring_up_engines(rack, engines);
	close(lock);
	cli_report_set(tree, "rack", "%s", rack->name);
	cli_report_set(tree, "runtime_directory", "%s", rack->rundir);
	if (json_array_size(controllers))
		(void)json_object_set(tree, "controllers", controllers);
	json_decref(controllers);
	if (json_array_size(switches))
		(void)json_object_set(tree, "switches", switches);
	json_decref(switches);
	(void)json_object_set_new(tree, "nodes", rows);
	(void)json_object_set_new(tree, "engines", engines);
	if (cli_report_print(tree, as_json) != 0)
		return CLI_FAILED;
	return failed ? CLI_FAILED : CLI_OK;
}

int cmd_up(const struct cli_command *self, int argc, char **argv)
{
	struct cli_rack rack;
	bool as_json;
	int code = cli_rack_parse(self, argc, argv, true, &as_json, &rack);

	if (code != CLI_GO)
		return code;
	code = bring_up_all(&rack, as_json);
	cli_rack_close(&rack);
	return code;
}
