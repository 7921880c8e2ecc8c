/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as a member: joining, terms of the switch, the lease, the end. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "coherence/lease.h"
#include "shd_priv.h"

enum {
	JOIN_MS = 10000,
	DRAIN_MS = 5000,
	MS = 1000000,
};

/* A connection broke, and the switch does not know it. */
#define BROKEN_NS 8000000000ull

static void cut(struct shd *s)
{
	coh_cache_cut(&s->cache);
	shd_nic_cut(&s->nic);
	memset(s->lane_lost, 0, sizeof(s->lane_lost));
	s->held_count = 0;
	shd_flush_run(s, true);
}

void shd_member_broken(struct shd *s)
{
	log_warn("shared", "a connection to the switch has failed; pages that "
			   "are here stay usable");
	cut(s);
	s->broken_ns = clock_mono_ns();
}

static int ask(struct shd *s)
{
	int err = shd_nic_renew(&s->nic, &s->ends);

	if (err)
		return err;
	s->is_asking = true;
	shd_lead_connect(s->lead, &s->ends);
	return 0;
}

static void connect_switch(struct shd *s, const struct shd_place *place)
{
	s->is_asking = false;
	s->term = place->term;
	s->broken_ns = 0;
	if (shd_nic_connect(&s->nic, place, &s->ends)) {
		shd_fail(s, error_last());
		return;
	}
	if (s->is_member)
		shd_count(s, SHD_C_terms);
	s->is_member = true;
	s->cache.machine = place->number;
	coh_cache_connect(&s->cache, place->term, place->was_member, &s->out);
	shd_act(s, -1);
}

static void expelled(struct shd *s)
{
	coh_cache_expelled(&s->cache, &s->out);
	s->out.count = 0; /* all of it is cut */
	shd_fail(s, "the rack went on without this machine");
}

void shd_member_news(struct shd *s)
{
	struct shd_news n;

	shd_lead_news(s->lead, &n);
	if (s->is_over)
		return;
	if (n.is_stale) {
		expelled(s);
		return;
	}
	s->sent_ns = u64_max(s->sent_ns, n.sent_ns);
	atomic_store_explicit(&s->keeper->sent_ns, s->sent_ns,
			      memory_order_relaxed);
	s->lead_err = n.err;
	/* Without it, segments in what was added cannot be opened here. */
	if (n.size_bytes && shd_table_grow(s, n.size_bytes) &&
	    !s->is_table_full) {
		log_warn("shared", "%s", error_last());
		s->is_table_full = true;
	}
	if (n.has_place && s->is_asking) {
		connect_switch(s, &n.place);
		return;
	}
	/* The lead has connected us, and its answer was lost: what the switch
	 * has for us is of no use. */
	if (s->is_asking && s->is_member && n.err == -EEXIST)
		shd_fail(s, "the lead's answer was lost");
	if (!n.term || s->is_asking || !s->is_member || s->is_over)
		return;
	if (n.term != s->term) {
		log_warn("shared", "the switch was restarted");
		cut(s);
		if (ask(s))
			shd_fail(s, error_last());
	} else if (s->broken_ns && clock_mono_ns() - s->broken_ns > BROKEN_NS) {
		/* For the switch it is as if this machine had died. */
		shd_fail(s, "a connection to the switch has failed");
	}
}

void shd_member_lease(struct shd *s, uint64_t now_ns)
{
	bool must_stop =
		s->is_member && coh_lease_must_stop(s->sent_ns, now_ns);

	if (s->is_over || must_stop == s->cache.suspended)
		return;
	/* KEEP-1, pairs with is_overdue of the keeper: the beat that lets us go
	 * on is there before. */
	if (!must_stop)
		atomic_store_explicit(&s->keeper->is_hidden, false,
				      memory_order_release);
	if (must_stop) {
		log_warn("shared", "no word from the lead: programs wait");
		shd_count(s, SHD_C_hidden);
		coh_cache_suspend(&s->cache, &s->out);
	} else {
		coh_cache_resume(&s->cache, &s->out);
	}
	shd_act(s, -1);
	if (must_stop && !s->is_over)
		atomic_store_explicit(&s->keeper->is_hidden, true,
				      memory_order_relaxed);
}

int shd_member_start(struct shd *s)
{
	uint64_t until_ns = clock_mono_ns() + JOIN_MS * (uint64_t)MS;
	int err = ask(s);

	if (!err)
		err = shd_lead_start(s->lead);
	while (!err && !s->is_member && !s->is_over) {
		struct pollfd p[2] = {
			{.fd = shd_lead_fd(s->lead), .events = POLLIN},
			{.fd = s->daemon->signal_fd, .events = POLLIN}};

		(void)poll(p, 2, 100);
		shd_member_news(s);
		if (daemon_is_ending(s->daemon, 0))
			return error_set(-EINTR, "ended by a signal");
		if (!s->is_member && clock_mono_ns() > until_ns)
			err = error_set(s->lead_err ? s->lead_err : -EHOSTDOWN,
					"the lead does not take this machine: "
					"is there a switch with the program "
					"coherence?");
	}
	return err || !s->is_over ? err : -EIO;
}

bool shd_member_drain(struct shd *s)
{
	uint64_t until_ns = clock_mono_ns() + DRAIN_MS * (uint64_t)MS;

	s->is_draining = true;
	while (!s->is_drained && !s->is_over && clock_mono_ns() < until_ns)
		if (!shd_turn(s))
			shd_sleep(s, MS);
	return s->is_drained;
}
