/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of RDMA devices and the private verbs library. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "cli_check.h"
#include "cli_nic.h"
#include "cli_place.h"
#include "cli_verbs.h"

/* Whether a device of the PCI bus is an adapter that can do RDMA: one of
 * InfiniBand, or a network controller of Mellanox. */
static bool is_adapter(const char *bus, const char *device)
{
	char path[PATH_MAX], class[32] = "", vendor[32] = "";

	(void)snprintf(path, sizeof(path), "%s/%.64s/class", bus, device);
	if (cli_check_read(path, class, sizeof(class)))
		return false;
	(void)snprintf(path, sizeof(path), "%s/%.64s/vendor", bus, device);
	if (cli_check_read(path, vendor, sizeof(vendor)))
		return false;
	return strncmp(class, "0x0207", 6) == 0 ||
	       (strncmp(class, "0x02", 4) == 0 &&
		strcmp(vendor, "0x15b3") == 0);
}

bool cli_check_find_adapter(const char *bus, char found[64])
{
	const struct dirent *e;
	DIR *dir = opendir(bus);
	bool is_found = false;

	while (dir && !is_found && (e = readdir(dir)) != NULL) {
		is_found = e->d_name[0] != '.' && is_adapter(bus, e->d_name);
		if (is_found)
			(void)snprintf(found, 64, "%.63s", e->d_name);
	}
	if (dir)
		(void)closedir(dir); /* only read */
	return is_found;
}

void cli_check_rdma(struct cli_check_result *out)
{
	char first[64];
	unsigned count = cli_nic_device_count(CLI_NIC_SYSFS, first);

	if (count) {
		cli_check_found(out, CLI_CHECK_OK, "%u, the first is %s", count,
				first);
	} else if (cli_check_find_adapter("/sys/bus/pci/devices", first)) {
		cli_check_found(out, CLI_CHECK_WARN,
				"the adapter at PCI %s has no driver; the soft "
				"NIC is used",
				first);
		cli_check_fix(out, "apt-get install rdma-core, and load the "
				   "adapter's driver");
	} else {
		cli_check_found(out, CLI_CHECK_OK,
				"no adapter here; the soft NIC is used");
	}
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
