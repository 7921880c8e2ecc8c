/* SPDX-License-Identifier: Apache-2.0 */
/* On which node pages are put, and how many are where. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/node_bind.h"
#include "base/size.h"
#include "numa.h"
#include "pager_priv.h"
#include "uffd.h"

enum {
	/* Of the slow pages, one part may be in sample buffers: with a
	 * threshold of a second, all of them are looked at in about a minute,
	 * as Linux does. */
	SAMPLE_PART = 64,
	SAMPLES_MAX = 256, /* buffers: 64 MiB */
	/* After a batch of which nothing could be demoted. */
	PAUSE_NS = 100000000,
};

/* Between changes of the threshold. Linux takes a minute; samples of ours are
 * of the whole of the slow node in each second. */
#define PERIOD_NS 5000000000ull

/* ---- beginning and end --------------------------------------------------- */

/* What is wrong with a tier's node; NULL: nothing. */
static const char *find_fault(enum tier t, const struct tier_spec_node *n)
{
	bool is_only = run_numa_count() == 1;
	uint64_t has;

	if (run_numa_bytes(n->node, &has) != 0)
		return !is_only ? "is none of this machine, or has no memory"
		       : t == TIER_SLOW
			       ? "is none of this machine, which has one node "
				 "only and so no slow tier"
			       : "is none of this machine, which has one node "
				 "only";
	if (!node_is_allowed(n->node))
		return "is not allowed to this process, see cpuset(7)";
	/* Of the only node /sys may not know all. */
	return n->bytes > has && !is_only ? "has less memory than that" : NULL;
}

int run_tiers_check(const struct run_options *options, char *text,
		    size_t text_bytes)
{
	for (unsigned t = TIER_TOP; t < TIER_FAR; t++) {
		const struct tier_spec_node *n = &options->tiers.spec.at[t];
		const char *fault = n->bytes ? find_fault(t, n) : NULL;

		if (!fault)
			continue;
		(void)snprintf(text, text_bytes,
			       "--tier %s=%s@%" PRIu32 ": NUMA node %" PRIu32
			       " %s",
			       tier_word(t), SIZE_TEXT(n->bytes), n->node,
			       n->node, fault);
		return -EINVAL;
	}
	return 0;
}

static uint32_t sample_buffers(const struct tiers *t,
			       const struct tier_promote_rule *rule)
{
	uint64_t pages = t->fill[TIER_SLOW].limit_pages / SAMPLE_PART;

	/* Far more than may be promoted in a second is sampled in vain. */
	pages = u64_min(pages, 4 * rule->limit_pages) / RUN_BATCH_PAGES;
	return (uint32_t)u64_max(1, u64_min(pages, SAMPLES_MAX));
}

static enum run_guard open_guard(struct tiers *t, uint64_t peak_bytes_s)
{
	uint32_t node = t->node[TIER_TOP];
	int err = bandwidth_open(&t->bandwidth, &bandwidth_roots, node);

	if (err && peak_bytes_s)
		(void)fprintf(stderr,
			      "aquifer: run: --top-peak has no effect: the "
			      "kernel does not count what node %" PRIu32
			      " moves (no resctrl is mounted)\n",
			      node);
	if (!peak_bytes_s)
		peak_bytes_s = bandwidth_promised(&bandwidth_roots, node);
	tier_guard_init(&t->guard, err ? 0 : peak_bytes_s);
	/* A counter is only believed to be one when it was read. */
	return peak_bytes_s || err ? RUN_GUARD_NO_COUNTER : RUN_GUARD_NO_PEAK;
}

/* Buffers are on the larger node; and what may be here too much for a moment is
 * on top, where most pages come. */
static void divide(struct tiers *t, uint64_t slack, uint64_t buffer_pages)
{
	struct tier_fill *top = &t->fill[TIER_TOP], *slow = &t->fill[TIER_SLOW];
	bool top_is_larger = top->limit_pages > slow->limit_pages;
	struct tier_fill *large = top_is_larger ? top : slow;

	t->share_node = t->node[top_is_larger ? TIER_TOP : TIER_SLOW];
	large->limit_pages -= u64_min(buffer_pages, large->limit_pages / 2);
	top->limit_pages -= u64_min(slack, top->limit_pages / 2);
}

int run_tiers_open(struct pager *p, uint32_t buffers)
{
	const struct run_tiers *o = &p->options.tiers;
	struct tier_promote_rule rule = tier_promote_rule_of(o->promote_mb);
	struct tiers *t = &p->tiers;
	uint32_t samples = 0;

	rule.period_ns = PERIOD_NS;
	t->has_slow = o->spec.at[TIER_SLOW].bytes != 0;
	/* With one node there is nothing to choose. */
	t->is_on = o->spec.at[TIER_TOP].bytes &&
		   (t->has_slow || run_numa_count() > 1);
	if (!t->is_on)
		return 0;
	t->ratio = o->ratio;
	t->aim = TIER_FAR;
	for (unsigned i = TIER_TOP; i < TIER_FAR; i++) {
		t->node[i] = o->spec.at[i].node;
		t->fill[i].limit_pages = o->spec.at[i].bytes >> RUN_PAGE_SHIFT;
	}
	t->promotes = t->has_slow && o->promote_mb;
	if (t->promotes)
		samples = sample_buffers(t, &rule);
	divide(t, p->policy.slack_pages,
	       (uint64_t)(buffers + samples) * RUN_BATCH_PAGES);
	p->policy.limit_pages =
		t->fill[TIER_TOP].limit_pages + t->fill[TIER_SLOW].limit_pages;
	tier_promote_init(&t->promote, &rule, clock_mono_ns());
	if (t->promotes)
		show(&p->stats->guard, open_guard(t, o->peak_bytes_s));
	t->zeros = mmap(NULL, RUN_ZERO_WINDOW_MAX * RUN_PAGE_BYTES, PROT_READ,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return t->zeros == MAP_FAILED ? -ENOMEM : (int)samples;
}

void run_tiers_close(struct pager *p)
{
	struct tiers *t = &p->tiers;

	if (!t->is_on)
		return;
	bandwidth_close(&t->bandwidth);
	if (t->zeros != MAP_FAILED)
		(void)munmap(t->zeros, RUN_ZERO_WINDOW_MAX * RUN_PAGE_BYTES);
}

/* ---- pages that come ----------------------------------------------------- */

void run_tiers_aim_at(struct pager *p, enum tier aim)
{
	struct tiers *t = &p->tiers;

	/* A failure leaves the choice to the kernel: the page is where it is
	 * not expected, but it is there. */
	if (t->aim != aim)
		(void)!node_prefer_thread(t->node[aim]);
	t->aim = aim;
}

/* `fill`: as it will be when the pages before are here. */
static unsigned aim(struct pager *p, struct space *s, uint64_t page, unsigned n,
		    struct tier_fill fill[TIER_FAR])
{
	const struct tier_ratio *r = &p->tiers.ratio;
	enum tier first =
		tier_place(r, &fill[TIER_TOP], &fill[TIER_SLOW], page);
	unsigned i = 0;

	do {
		s->pages.page[page + i++].is_slow = first == TIER_SLOW;
		fill[first].pages++;
	} while (i < n && tier_place(r, &fill[TIER_TOP], &fill[TIER_SLOW],
				     page + i) == first);
	run_tiers_aim_at(p, first);
	return i;
}

unsigned run_tiers_aim(struct pager *p, struct space *s, uint64_t page,
		       unsigned n)
{
	struct tier_fill fill[TIER_FAR] = {p->tiers.fill[TIER_TOP],
					   p->tiers.fill[TIER_SLOW]};

	return aim(p, s, page, n, fill);
}

int run_tiers_zero(struct pager *p, struct space *s, uint64_t page, unsigned n)
{
	struct tier_fill fill[TIER_FAR] = {p->tiers.fill[TIER_TOP],
					   p->tiers.fill[TIER_SLOW]};
	unsigned done = 0;

	/* What is new is likely to be hot, and no sample has seen it yet. So it
	 * takes of what top may have too much, less than what keeps pages from
	 * being promoted and more than what begins to demote others. */
	if (p->tiers.promotes)
		fill[TIER_TOP].limit_pages += p->policy.slack_pages / 4 * 3;
	while (done < n) {
		unsigned run = aim(p, s, page + done, n - done, fill);
		int got = run_uffd_copy(s->uffd, run_space_addr(s, page + done),
					p->tiers.zeros, run);

		if (got < 0)
			return done ? (int)done : got;
		done += (unsigned)got;
		if ((unsigned)got < run)
			break;
	}
	return (int)done;
}

/* ---- accounts ------------------------------------------------------------ */

bool run_tiers_is_over(const struct pager *p)
{
	const struct tiers *t = &p->tiers;
	const struct tier_fill *top = &t->fill[TIER_TOP];
	struct tier_fill slow = t->fill[TIER_SLOW];

	slow.pages += t->demoting;
	return t->has_slow &&
	       top->pages >
		       top->limit_pages + t->demoting +
			       (t->promotes ? p->policy.slack_pages / 2 : 0) &&
	       tier_demote(TIER_TOP, &slow) == TIER_SLOW &&
	       clock_mono_ns() >= t->demote_ns;
}

void run_tiers_demoted(struct pager *p, struct space *s,
		       const struct leaving *l, const struct run_outcome *o)
{
	struct tiers *t = &p->tiers;
	uint64_t moved = 0;

	t->demoting -= l->count;
	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		/* Else it is not the page that it was. */
		if (!e->is_demoted)
			continue;
		e->is_demoted = 0;
		if (o->failed >> i & 1) {
			run_policy_stayed(e, false);
			continue;
		}
		if (run_set_has(&s->pages.resident, l->page[i])) {
			run_tiers_count(t, e, -1);
			e->is_slow = 1;
			run_tiers_count(t, e, 1);
		}
		e->is_slow = 1;
		moved++;
	}
	count(&p->stats->demoted, moved);
	if (!moved)
		t->demote_ns = clock_mono_ns() + PAUSE_NS;
	s->is_rooted |= o->refused != 0;
	run_tiers_show(p);
}

void run_tiers_show(struct pager *p)
{
	const struct tiers *t = &p->tiers;

	show(&p->stats->top_pages, t->fill[TIER_TOP].pages);
	show(&p->stats->slow_pages, t->fill[TIER_SLOW].pages);
	show_peak(&p->stats->top_peak, t->fill[TIER_TOP].pages);
	show_peak(&p->stats->slow_peak, t->fill[TIER_SLOW].pages);
}
