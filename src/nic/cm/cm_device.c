/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that identifiers are bound to. Each is opened once and stays
 * open: its context is what applications find in id->verbs. */
#include <aquifer/aqdv.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

/* The first is link-local, the last the address that the NIC was given. */
static int read_gid(struct cm_device *d)
{
	int last = d->port.gid_tbl_len - 1;

	if (last < 0)
		return -ENODEV;
	d->gid_index = (uint8_t)last;
	return ibv_query_gid(d->verbs, 1, last, &d->gid) ? -errno : 0;
}

static int device_open(struct ibv_device *ibdev, struct cm_device **out)
{
	struct cm_device *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->verbs = ibv_open_device(ibdev);
	if (!d->verbs) {
		err = -errno;
		goto err_free;
	}
	err = -ibv_query_device(d->verbs, &d->attr);
	if (!err)
		err = -ibv_query_port(d->verbs, 1, &d->port);
	if (!err)
		err = read_gid(d);
	if (err)
		goto err_close;
	d->pd = ibv_alloc_pd(d->verbs);
	if (!d->pd) {
		err = -errno;
		goto err_close;
	}
	*out = d;
	return 0;

err_close:
	(void)ibv_close_device(d->verbs); /* the first error counts */
err_free:
	free(d);
	return err;
}

int cm_devices_open(void)
{
	struct ibv_device **list;
	int count = 0;
	int err = cm_start();

	if (err || cm.device_count)
		return err;
	list = ibv_get_device_list(&count);
	if (!list)
		return -errno;
	for (int i = 0; i < count && i < CM_DEVICE_MAX && !err; i++) {
		err = device_open(list[i], &cm.devices[cm.device_count]);
		if (!err)
			cm.device_count++;
	}
	ibv_free_device_list(list);
	cm_watch_forks();
	if (cm.device_count)
		return 0;
	return err ? err : -ENODEV;
}

struct cm_device *cm_device_by_gid(const uint8_t gid[16])
{
	for (unsigned i = 0; i < cm.device_count; i++)
		if (!memcmp(cm.devices[i]->gid.raw, gid, 16))
			return cm.devices[i];
	return NULL;
}

struct cm_device *cm_device_find(const uint8_t ip[16])
{
	struct cm_device *dev;

	if (cm_devices_open())
		return NULL;
	dev = cm_device_by_gid(ip);
	if (dev)
		return dev;
	/* Processes of one machine reach each other whichever of its addresses
	 * they use. */
	if (lease_ip_is_any(ip) || cm_ip_is_local(ip))
		return cm.devices[0];
	return NULL;
}

uint8_t cm_device_path_mtu(const struct cm_device *dev,
			   const union ibv_gid *dgid)
{
	enum ibv_mtu mtu;

	/* It fails only in the child of a fork, which cannot use it anyway. */
	if (aqdv_query_path_mtu(dev->verbs, dgid, &mtu))
		mtu = dev->port.active_mtu;
	return (uint8_t)mtu;
}

/* ---- the list for applications ------------------------------------------ */

CM_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int err;

	cm_lock();
	err = cm_devices_open();
	if (!err) {
		list = calloc(cm.device_count + 1, sizeof(*list));
		if (!list)
			err = -ENOMEM;
	}
	if (list)
		for (unsigned i = 0; i < cm.device_count; i++)
			list[i] = cm.devices[i]->verbs;
	if (num_devices)
		*num_devices = list ? (int)cm.device_count : 0;
	cm_unlock();
	if (err)
		errno = -err;
	return list;
}

CM_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
