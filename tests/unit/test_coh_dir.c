/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory's transitions, row by row: what has happened, what happens,
 * what is done, what is then. Three machines with two lanes, regions of two
 * pages (0 and 1, 2 and 3), two entries.
 *
 *  R0.1@2  W0.1@2   machine 0 gets page 2 to read, to write, on lane 1
 *  g0@2             gives page 2 back      m0.1  memory was read for its lane 1
 *  f0@2  F0@2       FIN for page 2's region; with another sequence
 *  e0@2             EVICT of its region    x0    machine 0 is gone
 *  c@2  p@2         recall, repair         c0 k0 CLEAN of this term, of another
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dir.h"

enum {
	MACHINES = 3,
	LANES = 2,
	ENTRIES = 2,
	TEXT_MAX = 1024,
};

struct bed {
	struct coh_dir dir;
	struct coh_dir_entry entries[COH_REGION_PAGES_MAX];
	struct coh_dir_slot slots[COH_MACHINES_MAX * COH_LANES_MAX];
	uint32_t buckets[4];
	uint32_t serial;
	struct coh_dir_out out;
	char did[TEXT_MAX];
};

static void bed_init(struct bed *b, uint32_t entries, uint16_t unclean)
{
	memset(b, 0, sizeof(*b));
	b->dir = (struct coh_dir){.entries = b->entries,
				  .buckets = b->buckets,
				  .slots = b->slots,
				  .entry_count = entries,
				  .bucket_count = 4,
				  .region_pages = 2,
				  .machines = MACHINES,
				  .lanes = LANES};
	coh_dir_init(&b->dir, 7, unclean, false);
	for (uint8_t i = 0; i < MACHINES; i++)
		if (!(unclean & 1u << i))
			assert_int_equal(coh_dir_join(&b->dir, i), 0);
}

/* ---- actions as text ----------------------------------------------------- */

static void note(struct bed *b)
{
	static const char *const names[] = {"read",  "hold",  "answer",
					    "held",  "write", "nogive",
					    "noget", "lost",  "inval"};
	static const char rights[] = "ISM";

	for (uint32_t i = 0; i < b->out.count; i++) {
		const struct coh_dir_action *a = &b->out.action[i];
		size_t n = strlen(b->did);
		char *at = b->did + n;
		size_t left = sizeof(b->did) - n;

		snprintf(at, left, "%s%s%u", n ? " " : "", names[a->kind],
			 a->machine);
		n = strlen(b->did);
		at = b->did + n;
		left = sizeof(b->did) - n;
		if (a->kind == COH_DIR_INVAL)
			snprintf(at, left, "%c", rights[a->inval.to]);
		else if (a->kind != COH_DIR_WRITE &&
			 a->kind != COH_DIR_REFUSE_GIVE)
			snprintf(at, left, ".%u", a->lane);
		if (a->kind == COH_DIR_ANSWER || a->kind == COH_DIR_ANSWER_HELD)
			snprintf(b->did + strlen(b->did),
				 sizeof(b->did) - strlen(b->did), "%c",
				 rights[a->right]);
	}
}

static void set_text(char *to, uint32_t set)
{
	*to++ = '{';
	for (uint32_t i = 0; i < MACHINES; i++)
		if (set & 1u << i)
			*to++ = (char)('0' + i);
	*to++ = '}';
	*to = '\0';
}

static const char *state_text(const struct bed *b, uint64_t page,
			      char text[TEXT_MAX])
{
	const struct coh_dir_entry *e = coh_dir_find(&b->dir, page);

	if (!e)
		return strcpy(text, "I");
	strcpy(text, coh_dir_state_name((enum coh_dir_state)e->state));
	set_text(text + strlen(text), e->sharers);
	if (e->waiting)
		set_text(text + strlen(text), e->waiting);
	return text;
}

/* ---- events from text ---------------------------------------------------- */

static void leave(struct bed *b, uint8_t machine)
{
	uint32_t at = 0;
	bool more = true;

	while (more) {
		more = coh_dir_gone(&b->dir, machine, &at, &b->out);
		note(b);
	}
	b->out.count = 0;
}

static void play_one(struct bed *b, const char *word)
{
	uint8_t machine = (uint8_t)(word[1] - '0');
	uint8_t lane = word[2] == '.' ? (uint8_t)(word[3] - '0') : 0;
	const char *at = strchr(word, '@');
	uint64_t page = at ? strtoull(at + 1, NULL, 10) : 0;
	const struct coh_dir_entry *e = coh_dir_find(&b->dir, page);
	struct coh_range range = {page & ~1ull, 2};
	struct coh_fin fin = {range, 7, e ? e->seq : 0};
	struct coh_get get = {machine, lane, COH_READ, ++b->serial, page};

	b->out.count = 0;
	switch (word[0]) {
	case 'W':
		get.right = COH_WRITE;
		coh_dir_get(&b->dir, &get, &b->out);
		break;
	case 'R':
		coh_dir_get(&b->dir, &get, &b->out);
		break;
	case 'g':
		coh_dir_give(&b->dir, machine, page, &b->out);
		break;
	case 'F':
		fin.seq++;
		coh_dir_fin(&b->dir, machine, &fin, &b->out);
		break;
	case 'f':
		coh_dir_fin(&b->dir, machine, &fin, &b->out);
		break;
	case 'e':
		coh_dir_evict(&b->dir, machine, &range, &b->out);
		break;
	case 'm':
		coh_dir_read_done(&b->dir, machine, lane, &b->out);
		break;
	case 'x':
		leave(b, machine);
		break;
	case 'c':
		if (at == word + 1)
			coh_dir_recall(&b->dir, page, &b->out);
		else
			coh_dir_clean(&b->dir, machine, 7, &b->out);
		break;
	case 'k':
		coh_dir_clean(&b->dir, machine, 6, &b->out);
		break;
	case 'p':
		assert_int_equal(coh_dir_repair(&b->dir, page, &b->out), 0);
		break;
	default:
		fail_msg("no such event: %s", word);
	}
	note(b);
	if (coh_dir_check(&b->dir))
		fail_msg("after %s: %s", word, coh_dir_check(&b->dir));
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

#define S01  "R0.0@0 m0.0 R1.0@0 m1.0"
#define M0   "W0.0@0 m0.0"
#define S012 S01 " R2.0@0 m2.0"

static const struct row {
	const char *before, *event, *did, *then;
	bool keep_going;
} rows[] = {
	/* I */
	{"", "R0.1@0", "read0.1", "S{0}", false},
	{"", "W0.1@0", "read0.1", "M{0}", false},
	{"", "g0@0", "nogive0", "I", false},
	{"", "f0@0", "", "I", false},
	{"", "e0@0", "", "I", false},
	{"", "c@0", "", "I", false},
	{"", "p@0", "", "I", false},
	{"", "x0", "", "I", false},
	{"R0.1@0", "m0.1", "answer0.1S", "S{0}", false},
	{"W0.1@0", "m0.1", "answer0.1M", "M{0}", false},
	/* S */
	{S01, "R2.0@0", "read2.0", "S{012}", false},
	{S01, "R0.1@1", "read0.1", "S{01}", false},
	{"R0.0@0 m0.0", "W0.0@0", "read0.0", "M{0}", false},
	{S01, "W2.0@0", "inval0I inval1I read2.0", "toM{01}{01}", false},
	{S01, "W0.0@0", "inval1I read0.0", "toM{01}{1}", false},
	{S01, "g0@0", "nogive0", "S{01}", false},
	{S01, "f0@0", "", "S{01}", false},
	{S01, "e0@0", "", "S{1}", false},
	{"R0.0@0 m0.0", "e0@0", "", "I", false},
	{S01, "e2@0", "", "S{01}", false},
	{S01, "c@0", "inval0I inval1I", "rec{01}{01}", false},
	{S01, "x0", "", "S{1}", false},
	{"R0.0@0 m0.0", "x0", "", "I", false},
	{S01, "p@0", "", "S{01}", false},
	/* M */
	{M0, "R0.1@1", "read0.1", "M{0}", false},
	{M0, "W0.1@1", "read0.1", "M{0}", false},
	{M0, "R1.0@0", "inval0S", "toS{0}{0}", false},
	{M0, "W1.0@0", "inval0I", "toM{0}{0}", false},
	{M0, "g0@0", "write0", "M{0}", false},
	{M0, "g1@0", "nogive1", "M{0}", false},
	{M0, "e0@0", "", "I", false},
	{M0, "e1@0", "", "M{0}", false},
	{M0, "f0@0", "", "M{0}", false},
	{M0, "c@0", "inval0I", "rec{0}{0}", false},
	{M0, "x0", "", "L{}", false},
	{M0, "x0", "", "I", true},
	{M0, "x1", "", "M{0}", false},
	/* toS: the owner gives the target, or FIN comes without it. */
	{M0 " R1.0@0", "g0@0", "write0 answer1.0S", "toS{0}{0}", false},
	{M0 " R1.0@0", "g0@1", "write0", "toS{0}{0}", false},
	{M0 " R1.0@0", "g1@0", "nogive1", "toS{0}{0}", false},
	{M0 " R1.0@0 g0@0", "f0@0", "", "S{01}", false},
	{M0 " R1.0@0 g0@0", "g0@0", "write0", "toS{0}{0}", false},
	{M0 " R1.0@0", "f0@0", "read1.0", "S{01}", false},
	{M0 " R1.0@0", "F0@0", "", "toS{0}{0}", false},
	{M0 " R1.0@0", "f1@0", "", "toS{0}{0}", false},
	{M0 " R1.0@0", "R2.0@0", "", "toS{0}{0}", false},
	{M0 " R1.0@0", "e0@0", "", "toS{0}{0}", false},
	{M0 " R1.0@0", "c@0", "", "toS{0}{0}", false},
	{M0 " R1.0@0 R2.0@0", "f0@0", "read1.0 read2.0", "S{012}", false},
	{M0 " R1.0@0 W2.0@0", "f0@0", "read1.0 inval0I inval1I read2.0",
	 "toM{01}{01}", false},
	{M0 " R1.0@0", "x0", "lost1.0", "L{}", false},
	{M0 " R1.0@0 R2.0@0", "x0", "lost1.0 lost2.0", "L{}", false},
	{M0 " R1.0@0 g0@0", "x0", "", "L{1}", false},
	{M0 " R1.0@0", "x0", "read1.0", "S{1}", true},
	{M0 " R1.0@0", "x1", "", "toS{0}{0}", false},
	{M0 " R1.0@0 x1", "f0@0", "", "S{0}", false},
	{M0 " R1.0@0 R2.0@0 x2", "f0@0", "read1.0", "S{01}", false},
	/* toM from M */
	{M0 " W1.0@0", "g0@0", "write0 hold1.0", "toM{0}{0}", false},
	{M0 " W1.0@0 g0@0", "f0@0", "held1.0M", "M{1}", false},
	{M0 " W1.0@0", "f0@0", "read1.0", "M{1}", false},
	{M0 " W1.0@0 x1", "f0@0", "", "I", false},
	{M0 " W1.0@0 g0@0", "x0", "lost1.0", "L{}", false},
	{M0 " W1.0@0 g0@0", "x0", "held1.0M", "M{1}", true},
	/* toM from S */
	{S01 " W2.0@0", "m2.0", "hold2.0", "toM{01}{01}", false},
	{S01 " W2.0@0", "g0@0", "nogive0", "toM{01}{01}", false},
	{S01 " W2.0@0 m2.0", "f0@0", "", "toM{01}{1}", false},
	{S01 " W2.0@0 m2.0 f0@0", "f1@0", "held2.0M", "M{2}", false},
	{S01 " W2.0@0 f0@0 f1@0", "m2.0", "answer2.0M", "M{2}", false},
	{S01 " W2.0@0", "x0", "", "toM{1}{1}", false},
	{S01 " W2.0@0 x0", "f1@0", "", "M{2}", false},
	{S01 " W0.0@0 x0", "f1@0", "", "I", false},
	{S01 " W2.0@0 f0@0", "f0@0", "", "toM{01}{1}", false},
	/* recall */
	{S01 " c@0 f0@0", "f1@0", "", "I", false},
	{M0 " c@0", "g0@0", "write0", "rec{0}{0}", false},
	{M0 " c@0", "x0", "", "L{}", false},
	{M0 " c@0 R1.0@0", "f0@0", "read1.0", "S{1}", false},
	/* L */
	{M0 " x0", "R1.0@0", "lost1.0", "L{}", false},
	{M0 " x0", "W1.0@0", "lost1.0", "L{}", false},
	{M0 " x0", "p@0", "", "I", false},
	{M0 " R1.0@0 g0@0 x0", "p@0", "", "S{1}", false},
	{M0 " R1.0@0 g0@0 x0", "x1", "", "L{}", false},
	{M0 " x0", "c@0", "", "L{}", false},
	/* The pool: a third region waits until one is recalled. */
	{"R0.0@2 m0.0 R0.0@4 m0.0", "R1.0@0", "inval0I", "I", false},
	{"R0.0@2 m0.0 R0.0@4 m0.0 R1.0@0", "f0@2", "read1.0", "S{1}", false},
	{"R0.0@2 m0.0 R0.0@4 m0.0 R1.0@0", "e0@4", "read1.0", "S{1}", false},
	{"R0.0@2 m0.0 R0.0@4 m0.0 R1.0@0 x1", "f0@2", "", "I", false},
	{"R0.0@2 m0.0 R0.0@4 m0.0 R1.0@0 R2.0@1", "f0@2", "read1.0 read2.0",
	 "S{12}", false},
	/* A lane carries one get; who is gone gets nothing. */
	{"R0.0@0", "R0.0@1", "noget0.0", "S{0}", false},
	{"x0", "R0.0@0", "noget0.0", "I", false},
	{"R0.0@0 x0", "m0.0", "", "I", false},
};

static void every_row_of_the_table_holds(void **state)
{
	static struct bed b;
	char text[TEXT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bed_init(&b, ENTRIES, 0);
		b.dir.keep_going = rows[i].keep_going;
		play(&b, rows[i].before);
		b.did[0] = '\0';
		play(&b, rows[i].event);
		if (strcmp(b.did, rows[i].did) != 0 ||
		    strcmp(state_text(&b, 0, text), rows[i].then) != 0)
			fail_msg("%s, then %s: '%s' %s, not '%s' %s",
				 rows[i].before, rows[i].event, b.did, text,
				 rows[i].did, rows[i].then);
	}
}

/* ---- more than a row ----------------------------------------------------- */

static void an_inval_names_what_was_granted(void **state)
{
	static struct bed b;
	const struct coh_inval *v = &b.out.action[0].inval;

	bed_init(&b, ENTRIES, 0);
	play(&b, "R0.0@0 R0.1@1 R1.0@2");
	play(&b, "W1.1@0");
	assert_int_equal(b.out.action[0].kind, COH_DIR_INVAL);
	assert_int_equal(v->granted[0], 1);
	assert_int_equal(v->granted[1], 2);
	assert_int_equal(v->range.page, 0);
	assert_int_equal(v->range.count, 2);
	assert_int_equal(v->term, 7);
}

static void a_new_term_waits_for_all_to_be_clean(void **state)
{
	static struct bed b;
	char text[TEXT_MAX];

	bed_init(&b, ENTRIES, 3);
	play(&b, "R2.0@0 g0@0 g2@1 k1 c1");
	assert_string_equal(b.did, "write0 nogive2");
	assert_string_equal(state_text(&b, 0, text), "I");
	assert_int_equal(coh_dir_repair(&b.dir, 0, &b.out), -EBUSY);
	play(&b, "c0");
	assert_string_equal(b.did, "write0 nogive2 read2.0");
	play(&b, "g0@1");
	assert_string_equal(b.did, "write0 nogive2 read2.0 nogive0");
}

static void a_member_that_dies_unclean_loses_all(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES, 3);
	play(&b, "R2.0@0 c1 x0");
	assert_string_equal(b.did, "lost2.0");
	play(&b, "R2.0@2");
	assert_string_equal(b.did, "lost2.0 lost2.0");
	play(&b, "p@0 R2.0@2");
	assert_string_equal(b.did, "lost2.0 lost2.0 read2.0");
}

/* Where memory's bytes shall count nobody is refused: these gets wait until the
 * others are clean and the keeper has gone on. */
static void gets_wait_where_memory_counts_after_a_loss_of_all(void **state)
{
	static const struct coh_range last = {2, 2};
	static struct bed b;

	bed_init(&b, ENTRIES, 3);
	b.dir.goes_on = &last;
	b.dir.goes_on_count = 1;
	play(&b, "R2.0@2 R2.1@0 x0 R2.1@1");
	assert_string_equal(b.did, "lost2.1 lost2.1");
	assert_int_equal(coh_dir_repair(&b.dir, 0, &b.out), -EBUSY);
	play(&b, "c1 R2.1@3");
	assert_string_equal(b.did, "lost2.1 lost2.1");
	assert_int_equal(b.dir.counters[COH_DIR_C_old_bytes], 0);
	play(&b, "p@0");
	assert_string_equal(b.did, "lost2.1 lost2.1 read2.0 read2.1");
	assert_int_equal(b.dir.counters[COH_DIR_C_old_bytes], 1);
}

static void a_new_term_remembers_what_is_lost(void **state)
{
	static const struct coh_range left = {0, 2}, right = {2, 2};
	static struct bed b;

	bed_init(&b, 1, 0);
	coh_dir_set_lost(&b.dir, &right);
	coh_dir_set_lost(&b.dir, &right);
	play(&b, "R0.0@2");
	assert_string_equal(b.did, "lost0.0");
	assert_false(b.dir.lost);
	coh_dir_set_lost(&b.dir, &left);
	assert_true(b.dir.lost);
}

static void a_machine_joins_when_nothing_is_read_for_it(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES, 0);
	assert_int_equal(coh_dir_join(&b.dir, 0), -EINVAL);
	assert_int_equal(coh_dir_join(&b.dir, MACHINES), -EINVAL);
	play(&b, "R0.1@0 x0");
	assert_int_equal(coh_dir_join(&b.dir, 0), -EBUSY);
	play(&b, "m0.1");
	assert_int_equal(coh_dir_join(&b.dir, 0), 0);
	b.did[0] = '\0';
	play(&b, "R0.1@0");
	assert_string_equal(b.did, "read0.1");
}

static void gets_are_refused_when_only_lost_entries_are_left(void **state)
{
	static struct bed b;

	bed_init(&b, 1, 0);
	play(&b, M0 " x0");
	b.did[0] = '\0';
	play(&b, "R1.0@2");
	assert_string_equal(b.did, "lost1.0");
}

static void strangers_are_refused_and_counted(void **state)
{
	static struct bed b;
	struct coh_get get = {200, 0, COH_READ, 1, 0};
	struct coh_fin fin = {.range = {0, 2}};
	struct coh_range range = {0, UINT32_MAX};

	bed_init(&b, ENTRIES, 0);
	coh_dir_get(&b.dir, &get, &b.out);
	get = (struct coh_get){0, 9, COH_READ, 1, 0};
	coh_dir_get(&b.dir, &get, &b.out);
	get = (struct coh_get){0, 0, (enum coh_right)9, 1, 0};
	coh_dir_get(&b.dir, &get, &b.out);
	assert_int_equal(b.dir.counters[COH_DIR_C_refused_gets], 3);
	coh_dir_give(&b.dir, 200, 0, &b.out);
	assert_int_equal(b.out.action[0].kind, COH_DIR_REFUSE_GIVE);
	coh_dir_fin(&b.dir, 200, &fin, &b.out);
	coh_dir_evict(&b.dir, 200, &range, &b.out);
	coh_dir_clean(&b.dir, 200, 7, &b.out);
	assert_int_equal(b.out.count, 0);
	play(&b, "R0.0@0 m0.0");
	range.page = UINT64_MAX;
	coh_dir_evict(&b.dir, 1, &range, &b.out);
	assert_null(coh_dir_check(&b.dir));
}

/* The most that one call can do: all lanes of all machines wait. */
static void the_largest_directory_fits_into_one_answer(void **state)
{
	static struct bed b;
	struct coh_get get = {.right = COH_READ, .serial = 1};

	bed_init(&b, 2, 0);
	b.dir.machines = COH_MACHINES_MAX;
	b.dir.lanes = COH_LANES_MAX;
	coh_dir_init(&b.dir, 7, 0, false);
	for (uint8_t i = 0; i < COH_MACHINES_MAX; i++)
		assert_int_equal(coh_dir_join(&b.dir, i), 0);
	get.right = COH_WRITE;
	coh_dir_get(&b.dir, &get, &b.out);
	for (get.machine = 1; get.machine < COH_MACHINES_MAX; get.machine++)
		for (get.lane = 0; get.lane < COH_LANES_MAX; get.lane++) {
			get.right = get.machine == 15 && get.lane == 15
					    ? COH_WRITE
					    : COH_READ;
			coh_dir_get(&b.dir, &get, &b.out);
		}
	play_one(&b, "f0@0");
	assert_true(b.out.count > 15 * 16 && b.out.count <= COH_DIR_OUT_MAX);
	assert_null(coh_dir_check(&b.dir));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_table_holds),
		cmocka_unit_test(an_inval_names_what_was_granted),
		cmocka_unit_test(a_new_term_waits_for_all_to_be_clean),
		cmocka_unit_test(a_member_that_dies_unclean_loses_all),
		cmocka_unit_test(
			gets_wait_where_memory_counts_after_a_loss_of_all),
		cmocka_unit_test(a_new_term_remembers_what_is_lost),
		cmocka_unit_test(a_machine_joins_when_nothing_is_read_for_it),
		cmocka_unit_test(
			gets_are_refused_when_only_lost_entries_are_left),
		cmocka_unit_test(strangers_are_refused_and_counted),
		cmocka_unit_test(the_largest_directory_fits_into_one_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
