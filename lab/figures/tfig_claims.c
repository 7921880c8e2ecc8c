/* SPDX-License-Identifier: Apache-2.0 */
/* What the chapter on CXL states in numbers. A factor holds if it is within a
 * quarter of what was published. */
#include <stdio.h>

#include "tfig.h"

#define LOW(v)	((v)*0.75)
#define HIGH(v) ((v)*1.25)
#define INPUT	"the model is made of it"
/* Nothing runs: the value cannot change, so it is no claim. */
#define ARITHMETIC "arithmetic on published numbers"

#define LADDER(name, idle, read, mixed, even, write)                           \
	{"ladder", "idle latency", "idle_ns", name, 0,	  NULL,                \
	 0,	   idle,	   0,	      0,    "ns", INPUT},              \
		{"ladder", "peak, reads", "peak_gbs", name, 0,	    NULL,      \
		 0,	   read,	  0,	      0,    "GB/s", INPUT},    \
		{"ladder", "peak, 2:1", "peak_gbs", name, 1,	  NULL,        \
		 0,	   mixed,	0,	    0,	  "GB/s", INPUT},      \
		{"ladder", "peak, 1:1", "peak_gbs", name, 2,	  NULL,        \
		 0,	   even,	0,	    0,	  "GB/s", INPUT},      \
	{                                                                      \
		"ladder", "peak, writes", "peak_gbs", name, 3, NULL, 0, write, \
			0, 0, "GB/s", INPUT                                    \
	}

#define KNEE(name, mix, x)                                                   \
	{                                                                    \
		"knee", "knee, of its peak, " mix, "knee", name, x, NULL, 0, \
			75, LOW(75.0), 100, "%", "published: 75 to 83"       \
	}

/* Slower than everything in main memory, by this factor. */
#define SLOWER(series, w, x, published, least, most, note)                 \
	{                                                                  \
		"keydb", "slower than MMEM, YCSB " w ": " series, "kops",  \
			"MMEM", x, series, x, published, least, most, "x", \
			note                                               \
	}
#define KEYDB(w, x)                                                           \
	SLOWER("promotion", w, x, 1, 0.99, 1.25, "published: about as fast"), \
		SLOWER("3:1", w, x, 1.2, 1, HIGH(1.5),                        \
		       "published: 1.2 to "                                   \
		       "1.5"),                                                \
		SLOWER("1:1", w, x, 1.2, 1, HIGH(1.5),                        \
		       "published: 1.2 to 1.5"),                              \
		SLOWER("1:3", w, x, 1.5, LOW(1.5), HIGH(1.5),                 \
		       "published: 1.2 to 1.5"),                              \
		SLOWER("SSD 0.2", w, x, 1.8, LOW(1.8), HIGH(1.8),             \
		       "published: about"),                                   \
		SLOWER("SSD 0.4", w, x, 1.8, LOW(1.8), HIGH(1.8),             \
		       "published: about"),                                   \
	{                                                                     \
		"keydb", "SSD slower than interleaving, YCSB " w, "kops",     \
			"1:1", x, "SSD 0.2", x, 1.55, LOW(1.55), HIGH(1.55),  \
			"x", ""                                               \
	}

#define SPARK(series)                                                          \
	{                                                                      \
		"spark", "slower than three servers: " series, "kops", "MMEM", \
			0, series, 0, 1.4, LOW(1.4), HIGH(9.8), "x",           \
			"published: 1.4 to 9.8, by query"                      \
	}

#define GUARD(what, series, under, x)                                    \
	{                                                                \
		"guard", what, "gbs", series, x, under, x, 0, 1, 0, "x", \
			"asked for by the chapter, measured by nobody"   \
	}

const struct figure_claim tfig_claims[] = {
	LADDER("local", 97, 67, 61, 60, 55),
	LADDER("remote", 131, 70, 43, 38, 34.5),
	LADDER("CXL", 250, 48, 54, 54, 47),
	LADDER("remote CXL", 485, 20.3, 20.7, 21.5, 27.7),
	KNEE("local", "reads", 0),
	KNEE("local", "2:1", 1),
	KNEE("local", "1:1", 2),
	KNEE("local", "writes", 3),
	KNEE("CXL", "reads", 0),
	KNEE("CXL", "2:1", 1),
	KNEE("CXL", "1:1", 2),
	KNEE("CXL", "writes", 3),
	KEYDB("A", 0),
	KEYDB("B", 1),
	KEYDB("C", 2),
	KEYDB("D", 3),
	{"keydb-cxl", "throughput", "kops", "CXL", 2, "MMEM", 2, 0.875, 0, 0,
	 "x", "keydb_milli_misses was fitted to it"},
	{"keydb-cxl", "latency", "latency_us", "CXL", 2, "MMEM", 2, 1.09, 1.09,
	 1.27, "x", "published: 1.09 to 1.27"},
	SPARK("3:1"),
	SPARK("1:1"),
	SPARK("1:3"),
	{"spark", "promotion slower than three servers", "kops", "MMEM", 0,
	 "promotion", 0, 1.34, 1.34, 0, "x", "published: more than"},
	{"spark", "promotion slower than interleaving", "kops", "1:1", 0,
	 "promotion", 0, 0, 1, 0, "x", "published in words: thrash"},
	{"spark", "spill slower than interleaving", "kops", "1:1", 0,
	 "spill 320 GB", 0, 0, 2, 0, "x", "published in words: far slower"},
	{"spark", "spill slower than interleaving", "kops", "1:1", 0,
	 "spill 500 GB", 0, 0, 2, 0, "x", "published in words: far slower"},
	{"llm", "bandwidth, 24 threads", "gbs", "weights only", 24, NULL, 0,
	 24.2, 0, 0, "GB/s", "llm_line_ps was fitted to it"},
	{"llm", "bandwidth, one backend", "gbs", "MMEM", 12, NULL, 0, 21, 0, 0,
	 "GB/s", "llm_kv_line_ps was fitted to it"},
	{"llm", "84 over 48 threads", "gbs", "MMEM", 84, "MMEM", 48, 1, 0,
	 HIGH(1.0), "x", "published: flat from 48"},
	{"llm", "60 threads", "gbs", "3:1", 60, "MMEM", 60, 1.95, LOW(1.95),
	 HIGH(1.95), "x", ""},
	{"llm", "72 threads", "gbs", "1:3", 72, "MMEM", 72, 1.14, 1, HIGH(1.14),
	 "x", "published: beyond 64 threads"},
	{"llm", "84 threads", "gbs", "1:3", 84, "MMEM", 84, 1.14, 1, HIGH(1.14),
	 "x", "published: beyond 64 threads"},
	{"vm", "gain of revenue, 20 % discount", "revenue", "CXL at a discount",
	 20, NULL, 0, 26.7, 0, 0, "%", ARITHMETIC "; it prints 26.77"},
	{"cost", "servers, Rc 8", "servers", "Rd 10, C 2, Rt 1.1", 8, NULL, 0,
	 67.29, 0, 0, "%", ARITHMETIC},
	{"cost", "saving, Rc 8", "saving", "Rd 10, C 2, Rt 1.1", 8, NULL, 0,
	 25.98, 0, 0, "%", ARITHMETIC},
	GUARD("language model, 84 threads", "promotion, guarded", "promotion",
	      84),
	GUARD("language model, 48 threads", "promotion, guarded", "promotion",
	      48),
	GUARD("shuffle", "promotion, guarded", "promotion", 0),
};

STATIC_ASSERT(ARRAY_LEN(tfig_claims) == TFIG_CLAIMS, "how many claims");

/* ---- orderings ---------------------------------------------------------- */

/* Neighbours of a list, the best first, that are in order. */
static void judge_order(struct figure_run *r, const char *what,
			const char *column, const char *const *series, double x)
{
	unsigned good = 0, all = 0;
	const void *before = figure_find(r, NULL, series[0], x);

	for (unsigned i = 1; before && series[i]; i++) {
		const void *at = figure_find(r, NULL, series[i], x);

		if (!at)
			return;
		good += figure_value(r, before, column) >
			figure_value(r, at, column);
		all++;
		before = at;
	}
	if (before)
		figure_claim_add(r,
				 &(struct figure_claim){.what = what,
							.published = all,
							.least = all,
							.unit = "",
							.note = "neighbours in "
								"order"},
				 good);
}

void tfig_judge_keydb(struct figure_run *r)
{
	static const char *const best[] = {"promotion", "3:1",	   "1:1", "1:3",
					   "SSD 0.2",	"SSD 0.4", NULL};
	static const char *const names[] = {"A", "B", "C", "D"};
	char what[64];

	for (unsigned w = 0; w < ARRAY_LEN(names); w++) {
		(void)snprintf(what, sizeof(what),
			       "promotion > 3:1 > 1:1 > 1:3 > SSD, YCSB %s",
			       names[w]);
		judge_order(r, what, "kops", best, w);
	}
}

void tfig_judge_spark(struct figure_run *r)
{
	static const char *const best[] = {"MMEM", "3:1",	   "1:1",
					   "1:3",  "spill 320 GB", NULL};

	judge_order(r, "MMEM > 3:1 > 1:1 > 1:3 > spill", "kops", best, 0);
}

void tfig_judge_llm(struct figure_run *r)
{
	static const char *const mixed[] = {"3:1", "MMEM", NULL};
	static const char *const slow[] = {"1:3", "MMEM", NULL};

	judge_order(r, "3:1 > MMEM, 60 threads", "gbs", mixed, 60);
	judge_order(r, "1:3 > MMEM, 72 threads", "gbs", slow, 72);
	judge_order(r, "1:3 > MMEM, 84 threads", "gbs", slow, 84);
}

/* More writes, an earlier knee. */
void tfig_judge_knee(struct figure_run *r)
{
	static const char *const memories[] = {"local", "CXL"};
	char what[64];

	for (unsigned m = 0; m < ARRAY_LEN(memories); m++) {
		unsigned good = 0;

		for (unsigned x = 1; x < TFIG_MIXES; x++) {
			const void *a =
				figure_find(r, NULL, memories[m], x - 1);
			const void *b = figure_find(r, NULL, memories[m], x);

			if (!a || !b)
				return;
			good += figure_value(r, a, "knee") >
				figure_value(r, b, "knee");
		}
		(void)snprintf(what, sizeof(what),
			       "%s: earlier with more writes", memories[m]);
		figure_claim_add(
			r,
			&(struct figure_claim){.what = what,
					       .published = TFIG_MIXES - 1,
					       .least = TFIG_MIXES - 1,
					       .unit = "",
					       .note = "neighbours in "
						       "order"},
			good);
	}
}
