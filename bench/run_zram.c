/* SPDX-License-Identifier: Apache-2.0 */
/* The peer: the kernel swaps to compressed memory. Needs root, zram and the
 * memory cgroup (either version); leaves the machine as it was. */
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

static int make_swap(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int fd = open("/dev/null", O_WRONLY);

		(void)dup2(fd, STDOUT_FILENO);
		(void)dup2(fd, STDERR_FILENO);
		(void)execlp("mkswap", "mkswap", ZRAM_DEVICE, (char *)NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return -ECHILD;
	return swapon(ZRAM_DEVICE, SWAP_FLAG_PREFER | 100) == 0 ? 0 : -errno;
}

static int open_cgroup(struct run_zram *z, uint64_t limit_bytes)
{
	struct stat st;

	z->is_v2 = stat("/sys/fs/cgroup/cgroup.controllers", &st) == 0;
	(void)snprintf(z->cgroup, sizeof(z->cgroup),
		       "/sys/fs/cgroup%s/aquifer-bench-%d",
		       z->is_v2 ? "" : "/memory", (int)getpid());
	if (mkdir(z->cgroup, 0755) != 0)
		return -errno;
	return put_number(z->cgroup,
			  z->is_v2 ? "memory.max" : "memory.limit_in_bytes",
			  limit_bytes);
}

int run_zram_open(struct run_zram *z, uint64_t limit_bytes, uint64_t swap_bytes,
		  const char **why)
{
	char text[32];
	int err;

	*z = (struct run_zram){0};
	*why = "zram (root, /sys/block/zram0)";
	if (get(ZRAM "disksize", text, sizeof(text)) != 0)
		return -EOPNOTSUPP;
	*why = "a zram0 that nobody uses";
	if (strcmp(text, "0\n") != 0)
		return -EBUSY;
	*why = "zram that takes a size and swapon (root)";
	if (get(PAGE_CLUSTER, z->page_cluster, sizeof(z->page_cluster)) != 0 ||
	    put_number(ZRAM, "disksize", swap_bytes) != 0)
		return -EOPNOTSUPP;
	err = make_swap();
	if (!err)
		err = put(PAGE_CLUSTER, "0");
	if (!err) {
		*why = "a memory cgroup";
		err = open_cgroup(z, limit_bytes);
	}
	if (err)
		run_zram_close(z);
	return err;
}

void run_zram_close(struct run_zram *z)
{
	if (z->cgroup[0])
		(void)rmdir(z->cgroup);
	if (z->page_cluster[0])
		(void)put(PAGE_CLUSTER, z->page_cluster);
	(void)swapoff(ZRAM_DEVICE);
	(void)put(ZRAM "reset", "1");
}

int run_zram_enter(const struct run_zram *z)
{
	return put_number(z->cgroup, "cgroup.procs", (uint64_t)getpid());
}
