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

#include "../unit/walk_trial.h"
#include "fuzz.h"
#include "walk/image.h"
#include "walk/show.h"

enum {
	HEAD = 8,
	RUNS = 3,
};

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

	show_all(image);
	if (walk_program_open(image, &no, &in))
		return;
	if (walk_program_open(image, &yes, &tr))
		abort();
	if (!t.node[0].bytes)
		t = trial_make();
	rng_init(&r, seed);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	if (len_bytes >= HEAD && memcmp(data, "AQWALK01", 8) == 0)
		take_file(data, len_bytes);
	else if (len_bytes > HEAD)
		take_fields(data, len_bytes);
	return 0;
}
