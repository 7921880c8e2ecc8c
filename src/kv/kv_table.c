/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a rack: two regions of one node, and connections to them. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "error.h"
#include "kv_priv.h"

enum {
	NAME_BYTES = AQ_REGION_NAME_MAX + 1,
	/* The region has a page more than the table, so that a key to the
	 * table is a window, which ends with its connection. */
	SPARE_BYTES = 4096,
	SEND_DEPTH = 4 * KV_WR_MAX,
};

struct aq_kv {
	struct aq_rack *rack;
	char name[AQ_KV_NAME_MAX + 1];
	struct kv_geometry g;
	/* Which node; the same for all connections, so no lock is needed. */
	_Atomic uint32_t node;
	bool masked_atomics;
};

static void region_names(const char *name, char table[NAME_BYTES],
			 char locks[NAME_BYTES])
{
	snprintf(table, NAME_BYTES, "kv-%s", name);
	snprintf(locks, NAME_BYTES, "kv-%s-locks", name);
}

static int check_name(const char *name)
{
	size_t n = strlen(name);

	return n >= 1 && n <= AQ_KV_NAME_MAX
		       ? 0
		       : error_set(-EINVAL,
				   "a table's name has 1 to %d letters, "
				   "digits, '-' and '_'",
				   AQ_KV_NAME_MAX);
}

/* ---- connections -------------------------------------------------------- */

static int port_fence(void *ctx, const char *conn)
{
	struct aq_kv *kv = ctx;

	return client_link_end(kv->rack, kv->node, conn);
}

static int port_is_alive(void *ctx, const char *conn)
{
	struct aq_kv *kv = ctx;

	return client_link_is_known(kv->rack, kv->node, conn);
}

static void port_close(void *ctx, struct kv_port *port)
{
	client_link_close(port->link);
	port->link = NULL;
}

static int port_open(struct aq_kv *kv, struct kv_port *port)
{
	struct client_link_options o = {.send_depth = SEND_DEPTH,
					.rights = CLIENT_LINK_READ};
	char table[NAME_BYTES], locks[NAME_BYTES];
	struct client_key key = {0}, lock_key = {0}, look_key = {0};
	struct client_link *link;
	int err;

	region_names(kv->name, table, locks);
	err = client_link_open(kv->rack, table, &o, &link);
	if (err)
		return err;
	if (link->size_bytes <= SPARE_BYTES)
		err = error_set(-EBADMSG, "region %s is no table", table);
	if (!err)
		err = client_link_key(link, table,
				      link->size_bytes - SPARE_BYTES, &key);
	if (!err)
		err = client_link_key(link, locks, 0, &lock_key);
	if (!err && port->wants_look)
		err = client_link_key(link, table, 0, &look_key);
	if (err) {
		client_link_close(link);
		return err;
	}
	kv->node = link->node;
	port->link = link;
	port->addr = key.addr;
	port->rkey = key.rkey;
	port->size_bytes = key.size_bytes;
	port->lock_addr = lock_key.addr;
	port->lock_rkey = lock_key.rkey;
	port->look_addr = look_key.addr;
	port->look_rkey = look_key.rkey;
	snprintf(port->conn, sizeof(port->conn), "%s", client_link_name(link));
	return 0;
}

static int port_renew(void *ctx, struct kv_port *port)
{
	if (port->link)
		port_close(ctx, port);
	return port_open(ctx, port);
}

static struct kv_port port_of(struct aq_kv *kv)
{
	return (struct kv_port){.fence = port_fence,
				.is_alive = port_is_alive,
				.renew = port_renew,
				.close = port_close,
				.ctx = kv};
}

/* ---- tables ------------------------------------------------------------- */

static int new_handle(struct aq_rack *rack, const char *name,
		      struct aq_kv **out)
{
	struct aq_kv *kv = calloc(1, sizeof(*kv));
	int err = check_name(name);

	if (!kv)
		return error_set(-ENOMEM, "no memory for a table");
	if (err) {
		free(kv);
		return err;
	}
	kv->rack = rack;
	snprintf(kv->name, sizeof(kv->name), "%s", name);
	*out = kv;
	return 0;
}

/* On the node that has the rows. */
static int make_locks(struct aq_kv *kv, const struct aq_kv_options *o,
		      const char *table, const char *locks)
{
	struct client_link_options lo = {.rights = CLIENT_LINK_READ};
	struct aq_region_options ro = {.flags = AQ_REGION_DEVICE};
	struct aq_region *region;
	struct client_link *link;
	char node[64];
	int err = client_link_open(kv->rack, table, &lo, &link);

	if (err)
		return err;
	snprintf(node, sizeof(node), "%s", client_link_node_name(link));
	kv->masked_atomics = link->has_masked_atomics;
	client_link_close(link);
	if (!kv->masked_atomics)
		kv->g.flags |= KV_WORD_LOCKS;
	kv->g.flags |= KV_DEVICE_LOCKS;
	err = kv_geometry_derive(&kv->g);
	if (err)
		return err;
	ro.node = node;
	err = aq_region_create(kv->rack, locks, kv->g.lock_bytes, &ro, &region);
	if ((err == -ENOSPC || err == -EOPNOTSUPP) &&
	    o->flags & AQ_KV_HOST_LOCKS) {
		kv->g.flags &= ~(uint32_t)KV_DEVICE_LOCKS;
		ro.flags = 0;
		err = aq_region_create(kv->rack, locks, kv->g.lock_bytes, &ro,
				       &region);
	}
	if (!err)
		aq_region_close(region);
	return err;
}

static int make_table(struct aq_kv *kv, const struct aq_kv_options *o)
{
	struct aq_region_options ro = {.node = o->node};
	char table[NAME_BYTES], locks[NAME_BYTES];
	struct kv_port port = port_of(kv);
	struct aq_region *region;
	int err;

	region_names(kv->name, table, locks);
	err = aq_region_create(kv->rack, table, kv->g.size_bytes + SPARE_BYTES,
			       &ro, &region);
	if (err)
		return err;
	aq_region_close(region);
	err = make_locks(kv, o, table, locks);
	if (!err)
		err = port_open(kv, &port);
	if (!err) {
		err = kv_format(&port, &kv->g);
		port_close(kv, &port);
	}
	if (err) {
		char words[200];

		snprintf(words, sizeof(words), "%s", aq_last_error());
		/* What was made goes; the first reason is the one to tell. */
		(void)aq_region_delete(kv->rack, locks);
		(void)aq_region_delete(kv->rack, table);
		return error_set(err, "%s", words);
	}
	return 0;
}

int aq_kv_create(struct aq_rack *rack, const char *name,
		 const struct aq_kv_options *options, struct aq_kv **out)
{
	struct aq_kv_options o = *options;
	struct aq_kv *kv;
	int err = new_handle(rack, name, &kv);

	if (err)
		return err;
	if (!o.seed && getrandom(&o.seed, sizeof(o.seed), 0) != sizeof(o.seed))
		err = error_set(-EIO, "the kernel gives no random numbers");
	if (!err)
		err = kv_geometry_make(&o, &kv->g);
	if (!err)
		err = make_table(kv, &o);
	if (err)
		aq_kv_close(kv);
	else
		*out = kv;
	return err;
}

int aq_kv_open(struct aq_rack *rack, const char *name, struct aq_kv **out)
{
	struct kv_port port;
	struct aq_kv *kv;
	int err = new_handle(rack, name, &kv);

	if (err)
		return err;
	port = port_of(kv);
	err = port_open(kv, &port);
	if (!err) {
		kv->masked_atomics = port.link->has_masked_atomics;
		err = kv_probe(&port, port.size_bytes, &kv->g);
		port_close(kv, &port);
	}
	if (err == -ENOENT)
		err = error_set(err, "there is no table %s", name);
	if (err)
		aq_kv_close(kv);
	else
		*out = kv;
	return err;
}

void aq_kv_close(struct aq_kv *kv)
{
	free(kv);
}

int aq_kv_drop(struct aq_rack *rack, const char *name)
{
	char table[NAME_BYTES], locks[NAME_BYTES];
	int err = check_name(name), one;

	if (err)
		return err;
	region_names(name, table, locks);
	err = aq_region_delete(rack, table);
	one = aq_region_delete(rack, locks);
	if (err == -ENOENT)
		return error_set(err, "there is no table %s", name);
	return err ? err : one == -ENOENT ? 0 : one;
}

void aq_kv_get_info(const struct aq_kv *kv, struct aq_kv_info *info)
{
	const struct kv_geometry *g = &kv->g;

	*info = (struct aq_kv_info){
		.rows = g->rows,
		.capacity = g->rows * g->entries,
		.locks = g->lock_count,
		.extent_bytes = g->chunk_count * g->chunk_bytes,
		.size_bytes = g->size_bytes + g->lock_bytes,
		.entries_per_row = g->entries,
		.entry_bytes = g->entry_bytes,
		.row_bytes = g->row_bytes,
		.rows_per_lock = g->rows_per_lock,
		.clients = g->client_count,
		.chunk_bytes = g->chunk_bytes,
		.hash = g->hash,
		.locality_milli = g->locality_milli,
		.failure_ms = g->failure_ms,
		.inline_bytes = g->entry_bytes - KV_E_HEAD,
		.masked_atomics = !(g->flags & KV_WORD_LOCKS),
		.locks_on_device = g->flags & KV_DEVICE_LOCKS,
	};
}

int aq_kv_client_open(struct aq_kv *kv,
		      const struct aq_kv_client_options *options,
		      struct aq_kv_client **out)
{
	struct kv_client_config config = {0};
	struct kv_port port = port_of(kv);
	int err;

	if (options)
		config.options = *options;
	if (!config.options.deadline_ms)
		config.options.deadline_ms = aq_rack_deadline(kv->rack);
	port.wants_look = config.options.flags & AQ_KV_DIRECT_READS;
	err = port_open(kv, &port);
	if (err)
		return err;
	err = kv_client_create(&port, &kv->g, &config, out);
	if (err)
		port_close(kv, &port);
	return err;
}

void aq_kv_client_close(struct aq_kv_client *c)
{
	kv_client_destroy(c);
}
