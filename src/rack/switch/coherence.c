/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory as a program of the switch: its life, and its tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coh.h"

static const char *const names[] = {
#define NAME(name) #name,
	COH_COUNTERS(NAME)
#undef NAME
};

static void coh_release(void *state)
{
	struct coh *c = state;

	for (unsigned i = 0; c->nodes && i < COHERENCE_NODES; i++)
		coh_node_stop(&c->nodes[i]);
	for (unsigned i = 0; c->machines && i < c->opt.machines; i++)
		coh_machine_gone(&c->machines[i]);
	if (c->has_begun)
		timer_cancel(tor_timers(c->tor), &c->timer);
	translate_release(&c->translate);
	rights_release(&c->rights);
	free(c->dir.entries);
	free(c->dir.buckets);
	free(c->dir.slots);
	free(c->machines);
	free(c->nodes);
	free(c->offers);
	free(c->pairs);
	free(c->goes_on);
}

static int coh_init(void *state, struct tor_instance *self, const char *options)
{
	struct coh *c = state;
	int err = coh_parse(options, &c->opt);

	if (err)
		return err;
	c->self = self;
	c->tor = tor_instance_tor(self);
	c->c = tor_instance_counters(self);
	c->dir.entry_count = c->opt.entries;
	c->dir.bucket_count = u32_pow2_ceil(c->opt.entries);
	c->dir.region_pages = c->opt.region_pages;
	c->dir.machines = c->opt.machines;
	c->dir.lanes = c->opt.lanes;
	c->dir.keep_going = c->opt.last;
	c->dir.entries = calloc(c->opt.entries, sizeof(*c->dir.entries));
	c->dir.buckets = calloc(c->dir.bucket_count, sizeof(*c->dir.buckets));
	c->dir.slots = calloc((size_t)c->opt.machines * c->opt.lanes,
			      sizeof(*c->dir.slots));
	c->machines = calloc(c->opt.machines, sizeof(*c->machines));
	c->nodes = calloc(COHERENCE_NODES, sizeof(*c->nodes));
	c->offers = calloc(COHERENCE_NODES, sizeof(*c->offers));
	c->pairs = calloc(COH_PAIRS, sizeof(*c->pairs));
	c->dir.goes_on = c->goes_on = calloc(COH_PAIRS, sizeof(*c->goes_on));
	memset(c->nothing, 0xdb, sizeof(c->nothing));
	if (!c->dir.entries || !c->dir.buckets || !c->dir.slots ||
	    !c->machines || !c->nodes || !c->offers || !c->pairs || !c->goes_on)
		return -ENOMEM;
	err = translate_init(&c->translate);
	return err ? err : rights_init(&c->rights);
}

/* What a pipeline would have to hold. Addresses of pages have 36 bits: 48 of an
 * address without those in a page. */
static unsigned coh_tables(const void *state,
			   struct tor_table table[TOR_TABLE_MAX])
{
	const struct coh *c = state;
	uint64_t lanes = (uint64_t)c->opt.machines * c->opt.lanes;
	uint64_t page_bits = COHERENCE_PAGE_BYTES * 8;
	unsigned n = 0;

	table[n++] =
		(struct tor_table){"memory nodes", COHERENCE_NODES, 8, 64, 1};
	table[n++] = (struct tor_table){"outliers", TRANSLATE_OUTLIERS, 36,
					6 + 52, 1};
	table[n++] = (struct tor_table){"pairs", COH_PAIRS, 36, 6 + 52, 1};
	table[n++] = (struct tor_table){"on loss", COH_PAIRS, 36, 1, 1};
	/* Domain and page; pieces are prefixes. */
	table[n++] = (struct tor_table){"rights", RIGHTS_PIECES, 32 + 36, 2, 1};
	table[n++] = (struct tor_table){
		"keys", (uint64_t)c->opt.machines * COH_DOMAINS * 3, 32, 32 + 2,
		1};
	table[n++] = (struct tor_table){
		"ends", lanes + c->opt.machines + COHERENCE_NODES, 24 + 128,
		24 * 3 + 8, 1};
	/* State, size, sharers, who is waited for, who asks and gains, queue,
	 * sequence, false invalidations. */
	table[n++] = (struct tor_table){
		"directory", c->opt.entries, 36,
		3 + 4 + 16 + 16 + 9 + 5 + 1 + 2 * 9 + 32 + 16, 3};
	/* Page, serials, queue, state, numbers of the answer. */
	table[n++] = (struct tor_table){"gets", lanes, 0,
					36 + 2 * 32 + 9 + 4 + 2 + 2 * 24, 2};
	table[n++] = (struct tor_table){"pages of gets", lanes, 0,
					(uint32_t)page_bits, 1};
	table[n++] = (struct tor_table){"pages given back",
					(uint64_t)c->opt.machines * COH_GIVES,
					0, (uint32_t)page_bits, 1};
	table[n++] = (struct tor_table){"INVALs",
					(uint64_t)c->opt.machines * COH_INVALS,
					0, COHERENCE_INVAL_BYTES * 8, 1};
	table[n++] = (struct tor_table){"packets on the way",
					(COHERENCE_NODES + c->opt.machines) *
						(uint64_t)END_TX_WINDOW,
					0, 16 + 24, 1};
	return n;
}

const struct tor_program tor_coherence = {
	.name = "coherence",
	.help = "keeps pages that machines share coherent",
	.counter_names = names,
	.counter_count = COH_COUNTER_COUNT,
	.state_bytes = sizeof(struct coh),
	.init = coh_init,
	.release = coh_release,
	.batch_end = coh_batch_end,
	.control = coh_control,
	.port_gone = coh_port_gone,
	.tables = coh_tables,
};
