/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that gives up rights: run_rights WAY MIB. It fills memory, gives
 * up, looks at all of its threads, and checks its memory; then so do a child
 * made by fork and one that is executed. It knows nothing of far memory.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_pages.h"

enum {
	NOBODY = 65534,
};

/* ---- ways to give up ---------------------------------------------------- */

static void by_setuid(void)
{
	CHECK(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 &&
	      setuid(NOBODY) == 0);
}

static void by_setresuid(void)
{
	CHECK(setgroups(0, NULL) == 0 &&
	      setresgid(NOBODY, NOBODY, NOBODY) == 0);
	CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

static void by_raw_setresuid(void)
{
	CHECK(syscall(SYS_setgroups, 0, NULL) == 0);
	CHECK(syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0);
	CHECK(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0);
}

static void by_capset(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	CHECK(syscall(SYS_capset, &head, none) == 0);
}

static void by_nothing(void)
{
}

/* ---- what is left ------------------------------------------------------- */

/* What threads may have: the first, and those that it does not know of. */
struct allowed {
	int first_is_root, first_has_caps;
	int others_are_root;
};

static void check_line(const char *line, int may_be_root, int may_have_caps)
{
	unsigned long long caps;
	unsigned id[4];

	if (sscanf(line, "CapPrm: %llx", &caps) == 1 ||
	    sscanf(line, "CapEff: %llx", &caps) == 1 ||
	    sscanf(line, "CapInh: %llx", &caps) == 1 ||
	    sscanf(line, "CapAmb: %llx", &caps) == 1)
		CHECK(caps == 0 || may_have_caps);
	if (sscanf(line, "Uid: %u %u %u %u", id, id + 1, id + 2, id + 3) == 4 ||
	    sscanf(line, "Gid: %u %u %u %u", id, id + 1, id + 2, id + 3) == 4)
		for (unsigned i = 0; i < 4; i++)
			CHECK(id[i] || may_be_root);
	if (!strncmp(line, "Groups:", 7))
		CHECK(may_be_root || line[7 + strspn(line + 7, " \t\n")] == 0);
}

static void check_threads(struct allowed a)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *e;

	CHECK(dir);
	while ((e = readdir(dir))) {
		int is_first = atoi(e->d_name) == getpid();
		char path[300], line[4096];
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 e->d_name);
		f = fopen(path, "r");
		CHECK(f);
		while (fgets(line, sizeof(line), f))
			check_line(line,
				   is_first ? a.first_is_root
					    : a.others_are_root,
				   is_first && a.first_has_caps);
		fclose(f);
	}
	closedir(dir);
}

/* ---- what is shared ----------------------------------------------------- */

struct shared {
	unsigned long inode[16];
	unsigned count;
};

/* The files without a name that are mapped here. */
static struct shared find_shared(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	struct shared s = {.count = 0};
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/memfd:") && s.count < 16 &&
		    sscanf(line, "%*s %*s %*s %*s %lu", &s.inode[s.count]) == 1)
			s.count++;
	fclose(f);
	return s;
}

static void check_unshared(const struct shared *parent)
{
	struct shared own = find_shared();

	for (unsigned i = 0; i < own.count; i++)
		for (unsigned k = 0; k < parent->count; k++)
			CHECK(own.inode[i] != parent->inode[k]);
}

/* A child that libc does not know of sees nothing of its parent's either. */
static void fork_past_libc(void)
{
	struct shared parent = find_shared();
	pid_t pid = (pid_t)syscall(SYS_fork);
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		check_unshared(&parent);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void use(uint64_t *mem, uint64_t pages, uint64_t salt)
{
	check(mem, pages, salt, 0);
	fill(mem, pages, salt + 1);
	check(mem, pages, salt + 1, 0);
}

static void start(char **argv, int executes, uint64_t *mem, uint64_t pages)
{
	char *again[] = {argv[0], "nothing", argv[2], NULL};
	struct shared parent = find_shared();
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		if (executes)
			execv(again[0], again);
		CHECK(!executes);
		check_unshared(&parent);
		/* Root without capabilities cannot become another, so neither
		 * can a thread that it starts. */
		check_threads(
			(struct allowed){.first_is_root = geteuid() == 0,
					 .others_are_root = geteuid() == 0});
		use(mem, pages, 2);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*give_up)(void);
	} ways[] = {
		{"setuid", by_setuid},
		{"setresuid", by_setresuid},
		{"raw-setresuid", by_raw_setresuid},
		{"capset", by_capset},
		{"nothing", by_nothing},
	};
	struct allowed a = {0};
	uint64_t pages, *mem;

	CHECK(argc == 3);
	pages = (uint64_t)atoi(argv[2]) << 8;
	mem = malloc(pages * PAGE);
	CHECK(mem);
	fill(mem, pages, 1);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]) != 0)
			continue;
		/* Threads that change who they are change this, too; the
		 * executed one may have gained rights thereby. */
		CHECK(prctl(PR_GET_DUMPABLE) == 1 ||
		      ways[i].give_up == by_nothing);
		ways[i].give_up();
		a.first_is_root = geteuid() == 0;
		/* Who is root and executes something has all of them again. */
		a.first_has_caps =
			a.first_is_root && ways[i].give_up == by_nothing;
		check_threads(a);
		use(mem, pages, 1);
		if (ways[i].give_up == by_nothing)
			return 0;
		start(argv, 0, mem, pages);
		start(argv, 1, mem, pages);
		fork_past_libc();
		check(mem, pages, 2, 0);
		check_threads(a);
		puts("ok");
		return 0;
	}
	return 2;
}
