/* SPDX-License-Identifier: Apache-2.0 */
/* Decides between the soft NIC and the machine's own. */
#include "cli_nic.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

unsigned cli_nic_device_count(const char *sysfs, char first[64])
{
	DIR *dir = opendir(sysfs);
	unsigned count = 0;
	struct dirent *entry;

	first[0] = '\0';
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (count++ == 0)
			(void)snprintf(first, 64, "%.63s", entry->d_name);
	}
	(void)closedir(dir); /* only read */
	return count;
}

void cli_nic_make(const char *asked, const char *sysfs, struct cli_nic *out)
{
	char first[64];
	unsigned count;

	out->asked = asked;
	if (strcmp(asked, "auto") != 0) {
		out->soft = strcmp(asked, "soft") == 0;
		(void)snprintf(out->why, sizeof(out->why), "asked for");
		return;
	}
	count = cli_nic_device_count(sysfs, first);
	out->soft = count == 0;
	if (count == 0)
		(void)snprintf(out->why, sizeof(out->why),
			       "no RDMA device in %s", sysfs);
	else
		(void)snprintf(out->why, sizeof(out->why),
			       "RDMA device %s is present", first);
}
