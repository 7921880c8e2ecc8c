/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's core without a process around it: each request is committed
 * and answered at once, and nodes hear of their orders at once, too. How long
 * that takes between machines is another figure's question (efig_path.c). */
#include "efig_rack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/env.h"
#include "base/rng.h"
#include "controld/controld.h"

#define T8(c)	    c c c c c c c c
#define T64(c)	    T8(T8(c))
#define TOKEN_ADMIN T64("a")
#define TOKEN_NODE  T64("b")
#define RUN	    "0000000000000001"

enum {
	NODES_MAX = 16,
	PLACES = 8192,	 /* of a node */
	SAID_MAX = 256,	 /* in one beat */
	SETTLE_MAX = 64, /* beats in a row */
	SPARE_MAX = 4096,
	WALL_S = 1700000000,
};

struct lent {
	uint64_t generation; /* 0: none */
	struct blk_block block;
	bool is_drained;
};

struct news {
	unsigned count;
	unsigned index[SAID_MAX];
	uint64_t generation[SAID_MAX];
};

struct node {
	char name[16];
	uint64_t epoch;
	uint64_t used, size;
	struct cd_held held; /* its beat that waits for orders */
	char tenants[40];    /* the list that it has */
	struct news said, freed, failed;
	struct lent *lent; /* PLACES */
};

struct efig_rack {
	struct env env;
	struct rng rng;
	uint64_t now_ns, ticked_ns;
	struct cd_core *core;
	unsigned nodes;
	struct node node[NODES_MAX];
	uint64_t requests;
	uint64_t spare_bytes; /* of each */
	unsigned spare_count;
	void *spare[SPARE_MAX];
};

static uint64_t now_ns(struct env *env)
{
	return container_of(env, struct efig_rack, env)->now_ns;
}

static void random_bytes(struct env *env, void *buf, size_t len)
{
	rng_fill(&container_of(env, struct efig_rack, env)->rng, buf, len);
}

static const struct env_ops env_ops = {.now_ns = now_ns,
				       .random = random_bytes};

static uint64_t of(const json_t *row, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(row, name));
}

/* ---- the controller ------------------------------------------------------ */

/* Nothing is ever read back: the core is the only one, and lives on. */
static void commit(struct efig_rack *r)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];

	while (cd_core_batch(r->core, change))
		cd_core_committed(r->core, 0);
}

static unsigned ask_held(struct efig_rack *r, const char *token,
			 enum ctl_method method, const char *path, json_t *body,
			 json_t **answer, struct cd_held *held)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct ctl_reply reply = {0};
	struct ctl_request q = {
		.token = token,
		.method = method,
		.path = path,
		.body = text,
		.body_bytes = text ? strlen(text) : 0,
	};
	unsigned status;

	cd_core_handle(r->core, &q, &reply, held);
	if (held->is_held)
		cd_core_answer(r->core, held, &reply);
	commit(r);
	r->requests++;
	status = reply.status;
	if (answer)
		*answer = reply.body ? json_loadb(reply.body, reply.body_bytes,
						  0, NULL)
				     : NULL;
	ctl_reply_release(&reply);
	json_decref(body);
	free(text);
	return status;
}

static unsigned ask(struct efig_rack *r, const char *token,
		    enum ctl_method method, const char *path, json_t *body,
		    json_t **answer)
{
	struct cd_held held;

	return ask_held(r, token, method, path, body, answer, &held);
}

/* ---- nodes --------------------------------------------------------------- */

static bool note(struct news *n, unsigned index, uint64_t generation)
{
	if (n->count == SAID_MAX)
		return false;
	n->index[n->count] = index;
	n->generation[n->count++] = generation;
	return true;
}

/* Address space for a block. That of a file, of which only the head was
 * written, is used again. */
static void *space_get(struct efig_rack *r, uint64_t bytes)
{
	void *mem;

	if (r->spare_count && r->spare_bytes == bytes)
		return r->spare[--r->spare_count];
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return mem == MAP_FAILED ? NULL : mem;
}

static void space_put(struct efig_rack *r, void *mem, uint64_t bytes,
		      bool is_file)
{
	if (!is_file || r->spare_count == SPARE_MAX ||
	    (r->spare_count && r->spare_bytes != bytes)) {
		(void)munmap(mem, bytes);
		return;
	}
	memset(mem, 0, BLOCK_HEAD_BYTES);
	r->spare_bytes = bytes;
	r->spare[r->spare_count++] = mem;
}

static void end_block(struct efig_rack *r, struct node *n, struct lent *l)
{
	void *mem = l->block.mem;
	uint64_t bytes = l->block.size_bytes;
	bool is_file = l->block.kind == &blk_kind_file;

	n->used -= bytes;
	blk_release(&l->block);
	space_put(r, mem, bytes, is_file);
	*l = (struct lent){0};
}

/* False: it is ordered again. */
static bool make_block(struct efig_rack *r, struct node *n, const json_t *row)
{
	const char *kind = json_string_value(json_object_get(row, "kind"));
	unsigned index = (unsigned)of(row, "index");
	struct blk_options o = {
		.kind = !strcmp(kind, "file")	 ? BLOCK_FILE
			: !strcmp(kind, "queue") ? BLOCK_QUEUE
						 : BLOCK_EKV,
		.size_bytes = of(row, "bytes"),
		.generation = of(row, "generation"),
		.bound = of(row, "bound"),
		.is_first = !of(row, "number"),
	};
	struct lent *l = &n->lent[index % PLACES];
	void *mem;

	if (l->generation == o.generation)
		return true; /* told already */
	if (index >= PLACES || l->generation ||
	    n->used + o.size_bytes > n->size)
		return note(&n->failed, index, o.generation);
	if (n->said.count == SAID_MAX)
		return false;
	mem = space_get(r, o.size_bytes);
	if (!mem)
		return false;
	if (blk_init(&l->block, &o, mem)) {
		space_put(r, mem, o.size_bytes, false);
		return false;
	}
	l->generation = o.generation;
	n->used += o.size_bytes;
	return note(&n->said, index, o.generation);
}

static void free_block(struct efig_rack *r, struct node *n, const json_t *row)
{
	unsigned index = (unsigned)json_integer_value(json_array_get(row, 0));
	uint64_t generation =
		(uint64_t)json_integer_value(json_array_get(row, 1));
	struct lent *l = &n->lent[index % PLACES];

	if (!note(&n->freed, index, generation))
		return;
	if (index < PLACES && l->generation == generation)
		end_block(r, n, l);
}

static json_t *rows_of(struct node *n, struct news *news, const char *what)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < news->count; i++) {
		const struct lent *l = &n->lent[news->index[i] % PLACES];
		json_t *row = json_pack("[i, I]", (int)news->index[i],
					(json_int_t)news->generation[i]);

		if (!strcmp(what, "failed"))
			(void)json_array_append_new(row,
						    json_string("-ENOSPC"));
		if (!strcmp(what, "blocks")) {
			(void)json_array_append_new(row, json_integer(0));
			(void)json_array_append_new(
				row, json_integer(l->is_drained ? 3 : 0));
		}
		/* What was freed since must not be said to be there. */
		if (strcmp(what, "blocks") ||
		    l->generation == news->generation[i])
			(void)json_array_append(rows, row);
		json_decref(row);
	}
	news->count = 0;
	return rows;
}

static bool has_news(const struct node *n)
{
	return n->said.count || n->freed.count || n->failed.count;
}

/* One beat, and its orders. */
static bool beat(struct efig_rack *r, struct node *n)
{
	json_t *answer = NULL, *row;
	json_t *body =
		json_pack("{s:s, s:I, s:I}", "incarnation", RUN, "epoch",
			  (json_int_t)n->epoch, "used", (json_int_t)n->used);
	const json_t *orders;
	const char *list;
	char path[40];
	size_t i;
	unsigned status;

	(void)json_object_set_new(body, "blocks",
				  rows_of(n, &n->said, "blocks"));
	(void)json_object_set_new(body, "freed",
				  rows_of(n, &n->freed, "freed"));
	(void)json_object_set_new(body, "failed",
				  rows_of(n, &n->failed, "failed"));
	(void)snprintf(path, sizeof(path), "/v1/nodes/%s/beat", n->name);
	if (n->tenants[0])
		(void)json_object_set_new(body, "tenants",
					  json_string(n->tenants));
	status = ask_held(r, TOKEN_NODE, CTL_POST, path, body, &answer,
			  &n->held);
	n->held.is_due = false; /* it was said */
	list = json_string_value(json_object_get(answer, "tenants_name"));
	if (list)
		(void)snprintf(n->tenants, sizeof(n->tenants), "%s", list);
	orders = json_object_get(answer, "block_orders");
	json_array_foreach(json_object_get(orders, "make"), i, row)(void)
		make_block(r, n, row);
	json_array_foreach(json_object_get(orders, "free"), i, row)
		free_block(r, n, row);
	json_decref(answer);
	return status == 200;
}

/* A beat that waits is answered as soon as there is an order, and the next one
 * says what became of it. */
static void settle(struct efig_rack *r)
{
	for (unsigned i = 0; i < r->nodes; i++) {
		struct node *n = &r->node[i];

		for (unsigned k = 0; k < SETTLE_MAX; k++) {
			if (!has_news(n) && !cd_core_is_due(r->core, &n->held))
				break;
			(void)beat(r, n);
		}
	}
}

void efig_rack_run(struct efig_rack *r, uint64_t to_ns)
{
	while (r->ticked_ns + CD_TICK_MS * 1000000ull <= to_ns) {
		r->ticked_ns += CD_TICK_MS * 1000000ull;
		r->now_ns = r->ticked_ns;
		cd_core_tick(r->core, WALL_S + r->now_ns / 1000000000);
		commit(r);
		settle(r);
	}
	r->now_ns = to_ns;
}

/* ---- clients ------------------------------------------------------------- */

static void token_of(unsigned tenant, char out[65])
{
	(void)snprintf(out, 65, "%064x", 0x10000 + tenant);
}

unsigned efig_rack_ask(struct efig_rack *r, unsigned tenant,
		       enum ctl_method method, const char *path, json_t *body,
		       json_t **answer)
{
	char token[65];
	unsigned status;

	token_of(tenant, token);
	status = ask(r, token, method, path, body, answer);
	settle(r);
	return status;
}

static bool parse_place(const struct efig_rack *r, const json_t *row,
			struct efig_place *out)
{
	const char *name = json_string_value(json_object_get(row, "node"));

	if (!name || name[0] != 'm')
		return false;
	*out = (struct efig_place){
		.number = of(row, "number"),
		.node = (unsigned)strtoul(name + 1, NULL, 10),
		.index = (unsigned)of(row, "index"),
		.generation = of(row, "generation"),
	};
	return out->node < r->nodes && out->index < PLACES;
}

int efig_rack_grow(struct efig_rack *r, unsigned tenant, const char *path,
		   int64_t after, struct efig_place *out, unsigned room,
		   unsigned *count)
{
	json_t *answer = NULL, *row;
	char full[160];
	unsigned status;
	size_t i;

	*count = 0;
	(void)snprintf(full, sizeof(full), "/v1/blocks%s", path);
	status = efig_rack_ask(r, tenant, CTL_POST, full,
			       json_pack("{s:I}", "after", (json_int_t)after),
			       &answer);
	json_array_foreach(json_object_get(answer, "blocks"), i, row)
	{
		struct efig_place p;

		if (status != 200 || *count == room ||
		    !parse_place(r, row, &p) || (int64_t)p.number <= after)
			continue;
		/* A node may have had no room. */
		if (efig_rack_block(r, &p))
			out[(*count)++] = p;
	}
	json_decref(answer);
	if (*count)
		return 0;
	return status == 404 ? -ENOENT : -ENOSPC;
}

struct blk_block *efig_rack_block(struct efig_rack *r,
				  const struct efig_place *p)
{
	struct lent *l = &r->node[p->node].lent[p->index];

	return l->generation == p->generation ? &l->block : NULL;
}

void efig_rack_drained(struct efig_rack *r, const struct efig_place *p)
{
	struct node *n = &r->node[p->node];
	struct lent *l = &n->lent[p->index];

	if (l->generation != p->generation)
		return;
	l->is_drained = true;
	if (n->said.count == SAID_MAX)
		(void)beat(r, n);
	(void)note(&n->said, p->index, p->generation);
}

uint64_t efig_rack_allocated(const struct efig_rack *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->nodes; i++)
		sum += r->node[i].used;
	return sum;
}

uint64_t efig_rack_requests(const struct efig_rack *r)
{
	return r->requests;
}

/* ---- life ---------------------------------------------------------------- */

static int join(struct efig_rack *r, struct node *n)
{
	json_t *answer = NULL;
	unsigned status =
		ask(r, TOKEN_NODE, CTL_POST, "/v1/nodes",
		    json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", n->name,
			      "kind", "memory", "address", "unix:/m",
			      "incarnation", RUN, "size", (json_int_t)n->size),
		    &answer);

	n->epoch = of(answer, "epoch");
	json_decref(answer);
	return status == 200 && beat(r, n) ? 0 : -EPROTO;
}

static int add_tenant(struct efig_rack *r, unsigned i)
{
	char token[65], name[16];

	token_of(i, token);
	(void)snprintf(name, sizeof(name), "t%u", i);
	return ask(r, TOKEN_ADMIN, CTL_POST, "/v1/tenants",
		   json_pack("{s:s, s:s}", "name", name, "token", token),
		   NULL) == 201
		       ? 0
		       : -EPROTO;
}

static int start(struct efig_rack *r)
{
	const struct cd_config config = {
		.name = "c0",
		.env = &r->env,
		.admin_token = TOKEN_ADMIN,
		.node_token = TOKEN_NODE,
		.default_token = T64("c"),
	};
	int err = cd_core_create(&config, &r->core);

	if (err)
		return err;
	cd_core_clear(r->core);
	err = cd_core_lead(r->core, 1);
	cd_core_keep(r->core, UINT64_MAX);
	cd_core_wall(r->core, WALL_S);
	return err;
}

int efig_rack_open(const struct efig_rack_config *c, struct efig_rack **out)
{
	struct efig_rack *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	ASSERT(c->nodes <= NODES_MAX);
	r->env.ops = &env_ops;
	r->now_ns = r->ticked_ns = 1000000000;
	rng_init(&r->rng, c->seed);
	err = start(r);
	for (unsigned i = 0; !err && i < c->nodes; i++) {
		struct node *n = &r->node[i];

		(void)snprintf(n->name, sizeof(n->name), "m%u", i);
		n->size = c->node_bytes;
		n->lent = calloc(PLACES, sizeof(*n->lent));
		r->nodes++;
		err = n->lent ? join(r, n) : -ENOMEM;
	}
	for (unsigned i = 0; !err && i < c->tenants; i++)
		err = add_tenant(r, i);
	if (!err) {
		settle(r);
		efig_rack_run(r, r->now_ns + 2000000000ull);
		*out = r;
		return 0;
	}
	efig_rack_close(r);
	return err;
}

void efig_rack_close(struct efig_rack *r)
{
	for (unsigned i = 0; i < r->nodes; i++) {
		struct node *n = &r->node[i];

		for (unsigned k = 0; n->lent && k < PLACES; k++)
			if (n->lent[k].generation)
				end_block(r, n, &n->lent[k]);
		free(n->lent);
	}
	while (r->spare_count)
		(void)munmap(r->spare[--r->spare_count], r->spare_bytes);
	if (r->core)
		cd_core_destroy(r->core);
	free(r);
}
