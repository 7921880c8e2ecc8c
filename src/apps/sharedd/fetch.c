/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that programs want before they touch them, because they said so, or
 * because they read page after page. Half of the lanes stay free for threads
 * that wait. */
#include <errno.h>

#include "shd_priv.h"

enum {
	LANES_MAX = COHERENCE_LANES / 2,
	STREAK_MIN = 3, /* faults in a row that are a stream */
	AHEAD_MIN = 4,	/* pages; doubled while the stream goes on */
	AHEAD_MAX = 32,
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

/* The end of what the program has mapped and may touch: behind it there may be
 * nothing. */
static uint64_t end_of(const struct shd_program *p)
{
	return u64_min(p->segment->page + p->view.first + p->view.count,
		       shd_object_end(p));
}

void shd_fetch_fault(struct shd *s, struct shd_program *p, uint64_t page)
{
	uint64_t ahead = p->stream_ahead;

	/* A page that is on its way. */
	if (page < p->stream_next && page + ahead >= p->stream_next)
		return;
	if (page != p->stream_next) {
		p->stream_streak = p->stream_ahead = 0;
		p->stream_next = page + 1;
		return;
	}
	p->stream_next = page + 1;
	if (++p->stream_streak < STREAK_MIN || p->fetch_at < p->fetch_end)
		return;
	ahead = u64_min(u64_max(2 * ahead, AHEAD_MIN), AHEAD_MAX);
	ahead = u64_min(ahead, s->page_max / 4);
	p->fetch_at = page + 1;
	p->fetch_end = u64_min(p->fetch_at + ahead, end_of(p));
	p->fetch_right = COH_READ;
	p->stream_ahead = (uint32_t)ahead;
	p->stream_next = u64_max(p->fetch_end, p->fetch_at);
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
