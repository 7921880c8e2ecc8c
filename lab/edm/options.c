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

static const struct row {
	const char *name;
	enum kind kind;
	size_t at;
	const char *help;
	const char *names; /* "a|b|c" */
} rows[] = {
#define AT(field) offsetof(struct edm_config, field)
	{"fabric", KIND_NAME, AT(proto), "which fabric",
	 "edm|ird|pfabric|pfc|dctcp|cxl|fastpass"},
	{"nodes", KIND_U32, AT(nodes), "2..1024 (144)", NULL},
	{"gbps", KIND_U32, AT(gbps), "10..800 (100)", NULL},
	{"load", KIND_REAL, AT(load), "of the busiest port (0.8)", NULL},
	{"payload-load", KIND_FLAG, AT(load_is_payload),
	 "--load counts payload bytes only", NULL},
	{"messages", KIND_U64, AT(messages), "warm-up included (100000)", NULL},
	{"warmup", KIND_FRACTION, AT(warmup_ppm), "not counted (0.2)", NULL},
	{"seed", KIND_U64, AT(seed), "of all chance (1)", NULL},
	{"sizes", KIND_NAME, AT(sizes), "distribution (fixed)",
	 "fixed|hadoop|spark|sparksql|graphlab|memcached|ycsb"},
	{"size", KIND_U32, AT(fixed_bytes), "bytes of fixed messages (64)",
	 NULL},
	{"pattern", KIND_NAME, AT(pattern), "who with whom (uniform)",
	 "uniform|incast|skew|split"},
	{"writes", KIND_FRACTION, AT(write_ppm), "the rest are reads (1)",
	 NULL},
	{"rmw", KIND_FRACTION, AT(rmw_ppm), "compare-and-swaps (0)", NULL},
	{"trace", KIND_TEXT, AT(trace), "file: id,src,dst,bytes,start_s[,R|W]",
	 NULL},
	{"latency", KIND_NAME, AT(latency), "full, sched or hops (full)",
	 "full|sched|hops"},
	{"framing", KIND_NAME, AT(framing), "of rivals (payload)",
	 "payload|wire"},
	{"asic", KIND_FLAG, AT(asic), "switch at 3 GHz", NULL},
	{"memory-ns", KIND_NS32, AT(mem_ps), "memory access of a read (0)",
	 NULL},
	{"discipline", KIND_NAME, AT(discipline), "of EDM's matching (async)",
	 "async|slot|reserve|pim"},
	{"policy", KIND_NAME, AT(policy), "fcfs, srpt or pair (fcfs)",
	 "fcfs|srpt|pair"},
	{"md", KIND_NAME, AT(md), "memory data blocks (data)",
	 "data|control|bare"},
	{"chunk", KIND_U32, AT(chunk_bytes), "bytes of a grant (256)", NULL},
	{"active", KIND_U32, AT(active_max), "X, notifications a pair (3)",
	 NULL},
	{"channels", KIND_U32, AT(channels), "ordered channels a pair (1)",
	 NULL},
	{"batch", KIND_U32, AT(batch_bytes), "bytes under one notification (0)",
	 NULL},
	{"nest", KIND_FLAG, AT(nest),
	 "requests may stand inside other messages", NULL},
	{"pim-iterations", KIND_U32, AT(pim_iterations), "of a round (8)",
	 NULL},
	{"pim-ns", KIND_NS32, AT(pim_iteration_ps), "of one iteration (1)",
	 NULL},
	{"age-cap-ns", KIND_NS64, AT(age_cap_ps), "SRPT: then oldest first",
	 NULL},
	{"ip-load", KIND_FRACTION, AT(ip_load_ppm), "frames beside it (0)",
	 NULL},
	{"loss", KIND_FRACTION, AT(loss_ppm), "of control blocks (0)", NULL},
	{"timer-ns", KIND_NS64, AT(timer_ps), "then ask again (never)", NULL},
	{"retries", KIND_U32, AT(read_retries), "of a read, then NULL (3)",
	 NULL},
	{"mirror", KIND_FLAG, AT(mirror), "second switch", NULL},
	{"mirror-skew-ns", KIND_NS32, AT(mirror_skew_ps),
	 "cables of the second switch differ up to (0)", NULL},
	{"fail-switch-ns", KIND_NS64, AT(fail_switch_ps),
	 "the first switch dies then", NULL},
	{"fail-link-ns", KIND_NS64, AT(fail_link_ps),
	 "link of --fail-port is disabled then", NULL},
	{"fail-node-ns", KIND_NS64, AT(fail_node_ps),
	 "node --fail-port dies then", NULL},
	{"fail-port", KIND_U32, AT(fail_port), "(0)", NULL},
	{"published", KIND_FLAG, AT(published),
	 "rivals' thresholds as published, not scaled to this network", NULL},
	{"cxl-credits", KIND_U32, AT(cxl_credits), "flits of a buffer (128)",
	 NULL},
	{"cxl-voq", KIND_FLAG, AT(cxl_voq), "no head-of-line blocking", NULL},
	{"cxl-fifo", KIND_FLAG, AT(cxl_fifo),
	 "hosts send message after message, not in turns", NULL},
	{"fastpass-free", KIND_FLAG, AT(fastpass_free),
	 "arbiter with an unlimited link", NULL},
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
	size_t n = strlen(value);
	unsigned i = 0;

	for (const char *name = r->names; name; i++) {
		size_t length = strcspn(name, "|");

		if (n == length && !strncmp(name, value, n)) {
			/* All enums of the table are unsigned ints to the
			 * compiler. */
			*(unsigned *)field = i;
			return 0;
		}
		name = name[length] ? name + length + 1 : NULL;
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

/* Whole numbers, or what becomes one by its scale. */
static const struct {
	double most, scale;
	bool is_wide;
} numbers[] = {
	[KIND_U32] = {UINT32_MAX, 1, false}, [KIND_U64] = {9e15, 1, true},
	[KIND_FRACTION] = {1, 1e6, false},   [KIND_NS32] = {4e6, 1000, false},
	[KIND_NS64] = {1e12, 1000, true},
};

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
	case KIND_REAL:
		return number(r, value, 1e12, field);
	case KIND_U32:
	case KIND_U64:
	case KIND_FRACTION:
	case KIND_NS32:
	case KIND_NS64:
		break;
	}
	rc = number(r, value, numbers[r->kind].most, &v);
	if (!rc && numbers[r->kind].scale == 1 && v != floor(v))
		rc = bad(r->name, value, "is no whole number");
	v = round(v * numbers[r->kind].scale);
	if (!rc && numbers[r->kind].is_wide)
		*(uint64_t *)field = (uint64_t)v;
	else if (!rc)
		*(uint32_t *)field = (uint32_t)v;
	return rc;
}

void edm_options_help(FILE *f)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		fprintf(f, "  --%-16s %s%s%s\n", r->name, r->help,
			r->names ? ": " : "", r->names ? r->names : "");
	}
}
