/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain mode: every job is a message that starts a chain in the node's NIC.
 * Which chain a store takes is decided here, by a bitmap of what is mapped; the
 * node has no other knowledge of it than the table.
 *
 * When the node runs out of page frames its NIC stops our unmapped-store chain.
 * The rest goes on; the node is asked which of the stores under way it has
 * mapped, and the others fail with -ENOSPC. What else may stop that chain has
 * words and errors of its own.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/log.h"
#include "client/link.h"
#include "client/verbs_api.h"
#include "page_call.h"
#include "wire/page_wire.h"

enum {
	FIRST_LINK = 1, /* in the grant: one per chain from here on */
};

/* Of a call; stores have none. */
static const uint32_t text_bytes[PAGE_CHAIN_COUNT] = {
	[PAGE_CHAIN_LOAD] = sizeof(struct page_chain_load),
	[PAGE_CHAIN_INVALIDATE] = sizeof(struct page_chain_call),
};

/* The same where it has the indices of its turn. */
static const uint32_t turn_bytes[PAGE_CHAIN_COUNT] = {
	[PAGE_CHAIN_LOAD] = sizeof(struct page_chain_turn_load),
	[PAGE_CHAIN_MAPPED] = PAGE_CHAIN_TURN_STORE_BYTES,
	[PAGE_CHAIN_UNMAPPED] = PAGE_CHAIN_TURN_STORE_BYTES,
	[PAGE_CHAIN_INVALIDATE] = sizeof(struct page_chain_turn_call),
};

/* What a slot's job on this backend is about. */
struct errand {
	bool is_under_way;
	bool is_done; /* the node says so, not the chain */
	enum page_chain chain;
	uint32_t tag;
	uint64_t index;
};

struct chain_backend {
	struct page_caller caller[PAGE_CHAIN_COUNT];
	struct errand *errand; /* by slot */
	uint8_t *mapped;       /* one bit per index */
	size_t mapped_bytes;
	uint32_t sent[PAGE_CHAIN_COUNT]; /* calls, since the chain was made */
	bool is_full; /* has been said, and no page was taken since */
};

static bool is_mapped(const struct chain_backend *c, uint64_t index)
{
	return c->mapped[index / 8] >> index % 8 & 1;
}

static void set_mapped(struct chain_backend *c, uint64_t index, bool value)
{
	uint8_t bit = (uint8_t)(1u << index % 8);

	if (value)
		c->mapped[index / 8] |= bit;
	else
		c->mapped[index / 8] &= (uint8_t)~bit;
}

/* ---- life --------------------------------------------------------------- */

static void chain_release(struct page_backend *backend)
{
	struct chain_backend *c = backend->own;

	for (unsigned i = 0; i < PAGE_CHAIN_COUNT; i++)
		if (c->caller[i].link)
			page_caller_release(&c->caller[i]);
	if (c->mapped)
		(void)munmap(c->mapped, c->mapped_bytes);
	free(c->errand);
}

static bool sends_indices(const struct page_backend *backend)
{
	return backend->store->o.chain_without & PAGE_CLIENT_INDICES;
}

static int open_caller(struct page_backend *backend, enum page_chain kind)
{
	struct chain_backend *c = backend->own;

	c->caller[kind].number = kind;
	c->sent[kind] = 0;
	return page_caller_init(
		&c->caller[kind], backend->grant.link[FIRST_LINK + kind],
		sends_indices(backend) ? turn_bytes[kind] : text_bytes[kind],
		backend->store->slot_count);
}

static int chain_start(struct page_backend *backend)
{
	struct chain_backend *c = backend->own;
	const struct page_store *s = backend->store;
	int err = 0;

	c->mapped_bytes = align_up(s->per_node * s->o.copies / 8 + 1, 4096);
	c->mapped = mmap(NULL, c->mapped_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->mapped == MAP_FAILED)
		c->mapped = NULL;
	c->errand = calloc(s->slot_count, sizeof(*c->errand));
	if (!c->mapped || !c->errand)
		return error_set(-ENOMEM, "no memory for a backend");
	for (unsigned i = 0; i < PAGE_CHAIN_COUNT && !err; i++)
		err = open_caller(backend, i);
	return err;
}

/* ---- jobs --------------------------------------------------------------- */

static enum page_chain chain_of(const struct page_backend *backend,
				const struct page_job *job)
{
	const struct chain_backend *c = backend->own;

	if (job->kind == PAGE_STORE &&
	    backend->store->o.chain_without & PAGE_WITHOUT_DECISION)
		return PAGE_CHAIN_UNMAPPED;
	if (job->kind == PAGE_LOAD)
		return PAGE_CHAIN_LOAD;
	if (job->kind == PAGE_INVALIDATE)
		return PAGE_CHAIN_INVALIDATE;
	return is_mapped(c, job->index) ? PAGE_CHAIN_MAPPED
					: PAGE_CHAIN_UNMAPPED;
}

static void write_call(struct page_caller *caller, uint32_t slot,
		       const struct page_job *job)
{
	uint64_t entry = job->index * PAGE_CHAIN_ENTRY_BYTES;
	uint32_t imm = page_wire_imm(job->tag, PAGE_WIRE_OK);

	if (job->kind == PAGE_LOAD)
		*(struct page_chain_load *)page_caller_text(caller, slot) =
			page_chain_load_of(entry, imm, (uintptr_t)job->buf,
					   job->rkey);
	else
		*(struct page_chain_call *)page_caller_text(caller, slot) =
			(struct page_chain_call){.entry = be64_put(entry),
						 .imm = be32_put(imm)};
}

/* The call, and what the chain's requests need at their next turns. */
static void write_turn(struct chain_backend *c, enum page_chain chain,
		       uint32_t slot, const struct page_job *job,
		       struct page_chain_turn turn)
{
	void *text = page_caller_text(&c->caller[chain], slot);

	write_call(&c->caller[chain], slot, job);
	if (chain == PAGE_CHAIN_LOAD) {
		((struct page_chain_turn_load *)text)->turn = turn;
		return;
	}
	*(struct page_chain_turn_call *)text = (struct page_chain_turn_call){
		.call = *(const struct page_chain_call *)text,
		.turn = turn,
		.loads = be32_put(c->sent[PAGE_CHAIN_LOAD]),
		.stores = be32_put(c->sent[PAGE_CHAIN_MAPPED]),
	};
}

static int post_turn(struct page_backend *backend, enum page_chain chain,
		     uint32_t slot, const struct page_job *job)
{
	struct chain_backend *c = backend->own;
	const struct page_store *s = backend->store;
	int err;

	write_turn(c, chain, slot, job,
		   page_chain_turn_of(c->sent[chain],
				      u32_pow2_ceil(s->slot_count)));
	err = page_caller_send(&c->caller[chain], slot, job,
			       job->kind == PAGE_STORE ? s->o.page_bytes : 0);
	c->sent[chain] += !err;
	return err;
}

/* Which entry a store is for, as its chain takes it. */
static uint32_t entry_of(const struct page_backend *backend,
			 enum page_chain chain, uint64_t index)
{
	uint32_t at = (uint32_t)(index * PAGE_CHAIN_ENTRY_BYTES);

	/* The immediate value is sent big-endian. */
	return chain == PAGE_CHAIN_UNMAPPED && backend->store->o.chain_without &
						       PAGE_WITHOUT_ADDRESS
		       ? be32toh(htole32(at))
		       : at;
}

static int chain_post(struct page_backend *backend, const struct page_job *job)
{
	uint32_t slot = job->tag >> JOB_COPY_BITS;
	struct chain_backend *c = backend->own;
	enum page_chain chain = chain_of(backend, job);
	struct page_caller *caller = &c->caller[chain];

	if (job->kind == PAGE_INVALIDATE && !is_mapped(c, job->index))
		return 1;
	c->errand[slot] = (struct errand){.is_under_way = true,
					  .chain = chain,
					  .tag = job->tag,
					  .index = job->index};
	if (sends_indices(backend))
		return post_turn(backend, chain, slot, job);
	if (job->kind == PAGE_STORE)
		return page_caller_store(caller, job,
					 backend->store->o.page_bytes,
					 entry_of(backend, chain, job->index));
	write_call(caller, slot, job);
	return page_caller_send(caller, slot, job, 0);
}

static void end_errand(struct page_backend *backend, struct errand *e, int err)
{
	struct chain_backend *c = backend->own;

	e->is_under_way = false;
	if (!err && e->chain == PAGE_CHAIN_UNMAPPED) {
		set_mapped(c, e->index, true);
		c->is_full = false;
	}
	if (!err && e->chain == PAGE_CHAIN_INVALIDATE)
		set_mapped(c, e->index, false);
	page_job_end(backend->store, e->tag, err);
}

static int chain_poll(struct page_backend *backend)
{
	struct chain_backend *c = backend->own;
	uint32_t imm[PAGE_CALL_BATCH];
	int i, n = page_caller_poll(c->caller, PAGE_CHAIN_COUNT, imm);

	for (i = 0; i < n; i++) {
		uint32_t tag = imm[i] & ((1u << PAGE_WIRE_TAG_BITS) - 1);

		if (!page_job_is_waiting(backend, tag))
			return -EPROTO;
		end_errand(backend, &c->errand[tag >> JOB_COPY_BITS], 0);
	}
	for (i = 0; i < PAGE_CHAIN_COUNT; i++)
		if (c->caller[i].is_broken && i != PAGE_CHAIN_UNMAPPED)
			return -EHOSTDOWN;
	if (n >= 0 && c->caller[PAGE_CHAIN_UNMAPPED].is_broken)
		return backend->ops->check(backend);
	return n < 0 ? n : 0;
}

/* ---- when the node stops the chain that takes page frames ---------------- */

/* The unmapped stores under way: which of them were done? */
static int settle(struct page_backend *backend, struct page_stop *stop)
{
	const struct page_wiring *w = &backend->store->wiring;
	uint32_t count = backend->store->slot_count, n = 0, i;
	struct chain_backend *c = backend->own;
	uint64_t *index = calloc(count, sizeof(*index));
	uint8_t *mapped = calloc(count, 1);
	int err = index && mapped ? 0 : -ENOMEM;

	for (i = 0; i < count && !err; i++)
		if (c->errand[i].is_under_way &&
		    c->errand[i].chain == PAGE_CHAIN_UNMAPPED)
			index[n++] = c->errand[i].index;
	if (!err)
		err = w->settle(w->ctx, &backend->grant,
				FIRST_LINK + PAGE_CHAIN_UNMAPPED, index, n,
				mapped, stop);
	n = 0;
	for (i = 0; i < count && !err; i++) {
		struct errand *e = &c->errand[i];

		/* Of a page that was mapped before, nobody can say. */
		if (e->is_under_way && e->chain == PAGE_CHAIN_UNMAPPED)
			e->is_done = mapped[n++] && !is_mapped(c, e->index);
	}
	free(index);
	free(mapped);
	return err;
}

/* The error of stores that were not done. */
static int stop_error(const struct page_backend *backend,
		      const struct page_stop *stop)
{
	const char *node = backend->grant.node_name,
		   *name = backend->store->name;
	struct chain_backend *c = backend->own;

	if (stop->is_full) {
		if (!c->is_full)
			log_warn("page", "node %s has no page left for %s",
				 node, name);
		c->is_full = true;
		return -ENOSPC;
	}
	log_warn("page", "node %s stopped the stores of %s: %s", node, name,
		 stop->text[0] ? stop->text : "the connection broke");
	return stop->text[0] ? -EREMOTEIO : -ECONNRESET;
}

static void end_settled(struct page_backend *backend, int err)
{
	struct chain_backend *c = backend->own;
	uint32_t i;

	for (i = 0; i < backend->store->slot_count; i++)
		if (c->errand[i].is_under_way &&
		    c->errand[i].chain == PAGE_CHAIN_UNMAPPED)
			end_errand(backend, &c->errand[i],
				   c->errand[i].is_done ? 0 : err);
}

static int chain_check(struct page_backend *backend)
{
	const struct page_wiring *w = &backend->store->wiring;
	const unsigned at = FIRST_LINK + PAGE_CHAIN_UNMAPPED;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct chain_backend *c = backend->own;
	struct page_caller *caller = &c->caller[PAGE_CHAIN_UNMAPPED];
	struct page_stop stop = {0};
	int err;

	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++)
		if (i != at && w->is_ended &&
		    w->is_ended(w->ctx, &backend->grant, i))
			return -EHOSTDOWN;
	if (!caller->is_broken &&
	    !(w->is_ended && w->is_ended(w->ctx, &backend->grant, at)))
		return 0;
	(void)caller->link->verbs->modify_qp(caller->link->qp, &attr,
					     IBV_QP_STATE);
	err = settle(backend, &stop);
	page_caller_release(caller);
	if (!err)
		err = w->renew(w->ctx, &backend->grant, at);
	if (!err)
		err = open_caller(backend, PAGE_CHAIN_UNMAPPED);
	if (!err)
		end_settled(backend, stop_error(backend, &stop));
	else
		log_warn("page", "node %s: no new chain for stores of %s: %s",
			 backend->grant.node_name, backend->store->name,
			 error_last());
	return err;
}

const struct page_backend_ops page_backend_chain = {
	.own_bytes = sizeof(struct chain_backend),
	.start = chain_start,
	.release = chain_release,
	.post = chain_post,
	.poll = chain_poll,
	.check = chain_check,
	.allocated_bytes = page_backend_asked_bytes,
};
