/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a dump, block by block; the parser decides what is one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli.h"
#include "cli_dump.h"
#include "cli_report.h"

static int refuse(const struct cli_dump_in *in)
{
	return error_set(-EBADMSG, "%s: byte %llu: %s", in->name,
			 (unsigned long long)in->parser.bad_at, in->parser.why);
}

/* Reads `want` bytes, or as many as there are. */
static int read_all(struct cli_dump_in *in, size_t want, size_t *got)
{
	*got = 0;
	while (*got < want) {
		ssize_t n = read(in->fd, in->bytes + *got, want - *got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(-errno, "%s: cannot read: %s",
					 in->name, strerror(errno));
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return 0;
}

static int make_room(struct cli_dump_in *in, size_t bytes)
{
	if (bytes <= in->room_bytes)
		return 0;
	free(in->bytes);
	in->room_bytes = u64_max(bytes, DUMP_BLOCK_BYTES);
	in->bytes = malloc(in->room_bytes);
	if (in->bytes)
		return 0;
	in->room_bytes = 0;
	return error_set(-ENOMEM, "no memory for a block of %s", in->name);
}

/* One piece: a head or a payload, or what follows the end. */
static int step(struct cli_dump_in *in, bool *is_end)
{
	bool at_end = in->parser.state == DUMP_AT_END;
	size_t need = at_end ? 1 : dump_need(&in->parser), got = 0;
	int err = make_room(in, need);

	if (!err)
		err = read_all(in, need, &got);
	if (err)
		return err;
	*is_end = at_end && !got;
	if (*is_end)
		return 0;
	err = got < need ? dump_parse_eof(&in->parser, got)
			 : dump_parse(&in->parser, in->bytes);
	return err ? refuse(in) : 0;
}

static int read_head(struct cli_dump_in *in)
{
	bool is_end = false;
	int err = 0;

	in->parser = (struct dump_parser){0};
	while (!err && !in->parser.blocks)
		err = step(in, &is_end);
	return err;
}

static int check_all(struct cli_dump_in *in)
{
	bool is_end = false;
	int err = 0;

	while (!err && !is_end)
		err = step(in, &is_end);
	in->file_pairs = in->parser.counts.pairs;
	if (!err && lseek(in->fd, 0, SEEK_SET))
		err = error_set(-errno, "%s: cannot go back: %s", in->name,
				strerror(errno));
	return err ? err : read_head(in);
}

int cli_dump_in_open(struct cli_dump_in *in, const char *word)
{
	bool is_stdin = !word || strcmp(word, "-") == 0;
	struct stat st;
	int err;

	*in = (struct cli_dump_in){.name = is_stdin ? "standard input" : word,
				   .fd = -1};
	if (is_stdin && isatty(STDIN_FILENO)) {
		cli_error("a dump does not come from a terminal; name a FILE");
		return CLI_USAGE;
	}
	in->fd = is_stdin ? STDIN_FILENO : open(word, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st))
		return error_set(-errno, "%s: cannot read: %s; check the path",
				 in->name, strerror(errno));
	err = read_head(in);
	/* Standard input may stand in the middle of a file. */
	if (!err && S_ISREG(st.st_mode) && !is_stdin)
		err = check_all(in);
	cli_progress_start(&in->progress, "load", in->file_pairs);
	return err;
}

int cli_dump_in_block(struct cli_dump_in *in, bool *is_end)
{
	int err;

	cli_progress_show(&in->progress, in->parser.counts.pairs,
			  in->parser.offset);
	do
		err = step(in, is_end);
	while (!err && !*is_end && !in->parser.pairs_bytes);
	return err;
}

void cli_dump_in_close(struct cli_dump_in *in)
{
	(void)cli_progress_end(&in->progress); /* who wants it has it */
	if (in->fd >= 0 && in->fd != STDIN_FILENO)
		(void)close(in->fd); /* was only read */
	free(in->bytes);
}

int cli_dump_in_report(struct cli_dump_in *in, const struct cli_loaded *l,
		       const char *what, const char *table, bool as_json)
{
	double seconds = cli_progress_end(&in->progress);

	return cli_report_print(
		json_pack("{s:s, s:s, s:I, s:I, s:b, s:I, s:f, s:f}", what,
			  table, "file", in->name, CLI_FIELD(*l, stored),
			  CLI_FIELD(*l, expired), "created", l->created,
			  "file_bytes", (json_int_t)in->parser.offset,
			  "seconds", seconds, "pairs_per_s",
			  (double)l->stored / seconds),
		as_json);
}

int cli_dump_in_broke_off(const struct cli_loaded *l, const char *table,
			  int err)
{
	if (!l->created && l->stored)
		cli_error("%llu pairs of the file are in '%s' now; load it "
			  "again with --merge for the rest",
			  (unsigned long long)l->stored, table);
	return err;
}

int cli_dump_size(const struct cli_dump_in *in, unsigned which, uint64_t most,
		  uint64_t *to)
{
	uint64_t size = in->parser.head.size[which];

	if (*to)
		return 0;
	if (size > most)
		return error_set(-EBADMSG,
				 "%s: its head has a size of %llu, which is "
				 "more than there can be",
				 in->name, (unsigned long long)size);
	*to = size;
	return 0;
}

int cli_dump_size_u32(const struct cli_dump_in *in, unsigned which,
		      uint32_t *to)
{
	uint64_t size = *to;
	int err = cli_dump_size(in, which, UINT32_MAX, &size);

	if (!err)
		*to = (uint32_t)size;
	return err;
}
