/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from C do what the same functions do on this machine, and what cannot
 * be a walk is refused with its line. Arguments: object files of walkc_good.c,
 * of walkc_bad.c, and of walkc_bad.c without -g. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "walk/op.h"
#include "walk/program.h"
#include "walkc/walkc.h"
#include "walkc_good.c"

enum {
	FILE_MAX = 1 << 20,
	CASES = 3000,
	NODE_BYTES = 1024, /* more than any walk reaches, right or wrong */
	NODE_AT = 256,
	PAD_ROOM = 512,
};

static char **files; /* good, bad, bad without lines */

static struct walkc_object *open_file(const char *path)
{
	void *bytes = malloc(FILE_MAX);
	FILE *f = fopen(path, "rb");
	struct walkc_object *o = NULL;
	size_t len;

	assert_non_null(f);
	assert_non_null(bytes);
	len = fread(bytes, 1, FILE_MAX, f);
	assert_int_equal(fclose(f), 0);
	if (walkc_object_open(bytes, len, "x.o", &o))
		fail_msg("%s: %s", path, error_last());
	free(bytes);
	return o;
}

static unsigned find_walk(const struct walkc_object *o, const char *name)
{
	for (unsigned i = 0; i < walkc_object_count(o); i++)
		if (strcmp(walkc_object_name(o, i), name) == 0)
			return i;
	fail_msg("there is no walk %s", name);
	return 0;
}

static struct walk_program *open_walk(const struct walkc_object *o,
				      const char *name, bool interpret)
{
	const struct walk_options options = {.interpret = interpret};
	struct walk_program *p = NULL;
	struct walk_image image;
	void *bytes = NULL;
	size_t len;

	if (walkc_translate(o, find_walk(o, name), 0, &bytes, &len) ||
	    walk_image_parse(bytes, len, &image) ||
	    walk_program_open(&image, &options, &p))
		fail_msg("%s: %s", name, error_last());
	free(bytes);
	return p;
}

/* ---- the same as on this machine ---------------------------------------- */

typedef uint64_t (*native)(const void *node, void *pad);

/* Bytes that are often equal, and often at a limit. */
static void fill(struct rng *rng, uint8_t *to, size_t bytes)
{
	static const uint8_t few[] = {0, 1, 2, 0x7f, 0x80, 0xff};
	unsigned how = (unsigned)(rng_u64(rng) % 4);
	uint8_t same = (uint8_t)rng_u64(rng);

	for (size_t i = 0; i < bytes; i++)
		to[i] = how == 0   ? (uint8_t)rng_u64(rng)
			: how == 1 ? few[rng_u64(rng) % 6]
			: how == 2 ? (uint8_t)(rng_u64(rng) % 16 ? 0 : same)
				   : (uint8_t)(i % 8 ? 0 : rng_u64(rng) % 12);
}

struct memory {
	uint8_t node[NODE_BYTES], pad[PAD_ROOM];
};

static struct memory before, here, there;

/* One node; counts how it ended. */
static void compare(const struct walk_program *p, const char *name, native fn,
		    unsigned ends[4])
{
	const struct walk_image *image = walk_program_image(p);
	uint64_t want, next = 0;
	enum walk_step step;

	here = there = before;
	step = walk_program_step(p, there.node + NODE_AT + image->load_lo,
				 there.pad, &next);
	ends[step]++;
	if (step == WALK_STEP_FAULT)
		return;
	want = fn(here.node + NODE_AT, here.pad);
	if (step != (want == 0	  ? WALK_STEP_DONE
		     : want >> 63 ? WALK_STEP_FAIL
				  : WALK_STEP_NEXT) ||
	    (want >> 63 ? (want & 0xff) != next : want != next))
		fail_msg("%s: %llx, not %llx", name, (unsigned long long)next,
			 (unsigned long long)want);
	if (memcmp(&here, &there, sizeof(here)) != 0)
		fail_msg("%s: wrote other bytes", name);
}

static void run_cases(const struct walkc_object *o, const char *name, native fn,
		      bool may_fault)
{
	struct walk_program *exec = open_walk(o, name, true);
	struct walk_program *code = open_walk(o, name, false);
	unsigned ends[4] = {0};
	struct rng rng;

	rng_init(&rng, 19);
	for (unsigned i = 0; i < CASES; i++) {
		fill(&rng, before.node, sizeof(before.node));
		fill(&rng, before.pad, sizeof(before.pad));
		if (rng_u64(&rng) % 2) /* a key that is found */
			memcpy(before.pad, before.node + NODE_AT, 8);
		compare(exec, name, fn, ends);
		compare(code, name, fn, ends);
	}
	assert_true(ends[WALK_STEP_NEXT] + ends[WALK_STEP_DONE] > CASES / 8);
	assert_true(may_fault == (ends[WALK_STEP_FAULT] != 0));
	walk_program_close(code);
	walk_program_close(exec);
}

static void does_what_native_code_does(void **state)
{
	static const struct {
		const char *name;
		native fn;
		bool may_fault;
	} walks[] = {
#define WALK(name, may_fault) {#name, (native)(void *)name, may_fault}
		WALK(find, false),   WALK(iterate, false), WALK(tree, false),
		WALK(reduce, false), WALK(copy, false),	   WALK(assign, false),
		WALK(whole, false),  WALK(joined, true),   WALK(numbers, false),
		WALK(choose, false), WALK(spill, false),   WALK(change, false),
		WALK(middle, false), WALK(bounded, true),
#undef WALK
	};
	struct walkc_object *o = open_file(files[0]);

	assert_int_equal(walkc_object_count(o), ARRAY_LEN(walks));
	for (size_t i = 0; i < ARRAY_LEN(walks); i++)
		run_cases(o, walks[i].name, walks[i].fn, walks[i].may_fault);
	walkc_object_close(o);
}

/* ---- what is made ------------------------------------------------------- */

static unsigned count_ops(const struct walk_image *image, uint8_t op)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < image->count; i++)
		n += image->insns[i].op == op;
	return n;
}

static void windows_are_what_is_used(void **state)
{
	struct walkc_object *o = open_file(files[0]);
	struct walk_program *find_it = open_walk(o, "find", true);
	struct walk_program *in_middle = open_walk(o, "middle", true);
	struct walk_program *by_two = open_walk(o, "iterate", true);
	struct walk_program *writer = open_walk(o, "change", true);

	assert_int_equal(find_it->image.load_lo, 0);
	assert_int_equal(find_it->image.load_bytes, 24);
	assert_int_equal(find_it->image.pad_bytes, sizeof(struct pad));
	assert_int_equal(find_it->image.flags, 0);
	assert_true(find_it->facts.longest <= 8);
	assert_int_equal(in_middle->image.load_lo, -16);
	assert_int_equal(in_middle->image.load_bytes, sizeof(struct linked));
	assert_int_equal(by_two->image.pad_bytes, sizeof(struct pad));
	assert_int_equal(writer->image.flags, WALK_STORES);
	walk_program_close(writer);
	walk_program_close(by_two);
	walk_program_close(in_middle);
	walk_program_close(find_it);
	walkc_object_close(o);
}

static void copies_are_one_instruction(void **state)
{
	struct walkc_object *o = open_file(files[0]);
	struct walk_program *p = open_walk(o, "copy", true);
	struct walk_program *assigned = open_walk(o, "whole", true);

	/* CPY has two slots; then the pointer is loaded, and followed. */
	assert_int_equal(count_ops(&assigned->image, WALK_OP_CPY), 1);
	assert_int_equal(assigned->image.count, 4);
	walk_program_close(assigned);

	assert_int_equal(count_ops(&p->image, WALK_OP_CMP), 2);
	assert_true(count_ops(&p->image, WALK_OP_CPY) >= 1);
	walk_program_close(p);
	walkc_object_close(o);
}

/* ---- what is refused ---------------------------------------------------- */

static const struct {
	const char *name, *words;
} refusals[] = {
	{"loop", "a loop that the compiler did not unroll; write it as "
		 "AQ_WALK_EACH(i, count)"},
	{"call", "calls helper, which the compiler did not inline; declare it "
		 "with AQ_WALK_INLINE"},
	{"external", "calls elsewhere, which is not there"},
	{"follow", "follows a pointer; a walk sees one node at a time"},
	{"data", "uses data that is not in the node or in the pad (.rodata"},
	{"outside",
	 "8 bytes at byte 552 of the node, which has bytes 0 to 543; "
	 "AQ_WALK_WINDOW states other ones"},
	{"pad_outside", "8 bytes at byte 88 of the pad, which has bytes 0 to "
			"87"},
	{"stored", "stores the address of the node"},
	{"returned", "returns the address of the node"},
	{"compared", "compares an address with something else"},
	{"mixed", "compares an address with something else"},
	{"computed", "computes with an address"},
	{"local", "a variable index into an array of the function's own"},
	{"stack", "more than 384 bytes of variables"},
	{"atomic_pad", "an atomic operation on the pad"},
	{"atomic_half", "an atomic operation that is neither compare-and-swap "
			"nor fetch-and-add of 8 "
			"bytes"},
	{"atomic_index", "an atomic operation at an index"},
	{"same_window", "memcmp compares bytes of the node with bytes of the "
			"pad"},
	{"overlap", "memmove inside the pad"},
	{"length", "memcpy of a length that is not constant"},
	{"window", "a window of 5016 bytes of the node, from byte 0; a walk "
		   "loads 8 to 4096"},
	{"wide_pad", "a pad of 5016 bytes; at most 4032"},
	{"longest", "the longest path costs"},
};

/* The line of walkc_bad.c where that walk is refused. */
static unsigned line_of(const char *name)
{
	char path[512], text[256], mark[64];
	unsigned line = 0, found = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/tests/unit/walkc_bad.c",
		       getenv("AQ_SOURCE"));
	(void)snprintf(mark, sizeof(mark), "/* refused: %s */", name);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!found && fgets(text, sizeof(text), f)) {
		line++;
		if (strstr(text, mark))
			found = line;
	}
	assert_int_equal(fclose(f), 0);
	assert_true(found);
	return found;
}

static void refuse(const struct walkc_object *o, const char *name,
		   const char *where, const char *words)
{
	void *bytes = NULL;
	size_t len;

	if (walkc_translate(o, find_walk(o, name), 0, &bytes, &len) != -EINVAL)
		fail_msg("%s was accepted", name);
	if (!strstr(error_last(), where) || !strstr(error_last(), words))
		fail_msg("%s: '%s', not '%s ... %s'", name, error_last(), where,
			 words);
}

static void refuses_with_function_and_line(void **state)
{
	struct walkc_object *o = open_file(files[1]);

	assert_int_equal(walkc_object_count(o), ARRAY_LEN(refusals));
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		char words[256];

		(void)snprintf(words, sizeof(words), "walkc_bad.c:%u: %s: %s",
			       line_of(refusals[i].name), refusals[i].name,
			       refusals[i].words);
		refuse(o, refusals[i].name, "", words);
	}
	walkc_object_close(o);
}

static void refuses_without_lines_too(void **state)
{
	struct walkc_object *o = open_file(files[2]);

	refuse(o, "follow", "x.o: follow: instruction ",
	       "(compile with -g to see the line): follows a pointer");
	refuse(o, "atomic_index", "atomic_index", "an atomic operation at");
	walkc_object_close(o);
}

/* The file of good walks with one text in it replaced by another. */
static int open_changed(const char *from, const char *to)
{
	uint8_t *bytes = malloc(FILE_MAX);
	FILE *f = fopen(files[0], "rb");
	struct walkc_object *o = NULL;
	size_t len, n = strlen(from);
	unsigned changed = 0;
	int err;

	assert_non_null(f);
	assert_non_null(bytes);
	len = fread(bytes, 1, FILE_MAX, f);
	assert_int_equal(fclose(f), 0);
	for (size_t i = 0; i + n <= len; i++)
		if (memcmp(bytes + i, from, n) == 0) {
			memcpy(bytes + i, to, n);
			changed++;
		}
	assert_true(changed);
	err = walkc_object_open(bytes, len, "x.o", &o);
	free(bytes);
	walkc_object_close(o);
	return err;
}

static void expect_words(const char *words)
{
	if (!strstr(error_last(), words))
		fail_msg("'%s', not '%s'", error_last(), words);
}

static void refuses_files_that_are_no_objects(void **state)
{
	struct walkc_object *o = NULL;

	assert_int_equal(walkc_object_open("abc", 3, "x.o", &o), -EBADMSG);
	expect_words("x.o is no object file of a walk: it is no ELF file");
	assert_int_equal(walkc_object_open("", 0, "x.o", &o), -EBADMSG);
	assert_int_equal(open_changed("\x7f"
				      "ELF\2\1",
				      "\x7f"
				      "ELF\2\2"),
			 -EBADMSG);
	assert_int_equal(open_changed("walk/find", "xdp__find"), -EINVAL);
	expect_words("section 'xdp__find' is none of a walk");
	/* This program is an ELF file, too. */
	assert_int_equal(walkc_object_open("\x7f"
					   "ELF",
					   4, "x.o", &o),
			 -EBADMSG);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_what_native_code_does),
		cmocka_unit_test(windows_are_what_is_used),
		cmocka_unit_test(copies_are_one_instruction),
		cmocka_unit_test(refuses_with_function_and_line),
		cmocka_unit_test(refuses_without_lines_too),
		cmocka_unit_test(refuses_files_that_are_no_objects),
	};

	if (argc != 4)
		return EXIT_FAILURE;
	files = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
