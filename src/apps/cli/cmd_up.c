/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer up`: the switches, memory nodes and engines of a rack on this
 * machine. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_named.h"
#include "base/error.h"
#include "cli.h"
#include "cli_place.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_switch.h"

enum {
	READY_MS = 15000,
	LOOK_MS = 20,
	ARG_MAX_COUNT = 16,
	LOG_TAIL_BYTES = 2000,
};

/* One memory node, as configured or as it is without configuration. */
struct plan {
	const char *name;
	const char *size;
	const char *listen;
	const char *tls_cert;
	const char *tls_key;
	const char *audit;
};

/* One engine; it has another socket and other options. */
struct engine_plan {
	const char *name;
	const char *listen;
	const char *tls_cert;
	const char *tls_key;
	const char *batch;
	const char *flush_us;
};

static const struct plan plan_default = {"m0", "1G", "", "", "", ""};
static const struct engine_plan engine_default = {.name = "e0",
						  .listen = "",
						  .tls_cert = "",
						  .tls_key = "",
						  .batch = "",
						  .flush_us = ""};

static struct plan plan_at(const struct config *c, unsigned i)
{
	return (struct plan){
		.name = config_named_name(c, "memory", i),
		.size = config_named_text(c, "memory", i, "size"),
		.listen = config_named_text(c, "memory", i, "listen"),
		.tls_cert = config_named_text(c, "memory", i, "tls_cert"),
		.tls_key = config_named_text(c, "memory", i, "tls_key"),
		.audit = config_named_text(c, "memory", i, "audit"),
	};
}

static void add_option(char *argv[ARG_MAX_COUNT], unsigned *count,
		       const char *option, const char *value)
{
	if (!value[0])
		return;
	argv[(*count)++] = (char *)(uintptr_t)option;
	argv[(*count)++] = (char *)(uintptr_t)value;
}

static int own_program(char program[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", program, PATH_MAX - 1);

	if (n < 0)
		return error_set(-errno, "/proc/self/exe cannot be read");
	program[n] = '\0';
	return 0;
}

static int start_engine(const struct cli_rack *rack, const void *what,
			struct cli_proc *proc)
{
	const struct engine_plan *plan = what;
	char *argv[ARG_MAX_COUNT] = {NULL};
	char program[PATH_MAX];
	unsigned count = 0;
	int err = own_program(program);

	if (err)
		return err;
	argv[count++] = program;
	argv[count++] = (char *)(uintptr_t) "engine";
	add_option(argv, &count, "--name", plan->name);
	add_option(argv, &count, "--listen", plan->listen);
	add_option(argv, &count, "--tls-cert", plan->tls_cert);
	add_option(argv, &count, "--tls-key", plan->tls_key);
	add_option(argv, &count, "--batch", plan->batch);
	add_option(argv, &count, "--flush-us", plan->flush_us);
	return cli_proc_start(rack->rundir, plan->name, argv, proc);
}

static int start_node(const struct cli_rack *rack, const void *what,
		      struct cli_proc *proc)
{
	const struct plan *plan = what;
	char *argv[ARG_MAX_COUNT] = {NULL};
	char program[PATH_MAX];
	unsigned count = 0;
	int err = own_program(program);

	if (err)
		return err;
	argv[count++] = program;
	argv[count++] = (char *)(uintptr_t) "memory";
	add_option(argv, &count, "--name", plan->name);
	add_option(argv, &count, "--size", plan->size);
	add_option(argv, &count, "--listen", plan->listen);
	add_option(argv, &count, "--tls-cert", plan->tls_cert);
	add_option(argv, &count, "--tls-key", plan->tls_key);
	add_option(argv, &count, "--audit", plan->audit);
	if (plan->audit[0]) /* the file is for programs */
		argv[count++] = (char *)(uintptr_t) "--audit-json";
	return cli_proc_start(rack->rundir, plan->name, argv, proc);
}

/* The end of its log says why a node did not start. */
static void show_log(const struct cli_rack *rack, const char *name)
{
	char path[PATH_MAX], text[LOG_TAIL_BYTES + 1];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s.log", rack->rundir, name);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fseek(f, -(long)LOG_TAIL_BYTES, SEEK_END) != 0)
		rewind(f);
	n = fread(text, 1, LOG_TAIL_BYTES, f);
	fclose(f);
	text[n] = '\0';
	fprintf(stderr, "--- the end of %s\n%s", path, text);
}

/* A node or an engine; `suffix` follows its name in its socket's. */
struct role {
	const char *name;
	const char *suffix;
	const void *plan;
	int (*start)(const struct cli_rack *rack, const void *plan,
		     struct cli_proc *proc);
};

static bool answers(const struct cli_rack *rack, const struct role *role)
{
	struct client_node node = {.ca_path = ""};
	json_t *status;

	snprintf(node.name, sizeof(node.name), "%s", role->name);
	snprintf(node.address, sizeof(node.address), "unix:%.200s/%s%s",
		 rack->rundir, role->name, role->suffix);
	if (cli_rack_ask(rack, &node, 1000, &status))
		return false;
	json_decref(status);
	return true;
}

static int wait_ready(const struct cli_rack *rack, const struct role *role,
		      const struct cli_proc *proc)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	unsigned i;

	for (i = 0; i < READY_MS / LOOK_MS; i++) {
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

/* One of them. `row` gets what is said about it. */
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
		err = role->start(rack, role->plan, &proc);
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
	show_log(rack, role->name);
	return err;
}

static int bring_up_node(const struct cli_rack *rack, const struct plan *plan,
			 json_t *rows)
{
	const struct role role = {plan->name, ".sock", plan, start_node};
	json_t *row = json_object();
	int err = bring_up(rack, &role, row);

	if (!err)
		cli_report_set(row, "size", "%s", plan->size);
	(void)json_array_append_new(rows, row);
	return err;
}

static int bring_up_engine(const struct cli_rack *rack,
			   const struct engine_plan *plan, json_t *rows)
{
	const struct role role = {plan->name, ".engine.sock", plan,
				  start_engine};
	json_t *row = json_object();
	int err = bring_up(rack, &role, row);

	(void)json_array_append_new(rows, row);
	return err;
}

/* Those of the file that run here; without any, one. */
static int bring_up_engines(const struct cli_rack *rack, json_t *rows)
{
	const struct config *c = rack->config;
	unsigned i, count = config_named_count(c, "engine");
	int failed = 0;

	if (count == 0)
		return bring_up_engine(rack, &engine_default, rows) != 0;
	for (i = 0; i < count; i++) {
		struct engine_plan plan = {
			.name = config_named_name(c, "engine", i),
			.listen = config_named_text(c, "engine", i, "listen"),
			.tls_cert =
				config_named_text(c, "engine", i, "tls_cert"),
			.tls_key = config_named_text(c, "engine", i, "tls_key"),
			.batch = config_named_text(c, "engine", i, "batch"),
			.flush_us =
				config_named_text(c, "engine", i, "flush_us"),
		};

		if (!config_named_text(c, "engine", i, "address")[0])
			failed += bring_up_engine(rack, &plan, rows) != 0;
	}
	return failed;
}

/* Two at a time would start the same node twice. Held until the exit. */
static int take_lock(const struct cli_rack *rack)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/up.lock", rack->rundir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
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
	char *address = secure_getenv("AQUIFER_NIC_ADDRESS"), own[16];
	int failed = 0, lock = take_lock(rack);

	if (lock < 0) {
		cli_error("%s", lock == -EBUSY
					? "another 'aquifer up' is at work"
					: strerror(-lock));
		json_decref(switches);
		json_decref(engines);
		json_decref(rows);
		json_decref(tree);
		return CLI_FAILED;
	}
	failed += (int)cli_switch_up(rack, switches);
	for (i = 0; i < (count ? count : 1); i++) {
		struct plan plan =
			count ? plan_at(rack->config, i) : plan_default;

		if (!address && cli_switch_address(rack, i, own))
			(void)setenv("AQUIFER_NIC_ADDRESS", own, 1);
		failed += bring_up_node(rack, &plan, rows) != 0;
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
