/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of the application that its peer may write to by offset. */
#include <stdlib.h>

#include "rs_priv.h"

struct local_map {
	struct list node;
	struct ibv_mr *mr;
	uint64_t offset;
	int index; /* in the peer's table; -1: it is not told */
};

static bool is_taken(const struct rsock *rs, int index)
{
	for (struct list *n = rs->local_maps.next; n != &rs->local_maps;
	     n = n->next) {
		if (container_of(n, struct local_map, node)->index == index)
			return true;
	}
	return false;
}

static int free_index(const struct rsock *rs)
{
	for (int i = 0; i < rs->s.peer.iomap_count; i++) {
		if (!is_taken(rs, i))
			return i;
	}
	return -1;
}

static bool can_tell(struct rsock *rs)
{
	return rs->state != RS_CONNECTED || rs->peer_gone ||
	       rs->s.tx.queue_free > 1;
}

/* The peer's table of mappings lies behind its table of buffers. */
static int tell(struct rsock *rs, const struct local_map *m, bool mapped)
{
	struct rs_iomap map = {.offset = m->offset};
	uint8_t entry[RS_IOMAP_BYTES];
	uint64_t addr = rs->s.peer.slots.addr +
			(uint64_t)rs->s.peer.slots.length * RS_SGE_BYTES +
			(uint64_t)m->index * RS_IOMAP_BYTES;
	int err = rs_wait(rs, can_tell, RS_FOREVER);

	if (err)
		return err;
	if (rs->state != RS_CONNECTED || rs->peer_gone || rs->said_bye)
		return -ENOTCONN;
	if (mapped)
		map.sge = (struct rs_sge){
			.addr = (uintptr_t)m->mr->addr,
			.key = m->mr->rkey,
			.length = (uint32_t)m->mr->length,
		};
	rs_iomap_build(&map, rs->s.peer.big, entry);
	return rs_stream_post_entry(rs, RS_OP_IOMAP, (uint32_t)m->index, entry,
				    sizeof(entry), addr);
}

static void drop(struct local_map *m)
{
	list_remove(&m->node);
	(void)ibv_dereg_mr(m->mr); /* nothing else refers to it */
	free(m);
}

void rs_iomaps_close(struct rsock *rs)
{
	while (!list_is_empty(&rs->local_maps))
		drop(container_of(rs->local_maps.next, struct local_map, node));
}

static off_t map_buffer(struct rsock *rs, void *buf, size_t len, int prot,
			off_t offset)
{
	bool remote = prot & PROT_WRITE;
	struct local_map *m = malloc(sizeof(*m));
	int err = 0;

	if (!m)
		return rs_fail(ENOMEM);
	m->index = remote ? free_index(rs) : -1;
	m->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	if (remote && m->index < 0)
		err = ENOSPC;
	m->mr = err ? NULL
		    : ibv_reg_mr(
			      rs->id->pd, buf, len,
			      IBV_ACCESS_LOCAL_WRITE |
				      (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!m->mr) {
		err = err ? err : errno;
		free(m);
		return rs_fail(err);
	}
	list_append(&rs->local_maps, &m->node);
	err = remote ? tell(rs, m, true) : 0;
	if (err) {
		drop(m);
		return rs_fail(err);
	}
	return (off_t)m->offset;
}

RS_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags,
		       off_t offset)
{
	struct rsock *rs = rs_get(socket);
	off_t ret;

	if (!rs)
		return -1;
	if (rs->dgram)
		ret = rs_fail(EOPNOTSUPP);
	else if (!buf || !len || len > UINT32_MAX ||
		 (prot & ~(PROT_WRITE | PROT_NONE)) || offset < -1)
		ret = rs_fail(EINVAL);
	else if (rs->state != RS_CONNECTED)
		ret = rs_fail(ENOTCONN);
	else
		ret = map_buffer(rs, buf, len, prot, offset);
	rs_leave(rs);
	return ret;
}

static struct local_map *find(struct rsock *rs, const void *buf, size_t len)
{
	for (struct list *n = rs->local_maps.next; n != &rs->local_maps;
	     n = n->next) {
		struct local_map *m = container_of(n, struct local_map, node);

		if (m->mr->addr == buf && m->mr->length == len)
			return m;
	}
	return NULL;
}

RS_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct rsock *rs = rs_get(socket);
	struct local_map *m;
	int err = 0;

	if (!rs)
		return -1;
	m = find(rs, buf, len);
	if (!m) {
		err = EINVAL;
	} else {
		/* From here on the key is refused, whether the peer was told
		 * or is gone. */
		if (m->index >= 0)
			(void)tell(rs, m, false);
		drop(m);
	}
	rs_leave(rs);
	return err ? rs_fail(err) : 0;
}
