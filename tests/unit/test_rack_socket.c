/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets in the runtime directory: exclusive while their owner lives, free
 * again when it was killed, and out of reach for other users. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rack_socket.h"
#include "base/rundir.h"
#include "base/trust.h"

enum {
	OTHER_UID = 54321,
	OTHER_GID = 54322,
	RACERS = 8,
};

static char top[64];

static int setup(void **state)
{
	strcpy(top, "/tmp/test_rack_socket_XXXXXX");
	if (!mkdtemp(top))
		return -1;
	unsetenv("AQUIFER_RACK_USER");
	unsetenv("AQUIFER_RACK_GROUP");
	return setenv("AQUIFER_RUNDIR", top, 1);
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

/* Binds and listens, as slot.c does. */
static int take(const struct rack_sockets *r, const char *name, int *fd)
{
	int lock = rack_sockets_lock(r), err;

	assert_true(lock >= 0);
	*fd = rack_socket_open();
	assert_true(*fd >= 0);
	err = rack_socket_bind(r, name, *fd);
	if (!err)
		assert_int_equal(listen(*fd, 8), 0);
	else
		close(*fd);
	rack_sockets_unlock(r, lock);
	return err;
}

static void a_name_has_one_owner(void **state)
{
	struct rack_sockets r, other;
	int fd, again, conn;

	assert_int_equal(rack_sockets_open("r", &r), 0);
	assert_int_equal(rack_sockets_open("other", &other), 0);
	assert_int_equal(take(&r, "a", &fd), 0);
	assert_int_equal(take(&r, "a", &again), -EADDRINUSE);
	assert_int_equal(rack_socket_connect(&r, "a", &conn), 0);
	close(conn);
	assert_int_equal(rack_socket_connect(&r, "b", &conn), -ECONNREFUSED);
	assert_int_equal(rack_socket_connect(&other, "a", &conn),
			 -ECONNREFUSED);
	rack_socket_release(&r, "a", fd);
	assert_int_equal(rack_socket_connect(&r, "a", &conn), -ECONNREFUSED);
	assert_int_equal(take(&r, "a", &fd), 0);
	rack_socket_release(&r, "a", fd);
	/* Names that lead elsewhere. */
	assert_int_equal(take(&r, "../a", &fd), -EINVAL);
	assert_int_equal(rack_socket_connect(&r, "../a", &conn), -EINVAL);
	rack_sockets_close(&r);
	rack_sockets_close(&other);
}

/* Bound, not listening: the port of an id that only connects. */
static void a_bound_name_is_taken(void **state)
{
	struct rack_sockets r;
	int fd = rack_socket_open(), again, conn;

	assert_true(fd >= 0);
	assert_int_equal(rack_sockets_open("r", &r), 0);
	assert_int_equal(rack_socket_bind(&r, "a", fd), 0);
	assert_int_equal(take(&r, "a", &again), -EADDRINUSE);
	assert_int_equal(rack_socket_connect(&r, "a", &conn), -ECONNREFUSED);
	/* The owner has noticed nothing. */
	assert_int_equal(listen(fd, 1), 0);
	assert_true(accept4(fd, NULL, NULL, SOCK_NONBLOCK) < 0);
	rack_socket_release(&r, "a", fd);
	rack_sockets_close(&r);
}

static pid_t holder(const struct rack_sockets *r, const char *name)
{
	int p[2], fd;
	pid_t pid;
	char ok;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		ok = take(r, name, &fd) == 0 ? 'y' : 'n';
		if (write(p[1], &ok, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(p[1]);
	assert_int_equal(read(p[0], &ok, 1), 1);
	close(p[0]);
	assert_int_equal(ok, 'y');
	return pid;
}

static void a_killed_owner_gives_its_name_back(void **state)
{
	struct rack_sockets r;
	int fd, conn;
	pid_t pid;

	assert_int_equal(rack_sockets_open("r", &r), 0);
	pid = holder(&r, "a");
	assert_int_equal(take(&r, "a", &fd), -EADDRINUSE);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(rack_socket_connect(&r, "a", &conn), -ECONNREFUSED);
	assert_int_equal(take(&r, "a", &fd), 0);
	rack_socket_release(&r, "a", fd);
	rack_sockets_close(&r);
}

/* All see the same dead file at once: one of them gets the name. */
static void a_dead_name_goes_to_one_of_many(void **state)
{
	struct rack_sockets r;
	pid_t pid[RACERS];
	int fd, go[2], done[2], won = 0;
	char c;

	assert_int_equal(rack_sockets_open("r", &r), 0);
	fd = rack_socket_open();
	assert_int_equal(rack_socket_bind(&r, "a", fd), 0);
	close(fd); /* and its file stays */
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(done), 0);
	for (unsigned i = 0; i < RACERS; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(go[1]);
			if (read(go[0], &c, 1) != 0) /* until it is closed */
				_exit(1);
			c = take(&r, "a", &fd) == 0;
			if (write(done[1], &c, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
	}
	close(go[1]);
	for (unsigned i = 0; i < RACERS; i++) {
		assert_int_equal(read(done[0], &c, 1), 1);
		won += c;
	}
	for (unsigned i = 0; i < RACERS; i++) {
		kill(pid[i], SIGKILL);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	}
	assert_int_equal(won, 1);
	close(go[0]);
	close(done[0]);
	close(done[1]);
	rack_sockets_close(&r);
}

/* sun_path has 108 bytes; a runtime directory may have more. */
static void a_long_directory_works(void **state)
{
	char dir[200];
	struct rack_sockets r;
	int fd, conn;

	snprintf(dir, sizeof(dir), "%s/%0120d", top, 7);
	setenv("AQUIFER_RUNDIR", dir, 1);
	assert_int_equal(rack_sockets_open("r", &r), 0);
	assert_int_equal(take(&r, "127.0.0.1:1000", &fd), 0);
	assert_int_equal(rack_socket_connect(&r, "127.0.0.1:1000", &conn), 0);
	close(conn);
	rack_socket_release(&r, "127.0.0.1:1000", fd);
	rack_sockets_close(&r);
}

/* ---- users -------------------------------------------------------------- */

/* In a child with other ids: what `run` returns. */
static int as_other(gid_t gid, int (*run)(const char *name), const char *name)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(gid) || setuid(OTHER_UID))
			_exit(99);
		_exit(-run(name));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int try_connect(const char *name)
{
	struct rack_sockets r;
	int fd, err = rack_sockets_open("r", &r);

	return err ? err : rack_socket_connect(&r, name, &fd);
}

static int try_take(const char *name)
{
	struct rack_sockets r;
	int fd, err = rack_sockets_open("r", &r);

	return err ? err : take(&r, name, &fd);
}

/* As an attacker would: the path itself, and no check of ours. */
static int try_path(const char *name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = rack_socket_open();

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/r/%s", top, name);
	return connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
}

/* They were abstract names: everybody could connect, and take them. */
static void other_users_find_nothing(void **state)
{
	struct rack_sockets r;
	char file[RACK_SOCKET_NAME_MAX];
	int fd;

	if (geteuid() != 0)
		skip();
	assert_int_equal(rack_sockets_open("r", &r), 0);
	assert_int_equal(take(&r, "a", &fd), 0);
	snprintf(file, sizeof(file), "%llu:a", (unsigned long long)r.net);
	assert_int_equal(try_path(file), 0);
	assert_int_equal(as_other(OTHER_GID, try_path, file), -EACCES);
	assert_int_not_equal(as_other(OTHER_GID, try_connect, "a"), 0);
	assert_int_not_equal(as_other(OTHER_GID, try_take, "b"), 0);
	/* Nor when all could enter what is around the rack. */
	assert_int_equal(chmod(top, 0755), 0);
	assert_int_equal(as_other(OTHER_GID, try_path, file), -EACCES);
	assert_int_equal(as_other(OTHER_GID, try_connect, "a"), -EPERM);
	rack_socket_release(&r, "a", fd);
	rack_sockets_close(&r);
}

static int try_unlink(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/r/%s", top, name);
	return unlink(path) < 0 ? -errno : 0;
}

/* Members use the rack, and cannot take what is another's away. */
static void members_of_the_group_share_a_rack(void **state)
{
	char file[RACK_SOCKET_NAME_MAX], path[RUNDIR_PATH_MAX], gid[16];
	struct rack_sockets r;
	struct stat st;
	int fd;

	if (geteuid() != 0)
		skip();
	snprintf(gid, sizeof(gid), "%d", OTHER_GID);
	setenv("AQUIFER_RACK_GROUP", gid, 1);
	assert_int_equal(rack_sockets_open("r", &r), 0);
	assert_int_equal(rundir_path("r", path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 03770);
	assert_int_equal(st.st_gid, OTHER_GID);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(take(&r, "a", &fd), 0);
	snprintf(file, sizeof(file), "%llu:a", (unsigned long long)r.net);
	assert_int_equal(as_other(OTHER_GID, try_connect, "a"), 0);
	assert_int_equal(as_other(OTHER_GID, try_take, "b"), 0);
	assert_int_equal(as_other(OTHER_GID, try_take, "a"), -EADDRINUSE);
	assert_int_equal(as_other(OTHER_GID, try_unlink, file), -EPERM);
	/* Others do not, though the parent may be entered. */
	assert_int_not_equal(as_other(OTHER_UID, try_connect, "a"), 0);
	assert_int_equal(as_other(OTHER_UID, try_path, file), -EACCES);
	/* A dead name of root's stays root's. */
	close(fd);
	assert_int_equal(as_other(OTHER_GID, try_take, "a"), -EADDRINUSE);
	rack_sockets_close(&r);
	/* A directory that is laxer than that is refused. */
	assert_int_equal(chown(path, OTHER_UID, OTHER_GID), 0);
	assert_int_equal(rack_sockets_open("r", &r), -EPERM);
	assert_int_equal(as_other(OTHER_GID, try_connect, "a"), -EPERM);
	unsetenv("AQUIFER_RACK_GROUP");
}

/* What root made goes to the user who serves the rack. */
static void the_serving_user_gets_the_directory(void **state)
{
	char path[RUNDIR_PATH_MAX], uid[16];
	struct rack_sockets r;
	struct stat st;

	if (geteuid() != 0)
		skip();
	assert_int_equal(rundir_make("r", path), 0);
	snprintf(uid, sizeof(uid), "%d", OTHER_UID);
	setenv("AQUIFER_RACK_USER", uid, 1);
	assert_int_equal(rack_sockets_open("r", &r), 0);
	assert_int_equal(fstat(r.dir_fd, &st), 0);
	assert_int_equal(st.st_uid, OTHER_UID);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(as_other(OTHER_GID, try_take, "a"), 0);
	assert_int_equal(try_take("b"), 0); /* root, too */
	rack_sockets_close(&r);
	unsetenv("AQUIFER_RACK_USER");
	/* Without the setting root trusts it no more. */
	assert_int_equal(rack_sockets_open("r", &r), -EPERM);
}

static void who_is_trusted(void **state)
{
	static const struct {
		struct trust t;
		uid_t uid;
		bool yes;
	} rows[] = {
		{{.self = 7}, 7, true},
		{{.self = 7}, 0, true},
		{{.self = 7}, 8, false},
		{{.self = 0}, 0, true},
		{{.self = 0}, 7, false}, /* root accepted everybody */
		{{.self = 0, .has_user = true, .user = 7}, 7, true},
		{{.self = 0, .has_user = true, .user = 7}, 8, false},
		{{.self = 9, .has_user = true, .user = 7}, 7, true},
		{{.self = 9, .has_user = true, .user = 7}, 8, false},
		{{.self = 9, .has_group = true}, 8, true},
	};
	struct trust t;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(trust_peer(&rows[i].t, rows[i].uid),
				 rows[i].yes);
	setenv("AQUIFER_RACK_USER", "no-such-user-here", 1);
	assert_int_equal(trust_load(&t), -ENOENT);
	assert_non_null(strstr(error_last(), "no-such-user-here"));
	setenv("AQUIFER_RACK_USER", "root", 1);
	setenv("AQUIFER_RACK_GROUP", "4294967295", 1);
	assert_int_equal(trust_load(&t), -ENOENT);
	setenv("AQUIFER_RACK_GROUP", "12", 1);
	assert_int_equal(trust_load(&t), 0);
	assert_true(t.has_user && t.user == 0 && t.has_group && t.group == 12);
	unsetenv("AQUIFER_RACK_USER");
	unsetenv("AQUIFER_RACK_GROUP");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_name_has_one_owner),
		CASE(a_bound_name_is_taken),
		CASE(a_killed_owner_gives_its_name_back),
		CASE(a_dead_name_goes_to_one_of_many),
		CASE(a_long_directory_works),
		CASE(other_users_find_nothing),
		CASE(members_of_the_group_share_a_rack),
		CASE(the_serving_user_gets_the_directory),
		CASE(who_is_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
