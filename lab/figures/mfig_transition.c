/* SPDX-License-Identifier: Apache-2.0 */
/* What one transition takes: pages are brought into a state by some machines,
 * and then another machine wants them, one at a time. */
#include <stdlib.h>

#include "mfig_priv.h"

enum {
	PAGES = 64,
	STRIDE = 16, /* regions apart, so that each page has an entry */
};

static const struct {
	bool before;  /* others have it */
	bool writers; /* one of them wrote */
	bool writes;
} shapes[MFIG_TRANSITIONS] = {
	[MFIG_I_S] = {0},
	[MFIG_S_S] = {.before = true},
	[MFIG_I_M] = {.writes = true},
	[MFIG_S_M] = {.before = true, .writes = true},
	[MFIG_S7_M] = {.before = true, .writes = true},
	[MFIG_M_S] = {.before = true, .writers = true},
	[MFIG_M_M] = {.before = true, .writers = true, .writes = true},
};

static void touch(struct mfig *f, uint32_t machine, uint32_t page, bool writes)
{
	struct mfig_thread *t = &f->thread[machine * f->cfg->threads];
	struct mfig_step s = {.page = page, .accesses = 1, .writes = writes};

	mfig_machine_step(t, &s);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The last machine asks; the others have the page before. */
void mfig_transition_main(void *arg)
{
	struct mfig *f = arg;
	uint32_t asker = f->cfg->machines - 1;
	uint64_t took_ps[PAGES], sum_ps = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		uint32_t page = i * STRIDE;
		uint64_t start_ps;

		if (shapes[f->cfg->transition].writers)
			touch(f, 0, page, true);
		else if (shapes[f->cfg->transition].before)
			for (uint32_t k = 0; k < asker; k++)
				touch(f, k, page, false);
		start_ps = mfig_now_ps(f);
		touch(f, asker, page, shapes[f->cfg->transition].writes);
		took_ps[i] = mfig_now_ps(f) - start_ps;
		sum_ps += took_ps[i];
		f->steps++;
	}
	qsort(took_ps, PAGES, sizeof(*took_ps), compare);
	f->res->latency_us = (double)took_ps[PAGES / 2] / 1e6;
	f->res->mean_us = (double)sum_ps / PAGES / 1e6;
	sim_stop(f->sim);
}
