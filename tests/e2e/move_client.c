/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that uses a region or an index while its node is emptied:
 * move_client region|index NAME STOPFILE. It writes and reads back until the
 * file is there, and ends with 1 as soon as something that was acknowledged is
 * not what it reads. A write without an answer may be there or not. Says
 * "ready" when it has begun, and what it did at the end. Knows only the public
 * headers.
 */
#include <aquifer/aquifer.h>
#include <aquifer/index.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	THREADS = 2,
	CELLS = 8, /* of each thread */
	CELL_STRIDE = 128 << 10,
	COUNTER_AT = 4096,
	BLOCK_BYTES = 24 << 10, /* that a cell is the first word of */
	KEYS = 64,
	DEADLINE_MS = 60000,
};

struct shared {
	const char *name, *stop;
	struct aq_rack *rack;
	struct aq_region *region;
	atomic_uint begun;
	_Atomic uint64_t added, unknown_adds;
};

struct worker {
	struct shared *s;
	unsigned number;
	int result;
	uint64_t writes, unknown;
	uint64_t acked[CELLS]; /* the last value that was */
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %d: %s (%s)\n", what, err, aq_last_error(),
		aq_strerror(err));
	return 1;
}

static uint64_t cell_at(const struct worker *w, unsigned i)
{
	return (uint64_t)(1 + i * THREADS + w->number) * CELL_STRIDE;
}

/* A block whose every word is the value. */
static int write_cell(struct worker *w, unsigned i, uint64_t *block,
		      uint64_t value)
{
	for (unsigned k = 0; k < BLOCK_BYTES / 8; k++)
		block[k] = value;
	return aq_write(w->s->region, cell_at(w, i), block, BLOCK_BYTES);
}

static int check_cell(struct worker *w, unsigned i, uint64_t *block,
		      bool may_be_next)
{
	int err = aq_read(w->s->region, cell_at(w, i), block, BLOCK_BYTES);
	uint64_t next = w->acked[i] + 1;

	if (err)
		return fail("read", err);
	for (unsigned k = 0; k < BLOCK_BYTES / 8; k++)
		if (block[k] != w->acked[i] &&
		    !(may_be_next && block[k] == next)) {
			fprintf(stderr,
				"cell %u: word %u is %" PRIu64 ", not %" PRIu64
				"\n",
				i, k, block[k], w->acked[i]);
			return 1;
		}
	return 0;
}

static int turn(struct worker *w, unsigned i, uint64_t *block)
{
	uint64_t old;
	int err = write_cell(w, i, block, w->acked[i] + 1);
	bool is_unknown = err == -EHOSTDOWN;

	if (err && !is_unknown)
		return fail("write", err);
	if (!err)
		w->acked[i]++;
	w->unknown += is_unknown;
	w->writes++;
	if (check_cell(w, i, block, is_unknown))
		return 1;
	/* Once more, so that it is known again. */
	if (is_unknown) {
		err = write_cell(w, i, block, w->acked[i] + 1);
		if (err)
			return fail("write again", err);
		w->acked[i]++;
	}
	err = aq_faa(w->s->region, COUNTER_AT, 1, &old);
	if (err && err != -EHOSTDOWN)
		return fail("add", err);
	atomic_fetch_add_explicit(err ? &w->s->unknown_adds : &w->s->added, 1,
				  memory_order_relaxed);
	return 0;
}

static void *region_main(void *arg)
{
	struct worker *w = arg;
	uint64_t *block = malloc(BLOCK_BYTES);

	w->result = block ? 0 : 1;
	for (unsigned i = 0; !w->result && access(w->s->stop, F_OK);
	     i = (i + 1) % CELLS) {
		w->result = turn(w, i, block);
		if (i + 1 == CELLS)
			atomic_fetch_or_explicit(&w->s->begun, 1u << w->number,
						 memory_order_relaxed);
	}
	for (unsigned i = 0; !w->result && i < CELLS; i++)
		w->result = check_cell(w, i, block, false);
	free(block);
	return NULL;
}

static int value_of(struct worker *w, unsigned i, char *text, size_t bytes)
{
	return snprintf(text, bytes, "%u-%u-%" PRIu64, w->number, i,
			w->acked[i % CELLS]);
}

/* A client of the index of its own; each key is one thread's. */
static int index_turn(struct worker *w, struct aq_index_client *c, unsigned i)
{
	char key[16], value[48], got[48];
	size_t len = 0;
	int err, n;

	w->acked[i % CELLS]++;
	(void)snprintf(key, sizeof(key), "k%u-%03u", w->number, i);
	n = value_of(w, i, value, sizeof(value));
	/* -ESTALE: it may be there or not; the same value once more. */
	while ((err = aq_index_put(c, key, strlen(key), value, (size_t)n)) ==
	       -ESTALE)
		w->unknown++;
	if (err)
		return fail("put", err);
	w->writes++;
	err = aq_index_get(c, key, strlen(key), got, sizeof(got), &len);
	if (err)
		return fail("get", err);
	if (len == (size_t)n && memcmp(got, value, len) == 0)
		return 0;
	fprintf(stderr, "%s is %.*s, not %s\n", key, (int)len, got, value);
	return 1;
}

static void *index_main(void *arg)
{
	struct worker *w = arg;
	struct aq_index_client *c = NULL;
	struct aq_index *x = NULL;
	int err = aq_index_open(w->s->rack, w->s->name, &x);

	if (!err)
		err = aq_index_client_open(x, NULL, &c);
	if (err)
		w->result = fail("open", err);
	for (unsigned i = 0; !w->result && access(w->s->stop, F_OK);
	     i = (i + 1) % KEYS) {
		w->result = index_turn(w, c, i);
		if (i + 1 == KEYS)
			atomic_fetch_or_explicit(&w->s->begun, 1u << w->number,
						 memory_order_relaxed);
	}
	aq_index_client_close(c);
	aq_index_close(x);
	return NULL;
}

static int run(struct shared *s, void *(*body)(void *))
{
	struct worker w[THREADS] = {0};
	pthread_t thread[THREADS];
	uint64_t writes = 0, unknown = 0;
	int result = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.s = s, .number = i};
		if (pthread_create(&thread[i], NULL, body, &w[i]))
			return fail("thread", 0);
	}
	while (atomic_load_explicit(&s->begun, memory_order_relaxed) !=
		       (1u << THREADS) - 1 &&
	       access(s->stop, F_OK))
		(void)usleep(10000);
	printf("ready\n");
	(void)fflush(stdout);
	for (unsigned i = 0; i < THREADS; i++) {
		(void)pthread_join(thread[i], NULL);
		result |= w[i].result;
		writes += w[i].writes;
		unknown += w[i].unknown;
	}
	printf("%" PRIu64 " writes, %" PRIu64 " without an answer\n", writes,
	       unknown);
	return result;
}

static int use_region(struct shared *s)
{
	uint64_t count = 0, least, most;
	int err = aq_region_open(s->rack, s->name, 0, &s->region);

	if (err)
		return fail("open", err);
	if (run(s, region_main))
		return 1;
	err = aq_read(s->region, COUNTER_AT, &count, sizeof(count));
	if (err)
		return fail("read", err);
	least = atomic_load_explicit(&s->added, memory_order_relaxed);
	most = least +
	       atomic_load_explicit(&s->unknown_adds, memory_order_relaxed);
	printf("%" PRIu64 " adds, %" PRIu64 " to %" PRIu64 " are right\n",
	       count, least, most);
	aq_region_close(s->region);
	return count < least || count > most;
}

int main(int argc, char **argv)
{
	struct shared s = {0};
	int result, err;

	if (argc != 4)
		return 2;
	s.name = argv[2];
	s.stop = argv[3];
	err = aq_rack_open(NULL, &s.rack);
	if (!err)
		err = aq_rack_set_deadline(s.rack, DEADLINE_MS);
	if (err)
		return fail("rack", err);
	result = strcmp(argv[1], "index") == 0 ? run(&s, index_main)
					       : use_region(&s);
	aq_rack_close(s.rack);
	return result;
}
