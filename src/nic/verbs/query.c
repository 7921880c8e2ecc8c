/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says about itself: attributes, port, GIDs, partition keys and
 * clock. The NIC knows most of it; here it gets the form that verbs wants. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

enum {
	/* Programs choose code paths by these two. perftest uses inline data
	 * and the wr_* interface only on parts that it knows; this is the part
	 * number of a NIC that has what we have. The vendor is nobody's: a
	 * locally administered OUI. */
	VENDOR_ID = 0x024151,
	VENDOR_PART_ID = 4119,
	GID_TYPE_SYSFS_ROCE_V2 = 1,
};

/* A number from the environment, for programs that need another code path. */
static uint32_t setting(const char *name, uint32_t otherwise)
{
	const char *text = secure_getenv(name);
	unsigned long v;
	char *end;

	if (!text || !*text)
		return otherwise;
	v = strtoul(text, &end, 0);
	return *end || v > UINT32_MAX ? otherwise : (uint32_t)v;
}

VERBS_EXPORT int ibv_query_device(struct ibv_context *context,
				  struct ibv_device_attr *attr)
{
	struct nic_host *host = verbs_host(context);

	if (!host)
		return EIO;
	memset(attr, 0, sizeof(*attr));
	lock_take(&host->lock);
	nic_query_device(host->nic, attr);
	lock_drop(&host->lock);
	if (!attr->fw_ver[0])
		snprintf(attr->fw_ver, sizeof(attr->fw_ver), "0.1.0");
	attr->node_guid = ibv_get_device_guid(context->device);
	attr->sys_image_guid = attr->node_guid;
	attr->vendor_id = setting("AQUIFER_VENDOR_ID", VENDOR_ID);
	attr->vendor_part_id =
		setting("AQUIFER_VENDOR_PART_ID", VENDOR_PART_ID);
	attr->phys_port_cnt = VERBS_PORT;
	attr->max_pkeys = 1;
	return 0;
}

int verbs_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_bytes)
{
	struct ibv_device_attr_ex full = {0};
	struct nic_host *host = verbs_host(context);
	int rc;

	if (input && input->comp_mask)
		return EINVAL;
	if (attr_bytes < sizeof(full.orig_attr))
		return EINVAL;
	rc = ibv_query_device(context, &full.orig_attr);
	if (rc)
		return rc;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = VERBS_CORE_CLOCK_KHZ;
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	lock_take(&host->lock);
	full.max_dm_size = nic_dm_size_max(host->nic);
	lock_drop(&host->lock);
	full.phys_port_cnt_ex = VERBS_PORT;
	/* Callers may have been compiled with a shorter or a longer one. */
	memset(attr, 0, attr_bytes);
	memcpy(attr, &full, u64_min(attr_bytes, sizeof(full)));
	return 0;
}

int verbs_query_port(struct ibv_context *context, uint8_t port_num,
		     struct ibv_port_attr *attr, size_t attr_bytes)
{
	struct ibv_port_attr full = {0};
	struct nic_host *host = verbs_host(context);

	if (!host)
		return EIO;
	if (port_num != VERBS_PORT)
		return EINVAL;
	lock_take(&host->lock);
	nic_query_port(host->nic, &full);
	full.gid_tbl_len = (int)nic_get_config(host->nic)->gid_count;
	lock_drop(&host->lock);
	full.link_layer = IBV_LINK_LAYER_ETHERNET;
	memset(attr, 0, attr_bytes);
	memcpy(attr, &full, u64_min(attr_bytes, sizeof(full)));
	return 0;
}

/* The symbol behind the macro: for programs whose structure ends earlier. */
#undef ibv_query_port
VERBS_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
				struct _compat_ibv_port_attr *attr)
{
	return verbs_query_port(
		context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int gid_read(struct ibv_context *context, uint32_t port_num,
		    uint32_t index, struct ibv_gid_entry *entry)
{
	struct nic_host *host = verbs_host(context);
	const struct nic_config *cfg;

	if (!host)
		return EIO;
	cfg = nic_get_config(host->nic);
	if (port_num != VERBS_PORT)
		return EINVAL;
	if (index >= cfg->gid_count)
		return ENODATA;
	*entry = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = port_num,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
	};
	memcpy(entry->gid.raw, cfg->gids[index].ip, sizeof(entry->gid.raw));
	return 0;
}

VERBS_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
			       int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int rc = index < 0
			 ? EINVAL
			 : gid_read(context, port_num, (uint32_t)index, &entry);

	if (rc)
		return verbs_fail(rc);
	*gid = entry.gid;
	return 0;
}

VERBS_EXPORT int _ibv_query_gid_ex(struct ibv_context *context,
				   uint32_t port_num, uint32_t gid_index,
				   struct ibv_gid_entry *out, uint32_t flags,
				   size_t entry_size)
{
	struct ibv_gid_entry entry;
	int rc;

	if (flags)
		return EINVAL;
	rc = gid_read(context, port_num, gid_index, &entry);
	if (rc)
		return rc;
	memset(out, 0, entry_size);
	memcpy(out, &entry, u64_min(entry_size, sizeof(entry)));
	return 0;
}

VERBS_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
					  struct ibv_gid_entry *entries,
					  size_t max_entries, uint32_t flags,
					  size_t entry_size)
{
	struct nic_host *host = verbs_host(context);
	unsigned count;
	unsigned i;

	if (!host)
		return -EIO;
	count = nic_get_config(host->nic)->gid_count;
	if (flags || !entry_size || max_entries < count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		uint8_t *out = (uint8_t *)entries + i * entry_size;
		int rc = _ibv_query_gid_ex(context, VERBS_PORT, i,
					   (struct ibv_gid_entry *)out, 0,
					   entry_size);

		if (rc)
			return -rc;
	}
	return count;
}

VERBS_EXPORT int ibv_query_gid_type(struct ibv_context *context,
				    uint8_t port_num, unsigned index, int *type)
{
	struct ibv_gid_entry entry;
	int rc = gid_read(context, port_num, index, &entry);

	if (rc)
		return verbs_fail(rc);
	*type = GID_TYPE_SYSFS_ROCE_V2;
	return 0;
}

/* RoCE has one partition: the default one, with full membership. */
VERBS_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
				int index, __be16 *pkey)
{
	if (port_num != VERBS_PORT || index != 0)
		return verbs_fail(EINVAL);
	*pkey = htobe16(0xffff);
	return 0;
}

VERBS_EXPORT int ibv_get_pkey_index(struct ibv_context *context,
				    uint8_t port_num, __be16 pkey)
{
	if (port_num != VERBS_PORT || pkey != htobe16(0xffff))
		return verbs_fail(EINVAL);
	return 0;
}

int verbs_query_rt_values(struct ibv_context *context,
			  struct ibv_values_ex *values)
{
	struct nic_host *host = verbs_host(context);
	uint32_t mask = values->comp_mask;

	if (!host)
		return EIO;
	values->comp_mask = 0;
	if (mask & IBV_VALUES_MASK_RAW_CLOCK) {
		/* Raw means ticks, all of them in tv_nsec, as on hardware. */
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)env_now_ns(host->env);
		values->comp_mask |= IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}
