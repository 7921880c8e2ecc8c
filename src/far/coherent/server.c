/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the cache server, or starts it. */
#include "server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/rack_socket.h"
#include "base/rundir.h"
#include "base/trust.h"
#include "channel.h"

enum {
	START_MS = 20000, /* it joins, which takes up to 10 s */
	LOOK_MS = 10,
	WORDS_MAX = 256,
};

#define IDLE_MS "3000" /* it stays for so long after its last user */

/* What it sends we would map and believe. */
static int check_server(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct trust trust;
	int err = trust_load(&trust);

	if (err)
		return err;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
	    !trust_serves(&trust, cred.uid))
		return error_set(-EPERM, "the cache server is another user's");
	return 0;
}

int coherent_socket_name(char name[COHERENT_SOCKET_MAX])
{
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	(void)snprintf(name, COHERENT_SOCKET_MAX, "%.60s:shared",
		       config_string(config, "nic", "address"));
	config_destroy(config);
	return 0;
}

/* ---- starting ------------------------------------------------------------ */

/* The program beside this code: in the build tree, or in the prefix. NULL in
 * out[0]: the one of PATH. */
static void find_program(char out[PATH_MAX])
{
	static const char *const places[] = {"", "/../bin", "/../../bin"};
	Dl_info info;
	char self[PATH_MAX];
	char *slash;

	out[0] = '\0';
	if (!dladdr((void *)(uintptr_t)find_program, &info) ||
	    !realpath(info.dli_fname, self))
		return;
	slash = strrchr(self, '/');
	if (!slash)
		return;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int n = snprintf(out, PATH_MAX, "%s%s/aquifer", self,
				 places[i]);

		if (n > 0 && n < PATH_MAX && access(out, X_OK) == 0)
			return;
	}
	out[0] = '\0';
}

/* What a child that is copied from a program with threads may call: system
 * calls. The server is nobody's child, and in no terminal's session. */
struct start {
	char program[PATH_MAX];
	int log, nothing;
	int alive; /* the end of a pipe that the server inherits */
	char *argv[7];
	char **env;
};

static void be_server(const struct start *s)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0) != 0)
		_exit(0);
	(void)dup2(s->nothing, 0);
	(void)dup2(s->nothing, 1);
	(void)dup2(s->log, 2);
	(void)fcntl(s->alive, F_SETFD, 0);
	if (s->program[0])
		(void)execve(s->program, s->argv, s->env);
	else
		(void)execvpe("aquifer", s->argv, s->env);
	_exit(127);
}

/* The environment with the rack's name; what it points to is shared. */
static char **copy_environment(const char *rack)
{
	static const char key[] = "AQUIFER_RACK_NAME=";
	size_t count = 0, kept = 0;
	char **env, *name;

	while (environ[count])
		count++;
	env = calloc(count + 2, sizeof(*env));
	if (!env || asprintf(&name, "%s%s", key, rack) < 0) {
		free(env);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], key, sizeof(key) - 1) != 0)
			env[kept++] = environ[i];
	env[kept] = name;
	return env;
}

/* No signal tells the program of the child that ends at once. */
static int spawn(struct start *s, const char *rack, int *alive)
{
	int pipe_fd[2];
	long pid;

	s->env = copy_environment(rack);
	s->nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!s->env || s->nothing < 0 || pipe2(pipe_fd, O_CLOEXEC) != 0)
		return -ENOMEM;
	s->alive = pipe_fd[1];
	pid = syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
	if (pid == 0)
		be_server(s);
	(void)close(pipe_fd[1]);
	if (pid > 0)
		while (waitpid((pid_t)pid, NULL, __WCLONE) < 0 &&
		       errno == EINTR)
			;
	if (pid < 0)
		(void)close(pipe_fd[0]);
	else
		*alive = pipe_fd[0];
	return pid < 0 ? -errno : 0;
}

static int start_server(const char *rack, const char *name, off_t *from,
			char log[PATH_MAX], int *alive)
{
	char dir[RUNDIR_PATH_MAX];
	struct start s = {.nothing = -1,
			  .argv = {(char *)(uintptr_t) "aquifer",
				   (char *)(uintptr_t) "shared",
				   (char *)(uintptr_t) "serve",
				   (char *)(uintptr_t) "--idle",
				   (char *)(uintptr_t)IDLE_MS}};
	int err = rundir_make(rack, dir);

	if (err)
		return err;
	(void)snprintf(log, PATH_MAX, "%s/%s.log", dir, name);
	s.log = rundir_file_open(log, O_WRONLY | O_CREAT | O_APPEND);
	if (s.log < 0)
		return error_prefix(s.log, "no log: ");
	*from = lseek(s.log, 0, SEEK_END);
	find_program(s.program);
	err = spawn(&s, rack, alive);
	(void)close(s.log);
	if (s.nothing >= 0)
		(void)close(s.nothing);
	if (s.env) {
		size_t n = 0;

		while (s.env[n])
			n++;
		/* Only the name is ours. */
		free(s.env[n - 1]);
		free(s.env);
	}
	return err ? error_set(err, "no cache server can be started: %s",
			       strerror(-err))
		   : 0;
}

/* ---- all of it ----------------------------------------------------------- */

/* Its last words, since we started it. */
static int say_why(const char *log, off_t from)
{
	char text[WORDS_MAX] = "";
	int fd = open(log, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, from);

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return error_set(-EHOSTDOWN,
			 "this machine has no cache server for the rack, and "
			 "'aquifer shared serve' does not start: %s (%s)",
			 text[0] ? text : "it said nothing", log);
}

static bool has_ended(int alive, int wait_ms)
{
	struct pollfd p = {.fd = alive, .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1;
}

/* Somebody else may start one at the same moment: ours then ends, and the other
 * one is there. */
static int await(const struct rack_sockets *r, const char *name, int alive,
		 const char *log, off_t from, int *fd)
{
	uint64_t until_ms = clock_mono_ms() + START_MS;
	bool is_last = false;

	while (rack_socket_connect(r, name, fd) != 0) {
		if (is_last || clock_mono_ms() > until_ms)
			return say_why(log, from);
		is_last = has_ended(alive, LOOK_MS);
	}
	return 0;
}

static int connect_if_there(const struct rack_sockets *r, const char *name,
			    int *fd)
{
	int err = rack_socket_connect(r, name, fd);

	if (err == -ECONNREFUSED || err == -ENOENT)
		return -ENOENT;
	return err ? error_set(-EHOSTDOWN, "the cache server: %s",
			       strerror(-err))
		   : 0;
}

static int connect_or_start(const char *rack, const struct rack_sockets *r,
			    const char *name, int *fd)
{
	char log[PATH_MAX];
	off_t from;
	int alive = -1, err = rack_socket_connect(r, name, fd);

	if (!err || (err != -ECONNREFUSED && err != -ENOENT))
		return err ? error_set(-EHOSTDOWN, "the cache server: %s",
				       strerror(-err))
			   : 0;
	err = start_server(rack, name, &from, log, &alive);
	if (err)
		return err;
	err = await(r, name, alive, log, from, fd);
	(void)close(alive);
	return err;
}

static int reach(const char *rack, bool may_start, int *out)
{
	char name[COHERENT_SOCKET_MAX];
	struct rack_sockets r;
	int fd = -1, err = coherent_socket_name(name);

	if (!err)
		err = rack_sockets_open(rack, &r);
	if (err)
		return err;
	err = may_start ? connect_or_start(rack, &r, name, &fd)
			: connect_if_there(&r, name, &fd);
	rack_sockets_close(&r);
	if (!err) {
		err = check_server(fd);
		if (err)
			(void)close(fd);
		else
			*out = fd;
	}
	return err;
}

int coherent_server_connect(const char *rack, int *out)
{
	return reach(rack, true, out);
}

int coherent_server_find(const char *rack, int *out)
{
	return reach(rack, false, out);
}

int coherent_server_path(const char *rack, char *out, size_t max)
{
	char name[COHERENT_SOCKET_MAX], file[RACK_SOCKET_NAME_MAX];
	char dir[RUNDIR_PATH_MAX];
	struct rack_sockets r;
	int n, err = coherent_socket_name(name);

	if (!err)
		err = rundir_path(rack, dir);
	if (!err)
		err = rack_sockets_open(rack, &r);
	if (err)
		return err;
	err = rack_socket_file(&r, name, file);
	rack_sockets_close(&r);
	if (err)
		return error_set(err, "the address of the NIC is too long");
	n = snprintf(out, max, "%s/%s", dir, file);
	return n > 0 && (size_t)n < max
		       ? 0
		       : error_set(-ENAMETOOLONG,
				   "the path of %s is too long for a socket",
				   dir);
}
