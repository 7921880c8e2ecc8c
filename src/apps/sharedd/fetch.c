/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that programs want before they touch them. Half of the lanes stay free
 * for threads that wait. */
#include <errno.h>

#include "shd_priv.h"

enum {
	LANES_MAX = COHERENCE_LANES / 2,
};

int shd_fetch_ask(struct shd *s, struct shd_program *p,
		  const struct coherent_ask *ask)
{
	struct shd_range r;
	int err = shd_program_range(p, ask, &r);

	if (!err) {
		/* More than half of the cache would drive out itself. */
		p->fetch_at = r.from;
		p->fetch_end = u64_min(r.end, r.from + s->page_max / 2);
		p->fetch_right = ask->kind == COHERENT_FETCH_WRITE ? COH_WRITE
								   : COH_READ;
	}
	return shd_attach_answer(p, err, NULL, NULL, 0);
}

static unsigned busy_lanes(const struct shd *s)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < COHERENCE_LANES; i++)
		busy += s->lanes[i].right != COH_NONE;
	return busy;
}

/* Asks for the next page, unless it is here or asked for. False: not now. */
static bool fetch_next(struct shd *s, struct shd_program *p)
{
	enum coh_right right = (enum coh_right)p->fetch_right;
	const struct coh_cache_page *page =
		&s->cache.pages[p->fetch_at - s->cache.first_page];

	switch (coh_cache_touch(&s->cache, p->fetch_at, right, &s->out)) {
	case COH_TOUCH_HIT:
		break;
	case COH_TOUCH_SENT:
		shd_count(s, SHD_C_ahead);
		shd_act(s, -1);
		break;
	case COH_TOUCH_LATER:
		if (page->get < right)
			return false;
		break;
	}
	p->fetch_at++;
	return true;
}

void shd_fetch_run(struct shd *s)
{
	for (struct list *l = s->programs.next;
	     l != &s->programs && !s->is_over; l = l->next) {
		struct shd_program *p =
			container_of(l, struct shd_program, node);

		while (p->fetch_at < p->fetch_end && !s->is_over &&
		       busy_lanes(s) < LANES_MAX)
			if (!fetch_next(s, p))
				break;
	}
}
