/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherent shared memory: what the switch and the machines say to each other.
 * The switch has a directory (dir.h): which machine may have copies of which
 * region. A machine has a cache (cache.h): which of its pages its processes may
 * read or write. Both are pure: events in, actions and new state out; no I/O,
 * no allocation, and time is an argument (lease.h). The caller carries messages
 * and bytes.
 *
 *  machine to switch                        completion means
 *  get {page, right}, a READ                the page's bytes, with that right
 *  give {page, bytes}, a WRITE              the memory node has them
 *  FIN {range, term, seq}                   taken notice of
 *  EVICT {range}                            taken notice of
 *  CLEAN {term}                             taken notice of
 *  switch to machine
 *  INVAL {range, term, seq, to, target, granted}
 *
 * Each travels over a reliable connection, a lane, which keeps its order.
 * Between lanes there is no order. A lane carries one get at a time, because
 * answers keep their order and a get may wait for long; gives do not travel
 * behind gets. A lane's gets are numbered by the machine; 32 bits, because an
 * INVAL may be under way while many gets come and go on a lane.
 *
 * Who calls this: the switch's program `coherence` the directory; a machine's
 * cache server (apps/sharedd) the cache, and so does lab/plays; lab/model both.
 * docs/mind.md has states and promises.
 */
#ifndef AQ_COHERENCE_H
#define AQ_COHERENCE_H

#include "base/base.h"

enum {
	COH_MACHINES_MAX = 16,
	COH_LANES_MAX = 16, /* of a machine */
	COH_REGION_PAGES_MAX = 512,
	COH_ORDERS = 10, /* sizes of regions: 1 to 512 pages */
};

/* What a machine's processes may do with a page. */
enum coh_right {
	COH_NONE,
	COH_READ,
	COH_WRITE, /* and read */
};

/* Pages by number; a region is a power of two of them, aligned. */
struct coh_range {
	uint64_t page;
	uint32_t count;
};

static inline bool coh_range_has(const struct coh_range *r, uint64_t page)
{
	return page - r->page < r->count;
}

static inline bool coh_range_meets(const struct coh_range *a,
				   const struct coh_range *b)
{
	return coh_range_has(a, b->page) || coh_range_has(b, a->page);
}

struct coh_get {
	uint8_t machine, lane;
	enum coh_right right;
	uint32_t serial; /* of this get on its lane; the first is 1 */
	uint64_t page;
};

struct coh_inval {
	struct coh_range range;
	uint64_t target;   /* the page that somebody waits for */
	uint32_t term;	   /* of the switch */
	uint32_t seq;	   /* which INVAL of that term */
	enum coh_right to; /* what the machine may keep: COH_NONE, COH_READ */
	/* Per lane the last get that was granted: its answer counts as had,
	 * although it may still be under way. 0: none. */
	uint32_t granted[COH_LANES_MAX];
};

/* The end of an INVAL: all that the machine stored in the range is in the
 * memory node, and its processes can do no more than the INVAL said. */
struct coh_fin {
	struct coh_range range;
	uint32_t term, seq;
};

#endif
