/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency model. The cycle counts are those of the paper's sections 3.2.1
 * and 3.2.2; the split of the switch's eleven cycles into seven for a
 * notification and four for data follows from the text's steps, since the
 * figure's own numbers are not in the text. Every sum of Table 1 comes out.
 */
#include "latency.h"

#include <errno.h>

#include "base/error.h"

static void add(struct edm_lat_path *p, enum edm_lat_place place,
		enum edm_lat_part part, const char *what, uint32_t cycles,
		uint64_t ps)
{
	ASSERT(p->stages < EDM_LAT_STAGES_MAX);
	p->stage[p->stages++] =
		(struct edm_lat_stage){what, ps, place, part, cycles};
	p->total_ps += ps;
}

static void add_cycles(struct edm_lat_path *p, enum edm_lat_place place,
		       const char *what, uint32_t cycles)
{
	add(p, place, EDM_LAT_PART_LOGIC, what, cycles,
	    (uint64_t)cycles * EDM_LAT_CYCLE_PS);
}

/* Thirds of a nanosecond do not sum in picoseconds, so each step is the
 * difference of rounded running sums. */
static void add_switch(struct edm_lat_path *p, bool asic, uint32_t *before,
		       const char *what, uint32_t cycles)
{
	uint32_t after = *before + cycles;
	uint64_t ps = asic ? (after * 1000u + 1) / 3 - (*before * 1000u + 1) / 3
			   : (uint64_t)cycles * EDM_LAT_CYCLE_PS;

	add(p, EDM_LAT_SWITCH, EDM_LAT_PART_LOGIC, what, cycles, ps);
	*before = after;
}

static void add_link(struct edm_lat_path *p, enum edm_lat_place from,
		     enum edm_lat_place to)
{
	add(p, from, EDM_LAT_PART_PCS, "PCS, transmit", 0, EDM_LAT_PCS_EDM_PS);
	add(p, EDM_LAT_LINK, EDM_LAT_PART_PMA, "PMA, PMD, transceiver", 0,
	    EDM_LAT_PMA_PS);
	add(p, EDM_LAT_LINK, EDM_LAT_PART_CABLE, "cable", 0, EDM_LAT_CABLE_PS);
	add(p, EDM_LAT_LINK, EDM_LAT_PART_PMA, "transceiver, PMD, PMA", 0,
	    EDM_LAT_PMA_PS);
	add(p, to, EDM_LAT_PART_PCS, "PCS, receive", 0, EDM_LAT_PCS_EDM_PS);
}

int edm_lat_path(enum edm_lat_op op, const struct edm_lat_config *c,
		 struct edm_lat_path *out)
{
	bool read = op == EDM_LAT_READ;
	enum edm_lat_place data = read ? EDM_LAT_MEMORY : EDM_LAT_COMPUTE;
	enum edm_lat_place sink = read ? EDM_LAT_COMPUTE : EDM_LAT_MEMORY;
	uint64_t block_ps = edm_block_ps(c->gbps);
	struct edm_lat_path p = {.stages = 0};
	uint32_t blocks, spent = 0;

	if (!block_ps)
		return error_set(-EINVAL,
				 "%u Gb/s has no whole number of picoseconds "
				 "per block",
				 c->gbps);
	add_cycles(&p, EDM_LAT_COMPUTE,
		   read ? "read the queue, make RREQ"
			: "read the queue, make N",
		   EDM_CYCLES_MAKE);
	add_link(&p, EDM_LAT_COMPUTE, EDM_LAT_SWITCH);
	if (read && c->data_bytes)
		add(&p, EDM_LAT_LINK, EDM_LAT_PART_SERIAL,
		    "rest of the RREQ, kept whole by the switch", 0,
		    (edm_blocks(c->md, EDM_ADDRESS_BYTES) - 1) * block_ps);
	add_switch(&p, c->asic, &spent, "classify", EDM_CYCLES_CLASSIFY);
	add_switch(&p, c->asic, &spent, "insert into the queue",
		   EDM_CYCLES_INSERT);
	add_switch(&p, c->asic, &spent, "match, one iteration",
		   EDM_CYCLES_ITERATION);
	add_switch(&p, c->asic, &spent, read ? "pass RREQ on" : "make G",
		   EDM_CYCLES_EMIT);
	add_link(&p, EDM_LAT_SWITCH, data);
	add_cycles(&p, data,
		   read ? "parse RREQ, queue, to the memory controller"
			: "parse G, queue",
		   read ? EDM_CYCLES_PARSE + EDM_CYCLES_CONTROLLER
			: EDM_CYCLES_PARSE);
	add_cycles(&p, data, "grant queue, to the sender's clock",
		   EDM_CYCLES_QUEUE);
	add_cycles(&p, data, "look up, read, make the data block",
		   EDM_CYCLES_DATA);
	add_link(&p, data, EDM_LAT_SWITCH);
	add_switch(&p, c->asic, &spent, "forward, to the other port's clock",
		   EDM_CYCLES_FORWARD);
	add_link(&p, EDM_LAT_SWITCH, sink);
	add_cycles(&p, sink, "parse, address, hand over", EDM_CYCLES_RECEIVE);
	if (c->data_bytes) {
		blocks = edm_blocks(
			c->md, c->data_bytes + (read ? 0 : EDM_ADDRESS_BYTES));
		add(&p, EDM_LAT_LINK, EDM_LAT_PART_SERIAL, "rest of the data",
		    0, (blocks - 1) * block_ps);
	}
	*out = p;
	return 0;
}

uint64_t edm_lat_sum(const struct edm_lat_path *p, enum edm_lat_place place,
		     enum edm_lat_part part)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->stages; i++)
		if (p->stage[i].place == place && p->stage[i].part == part)
			sum += p->stage[i].ps;
	return sum;
}

static void path_table1(enum edm_lat_op op, struct edm_lat_path *p)
{
	static const struct edm_lat_config c = {.gbps = 25};
	int err = edm_lat_path(op, &c, p);

	ASSERT(!err); /* 25 Gb/s is a valid rate */
}

uint64_t edm_lat_loopback_ps(void)
{
	struct edm_lat_path p;

	path_table1(EDM_LAT_READ, &p);
	return edm_lat_sum(&p, EDM_LAT_COMPUTE, EDM_LAT_PART_LOGIC) +
	       edm_lat_sum(&p, EDM_LAT_COMPUTE, EDM_LAT_PART_PCS) +
	       edm_lat_sum(&p, EDM_LAT_MEMORY, EDM_LAT_PART_LOGIC) +
	       edm_lat_sum(&p, EDM_LAT_MEMORY, EDM_LAT_PART_PCS) +
	       4 * EDM_LAT_PMA_PS + 2 * EDM_LAT_CABLE_PS;
}

enum {
	LINE_STACK,
	LINE_MAC,
	LINE_PCS,
};

/* How often a one-way message meets each part at a place. */
static const uint32_t visits[EDM_LAT_LINK] = {
	[EDM_LAT_COMPUTE] = 1,
	[EDM_LAT_SWITCH] = 2,
	[EDM_LAT_MEMORY] = 1,
};

static struct edm_table1_cell cell_of(enum edm_lat_stack s, enum edm_lat_op op,
				      enum edm_lat_place place, unsigned line)
{
	static const uint32_t stack_ps[EDM_LAT_STACKS] = {
		[EDM_LAT_TCP] = EDM_LAT_TCP_PS,
		[EDM_LAT_ROCE] = EDM_LAT_ROCE_PS,
	};
	uint32_t ways = op == EDM_LAT_READ ? 2 : 1;
	struct edm_lat_path p;

	if (s == EDM_LAT_EDM) {
		if (line != LINE_PCS)
			return (struct edm_table1_cell){0};
		path_table1(op, &p);
		return (struct edm_table1_cell){
			(uint32_t)(edm_lat_sum(&p, place, EDM_LAT_PART_PCS) /
				   EDM_LAT_PCS_EDM_PS),
			EDM_LAT_PCS_EDM_PS,
			edm_lat_sum(&p, place, EDM_LAT_PART_LOGIC)};
	}
	if (line == LINE_STACK && place == EDM_LAT_SWITCH)
		return (struct edm_table1_cell){ways, EDM_LAT_L2_PS, 0};
	if (line == LINE_STACK)
		return (struct edm_table1_cell){stack_ps[s] ? ways : 0,
						stack_ps[s], 0};
	return (struct edm_table1_cell){
		ways * visits[place],
		line == LINE_MAC ? EDM_LAT_MAC_PS : EDM_LAT_PCS_PS, 0};
}

static struct edm_table1_cell link_cell(enum edm_lat_stack s,
					enum edm_lat_op op,
					enum edm_lat_part part)
{
	/* A write of EDM crosses a link four times too: N, G and the data. */
	uint32_t hops = op == EDM_LAT_READ || s == EDM_LAT_EDM ? 4 : 2;

	if (part == EDM_LAT_PART_PMA)
		return (struct edm_table1_cell){2 * hops, EDM_LAT_PMA_PS, 0};
	return (struct edm_table1_cell){hops, EDM_LAT_CABLE_PS, 0};
}

void edm_table1(struct edm_table1 *out)
{
	static const char *const names[] = {"Protocol stack", "Ethernet MAC",
					    "Ethernet PHY (PCS)"};
	struct edm_table1 t = {0};
	unsigned n = 0;

	for (unsigned place = 0; place < EDM_LAT_LINK; place++)
		for (unsigned i = 0; i < ARRAY_LEN(names); i++, n++) {
			t.line[n].place = (enum edm_lat_place)place;
			t.line[n].what =
				i == LINE_STACK && place == EDM_LAT_SWITCH
					? "Layer 2 forwarding"
					: names[i];
		}
	t.line[n].place = EDM_LAT_LINK;
	t.line[n].what = "PMA, PMD, transceiver";
	t.line[n + 1].place = EDM_LAT_LINK;
	t.line[n + 1].what = "Propagation";
	for (unsigned i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++) {
		enum edm_lat_stack s = i / EDM_LAT_OPS;
		enum edm_lat_op op = i % EDM_LAT_OPS;

		for (unsigned k = 0; k < EDM_LAT_TABLE_LINES; k++) {
			struct edm_table1_cell c;
			uint64_t ps;

			if (k < n)
				c = cell_of(s, op, t.line[k].place, k % 3);
			else
				c = link_cell(s, op,
					      k == n ? EDM_LAT_PART_PMA
						     : EDM_LAT_PART_CABLE);
			t.line[k].cell[s][op] = c;
			ps = (uint64_t)c.count * c.each_ps + c.extra_ps;
			t.total_ps[s][op] += ps;
			t.network_ps[s][op] += k < n ? ps : 0;
		}
	}
	*out = t;
}

const struct edm_table1_paper *edm_table1_paper(enum edm_lat_stack s,
						enum edm_lat_op op)
{
	static const struct edm_table1_paper
		paper[EDM_LAT_STACKS][EDM_LAT_OPS] = {
			[EDM_LAT_TCP] = {{"3.79 us", 3790000, 10000},
					 {"1.89 us", 1890000, 10000}},
			[EDM_LAT_ROCE] = {{"2.03 us", 2030000, 10000},
					  {"1.02 us", 1020000, 10000}},
			[EDM_LAT_ETHERNET] = {{"1.11 us", 1110000, 10000},
					      {"557.44 ns", 557440, 10}},
			[EDM_LAT_EDM] = {{"299.52 ns", 299520, 10},
					 {"296.96 ns", 296960, 10}},
		};

	return &paper[s][op];
}

bool edm_table1_agrees(const struct edm_table1 *t, enum edm_lat_stack s,
		       enum edm_lat_op op)
{
	const struct edm_table1_paper *p = edm_table1_paper(s, op);
	uint64_t ours = t->total_ps[s][op] + p->digit_ps / 2;

	return ours - ours % p->digit_ps == p->ps;
}

const char *edm_lat_stack_name(enum edm_lat_stack s)
{
	static const char *const names[EDM_LAT_STACKS] = {"TCP/IP", "RoCEv2",
							  "Ethernet", "EDM"};

	return names[s];
}

const char *edm_lat_place_name(enum edm_lat_place p)
{
	static const char *const names[EDM_LAT_PLACES] = {"compute", "switch",
							  "memory", "link"};

	return names[p];
}

const char *edm_lat_part_name(enum edm_lat_part p)
{
	static const char *const names[EDM_LAT_PARTS] = {
		"logic", "PCS", "PMA", "cable", "serialization"};

	return names[p];
}
