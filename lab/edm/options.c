/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a run's options. */
#include "edm_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum kind {
	KIND_FLAG, /* bool, no value */
	KIND_U32,
	KIND_U64,
	KIND_REAL,     /* double */
	KIND_FRACTION, /* 0..1 to parts per million */
	KIND_NS32,     /* nanoseconds to uint32_t ps */
	KIND_NS64,
	KIND_NAME, /* one of a list, to an enum */
	KIND_TEXT,
};

enum {
	NAMES_MAX = 8
};

static const struct row {
	const char *name;
	enum kind kind;
	size_t at;
	const char *help;
	const char *names[NAMES_MAX];
} rows[] = {
#define AT(field) offsetof(struct edm_config, field)
	{"fabric",
	 KIND_NAME,
	 AT(proto),
	 "which fabric",
	 {"edm", "ird", "pfabric", "pfc", "dctcp", "cxl", "fastpass"}},
	{"nodes", KIND_U32, AT(nodes), "2..1024 (144)", {0}},
	{"gbps", KIND_U32, AT(gbps), "10..800 (100)", {0}},
	{"load", KIND_REAL, AT(load), "of the busiest port (0.8)", {0}},
	{"payload-load",
	 KIND_FLAG,
	 AT(load_is_payload),
	 "--load counts payload bytes only",
	 {0}},
	{"messages", KIND_U64, AT(messages), "warm-up included (100000)", {0}},
	{"warmup", KIND_FRACTION, AT(warmup_ppm), "not counted (0.2)", {0}},
	{"seed", KIND_U64, AT(seed), "of all chance (1)", {0}},
	{"sizes",
	 KIND_NAME,
	 AT(sizes),
	 "distribution (fixed)",
	 {"fixed", "hadoop", "spark", "sparksql", "graphlab", "memcached",
	  "ycsb"}},
	{"size",
	 KIND_U32,
	 AT(fixed_bytes),
	 "bytes of fixed messages (64)",
	 {0}},
	{"pattern",
	 KIND_NAME,
	 AT(pattern),
	 "who with whom (uniform)",
	 {"uniform", "incast", "skew", "split"}},
	{"writes", KIND_FRACTION, AT(write_ppm), "the rest are reads (1)", {0}},
	{"rmw", KIND_FRACTION, AT(rmw_ppm), "compare-and-swaps (0)", {0}},
	{"trace",
	 KIND_TEXT,
	 AT(trace),
	 "file: id,src,dst,bytes,start_s[,R|W]",
	 {0}},
	{"latency",
	 KIND_NAME,
	 AT(latency),
	 "full, sched or hops (full)",
	 {"full", "sched", "hops"}},
	{"framing",
	 KIND_NAME,
	 AT(framing),
	 "of rivals (payload)",
	 {"payload", "wire"}},
	{"asic", KIND_FLAG, AT(asic), "switch at 3 GHz", {0}},
	{"memory-ns",
	 KIND_NS32,
	 AT(mem_ps),
	 "memory access of a read (0)",
	 {0}},
	{"discipline",
	 KIND_NAME,
	 AT(discipline),
	 "of EDM's matching (async)",
	 {"async", "slot", "reserve", "pim"}},
	{"policy",
	 KIND_NAME,
	 AT(policy),
	 "fcfs, srpt or pair (fcfs)",
	 {"fcfs", "srpt", "pair"}},
	{"md",
	 KIND_NAME,
	 AT(md),
	 "memory data blocks (data)",
	 {"data", "control", "bare"}},
	{"chunk", KIND_U32, AT(chunk_bytes), "bytes of a grant (256)", {0}},
	{"active",
	 KIND_U32,
	 AT(active_max),
	 "X, notifications a pair (3)",
	 {0}},
	{"channels",
	 KIND_U32,
	 AT(channels),
	 "ordered channels a pair (1)",
	 {0}},
	{"batch",
	 KIND_U32,
	 AT(batch_bytes),
	 "bytes under one notification (0)",
	 {0}},
	{"nest",
	 KIND_FLAG,
	 AT(nest),
	 "requests may stand inside other messages",
	 {0}},
	{"pim-iterations", KIND_U32, AT(pim_iterations), "of a round (8)", {0}},
	{"pim-ns",
	 KIND_NS32,
	 AT(pim_iteration_ps),
	 "of one iteration (1)",
	 {0}},
	{"age-cap-ns",
	 KIND_NS64,
	 AT(age_cap_ps),
	 "SRPT: then oldest first",
	 {0}},
	{"ip-load",
	 KIND_FRACTION,
	 AT(ip_load_ppm),
	 "frames beside it (0)",
	 {0}},
	{"loss", KIND_FRACTION, AT(loss_ppm), "of control blocks (0)", {0}},
	{"timer-ns", KIND_NS64, AT(timer_ps), "then ask again (never)", {0}},
	{"retries",
	 KIND_U32,
	 AT(read_retries),
	 "of a read, then NULL (3)",
	 {0}},
	{"mirror", KIND_FLAG, AT(mirror), "second switch", {0}},
	{"mirror-skew-ns",
	 KIND_NS32,
	 AT(mirror_skew_ps),
	 "cables of the second switch differ up to (0)",
	 {0}},
	{"fail-switch-ns",
	 KIND_NS64,
	 AT(fail_switch_ps),
	 "the first switch dies then",
	 {0}},
	{"fail-link-ns",
	 KIND_NS64,
	 AT(fail_link_ps),
	 "link of --fail-port is disabled then",
	 {0}},
	{"fail-node-ns",
	 KIND_NS64,
	 AT(fail_node_ps),
	 "node --fail-port dies then",
	 {0}},
	{"fail-port", KIND_U32, AT(fail_port), "(0)", {0}},
	{"published",
	 KIND_FLAG,
	 AT(published),
	 "rivals' thresholds as published, not scaled to this network",
	 {0}},
	{"cxl-credits",
	 KIND_U32,
	 AT(cxl_credits),
	 "flits of a buffer (128)",
	 {0}},
	{"cxl-voq", KIND_FLAG, AT(cxl_voq), "no head-of-line blocking", {0}},
	{"cxl-fifo",
	 KIND_FLAG,
	 AT(cxl_fifo),
	 "hosts send message after message, not in turns",
	 {0}},
	{"fastpass-free",
	 KIND_FLAG,
	 AT(fastpass_free),
	 "arbiter with an unlimited link",
	 {0}},
#undef AT
};

static const struct row *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

bool edm_option_known(const char *name, bool *takes_value)
{
	const struct row *r = find(name);

	if (r)
		*takes_value = r->kind != KIND_FLAG;
	return r != NULL;
}

static int bad(const char *name, const char *value, const char *why)
{
	return error_set(-EINVAL, "--%s: '%s' %s", name, value, why);
}

static int name_set(const struct row *r, const char *value, void *field)
{
	for (unsigned i = 0; i < NAMES_MAX && r->names[i]; i++) {
		if (strcmp(r->names[i], value))
			continue;
		/* All enums of the table are unsigned ints to the compiler. */
		*(unsigned *)field = i;
		return 0;
	}
	return bad(r->name, value, "is none of its names");
}

static int number(const struct row *r, const char *value, double max,
		  double *out)
{
	char *end;

	errno = 0;
	*out = strtod(value, &end);
	if (end == value || *end || errno || !isfinite(*out))
		return bad(r->name, value, "is no number");
	if (*out < 0 || *out > max)
		return bad(r->name, value, "is out of range");
	return 0;
}

static int whole(const struct row *r, const char *value, double v)
{
	return v == floor(v) ? 0 : bad(r->name, value, "is no whole number");
}

int edm_option_set(struct edm_config *c, const char *name, const char *value)
{
	const struct row *r = find(name);
	void *field;
	double v = 0;
	int rc = 0;

	if (!r)
		return error_set(-EINVAL, "--%s: no such option", name);
	field = (char *)c + r->at;
	switch (r->kind) {
	case KIND_FLAG:
		*(bool *)field = true;
		return 0;
	case KIND_TEXT:
		*(const char **)field = value;
		return 0;
	case KIND_NAME:
		return name_set(r, value, field);
	case KIND_U32:
		rc = number(r, value, UINT32_MAX, &v);
		rc = rc ? rc : whole(r, value, v);
		if (!rc)
			*(uint32_t *)field = (uint32_t)v;
		return rc;
	case KIND_U64:
		rc = number(r, value, 9e15, &v);
		rc = rc ? rc : whole(r, value, v);
		if (!rc)
			*(uint64_t *)field = (uint64_t)v;
		return rc;
	case KIND_REAL:
		return number(r, value, 1e12, field);
	case KIND_FRACTION:
		rc = number(r, value, 1, &v);
		if (!rc)
			*(uint32_t *)field = (uint32_t)lround(v * 1e6);
		return rc;
	case KIND_NS32:
		rc = number(r, value, 4e6, &v);
		if (!rc)
			*(uint32_t *)field = (uint32_t)lround(v * 1000);
		return rc;
	case KIND_NS64:
		rc = number(r, value, 1e12, &v);
		if (!rc)
			*(uint64_t *)field = (uint64_t)llround(v * 1000);
		return rc;
	}
	return -EINVAL;
}

void edm_options_help(FILE *f)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		fprintf(f, "  --%-16s %s", r->name, r->help);
		for (unsigned k = 0; k < NAMES_MAX && r->names[k]; k++)
			fprintf(f, "%s%s", k ? "|" : ": ", r->names[k]);
		fputc('\n', f);
	}
}
