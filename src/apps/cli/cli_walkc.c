/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer walk build`, `show` and `check`: files with walks, made and read. */
#include "cli_walkc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli.h"
#include "cli_report.h"
#include "walk/image.h"
#include "walk/rule.h"
#include "walk/show.h"
#include "walk/verify.h"
#include "walkc/walkc.h"

/*
 * What nodes measure when they start, for a build that has no node to ask:
 * translated code runs 2 to 4 instructions in a nanosecond, and a line of 64
 * bytes that no cache has takes some 100 ns, the lines behind it a few more.
 * `aquifer walk plan` has the node's own numbers.
 */
#define STEP_NS	  0.4
#define LOAD_NS	  100.0
#define LINE_NS	  4.0
#define LINE_SIZE 64

enum {
	EMBED_COLUMNS = 12,
	PATH_ROOM = 4096,
};

/* What is wrong with a walk or its source is no wrong argument. */
static int fail(int err)
{
	cli_error_last(err);
	return CLI_FAILED;
}

static bool ends(const char *text, const char *suffix)
{
	size_t n = strlen(text), k = strlen(suffix);

	return n > k && strcmp(text + n - k, suffix) == 0;
}

/* ---- report ------------------------------------------------------------- */

static void add_rule(json_t *tree, const struct walk_image *image,
		     const struct walk_facts *facts,
		     const struct cli_walkc_args *a)
{
	uint32_t lines = (image->load_bytes - 1u) / LINE_SIZE;
	double compute =
		facts->longest * (a->step_ns > 0 ? a->step_ns : STEP_NS);
	double load = a->load_ns > 0 ? a->load_ns : LOAD_NS + LINE_NS * lines;
	bool is_there = facts->stores || walk_rule_offloads(compute, load);

	(void)json_object_set_new(tree, "compute_ns", json_real(compute));
	(void)json_object_set_new(tree, "load_ns", json_real(load));
	(void)json_object_set_new(tree, "compute_over_load",
				  json_real(compute / load));
	(void)json_object_set_new(tree, "offloaded", json_boolean(is_there));
	cli_report_set(tree, "why", "%s",
		       facts->stores ? "it stores, which is done at the node"
		       : is_there    ? "it mostly waits for memory"
				  : "it computes too much for what it loads: "
				    "the client reads the nodes and runs it");
}

static json_t *describe(const struct walk_image *image,
			const struct walk_facts *facts)
{
	json_t *tree = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "walk", image->name,
		"instructions", (json_int_t)image->count, "longest",
		(json_int_t)facts->longest, "load_from",
		(json_int_t)image->load_lo, "load_bytes",
		(json_int_t)image->load_bytes, "pad_bytes",
		(json_int_t)image->pad_bytes, "loads", (json_int_t)facts->loads,
		"stores", (json_int_t)facts->stores);

	cli_report_set(tree, "hash", "%016" PRIx64, image->hash);
	return tree;
}

static int report(json_t *tree, bool json)
{
	return cli_report_print(tree, json) ? CLI_FAILED : CLI_OK;
}

/* ---- build -------------------------------------------------------------- */

static int write_header(FILE *f, const struct walk_image *image,
			const uint8_t *bytes, size_t len)
{
	char name[WALK_NAME_BYTES];

	/* Walks that are not from C may have names that C does not take. */
	(void)snprintf(name, sizeof(name), "%s", image->name);
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '_';
	fprintf(f,
		"/* The walk '%s', made by 'aquifer walk build --embed'. */\n"
		"#ifndef AQUIFER_WALK_%s_H\n#define AQUIFER_WALK_%s_H\n\n"
		"static const unsigned char %s_walk[%zu]\n"
		"\t__attribute__((aligned(8), unused)) = {",
		image->name, name, name, name, len);
	for (size_t i = 0; i < len; i++)
		fprintf(f, "%s0x%02x,", i % EMBED_COLUMNS ? " " : "\n\t",
			bytes[i]);
	fprintf(f, "\n};\n\n#endif\n");
	return ferror(f);
}

static int write_file(const char *path, const struct walk_image *image,
		      const uint8_t *bytes, size_t len, bool is_embedded)
{
	FILE *f = fopen(path, "we");
	int bad;

	if (!f)
		return error_set(-errno, "%s: %s", path, strerror(errno));
	bad = is_embedded ? write_header(f, image, bytes, len)
			  : fwrite(bytes, 1, len, f) != len;
	if (fclose(f) || bad) {
		(void)unlink(path); /* half a file helps nobody */
		return error_set(-EIO, "%s cannot be written", path);
	}
	return 0;
}

static int output_of(const char *file, const struct cli_walkc_args *a,
		     char out[PATH_ROOM])
{
	size_t stem = strlen(file);
	int n;

	if (ends(file, ".c") || ends(file, ".o"))
		stem -= 2;
	n = a->output ? snprintf(out, PATH_ROOM, "%s", a->output)
		      : snprintf(out, PATH_ROOM, "%.*s.walk%s", (int)stem, file,
				 a->is_embedded ? ".h" : "");
	if (n < 0 || n >= PATH_ROOM)
		return error_set(-ENAMETOOLONG, "the name of the output is too "
						"long");
	return 0;
}

/* Which of the object's walks is meant. */
static int pick(const struct walkc_object *o, const char *only, unsigned *out)
{
	char names[256] = "";
	size_t len = 0;

	for (unsigned i = 0; i < walkc_object_count(o); i++) {
		const char *name = walkc_object_name(o, i);

		*out = i;
		if (only ? strcmp(only, name) == 0 : walkc_object_count(o) == 1)
			return 0;
		if (len < sizeof(names))
			len += (size_t)snprintf(names + len,
						sizeof(names) - len, "%s%s",
						i ? ", " : "", name);
	}
	if (only)
		return error_set(-ENOENT,
				 "there is no walk '%.60s'; those in "
				 "the file are: %s",
				 only, names);
	return error_set(-EINVAL,
			 "there are several walks; say which with "
			 "--only NAME: %s",
			 names);
}

static int build(const char *file, bool json, const struct cli_walkc_args *a,
		 const void *object, size_t object_bytes)
{
	struct walkc_object *o = NULL;
	char path[PATH_ROOM];
	struct walk_facts facts;
	struct walk_image image;
	void *bytes = NULL;
	json_t *tree;
	size_t len;
	unsigned i = 0;
	int err = walkc_object_open(object, object_bytes, file, &o);

	if (!err)
		err = pick(o, a->only, &i);
	if (!err)
		err = walkc_translate(o, i, a->longest, &bytes, &len);
	walkc_object_close(o);
	if (!err)
		err = walk_image_parse(bytes, len, &image);
	if (!err)
		err = walk_verify(&image, a->longest, &facts);
	if (!err)
		err = output_of(file, a, path);
	if (!err)
		err = write_file(path, &image, bytes, len, a->is_embedded);
	if (err) {
		free(bytes);
		return fail(err);
	}
	tree = describe(&image, &facts);
	cli_report_set(tree, "file", "%s", path);
	add_rule(tree, &image, &facts, a);
	free(bytes);
	return report(tree, json);
}

int cli_walkc_build(const char *file, bool json, const struct cli_walkc_args *a)
{
	void *object = NULL;
	size_t len = 0;
	int err, code;

	if (ends(file, ".c"))
		err = cli_clang(file, a->include, json, &object, &len);
	else
		err = cli_walkc_read(file, WALKC_BYTES_MAX, &object, &len);
	if (err)
		return fail(err);
	code = build(file, json, a, object, len);
	free(object);
	return code;
}

/* ---- show and check ----------------------------------------------------- */

/* The image points into *bytes. */
static int read_image(const char *file, void **bytes, struct walk_image *image)
{
	size_t len;
	int err = cli_walkc_read(file, WALK_IMAGE_MAX, bytes, &len);

	if (err)
		return err;
	err = walk_image_parse(*bytes, len, image);
	if (err) {
		free(*bytes);
		(void)error_prefix(err, "%s: ", file); /* the same error */
	}
	return err;
}

int cli_walkc_show(const char *file, bool json)
{
	struct walk_image image;
	json_t *lines = json_array(), *tree;
	void *bytes;
	int err = read_image(file, &bytes, &image);

	if (err) {
		json_decref(lines);
		return fail(err);
	}
	for (uint32_t i = 0; i < image.count;) {
		char text[WALK_SHOW_MAX];
		uint32_t slots = walk_show(&image, i, text);

		if (json)
			(void)json_array_append_new(lines, json_string(text));
		else
			printf("%4u  %s\n", i, text);
		i += slots;
	}
	free(bytes);
	tree = json_pack("{s:s, s:o}", "walk", image.name, "code", lines);
	if (json)
		return report(tree, true);
	json_decref(tree);
	return cli_output_check();
}

int cli_walkc_check(const char *file, bool json, const struct cli_walkc_args *a)
{
	struct walk_image image;
	struct walk_facts facts;
	json_t *tree;
	void *bytes;
	int err = read_image(file, &bytes, &image);

	if (err)
		return fail(err);
	err = walk_verify(&image, a->longest, &facts);
	if (err) {
		free(bytes);
		return fail(error_prefix(err, "%s: ", file));
	}
	tree = describe(&image, &facts);
	add_rule(tree, &image, &facts, a);
	free(bytes);
	return report(tree, json);
}

void cli_walkc_words(int argc, char **argv)
{
	static char output[] = "--output";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "-o") == 0)
			argv[i] = output;
}
