/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a datagram socket sends to: a table of fixed size, in sets of a few
 * entries, where a new one takes the place of one that is not in use.
 */
#include <string.h>

#include "rs_dgram_priv.h"

static struct rs_dest *set_of(struct rs_dgram *d, const struct rs_name *name)
{
	uint32_t hash = name->port;

	for (unsigned i = 0; i < sizeof(name->ip); i++)
		hash = hash * 31 + name->ip[i];
	return d->dests[hash % RS_DEST_SETS];
}

struct rs_dest *rs_dest_find(struct rs_dgram *d, const struct rs_name *name)
{
	struct rs_dest *set = set_of(d, name);

	for (unsigned i = 0; i < RS_DEST_WAYS; i++) {
		if (set[i].ah && rs_name_equal(&set[i].name, name))
			return &set[i];
	}
	return NULL;
}

static void drop(struct rs_dest *dest)
{
	(void)ibv_destroy_ah(dest->ah); /* no send uses it */
	memset(dest, 0, sizeof(*dest));
}

void rs_dests_close(struct rs_dgram *d)
{
	for (unsigned i = 0; i < RS_DEST_SETS; i++) {
		for (unsigned j = 0; j < RS_DEST_WAYS; j++) {
			if (d->dests[i][j].ah)
				drop(&d->dests[i][j]);
		}
	}
}

/* A free entry of the set, else one that no send refers to. */
static struct rs_dest *make_room(struct rs_dgram *d, const struct rs_name *name)
{
	struct rs_dest *set = set_of(d, name);

	for (unsigned i = 0; i < RS_DEST_WAYS; i++) {
		if (!set[i].ah)
			return &set[i];
	}
	for (unsigned i = 0; i < RS_DEST_WAYS; i++) {
		struct rs_dest *dest = &set[d->victim++ % RS_DEST_WAYS];

		if (dest->posted)
			continue;
		drop(dest);
		return dest;
	}
	return NULL;
}

/* The way there, by rdma_cm: it knows which addresses are this machine's. */
static int find_way(struct rsock *rs, const struct rs_name *name,
		    struct rs_dest *dest)
{
	struct rs_dgram *d = rs->dgram;
	struct sockaddr_storage sa;
	struct rdma_cm_id *id;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = d->gid_index, .hop_limit = 64},
	};
	int err = 0;

	(void)rs_name_write(name, rs_name_is_ipv4(name) ? AF_INET : AF_INET6,
			    &sa);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return -errno;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&sa, RS_RESOLVE_MS))
		err = errno == ENODEV ? -ENETUNREACH : -errno;
	else if (id->verbs != d->id->verbs)
		err = -ENETUNREACH; /* one device for one socket */
	if (!err)
		err = rs_name_read(rdma_get_local_addr(id),
				   sizeof(struct sockaddr_in6), &dest->own);
	if (!err) {
		attr.grh.dgid = id->route.addr.addr.ibaddr.dgid;
		dest->ah = ibv_create_ah(d->id->pd, &attr);
		if (!dest->ah)
			err = -errno;
	}
	(void)rdma_destroy_id(id);
	return err;
}

/* Who is not bound gets a port now: peers answer to it. */
static int own_port(struct rsock *rs, uint16_t *port)
{
	struct sockaddr_storage sa;
	struct rs_name any = {.port = 0}, own;

	for (int tries = 0; tries < 2; tries++) {
		socklen_t len = sizeof(sa);

		if (getsockname(rs->dgram->udp_fd, (struct sockaddr *)&sa,
				&len))
			return -errno;
		if (!rs_name_read((struct sockaddr *)&sa, len, &own) &&
		    own.port) {
			*port = own.port;
			return 0;
		}
		len = rs_name_write(&any, rs->domain, &sa);
		if (bind(rs->dgram->udp_fd, (struct sockaddr *)&sa, len))
			return -errno;
	}
	return -EADDRNOTAVAIL;
}

int rs_dest_get(struct rsock *rs, const struct rs_name *name,
		struct rs_dest **found)
{
	struct rs_dgram *d = rs->dgram;
	struct rs_dest *dest = rs_dest_find(d, name);
	uint16_t port = 0;
	int err;

	if (dest) {
		*found = dest;
		return 0;
	}
	err = own_port(rs, &port);
	if (!err)
		err = rs_endpoint_open(rs, name);
	if (err)
		return err;
	dest = make_room(d, name);
	if (!dest)
		return -EAGAIN;
	err = find_way(rs, name, dest);
	if (err)
		return err;
	dest->own.port = port;
	dest->name = *name;
	*found = dest;
	return 0;
}
