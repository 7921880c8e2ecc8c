/* SPDX-License-Identifier: Apache-2.0 */
/* The table of checks and the helpers that write a result. */
#include "cli_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct cli_check cli_checks[] = {
	{"kernel", true, "the soft NIC needs sealed memfds and futexes",
	 cli_check_kernel},
	{"cpus", false,
	 "two processes that poll want a core each; on one they take turns",
	 cli_check_cpus},
	{"verbs-library", true,
	 "exec runs other programs on the private libibverbs.so.1",
	 cli_check_verbs},
	{"runtime-directory", true,
	 "processes find each other and publish counters there",
	 cli_check_rundir},
	{"memfd-sealing", true,
	 "cables and direct memory are sealed memfds, so that no peer can "
	 "shrink them under us",
	 cli_check_memfd},
	{"rdma-devices", false,
	 "hardware is faster; without it the soft NIC takes over",
	 cli_check_rdma},
	{"roce-port", false, "RoCEv2 between machines arrives on UDP 4791",
	 cli_check_roce_port},
	{"roce-mtu", false, "small packets cost more per byte",
	 cli_check_roce_mtu},
	{"memlock", false, "an RDMA device pins what programs register",
	 cli_check_memlock},
	{"huge-pages", false, "large regions cost fewer page-table walks",
	 cli_check_hugepages},
	{"transparent-huge-pages", false,
	 "random access to large memory is a third faster with them",
	 cli_check_thp},
	{"userfaultfd", false, "far paging catches page faults with it",
	 cli_check_userfaultfd},
	{"realtime", false,
	 "benchmarks shield themselves from other load with SCHED_FIFO",
	 cli_check_realtime},
	{"udp-buffers", false,
	 "packets between machines are lost where a socket has no room",
	 cli_check_udp_buffers},
	{"confinement", false,
	 "a daemon that somebody took over could do whatever its user can",
	 cli_check_confine},
	{"runtime-directory-mode", false,
	 "who can look into it can talk to daemons and read tokens",
	 cli_check_rundir_mode},
	{"secret-files", false, "who has a token or key has the memory",
	 cli_check_secrets},
	{"tls", false, "tokens travel in clear without TLS", cli_check_tls},
	{"certificates", false, "who meets one that has ended does not connect",
	 cli_check_certs},
	{"gateway-password", false, "whoever reaches it has the table",
	 cli_check_password},
	{"units", false, "a daemon needs no privileges of root",
	 cli_check_units},
	{NULL, false, NULL, NULL},
};

void cli_check_found(struct cli_check_result *out, enum cli_check_state state,
		     const char *fmt, ...)
{
	va_list ap;

	out->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(out->found, sizeof(out->found), fmt, ap);
	va_end(ap);
}

void cli_check_fix(struct cli_check_result *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(out->fix, sizeof(out->fix), fmt, ap);
	va_end(ap);
}

int cli_check_read(const char *path, char *buf, size_t len_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, len_bytes - 1);
	err = n < 0 ? -errno : 0;
	(void)close(fd); /* only read */
	if (err)
		return err;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}
