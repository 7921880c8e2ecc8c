/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of any bytes. Whatever the verifier accepts runs inside guarded
 *windows and ends, and interpreter, translated code and reference agree. So
 *that the checksum does not stop everything at the header, an input that does
 *not begin with the magic is taken for the fields and the instructions of an
 *image: load_bytes, pad_bytes (2 bytes each), flags, seed (1 byte each), 2
 *unused, then 8 bytes per instruction
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/walk_mutate.h"
#include "../unit/walk_trial.h"
#include "fuzz.h"
#include "fuzz_count.h"
#include "walk/image.h"
#include "walk/jit_priv.h"
#include "walk/show.h"

enum {
	HEAD = MUTATE_HEAD,
	RUNS = 8,	     /* of a program, each in other windows */
	CODE_ROOM = 4 << 20, /* more than the longest program becomes */
	CODE_ALIGN = 64,
	/* Words of one in so many programs: they take longer than all else. */
	SHOWN = 16,
};

/* ---- in place of walk/jit_pages.c ------------------------------------------
 *
 * A file and a mapping for each input would be most of the work. So there is
 * one file, mapped to be written and mapped to be executed; each program comes
 * behind the one before.
 */

static uint8_t *map_code(int fd, int rights)
{
	uint8_t *p = mmap(NULL, CODE_ROOM, rights, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

int jit_pages_make(const uint8_t *bytes, size_t len, struct walk_code *code)
{
	static uint8_t *to_write, *to_execute;
	static size_t used;

	if (!to_write) {
		int fd = memfd_create("fuzz-code", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, CODE_ROOM))
			abort();
		to_write = map_code(fd, PROT_READ | PROT_WRITE);
		to_execute = map_code(fd, PROT_READ | PROT_EXEC);
		(void)close(fd); /* the mappings stay */
	}
	if (len > CODE_ROOM)
		abort();
	if (len > CODE_ROOM - used)
		used = 0;
	memcpy(to_write + used, bytes, len);
	*code = (struct walk_code){to_execute + used, len};
	used += align_up(len, CODE_ALIGN);
	return 0;
}

void walk_jit_free(struct walk_code *code)
{
	code->pages = NULL;
}

/* ---- one input ------------------------------------------------------------
 */

static void show_all(const struct walk_image *image)
{
	char text[WALK_SHOW_MAX];

	for (uint32_t i = 0; i < image->count;)
		i += walk_show(image, i, text);
}

static void run(const struct walk_image *image, uint64_t seed)
{
	const struct walk_options no = {.interpret = true,
					.longest_max = UINT32_MAX};
	const struct walk_options yes = {.longest_max = UINT32_MAX};
	struct walk_program *in, *tr;
	/* Made once: mapping the windows would be most of the work. */
	static struct trial t;
	struct rng r;

	if (seed % SHOWN == 0)
		show_all(image);
	if (walk_program_open(image, &no, &in))
		return;
	if (walk_program_open(image, &yes, &tr))
		abort();
	if (!t.node[0].bytes)
		t = trial_make();
	rng_init(&r, seed);
	fuzz_operations += RUNS;
	for (int i = 0; i < RUNS; i++) {
		const char *words = trial_run(
			&t, in, walk_program_is_translated(tr) ? tr : NULL, &r);

		if (words) {
			fprintf(stderr, "%s\n", words);
			abort();
		}
	}
	walk_program_close(in);
	walk_program_close(tr);
}

/* A whole file. */
static void take_file(const uint8_t *data, size_t len_bytes)
{
	uint8_t *copy = aligned_alloc(8, (len_bytes + 7) & ~(size_t)7);
	struct walk_image image;

	if (!copy)
		abort();
	memcpy(copy, data, len_bytes);
	if (walk_image_parse(copy, len_bytes, &image) == 0) {
		uint8_t *again = malloc(walk_image_bytes(&image));

		if (!again)
			abort();
		walk_image_write(&image, again);
		if (memcmp(again, data, len_bytes) ||
		    walk_image_hash(&image) != image.hash)
			abort();
		free(again);
		run(&image, image.hash);
	}
	free(copy);
}

static void take_fields(const uint8_t *data, size_t len_bytes)
{
	struct walk_image image = {.name = "fuzz"};
	struct walk_insn *insns = malloc(len_bytes);

	if (!insns)
		abort();
	memcpy(&image.load_bytes, data, 2);
	memcpy(&image.pad_bytes, data + 2, 2);
	image.flags = data[4];
	image.count = (uint32_t)((len_bytes - HEAD) / sizeof(*insns));
	memcpy(insns, data + HEAD, image.count * sizeof(*insns));
	image.insns = insns;
	if (walk_image_check(&image) == 0)
		run(&image, data[5]);
	free(insns);
}

/* Of libFuzzer; there is none where inputs are only replayed. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t len_bytes, size_t max_bytes)
	__attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len_bytes,
			       size_t max_bytes, unsigned seed);

/* Any bytes are changed now and then, and in files always: what is wrong in
 * their headers and checksums is not found by changing instructions. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len_bytes,
			       size_t max_bytes, unsigned seed)
{
	struct rng r;

	rng_init(&r, seed);
	if (LLVMFuzzerMutate &&
	    (rng_below(&r, 8) == 0 ||
	     (len_bytes >= HEAD && memcmp(data, "AQWALK01", 8) == 0)))
		return LLVMFuzzerMutate(data, len_bytes, max_bytes);
	return walk_mutate(&r, data, len_bytes, max_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	if (len_bytes >= HEAD && memcmp(data, "AQWALK01", 8) == 0)
		take_file(data, len_bytes);
	else if (len_bytes > HEAD)
		take_fields(data, len_bytes);
	return 0;
}
