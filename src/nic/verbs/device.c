/* SPDX-License-Identifier: Apache-2.0 */
/* Devices before they are opened: the list, names and identities. What sysfs
 * would say about them is answered with "no such file". */
#include <endian.h>
#include <stdlib.h>

#include "verbs_priv.h"

VERBS_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	const struct nic_provider *p = verbs_provider();
	unsigned count = p ? p->count(p->ctx) : 0;
	struct ibv_device **list = calloc((size_t)count + 1, sizeof(*list));
	struct verbs_device *dev;
	unsigned i;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		goto err_nomem;
	for (i = 0; i < count; i++) {
		dev = verbs_device_get(p, i);
		if (!dev)
			goto err_free_list;
		list[i] = &dev->ibv;
	}
	if (num_devices)
		*num_devices = (int)count;
	return list;

err_free_list:
	ibv_free_device_list(list);
err_nomem:
	errno = ENOMEM;
	return NULL;
}

VERBS_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	struct ibv_device **at;

	if (!list)
		return;
	for (at = list; *at; at++)
		verbs_device_put(container_of(*at, struct verbs_device, ibv));
	free(list);
}

VERBS_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VERBS_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(container_of(device, struct verbs_device, ibv)->guid);
}

VERBS_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)container_of(device, struct verbs_device, ibv)->index;
}

VERBS_EXPORT const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

VERBS_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file,
				     char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	return verbs_fail(ENOENT);
}

/* Memory that we touch is touched by the process itself, so copy-on-write does
 * what it always does and fork needs no preparation. */
VERBS_EXPORT int ibv_fork_init(void)
{
	return 0;
}

VERBS_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

VERBS_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

VERBS_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
