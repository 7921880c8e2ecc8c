/* SPDX-License-Identifier: Apache-2.0 */
/* The way to the nodes of a real rack: links, and what the nodes are asked for
 * over HTTP. All of it ends with the lane's first connection. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client.h"
#include "error.h"
#include "link.h"
#include "page_priv.h"

struct wiring {
	struct aq_rack *rack;
};

/* A region of the lane's own that ends with the connection. */
static int make_region(struct client_link *link, const struct page_wish *wish,
		       struct page_grant *out)
{
	struct client_key key;
	char name[CLIENT_REGION_NAME_MAX];
	uint32_t salt;
	json_t *reply = NULL;
	int err;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return error_set(-EIO, "the kernel gives no random numbers");
	snprintf(name, sizeof(name), "%.24s-%08x", wish->name, salt);
	err = client_link_call(
		link, "POST", "/v1/regions",
		json_pack("{s:s, s:I, s:s}", "name", name, "size",
			  (json_int_t)(wish->index_count * wish->shard_bytes),
			  "owner", client_link_name(link)),
		&reply);
	json_decref(reply);
	if (!err)
		err = client_link_key(link, name, 0, &key);
	if (err)
		return err;
	out->addr = key.addr;
	out->rkey = key.rkey;
	return 0;
}

static void close_lane(void *ctx, struct page_grant *g)
{
	if (!g) {
		free(ctx);
		return;
	}
	/* The first goes last: what the lane has ends with it. */
	for (unsigned i = GRANT_LINKS_MAX; i-- > 0;)
		client_link_close(g->link[i]);
}

static int open_lane(void *ctx, uint32_t node, const struct page_wish *wish,
		     struct page_grant *out)
{
	struct client_link_options o = {.send_depth = wish->depth,
					.rd_atomic = 64};
	struct wiring *w = ctx;
	struct page_grant g = {0};
	int err = client_link_join(w->rack, node, &o, &g.link[0]);

	if (err)
		return err;
	snprintf(g.node_name, sizeof(g.node_name), "%s",
		 client_link_node_name(g.link[0]));
	err = make_region(g.link[0], wish, &g);
	if (err) {
		close_lane(ctx, &g);
		return err;
	}
	*out = g;
	return 0;
}

static uint32_t node_count(void *ctx)
{
	struct wiring *w = ctx;

	return client_link_node_count(w->rack);
}

static bool is_lost(void *ctx, const struct page_grant *g)
{
	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++)
		if (g->link[i] && client_link_is_lost(g->link[i]))
			return true;
	return false;
}

int page_store_open(struct aq_rack *rack, const char *name,
		    const struct page_store_options *o, struct page_store **out)
{
	struct page_wiring wiring = {.open = open_lane,
				     .close = close_lane,
				     .node_count = node_count,
				     .is_lost = is_lost};
	struct page_store_options copy = *o;
	struct wiring *w = calloc(1, sizeof(*w));

	if (!w)
		return error_set(-ENOMEM, "no memory for a page store");
	w->rack = rack;
	wiring.ctx = w;
	if (!copy.deadline_ms)
		copy.deadline_ms = aq_rack_deadline(rack);
	return page_store_create(name, &copy, &wiring, out);
}
