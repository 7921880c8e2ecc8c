/* SPDX-License-Identifier: Apache-2.0 */
/* Orders about blocks, and what is said of them. */
#include "blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/size.h"
#include "control/ctl_metrics.h"
#include "ruled.h"
#include "spill.h"
#include "stock.h"
#include "task.h"

/* ---- life ---------------------------------------------------------------- */

int mem_blocks_start(struct mem_node *node)
{
	struct mem_blocks *b;
	int err;

	if (node->blocks)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_set(-ENOMEM, "no memory for blocks");
	b->of = node;
	pthread_mutex_init(&b->keys_lock, NULL);
	list_init(&b->list);
	b->freed = json_array();
	b->failed = json_array();
	node->blocks = b;
	err = mem_trunks_create(node, &b->trunks);
	if (!err)
		err = block_thread_start(b);
	if (err)
		mem_blocks_stop(node);
	return err;
}

void mem_blocks_stop(struct mem_node *node)
{
	struct mem_blocks *b = node->blocks;

	if (!b)
		return;
	block_thread_stop(b);
	if (b->trunks)
		mem_trunks_destroy(b->trunks);
	if (b->server)
		blk_server_destroy(b->server);
	pthread_mutex_destroy(&b->keys_lock);
	json_decref(b->freed);
	json_decref(b->failed);
	free(b);
	node->blocks = NULL;
}

static struct mem_block *find(const struct mem_blocks *b, uint32_t index)
{
	for (struct list *l = b->list.next; l != &b->list; l = l->next) {
		struct mem_block *m = container_of(l, struct mem_block, node);

		if (m->index == index)
			return m;
	}
	return NULL;
}

void mem_blocks_wake(const struct mem_node *node)
{
	if (node->control.wake)
		node->control.wake(node->control.ctx);
}

struct order {
	const char *tenant;
	uint64_t object;
	uint64_t index;
	uint64_t number;
	struct blk_options options;
	bool joins; /* a chain */
	bool has_load;
	struct mem_load load;
};

/* ---- memory -------------------------------------------------------------- */

/* Copies of a block stay in memory: who has them wants them soon. */
static bool may_spill(const struct mem_node *node, const struct order *o)
{
	return node->spill && !o->options.identity;
}

static int charge(struct mem_node *node, struct mem_tenant *t, uint64_t bytes,
		  const struct order *o, bool *is_spilled)
{
	int err = ruled_admit(node);

	if (!err)
		err = ruled_charge(node, t, bytes);
	if (err)
		return err;
	*is_spilled = bytes > node->pool_bytes - node->used_bytes;
	if (*is_spilled && !may_spill(node, o))
		return error_set(-ENOSPC,
				 "the pool of %s has %s left; a block of %s "
				 "does not fit",
				 node->name,
				 SIZE_TEXT(node->pool_bytes - node->used_bytes),
				 SIZE_TEXT(bytes));
	t->used_bytes += bytes;
	node->used_bytes += *is_spilled ? 0 : bytes;
	return 0;
}

static void uncharge(struct mem_node *node, struct mem_block *m)
{
	m->tenant->used_bytes -= m->charged_bytes;
	node->used_bytes -= m->is_spilled ? 0 : m->charged_bytes;
}

/* Off the list, and given back; lets the lock go. */
static void give_back(struct mem_node *node, struct mem_block *m)
{
	struct mem_tenant *t = m->tenant;

	pthread_mutex_unlock(&node->lock);
	if (m->memory.mr)
		memory_close(&m->memory);
	pthread_mutex_lock(&node->lock);
	if (!mem_stock_give(node->stock, &m->memory)) {
		pthread_mutex_unlock(&node->lock);
		memory_free(node, &m->memory);
		pthread_mutex_lock(&node->lock);
	}
	node->bytes_scrubbed += m->charged_bytes;
	uncharge(node, m);
	t->block_count--;
	list_remove(&m->node);
	node->blocks->count--;
	free(m);
}

/* ---- orders -------------------------------------------------------------- */

static int parse_order(const json_t *row, struct order *o)
{
	const char *kind;
	int err = json_is_object(row) ? 0 : -EINVAL;

	*o = (struct order){0};
	if (!err)
		err = ctl_field_string(row, "tenant", true, &o->tenant);
	if (!err)
		err = ctl_field_string(row, "kind", true, &kind);
	if (!err)
		err = ctl_field_u64(row, "object", true, 0, INT64_MAX,
				    &o->object);
	if (!err)
		err = ctl_field_u64(row, "index", true, 0, BLK_INDEX_MAX - 1,
				    &o->index);
	if (!err)
		err = ctl_field_u64(row, "generation", true, 1, INT64_MAX,
				    &o->options.generation);
	if (!err)
		err = ctl_field_u64(row, "bytes", true, BLOCK_BYTES_MIN,
				    BLOCK_BYTES_MAX, &o->options.size_bytes);
	if (!err)
		err = ctl_field_u64(row, "bound", false, 0, INT64_MAX,
				    &o->options.bound);
	if (!err)
		err = ctl_field_u64(row, "number", true, 0, INT64_MAX,
				    &o->number);
	if (!err)
		err = ctl_field_u64(row, "identity", false, 0, INT64_MAX,
				    &o->options.identity);
	if (!err && json_object_get(row, "load")) {
		o->has_load = true;
		err = mem_load_parse(json_object_get(row, "load"), &o->load);
		o->load.image.block.number = o->number;
	}
	if (err)
		return err;
	o->joins = json_is_true(json_object_get(row, "joins"));
	o->options.kind = strcmp(kind, "queue") == 0  ? BLOCK_QUEUE
			  : strcmp(kind, "file") == 0 ? BLOCK_FILE
			  : strcmp(kind, "ekv") == 0  ? BLOCK_EKV
						      : BLOCK_KINDS;
	o->options.is_first = o->number == 0;
	return o->options.kind == BLOCK_KINDS
		       ? error_set(-EINVAL, "no block is a %.20s", kind)
		       : 0;
}

/* Registers it for the server, or has it filled first. */
static int install(struct mem_node *node, struct mem_block *m,
		   const struct order *o)
{
	struct blk_place p = {
		.options = o->options,
		.index = m->index,
		.object = o->object,
		.pd = m->tenant->pd,
		.mr = m->memory.mr,
		.mem = m->memory.addr,
		.is_chained = o->options.identity != 0,
		.is_spilled = m->is_spilled,
		.joins = o->joins,
	};

	if (!o->has_load)
		return blk_server_add(node->blocks->server, &p);
	m->is_busy = true;
	return mem_task_load(node, m, &p, &o->load);
}

static int make(struct mem_node *node, struct mem_tenant *t,
		const struct order *o)
{
	struct mem_blocks *b = node->blocks;
	uint64_t bytes = o->options.size_bytes;
	uint64_t charged =
		bytes + region_pages(blk_own_bytes(o->options.kind, bytes));
	bool is_spilled = false, is_ready, is_used = false;
	struct memory ready;
	struct mem_block *m;
	int err = charge(node, t, charged, o, &is_spilled);

	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m) {
		t->used_bytes -= charged;
		node->used_bytes -= is_spilled ? 0 : charged;
		return error_set(-ENOMEM, "no memory for a block");
	}
	*m = (struct mem_block){.tenant = t,
				.index = (uint32_t)o->index,
				.generation = o->options.generation,
				.charged_bytes = charged,
				.is_spilled = is_spilled,
				.is_busy = true};
	list_append(&b->list, &m->node);
	b->count++;
	t->block_count++;
	is_ready = !is_spilled &&
		   mem_stock_take(node->stock, bytes, &ready, &is_used);
	mem_stock_yield(node->stock, 0);
	pthread_mutex_unlock(&node->lock);
	if (is_ready && is_used)
		memset(ready.addr, 0, bytes);
	err = is_spilled ? memory_make_spilled(node, t->pd, bytes, &m->memory)
	      : is_ready
		      ? memory_enter_readable(node, t->pd, &ready, &m->memory)
		      : memory_make_readable(node, t->pd, bytes, &m->memory);
	pthread_mutex_lock(&node->lock);
	m->is_busy = false;
	if (!err && t->state == MEM_TENANT_ENDING)
		err = error_set(-ESTALE, "tenant %s was deleted", t->name);
	else if (!err)
		err = install(node, m, o);
	if (!err)
		return 0;
	if (m->memory.mr) {
		give_back(node, m);
		return err;
	}
	uncharge(node, m);
	t->block_count--;
	list_remove(&m->node);
	b->count--;
	free(m);
	return err;
}

static bool has_row(const json_t *rows, uint64_t index, uint64_t generation)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if ((uint64_t)json_integer_value(json_array_get(row, 0)) ==
			    index &&
		    (uint64_t)json_integer_value(json_array_get(row, 1)) ==
			    generation)
			return true;
	}
	return false;
}

static const char *code_of(int err)
{
	switch (err) {
	case -EDQUOT:
		return "-EDQUOT";
	case -ENOENT:
	case -ESTALE:
		return "-ENOENT";
	case -EEXIST:
		return "-EEXIST";
	case -EBADMSG:
		return "-EBADMSG";
	default:
		return "-ENOSPC";
	}
}

/* An allowance that lacks may come with the next answer: the order does. */
static bool may_wait(struct mem_blocks *b, const struct mem_tenant *t,
		     const struct order *o, int err)
{
	return err == -EDQUOT && t && t->is_ruled &&
	       ++b->tries[o->index] < BLOCKS_TRIES;
}

static void say_failed(struct mem_blocks *b, uint64_t index,
		       uint64_t generation, int err)
{
	log_info("memnode", "block %" PRIu64 " is not made: %s", index,
		 error_last());
	(void)json_array_append_new(b->failed,
				    json_pack("[I, I, s, s]", (json_int_t)index,
					      (json_int_t)generation,
					      code_of(err), error_last()));
}

static void take_make(struct mem_node *node, const json_t *row)
{
	struct mem_blocks *b = node->blocks;
	struct mem_tenant *t;
	const struct mem_block *m;
	struct order o;
	int err = parse_order(row, &o);

	if (err) {
		log_warn("memnode",
			 "an order of the controller is left out: "
			 "%s",
			 error_last());
		return;
	}
	m = find(b, (uint32_t)o.index);
	if ((m && m->generation == o.options.generation) ||
	    blk_server_hear(b->server, (uint32_t)o.index, 0) >=
		    o.options.generation)
		return;
	t = tenant_find(node, o.tenant);
	if (m)
		err = error_set(-EEXIST, "block %u is in use", m->index);
	else if (!t || t->state != MEM_TENANT_LIVE)
		err = error_set(-ENOENT, "there is no tenant %.32s", o.tenant);
	else
		err = make(node, t, &o);
	mem_blocks_wake(node);
	if (may_wait(b, t, &o, err))
		return;
	if (t && t->is_ruled)
		t->share.wish_bytes = 0;
	b->tries[o.index] = 0;
	(void)blk_server_hear(b->server, (uint32_t)o.index,
			      o.options.generation);
	if (!err)
		return;
	say_failed(b, o.index, o.options.generation, err);
}

void mem_block_filled(struct mem_node *node, struct mem_block *m,
		      const struct blk_place *p, int err)
{
	uint64_t index = m->index, generation = m->generation;

	lock_assert_mutex_held(&node->lock);
	m->is_busy = false;
	if (!err && m->tenant->state == MEM_TENANT_ENDING)
		err = error_set(-ESTALE, "tenant %s was deleted",
				m->tenant->name);
	if (!err)
		err = blk_server_add(node->blocks->server, p);
	if (!err)
		return;
	say_failed(node->blocks, index, generation, err);
	m->is_busy = true;
	give_back(node, m);
}

static void take_free(struct mem_node *node, const json_t *row)
{
	uint64_t index = (uint64_t)json_integer_value(json_array_get(row, 0));
	uint64_t gen = (uint64_t)json_integer_value(json_array_get(row, 1));
	struct mem_blocks *b = node->blocks;
	struct mem_block *m;

	if (index >= BLK_INDEX_MAX || !gen || gen > INT64_MAX)
		return;
	m = find(b, (uint32_t)index);
	if (m && m->generation == gen) {
		/* What is under way ends soon, and the order comes again. */
		if (m->is_busy || blk_server_remove(b->server, (uint32_t)index,
						    gen) == -EBUSY)
			return;
		m->is_busy = true;
		give_back(node, m);
	}
	(void)blk_server_hear(b->server, (uint32_t)index, gen);
	if (!has_row(b->freed, index, gen))
		(void)json_array_append_new(
			b->freed, json_pack("[I, I]", (json_int_t)index,
					    (json_int_t)gen));
	mem_blocks_wake(node);
}

static void drop_told(json_t *rows, size_t *told)
{
	while (*told) {
		(void)json_array_remove(rows, 0);
		(*told)--;
	}
}

static void take_keys(struct mem_blocks *b, const json_t *list)
{
	struct ctl_ticket_keys keys;

	if (ctl_ticket_keys_parse(list, &keys)) {
		log_warn("memnode", "the controller's keys are left out: %s",
			 error_last());
		return;
	}
	pthread_mutex_lock(&b->keys_lock);
	b->keys = keys;
	pthread_mutex_unlock(&b->keys_lock);
}

void mem_blocks_hear(struct mem_node *node, const json_t *answer)
{
	const json_t *orders = json_object_get(answer, "block_orders"), *row;
	const json_t *keys = json_object_get(answer, "ticket_keys");
	size_t i;

	lock_assert_mutex_held(&node->lock);
	if (node->blocks) {
		drop_told(node->blocks->freed, &node->blocks->freed_told);
		drop_told(node->blocks->failed, &node->blocks->failed_told);
	}
	if (!keys && !orders)
		return;
	if (mem_blocks_start(node)) {
		log_warn("memnode", "%s", error_last());
		return;
	}
	if (keys)
		take_keys(node->blocks, keys);
	json_array_foreach(json_object_get(orders, "free"), i, row)
		take_free(node, row);
	json_array_foreach(json_object_get(orders, "make"), i, row)
		take_make(node, row);
	mem_trunks_hear(node, answer);
}

/* ---- what is said -------------------------------------------------------- */

static json_t *first_rows(const json_t *rows, size_t *told)
{
	json_t *out = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) if (i < BLOCKS_TOLD)(void)
		json_array_append_new(out, json_deep_copy(row));
	*told = json_array_size(out);
	return out;
}

static void say_block(json_t *rows, struct mem_block *m,
		      const struct blk_report *r)
{
	(void)json_array_append_new(
		rows,
		json_pack("[I, I, I, i]", (json_int_t)m->index,
			  (json_int_t)m->generation, (json_int_t)r->used_bytes,
			  (r->is_sealed ? 1 : 0) | (r->is_drained ? 2 : 0)));
	m->is_told = true;
	m->told.used_bytes = r->used_bytes;
	m->told.is_sealed = r->is_sealed;
	m->told.is_drained = r->is_drained;
}

static bool is_same(const struct blk_report *a, const struct blk_report *b)
{
	return a->used_bytes == b->used_bytes && a->is_sealed == b->is_sealed &&
	       a->is_drained == b->is_drained;
}

/* What blocks with copies know of their chains. */
static json_t *say_chained(const struct mem_blocks *b)
{
	json_t *rows = json_array();

	for (struct list *l = b->list.next; l != &b->list; l = l->next) {
		struct mem_block *m = container_of(l, struct mem_block, node);
		struct blk_report r;

		if (m->is_busy || json_array_size(rows) == BLOCKS_TOLD ||
		    blk_server_report(b->server, m->index, m->generation, &r) ||
		    !r.epoch)
			continue;
		m->told.epoch = r.epoch;
		m->told.is_whole = r.is_whole;
		(void)json_array_append_new(
			rows, json_pack("[I, I, I, i]", (json_int_t)m->index,
					(json_int_t)m->generation,
					(json_int_t)r.epoch, r.is_whole));
	}
	return rows;
}

/* News first; what is said goes to the end of the list, so that all have their
 * turn. */
static json_t *say_blocks(struct mem_blocks *b, bool only_news, unsigned room)
{
	json_t *rows = json_array();
	unsigned left = b->count;

	for (struct list *l = b->list.next, *next; left-- && room; l = next) {
		struct mem_block *m = container_of(l, struct mem_block, node);
		struct blk_report r;

		next = l->next;
		if (m->is_busy ||
		    blk_server_report(b->server, m->index, m->generation, &r))
			continue;
		if (only_news ? m->is_told && is_same(&m->told, &r)
			      : !is_same(&m->told, &r))
			continue;
		say_block(rows, m, &r);
		list_remove(&m->node);
		list_append(&b->list, &m->node);
		room--;
	}
	return rows;
}

void mem_blocks_say(struct mem_node *node, json_t *beat)
{
	struct mem_blocks *b = node->blocks;
	json_t *rows, *others;

	lock_assert_mutex_held(&node->lock);
	if (!b)
		return;
	rows = say_blocks(b, true, BLOCKS_TOLD);
	others = say_blocks(b, false,
			    BLOCKS_TOLD - (unsigned)json_array_size(rows));
	(void)json_array_extend(rows, others);
	json_decref(others);
	(void)json_object_set_new(beat, "blocks", rows);
	(void)json_object_set_new(beat, "freed",
				  first_rows(b->freed, &b->freed_told));
	(void)json_object_set_new(beat, "failed",
				  first_rows(b->failed, &b->failed_told));
	(void)json_object_set_new(beat, "chained", say_chained(b));
	mem_trunks_say(node, beat);
}

/* ---- the end ------------------------------------------------------------- */

void mem_blocks_end(struct mem_node *node, const struct mem_tenant *tenant)
{
	struct mem_blocks *b = node->blocks;
	bool again = b != NULL;

	while (again) {
		again = false;
		for (struct list *l = b->list.next; l != &b->list;
		     l = l->next) {
			struct mem_block *m =
				container_of(l, struct mem_block, node);

			if (m->is_busy || (tenant && m->tenant != tenant) ||
			    blk_server_remove(b->server, m->index,
					      m->generation) == -EBUSY)
				continue;
			m->is_busy = true;
			give_back(node, m); /* the list may be another one */
			again = true;
			break;
		}
	}
}

/* A block that is empty for ever is told of at once, since others need its
 * room; and so is one that has become a copy. */
static bool has_news(const struct mem_blocks *b)
{
	for (struct list *l = b->list.next; l != &b->list; l = l->next) {
		const struct mem_block *m =
			container_of(l, struct mem_block, node);
		struct blk_report r;

		if (m->is_busy ||
		    blk_server_report(b->server, m->index, m->generation, &r))
			continue;
		if ((r.is_drained && !m->told.is_drained) ||
		    (r.epoch && (r.epoch != m->told.epoch ||
				 r.is_whole != m->told.is_whole)))
			return true;
	}
	return false;
}

/* ---- back from the spill tier -------------------------------------------- */

/* What may come back: not all of the pool, or clients who come find no room for
 * what they need themselves, and cannot use a block that is on either side. */
static uint64_t room_for_spilled(const struct mem_node *node)
{
	uint64_t left = node->pool_bytes - node->used_bytes;
	uint64_t keep = node->pool_bytes / BLOCKS_BACK_KEEP;

	return left > keep ? left - keep : 0;
}

/* The first that is spilled and fits. What is brought back goes to the end of
 * the list, so that one that is always in use does not hold up the others. */
static struct mem_block *find_spilled(struct mem_node *node)
{
	struct mem_blocks *b = node->blocks;
	uint64_t left = room_for_spilled(node);

	for (struct list *l = b->list.next; l != &b->list; l = l->next) {
		struct mem_block *m = container_of(l, struct mem_block, node);

		if (m->is_spilled && !m->is_busy && m->charged_bytes <= left &&
		    m->memory.size_bytes <= BLOCKS_BACK_MAX &&
		    !spill_is_bad(node->spill, m->memory.addr,
				  m->memory.size_bytes))
			return m;
	}
	return NULL;
}

/* A block that now finds room in the pool. Lets the lock go. Its clients find
 * that its key has ended, and ask where it is. */
static int bring_back(struct mem_node *node, struct mem_block *m)
{
	struct mem_blocks *b = node->blocks;
	struct memory to = {0};
	int err;

	m->is_busy = true;
	node->used_bytes += m->charged_bytes;
	mem_stock_yield(node->stock, 0);
	list_remove(&m->node);
	list_append(&b->list, &m->node);
	pthread_mutex_unlock(&node->lock);
	err = memory_make_readable(node, m->tenant->pd, m->memory.size_bytes,
				   &to);
	if (!err) {
		/* So that the server need not wait for the disk, if it can. */
		(void)madvise(m->memory.addr, m->memory.size_bytes,
			      MADV_POPULATE_READ);
		err = blk_server_bring_back(b->server, m->index, m->generation,
					    to.addr, to.mr);
	}
	if (!err || err == -EIO)
		m->memory.mr = NULL; /* the server has ended it */
	if (!err) {
		memory_free(node, &m->memory);
		m->memory = to;
	} else if (to.mr) {
		memory_free(node, &to);
	}
	pthread_mutex_lock(&node->lock);
	m->is_busy = false;
	m->is_spilled = err != 0;
	if (err)
		node->used_bytes -= m->charged_bytes;
	else
		b->brought_back++;
	return err;
}

/* Some of them, as nobody waits. */
static void bring_some_back(struct mem_node *node)
{
	uint64_t bytes = 0;
	struct mem_block *m;

	while (!node->is_drained && bytes < BLOCKS_BACK_MAX &&
	       (m = find_spilled(node))) {
		bytes += m->memory.size_bytes;
		if (bring_back(node, m))
			break;
	}
}

void mem_blocks_tick(struct mem_node *node)
{
	lock_assert_mutex_held(&node->lock);
	if (!node->blocks)
		return;
	blk_server_tick(node->blocks->server, env_now_ns(node->env));
	if (node->spill)
		bring_some_back(node);
	mem_trunks_tick(node);
	if (has_news(node->blocks))
		mem_blocks_wake(node);
}

void mem_blocks_metrics(struct ctl_metrics *m, const struct mem_node *node)
{
	const struct mem_blocks *b = node->blocks;
	struct blk_counts n = {0};

	if (b)
		blk_server_counts(b->server, &n);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_blocks",
			"Blocks of elastic files and queues.",
			b ? b->count : 0);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_blocks_ready_bytes",
			"Memory that is made for blocks that come.",
			mem_stock_bytes(node->stock));
	if (node->spill) {
		ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_spill_size_bytes",
				"Limit of the spill tier.",
				spill_size(node->spill));
		ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_spill_used_bytes",
				"Blocks in the spill tier.",
				spill_used(node->spill));
		ctl_metrics_one(
			m, CTL_METRIC_COUNTER, "aquifer_spill_errors_total",
			"Failures of its disk.", spill_errors(node->spill));
		ctl_metrics_one(m, CTL_METRIC_COUNTER,
				"aquifer_spill_returned_total",
				"Blocks that came back to memory.",
				b ? b->brought_back : 0);
	}
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_block_messages_total",
			"Messages about blocks.", n.messages);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_block_operations_total",
			"Operations on blocks.", n.ops);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_block_refused_total",
			"Operations without a right, or on a block that has "
			"gone.",
			n.refused);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_block_bad_total",
			"Messages that no correct client sends.", n.bad);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_block_pulled_bytes_total",
			"Bytes read from clients' buffers.", n.pulled_bytes);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_block_pushed_bytes_total",
			"Bytes written to clients' buffers.", n.pushed_bytes);
	ctl_metrics_one(
		m, CTL_METRIC_COUNTER, "aquifer_block_link_messages_total",
		"Messages of other members of chains.", n.link_messages);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_block_link_dropped_total",
			"Messages of chains that could not be sent, or were "
			"for nobody.",
			n.link_dropped);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_block_copied_bytes_total",
			"Bytes sent to new members of chains.", n.copied_bytes);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_block_sessions_ended_total",
			"Sessions that ended.", n.sessions_ended);
}
