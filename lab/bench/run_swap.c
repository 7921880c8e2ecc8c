/* SPDX-License-Identifier: Apache-2.0 */
/* The peer: the kernel swaps to compressed memory, or to a file on disk. Needs
 * root and the memory cgroup (either version); leaves the machine as it was. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_bench.h"

#define ZRAM	     "/sys/block/zram0/"
#define ZRAM_DEVICE  "/dev/zram0"
#define PAGE_CLUSTER "/proc/sys/vm/page-cluster"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	(void)close(fd);
	return err;
}

static int get(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, bytes - 1);
	(void)close(fd);
	if (n < 0)
		return -EIO;
	text[n] = '\0';
	return 0;
}

static int put_number(const char *dir, const char *file, uint64_t value)
{
	char path[256], text[32];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return put(path, text);
}

static int make_swap(const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int fd = open("/dev/null", O_WRONLY);

		(void)dup2(fd, STDOUT_FILENO);
		(void)dup2(fd, STDERR_FILENO);
		(void)execlp("mkswap", "mkswap", path, (char *)NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return -ECHILD;
	return swapon(path, SWAP_FLAG_PREFER | 100) == 0 ? 0 : -errno;
}

static int open_cgroup(struct run_swap *s, uint64_t limit_bytes)
{
	struct stat st;

	s->is_v2 = stat("/sys/fs/cgroup/cgroup.controllers", &st) == 0;
	(void)snprintf(s->cgroup, sizeof(s->cgroup),
		       "/sys/fs/cgroup%s/aquifer-bench-%d",
		       s->is_v2 ? "" : "/memory", (int)getpid());
	if (mkdir(s->cgroup, 0755) != 0)
		return -errno;
	return put_number(s->cgroup,
			  s->is_v2 ? "memory.max" : "memory.limit_in_bytes",
			  limit_bytes);
}

static int make_zram(struct run_swap *s, uint64_t bytes, const char **why)
{
	char text[32];

	*why = "zram (root, /sys/block/zram0)";
	if (get(ZRAM "disksize", text, sizeof(text)) != 0)
		return -EOPNOTSUPP;
	*why = "a zram0 that nobody uses";
	if (strcmp(text, "0\n") != 0)
		return -EBUSY;
	*why = "zram that takes a size and swapon (root)";
	s->is_on = put_number(ZRAM, "disksize", bytes) == 0;
	return s->is_on ? make_swap(ZRAM_DEVICE) : -EOPNOTSUPP;
}

static int make_file(struct run_swap *s, uint64_t bytes, const char **why)
{
	int fd, err = 0;

	*why = "a file in /var/tmp that swapon takes (root)";
	(void)snprintf(s->file, sizeof(s->file), "/var/tmp/aquifer-bench-%d",
		       (int)getpid());
	fd = open(s->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -EOPNOTSUPP;
	s->is_on = true;
	if (posix_fallocate(fd, 0, (off_t)bytes) != 0)
		err = -ENOSPC;
	(void)close(fd);
	return err ? err : make_swap(s->file);
}

int run_swap_open(struct run_swap *s, bool on_file, uint64_t limit_bytes,
		  uint64_t swap_bytes, const char **why)
{
	int err;

	*s = (struct run_swap){0};
	err = on_file ? make_file(s, swap_bytes, why)
		      : make_zram(s, swap_bytes, why);
	if (!err) {
		*why = "page-cluster 0";
		err = get(PAGE_CLUSTER, s->page_cluster,
			  sizeof(s->page_cluster));
	}
	if (!err)
		err = put(PAGE_CLUSTER, "0");
	if (!err) {
		*why = "a memory cgroup";
		err = open_cgroup(s, limit_bytes);
	}
	if (err)
		run_swap_close(s);
	return err;
}

void run_swap_close(struct run_swap *s)
{
	if (s->cgroup[0])
		(void)rmdir(s->cgroup);
	if (s->page_cluster[0])
		(void)put(PAGE_CLUSTER, s->page_cluster);
	if (!s->is_on)
		return;
	(void)swapoff(s->file[0] ? s->file : ZRAM_DEVICE);
	if (s->file[0])
		(void)unlink(s->file);
	else
		(void)put(ZRAM "reset", "1");
}

int run_swap_enter(const struct run_swap *s)
{
	return put_number(s->cgroup, "cgroup.procs", (uint64_t)getpid());
}
