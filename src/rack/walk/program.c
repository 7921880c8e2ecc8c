/* SPDX-License-Identifier: Apache-2.0 */
/* A verified image with its translation, or the interpreter in its place. */
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "walk_priv.h"

enum {
	HOW_BYTES = 160,
};

/* The whole of a program; others see only its head. */
struct whole {
	struct walk_program head;
	struct walk_code code;
	char how[HOW_BYTES];
	struct walk_insn insns[];
};

static const struct whole *whole_of(const struct walk_program *program)
{
	return (const void *)program;
}

static void say(struct whole *w, const char *words, const char *why)
{
	size_t len = strlen(words), more = strlen(why);

	if (more > sizeof(w->how) - 1 - len)
		more = sizeof(w->how) - 1 - len;
	memcpy(w->how, words, len);
	memcpy(w->how + len, why, more);
	w->how[len + more] = 0;
}

static void translate(struct whole *w, const struct walk_options *options)
{
	w->head.run = walk_exec;
	if (options && options->interpret) {
		say(w, "interpreted: ", "translation is switched off");
		return;
	}
	if (walk_jit_make(&w->head.image, &w->code)) {
		say(w, "interpreted: ", error_last());
		return;
	}
	w->head.run = (walk_run_fn)(uintptr_t)w->code.pages;
	say(w, "translated", "");
}

int walk_program_open(const struct walk_image *image,
		      const struct walk_options *options,
		      struct walk_program **out)
{
	struct walk_facts facts;
	const size_t bytes = image->count * sizeof(struct walk_insn);
	struct whole *w;
	int err =
		walk_verify(image, options ? options->longest_max : 0, &facts);

	if (err)
		return err;
	w = calloc(1, sizeof(*w) + bytes);
	if (!w)
		return error_set(-ENOMEM,
				 "no memory for a walk of %u "
				 "instructions",
				 image->count);
	memcpy(w->insns, image->insns, bytes);
	w->head.image = *image;
	w->head.image.insns = w->insns;
	w->head.image.hash = walk_image_hash(&w->head.image);
	w->head.facts = facts;
	translate(w, options);
	*out = &w->head;
	return 0;
}

void walk_program_close(struct walk_program *program)
{
	struct whole *w = (void *)program;

	if (!w)
		return;
	walk_jit_free(&w->code);
	free(w);
}

const char *walk_program_how(const struct walk_program *program)
{
	return whole_of(program)->how;
}

bool walk_program_is_translated(const struct walk_program *program)
{
	return whole_of(program)->code.pages != NULL;
}
