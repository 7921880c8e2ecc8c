/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about an NBD device that is, or will be, swapped to. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cli_swap.h"

int swap_device_check_name(const char *device)
{
	static const char start[] = "/dev/nbd";
	size_t digits;

	if (strncmp(device, start, sizeof(start) - 1) == 0) {
		device += sizeof(start) - 1;
		digits = strspn(device, "0123456789");
		if (digits > 0 && digits < 5 && device[digits] == '\0')
			return 0;
	}
	cli_error("--device is an NBD device, /dev/nbd0 for example");
	return -EINVAL;
}

bool swap_device_parse(const char *line, const char *device,
		       struct swap_device *out)
{
	uint64_t size_kib, used_kib;
	char file[64];
	int priority;

	if (sscanf(line, "%63s %*s %" SCNu64 " %" SCNu64 " %d", file, &size_kib,
		   &used_kib, &priority) != 4 ||
	    strcmp(file, device) != 0)
		return false;
	out->is_swap = true;
	out->size_bytes = size_kib << 10;
	out->used_bytes = used_kib << 10;
	out->priority = priority;
	return true;
}

static void look_for_swap(const char *device, struct swap_device *out)
{
	FILE *f = fopen("/proc/swaps", "re");
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0)
		if (swap_device_parse(line, device, out))
			break;
	free(line);
	if (f)
		(void)fclose(f);
}

void swap_device_look(const char *device, struct swap_device *out)
{
	char path[PATH_MAX];
	struct stat st;

	*out = (struct swap_device){0};
	out->is_there = stat(device, &st) == 0 && S_ISBLK(st.st_mode);
	/* The kernel has this file while the device has a server. */
	(void)snprintf(path, sizeof(path), "/sys/block/%s/pid",
		       strrchr(device, '/') + 1);
	out->is_connected = access(path, F_OK) == 0;
	look_for_swap(device, out);
}
