/* SPDX-License-Identifier: Apache-2.0 */
/* The way to the nodes of a real rack: links, and what the nodes are asked for
 * over HTTP. All of it ends with the backend's first connection. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "client/client.h"
#include "client/link.h"
#include "client/tally.h"
#include "page_call.h"

enum {
	ASK_MS = 300,	 /* that a question about a connection may take */
	QUIET_MS = 2000, /* without questions after one that nobody answered */
};

struct wiring {
	struct aq_rack *rack;
	struct tally *tally; /* the store's own; or NULL */
	uint64_t quiet_ns;   /* no questions until then */
};

/* A region of the backend's own that ends with the connection. */
static int make_region(struct client_link *link, const struct page_wish *wish,
		       struct page_grant *out)
{
	struct client_key key;
	char name[CLIENT_REGION_NAME_MAX];
	uint64_t bytes = wish->index_count * wish->page_bytes;
	/* A key to less than all of a region is one that nobody maps. */
	uint64_t more = wish->is_unmapped ? wish->page_bytes : 0;
	uint32_t salt;
	json_t *reply = NULL;
	int err;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return error_set(-EIO, "the kernel gives no random numbers");
	snprintf(name, sizeof(name), "%.24s-%08x", wish->name, salt);
	err = client_link_call(link, "POST", "/v1/regions",
			       json_pack("{s:s, s:I, s:s}", "name", name,
					 "size", (json_int_t)(bytes + more),
					 "owner", client_link_name(link)),
			       0, &reply);
	json_decref(reply);
	if (!err)
		err = client_link_key(link, name, more ? bytes : 0, &key);
	if (err)
		return err;
	out->addr = key.addr;
	out->rkey = key.rkey;
	return 0;
}

static void close_backend(void *ctx, struct page_grant *g)
{
	const struct wiring *w = ctx;

	if (!g) {
		client_tally_close(w->rack, w->tally);
		free(ctx);
		return;
	}
	/* The first goes last: what the backend has ends with it. */
	for (unsigned i = GRANT_LINKS_MAX; i-- > 0;)
		client_link_close(g->link[i]);
}

/* Pages at the node that end with the first connection. */
static int make_space(struct client_link *link, const struct page_wish *wish)
{
	bool is_sparse = wish->mode == PAGE_SPARSE;
	bool is_pieces = wish->mode == PAGE_DYNAMIC_1M ||
			 wish->mode == PAGE_DYNAMIC_4K || is_sparse;
	uint32_t bytes =
		is_pieces ? page_piece_bytes(wish->mode, wish->page_bytes)
			  : wish->page_bytes;
	uint64_t count =
		(wish->index_count * wish->page_bytes + bytes - 1) / bytes;
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	int err;

	snprintf(path, sizeof(path), "/v1/connections/%s/pages",
		 client_link_name(link));
	err = client_link_call(link, "POST", path,
			       json_pack("{s:i, s:I, s:i, s:i, s:b, s:b}",
					 "version", PAGE_WIRE_VERSION, "count",
					 (json_int_t)count, "bytes", (int)bytes,
					 "depth", (int)wish->depth, "pieces",
					 is_pieces, "sparse", is_sparse),
			       0, &reply);
	json_decref(reply);
	return err;
}

/* A connection that works on them. */
static int join_space(struct aq_rack *rack, uint32_t node,
		      const struct client_link_options *o, const char *role,
		      struct page_grant *g, unsigned at)
{
	struct client_link_options more = *o;
	int err;

	more.connect_more =
		json_pack("{s:s, s:s, s:i, s:i}", "pages", role, "owner",
			  client_link_name(g->link[0]), "without",
			  (int)g->without, "patience_ms", (int)g->patience_ms);
	err = client_link_join(rack, node, &more, &g->link[at]);
	json_decref(more.connect_more);
	return err;
}

static int open_two_sided(struct wiring *w, uint32_t node,
			  const struct page_wish *wish, struct page_grant *g)
{
	struct client_link_options o = {
		.send_depth = PAGE_CALL_SENDS(wish->depth),
		.recv_depth = wish->depth,
		.cq_depth = wish->depth + PAGE_CALL_SENDS(wish->depth),
		.max_sge = 2,
		.accepts_writes = true,
		.has_no_heartbeat = true,
	};
	int err = make_space(g->link[0], wish);

	return err ? err : join_space(w->rack, node, &o, "server", g, 1);
}

static const char *const chain_roles[PAGE_CHAIN_COUNT] = {
	[PAGE_CHAIN_LOAD] = "load",
	[PAGE_CHAIN_MAPPED] = "mapped",
	[PAGE_CHAIN_UNMAPPED] = "unmapped",
	[PAGE_CHAIN_INVALIDATE] = "invalidate",
};

/* All chains of a backend share the completion queue of the first. */
static int open_chain(struct wiring *w, struct page_grant *g, unsigned chain)
{
	struct client_link_options o = {
		.send_depth = PAGE_CALL_SENDS(g->depth),
		.recv_depth = g->depth,
		.cq_depth = PAGE_CHAIN_COUNT *
			    (g->depth + PAGE_CALL_SENDS(g->depth)),
		.max_sge = 2,
		.accepts_writes = true,
		.has_no_heartbeat = true,
		.share_cq = chain ? g->link[1]->cq : NULL,
	};

	return join_space(w->rack, g->node, &o, chain_roles[chain], g,
			  1 + chain);
}

static int open_chains(struct wiring *w, const struct page_wish *wish,
		       struct page_grant *g)
{
	int err = make_space(g->link[0], wish);

	for (unsigned i = 0; i < PAGE_CHAIN_COUNT && !err; i++)
		err = open_chain(w, g, i);
	return err;
}

static int renew(void *ctx, struct page_grant *g, unsigned at)
{
	client_link_close(g->link[at]);
	g->link[at] = NULL;
	return open_chain(ctx, g, at - 1);
}

static bool is_ended(void *ctx, const struct page_grant *g, unsigned at)
{
	struct wiring *w = ctx;
	uint64_t now_ns;
	int known;

	if (!g->link[at])
		return false;
	now_ns = client_clock_now_ns(g->link[at]->clock);
	if (now_ns < w->quiet_ns)
		return false;
	/* Asks: the heartbeat would need a second to find out. But whoever
	 * needs a page of another node waits meanwhile. */
	known = client_link_is_known(w->rack, g->node,
				     client_link_name(g->link[at]), ASK_MS);
	if (known < 0)
		w->quiet_ns = client_clock_now_ns(g->link[at]->clock) +
			      QUIET_MS * 1000000ull;
	return known == 0;
}

static void read_stop(const json_t *reply, struct page_stop *stop)
{
	const char *text = json_string_value(json_object_get(reply, "stopped"));

	stop->is_full = json_is_true(json_object_get(reply, "full"));
	snprintf(stop->text, sizeof(stop->text), "%s", text ? text : "");
}

static int settle(void *ctx, const struct page_grant *g, unsigned at,
		  const uint64_t *index, unsigned count, uint8_t *mapped,
		  struct page_stop *stop)
{
	json_t *list, *reply = NULL, *row;
	struct wiring *w = ctx;
	char path[CLIENT_PATH_MAX];
	size_t i;
	int err = client_link_end(w->rack, g->node,
				  client_link_name(g->link[at]));

	if (err)
		return err;
	list = json_array();
	for (i = 0; i < count; i++)
		(void)json_array_append_new(list,
					    json_integer((json_int_t)index[i]));
	snprintf(path, sizeof(path), "/v1/connections/%s/pages/mapped",
		 client_link_name(g->link[0]));
	err = client_link_call(g->link[0], "POST", path,
			       json_pack("{s:o}", "pages", list), 0, &reply);
	row = json_object_get(reply, "mapped");
	if (!err && json_array_size(row) != count)
		err = error_set(-EPROTO, "the node's answer is too short");
	for (i = 0; i < count && !err; i++)
		mapped[i] = json_is_true(json_array_get(row, i));
	read_stop(reply, stop);
	json_decref(reply);
	return err;
}

/* The first connection, with which all others end. */
static int join_node(struct wiring *w, uint32_t node,
		     const struct page_wish *wish, struct page_grant *out)
{
	struct client_link_options o = {.send_depth = wish->depth,
					.rd_atomic = 64};
	int err;

	*out = (struct page_grant){.node = node,
				   .depth = wish->depth,
				   .without = wish->without,
				   .patience_ms = wish->patience_ms};
	o.connect_more =
		json_pack("{s:i}", "patience_ms", (int)wish->patience_ms);
	err = client_link_join(w->rack, node, &o, &out->link[0]);
	json_decref(o.connect_more);
	if (!err)
		snprintf(out->node_name, sizeof(out->node_name), "%s",
			 client_link_node_name(out->link[0]));
	return err;
}

static int open_mode(struct wiring *w, const struct page_wish *wish,
		     struct page_grant *g)
{
	g->mode = wish->mode;
	if (wish->mode == PAGE_STATIC)
		return make_region(g->link[0], wish, g);
	if (wish->mode == PAGE_CHAIN)
		return open_chains(w, wish, g);
	return open_two_sided(w, g->node, wish, g);
}

/* Chains are for who asks for them: docs/chains.md says why. */
static enum page_mode first_mode(const struct page_wish *wish,
				 const struct page_grant *g)
{
	if (wish->mode != PAGE_AUTO)
		return wish->mode;
	return !wish->is_unmapped && client_link_may_map(g->link[0])
		       ? PAGE_SPARSE
		       : PAGE_STATIC;
}

static int open_backend(void *ctx, uint32_t node, const struct page_wish *wish,
			struct page_grant *out)
{
	struct page_wish now = *wish;
	struct wiring *w = ctx;
	struct page_grant g;
	int err = join_node(w, node, wish, &g);

	if (err)
		return err;
	now.mode = first_mode(wish, &g);
	err = open_mode(w, &now, &g);
	if (err == -EOPNOTSUPP && now.mode != wish->mode) {
		close_backend(ctx, &g);
		now.mode = PAGE_STATIC;
		err = join_node(w, node, wish, &g);
		if (err)
			return err;
		err = open_mode(w, &now, &g);
	}
	if (err) {
		close_backend(ctx, &g);
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

static uint64_t used_bytes(void *ctx, const struct page_grant *g)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	uint64_t used = 0;
	int err;

	snprintf(path, sizeof(path), "/v1/connections/%s/pages",
		 client_link_name(g->link[0]));
	err = client_link_call(g->link[0], "GET", path, NULL, 0, &reply);
	if (!err)
		err = client_json_u64(reply, "used", INT64_MAX, &used);
	json_decref(reply);
	return err ? 0 : used;
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
	struct page_wiring wiring = {.open = open_backend,
				     .close = close_backend,
				     .node_count = node_count,
				     .used_bytes = used_bytes,
				     .renew = renew,
				     .settle = settle,
				     .is_ended = is_ended,
				     .is_lost = is_lost};
	struct page_store_options copy = *o;
	struct wiring *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return error_set(-ENOMEM, "no memory for a page store");
	w->rack = rack;
	wiring.ctx = w;
	if (!copy.deadline_ms)
		copy.deadline_ms =
			u32_max(aq_rack_deadline(rack), copy.patience_ms);
	err = page_store_create(name, &copy, &wiring, out);
	if (err)
		return err;
	if (!o->counts_with)
		w->tally = client_tally_open(
			rack,
			o->counted_as ? (enum tally_kind)o->counted_as
				      : TALLY_PAGES,
			o->counted_name ? o->counted_name : name);
	(*out)->tally = o->counts_with ? o->counts_with->tally : w->tally;
	return 0;
}

/* Pages are spread evenly, so the fullest node decides. */
int page_rack_room(struct aq_rack *rack,
		   const struct page_store_options *options, uint64_t *bytes)
{
	struct client_host host[PAGE_NODES_MAX];
	unsigned share = options->mode == PAGE_STATIC ? 1 : 2;
	uint64_t least = UINT64_MAX;
	int n = client_hosts(rack, host, PAGE_NODES_MAX);

	if (n <= 0)
		return n ? n : error_set(-EHOSTDOWN, "the rack has no nodes");
	for (int i = 0; i < n; i++)
		least = u64_min(least, host[i].free_bytes / share);
	*bytes = least * (unsigned)n / u32_max(options->copies, 1);
	return 0;
}
