/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the private mount namespace of `aquifer exec`: /sys/class and /dev as
 * they are, and in them the soft NICs. */
#include "cli_facade.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_verbs.h"

enum {
	DEVICE_MAX = 16,
};

/* ---- files -------------------------------------------------------------- */

static int make_dirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t len = strlen(text);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		err = errno ? -errno : -EIO;
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

/* One attribute of a device: `name` below its folder, `text` and a newline. */
static int put(const char *folder, const char *name, const char *fmt, ...)
	PRINTF(3, 4);

static int put(const char *folder, const char *name, const char *fmt, ...)
{
	char path[PATH_MAX], text[256];
	va_list ap;
	int err;
	int n;

	n = snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text) - 1)
		return -ENAMETOOLONG;
	text[n] = '\n';
	text[n + 1] = '\0';
	err = make_dirs(path);
	return err ? err : write_file(path, text);
}

/* ---- folders that look as before ---------------------------------------- */

static int copy_link(int from, const char *name, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlink(target, path) < 0 ? -errno : 0;
}

/* Shows one entry of the covered folder in its old place. */
static int show(int from, const char *folder, const char *name)
{
	char source[64 + NAME_MAX], path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return copy_link(from, name, path);
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(path, 0755) < 0)
			return -errno;
	} else {
		int err = write_file(path, "");

		if (err)
			return err;
	}
	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", from,
		       name);
	if (mount(source, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return 0;
}

/*
 * Covers a folder with an empty one in which everything but the names that
 * begin with `ours` is shown again. What is below is reached through *from.
 */
static int cover(const char *folder, const char *ours, int *from)
{
	struct dirent *entry;
	DIR *dir;
	int err = 0;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	dir = opendir(folder);
	if (!dir) {
		err = -errno;
		close(fd);
		return err;
	}
	if (mount("tmpfs", folder, "tmpfs", MS_NOSUID, "mode=755,size=4m") < 0)
		err = -errno;
	while (!err && (entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (strncmp(entry->d_name, ours, strlen(ours)) == 0)
			continue;
		err = show(fd, folder, entry->d_name);
	}
	(void)closedir(dir); /* only read */
	if (err)
		close(fd);
	else
		*from = fd;
	return err;
}

/* ---- the devices -------------------------------------------------------- */

/* The interface that has the device's address; without one, the loopback. */
static void find_interface(const struct cli_verbs_device *dev,
			   char name[IFNAMSIZ])
{
	struct ifaddrs *list, *a;

	(void)snprintf(name, IFNAMSIZ, "lo");
	if (getifaddrs(&list) < 0)
		return;
	for (a = list; a; a = a->ifa_next) {
		const struct sockaddr_in *in = (const void *)a->ifa_addr;

		if (!in || in->sin_family != AF_INET)
			continue;
		for (unsigned i = 0; i < dev->gid_count; i++)
			if (!memcmp(dev->gids[i].raw + 12, &in->sin_addr, 4))
				(void)snprintf(name, IFNAMSIZ, "%s",
					       a->ifa_name);
	}
	freeifaddrs(list);
}

static int put_gids(const char *port, const struct cli_verbs_device *dev,
		    const char *interface)
{
	int err = 0;

	for (unsigned i = 0; i < dev->gid_count && !err; i++) {
		const uint8_t *g = dev->gids[i].raw;
		char name[64];

		(void)snprintf(name, sizeof(name), "gids/%u", i);
		err = put(port, name,
			  "%02x%02x:%02x%02x:%02x%02x:%02x%02x:"
			  "%02x%02x:%02x%02x:%02x%02x:%02x%02x",
			  g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8],
			  g[9], g[10], g[11], g[12], g[13], g[14], g[15]);
		(void)snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
		if (!err)
			err = put(port, name, "RoCE v2");
		(void)snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
		if (!err)
			err = put(port, name, "%s", interface);
	}
	return err;
}

static int put_port(const char *folder, const struct cli_verbs_device *dev,
		    const char *interface)
{
	/* As the kernel words them. */
	static const char *const attributes[][2] = {
		{"state", "4: ACTIVE"},
		{"phys_state", "5: LinkUp"},
		{"link_layer", "Ethernet"},
		{"rate", "100 Gb/sec (4X EDR)"},
		{"lid", "0x0"},
		{"lid_mask_count", "0"},
		{"sm_lid", "0x0"},
		{"sm_sl", "0"},
		{"pkeys/0", "0xffff"},
	};
	char port[PATH_MAX];
	int err = 0;
	int n = snprintf(port, sizeof(port), "%s/ports/1", folder);

	if (n < 0 || (size_t)n >= sizeof(port))
		return -ENAMETOOLONG;
	for (size_t i = 0; i < ARRAY_LEN(attributes) && !err; i++)
		err = put(port, attributes[i][0], "%s", attributes[i][1]);
	if (!err)
		err = put(port, "cap_mask", "0x%08x", dev->port.port_cap_flags);
	return err ? err : put_gids(port, dev, interface);
}

static int put_guid(const char *folder, const char *name, uint64_t guid)
{
	return put(folder, name, "%04x:%04x:%04x:%04x",
		   (unsigned)(guid >> 48) & 0xffff,
		   (unsigned)(guid >> 32) & 0xffff,
		   (unsigned)(guid >> 16) & 0xffff, (unsigned)guid & 0xffff);
}

/* device/net/<interface>, as below a PCI function. */
static int link_interface(const char *folder, const char *interface)
{
	char path[PATH_MAX], target[64 + IFNAMSIZ];
	int n = snprintf(path, sizeof(path), "%s/device/net/%s", folder,
			 interface);
	int err;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	err = make_dirs(path);
	if (err)
		return err;
	(void)snprintf(target, sizeof(target), "../../../../net/%s", interface);
	return symlink(target, path) < 0 ? -errno : 0;
}

static int put_device(const struct cli_verbs_device *dev, unsigned index)
{
	char interface[IFNAMSIZ], folder[PATH_MAX], verbs[64];
	int err;

	find_interface(dev, interface);
	(void)snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s",
		       dev->name);
	err = put(folder, "node_type", "1: CA");
	if (!err)
		err = put(folder, "node_desc", "Aquifer soft NIC");
	if (!err)
		err = put(folder, "fw_ver", "%s", dev->attr.fw_ver);
	if (!err)
		err = put_guid(folder, "node_guid", dev->guid);
	if (!err)
		err = put_guid(folder, "sys_image_guid", dev->guid);
	if (!err)
		err = put(folder, "device/numa_node", "-1");
	if (!err)
		err = link_interface(folder, interface);
	if (!err)
		err = put_port(folder, dev, interface);
	(void)snprintf(verbs, sizeof(verbs),
		       "/sys/class/infiniband_verbs/uverbs%u", index);
	if (!err)
		err = put(verbs, "ibdev", "%s", dev->name);
	if (!err)
		err = put(verbs, "abi_version", "1");
	return err;
}

/* A character device that takes everything and has nothing to say. */
static int put_node(int dev_fd, const char *name)
{
	char source[64], path[PATH_MAX];
	int err;

	(void)snprintf(path, sizeof(path), "/dev/infiniband/%s", name);
	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d/null", dev_fd);
	err = write_file(path, "");
	if (!err && mount(source, path, NULL, MS_BIND, NULL) < 0)
		err = -errno;
	return err;
}

static int put_nodes(int dev_fd, unsigned count)
{
	int err = mkdir("/dev/infiniband", 0755) < 0 ? -errno : 0;

	for (unsigned i = 0; i < count && !err; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "uverbs%u", i);
		err = put_node(dev_fd, name);
	}
	return err ? err : put_node(dev_fd, "rdma_cm");
}

/* ---- namespaces --------------------------------------------------------- */

/* Without root's rights: a user namespace in which we are still ourselves. */
static int enter_as_user(void)
{
	unsigned uid = getuid(), gid = getgid();
	char map[64];
	int err;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	err = write_file("/proc/self/uid_map", map);
	if (!err)
		err = write_file("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return err ? err : write_file("/proc/self/gid_map", map);
}

static int enter_namespace(void)
{
	int err = 0;

	if (unshare(CLONE_NEWNS) < 0)
		err = errno == EPERM ? enter_as_user() : -errno;
	/* What is mounted later on the machine is seen here, never the other
	 * way round. */
	if (!err && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		err = -errno;
	return err;
}

static int query_all(const char *path, struct cli_verbs_device *devs,
		     unsigned *count, char why[256])
{
	int n = cli_verbs_device_count(path, why);
	int err = 0;

	if (n <= 0)
		return n < 0 ? n : -ENODEV;
	*count = u32_min((uint32_t)n, DEVICE_MAX);
	for (unsigned i = 0; i < *count && !err; i++)
		err = cli_verbs_query(path, i, &devs[i], why);
	return err;
}

/* A capture is of the program, not of us. */
static int query_unseen(const char *path, struct cli_verbs_device *devs,
			unsigned *count, char why[256])
{
	const char *set = getenv("AQUIFER_PCAP");
	char *pcap = set ? strdup(set) : NULL;
	int err;

	if (set && !pcap)
		return -ENOMEM;
	(void)unsetenv("AQUIFER_PCAP"); /* fails for impossible names only */
	err = query_all(path, devs, count, why);
	if (pcap && setenv("AQUIFER_PCAP", pcap, 1) < 0 && !err)
		err = -errno;
	free(pcap);
	return err;
}

static int build(const struct cli_verbs_device *devs, unsigned count,
		 char why[256])
{
	int class_fd = -1, dev_fd = -1;
	int err = cover("/sys/class", "infiniband", &class_fd);

	if (!err)
		err = put("/sys/class/infiniband_verbs", "abi_version", "6");
	for (unsigned i = 0; i < count && !err; i++)
		err = put_device(&devs[i], i);
	if (err) {
		(void)snprintf(why, 256, "cannot make /sys/class: %s",
			       strerror(-err));
		return err;
	}
	err = cover("/dev", "infiniband", &dev_fd);
	if (!err)
		err = put_nodes(dev_fd, count);
	if (err)
		(void)snprintf(why, 256, "cannot make /dev: %s",
			       strerror(-err));
	close(class_fd);
	if (dev_fd >= 0)
		close(dev_fd);
	return err;
}

int cli_facade_enter(const char *path, char why[256])
{
	struct cli_verbs_device *devs = calloc(DEVICE_MAX, sizeof(*devs));
	unsigned count = 0;
	int err;

	if (!devs)
		return -ENOMEM;
	err = query_unseen(path, devs, &count, why);
	if (err)
		goto out;
	err = enter_namespace();
	if (err) {
		(void)snprintf(why, 256, "no mount namespace: %s",
			       strerror(-err));
		goto out;
	}
	err = build(devs, count, why);
out:
	free(devs);
	return err;
}
