/* SPDX-License-Identifier: Apache-2.0 */
/* Structures, laid out over the pieces of a region. */
#include "wfig_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "wfig_costs.h"

enum {
	NODE = 256,
	PAGE_SHIFT = 12,
	NODES_PER_OBJECT = 32,
	STREAM_SHIFT = 40,
};

static const char *const app_names[] = {"web", "range", "tsv"};

const char *wfig_app_name(enum wfig_app app)
{
	return app_names[app];
}

/* ---- where things are --------------------------------------------------- */

uint32_t wfig_data_node(const struct wfig_data *d, uint64_t offset,
			uint64_t *local)
{
	uint64_t stripe;

	if (!d->shift) {
		*local = offset;
		return 0;
	}
	stripe = offset >> d->shift;
	*local = (stripe / d->cfg.nodes << d->shift) |
		 (offset & ((1ull << d->shift) - 1));
	return (uint32_t)(stripe % d->cfg.nodes);
}

static uint64_t offset_of(const struct wfig_data *d, uint32_t node,
			  uint64_t local)
{
	if (!d->shift)
		return local;
	return ((local >> d->shift) * d->cfg.nodes + node) << d->shift |
	       (local & ((1ull << d->shift) - 1));
}

/* Objects lie behind the nodes of every piece. */
uint32_t wfig_data_object(const struct wfig_data *d, uint64_t value,
			  uint64_t *local)
{
	uint64_t each = d->objects / d->cfg.nodes;

	*local = d->piece_bytes -
		 (1 + value / d->cfg.nodes % each) * wfig_costs.object_bytes;
	return (uint32_t)(value % d->cfg.nodes);
}

static uint64_t object_word(uint64_t value)
{
	return ~value * 0x9e3779b97f4a7c15ull;
}

bool wfig_data_object_is(const uint8_t *bytes, uint64_t value)
{
	uint64_t word = object_word(value);

	return memcmp(bytes, &word, sizeof(word)) == 0;
}

/* Hands out room in the pieces; offset 0 leads nowhere and is left out. */
struct layout {
	struct wfig_data *d;
	uint64_t used[WFIG_NODES_MAX];
	uint64_t in_turn;
	struct rng rand;
};

/* For node `i` of the structure; `share` says which part of it this is, in
 * parts of 2^16. */
static uint64_t give(struct layout *l, uint32_t share)
{
	const struct wfig_data_config *c = &l->d->cfg;
	uint32_t node = 0;
	uint64_t at;

	if (c->place == WFIG_GRANULES) {
		at = l->in_turn += NODE;
		return at;
	}
	if (c->place == WFIG_PARTITIONED)
		node = (uint32_t)((uint64_t)share * c->nodes >> 16);
	else
		node = sim_rand_below(&l->rand, c->nodes);
	at = offset_of(l->d, node, l->used[node] + (node ? 0 : NODE));
	l->used[node] += NODE;
	return at;
}

static int open_pieces(struct wfig_data *d)
{
	const struct wfig_data_config *c = &d->cfg;
	/* Every placing fits, also if random ones are uneven. */
	uint64_t nodes_bytes =
		align_up((uint64_t)c->size * NODE * 5 / 4 / c->nodes, 1 << 20) +
		(1ull << d->shift);

	d->objects = c->app == WFIG_WEB ? u32_max(c->size / NODES_PER_OBJECT /
							  c->nodes * c->nodes,
						  c->nodes)
					: 0;
	d->piece_bytes = align_up(nodes_bytes, wfig_costs.object_bytes) +
			 d->objects / c->nodes * wfig_costs.object_bytes;
	for (uint32_t i = 0; i < c->nodes; i++) {
		d->piece[i] = aligned_alloc(4096, d->piece_bytes);
		if (!d->piece[i])
			return -ENOMEM;
		memset(d->piece[i], 0, d->piece_bytes);
	}
	return 0;
}

static uint8_t *bytes_at(const struct wfig_data *d, uint64_t offset)
{
	uint64_t local;
	uint32_t node = wfig_data_node(d, offset, &local);

	ASSERT(local + NODE <= d->piece_bytes);
	return d->piece[node] + local;
}

/* ---- the hash table ----------------------------------------------------- */

static uint32_t web_chains(const struct wfig_data *d)
{
	return u32_max(d->cfg.size / WFIG_WEB_CHAIN, d->cfg.nodes);
}

/* Keys came in any order, so neighbours of a chain lie anywhere. */
static int shuffle(uint32_t count, struct rng *r, uint32_t **out)
{
	uint32_t *order = malloc(count * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	for (uint32_t i = count; i-- > 1;) {
		uint32_t j = sim_rand_below(r, i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	*out = order;
	return 0;
}

static void link_chains(struct wfig_data *d, const uint64_t *at)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct wfig_chain_node n = {.key = ycsb_key(i),
					    .value = d->value[i]};

		if ((i + 1) % WFIG_WEB_CHAIN)
			n.next = at[i + 1];
		memcpy(bytes_at(d, at[i]), &n, sizeof(n));
		if (i % WFIG_WEB_CHAIN == 0)
			d->start[i / WFIG_WEB_CHAIN] = at[i];
	}
	for (uint64_t v = 0; v < d->objects; v++) {
		uint64_t local, word = object_word(v);
		uint32_t node = wfig_data_object(d, v, &local);

		memcpy(d->piece[node] + local, &word, sizeof(word));
	}
}

static int fill_web(struct wfig_data *d, struct layout *l)
{
	uint32_t chains = web_chains(d), *order = NULL;
	uint64_t *at;
	int err;

	d->count = (uint64_t)chains * WFIG_WEB_CHAIN;
	d->start = calloc(chains, sizeof(*d->start));
	d->value = calloc(d->count, sizeof(*d->value));
	at = calloc(d->count, sizeof(*at));
	err = shuffle((uint32_t)d->count, &l->rand, &order);
	if (!err && (!d->start || !d->value || !at))
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < d->count; i++) {
		uint32_t key = order[i];

		at[key] = give(l, (key / WFIG_WEB_CHAIN << 16) / chains);
		d->value[key] = sim_rand_below(&l->rand, d->objects);
	}
	if (!err)
		link_chains(d, at);
	d->spare = l->used[0] + NODE;
	free(order);
	free(at);
	return err;
}

uint64_t wfig_data_chain(const struct wfig_data *d, uint64_t key)
{
	return d->start[key / WFIG_WEB_CHAIN];
}

/* ---- trees -------------------------------------------------------------- */

/* Records of a store in any order; values of all streams in order of time. */
static uint64_t key_of(enum wfig_app app, uint64_t i)
{
	if (app == WFIG_RANGE)
		return ycsb_key(i);
	return (1 + i % wfig_costs.streams) << STREAM_SHIFT |
	       i / wfig_costs.streams;
}

/* Inserts keys until all nodes are used. */
static int grow_tree(struct wfig_data *d, struct wfig_tree *t)
{
	uint64_t i = 0;
	int err = wfig_tree_create(t, d->cfg.size);

	if (err)
		return err;
	while (wfig_tree_insert(t, key_of(d->cfg.app, i),
				i * 2654435761u % 1000003))
		i++;
	d->count = i;
	return 0;
}

/* Keys in order, and how many of them are in leaves before this node's. */
static int list_keys(struct wfig_data *d, const struct wfig_tree *t,
		     uint64_t *rank)
{
	uint32_t leaf = wfig_tree_first(t);
	uint64_t i = 0;

	d->sorted = calloc(d->count, sizeof(*d->sorted));
	d->sum = calloc(d->count + 1, sizeof(*d->sum));
	if (!d->sorted || !d->sum)
		return -ENOMEM;
	for (;;) {
		const struct wfig_node *n = &t->node[leaf];

		rank[leaf] = i;
		for (uint32_t k = 0; k < n->count; k++, i++) {
			d->sorted[i] = n->entry[k].key;
			d->sum[i + 1] = d->sum[i] + n->entry[k].value;
		}
		if (!n->next)
			break;
		leaf = (uint32_t)n->next - 1;
	}
	ASSERT(i == d->count);
	return 0;
}

/* An inner node's rank is that of its first leaf. */
static uint64_t rank_of(const struct wfig_tree *t, const uint64_t *rank,
			uint32_t number)
{
	while (!t->node[number].is_leaf)
		number = (uint32_t)t->node[number].child[0] - 1;
	return rank[number];
}

static void place_tree(struct wfig_data *d, struct layout *l,
		       const struct wfig_tree *t, const uint64_t *rank,
		       uint64_t *at)
{
	for (uint32_t i = 0; i < t->count; i++)
		at[i] = give(
			l, (uint32_t)((rank_of(t, rank, i) << 16) / d->count));
	for (uint32_t i = 0; i < t->count; i++) {
		struct wfig_node n = t->node[i];

		for (uint32_t k = 0; !n.is_leaf && k <= n.count; k++)
			n.child[k] = at[n.child[k] - 1];
		n.next = n.next ? at[n.next - 1] : 0;
		n.prev = n.prev ? at[n.prev - 1] : 0;
		memcpy(bytes_at(d, at[i]), &n, sizeof(n));
	}
	d->start[0] = at[t->root];
}

static int fill_tree(struct wfig_data *d, struct layout *l)
{
	struct wfig_tree t = {0};
	uint64_t *rank = NULL, *at = NULL;
	int err = grow_tree(d, &t);
	uint32_t leaves = 0;

	if (err)
		return err;
	rank = calloc(t.count, sizeof(*rank));
	at = calloc(t.count, sizeof(*at));
	d->start = calloc(1, sizeof(*d->start));
	err = rank && at && d->start ? list_keys(d, &t, rank) : -ENOMEM;
	if (!err)
		place_tree(d, l, &t, rank, at);
	for (uint32_t i = 0; i < t.count; i++)
		leaves += t.node[i].is_leaf != 0;
	/* As many keys as the leaves have that are visited below the last
	 * inner node, on average; half a leaf is entered at either end. */
	d->span = (d->cfg.visits - t.levels) * d->count / leaves;
	d->span = u64_min(u64_max(d->span, 1), d->count / 2);
	if (d->cfg.app == WFIG_RANGE)
		d->span = u64_min(d->span, WFIG_SCAN_PAIRS);
	wfig_tree_release(&t);
	free(rank);
	free(at);
	return err;
}

/* ---- all of it ---------------------------------------------------------- */

static uint32_t shift_of(const struct wfig_data_config *c)
{
	uint64_t granule = c->granule;
	uint32_t shift = PAGE_SHIFT;

	if (c->nodes == 1)
		return 0;
	if (c->place != WFIG_GRANULES)
		return PAGE_SHIFT;
	if (!granule)
		granule = (uint64_t)c->size * NODE * wfig_costs.granule_ppm /
			  1000000;
	while ((2ull << shift) <= granule)
		shift++;
	return shift;
}

int wfig_data_create(const struct wfig_data_config *cfg, struct wfig_data **out)
{
	struct wfig_data *d = calloc(1, sizeof(*d));
	struct layout l = {.d = d};
	int err;

	if (!d)
		return -ENOMEM;
	d->cfg = *cfg;
	d->shift = shift_of(cfg);
	if (cfg->app == WFIG_RANGE)
		d->cfg.visits = WFIG_RANGE_VISITS;
	sim_rand_init(&l.rand, cfg->seed, 77);
	err = open_pieces(d);
	if (!err)
		err = wfig_programs_open(d);
	if (!err)
		err = cfg->app == WFIG_WEB ? fill_web(d, &l) : fill_tree(d, &l);
	if (!err)
		err = ycsb_keys_init(&d->keys, cfg->dist, d->count, YCSB_THETA);
	if (err) {
		wfig_data_destroy(d);
		return err;
	}
	*out = d;
	return 0;
}

void wfig_data_destroy(struct wfig_data *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < WFIG_NODES_MAX; i++)
		free(d->piece[i]);
	walk_program_close(d->program);
	walk_program_close(d->counted);
	walk_program_close(d->append);
	walk_program_close(d->append_counted);
	free(d->start);
	free(d->value);
	free(d->sorted);
	free(d->sum);
	free(d);
}
