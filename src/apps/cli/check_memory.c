/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of memory: limits, page sizes, memfd, userfaultfd. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli_check.h"

#define MEMLOCK_WANTED_BYTES (64ull << 20)

void cli_check_memlock(struct cli_check_result *out)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) != 0) {
		cli_check_found(out, CLI_CHECK_WARN, "unknown: %s",
				strerror(errno));
		return;
	}
	if (lim.rlim_cur == RLIM_INFINITY) {
		cli_check_found(out, CLI_CHECK_OK, "unlimited");
		return;
	}
	cli_check_found(out,
			lim.rlim_cur >= MEMLOCK_WANTED_BYTES ? CLI_CHECK_OK
							     : CLI_CHECK_WARN,
			"%llu KiB", (unsigned long long)lim.rlim_cur >> 10);
	if (out->state != CLI_CHECK_OK)
		cli_check_fix(out, "echo '* - memlock unlimited' > "
				   "/etc/security/limits.d/rdma.conf, "
				   "then log in again");
}

static unsigned long long meminfo(const char *field)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	unsigned long long value = 0;
	size_t len = strlen(field);

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, len) == 0 &&
		    sscanf(line + len, ": %llu", &value) == 1)
			break;
	(void)fclose(f); /* only read */
	return value;
}

void cli_check_hugepages(struct cli_check_result *out)
{
	unsigned long long total = meminfo("HugePages_Total");
	unsigned long long size_kib = meminfo("Hugepagesize");

	cli_check_found(out, total ? CLI_CHECK_OK : CLI_CHECK_WARN,
			"%llu pages of %llu KiB, %llu free", total, size_kib,
			meminfo("HugePages_Free"));
	if (!total)
		cli_check_fix(out, "sysctl -w vm.nr_hugepages=512");
}

/* Whether regions of memory nodes get huge pages. Since Linux 6.1 a node makes
 * them itself, unless that is denied (os/pages.c). */
static bool shared_are_huge(const char *setting)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (strstr(setting, "[deny]"))
		return false;
	if (!strstr(setting, "[never]") || uname(&name) != 0)
		return true;
	return sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 1));
}

static void check_shared_thp(struct cli_check_result *out, const char *enabled)
{
	const char *file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char text[64];

	if (cli_check_read(file, text, sizeof(text)) != 0 ||
	    shared_are_huge(text)) {
		cli_check_found(out, CLI_CHECK_OK, "%s", enabled);
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN,
			"none for regions of memory nodes: %s", text);
	cli_check_fix(out, "echo advise > %s", file);
}

void cli_check_thp(struct cli_check_result *out)
{
	const char *file = "/sys/kernel/mm/transparent_hugepage/enabled";
	char text[64];

	if (cli_check_read(file, text, sizeof(text)) != 0) {
		cli_check_found(out, CLI_CHECK_WARN,
				"the kernel was built without");
		return;
	}
	if (!strstr(text, "[never]")) {
		check_shared_thp(out, text);
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN, "%s", text);
	cli_check_fix(out, "echo madvise > %s", file);
}

void cli_check_memfd(struct cli_check_result *out)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	int fd =
		memfd_create("aquifer-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "memfd_create: %s",
				strerror(errno));
		cli_check_fix(out, "allow memfd_create in the container's "
				   "seccomp profile");
		return;
	}
	if (ftruncate(fd, 4096) != 0 || fcntl(fd, F_ADD_SEALS, seals) != 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "sealing: %s",
				strerror(errno));
		cli_check_fix(out, "use a kernel of 5.1 or later");
	} else {
		cli_check_found(out, CLI_CHECK_OK, "works");
	}
	(void)close(fd); /* never held anything */
}

/* 0 when a userfaultfd of this kind, with these features, is to be had. */
static int uffd_probe(int flags, uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
	int err = fd < 0 || ioctl(fd, UFFDIO_API, &api) ? -errno : 0;

	if (fd >= 0)
		(void)close(fd); /* never used */
	return err;
}

/* `aquifer run` wants to see forks, which no sysctl allows. */
void cli_check_userfaultfd(struct cli_check_result *out)
{
	const char *sysctl = "/proc/sys/vm/unprivileged_userfaultfd";
	int full = uffd_probe(0, 0);
	int forks = uffd_probe(0, UFFD_FEATURE_EVENT_FORK);
	int user = uffd_probe(UFFD_USER_MODE_ONLY, 0);
	bool device = access("/dev/userfaultfd", R_OK | W_OK) == 0;
	char allowed[16];

	if (cli_check_read(sysctl, allowed, sizeof(allowed)) != 0)
		(void)snprintf(allowed, sizeof(allowed), "absent");
	cli_check_found(out,
			forks == 0  ? CLI_CHECK_OK
			: user == 0 ? CLI_CHECK_WARN
				    : CLI_CHECK_MISSING,
			"all faults: %s; forks: %s; user-mode faults: %s; "
			"/dev/userfaultfd: %s; "
			"vm.unprivileged_userfaultfd: %s",
			full ? strerror(-full) : "yes",
			forks ? strerror(-forks) : "yes",
			user ? strerror(-user) : "yes", device ? "yes" : "no",
			allowed);
	if (out->state == CLI_CHECK_WARN)
		cli_check_fix(out, "sudo aquifer run ..., or give it "
				   "CAP_SYS_PTRACE: 'aquifer run' needs it");
	if (out->state == CLI_CHECK_MISSING)
		cli_check_fix(out, "allow userfaultfd in the container's "
				   "seccomp profile, or use a kernel with "
				   "CONFIG_USERFAULTFD");
}
