/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's half, row by row: what has happened, what happens, what is done,
 * and what its processes may then do with each of four pages. Two lanes.
 *
 *  R2 W2  a thread reads or writes page 2      A0 N0  answer, refusal on lane 0
 *  I0 S0  INVAL of pages 0 to 3, to none, to read; target 0; it names nothing
 *  J0     to none, and it names what lane 0 and 1 carry
 *  G2     the give-back of page 2 is complete  E2     page 2 is evicted
 *  F2     page 2 is flushed
 *  L l    EVICT of all; it is complete         C      the switch is gone
 *  K k    connected to a new one; CLEAN is complete
 *  H U    suspended, resumed                   X      expelled
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cache.h"
#include "lease.h"

enum {
	PAGES_MAX = 64,
	PAGES = 4,
	LANES = 2,
	TEXT_MAX = 2048,
};

struct bed {
	struct coh_cache cache;
	struct coh_cache_page pages[PAGES_MAX];
	struct coh_cache_lane lanes[LANES];
	struct coh_cache_job jobs[2];
	struct coh_cache_leave leaves[1];
	uint32_t seq;
	struct coh_cache_out out;
	char did[TEXT_MAX];
};

static void bed_init(struct bed *b, uint32_t pages)
{
	memset(b, 0, sizeof(*b));
	b->cache = (struct coh_cache){.pages = b->pages,
				      .lanes = b->lanes,
				      .jobs = b->jobs,
				      .leaves = b->leaves,
				      .page_count = pages,
				      .lane_count = LANES,
				      .job_count = 2,
				      .leave_count = 1};
	coh_cache_init(&b->cache);
	coh_cache_connect(&b->cache, 1, false, &b->out);
}

static void note(struct bed *b)
{
	static const char *const names[] = {"map",  "protect", "unmap", "get",
					    "give", "fin",     "evict", "clean",
					    "hide", "unhide",  "fail"};
	static const char rights[] = "-rw";

	for (uint32_t i = 0; i < b->out.count; i++) {
		const struct coh_cache_action *a = &b->out.action[i];
		size_t n = strlen(b->did);
		unsigned page = (unsigned)a->range.page;

		n += (size_t)snprintf(b->did + n, sizeof(b->did) - n, "%s%s",
				      n ? " " : "", names[a->kind]);
		if (a->kind == COH_CACHE_GET)
			snprintf(b->did + n, sizeof(b->did) - n, "%u%c.%u",
				 (unsigned)a->get.page, rights[a->get.right],
				 a->get.lane);
		else if (a->kind == COH_CACHE_MAP)
			snprintf(b->did + n, sizeof(b->did) - n, "%u%c", page,
				 rights[a->right]);
		else if (a->kind == COH_CACHE_FIN)
			snprintf(b->did + n, sizeof(b->did) - n, "%u",
				 a->fin.seq);
		else if (a->range.count)
			snprintf(b->did + n, sizeof(b->did) - n, "%u+%u", page,
				 a->range.count);
	}
}

/* ---- events from text ---------------------------------------------------- */

static void inval(struct bed *b, char kind, uint64_t target)
{
	struct coh_inval v = {.range = {0, PAGES},
			      .target = target,
			      .term = b->cache.term,
			      .seq = ++b->seq,
			      .to = kind == 'S' ? COH_READ : COH_NONE};

	for (uint8_t i = 0; kind == 'J' && i < LANES; i++)
		v.granted[i] = b->lanes[i].serial;
	coh_cache_inval(&b->cache, &v, &b->out);
}

static void play_one(struct bed *b, const char *word)
{
	struct coh_cache *c = &b->cache;
	uint8_t n = (uint8_t)(word[1] - '0');
	const struct coh_range all = {0, PAGES};
	int err;

	b->out.count = 0;
	switch (word[0]) {
	case 'R':
	case 'W':
		(void)coh_cache_touch(c, n,
				      word[0] == 'W' ? COH_WRITE : COH_READ,
				      &b->out); /* `did` shows it */
		break;
	case 'A':
		coh_cache_answer(c, n, &b->out);
		break;
	case 'N':
		coh_cache_refused(c, n, &b->out);
		break;
	case 'I':
	case 'S':
	case 'J':
		inval(b, word[0], n);
		break;
	case 'G':
		coh_cache_given(c, n, &b->out);
		break;
	case 'E':
		err = coh_cache_evict(c, n, &b->out);
		assert_true(!err == (b->out.count > 0));
		break;
	case 'F':
		err = coh_cache_flush(c, n, &b->out);
		assert_true(!err == !c->pages[n].dirty);
		break;
	case 'L':
		err = coh_cache_leave(c, &all, &b->out);
		assert_true(!err == (b->out.count > 0));
		break;
	case 'l':
		coh_cache_left(c, 0);
		break;
	case 'C':
		coh_cache_cut(c);
		break;
	case 'K':
		coh_cache_connect(c, c->term + 1, true, &b->out);
		break;
	case 'k':
		coh_cache_cleaned(c);
		break;
	case 'H':
		coh_cache_suspend(c, &b->out);
		break;
	case 'U':
		coh_cache_resume(c, &b->out);
		break;
	case 'X':
		coh_cache_expelled(c, &b->out);
		break;
	default:
		fail_msg("no such event: %s", word);
	}
	note(b);
	if (coh_cache_check(c))
		fail_msg("after %s: %s", word, coh_cache_check(c));
}

static void play(struct bed *b, const char *script)
{
	char text[TEXT_MAX];
	char *save = NULL;

	snprintf(text, sizeof(text), "%s", script);
	for (char *w = strtok_r(text, " ", &save); w;
	     w = strtok_r(NULL, " ", &save))
		play_one(b, w);
}

/* ---- the table ----------------------------------------------------------- */

#define HAS_R  "R0 A0"
#define HAS_W  "W0 A0"
#define HAS_WW "W0 A0 W1 A0"

static const struct row {
	const char *before, *event, *did, *then;
} rows[] = {
	/* Touches. */
	{"", "R0", "get0r.0", "----"},
	{"", "W0", "get0w.0", "----"},
	{"R0", "A0", "map0r", "r---"},
	{"W0", "A0", "map0w", "w---"},
	{"R0", "N0", "fail0+1", "----"},
	{HAS_R, "R0", "", "r---"},
	{HAS_W, "R0", "", "w---"},
	{HAS_R, "W0", "get0w.0", "r---"},
	{"R0", "W0", "", "----"},
	{"R0", "R1", "get1r.1", "----"},
	{"R0 R1", "R2", "", "----"},
	{"R0 R1 A1", "R2", "get2r.1", "-r--"},
	/* INVAL to none. */
	{"", "I0", "unmap0+4 fin1", "----"},
	{HAS_R, "I0", "unmap0+4 fin1", "----"},
	{HAS_W, "I0", "protect0+4 give0+1", "r---"},
	{HAS_W " I0", "G0", "unmap0+4 fin1", "----"},
	{HAS_WW, "I1", "protect0+4 give1+1 give0+1", "rr--"},
	{HAS_WW " I1", "G1", "", "rr--"},
	{HAS_WW " I1 G1", "G0", "unmap0+4 fin1", "----"},
	/* INVAL to read: pages stay. */
	{HAS_WW, "S0", "protect0+4 give0+1 give1+1", "rr--"},
	{HAS_WW " S0 G0", "G1", "fin1", "rr--"},
	{HAS_R, "S0", "fin1", "r---"},
	/* Answers that are under way. */
	{"W0", "J0", "", "----"},
	{"W0 J0", "A0", "map0w protect0+4 give0+1", "r---"},
	{"W0 J0 A0", "G0", "unmap0+4 fin1", "----"},
	{"R0 J0", "A0", "map0r unmap0+4 fin1", "----"},
	{"R0 J0", "N0", "fail0+1 unmap0+4 fin1", "----"},
	{"W0", "I0", "unmap0+4 fin1", "----"},
	{"W0 I0", "A0", "map0w", "w---"},
	/* No get beside a give-back. */
	{HAS_W " I0", "W0", "", "r---"},
	{HAS_W " I0", "R1", "get1r.0", "r---"},
	{HAS_W " E0", "W0", "", "r---"},
	{HAS_W " E0 G0", "R0", "get0r.0", "----"},
	/* Eviction. */
	{HAS_R, "E0", "unmap0+1", "----"},
	{HAS_W, "E0", "protect0+1 give0+1", "r---"},
	{HAS_W " E0", "G0", "unmap0+1", "----"},
	{HAS_W " E0", "E0", "", "r---"},
	{HAS_W " E0", "I0", "", "r---"},
	{HAS_W " E0 I0", "G0", "unmap0+1 unmap0+4 fin1", "----"},
	{HAS_W " E0 S0", "G0", "unmap0+1 fin1", "----"},
	{HAS_R " W0", "E0", "", "r---"},
	{"", "E0", "", "----"},
	/* Flushes: the page stays, to read. */
	{HAS_R, "F0", "", "r---"},
	{HAS_W, "F0", "protect0+1 give0+1", "r---"},
	{HAS_W " F0", "F0", "", "r---"},
	{HAS_W " F0", "G0", "", "r---"},
	{HAS_W " F0 G0", "F0", "", "r---"},
	{HAS_W " F0 G0", "W0", "get0w.0", "r---"},
	{HAS_W " F0 I0", "G0", "unmap0+4 fin1", "----"},
	{HAS_W " C", "F0", "", "w---"},
	/* Leaving. */
	{"", "L", "evict0+4", "----"},
	{"L", "R0", "", "----"},
	{"L l", "R0", "get0r.0", "----"},
	{HAS_R, "L", "", "r---"},
	{"R0", "L", "", "----"},
	{"L", "L", "", "----"},
	{"W0 J0", "L", "", "----"},
	/* Another switch. */
	{HAS_W " C", "R0", "", "w---"},
	{HAS_R " C", "W0", "", "r---"},
	{HAS_W " C", "K", "protect0+4 give0+1", "r---"},
	{HAS_W " C K", "G0", "unmap0+4 clean", "----"},
	{HAS_W " C K G0", "R0", "", "----"},
	{HAS_W " C K G0 k", "R0", "get0r.0", "----"},
	{HAS_R " C", "K", "unmap0+4 clean", "----"},
	{HAS_W " I0 C", "K", "give0+1", "r---"},
	{HAS_W " E0 C", "K", "give0+1", "r---"},
	{"W0 C K k", "W0", "get0w.0", "----"},
	{"W0 C", "A0", "", "----"},
	{HAS_W " I0 C", "G0", "", "r---"},
	/* Leases. */
	{HAS_W, "H", "hide", "----"},
	{HAS_W " H", "R0", "", "----"},
	{HAS_W " H", "U", "unhide", "w---"},
	{HAS_W " H", "I0", "protect0+4 give0+1", "----"},
	{HAS_W, "X", "unmap0+4 fail0+4", "----"},
};

static void every_row_of_the_table_holds(void **state)
{
	static struct bed b;
	char then[PAGES + 1] = "";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bed_init(&b, PAGES);
		play(&b, rows[i].before);
		b.did[0] = '\0';
		play(&b, rows[i].event);
		for (unsigned p = 0; p < PAGES; p++)
			then[p] = "-rw"[coh_cache_right(&b.cache, p)];
		if (strcmp(b.did, rows[i].did) != 0 ||
		    strcmp(then, rows[i].then) != 0)
			fail_msg("%s, then %s: '%s' %s, not '%s' %s",
				 rows[i].before, rows[i].event, b.did, then,
				 rows[i].did, rows[i].then);
	}
}

/* ---- more than a row ----------------------------------------------------- */

/* All pages dirty, more than may be given back at once. */
static void give_backs_are_few_at_a_time(void **state)
{
	static struct bed b;
	struct coh_inval v = {.range = {0, PAGES_MAX}, .term = 1, .seq = 1};
	unsigned most = 0, fins = 0;

	bed_init(&b, PAGES_MAX);
	for (unsigned p = 0; p < PAGES_MAX; p++) {
		assert_int_equal(
			coh_cache_touch(&b.cache, p, COH_WRITE, &b.out),
			COH_TOUCH_SENT);
		coh_cache_answer(&b.cache, 0, &b.out);
	}
	v.target = 40;
	coh_cache_inval(&b.cache, &v, &b.out);
	assert_int_equal(b.out.action[1].kind, COH_CACHE_GIVE);
	assert_int_equal(b.out.action[1].range.page, 40);
	for (unsigned n = 0; n < PAGES_MAX; n++) {
		uint64_t page = 0;

		assert_int_equal(fins, 0);
		most = (unsigned)u64_max(most, b.cache.giving);
		while (!b.pages[page].giving)
			page++;
		coh_cache_given(&b.cache, page, &b.out);
		for (uint32_t i = 0; i < b.out.count; i++)
			fins += b.out.action[i].kind == COH_CACHE_FIN;
	}
	assert_int_equal(most, COH_CACHE_GIVES_MAX);
	assert_int_equal(fins, 1);
}

static void what_makes_no_sense_is_dropped_and_counted(void **state)
{
	static struct bed b;
	struct coh_inval v = {.range = {0, PAGES}, .term = 9, .seq = 1};

	bed_init(&b, PAGES);
	coh_cache_inval(&b.cache, &v, &b.out);
	v.term = 1;
	v.range.count = UINT32_MAX;
	coh_cache_inval(&b.cache, &v, &b.out);
	v.range.count = PAGES;
	v.to = COH_WRITE;
	coh_cache_inval(&b.cache, &v, &b.out);
	coh_cache_answer(&b.cache, 0, &b.out);
	coh_cache_answer(&b.cache, 99, &b.out);
	coh_cache_refused(&b.cache, 0, &b.out);
	coh_cache_given(&b.cache, 0, &b.out);
	coh_cache_given(&b.cache, 1ull << 60, &b.out);
	coh_cache_left(&b.cache, 0);
	coh_cache_left(&b.cache, 77);
	coh_cache_cleaned(&b.cache);
	assert_int_equal(b.out.count, 0);
	assert_int_equal(b.cache.stray, 11);
	/* A range that is not ours has nothing to give up. */
	v = (struct coh_inval){.range = {1ull << 60, 512}, .term = 1, .seq = 2};
	play(&b, HAS_W);
	coh_cache_inval(&b.cache, &v, &b.out);
	b.did[0] = '\0';
	note(&b);
	assert_non_null(strstr(b.did, "fin2"));
	assert_int_equal(coh_cache_right(&b.cache, 0), COH_WRITE);
}

/* A third INVAL finds no job: there are no more receives than jobs. */
static void there_are_no_more_invals_than_receives(void **state)
{
	static struct bed b;

	bed_init(&b, PAGES);
	play(&b, HAS_W " I0 I0 I0");
	assert_int_equal(b.cache.stray, 1);
	b.did[0] = '\0';
	play(&b, "G0");
	assert_string_equal(b.did, "unmap0+4 fin1 unmap0+4 fin2");
}

/* A machine stops before the others go on, however long its heartbeat took. */
static void a_machine_stops_before_its_lease_is_over(void **state)
{
	const uint64_t sent = 1000;

	for (uint64_t took = 0; took < 10 * COH_LEASE_NS;
	     took += COH_HEARTBEAT_NS / 3) {
		uint64_t over = sent + took + COH_LEASE_NS;

		assert_false(coh_lease_is_over(sent + took, over - 1));
		assert_true(coh_lease_is_over(sent + took, over));
		assert_true(coh_lease_must_stop(
			sent, over - (COH_LEASE_NS - COH_LEASE_STOP_NS)));
	}
	assert_false(coh_lease_must_stop(sent, sent + 3 * COH_HEARTBEAT_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_table_holds),
		cmocka_unit_test(give_backs_are_few_at_a_time),
		cmocka_unit_test(what_makes_no_sense_is_dropped_and_counted),
		cmocka_unit_test(there_are_no_more_invals_than_receives),
		cmocka_unit_test(a_machine_stops_before_its_lease_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
