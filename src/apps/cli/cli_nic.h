/* SPDX-License-Identifier: Apache-2.0 */
/* Which NIC a program gets: the soft one or the machine's own, and why. */
#ifndef AQ_CLI_NIC_H
#define AQ_CLI_NIC_H

#include "base/base.h"

struct cli_nic {
	const char *asked; /* soft, hw or auto */
	bool soft;
	char why[160];
};

/* `asked` is soft, hw or auto; `sysfs` is /sys/class/infiniband or, in a
 * test, a folder that looks like it. */
void cli_nic_make(const char *asked, const char *sysfs, struct cli_nic *out);

#define CLI_NIC_SYSFS "/sys/class/infiniband"

/* RDMA devices known to the kernel; `first` gets the name of one of them. */
unsigned cli_nic_device_count(const char *sysfs, char first[64]);

#endif
