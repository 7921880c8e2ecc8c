/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that shares memory with others, on this machine or another one:
 *	coherent_client NAME STEP SIDE COUNT
 * Two of them, SIDE 0 and 1, do a step together:
 *	pass	a word goes back and forth
 *	mp	message passing: who sees the flag sees the data
 *	sb	store buffering with a fence: not both see the old value
 * Alone, or as many as one likes:
 *	add	atomic additions to one word
 *	churn	writes and reads back COUNT pages, more than a cache has
 *	fetch	gets COUNT pages ahead: then it neither waits for them nor asks
 *	stream	reads COUNT pages in a row: some come before they are touched
 *	show	prints the word that is added to
 *	store	stores COUNT there, says so and waits for ever
 *	flush	the same, after a flush
 *	bare	closes all descriptors, and touches the memory: SIGBUS
 *	over	maps something else over what another one wrote: it is no longer
 *		the segment's, and the rest still is
 * And before there is one of that name:
 *	make	makes it, of COUNT copies; SIDE 1: memory's bytes count after a
 *		loss
 */
#include <aquifer/shared.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE_WORDS = 4096 / 8,
	BATCH = 64, /* litmus runs between two meetings */
	/* Pages: each thing has one of its own, 16 KiB apart, so that they are
	 * different regions of the directory. */
	AT_SUM = 0 * 4 * PAGE_WORDS,
	AT_PASS = 1 * 4 * PAGE_WORDS,
	AT_X = 2 * 4 * PAGE_WORDS,
	AT_Y = 3 * 4 * PAGE_WORDS,
	AT_SEEN = 4 * 4 * PAGE_WORDS,
	AT_MEET = 6 * 4 * PAGE_WORDS,
	AT_CHURN = 8 * 4 * PAGE_WORDS,
};

typedef _Atomic uint64_t word;

/* As a shell would say it, also where a sanitizer has a word in it. */
static void on_sigbus(int signal_number)
{
	_exit(128 + signal_number);
}

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, aq_last_error());
	return 1;
}

/* Two who look at each other must leave the processor to those who carry the
 * pages. */
static void rest(unsigned *looks)
{
	struct timespec nap = {.tv_nsec = 20000};

	if (++*looks % 64 == 0)
		(void)nanosleep(&nap, NULL);
}

static void await(word *w, uint64_t value)
{
	unsigned looks = 0;

	while (atomic_load_explicit(w, memory_order_acquire) < value)
		rest(&looks);
}

/* Both sides have come so far; numbers only grow, from step to step, too. */
static void meet(word *m, int side, uint64_t round)
{
	atomic_store_explicit(&m[AT_MEET + side * 4 * PAGE_WORDS], round,
			      memory_order_release);
	await(&m[AT_MEET + !side * 4 * PAGE_WORDS], round);
}

static void pass(word *m, int side, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		await(&m[AT_PASS], 2 * i + (uint64_t)side);
		atomic_store_explicit(&m[AT_PASS], 2 * i + (uint64_t)side + 1,
				      memory_order_release);
	}
}

/* What a processor with TSO promises without any fence; relaxed accesses are
 * plain ones, and only the compiler must keep their order. */
static int message_passing(word *m, int side, uint64_t count)
{
	uint64_t flag = 0, data, seen = 0;
	unsigned looks = 0;

	meet(m, side, 1);
	for (uint64_t i = 1; side == 0 && i <= count; i++) {
		atomic_store_explicit(&m[AT_X], i, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&m[AT_Y], i, memory_order_relaxed);
		rest(&looks); /* so that the pages move */
	}
	while (side == 1 && flag < count) {
		flag = atomic_load_explicit(&m[AT_Y], memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		data = atomic_load_explicit(&m[AT_X], memory_order_relaxed);
		if (data < flag) {
			printf("flag %llu, data %llu\n",
			       (unsigned long long)flag,
			       (unsigned long long)data);
			return 1;
		}
		seen++;
		rest(&looks);
	}
	meet(m, side, 2);
	if (side == 1)
		printf("seen %llu times\n", (unsigned long long)seen);
	return 0;
}

static int check_batch(const word *m, uint64_t round)
{
	for (int k = 0; k < BATCH; k++)
		if (m[AT_SEEN + k] != round &&
		    m[AT_SEEN + 4 * PAGE_WORDS + k] != round) {
			printf("both saw the old value in round %llu\n",
			       (unsigned long long)round);
			return 1;
		}
	return 0;
}

static int store_buffering(word *m, int side, uint64_t count)
{
	int mine = side ? AT_Y : AT_X, other = side ? AT_X : AT_Y;
	uint64_t seen[BATCH], round;
	int bad = 0;

	for (round = 1; round <= count && !bad; round++) {
		meet(m, side, 2 * round + 1);
		for (int k = 0; k < BATCH; k++) {
			atomic_store_explicit(&m[mine + k], round,
					      memory_order_relaxed);
			atomic_thread_fence(memory_order_seq_cst);
			seen[k] = atomic_load_explicit(&m[other + k],
						       memory_order_relaxed);
		}
		for (int k = 0; k < BATCH; k++)
			m[AT_SEEN + side * 4 * PAGE_WORDS + k] = seen[k];
		meet(m, side, 2 * round + 2);
		bad = check_batch(m, round);
	}
	return bad;
}

static int churn(word *m, int side, uint64_t count)
{
	for (int turn = 0; turn < 2; turn++) {
		for (uint64_t i = 0; i < count; i++)
			m[AT_CHURN + i * PAGE_WORDS + (uint64_t)side] =
				i + (uint64_t)turn;
		for (uint64_t i = 0; i < count; i++)
			if (m[AT_CHURN + i * PAGE_WORDS + (uint64_t)side] !=
			    i + (uint64_t)turn) {
				printf("page %llu is another one\n",
				       (unsigned long long)i);
				return 1;
			}
	}
	return 0;
}

/* Until so many bytes of the segment are here, and so many gets were sent. */
static int await_pages(struct aq_shared *s, uint64_t bytes, uint64_t gets,
		       struct aq_shared_info *info)
{
	do {
		(void)usleep(1000);
		if (aq_shared_stat(s, info))
			return fail("stat");
	} while (info->cached_bytes < bytes || info->gets < gets);
	return 0;
}

static int fetch(struct aq_shared *s, word *m, uint64_t count)
{
	uint64_t at = AT_CHURN * sizeof(word), bytes = count * 4096, sum = 0;
	struct aq_shared_info before, came, after;

	if (aq_shared_stat(s, &before) ||
	    aq_shared_fetch(s, at, bytes, AQ_SHARED_READ))
		return fail("fetch to read");
	if (await_pages(s, before.cached_bytes + bytes, 0, &came))
		return 1;
	for (uint64_t i = 0; i < count; i++)
		sum += m[AT_CHURN + i * PAGE_WORDS] - 1 - i;
	if (aq_shared_stat(s, &after))
		return fail("stat");
	if (sum || after.faults != came.faults) {
		printf("%llu faults, bytes are %s\n",
		       (unsigned long long)(after.faults - came.faults),
		       sum ? "wrong" : "right");
		return 1;
	}
	if (aq_shared_fetch(s, at, bytes, AQ_SHARED_WRITE))
		return fail("fetch to write");
	if (await_pages(s, 0, after.gets + count, &came))
		return 1;
	for (uint64_t i = 0; i < count; i++)
		m[AT_CHURN + i * PAGE_WORDS]++;
	if (aq_shared_stat(s, &after))
		return fail("stat");
	if (after.gets != came.gets) {
		printf("%llu gets\n",
		       (unsigned long long)(after.gets - came.gets));
		return 1;
	}
	return aq_shared_fetch(s, aq_shared_size(s), 1, AQ_SHARED_READ) == 0 ||
	       aq_shared_fetch(s, 0, 1, AQ_SHARED_NONE) == 0;
}

/* Others have written the pages, so each that is here was asked for. */
static int stream(struct aq_shared *s, const word *m, uint64_t count)
{
	struct aq_shared_info before, after;

	if (aq_shared_stat(s, &before))
		return fail("stat");
	for (uint64_t i = 0; i < count; i++) {
		if (m[AT_CHURN + i * PAGE_WORDS] != i + 1) {
			printf("page %llu is another one\n",
			       (unsigned long long)i);
			return 1;
		}
		(void)usleep(1000);
	}
	if (aq_shared_stat(s, &after))
		return fail("stat");
	if (after.gets - before.gets > after.faults - before.faults)
		return 0;
	printf("%llu gets for %llu faults\n",
	       (unsigned long long)(after.gets - before.gets),
	       (unsigned long long)(after.faults - before.faults));
	return 1;
}

static int stay(struct aq_shared *s, word *m, uint64_t value, int must_flush)
{
	m[AT_SUM] = value;
	if (must_flush && aq_shared_flush(s, 0, 4096))
		return fail("flush");
	printf("stored\n");
	(void)fflush(stdout);
	for (;;) {
		(void)usleep(10000);
		m[AT_SUM]; /* is still there */
	}
}

/* The mapping ends with its connection: an error, never zeros. */
static int bare(word *m)
{
	unsigned looks = 0;

	(void)close_range(0, ~0u, 0);
	for (uint64_t sum = m[AT_SUM]; m[AT_SUM] == sum;)
		rest(&looks);
	return 1;
}

static int over(word *m, uint64_t count)
{
	word *other = &m[AT_CHURN];

	if (m[AT_SUM] != count || *other != 1 ||
	    mmap(m, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != (void *)m)
		return 1;
	m[AT_SUM]++;
	*other += 1;
	*other -= m[AT_SUM]; /* for who comes next */
	return m[AT_SUM] != 1 || *other != 1;
}

/* Says when it has begun, for who wants to be in its way. */
static void add(word *m, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		atomic_fetch_add_explicit(&m[AT_SUM], 1, memory_order_relaxed);
		if (i == 0) {
			printf("adding\n");
			fflush(stdout);
		}
	}
}

static int step(struct aq_shared *s, const char *what, int side, uint64_t n)
{
	word *m = aq_shared_addr(s);

	if (strcmp(what, "mp") == 0)
		return message_passing(m, side, n);
	if (strcmp(what, "sb") == 0)
		return store_buffering(m, side, n);
	if (strcmp(what, "churn") == 0)
		return churn(m, side, n);
	if (strcmp(what, "stream") == 0)
		return stream(s, m, n);
	if (strcmp(what, "fetch") == 0)
		return fetch(s, m, n);
	if (strcmp(what, "store") == 0 || strcmp(what, "flush") == 0)
		return stay(s, m, n, *what == 'f');
	if (strcmp(what, "bare") == 0)
		return bare(m);
	if (strcmp(what, "over") == 0)
		return over(m, n);
	if (strcmp(what, "pass") == 0)
		pass(m, side, n);
	else if (strcmp(what, "add") == 0)
		add(m, n);
	else if (strcmp(what, "show") == 0)
		printf("%llu\n", (unsigned long long)m[AT_SUM]);
	else
		return 2;
	return 0;
}

static int make(struct aq_rack *rack, const char *name, int is_last,
		uint32_t copies)
{
	const struct aq_shared_options options = {
		.copies = copies, .flags = is_last ? AQ_SHARED_LAST : 0};
	int err = aq_shared_create_with(rack, name, 2u << 20, &options);

	aq_rack_close(rack);
	return err ? fail("make") : 0;
}

int main(int argc, char **argv)
{
	struct aq_rack *rack;
	struct aq_shared *s;
	int err;

	if (argc != 5 || signal(SIGBUS, on_sigbus) == SIG_ERR)
		return 2;
	if (aq_rack_open(NULL, &rack))
		return fail("rack");
	if (strcmp(argv[2], "make") == 0)
		return make(rack, argv[1], atoi(argv[3]),
			    (uint32_t)strtoul(argv[4], NULL, 10));
	if (aq_shared_open(rack, argv[1], 0, &s))
		return fail("open");
	err = step(s, argv[2], atoi(argv[3]), strtoull(argv[4], NULL, 10));
	aq_shared_close(s);
	aq_rack_close(rack);
	return err;
}
