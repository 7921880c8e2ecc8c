/* SPDX-License-Identifier: Apache-2.0 */
/* What a confined process can still do, and what it cannot any more. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "confine/confine.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

struct fixture {
	char open[64];	 /* a directory that may be written */
	char closed[64]; /* and one that may not */
};

static int setup(void **state)
{
	static struct fixture fx;

	strcpy(fx.open, "/tmp/test_confine_XXXXXX");
	strcpy(fx.closed, "/tmp/test_confine_XXXXXX");
	*state = &fx;
	return mkdtemp(fx.open) && mkdtemp(fx.closed) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;
	char command[200];

	snprintf(command, sizeof(command), "rm -rf %s %s", fx->open,
		 fx->closed);
	return system(command);
}

/* ---- in the child: its exit code is the line that is wrong --------------- */

#define CHILD_CHECK(cond)                \
	do {                             \
		if (!(cond))             \
			_exit(__LINE__); \
	} while (0)

typedef void (*child_fn)(const struct fixture *fx);

static void in_child(void **state, child_fn fn, const struct confine *base,
		     bool with_paths)
{
	struct fixture *fx = *state;
	struct confine c = *base;
	int status;
	pid_t pid;

	if (with_paths)
		assert_int_equal(confine_add(&c, CONFINE_WRITE, fx->open), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (confine_start(&c) != 0) {
			fprintf(stderr, "confine: %s\n", error_last());
			_exit(254);
		}
		fn(fx);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with status %#x, line %d modulo 256",
			 (unsigned)status, WEXITSTATUS(status));
}

static bool refuses(int result, int err)
{
	return result < 0 && errno == err;
}

static void calls(const struct fixture *fx)
{
	CHILD_CHECK(refuses((int)syscall(SYS_bpf, 0, NULL, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_unshare, CLONE_NEWUSER), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_setns, 0, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_mount, 0, 0, 0, 0, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_chroot, "/"), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_init_module, 0, 0, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_kexec_load, 0, 0, 0, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_userfaultfd, 0), EPERM));
	CHILD_CHECK(refuses((int)syscall(SYS_perf_event_open, 0), EPERM));
	CHILD_CHECK(refuses(
		(int)syscall(SYS_process_vm_writev, getppid(), 0, 0, 0, 0, 0),
		EPERM));
	/* What libc learnt lately: it must believe that there is none. */
	CHILD_CHECK(refuses((int)syscall(SYS_io_uring_setup, 0, NULL), ENOSYS));
	CHILD_CHECK(refuses((int)syscall(SYS_pidfd_open, getpid(), 0), ENOSYS));
	CHILD_CHECK(refuses((int)syscall(SYS_clone3, NULL, 0), ENOSYS));
	CHILD_CHECK(refuses(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT));
	CHILD_CHECK(refuses(socket(AF_ALG, SOCK_SEQPACKET, 0), EAFNOSUPPORT));
	CHILD_CHECK(refuses(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT));
	CHILD_CHECK(socket(AF_INET, SOCK_DGRAM, 0) >= 0);
	CHILD_CHECK(socket(AF_INET6, SOCK_STREAM, 0) >= 0 ||
		    errno == EAFNOSUPPORT);
	CHILD_CHECK(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	CHILD_CHECK(socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0);
}

static void processes(const struct fixture *fx)
{
	char *argv[] = {(char *)(uintptr_t) "/bin/true", NULL};

	CHILD_CHECK(refuses(execv(argv[0], argv), EPERM));
	CHILD_CHECK(
		refuses((int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM));
	CHILD_CHECK(refuses((int)fork(), EPERM));
	CHILD_CHECK(refuses((int)ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM));
	CHILD_CHECK(refuses(kill(getppid(), 0), EPERM));
	CHILD_CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
}

static void *map_data(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void no_code(const struct fixture *fx)
{
	void *p = map_data();

	CHILD_CHECK(p != MAP_FAILED);
	CHILD_CHECK(refuses(mprotect(p, 4096, PROT_READ | PROT_EXEC), EPERM));
	CHILD_CHECK(mprotect(p, 4096, PROT_READ) == 0);
}

/* Who translates walks may make pages executable that it cannot write. */
static void some_code(const struct fixture *fx)
{
	void *p = map_data();

	CHILD_CHECK(p != MAP_FAILED);
	CHILD_CHECK(refuses(
		mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), EPERM));
	CHILD_CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
	CHILD_CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
}

/* Landlock's part where a sanitizer needs the calls themselves. */
static void programs(const struct fixture *fx)
{
	char *argv[] = {(char *)(uintptr_t) "/bin/true", NULL};

	CHILD_CHECK(execv(argv[0], argv) < 0);
}

static void *make_socket(void *arg)
{
	*(int *)arg = socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0;
	return NULL;
}

static void threads(const struct fixture *fx)
{
	pthread_t thread;
	int err = 0;

	CHILD_CHECK(pthread_create(&thread, NULL, make_socket, &err) == 0);
	CHILD_CHECK(pthread_join(thread, NULL) == 0);
	CHILD_CHECK(err == EAFNOSUPPORT);
}

static void files(const struct fixture *fx)
{
	char path[128], link[64];
	struct stat st;
	int fd, ro;

	snprintf(path, sizeof(path), "%s/file", fx->open);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(unlink(path) == 0);
	snprintf(path, sizeof(path), "%s/file", fx->closed);
	CHILD_CHECK(open(path, O_RDWR | O_CREAT, 0600) < 0);
	CHILD_CHECK(open("/usr/new", O_RDWR | O_CREAT, 0600) < 0);
	if (!SANITIZED && confine_landlock_version()) {
		CHILD_CHECK(refuses(open(fx->closed, O_RDONLY), EACCES));
		CHILD_CHECK(refuses(open("/etc/shadow", O_RDONLY), EACCES));
	}
	CHILD_CHECK(open("/etc/passwd", O_RDONLY) >= 0);
	/* As a grant does it: a second descriptor that cannot write. */
	fd = memfd_create("grant", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHILD_CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ro = open(link, O_RDONLY | O_CLOEXEC);
	CHILD_CHECK(ro >= 0);
	CHILD_CHECK(readlink(link, path, sizeof(path)) > 0);
	CHILD_CHECK(stat("/proc/thread-self/ns/net", &st) == 0);
	CHILD_CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHILD_CHECK(SANITIZED || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static uint64_t effective(void)
{
	struct __user_cap_header_struct hdr = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0}};

	CHILD_CHECK(syscall(SYS_capget, &hdr, data) == 0);
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

static void none_left(const struct fixture *fx)
{
	CHILD_CHECK(effective() == 0);
	if (getuid() == 0 && !SANITIZED)
		CHILD_CHECK(chown(fx->open, 1, 1) != 0);
}

static void one_left(const struct fixture *fx)
{
	CHILD_CHECK(effective() == 1u << CAP_NET_RAW);
	CHILD_CHECK(prctl(PR_CAPBSET_READ, CAP_NET_RAW, 0, 0, 0) == 1);
	CHILD_CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0);
	CHILD_CHECK(socket(AF_PACKET, SOCK_RAW, 0) >= 0);
}

static void has_group(const struct fixture *fx)
{
	gid_t groups[64];
	bool found = false;

	for (int i = getgroups(64, groups); i-- > 0;)
		found |= groups[i] == 54321;
	CHILD_CHECK(found && getuid() == 0 && effective() == 0);
}

static void is_nobody(const struct fixture *fx)
{
	gid_t groups[64];
	uid_t r, e, s;

	CHILD_CHECK(getresuid(&r, &e, &s) == 0);
	CHILD_CHECK(r == 65534 && e == 65534 && s == 65534);
	CHILD_CHECK(setresuid(0, 0, 0) != 0);
	for (int i = getgroups(64, groups); i-- > 0;)
		CHILD_CHECK(groups[i] != 0);
	CHILD_CHECK(effective() == 0);
	files(fx);
}

static socklen_t abstract_name(struct sockaddr_un *sa)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)snprintf(sa->sun_path + 1, 64,
					    "test-confine-%d",
					    (int)(getpid())) +
			   1);
}

static struct sockaddr_un outside;
static socklen_t outside_len;

/* Names without a file have no owner either. */
static void abstract_sockets(const struct fixture *fx)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(refuses(
		connect(fd, (struct sockaddr *)&outside, outside_len), EPERM));
	CHILD_CHECK(refuses(ioctl(0, TIOCLINUX, ""), EPERM));
}

static void *sleeper(void *arg)
{
	(void)pause();
	return arg;
}

/* ---- tests -------------------------------------------------------------- */

static const struct confine plain = {0};

static void test_calls(void **state)
{
	if (!confine_has_filter())
		skip();
	in_child(state, calls, &plain, false);
	in_child(state, threads, &plain, false);
	if (!SANITIZED) {
		const struct confine maker = {.makes_code = true};

		in_child(state, processes, &plain, false);
		in_child(state, no_code, &plain, false);
		in_child(state, some_code, &maker, false);
	}
}

static void test_files(void **state)
{
	in_child(state, files, &plain, true);
	in_child(state, none_left, &plain, true);
	if (confine_landlock_version() || (confine_has_filter() && !SANITIZED))
		in_child(state, programs, &plain, true);
}

static void test_abstract_sockets(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (confine_landlock_version() < 6 || !confine_has_filter()) {
		close(fd);
		skip();
	}
	outside_len = abstract_name(&outside);
	assert_int_equal(bind(fd, (struct sockaddr *)&outside, outside_len), 0);
	assert_int_equal(listen(fd, 1), 0);
	in_child(state, abstract_sockets, &plain, false);
	close(fd);
}

/* A second thread would keep what the first gives up. */
static void test_thread_before(void **state)
{
	pthread_t thread;
	int status;
	pid_t pid;

	if (SANITIZED)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		CHILD_CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
		CHILD_CHECK(confine_start(&plain) == -EBUSY);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_packets(void **state)
{
	const struct confine c = {.packets = true};

	if (getuid() != 0)
		skip();
	in_child(state, one_left, &c, false);
}

static void test_user(void **state)
{
	const struct fixture *fx = *state;
	const struct confine c = {.user = "nobody"};
	const struct confine number = {.user = "65534"};
	const struct confine group = {.group = "54321"};

	if (getuid() != 0)
		skip();
	assert_int_equal(chown(fx->open, 65534, 65534), 0);
	in_child(state, is_nobody, &c, true);
	in_child(state, is_nobody, &number, true);
	in_child(state, has_group, &group, false);
}

static void test_wrong(void **state)
{
	const struct confine c = {.user = "no-such-user-here"};
	struct confine full = {0};

	assert_int_equal(confine_start(&c), -ENOENT);
	assert_non_null(strstr(error_last(), "no-such-user-here"));
	assert_int_equal(confine_add(&full, CONFINE_READ, NULL), 0);
	assert_int_equal(confine_add(&full, CONFINE_READ, ""), 0);
	for (unsigned i = 0; i < CONFINE_PATH_MAX; i++)
		assert_int_equal(confine_add(&full, CONFINE_READ, "/x"), 0);
	assert_int_equal(confine_add(&full, CONFINE_READ, "/x"), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abstract_sockets, setup,
						teardown),
		cmocka_unit_test(test_thread_before),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
