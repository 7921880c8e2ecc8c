/* SPDX-License-Identifier: Apache-2.0 */
/* Starts switches before the nodes that plug into them, and opens them when all
 * nodes are known there. */
#include "cli_switch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/config_named.h"
#include "base/error.h"
#include "cli.h"
#include "cli_proc.h"
#include "cli_report.h"
#include "switchd/switchd.h"

enum {
	READY_MS = 10000,
	LOOK_MS = 20,
	ARGS_MAX = 8 + 2 * SWITCHD_PORT_MAX,
	HTTP_ARGS_MAX = 9, /* behind those */
};

static void look_again(void)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

	(void)nanosleep(&pause, NULL);
}

/* Each word of the text as an option's value; the words are cut out of it. */
static unsigned add_words(char **argv, unsigned count, const char *option,
			  char *text)
{
	char *rest, *word;

	for (word = strtok_r(text, " \t", &rest); word && count + 3 < ARGS_MAX;
	     word = strtok_r(NULL, " \t", &rest)) {
		argv[count++] = (char *)(uintptr_t)option;
		argv[count++] = word;
	}
	return count;
}

static void add_http(char **argv, unsigned count, const struct cli_rack *rack,
		     unsigned i)
{
	static const char *const options[][2] = {
		{"--listen", "listen"},
		{"--tls-cert", "tls_cert"},
		{"--tls-key", "tls_key"},
		{"--tls-ca", "tls_ca"},
	};
	const char *text;

	for (unsigned k = 0; k < ARRAY_LEN(options); k++) {
		text = config_named_text(rack->config, "switch", i,
					 options[k][1]);
		if (!text[0])
			continue;
		argv[count++] = (char *)(uintptr_t)options[k][0];
		argv[count++] = (char *)(uintptr_t)text;
	}
	text = config_named_text(rack->config, "switch", i, "insecure");
	if (strcmp(text, "yes") == 0)
		argv[count++] = (char *)(uintptr_t) "--insecure";
}

static int start(const struct cli_rack *rack, unsigned i, const char *name,
		 struct cli_proc *proc)
{
	char ports[CONFIG_VALUE_MAX], programs[CONFIG_VALUE_MAX];
	char addresses[CONFIG_VALUE_MAX];
	char *argv[ARGS_MAX + HTTP_ARGS_MAX] = {NULL};
	char program[PATH_MAX];
	unsigned count = 0;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n < 0)
		return error_set(-errno, "/proc/self/exe cannot be read");
	program[n] = '\0';
	snprintf(ports, sizeof(ports), "%s",
		 config_named_text(rack->config, "switch", i, "ports"));
	snprintf(programs, sizeof(programs), "%s",
		 config_named_text(rack->config, "switch", i, "programs"));
	snprintf(addresses, sizeof(addresses), "%s",
		 config_named_text(rack->config, "switch", i, "address"));
	argv[count++] = program;
	argv[count++] = (char *)(uintptr_t) "switch";
	argv[count++] = (char *)(uintptr_t) "--name";
	argv[count++] = (char *)(uintptr_t)name;
	count = add_words(argv, count, "--port", ports);
	count = add_words(argv, count, "--address", addresses);
	count = add_words(argv, count, "--program", programs);
	add_http(argv, count, rack, i);
	return cli_proc_start(rack->rundir, name, argv, proc);
}

static int wait_ready(const struct cli_rack *rack, const char *name,
		      const struct cli_proc *proc)
{
	uint64_t end_ms = clock_mono_ms() + READY_MS;

	while (clock_mono_ms() < end_ms) {
		if (switchd_ask(rack->name, name, "hello", NULL) == 0)
			return 0;
		if (waitpid(proc->pid, NULL, WNOHANG) == proc->pid)
			return error_set(-EHOSTDOWN,
					 "switch %s ended while it was "
					 "starting; see %s/%s.log",
					 name, rack->rundir, name);
		look_again();
	}
	return error_set(-ETIMEDOUT, "switch %s did not answer within %d s",
			 name, READY_MS / 1000);
}

static int bring_up(const struct cli_rack *rack, unsigned i, json_t *row)
{
	const char *name = config_named_name(rack->config, "switch", i);
	struct cli_proc proc = {0};
	int err = cli_proc_find(rack->rundir, name, &proc);

	cli_report_set(row, "name", "%s", name);
	if (switchd_ask(rack->name, name, "hello", NULL) == 0) {
		cli_report_set(row, "state", "already up");
	} else {
		if (err == -ESRCH)
			cli_proc_forget(rack->rundir, name);
		err = start(rack, i, name, &proc);
		if (!err)
			err = wait_ready(rack, name, &proc);
		if (err) {
			cli_report_set(row, "state", "failed");
			cli_error("%s", error_last());
			return err;
		}
		cli_report_set(row, "state", "up");
	}
	if (proc.pid)
		(void)json_object_set_new(row, "pid", json_integer(proc.pid));
	return 0;
}

unsigned cli_switch_up(const struct cli_rack *rack, json_t *rows)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < config_named_count(rack->config, "switch");
	     i++) {
		json_t *row = json_object();

		failed += bring_up(rack, i, row) != 0;
		(void)json_array_append_new(rows, row);
	}
	return failed;
}

/* ---- a switch that replaces atomics -------------------------------------- */

/* Of a switch that is not the rack's own. */
static bool runs(const struct cli_rack *rack, const char *name,
		 const char *program)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int err = f ? switchd_ask(rack->name, name, "hello", f) : -ENOMEM;
	char word[32];
	bool found;

	if (f)
		fclose(f);
	snprintf(word, sizeof(word), "\"%s\"", program);
	found = !err && strstr(text, word);
	free(text);
	return found;
}

/* The switch that the NICs plug into, if it has that program. */
static const char *replacing(const struct cli_rack *rack)
{
	const struct config *c = rack->config;
	const char *port = config_string(c, "nic", "port");

	if (strncmp(port, "switch:", 7) != 0)
		return NULL;
	for (unsigned i = 0; i < config_named_count(c, "switch"); i++)
		if (strcmp(config_named_name(c, "switch", i), port + 7) == 0)
			return strstr(config_named_text(c, "switch", i,
							"programs"),
				      "swordbox")
				       ? port + 7
				       : NULL;
	return runs(rack, port + 7, "swordbox") ? port + 7 : NULL;
}

const char *cli_switch_address(const struct cli_rack *rack, unsigned index,
			       char out[16])
{
	if (!replacing(rack) || index >= 250 ||
	    config_string(rack->config, "nic", "addresses")[0] ||
	    strcmp(config_string(rack->config, "nic", "address"),
		   "127.0.0.1") != 0)
		return NULL;
	snprintf(out, 16, "127.0.1.%u", index + 1);
	return out;
}

/* How many servers it knows; *ready: it is open already. */
static int known(const struct cli_rack *rack, const char *name, size_t *servers,
		 bool *ready)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	json_t *tree = NULL;
	int err = f ? switchd_ask(rack->name, name, "tell swordbox show", f)
		    : -ENOMEM;

	if (f)
		fclose(f);
	if (!err)
		tree = json_loads(text, 0, NULL);
	if (!err && !tree)
		err = error_set(-EBADMSG, "switch %s says nonsense", name);
	if (!err) {
		*servers = json_array_size(json_object_get(tree, "servers"));
		*ready = json_is_true(json_object_get(tree, "ready"));
	}
	json_decref(tree);
	free(text);
	return err;
}

int cli_switch_open(const struct cli_rack *rack, unsigned nodes)
{
	const char *name = replacing(rack);
	uint64_t end_ms = clock_mono_ms() + READY_MS;

	if (!name)
		return 0;
	while (clock_mono_ms() < end_ms) {
		size_t servers = 0;
		bool ready = false;
		int err = known(rack, name, &servers, &ready);

		if (err || ready)
			return err;
		if (servers >= nodes)
			return switchd_ask(rack->name, name,
					   "tell swordbox ready", NULL);
		look_again();
	}
	return error_set(-ETIMEDOUT,
			 "not all nodes have declared themselves to switch %s; "
			 "it stays closed until 'aquifer switch --name %s "
			 "--tell \"swordbox ready\"'",
			 name, name);
}

/* ---- a switch that is an engine ------------------------------------------ */

/* Whether a list of programs has one with that name. */
static bool lists(const char *programs, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = programs; *at; at += strcspn(at, " \t")) {
		at += strspn(at, " \t");
		if (strncmp(at, name, len) == 0 && strchr(": \t", at[len]))
			return true;
	}
	return false;
}

const char *cli_switch_engine(const struct cli_rack *rack, const char *setting)
{
	const struct config *c = rack->config;
	const char *port = config_string(c, "nic", "port");

	if (strcmp(setting, "none") == 0)
		return NULL;
	if (setting[0] && strcmp(setting, "auto") != 0)
		return setting;
	for (unsigned i = 0; i < config_named_count(c, "switch"); i++)
		if (lists(config_named_text(c, "switch", i, "programs"),
			  "cowbird"))
			return config_named_name(c, "switch", i);
	return strncmp(port, "switch:", 7) == 0 &&
			       runs(rack, port + 7, "cowbird")
		       ? port + 7
		       : NULL;
}
