/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far memory as programs have it, by aq_read and aq_write: a region on one
 * memory node, mapped or through the NICs. The first half of it has cells, the
 * second one blocks.
 */
#include <aquifer/aqdv.h>
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "base/rng.h"
#include "client/link.h"
#include "probe_priv.h"

enum {
	BLOCK = 64 << 10,
	CELL_BYTES = CACHE_LINE,
	HALF = PROBE_FAR_BYTES / 2,
	CELLS = HALF / CELL_BYTES,
	MAP_MS = 200, /* the node answers by then whether it may be mapped */
	CACHES = 2,   /* that many times the largest cache empties it */
	EMPTY_MAX = 1 << 30,
};

/* Mapped memory that was read before is in a cache: a cell on each page, of
 * which 512 KiB came again and again, took 160 ns where memory takes 270. */
STATIC_ASSERT(CELLS >= PROBE_SAMPLES_MAX * (1 + PROBE_POINTS),
	      "no cell is followed twice");

struct far_port {
	struct probe_port base;
	struct aq_rack *rack;
	struct aq_region *region;
	char name[AQ_REGION_NAME_MAX + 1];
	uint64_t at; /* the offset that is read next */
};

/* What a thread moves; the data means nothing. */
static _Thread_local uint8_t buffer[BLOCK];

static int chase(struct probe_port *p, uint32_t count)
{
	struct far_port *f = container_of(p, struct far_port, base);
	uint64_t cell[CELL_BYTES / 8];
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		err = aq_read(f->region, f->at, cell, sizeof(cell));
		/* Others may write to the rack's memory. */
		if (!err && (cell[0] % CELL_BYTES || cell[0] >= HALF))
			err = error_set(-EBADMSG, "the region was changed by "
						  "somebody else");
		if (!err)
			f->at = cell[0];
	}
	return err;
}

static int move(struct probe_port *p, uint64_t block, bool is_write)
{
	struct far_port *f = container_of(p, struct far_port, base);
	uint64_t at = HALF + block * BLOCK;

	return is_write ? aq_write(f->region, at, buffer, BLOCK)
			: aq_read(f->region, at, buffer, BLOCK);
}

/* A circle through all cells, in random order. */
static int write_cells(struct far_port *f)
{
	uint32_t *next = malloc(CELLS * sizeof(*next));
	struct rng rng;
	int err = 0;

	if (!next)
		return error_set(-ENOMEM, "no memory for the probe");
	rng_init(&rng, 1);
	for (uint32_t i = 0; i < CELLS; i++)
		next[i] = i;
	for (uint32_t i = CELLS - 1; i > 0; i--) {
		uint32_t k = (uint32_t)rng_below(&rng, i), other = next[k];

		next[k] = next[i];
		next[i] = other;
	}
	memset(buffer, 0, sizeof(buffer));
	for (uint32_t at = 0; at < HALF && !err; at += BLOCK) {
		for (uint32_t i = 0; i < BLOCK; i += CELL_BYTES) {
			uint64_t to = (uint64_t)next[(at + i) / CELL_BYTES] *
				      CELL_BYTES;

			memcpy(buffer + i, &to, sizeof(to));
		}
		err = aq_write(f->region, at, buffer, BLOCK);
	}
	free(next);
	return err;
}

/* What was just written to mapped memory is in the caches, too. */
static void empty_caches(void)
{
	int cpu = sched_getcpu();
	uint64_t bytes = u64_min(
		CACHES * probe_cache_bytes("/sys", cpu < 0 ? 0 : (uint32_t)cpu),
		EMPTY_MAX);
	uint8_t *memory = malloc(bytes);

	/* Without it a few reads are too quick. */
	if (!memory)
		return;
	for (uint64_t i = 0; i < bytes; i += CACHE_LINE)
		memory[i] = 1;
	/* The compiler must believe that somebody wants it. */
	__asm__ volatile("" : : "r"(memory) : "memory");
	free(memory);
}

/* ---- which way ---------------------------------------------------------- */

/* The first question has the NIC ask the node for the memory; the answer takes
 * a while. */
static bool is_mapped(const struct client_link *link)
{
	uint64_t word, end_ns = clock_mono_ns() + MAP_MS * 1000000ull;
	const struct aqdv_read probe = {.remote_addr = link->addr,
					.to = &word,
					.rkey = link->rkey,
					.len_bytes = sizeof(word)};

	do {
		if (aqdv_read_now(link->qp, &probe, 1) == 1)
			return true;
		relax_briefly();
	} while (clock_mono_ns() < end_ns);
	return false;
}

static int ask_mapped(struct far_port *f, bool *is)
{
	const struct client_link_options o = {.rights = CLIENT_LINK_ALL};
	struct client_link *link;
	int err = client_link_open(f->rack, f->name, &o, &link);

	if (err)
		return err;
	*is = is_mapped(link);
	client_link_close(link);
	return 0;
}

/* ---- life --------------------------------------------------------------- */

static int open_region(struct far_port *f, const char *node, enum probe_way way)
{
	const struct aq_region_options o = {.node = node};
	bool is = false;
	int err = aq_region_create(f->rack, f->name, PROBE_FAR_BYTES, &o,
				   &f->region);

	if (err)
		return err;
	if (way == PROBE_DIRECT) {
		err = ask_mapped(f, &is);
		return err ? err : is ? 0 : -EOPNOTSUPP;
	}
	/* Who may be shut out at once has no mapping. */
	aq_region_close(f->region);
	f->region = NULL;
	return aq_region_open(f->rack, f->name, AQ_REGION_REVOCABLE,
			      &f->region);
}

/* Its words are why it failed, not what deleting says. */
static void give_up(struct far_port *f)
{
	char words[PROBE_WHY_MAX];
	int code = error_last_code();

	(void)snprintf(words, sizeof(words), "%.*s", (int)sizeof(words) - 1,
		       error_last());
	probe_far_close(&f->base);
	if (code)
		(void)error_set(code, "%s", words);
}

int probe_far_open(struct aq_rack *rack, const struct probe_far_node *node,
		   struct probe_tier *tier, struct probe_port **out)
{
	struct far_port *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return error_set(-ENOMEM, "no memory for the probe");
	f->base = (struct probe_port){.chase = chase,
				      .move = move,
				      .chase_count = 1,
				      .block_bytes = BLOCK,
				      .block_count = HALF / BLOCK};
	f->rack = rack;
	tier->arena_bytes = tier->load_bytes = HALF;
	(void)snprintf(f->name, sizeof(f->name), "probe-%d", (int)getpid());
	err = open_region(f, node->name, tier->way);
	if (!err)
		err = write_cells(f);
	if (!err && tier->way == PROBE_DIRECT)
		empty_caches();
	if (err) {
		give_up(f);
		return err;
	}
	*out = &f->base;
	return 0;
}

void probe_far_close(struct probe_port *p)
{
	struct far_port *f = container_of(p, struct far_port, base);

	aq_region_close(f->region);
	/* A node that is gone has taken it along. */
	(void)aq_region_delete(f->rack, f->name);
	free(f);
}
