/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the nanoseconds of one remote access go in an idle fabric: the eight
 * columns of EDM's Table 1 and the stages behind its own two (Figure 5). All
 * times are integer picoseconds and follow from a handful of constants; no
 * total is written down.
 */
#ifndef AQ_EDM_LATENCY_H
#define AQ_EDM_LATENCY_H

#include "edm_constants.h"
#include "edm_units.h"

enum {
	EDM_LAT_STAGES_MAX = 40,
	EDM_LAT_TABLE_LINES = 11,
};

enum edm_lat_stack {
	EDM_LAT_TCP,
	EDM_LAT_ROCE,
	EDM_LAT_ETHERNET,
	EDM_LAT_EDM,
	EDM_LAT_STACKS,
};

enum edm_lat_op {
	EDM_LAT_READ,
	EDM_LAT_WRITE,
	EDM_LAT_OPS,
};

enum edm_lat_place {
	EDM_LAT_COMPUTE,
	EDM_LAT_SWITCH,
	EDM_LAT_MEMORY,
	EDM_LAT_LINK,
	EDM_LAT_PLACES,
};

enum edm_lat_part {
	EDM_LAT_PART_LOGIC, /* EDM's own cycles */
	EDM_LAT_PART_PCS,
	EDM_LAT_PART_PMA,
	EDM_LAT_PART_CABLE,
	EDM_LAT_PART_SERIAL, /* the blocks behind the first one */
	EDM_LAT_PARTS,
};

/* One step of the way, in the order of time. */
struct edm_lat_stage {
	const char *what;
	uint64_t ps;
	enum edm_lat_place place;
	enum edm_lat_part part;
	uint32_t cycles; /* EDM's own stages; else 0 */
};

struct edm_lat_config {
	uint32_t gbps;	     /* for serialization only */
	uint32_t data_bytes; /* 0: first block only, as in Table 1 */
	enum edm_md md;
	bool asic; /* the switch's cycles take 1/3 ns instead of 2.56 ns */
};

struct edm_lat_path {
	struct edm_lat_stage stage[EDM_LAT_STAGES_MAX];
	uint32_t stages;
	uint64_t total_ps;
};

/* The way of one EDM access. -EINVAL, with words, for a link rate that has no
 * whole picoseconds per block. */
int edm_lat_path(enum edm_lat_op op, const struct edm_lat_config *c,
		 struct edm_lat_path *out) MUST_CHECK;
/* The sum over one place and part. */
uint64_t edm_lat_sum(const struct edm_lat_path *p, enum edm_lat_place place,
		     enum edm_lat_part part);

/* Host and memory node joined by one cable, no switch: what the authors
 * measured on their boards as 60 to 62 cycles. */
uint64_t edm_lat_loopback_ps(void);

struct edm_table1_cell {
	uint32_t count; /* times `each_ps` */
	uint32_t each_ps;
	uint64_t extra_ps; /* EDM's own logic */
};

struct edm_table1_line {
	enum edm_lat_place place;
	const char *what;
	struct edm_table1_cell cell[EDM_LAT_STACKS][EDM_LAT_OPS];
};

struct edm_table1 {
	struct edm_table1_line line[EDM_LAT_TABLE_LINES];
	uint64_t network_ps[EDM_LAT_STACKS]
			   [EDM_LAT_OPS]; /* without PMA, cable */
	uint64_t total_ps[EDM_LAT_STACKS][EDM_LAT_OPS];
};

void edm_table1(struct edm_table1 *out);

/* The paper's printed total, and the unit of its last digit. */
struct edm_table1_paper {
	const char *text;
	uint64_t ps;
	uint64_t digit_ps;
};

const struct edm_table1_paper *edm_table1_paper(enum edm_lat_stack s,
						enum edm_lat_op op);
/* True when our total, rounded to the paper's last digit, is the paper's. */
bool edm_table1_agrees(const struct edm_table1 *t, enum edm_lat_stack s,
		       enum edm_lat_op op);

const char *edm_lat_stack_name(enum edm_lat_stack s);
const char *edm_lat_place_name(enum edm_lat_place p);
const char *edm_lat_part_name(enum edm_lat_part p);

#endif
