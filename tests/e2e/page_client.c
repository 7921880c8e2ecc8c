/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user of page/page_store.h: page_client MODE COPIES PAGES stores every page,
 * says "ready", and then does what the lines of its standard input say,
 * each answered by a line:
 *	verify	loads all pages: "good N missing N lost N bad N"
 *	store	stores all anew: "stored N failed N"
 *	drop	invalidates every second page: "dropped N"
 *	mix N	N random operations with their own record of what must be there
 *	rebuild	"left N", or "error NAME"
 *	stats	"used BYTES allocated BYTES moved BYTES"
 */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "page/page_store.h"

enum {
	DEPTH = 32,
	BYTES = PAGE_BYTES,
};

static struct page_store *store;
static uint64_t pages, versions[1 << 20];
static uint8_t space[DEPTH][BYTES];

static void fill(uint8_t *buf, uint64_t page)
{
	uint64_t x = page * 0x9e3779b97f4a7c15ull + versions[page];

	for (uint32_t i = 0; i < BYTES; i += 8) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(buf + i, &x, 8);
	}
}

struct tally {
	uint64_t good, missing, lost, bad;
};

static void judge(const struct page_op *op, struct tally *t)
{
	uint8_t want[BYTES];

	fill(want, op->page);
	if (op->result == -ENODATA)
		t->missing++;
	else if (op->result)
		t->lost++;
	else if (op->kind == PAGE_LOAD && memcmp(op->buf, want, BYTES) != 0)
		t->bad++;
	else
		t->good++;
}

/* All pages, or every second, DEPTH at a time. */
static struct tally sweep(enum page_kind kind, uint64_t step)
{
	static struct page_op ops[DEPTH];
	struct page_op *idle[DEPTH], *done[DEPTH];
	unsigned idle_count = DEPTH;
	struct tally t = {0};
	uint64_t page = 0;

	for (unsigned i = 0; i < DEPTH; i++) {
		ops[i].buf = space[i];
		idle[i] = &ops[i];
	}
	while (page < pages || idle_count < DEPTH) {
		int n;

		while (idle_count && page < pages) {
			struct page_op *op = idle[idle_count - 1];

			op->kind = kind;
			op->page = page;
			if (kind == PAGE_STORE)
				fill(op->buf, page);
			if (page_submit(store, &op, 1) != 1)
				break;
			idle_count--;
			page += step;
		}
		n = page_poll(store, done, DEPTH);
		for (int i = 0; i < n; i++) {
			judge(done[i], &t);
			idle[idle_count++] = done[i];
		}
	}
	return t;
}

/* Against a record of its own. */
static uint64_t mix(uint64_t count)
{
	struct rng rng;
	uint64_t wrong = 0;

	rng_init(&rng, count);
	while (count--) {
		uint64_t page = rng_below(&rng, pages);
		uint8_t buf[BYTES];
		struct page_op op = {.kind = PAGE_LOAD, .page = page};
		int err;

		switch (rng_below(&rng, 4)) {
		case 0:
			versions[page]++;
			fill(buf, page);
			wrong += page_put(store, page, buf) != 0;
			break;
		case 1:
			wrong += page_drop(store, page) != 0;
			wrong += page_get(store, page, buf) != -ENODATA;
			break;
		default:
			err = page_get(store, page, buf);
			if (err == -ENODATA) {
				wrong += page_is_stored(store, page);
				break;
			}
			op.buf = buf;
			op.result = err;
			{
				struct tally t = {0};

				judge(&op, &t);
				wrong += t.good != 1;
			}
		}
	}
	return wrong;
}

static void answer(const char *line)
{
	struct page_stats st;
	struct tally t;
	int64_t left;

	if (strncmp(line, "verify", 6) == 0) {
		t = sweep(PAGE_LOAD, 1);
		printf("good %lu missing %lu lost %lu bad %lu\n", t.good,
		       t.missing, t.lost, t.bad);
	} else if (strncmp(line, "store", 5) == 0) {
		for (uint64_t p = 0; p < pages; p++)
			versions[p]++;
		t = sweep(PAGE_STORE, 1);
		printf("stored %lu failed %lu\n", t.good, t.lost);
	} else if (strncmp(line, "drop", 4) == 0) {
		t = sweep(PAGE_INVALIDATE, 2);
		printf("dropped %lu\n", t.good);
	} else if (strncmp(line, "mix", 3) == 0) {
		printf("wrong %lu\n", mix(strtoull(line + 3, NULL, 10)));
	} else if (strncmp(line, "rebuild", 7) == 0) {
		left = page_rebuild(store, UINT64_MAX);
		if (left < 0)
			printf("error %s\n", error_name((int)left));
		else
			printf("left %ld\n", left);
	} else {
		page_store_stats(store, &st);
		printf("used %lu allocated %lu moved %lu\n",
		       st.used_pages * BYTES, st.allocated_bytes,
		       st.bytes_in + st.bytes_out);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct page_store_options o = {.depth = DEPTH};
	struct aq_rack *rack;
	struct tally t;
	char line[64];
	int err;

	if (argc != 4 || page_mode_parse(argv[1], &o.mode))
		return 2;
	o.copies = (uint32_t)atoi(argv[2]);
	o.pages = pages = u64_min(strtoull(argv[3], NULL, 10), 1 << 20);
	err = aq_rack_open(NULL, &rack);
	if (!err)
		err = page_store_open(rack, "test", &o, &store);
	if (err) {
		fprintf(stderr, "%s: %s\n", error_name(err), aq_last_error());
		return 1;
	}
	t = sweep(PAGE_STORE, 1);
	printf("ready %lu\n", t.good);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		answer(line);
	page_store_close(store);
	aq_rack_close(rack);
	return 0;
}
