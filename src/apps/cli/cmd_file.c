/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer file`: elastic files, for people. */
#include <aquifer/elastic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli_action.h"
#include "cli_report.h"

enum {
	RECORD_BYTES = 1 << 20, /* of which a file is written and read */
};

struct file_args {
	struct cli_action_args common; /* PATH, FILE */
	struct aq_elastic_options options;
	bool is_sealed, is_loaded;
	struct aq_file *file;
};

const struct opt cmd_file_options[] = {
	OPT_U64(struct file_args, options.copies, "copies", "N", 1, 8,
		"put, append: copies of what is made, on as many nodes "
		"(default: as its root says, or 1)"),
	OPT_SIZE(struct file_args, options.block_bytes, "block", "SIZE",
		 64 << 10, 1 << 30,
		 "put, append: bytes of a block of a file that is made "
		 "(default 8M)"),
	OPT_FLAG(struct file_args, is_sealed, "seal",
		 "put, append: nothing can be appended afterwards"),
	OPT_FLAG(struct file_args, is_loaded, "load",
		 "append, get, cat: from the rack's vault, if its lease was "
		 "over"),
	CLI_OPT_TIMEOUT(struct file_args),
	OPT_FLAG(struct file_args, common.json, "json", "print JSON"),
	OPT_END,
};

static int open_file(struct file_args *a, uint32_t flags)
{
	a->options.flags = flags | (a->is_loaded ? AQ_ELASTIC_LOAD : 0);
	return aq_file_open(a->common.rack, a->common.word[0], &a->options,
			    &a->file);
}

static void close_file(void *args)
{
	struct file_args *a = args;

	aq_file_close(a->file);
	a->file = NULL;
}

/* ---- writing ------------------------------------------------------------- */

static int open_source(const char *name, FILE **out)
{
	*out = !name || strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
	return *out ? 0 : error_set(-errno, "%s: %s", name, strerror(errno));
}

static int copy_in(struct file_args *a, FILE *from, uint64_t *bytes)
{
	size_t room =
		(size_t)u64_min(RECORD_BYTES, aq_file_record_max(a->file));
	char *buf = malloc(room);
	size_t n;
	int err = buf ? 0 : -ENOMEM;

	while (!err && (n = fread(buf, 1, room, from)) > 0) {
		err = aq_file_append(a->file, buf, n, NULL);
		*bytes += err ? 0 : n;
	}
	if (!err && ferror(from))
		err = error_set(-EIO, "the input cannot be read");
	free(buf);
	return err;
}

static int write_file(struct file_args *a, uint32_t flags)
{
	uint64_t bytes = 0, size = 0;
	FILE *from = NULL;
	int err = open_source(a->common.word[1], &from);

	if (!err)
		err = open_file(a, flags);
	if (!err)
		err = copy_in(a, from, &bytes);
	if (!err && a->is_sealed)
		err = aq_file_seal(a->file);
	if (!err)
		err = aq_file_size(a->file, &size);
	if (from && from != stdin)
		(void)fclose(from); /* it was only read */
	if (err || !a->common.json)
		return err;
	return cli_report_print(json_pack("{s:s, s:I, s:I}", "path",
					  a->common.word[0], "written",
					  (json_int_t)bytes, "size",
					  (json_int_t)size),
				true);
}

static int file_put(void *args)
{
	return write_file(args, AQ_ELASTIC_NEW);
}

static int file_append(void *args)
{
	return write_file(args, AQ_ELASTIC_CREATE);
}

/* ---- reading ------------------------------------------------------------- */

static int copy_out(struct file_args *a, FILE *to, uint64_t *bytes)
{
	char *buf = malloc(RECORD_BYTES);
	size_t n = 1;
	int err = buf ? 0 : -ENOMEM;

	while (!err && n) {
		err = aq_file_read(a->file, *bytes, buf, RECORD_BYTES, &n);
		if (!err && fwrite(buf, 1, n, to) != n)
			err = error_set(-EIO, "the output cannot be written");
		*bytes += err ? 0 : n;
	}
	if (!err && fflush(to))
		err = error_set(-errno, "the output cannot be written: %s",
				strerror(errno));
	free(buf);
	return err;
}

static int file_cat(void *args)
{
	struct file_args *a = args;
	uint64_t bytes = 0;
	int err = open_file(a, 0);

	return err ? err : copy_out(a, stdout, &bytes);
}

static int file_get(void *args)
{
	struct file_args *a = args;
	const char *name = a->common.word[1];
	uint64_t bytes = 0;
	FILE *to;
	int err = open_file(a, 0);

	if (err)
		return err;
	to = fopen(name, "wb");
	if (!to)
		return error_set(-errno, "%s: %s", name, strerror(errno));
	err = copy_out(a, to, &bytes);
	if (fclose(to) && !err)
		err = error_set(-errno, "%s: %s", name, strerror(errno));
	if (err || !a->common.json)
		return err;
	return cli_report_print(json_pack("{s:s, s:s, s:I}", "path",
					  a->common.word[0], "file", name,
					  "size", (json_int_t)bytes),
				true);
}

int cmd_file(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"put", 1, 2, NULL, CLI_NEEDS_RACK, file_put,
		 "make a file and fill it: PATH [FILE|-]"},
		{"append", 1, 2, NULL, CLI_NEEDS_RACK, file_append,
		 "add to its end, and make it if it is missing: PATH "
		 "[FILE|-]"},
		{"get", 2, 2, NULL, CLI_NEEDS_RACK, file_get,
		 "copy it to a file of this machine: PATH FILE"},
		{"cat", 1, 1, NULL, CLI_NEEDS_RACK, file_cat, "print it: PATH"},
		{0},
	};
	static const struct cli_actions actions = {.action = table,
						   .close = close_file};
	struct file_args args = {0};

	return cli_actions_run(self, &actions, argc, argv, &args);
}
