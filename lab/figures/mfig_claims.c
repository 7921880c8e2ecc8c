/* SPDX-License-Identifier: Apache-2.0 */
/* What MIND's paper says, with the bounds in which ours counts as the same. */
#include <stdio.h>

#include "mfig_plan.h"

#define SCALES(app, system, bound_least, bound_most, note)                     \
	{                                                                      \
		"threads", "ten threads over one", "kops", app " " system, 10, \
			app " " system, 1, 10, bound_least, bound_most, "x",   \
			note                                                   \
	}
#define LINEAR(app, system) \
	SCALES(app, system, 8.5, 0, "published: nearly linear")
#define GAM_STOPS(app)                                 \
	SCALES(app, "GAM-like", 0, 7,                  \
	       "published: to 4 threads; its lock is " \
	       "made from that")
#define GROWS(app, system, from, to, published, least, most, note)           \
	{                                                                    \
		"machines", #to " machines over " #from, "kops",             \
			app " " system, to, app " " system, from, published, \
			least, most, "x", note                               \
	}
#define BESIDE(app, a, b, published, least, most, note)                     \
	{                                                                   \
		"machines", "eight machines, " a " over " b, "kops",        \
			app " " a, 8, app " " b, 8, published, least, most, \
			"x", note                                           \
	}
#define TAKES(what, series, x, published, note)                        \
	{                                                              \
		"transitions", what, "latency_us", series, x, NULL, 0, \
			published, 0, published, "us", note            \
	}
#define PAGES(what, series, x, least, most, note)                         \
	{                                                                 \
		"sharing", what, "kops", series, x, NULL, 0, 1000, least, \
			most, "pages/ms", note                            \
	}
#define USES(app, least, most, note)                                         \
	{                                                                    \
		"directory", "entries of the directory", "use", app " MIND", \
			8, NULL, 0, 0, least, most, "%", note                \
	}
#define STAYS(app, placement, note)                                           \
	{                                                                     \
		"rules", "rules, 80 threads over 10", "rules",                \
			app " " placement, 80, app " " placement, 10, 1, 0.9, \
			1.1, "x", note                                        \
	}
#define RULES(app, placement, note)                                           \
	{                                                                     \
		"rules", "rules, 80 threads", "rules", app " " placement, 80, \
			NULL, 0, 2000, 0, 2000, "", note                      \
	}
#define EVEN(app)                                                             \
	{                                                                     \
		"rules", "Jain's index, 80 threads", "jain", app " MIND", 80, \
			NULL, 0, 1, 0.95, 0, "", ""                           \
	}
#define FALSE_OVER(app, what, x, static_x, published, most)                  \
	{                                                                    \
		"splitting", what, "false_invals", app " dynamic", x,        \
			app " static", static_x, published, 0, most, "x", "" \
	}

const struct figure_claim mfig_claims[] = {
	LINEAR("TF", "MIND"),
	LINEAR("GC", "MIND"),
	LINEAR("M_A", "MIND"),
	LINEAR("M_C", "MIND"),
	LINEAR("TF", "swap"),
	LINEAR("GC", "swap"),
	LINEAR("M_A", "swap"),
	LINEAR("M_C", "swap"),
	GAM_STOPS("TF"),
	GAM_STOPS("GC"),
	GAM_STOPS("M_A"),
	GAM_STOPS("M_C"),
	GROWS("TF", "MIND", 1, 8, 4.66, 3.375, 0, "1.67 for each doubling"),
	BESIDE("TF", "MIND", "GAM-like", 59, 29.5, 0, ""),
	GROWS("GC", "MIND", 1, 2, 0, 1, 0, "published: best at two"),
	GROWS("GC", "MIND", 2, 8, 0, 0, 1, "published: best at two"),
	GROWS("M_A", "MIND", 1, 8, 0, 0, 1, "published: not beyond one"),
	GROWS("M_C", "MIND", 1, 8, 0, 0, 1, "published: not beyond one"),
	BESIDE("GC", "PSO+", "GAM-like", 1, 0.5, 2, "published: about"),
	BESIDE("M_A", "PSO+", "GAM-like", 1, 0.5, 2, "published: about"),
	BESIDE("M_C", "PSO+", "GAM-like", 1, 0.5, 2, "published: about"),
	BESIDE("TF", "MIND", "at node", 0, 1, 0, "not published"),
	BESIDE("GC", "MIND", "at node", 0, 1, 0, "not published"),
	BESIDE("M_A", "MIND", "at node", 0, 1, 0, "not published"),
	{"kvs", "80 threads over 10", "kops", "KVS C MIND", 80, "KVS C MIND",
	 10, 8, 6.4, 0, "x", "published: linear"},
	{"kvs", "80 threads over 10", "kops", "KVS A MIND", 80, "KVS A MIND",
	 10, 1, 0.5, 2, "x", "published: flat"},
	TAKES("I to S", "MIND", 1, 9, "the fault's cost is made from it"),
	TAKES("S to S", "MIND", 2, 9, ""),
	TAKES("I to M", "MIND", 3, 9, ""),
	TAKES("S to M", "MIND", 4, 9, ""),
	TAKES("S of seven to M", "MIND", 7, 9, ""),
	TAKES("S of seven to M", "no stalls", 7, 9, ""),
	TAKES("M to S", "MIND", 5, 18, ""),
	TAKES("M to M", "MIND", 6, 18, ""),
	PAGES("only read, shared", "100 % reads", 100, 500, 4000,
	      "published: 1 to 2 million a second"),
	PAGES("only read, private", "100 % reads", 0, 500, 4000,
	      "published: 1 to 2 million a second"),
	PAGES("only written, private", "0 % reads", 0, 500, 4000,
	      "published: 1 to 2 million a second"),
	{"sharing", "only read over only written, shared", "kops",
	 "100 % reads", 100, "0 % reads", 100, 10, 5, 20, "x", ""},
	USES("TF", 0, 90, "published: well below 30 thousand"),
	USES("GC", 0, 90, "published: well below 30 thousand"),
	USES("M_A", 95, 100, "published: all of 30 thousand"),
	USES("M_C", 95, 100, "published: all of 30 thousand"),
	STAYS("TF", "MIND", ""),
	STAYS("GC", "MIND", ""),
	STAYS("M", "MIND", ""),
	RULES("TF", "MIND", ""),
	RULES("GC", "MIND", ""),
	RULES("M", "MIND", ""),
	{"rules", "rules, 80 threads over 10", "rules", "TF 2 MB pages", 80,
	 "TF 2 MB pages", 10, 8, 7.2, 8.8, "x", "published: linear"},
	EVEN("TF"),
	EVEN("GC"),
	EVEN("M"),
	{"rules", "Jain's index, 10 threads", "jain", "TF 1 GB pages", 10, NULL,
	 0, 0, 0, 0.95, "", "published: poor"},
	FALSE_OVER("TF", "false invalidations, from 16 KB over 16 KB", 16, 16,
		   2.43, 2.5),
	FALSE_OVER("TF", "false invalidations, from 16 KB over 2 MB", 16, 2048,
		   0.26, 0.5),
	FALSE_OVER("TF", "false invalidations, from 2 MB over 16 KB", 2048, 16,
		   4.09, 8.2),
	FALSE_OVER("GC", "false invalidations, from 16 KB over 16 KB", 16, 16,
		   1.44, 2.5),
	FALSE_OVER("GC", "false invalidations, from 16 KB over 2 MB", 16, 2048,
		   0.51, 0.5),
	{"epochs", "false invalidations, 30 ms over 1 ms", "false_invals", "TF",
	 30, "TF", 1, 1.31, 0.5, 2, "x", "published: 100 windows over 1"},
	{"epochs", "false invalidations, 30 ms over 1 ms", "false_invals", "GC",
	 30, "GC", 1, 0.95, 0.5, 2, "x", "published: 100 windows over 1"},
};

STATIC_ASSERT(ARRAY_LEN(mfig_claims) == MFIG_CLAIMS, "how many claims");

/* The bound of bounded splitting, c N (1 + log2 M) for N regions of M pages:
 * with the c that the paper chooses it is the number of entries. */
void mfig_judge_splitting(struct figure_run *r)
{
	static const char *const series[] = {"TF dynamic", "GC dynamic"};
	static const double at[] = {16, 2048};

	for (unsigned i = 0; i < 4; i++) {
		const void *row =
			figure_find(r, NULL, series[i / 2], at[i % 2]);
		char what[96];

		if (!row)
			continue;
		snprintf(what, sizeof(what), "%s from %.0f KB: entries used",
			 series[i / 2], at[i % 2]);
		figure_claim_add(r,
				 &(struct figure_claim){
					 .what = what,
					 .most = 100,
					 .unit = "%",
					 .note = "the bound c N (1 + log2 M)"},
				 100 * figure_value(r, row, "use"));
	}
}
