/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what daemons give up here, and of what that costs them. */
#include <stdlib.h>

#include "cli_check.h"
#include "confine/confine.h"

enum {
	RECEIVE_BYTES = 4 << 20,
};

void cli_check_confine(struct cli_check_result *out)
{
	int version = confine_landlock_version();

	if (version && confine_has_filter()) {
		cli_check_found(out, CLI_CHECK_OK, "landlock %d, seccomp",
				version);
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN, "%s%s",
			version ? "" : "no landlock",
			confine_has_filter() ? ""
			: version	     ? "no seccomp list"
					     : ", no seccomp list");
	cli_check_fix(out, "boot a kernel with CONFIG_SECURITY_LANDLOCK and "
			   "lsm=landlock,... (Linux 5.13 or newer)");
}

/* Only CAP_NET_ADMIN may exceed it, and daemons have given that up. */
void cli_check_udp_buffers(struct cli_check_result *out)
{
	char text[32];
	long bytes;

	if (cli_check_read("/proc/sys/net/core/rmem_max", text, sizeof(text))) {
		cli_check_found(out, CLI_CHECK_OK, "not known here");
		return;
	}
	bytes = strtol(text, NULL, 10);
	cli_check_found(out,
			bytes < RECEIVE_BYTES ? CLI_CHECK_WARN : CLI_CHECK_OK,
			"net.core.rmem_max is %ld KiB", bytes >> 10);
	if (bytes < RECEIVE_BYTES)
		cli_check_fix(out, "sysctl -w net.core.rmem_max=8388608 "
				   "net.core.wmem_max=8388608");
}
