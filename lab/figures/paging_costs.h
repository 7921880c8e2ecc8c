/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the memory node's processor costs in the figures of `aquifer sim
 * paging`, and what its programs do, each number with its source. NIC, chains,
 * bus and links are in sim/model_constants.h, where also the kinds of source
 * are explained.
 *
 * Short names of sources:
 *   [O]      Wang et al., ODRP, NSDI 2025
 *   [Linux]  mm/swap_state.c and mm/vmscan.c of Linux 4.15, which [O] 5.1 ran
 */
#ifndef AQ_RIG_PAGING_COSTS_H
#define AQ_RIG_PAGING_COSTS_H

#include "sim/model_constants.h"

#define PAGING_COSTS(X)                                                     \
	X(register_4k_ps, 80000000, "ps", PUBLISHED,                        \
	  "[O] 2.2: a region of 4 KB takes about 80 us to register")        \
	X(register_1m_ps, 600000000, "ps", PUBLISHED,                       \
	  "[O] 2.2: one of 1 MB about 600 us")                              \
	X(serve_ps, 6700000, "ps", FITTED,                                  \
	  "a request in the node's core: [O] 5.4, two-sided operations of " \
	  "one worker take 3.8 times the 2.9 us of one-sided ones; what "   \
	  "messages and answer leave of 11.0 us")                           \
	X(two_sided_cores, 16, "cores", PUBLISHED,                          \
	  "[O] 5.3: enough for two-sided with eight clients")               \
	X(dynamic_cores, 10, "cores", PUBLISHED,                            \
	  "[O] 5.3: enough for dynamic with eight clients")                 \
	X(swap_mb, 12288, "MB", PUBLISHED,                                  \
	  "[O] 5.1: swap space of each client; static gives all of it")     \
	X(readahead, 8, "pages", PUBLISHED,                                 \
	  "[Linux] page-cluster 3: largest window of a fault")              \
	X(behind, 32, "pages", PUBLISHED,                                   \
	  "[Linux] SWAP_CLUSTER_MAX: pages that reclaim writes at a time; " \
	  "the "                                                            \
	  "program waits only when it is so far ahead of its reclaim")

struct paging_costs {
	PAGING_COSTS(MODEL_FIELD)
};

extern const struct paging_costs paging_costs;

#endif
