/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random arrivals: one Poisson process for the whole cluster, then who, whom,
 * what and how much. The same seed gives the same arrivals to every protocol.
 */
#include "edm_workload.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "edm_sizes.h"

#define ZIPF_THETA 0.99

struct edm_workload {
	struct edm_config c;
	struct rng r;
	double at_ps;
	double gap_ps;
	double *zipf; /* cumulative */
	struct edm_arrival *trace;
	uint64_t trace_count, trace_next;
};

/* Blocks of the busier direction: data, its grants, its notification. In the
 * paper's chunks whatever this run's are: all of them get the same arrivals. */
static double port_blocks(const struct edm_config *c, enum edm_op op,
			  uint32_t bytes)
{
	struct edm_config plain = *c;
	uint32_t chunks, data;

	plain.chunk_bytes = EDM_CHUNK_PAPER;
	data = edm_data_blocks(&plain, op, bytes, &chunks);
	return data + edm_request_blocks(c->md, op) + (chunks - 1);
}

/* The part of all messages that the busiest port carries. */
static double share_max(const struct edm_config *c)
{
	double sum = 0;

	switch (c->pattern) {
	case EDM_PATTERN_INCAST:
		return 1;
	case EDM_PATTERN_SPLIT:
		return 2.0 / c->nodes;
	case EDM_PATTERN_SKEW:
		for (uint32_t i = 1; i <= c->nodes; i++)
			sum += pow(i, -ZIPF_THETA);
		return 1 / sum;
	case EDM_PATTERN_UNIFORM:
	case EDM_PATTERN_COUNT:
		break;
	}
	return 1.0 / c->nodes;
}

double edm_workload_gap_ps(const struct edm_config *c)
{
	double per_message_ps =
		c->load_is_payload
			? edm_sizes_mean(c) * (double)edm_block_ps(c->gbps) / 8
			: edm_sizes_expect(c, port_blocks) *
				  (double)edm_block_ps(c->gbps);

	return per_message_ps * share_max(c) / c->load;
}

double edm_workload_payload_load(const struct edm_config *c)
{
	return edm_sizes_mean(c) * (double)edm_block_ps(c->gbps) / 8 *
	       share_max(c) / edm_workload_gap_ps(c);
}

static int zipf_fill(struct edm_workload *w)
{
	double sum = 0;

	w->zipf = malloc(w->c.nodes * sizeof(*w->zipf));
	if (!w->zipf)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->c.nodes; i++)
		w->zipf[i] = sum += pow(i + 1, -ZIPF_THETA);
	for (uint32_t i = 0; i < w->c.nodes; i++)
		w->zipf[i] /= sum;
	return 0;
}

int edm_workload_create(const struct edm_config *c, struct edm_workload **out)
{
	struct edm_workload *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return -ENOMEM;
	w->c = *c;
	rng_init_stream(&w->r, c->seed, 1);
	if (c->trace)
		rc = edm_trace_read(c->trace, c->nodes, &w->trace,
				    &w->trace_count);
	else
		w->gap_ps = edm_workload_gap_ps(c);
	if (!rc && c->pattern == EDM_PATTERN_SKEW)
		rc = zipf_fill(w);
	if (rc) {
		edm_workload_destroy(w);
		return rc;
	}
	*out = w;
	return 0;
}

void edm_workload_destroy(struct edm_workload *w)
{
	if (!w)
		return;
	free(w->trace);
	free(w->zipf);
	free(w);
}

uint64_t edm_workload_count(const struct edm_workload *w)
{
	return w->c.trace ? w->trace_count : UINT64_MAX;
}

static uint16_t peer_of(struct edm_workload *w, uint16_t src)
{
	uint32_t n = w->c.nodes;

	return (uint16_t)((src + 1 + rng_below(&w->r, n - 1)) % n);
}

static void ends_draw(struct edm_workload *w, struct edm_arrival *a)
{
	uint32_t n = w->c.nodes, low = 0, high = n - 1;
	double u;

	switch (w->c.pattern) {
	case EDM_PATTERN_INCAST:
		a->dst = 0;
		a->src = (uint16_t)(1 + rng_below(&w->r, n - 1));
		return;
	case EDM_PATTERN_SPLIT:
		a->src = (uint16_t)rng_below(&w->r, n / 2);
		a->dst = (uint16_t)(n / 2 + rng_below(&w->r, n / 2));
		return;
	case EDM_PATTERN_SKEW:
		u = rng_double(&w->r);
		while (low < high) {
			uint32_t mid = (low + high) / 2;

			if (w->zipf[mid] < u)
				low = mid + 1;
			else
				high = mid;
		}
		a->dst = (uint16_t)low;
		a->src = peer_of(w, a->dst);
		return;
	case EDM_PATTERN_UNIFORM:
	case EDM_PATTERN_COUNT:
		break;
	}
	a->src = (uint16_t)rng_below(&w->r, n);
	a->dst = peer_of(w, a->src);
}

bool edm_workload_next(struct edm_workload *w, struct edm_arrival *out)
{
	uint32_t kind;

	if (w->c.trace) {
		if (w->trace_next == w->trace_count)
			return false;
		*out = w->trace[w->trace_next++];
		return true;
	}
	w->at_ps += -log(1 - rng_double(&w->r)) * w->gap_ps;
	out->at_ps = (uint64_t)w->at_ps;
	ends_draw(w, out);
	kind = (uint32_t)rng_below(&w->r, 1000000);
	out->op = kind < w->c.write_ppm			 ? EDM_WRITE
		  : kind < w->c.write_ppm + w->c.rmw_ppm ? EDM_RMW
							 : EDM_READ;
	out->bytes = edm_sizes_draw(&w->c, out->op, &w->r);
	return true;
}
