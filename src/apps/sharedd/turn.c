/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: completions, faults, messages, and what is due. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "shd_priv.h"

enum {
	EVENTS = 64,
	LOOK_US = 20, /* between looks whether a process has run */
	SOON_NS = 300000,
	BATCH = 64, /* completions between two looks at the rest */
};

void shd_expect(struct shd *s, uint64_t *last_ns, uint64_t now_ns)
{
	if (now_ns - *last_ns < SOON_NS)
		s->soon_ns = now_ns + SOON_NS;
	*last_ns = now_ns;
}

/* ---- INVALs that wait for threads ---------------------------------------- */

/* Whether the process for which the page came has used the processor. */
static bool has_run(const struct shd_hold *h)
{
	struct timespec t;
	uint64_t now_ns;

	if (shd_hold_is_timed(h))
		return false;
	if (h->has_slept || !h->clock)
		return h->has_slept;
	/* One that is gone needs nothing. */
	if (clock_gettime(h->clock, &t) != 0)
		return true;
	now_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return now_ns - h->cpu_ns >= SHD_HOLD_RAN_NS;
}

/* How long until the INVAL may be executed; 0: now. UINT32_MAX: when a get has
 * its answer. */
static uint32_t left_us(const struct shd *s, const struct coh_inval *inval,
			uint32_t now_us)
{
	uint32_t most = 0;

	if (coh_cache_is_named(&s->cache, inval))
		return UINT32_MAX;
	for (uint32_t i = 0; i < inval->range.count; i++) {
		uint64_t at = inval->range.page + i - s->cache.first_page;
		uint32_t left;

		if (at >= s->cache.page_count ||
		    s->cache.pages[at].right <= inval->to)
			continue;
		left = shd_hold_left_us(&s->holds[at], now_us);
		if (left > most && !has_run(&s->holds[at]))
			most = left;
	}
	return most;
}

static void execute(struct shd *s, const struct coh_inval *inval)
{
	coh_cache_inval(&s->cache, inval, &s->out);
	shd_act(s, -1);
}

static void run_held(struct shd *s, uint64_t now_ns)
{
	s->held_ns = 0;
	for (unsigned i = 0; i < s->held_count;) {
		struct coh_inval inval = s->held[i];
		uint32_t left = left_us(s, &inval, shd_us(now_ns));

		if (left) {
			uint64_t at_ns =
				now_ns + u32_min(left, LOOK_US) * 1000ull;

			if (left != UINT32_MAX &&
			    (!s->held_ns || at_ns < s->held_ns))
				s->held_ns = at_ns;
			i++;
			continue;
		}
		s->held[i] = s->held[--s->held_count];
		execute(s, &inval);
	}
}

static void take_inval(struct shd *s, const struct coh_inval *inval)
{
	struct shd_segment *g = shd_segment_of(s, inval->target);
	uint64_t now_ns = clock_mono_ns();

	shd_count(s, SHD_C_invals);
	shd_expect(s, &s->inval_ns, now_ns);
	if (g)
		g->invals++;
	if (inval->range.count > COH_REGION_PAGES_MAX ||
	    !left_us(s, inval, shd_us(now_ns)) ||
	    s->held_count == COH_CACHE_JOBS_MAX) {
		execute(s, inval);
		return;
	}
	shd_count(s, SHD_C_held);
	s->held[s->held_count++] = *inval;
}

/* ---- completions --------------------------------------------------------- */

/* A repetition of a get may be refused whose answer is here already: then the
 * lane may have the next one under way, which the record is not about. */
static void take_lost(struct shd *s, const struct coh_record *r)
{
	if (r->lane >= COHERENCE_LANES ||
	    (int32_t)(r->serial - s->lanes[r->lane].serial) > 0) {
		shd_count(s, SHD_C_strange);
		return;
	}
	if (r->serial != s->lanes[r->lane].serial)
		return;
	s->lane_lost[r->lane] = true;
	s->lane_why[r->lane] = r->why;
}

static void take_record(struct shd *s, const struct coh_record *r)
{
	if (r->kind == COHERENCE_INVAL)
		take_inval(s, &r->inval);
	else if (r->kind == COHERENCE_LOST)
		take_lost(s, r);
	else
		shd_count(s, SHD_C_strange);
}

static const char *words_of(uint8_t why)
{
	switch ((enum coherence_why)why) {
	case COHERENCE_WHY_LOST:
		return "a machine died with its last stores; 'aquifer shared "
		       "stat' says which, and 'repair' goes on without them";
	case COHERENCE_WHY_RIGHT:
		return "the segment was deleted or lost, or may not be used so";
	case COHERENCE_WHY_NODE:
		return "the memory node does not answer";
	}
	return "the switch does not say why";
}

static void refuse(struct shd *s, uint8_t lane)
{
	uint64_t now_ns = clock_mono_ns();

	shd_count(s, SHD_C_refused);
	if (now_ns - s->said_ns > 1000000000ull) {
		s->said_ns = now_ns;
		log_warn("shared",
			 "the page at %#llx cannot be had: %s; who touches it "
			 "gets SIGBUS",
			 (unsigned long long)s->lanes[lane].page
				 << COHERENCE_PAGE_SHIFT,
			 words_of(s->lane_why[lane]));
	}
	coh_cache_refused(&s->cache, lane, &s->out);
}

static void take_done(struct shd *s, const struct shd_done *d)
{
	switch (d->kind) {
	case SHD_DONE_LANE:
		if (s->lane_lost[d->index])
			refuse(s, (uint8_t)d->index);
		else
			coh_cache_answer(&s->cache, (uint8_t)d->index, &s->out);
		shd_act(s, (int)d->index);
		break;
	case SHD_DONE_GIVE:
		coh_cache_given(&s->cache, shd_nic_given(&s->nic, d->index),
				&s->out);
		shd_act(s, -1);
		break;
	case SHD_DONE_EVICT:
		coh_cache_left(&s->cache, (uint8_t)d->index);
		break;
	case SHD_DONE_CLEAN:
		coh_cache_cleaned(&s->cache);
		break;
	case SHD_DONE_RECORD:
		take_record(s, &d->record);
		break;
	case SHD_DONE_BROKEN:
		shd_member_broken(s);
		break;
	case SHD_DONE_FIN:
		break;
	}
}

bool shd_turn(struct shd *s)
{
	uint64_t now_ns = clock_mono_ns();
	struct shd_done d;
	unsigned n = 0;

	shd_member_lease(s, now_ns);
	for (; n < BATCH && !s->is_over && shd_nic_next(&s->nic, &d); n++)
		take_done(s, &d);
	if (s->is_over)
		return false;
	if (s->held_count)
		run_held(s, now_ns);
	shd_flush_run(s, false);
	shd_evict(s);
	if (!s->is_draining) {
		shd_fault_touch(s);
		shd_futex_run(s, now_ns);
		shd_fetch_run(s);
	}
	*s->cached_bytes = s->page_count << COHERENCE_PAGE_SHIFT;
	return n > 0;
}

/* ---- sleeping ------------------------------------------------------------ */

static void take_event(struct shd *s, const struct epoll_event *e)
{
	struct shd_watch *w = e->data.ptr;

	switch (w->kind) {
	case SHD_WATCH_LISTEN:
		shd_attach_accept(s);
		break;
	case SHD_WATCH_SOCKET:
		shd_attach_read(s, w->program);
		break;
	case SHD_WATCH_UFFD:
		shd_fault_read(s, w->program);
		break;
	case SHD_WATCH_NIC:
		shd_nic_disarm(&s->nic);
		s->is_armed = false;
		break;
	case SHD_WATCH_LEAD:
		shd_member_news(s);
		shd_object_got(s);
		break;
	case SHD_WATCH_LISTENER:
		shd_futex_read(s, w, e->events);
		break;
	case SHD_WATCH_OBJECTS:
		shd_object_read(s);
		break;
	case SHD_WATCH_SIGNAL:
		break; /* the caller looks */
	}
}

/* One event may end the program of another one of the same batch. */
static void take_events(struct shd *s, const struct epoll_event *e, int n)
{
	for (int i = 0; i < n; i++) {
		const struct shd_watch *w = e[i].data.ptr;

		if (!w->program || !w->program->is_ended)
			take_event(s, &e[i]);
	}
	shd_attach_free(s);
}

/* How long to sleep, where something is due at a time (0: nothing). */
static uint64_t until(uint64_t at_ns, uint64_t now_ns, uint64_t most_ns)
{
	if (!at_ns)
		return most_ns;
	return u64_min(most_ns, at_ns > now_ns ? at_ns - now_ns : 0);
}

void shd_sleep(struct shd *s, uint64_t most_ns)
{
	struct epoll_event e[EVENTS];
	struct timespec t;
	uint64_t now_ns = clock_mono_ns();

	if (most_ns && !s->is_armed) {
		shd_nic_arm(&s->nic);
		s->is_armed = true;
		most_ns = 0; /* look once more */
	}
	most_ns = until(s->held_ns, now_ns, most_ns);
	most_ns = until(s->futex_ns, now_ns, most_ns);
	t = (struct timespec){.tv_sec = (time_t)(most_ns / 1000000000u),
			      .tv_nsec = (long)(most_ns % 1000000000u)};
	take_events(s, e, epoll_pwait2(s->epoll, e, EVENTS, &t, NULL));
}
