/* SPDX-License-Identifier: Apache-2.0 */
/* Ports to structures of a rack. */
#include "remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "client/map.h"

int kit_name_check(const char *what, const char *name)
{
	size_t n = strlen(name);

	/* Each of its regions must have a name that a region may have. */
	return n <= KIT_NAME_MAX && piece_region_is_valid(name)
		       ? 0
		       : error_set(-EINVAL,
				   "'%.60s' is no name of %s: 1 to %d letters, "
				   "digits, '_' and '-', the first no '-'",
				   name, what, KIT_NAME_MAX);
}

enum {
	CONNECTS = 8, /* to what moves to another node meanwhile */
};

static int connect_once(struct kit_remote *remote, struct aq_rack *rack,
			const char *region, const char *locks,
			uint32_t send_depth)
{
	struct client_link_options o = {.send_depth = send_depth,
					.rights = CLIENT_LINK_READ};
	struct client_key key = {0}, lock_key = {0}, look_key = {0};
	struct client_link *link;
	int err = client_link_open(rack, region, &o, &link);

	if (err)
		return err;
	if (link->size_bytes <= KIT_SPARE_BYTES)
		err = error_set(-EBADMSG, "region %s is too small", region);
	if (!err)
		err = client_link_key(link, region,
				      link->size_bytes - KIT_SPARE_BYTES, &key);
	if (!err && locks[0])
		err = client_link_key(link, locks, 0, &lock_key);
	if (!err && remote->wants_look)
		err = client_link_key(link, region, 0, &look_key);
	if (err) {
		client_link_close(link);
		return err;
	}
	remote->link = link;
	remote->addr = key.addr;
	remote->rkey = key.rkey;
	remote->size_bytes = key.size_bytes;
	remote->lock_addr = lock_key.addr;
	remote->lock_rkey = lock_key.rkey;
	remote->look_addr = look_key.addr;
	remote->look_rkey = look_key.rkey;
	snprintf(remote->conn, sizeof(remote->conn), "%s",
		 client_link_name(link));
	return 0;
}

int kit_remote_connect(struct kit_remote *remote, struct aq_rack *rack,
		       const char *region, const char *locks,
		       uint32_t send_depth)
{
	int err = -EBUSY;

	for (unsigned i = 0; i < CONNECTS && err == -EBUSY; i++)
		err = connect_once(remote, rack, region, locks, send_depth);
	return err;
}

void kit_remote_disconnect(struct kit_remote *remote)
{
	client_link_close(remote->link);
	remote->link = NULL;
}

int kit_region_make(struct aq_rack *rack, const char *region, uint64_t bytes,
		    const struct aq_region_options *o)
{
	struct aq_region *handle;
	int err = aq_region_create(rack, region, bytes, o, &handle);

	if (!err)
		aq_region_close(handle);
	return err;
}

int kit_locks_make(struct aq_rack *rack, const char *node, const char *locks,
		   const char *part_of, uint64_t bytes, uint32_t flags,
		   bool may_use_host, bool *on_device)
{
	struct aq_region_options o = {.node = node,
				      .part_of = part_of,
				      .flags = flags | AQ_REGION_DEVICE};
	int err = kit_region_make(rack, locks, bytes, &o);

	*on_device = !err;
	if ((err == -ENOSPC || err == -EOPNOTSUPP) && may_use_host) {
		o.flags = flags;
		err = kit_region_make(rack, locks, bytes, &o);
	}
	return err;
}
