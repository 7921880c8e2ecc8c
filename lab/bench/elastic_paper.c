/* SPDX-License-Identifier: Apache-2.0 */
/* One operation of each structure, and how many of them a client makes in a
 * second, beside what the paper says of Jiffy with clients on AWS Lambda. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hist.h"
#include "elastic_bench.h"
#include "ticks.h"

enum {
	OPS = 32768,
	OPS_QUICK = 512,
};

/* What is worked on; `at` counts operations. */
struct things {
	struct aq_queue *queue;
	struct aq_file *file;
	struct aq_ekv *kv;
	unsigned at;
	char value[ELASTIC_VALUE];
	char many[ELASTIC_MANY][ELASTIC_VALUE];
	char key[ELASTIC_MANY][16];
};

static int key_of(struct things *t, unsigned slot)
{
	return snprintf(t->key[slot], sizeof(t->key[slot]), "k%u",
			t->at++ % OPS_QUICK);
}

/* ---- one at a time ------------------------------------------------------- */

static int queue_put(struct things *t)
{
	return aq_queue_put(t->queue, t->value, ELASTIC_VALUE, 0);
}

static int queue_get(struct things *t)
{
	size_t len;

	return aq_queue_get(t->queue, t->many[0], ELASTIC_VALUE, &len, 0);
}

static int file_append(struct things *t)
{
	return aq_file_append(t->file, t->value, ELASTIC_VALUE, NULL);
}

static int file_read(struct things *t)
{
	uint64_t at = (uint64_t)(t->at++ % OPS_QUICK) * ELASTIC_VALUE;
	size_t got;
	int err = aq_file_read(t->file, at, t->many[0], ELASTIC_VALUE, &got);

	return !err && got != ELASTIC_VALUE ? error_set(-EIO, "a short read")
					    : err;
}

static int kv_put(struct things *t)
{
	int len = key_of(t, 0);

	return aq_ekv_put(t->kv, t->key[0], (size_t)len, t->value,
			  ELASTIC_VALUE, AQ_EKV_ANY, NULL);
}

static int kv_get(struct things *t)
{
	int len = key_of(t, 0);
	size_t got;

	return aq_ekv_get(t->kv, t->key[0], (size_t)len, t->many[0],
			  ELASTIC_VALUE, &got, NULL);
}

/* ---- sixteen at a time --------------------------------------------------- */

static void items_of(struct things *t, struct aq_item item[ELASTIC_MANY])
{
	for (unsigned i = 0; i < ELASTIC_MANY; i++)
		item[i] = (struct aq_item){t->many[i], ELASTIC_VALUE};
}

static int queue_put_many(struct things *t)
{
	struct aq_item item[ELASTIC_MANY];
	unsigned done;

	items_of(t, item);
	return aq_queue_put_many(t->queue, item, ELASTIC_MANY, 0, &done);
}

static int queue_get_many(struct things *t)
{
	struct aq_item item[ELASTIC_MANY];
	unsigned got;
	int err;

	items_of(t, item);
	err = aq_queue_get_many(t->queue, item, ELASTIC_MANY, 0, &got);
	return !err && got != ELASTIC_MANY
		       ? error_set(-EIO, "%u items came back", got)
		       : err;
}

static int file_append_many(struct things *t)
{
	struct aq_record record[ELASTIC_MANY];

	for (unsigned i = 0; i < ELASTIC_MANY; i++)
		record[i] = (struct aq_record){.data = t->many[i],
					       .len_bytes = ELASTIC_VALUE};
	return aq_file_append_many(t->file, record, ELASTIC_MANY, NULL);
}

static int kv_many(struct things *t, unsigned verb)
{
	struct aq_ekv_op ops[ELASTIC_MANY];
	int err;

	for (unsigned i = 0; i < ELASTIC_MANY; i++) {
		int len = key_of(t, i);

		ops[i] = (struct aq_ekv_op){.verb = verb,
					    .key = t->key[i],
					    .key_bytes = (uint32_t)len,
					    .value = t->many[i],
					    .value_bytes = ELASTIC_VALUE,
					    .version = AQ_EKV_ANY};
	}
	err = aq_ekv_many(t->kv, ops, ELASTIC_MANY);
	for (unsigned i = 0; i < ELASTIC_MANY && !err; i++)
		err = ops[i].error;
	return err;
}

static int kv_put_many(struct things *t)
{
	return kv_many(t, AQ_EKV_PUT);
}

static int kv_get_many(struct things *t)
{
	return kv_many(t, AQ_EKV_GET);
}

/* ---- the table ----------------------------------------------------------- */

/* In this order: what is read was written before. */
static const struct row {
	const char *name;
	int (*one)(struct things *t);
	int (*many)(struct things *t); /* NULL: there is none */
	double paper_us, paper_kops;
} rows[] = {
	{"queue_write", queue_put, queue_put_many, 96, 99},
	{"queue_read", queue_get, queue_get_many, 98, 126},
	{"file_write", file_append, file_append_many, 108, 73},
	{"file_read", file_read, NULL, 97, 97},
	{"kv_write", kv_put, kv_put_many, 105, 79},
	{"kv_read", kv_get, kv_get_many, 96, 100},
};

static int measure(struct things *t, const struct row *r, unsigned count,
		   double *us, double *kops)
{
	struct hist *h = malloc(sizeof(*h));
	uint64_t start = bench_now_ns(), before, now = start;
	int err = h ? 0 : error_set(-ENOMEM, "no memory");

	if (h)
		hist_init(h);
	for (unsigned i = 0; i < count && !err; i++) {
		before = now;
		err = r->one(t);
		now = bench_now_ns();
		hist_record(h, now - before);
	}
	if (!err) {
		*us = (double)hist_percentile(h, HIST_MEDIAN) / 1e3;
		*kops = (double)count * 1e6 / (double)(now - start);
	}
	start = bench_now_ns();
	for (unsigned i = 0; i < count && r->many && !err; i += ELASTIC_MANY)
		err = r->many(t);
	if (!err && r->many)
		*kops = (double)count * 1e6 / (double)(bench_now_ns() - start);
	free(h);
	return err;
}

static int open_all(struct elastic_bed *bed, struct things *t)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW};
	char path[32];
	int err;

	elastic_bed_name(bed, path);
	err = aq_queue_open(bed->rack, path, &o, &t->queue);
	elastic_bed_name(bed, path);
	if (!err)
		err = aq_file_open(bed->rack, path, &o, &t->file);
	elastic_bed_name(bed, path);
	if (!err)
		err = aq_ekv_open(bed->rack, path, &o, &t->kv);
	/* Their first blocks are made before they are measured. */
	if (!err)
		err = queue_put(t);
	if (!err)
		err = queue_get(t);
	if (!err)
		err = file_append(t);
	return err ? err : kv_put(t);
}

int elastic_bench_paper(struct bench *b, struct elastic_bed *bed)
{
	unsigned count = b->quick ? OPS_QUICK : OPS;
	struct things *t = calloc(1, sizeof(*t));
	double us = 0, kops = 0;
	int err = t ? open_all(bed, t) : error_set(-ENOMEM, "no memory");

	for (size_t i = 0; i < ARRAY_LEN(rows) && !err; i++) {
		const struct row *r = &rows[i];

		err = measure(t, r, count, &us, &kops);
		if (err)
			break;
		json_object_update_new(
			bench_row(
				b, "paper", r->name, us, "us",
				r->many ? "one operation of 64 bytes; kops 16 "
					  "at a time; the paper's, Jiffy"
					: "one of 64 bytes; kops one at a "
					  "time; the paper's, Jiffy"),
			json_pack("{s:f, s:f, s:f}", "kops", kops, "paper",
				  r->paper_us, "paper_kops", r->paper_kops));
	}
	if (t) {
		aq_queue_close(t->queue);
		aq_file_close(t->file);
		aq_ekv_close(t->kv);
	}
	free(t);
	return err;
}
