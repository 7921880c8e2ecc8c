/* SPDX-License-Identifier: Apache-2.0 */
/* Puts into a store whose blocks have one copy, and two on two nodes. Both
 * nodes are on the server's core. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "elastic_bench.h"

enum {
	KEYS = 1024,
};

struct puts {
	struct aq_ekv *kv;
	unsigned at;
	char value[ELASTIC_VALUE];
};

static int step_put(void *ctx)
{
	struct puts *p = ctx;
	char key[16];
	int len = snprintf(key, sizeof(key), "k%u", p->at++ % KEYS);

	return aq_ekv_put(p->kv, key, (size_t)len, p->value, ELASTIC_VALUE,
			  AQ_EKV_ANY, NULL);
}

static int step_get(void *ctx)
{
	struct puts *p = ctx;
	char key[16], got[ELASTIC_VALUE];
	int len = snprintf(key, sizeof(key), "k%u", p->at++ % KEYS);
	size_t got_bytes;

	return aq_ekv_get(p->kv, key, (size_t)len, got, sizeof(got), &got_bytes,
			  NULL);
}

static int run_puts(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	return elastic_step_for(step_put, ctx, 1, window_ms, t, round);
}

static int run_gets(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	return elastic_step_for(step_get, ctx, 1, window_ms, t, round);
}

/* With all its keys. */
static int make_store(struct elastic_bed *bed, unsigned copies, struct puts *p)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW,
				       .copies = copies};
	char path[32];
	int err;

	elastic_bed_name(bed, path);
	memset(p->value, 'a', sizeof(p->value));
	err = aq_ekv_open(bed->rack, path, &o, &p->kv);
	for (unsigned i = 0; i < KEYS && !err; i++)
		err = step_put(p);
	return err;
}

static void add_paper(struct bench *b, const struct conduct_group *g,
		      const struct conduct_track *t, json_t *row)
{
	bool is_put = strncmp(t->desc->name, "put", 3) == 0;
	bool is_one = t->desc->name[strlen(t->desc->name) - 1] == '1';

	if (is_put)
		(void)json_object_set_new(row, "paper",
					  json_integer(is_one ? 109 : 238));
}

int elastic_bench_chain(struct bench *b, struct elastic_bed *bed)
{
	struct puts p[2] = {{0}, {0}};
	const struct elastic_run runs[] = {
		{{.name = "put_copies2",
		  .what = "a put, on two nodes; paper in us"},
		 run_puts,
		 &p[1],
		 false},
		{{.name = "put_copies1", .what = "the same on one"},
		 run_puts,
		 &p[0],
		 false},
		{{.name = "get_copies2", .what = "a get, from the last copy"},
		 run_gets,
		 &p[1],
		 false},
		{{.name = "get_copies1", .what = "the same of one"},
		 run_gets,
		 &p[0],
		 false},
	};
	int err = elastic_bed_second(bed);

	for (unsigned i = 0; i < 2 && !err; i++)
		err = make_store(bed, i + 1, &p[i]);
	if (!err)
		err = elastic_turns(b, bed, "chain", runs, ARRAY_LEN(runs),
				    add_paper);
	aq_ekv_close(p[0].kv);
	aq_ekv_close(p[1].kv);
	return err;
}
