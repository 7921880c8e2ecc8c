/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of RDMA devices and the private verbs library. */
#include <stdio.h>

#include "cli_check.h"
#include "cli_nic.h"
#include "cli_place.h"
#include "cli_verbs.h"

void cli_check_rdma(struct cli_check_result *out)
{
	char first[64];
	unsigned count = cli_nic_device_count(CLI_NIC_SYSFS, first);

	if (count) {
		cli_check_found(out, CLI_CHECK_OK, "%u, the first is %s", count,
				first);
		return;
	}
	cli_check_found(out, CLI_CHECK_MISSING,
			"none in " CLI_NIC_SYSFS "; the soft NIC is used");
	cli_check_fix(out, "nothing to do, unless there is an RDMA adapter: "
			   "then apt-get install rdma-core and load its "
			   "driver");
}

void cli_check_verbs(struct cli_check_result *out)
{
	char dir[PATH_MAX], path[PATH_MAX + 32], why[256];
	int err = cli_place_verbs_libdir(dir);
	int count;

	if (err) {
		cli_check_found(out, CLI_CHECK_MISSING, "not in %.200s", dir);
		cli_check_fix(out, "make, or make install");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", dir,
		       CLI_PLACE_VERBS_SONAME);
	count = cli_verbs_device_count(path, why);
	if (count < 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "cannot be loaded: %s",
				why);
		cli_check_fix(out, "apt-get install libibverbs1, then build "
				   "again");
		return;
	}
	if (count == 0) {
		cli_check_found(out, CLI_CHECK_MISSING,
				"%.240s loads, but has no device", path);
		cli_check_fix(out, "make clean && make");
		return;
	}
	cli_check_found(out, CLI_CHECK_OK, "%.240s, %d device%s", path, count,
			count == 1 ? "" : "s");
}
