/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers with CXL memory save, by the abstract cost model of the chapter
 * on CXL: a working set that does not fit into the memory of the servers is
 * read from SSD where it must be, and from CXL memory instead where there is
 * some. Equally many requests per second are then served by fewer servers, each
 * of which costs more.
 *
 *	N_cxl	       C Rc (Rd - 1)
 *	------ = -------------------------
 *	N_base	 Rc Rd (C + 1) - C Rc - Rd
 *
 *	saving = 1 - N_cxl / N_base Rt
 *
 * It follows from the time for one pass over the working set W with N servers
 * of D bytes of memory each, in units of a byte's time on SSD:
 *
 *	N D / Rd + W - N D			without CXL
 *	N D / Rd + N D / (C Rc) + W - N D - N D / C	with it
 */
#ifndef AQ_TIER_COST_H
#define AQ_TIER_COST_H

#include "base/base.h"

struct tier_cost {
	double rd; /* rate on main memory over that on SSD */
	double rc; /* rate on CXL memory over that on SSD */
	double c;  /* bytes of main memory for a byte of CXL memory */
	double rt; /* cost of a server with CXL memory over one without */
};

struct tier_saving {
	double servers; /* N_cxl / N_base */
	double saving;	/* of the whole cost; below 0: it costs more */
};

/* -EINVAL with words: no such servers exist, or the model says nothing about
 * them. Inside these bounds its denominator is never 0. */
int tier_cost_save(const struct tier_cost *cost,
		   struct tier_saving *out) MUST_CHECK;

#endif
