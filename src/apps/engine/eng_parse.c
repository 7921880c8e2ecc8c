/* SPDX-License-Identifier: Apache-2.0 */
/* What applications ask for, from JSON. Everything is checked here or by
 * offload_session_add. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "eng_priv.h"

enum {
	PSN_MAX = 0xffffff,
	ERRNO_MAX = 133,
};

static int parse_key(const char *text, struct eng_far *out)
{
	if (!hex_read(text, out->auth_key, sizeof(out->auth_key)))
		return error_set(-EINVAL, "\"auth\" has %d hex digits",
				 2 * AQDV_AUTH_KEY_BYTES);
	out->has_auth = true;
	return 0;
}

int eng_parse_far(const json_t *tree, struct eng_far *out)
{
	struct ctl_pair pair;
	int err = ctl_field_pair(tree, &pair);

	if (err)
		return err;
	memcpy(out->gid.raw, pair.gid, sizeof(pair.gid));
	out->qpn = pair.qpn;
	out->psn = pair.psn;
	out->mtu = pair.mtu;
	out->rd_atomic = pair.rd_atomic;
	return 0;
}

static int parse_ring(const json_t *ring, struct offload_session_config *c)
{
	uint64_t rkey = 0;
	int err;

	if (!json_is_object(ring))
		return error_set(-EINVAL, "\"ring\" is an object");
	err = ctl_field_u64(ring, "addr", true, 0, INT64_MAX, &c->ring_addr);
	if (!err)
		err = ctl_field_u64(ring, "size", true, 0, INT64_MAX,
				    &c->ring_bytes);
	if (!err)
		err = ctl_field_u64(ring, "rkey", true, 0, UINT32_MAX, &rkey);
	c->ring_rkey = (uint32_t)rkey;
	return err;
}

int eng_parse_open(const json_t *body, struct eng_session *out)
{
	struct offload_session_config *c = &out->config;
	uint64_t nodes = 0, epoch = 0, batch = 0, flush_us = 0;
	const char *proto, *client = "", *auth = "none";
	int err = ctl_field_string(body, "proto", true, &proto);

	if (!err)
		err = ctl_proto_check(proto);
	if (!err)
		err = eng_parse_far(body, &out->application);
	if (!err)
		err = parse_ring(json_object_get(body, "ring"), c);
	if (!err)
		err = ctl_field_u64(body, "nodes", true, 0, OFFLOAD_NODES_MAX,
				    &nodes);
	if (!err)
		err = ctl_field_u64(body, "epoch", true, 1, UINT32_MAX, &epoch);
	if (!err)
		err = ctl_field_u64(body, "batch", false, 0,
				    OFFLOAD_ENTRIES_MAX, &batch);
	if (!err)
		err = ctl_field_u64(body, "flush_us", false, 0, 1000000,
				    &flush_us);
	if (!err)
		err = ctl_field_u64(body, "node_timeout_ms", false, 1, 3600000,
				    &out->within_ms);
	if (!err)
		err = ctl_field_string(body, "client", false, &client);
	if (!err)
		err = ctl_field_string(body, "auth", false, &auth);
	if (err)
		return err;
	out->can_auth = strcmp(auth, "psk") == 0;
	for (unsigned i = 0; i < ENG_CLIENT_NAME_MAX && client[i]; i++)
		out->client[i] =
			(char)(client[i] >= ' ' && client[i] <= '~' ? client[i]
								    : '?');
	out->node_count = c->node_count = (uint32_t)nodes;
	c->epoch = (uint32_t)epoch;
	c->batch = (uint32_t)batch;
	c->flush_ns = 1000 * flush_us;
	return 0;
}

static int parse_err(const json_t *row, int *out)
{
	uint64_t n = 0;
	int err = ctl_field_u64(row, "err", false, 0, ERRNO_MAX, &n);

	*out = -(int)n;
	return err;
}

/* A node's end, with the key that it gave for this connection, if any. */
static int parse_end(const json_t *tree, struct eng_far *out)
{
	const char *key = NULL;
	int err = eng_parse_far(tree, out);

	if (!err)
		err = ctl_field_string(tree, "auth", false, &key);
	return err || !key ? err : parse_key(key, out);
}

/* What a walk's answer brings on this connection, if the node gathers. */
static int parse_gather(const json_t *end, const struct eng_far *far,
			struct offload_node_config *n)
{
	uint64_t bytes = 0;
	int err = ctl_field_u64(end, "gather", false, 0, AQDV_WALK_PAD_MAX,
				&bytes);

	n->gather_bytes = u32_min(
		(uint32_t)bytes, (128u << far->mtu) - AQDV_WALK_OVERHEAD_BYTES);
	return err;
}

static int parse_node(const json_t *row, struct offload_node_config *n,
		      struct eng_far far[2])
{
	const json_t *final = json_object_get(row, "final");
	uint64_t epoch = 0, psn = 0;
	int err = parse_err(row, &n->err);

	if (!err && !n->err) {
		err = parse_end(json_object_get(row, "read"), &far[0]);
		if (!err)
			err = parse_end(json_object_get(row, "write"), &far[1]);
		if (!err)
			err = parse_gather(json_object_get(row, "read"),
					   &far[0], n);
		n->mtu_bytes = 128u << far[1].mtu;
	}
	if (!err && final) {
		err = ctl_field_u64(final, "epoch", true, 1, UINT32_MAX,
				    &epoch);
		if (!err)
			err = ctl_field_u64(final, "psn", true, 0, PSN_MAX,
					    &psn);
		n->final.is_known = true;
		n->final.epoch = (uint32_t)epoch;
		n->final.psn = (uint32_t)psn;
	}
	return err;
}

static int parse_piece(const json_t *row, struct offload_piece_config *p)
{
	uint64_t node = 0, read_rkey = 0, write_rkey = 0;
	int err = ctl_field_u64(row, "node", true, 0, OFFLOAD_NODES_MAX, &node);

	if (!err)
		err = ctl_field_u64(row, "addr", true, 0, INT64_MAX, &p->addr);
	if (!err)
		err = ctl_field_u64(row, "size", true, 0, 1ull << 48,
				    &p->size_bytes);
	if (!err)
		err = ctl_field_u64(row, "read_rkey", true, 0, UINT32_MAX,
				    &read_rkey);
	if (!err)
		err = ctl_field_u64(row, "write_rkey", true, 0, UINT32_MAX,
				    &write_rkey);
	p->node = (uint32_t)node;
	p->read_rkey = (uint32_t)read_rkey;
	p->write_rkey = (uint32_t)write_rkey;
	return err;
}

static int parse_region(const json_t *row, struct offload_region_config *r)
{
	const json_t *pieces = json_object_get(row, "pieces"), *piece;
	uint64_t shift = 0;
	size_t i;
	int err = parse_err(row, &r->err);

	if (!err)
		err = ctl_field_u64(row, "size", true, 0, (1ull << 48) - 1,
				    &r->size_bytes);
	if (!err)
		err = ctl_field_u64(row, "stripe_shift", false, 0, 40, &shift);
	if (!err && (!json_is_array(pieces) || json_array_size(pieces) == 0 ||
		     json_array_size(pieces) > OFFLOAD_NODES_MAX))
		err = error_set(-EINVAL, "a region has 1 to %d pieces",
				OFFLOAD_NODES_MAX);
	if (err)
		return err;
	r->is_read_only = json_is_true(json_object_get(row, "read_only"));
	r->stripe_shift = (uint32_t)shift;
	r->piece_count = (uint32_t)json_array_size(pieces);
	json_array_foreach(pieces, i, piece)
	{
		err = parse_piece(piece, &r->piece[i]);
		if (err)
			return err;
	}
	return 0;
}

int eng_parse_start(const json_t *body, struct eng_session *s,
		    struct eng_far far[OFFLOAD_NODES_MAX][2])
{
	const json_t *nodes = json_object_get(body, "nodes");
	const json_t *regions = json_object_get(body, "regions"), *row;
	struct offload_session_config *c = &s->config;
	size_t i;
	int err;

	if (!json_is_array(nodes) || json_array_size(nodes) != s->node_count)
		return error_set(-EINVAL, "\"nodes\" has %u members",
				 s->node_count);
	if (!json_is_array(regions) ||
	    json_array_size(regions) > OFFLOAD_REGIONS_MAX)
		return error_set(-EINVAL, "\"regions\" has at most %d members",
				 OFFLOAD_REGIONS_MAX);
	json_array_foreach(nodes, i, row)
	{
		err = parse_node(row, &c->node[i], far[i]);
		if (err)
			return err;
	}
	json_array_foreach(regions, i, row)
	{
		err = parse_region(row, &c->region[i]);
		if (err)
			return err;
	}
	c->region_count = (uint32_t)json_array_size(regions);
	return 0;
}
