/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for pages: what they are told, and when they run on. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "shd_priv.h"

static void forget(struct shd *s, unsigned i)
{
	s->waits[i] = s->waits[--s->wait_count];
}

void shd_fault_forget(struct shd *s, const struct shd_program *p)
{
	for (unsigned i = 0; i < s->wait_count;)
		if (s->waits[i].program == p)
			forget(s, i);
		else
			i++;
}

static void note(struct shd *s, const struct shd_wait *w)
{
	for (unsigned i = 0; i < s->wait_count; i++) {
		struct shd_wait *o = &s->waits[i];

		if (o->page != w->page || o->program != w->program)
			continue;
		o->right = (uint8_t)u32_max(o->right, w->right);
		o->is_missing |= w->is_missing;
		return; /* if it is behind the end, so it was */
	}
	s->waits[s->wait_count++] = *w;
}

static void take(struct shd *s, struct shd_program *p,
		 const struct uffd_msg *msg)
{
	uint64_t flags = msg->arg.pagefault.flags;
	uint64_t at = msg->arg.pagefault.address - p->view.base;
	struct shd_wait w = {.page = p->segment->page +
				     (at >> COHERENCE_PAGE_SHIFT),
			     .program = p,
			     .right = flags & (UFFD_PAGEFAULT_FLAG_WP |
					       UFFD_PAGEFAULT_FLAG_WRITE)
					      ? COH_WRITE
					      : COH_READ,
			     .is_missing = !(flags & UFFD_PAGEFAULT_FLAG_WP)};

	if (msg->event != UFFD_EVENT_PAGEFAULT ||
	    at >> COHERENCE_PAGE_SHIFT >= p->segment->mem.page_count)
		return;
	shd_count(s, SHD_C_faults);
	p->segment->faults++;
	w.is_past = w.page >= shd_object_end(p);
	note(s, &w);
	if (w.right == COH_READ)
		shd_fetch_fault(s, p, w.page);
}

void shd_fault_read(struct shd *s, struct shd_program *p)
{
	struct uffd_msg msg[SHD_FAULTS];
	ssize_t n;

	shd_expect(s, &s->fault_ns, clock_mono_ns());
	/* Where there is no room the kernel keeps them. */
	while (s->wait_count + SHD_FAULTS <= SHD_WAITS) {
		n = read(p->view.uffd, msg, sizeof(msg));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(msg[0]); i++)
			take(s, p, &msg[i]);
		if (n < (ssize_t)sizeof(msg))
			return;
	}
}

/* The page is here, and the program may do with it what the thread wants. */
static void run_on(struct shd *s, const struct shd_wait *w)
{
	struct shd_mem *m = &w->program->segment->mem;
	struct shd_view *v = &w->program->view;
	uint32_t page = (uint32_t)(w->page - w->program->segment->page);

	(void)s;
	if (w->is_missing)
		shd_mem_again(m, v, page);
	if (w->right == COH_WRITE)
		shd_mem_unprotect(m, v, page);
}

static void poison(const struct shd_wait *w)
{
	uint32_t at = (uint32_t)(w->page - w->program->segment->page);

	/* Before Linux 6.6 a page cannot be poison. Of the calls that send a
	 * signal a daemon may make only this one. */
	if (shd_mem_poison(&w->program->view, at) == -EINVAL)
		(void)tgkill(w->program->pid, w->program->pid, SIGBUS);
}

/* A page that is here cannot be poison. False: not yet. */
static bool is_given_up(struct shd *s, const struct shd_wait *w)
{
	if (coh_cache_right(&s->cache, w->page) != COH_NONE) {
		if (coh_cache_evict(&s->cache, w->page, &s->out))
			return false;
		shd_act(s, -1);
	}
	return coh_cache_right(&s->cache, w->page) == COH_NONE;
}

void shd_fault_touch(struct shd *s)
{
	for (unsigned i = 0; i < s->wait_count && !s->is_over;) {
		struct shd_wait w = s->waits[i];

		if (w.is_past) {
			shd_object_measure(s, w.program->object);
			i++;
			continue;
		}
		if (w.is_lost) {
			if (is_given_up(s, &w)) {
				forget(s, i);
				poison(&w);
			} else {
				i++;
			}
			continue;
		}
		switch (coh_cache_touch(&s->cache, w.page,
					(enum coh_right)w.right, &s->out)) {
		case COH_TOUCH_HIT:
			forget(s, i);
			run_on(s, &w);
			break;
		case COH_TOUCH_SENT:
			shd_act(s, -1);
			i++;
			break;
		case COH_TOUCH_LATER:
			i++;
			break;
		}
	}
}

void shd_fault_measured(struct shd *s, const struct shd_object *o, int err)
{
	for (unsigned i = 0; i < s->wait_count; i++) {
		struct shd_wait *w = &s->waits[i];

		if (!w->is_past || w->program->object != o)
			continue;
		w->is_past = false;
		w->is_lost = err || w->page >= shd_object_end(w->program);
	}
}

void shd_hold_start(struct shd_hold *h, clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) != 0)
		return;
	h->clock = clock;
	h->cpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Threads of this program run from now on. */
static void note_start(struct shd *s, const struct shd_wait *w)
{
	if (w->program->clock)
		shd_hold_start(&s->holds[w->page - s->cache.first_page],
			       w->program->clock);
}

/* In whose view the page shall appear: who wants to write, if somebody may. */
static struct shd_program *choose(struct shd *s, uint64_t page,
				  enum coh_right right, bool *may_write)
{
	struct shd_program *p = NULL;

	*may_write = false;
	for (unsigned i = 0; i < s->wait_count; i++) {
		const struct shd_wait *w = &s->waits[i];

		if (w->page != page || w->right > right)
			continue;
		p = w->program;
		*may_write = w->right == COH_WRITE;
		if (*may_write)
			break;
	}
	return p;
}

void shd_fault_mapped(struct shd *s, struct shd_segment *g, uint64_t page,
		      enum coh_right right, const void *bytes)
{
	uint32_t at = (uint32_t)(page - g->page);
	bool may_write;
	struct shd_program *first = choose(s, page, right, &may_write);

	/* A page that we had to read has the same bytes: nobody else could
	 * write it meanwhile. */
	if (!shd_mem_has(&g->mem, at)) {
		if (shd_mem_put(&g->mem, at, bytes, first ? &first->view : NULL,
				may_write)) {
			shd_fail(s, "a page cannot be put into its file");
			return;
		}
		s->page_count++;
	} else {
		first = NULL;
	}
	if (s->cache.suspended)
		return; /* it is hidden; they are looked at again */
	for (unsigned i = 0; i < s->wait_count;) {
		struct shd_wait w = s->waits[i];

		if (w.page != page || w.right > right) {
			i++;
			continue;
		}
		forget(s, i);
		note_start(s, &w);
		if (w.right == COH_WRITE && (w.program != first || !may_write))
			shd_mem_unprotect(&g->mem, &w.program->view, at);
		else if (w.program != first)
			shd_mem_wake(&w.program->view, at);
	}
}

void shd_fault_lost(struct shd *s, const struct coh_range *r)
{
	for (unsigned i = 0; i < s->wait_count;) {
		struct shd_wait *w = &s->waits[i];
		const struct shd_segment *g = w->program->segment;

		if (!coh_range_has(r, w->page)) {
			i++;
		} else if (shd_mem_has(&g->mem,
				       (uint32_t)(w->page - g->page))) {
			w->is_lost = true;
			i++;
		} else {
			struct shd_wait lost = *w;

			forget(s, i);
			poison(&lost);
		}
	}
}
