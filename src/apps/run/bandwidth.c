/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of resctrl, and what the firmware says about a node. */
#include "bandwidth.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tier/sysfs.h"

enum {
	PATH_BYTES = 512,
};

const struct bandwidth_roots bandwidth_roots = {
	.resctrl = "/sys/fs/resctrl",
	.system = "/sys/devices/system",
};

/* The number that a file has. -EBADMSG: there is none; -ENODEV: it cannot be
 * read, because what it belongs to is gone. */
static int read_number(int fd, uint64_t *out)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -ENODEV;
	text[n] = '\0';
	return tier_sysfs_number(text, UINT64_MAX, out);
}

static bool read_file(const char *path, uint64_t *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && read_number(fd, out) == 0;

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* Counters have the numbers of last caches; a node's processors are links in
 * its folder. */
static void find_caches(const struct bandwidth_roots *roots, uint32_t node,
			uint64_t cache[BANDWIDTH_CACHES_MAX], unsigned *count)
{
	char path[PATH_BYTES];
	struct dirent *d;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/node/node%" PRIu32,
		       roots->system, node);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		unsigned cpu, i = 0;
		uint64_t id;
		char rest;

		if (sscanf(d->d_name, "cpu%u%c", &cpu, &rest) != 1)
			continue;
		(void)snprintf(path, sizeof(path),
			       "%s/cpu/cpu%u/cache/index3/id", roots->system,
			       cpu);
		if (!read_file(path, &id))
			continue;
		while (i < *count && cache[i] != id)
			i++;
		if (i == *count && *count < BANDWIDTH_CACHES_MAX)
			cache[(*count)++] = id;
	}
	if (dir)
		(void)closedir(dir);
}

/* The counters of one control group, by caches. */
static void open_counters(struct bandwidth *b, const char *folder,
			  const uint64_t *cache, unsigned count)
{
	char path[PATH_BYTES];

	for (unsigned i = 0; i < count && b->count < BANDWIDTH_COUNTERS_MAX;
	     i++) {
		(void)snprintf(path, sizeof(path),
			       "%s/mon_data/mon_L3_%02" PRIu64
			       "/mbm_local_bytes",
			       folder, cache[i]);
		b->fd[b->count] = open(path, O_RDONLY | O_CLOEXEC);
		if (b->fd[b->count] >= 0)
			b->count++;
	}
}

/* Counters of the root are those of tasks that are in no other control group,
 * and a control group's have those of its monitoring groups in them. */
int bandwidth_open(struct bandwidth *b, const struct bandwidth_roots *roots,
		   uint32_t node)
{
	uint64_t cache[BANDWIDTH_CACHES_MAX];
	char path[PATH_BYTES];
	unsigned count = 0;
	struct dirent *d;
	DIR *dir;

	*b = (struct bandwidth){.count = 0};
	find_caches(roots, node, cache, &count);
	open_counters(b, roots->resctrl, cache, count);
	dir = b->count ? opendir(roots->resctrl) : NULL;
	while (dir && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", roots->resctrl,
			       d->d_name);
		open_counters(b, path, cache, count);
	}
	if (dir)
		(void)closedir(dir);
	return b->count ? 0 : -ENOENT;
}

void bandwidth_close(struct bandwidth *b)
{
	for (unsigned i = 0; i < b->count; i++)
		(void)close(b->fd[i]);
	b->count = 0;
}

int bandwidth_read(struct bandwidth *b, uint64_t *bytes)
{
	uint64_t sum = 0, one;

	for (unsigned i = 0; i < b->count;) {
		int err = read_number(b->fd[i], &one);

		if (err == -ENODEV) {
			/* A control group was removed; its tasks count in the
			 * root's from now on. */
			(void)close(b->fd[i]);
			b->fd[i] = b->fd[--b->count];
			continue;
		}
		/* "Unavailable" is what the kernel says while a counter is
		 * given to somebody else. */
		if (err)
			return -EIO;
		sum += one;
		i++;
	}
	if (!b->count)
		return -EIO;
	*bytes = sum;
	return 0;
}

uint64_t bandwidth_promised(const struct bandwidth_roots *roots, uint32_t node)
{
	char path[PATH_BYTES];
	uint64_t mb;

	(void)snprintf(path, sizeof(path),
		       "%s/node/node%" PRIu32
		       "/access0/initiators/read_bandwidth",
		       roots->system, node);
	return read_file(path, &mb) && mb < UINT64_MAX / 1000000 ? mb * 1000000
								 : 0;
}
