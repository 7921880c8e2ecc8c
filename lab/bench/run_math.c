/* SPDX-License-Identifier: Apache-2.0 */
/* Works on points and graphs. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run_bench.h"

/* ---- k-means ------------------------------------------------------------ */

enum {
	DIMS = 16,
	CENTRES = 8,
	KMEANS_ROUNDS = 5,
	EDGES = 16, /* per vertex */
	RANK_ROUNDS = 5,
	BETWEEN_SOURCES = 1,
	NEAR = 512, /* vertices on either side */
};

struct means {
	float centre[CENTRES][DIMS];
	float sum[CENTRES][DIMS];
	uint64_t count[CENTRES];
};

static unsigned nearest(const struct means *m, const float *point)
{
	float best = 0;
	unsigned at = 0;

	for (unsigned c = 0; c < CENTRES; c++) {
		float d = 0;

		for (unsigned k = 0; k < DIMS; k++) {
			float x = point[k] - m->centre[c][k];

			d += x * x;
		}
		if (c == 0 || d < best) {
			best = d;
			at = c;
		}
	}
	return at;
}

static void kmeans_round(struct means *m, const float *points, uint64_t n,
			 uint8_t *of)
{
	memset(m->sum, 0, sizeof(m->sum));
	memset(m->count, 0, sizeof(m->count));
	for (uint64_t i = 0; i < n; i++) {
		const float *p = points + i * DIMS;
		unsigned c = nearest(m, p);

		of[i] = (uint8_t)c;
		m->count[c]++;
		for (unsigned k = 0; k < DIMS; k++)
			m->sum[c][k] += p[k];
	}
	for (unsigned c = 0; c < CENTRES; c++)
		for (unsigned k = 0; k < DIMS && m->count[c]; k++)
			m->centre[c][k] = m->sum[c][k] / (float)m->count[c];
}

uint64_t run_kmeans(const struct run_work *w)
{
	uint64_t n = w->bytes / (DIMS * sizeof(float));
	float *points = malloc(n * DIMS * sizeof(float));
	uint8_t *of = malloc(n);
	struct means m = {0};
	struct rng r;
	uint64_t ns = 0, total = 0;

	rng_init(&r, w->seed);
	if (points && of && n > CENTRES) {
		for (uint64_t i = 0; i < n * DIMS; i++)
			points[i] = (float)(rng_u64(&r) >> 40);
		memcpy(m.centre, points, sizeof(m.centre));
		ns = bench_now_ns();
		for (unsigned i = 0; i < KMEANS_ROUNDS; i++)
			kmeans_round(&m, points, n, of);
		ns = bench_now_ns() - ns;
		for (unsigned c = 0; c < CENTRES; c++)
			total += m.count[c];
	}
	free(points);
	free(of);
	return total == n ? ns : 0;
}

/* ---- graphs ------------------------------------------------------------- */

/* Most edges lead to neighbours, and of the others many to the same few, as in
 * the web. */
struct graph {
	uint32_t vertices;
	uint32_t *to; /* EDGES per vertex */
};

static int graph_make(struct graph *g, const struct run_work *w,
		      size_t more_per_vertex)
{
	struct rng r;

	rng_init(&r, w->seed);
	g->vertices = (uint32_t)(w->bytes /
				 (EDGES * sizeof(*g->to) + more_per_vertex));
	g->to = malloc((size_t)g->vertices * EDGES * sizeof(*g->to));
	if (!g->to || g->vertices < 2 * NEAR)
		return -1;
	for (uint64_t i = 0; i < (uint64_t)g->vertices * EDGES; i++) {
		uint64_t v = rng_below(&r, g->vertices);

		v = i % EDGES ? (i / EDGES + g->vertices + v % (2 * NEAR) -
				 NEAR) % g->vertices
			      : v * v / g->vertices;
		g->to[i] = (uint32_t)v;
	}
	return 0;
}

static void rank_round(const struct graph *g, const double *rank, double *next)
{
	for (uint32_t v = 0; v < g->vertices; v++)
		next[v] = 0.15 / g->vertices;
	for (uint32_t v = 0; v < g->vertices; v++) {
		double part = 0.85 * rank[v] / EDGES;

		for (unsigned k = 0; k < EDGES; k++)
			next[g->to[(uint64_t)v * EDGES + k]] += part;
	}
}

uint64_t run_pagerank(const struct run_work *w)
{
	struct graph g = {0};
	double *rank = NULL, *next = NULL, sum = 0;
	uint64_t ns = 0;

	if (graph_make(&g, w, 2 * sizeof(double)) == 0) {
		rank = malloc(g.vertices * sizeof(*rank));
		next = malloc(g.vertices * sizeof(*next));
	}
	if (rank && next) {
		for (uint32_t v = 0; v < g.vertices; v++)
			rank[v] = 1.0 / g.vertices;
		ns = bench_now_ns();
		for (unsigned i = 0; i < RANK_ROUNDS; i++) {
			double *t = rank;

			rank_round(&g, rank, next);
			rank = next;
			next = t;
		}
		ns = bench_now_ns() - ns;
		for (uint32_t v = 0; v < g.vertices; v++)
			sum += rank[v];
	}
	free(rank);
	free(next);
	free(g.to);
	return sum > 0.999 && sum < 1.001 ? ns : 0;
}

/* Brandes' algorithm, per vertex: */
struct between {
	double paths, share, score;
	uint32_t distance; /* 0: not reached */
	uint32_t order;	   /* a queue of vertices, by place */
};

/* Breadth first; how many were reached. */
static uint32_t spread(const struct graph *g, struct between *b, uint32_t from)
{
	uint32_t tail = 1;

	for (uint32_t v = 0; v < g->vertices; v++)
		b[v].paths = b[v].share = b[v].distance = 0;
	b[from].paths = b[from].distance = 1;
	b[0].order = from;
	for (uint32_t head = 0; head < tail; head++) {
		uint32_t v = b[head].order;

		for (unsigned k = 0; k < EDGES; k++) {
			uint32_t u = g->to[(uint64_t)v * EDGES + k];

			if (!b[u].distance) {
				b[u].distance = b[v].distance + 1;
				b[tail++].order = u;
			}
			if (b[u].distance == b[v].distance + 1)
				b[u].paths += b[v].paths;
		}
	}
	return tail;
}

static void gather(const struct graph *g, struct between *b, uint32_t reached)
{
	for (uint32_t i = reached; i-- > 0;) {
		uint32_t v = b[i].order;

		for (unsigned k = 0; k < EDGES; k++) {
			uint32_t u = g->to[(uint64_t)v * EDGES + k];

			if (b[u].distance == b[v].distance + 1)
				b[v].share += b[v].paths / b[u].paths *
					      (1 + b[u].share);
		}
		b[v].score += b[v].share;
	}
}

uint64_t run_between(const struct run_work *w)
{
	struct graph g = {0};
	struct between *b = NULL;
	uint64_t ns = 0;
	double sum = 0;

	if (graph_make(&g, w, sizeof(*b)) == 0)
		b = calloc(g.vertices, sizeof(*b));
	if (b) {
		ns = bench_now_ns();
		for (uint32_t i = 0; i < BETWEEN_SOURCES; i++)
			gather(&g, b, spread(&g, b, i * 7919 % g.vertices));
		ns = bench_now_ns() - ns;
		for (uint32_t v = 0; v < g.vertices; v++)
			sum += b[v].score;
	}
	free(b);
	free(g.to);
	return sum > 0 ? ns : 0;
}
