/* SPDX-License-Identifier: Apache-2.0 */
/* What failures cost: every row says how many messages were not delivered. */
#include "edm_figure.h"

enum {
	MESSAGES = 100000,
};

struct fault {
	const char *what;
	void (*set)(struct edm_config *c, uint64_t middle_ps);
};

static void set_none(struct edm_config *c, uint64_t middle_ps)
{
}

static void set_loss(struct edm_config *c, uint64_t middle_ps)
{
	c->loss_ppm = 1000;
	c->timer_ps = 5 * EDM_US;
}

static void set_mirror(struct edm_config *c, uint64_t middle_ps)
{
	c->mirror = true;
}

static void set_mirror_skew(struct edm_config *c, uint64_t middle_ps)
{
	c->mirror = true;
	c->mirror_skew_ps = 1000;
}

static void set_switch(struct edm_config *c, uint64_t middle_ps)
{
	set_mirror_skew(c, middle_ps);
	c->fail_switch_ps = middle_ps;
}

static void set_switch_alone(struct edm_config *c, uint64_t middle_ps)
{
	c->fail_switch_ps = middle_ps;
}

static void set_link(struct edm_config *c, uint64_t middle_ps)
{
	set_mirror_skew(c, middle_ps);
	c->fail_link_ps = middle_ps;
	c->fail_port = 7;
}

static void set_node(struct edm_config *c, uint64_t middle_ps)
{
	c->fail_node_ps = middle_ps;
	c->fail_port = 7;
	c->timer_ps = 5 * EDM_US;
}

int edm_figure_fault(const struct edm_figure_options *o)
{
	static const struct fault fault[] = {
		{"none", set_none},
		{"1 of 1,000 control blocks lost", set_loss},
		{"mirror", set_mirror},
		{"mirror, cables differ by 1 ns", set_mirror_skew},
		{"mirror, first switch dies", set_switch},
		{"no mirror, switch dies", set_switch_alone},
		{"mirror, a link is disabled", set_link},
		{"a memory node dies", set_node},
	};
	static const char *const head[] = {
		"fault",    "measured", "undelivered", "null_reads",  "mean_ns",
		"p99.9_ns", "retries",	"copies",      "copy_gap_ns", NULL};
	struct edm_jobs j;
	struct edm_table t;
	int rc;

	edm_figure_jobs(o, "fault", &j);
	for (unsigned i = 0; i < ARRAY_LEN(fault); i++) {
		struct edm_config c = o->base;
		uint64_t middle_ps;

		c.write_ppm = 500000;
		c.load = 0.6;
		c.messages = o->messages ? o->messages : MESSAGES;
		c.warmup_ppm = 0;
		middle_ps = (uint64_t)(edm_workload_gap_ps(&c) *
				       (double)c.messages / 2);
		fault[i].set(&c, middle_ps);
		(void)edm_jobs_add(&j, &c);
	}
	rc = edm_jobs_run(&j);
	edm_table_init(&t, "fault",
		       "Failures in the middle of a run: 64 B, half reads, "
		       "load 0.6. A dead node also loses what it was sending "
		       "and what was written to it",
		       head);
	for (unsigned i = 0; !rc && i < ARRAY_LEN(fault); i++) {
		const struct edm_point *p = &j.job[i].mean;

		edm_table_text(&t, "%s", fault[i].what);
		edm_table_number(&t, (double)p->measured, 0);
		edm_table_number(&t, (double)(p->measured - p->completed), 0);
		edm_table_number(&t, (double)p->nulls, 0);
		edm_table_number(&t, p->mean_ns, 1);
		edm_table_number(&t, p->p999_ns, 1);
		edm_table_number(&t, (double)p->timeouts, 0);
		edm_table_number(&t, (double)p->duplicates, 0);
		edm_table_number(&t, p->copy_gap_ns, 2);
	}
	if (!rc)
		edm_figure_emit(o, &t);
	else
		edm_table_release(&t);
	edm_jobs_release(&j);
	return rc;
}
