/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dump. A file has no name until it is whole and on the disk, so a
 * dump that is killed leaves nothing; on file systems without nameless files it
 * has a temporary name, and what is left under that has no end and is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complaint.h"
#include "base/error.h"
#include "cli.h"
#include "cli_dump.h"
#include "cli_report.h"

enum {
	SHOW_EVERY_MS = 250,
};

/* ---- progress ----------------------------------------------------------- */

void cli_progress_start(struct cli_progress *p, const char *verb,
			uint64_t expected)
{
	bool is_shown = isatty(STDERR_FILENO) && !complaint_is_json();

	*p = (struct cli_progress){.verb = is_shown ? verb : NULL,
				   .expected = expected,
				   .start_ms = clock_mono_ms()};
}

void cli_progress_show(struct cli_progress *p, uint64_t pairs, uint64_t bytes)
{
	uint64_t now = p->verb ? clock_mono_ms() : 0;

	if (!p->verb || now - p->shown_ms < SHOW_EVERY_MS)
		return;
	p->shown_ms = now;
	fprintf(stderr, "\r%s: %llu", p->verb, (unsigned long long)pairs);
	if (p->expected)
		fprintf(stderr, " of about %llu",
			(unsigned long long)p->expected);
	fprintf(stderr, " pairs, %.1f MB, %.1f s ", (double)bytes / 1e6,
		(double)(now - p->start_ms) / 1e3);
}

double cli_progress_end(struct cli_progress *p)
{
	uint64_t ms = u64_max(clock_mono_ms() - p->start_ms, 1);

	if (p->verb && p->shown_ms)
		fprintf(stderr, "\r\033[K");
	p->verb = NULL;
	return (double)ms / 1e3;
}

/* ---- the file ----------------------------------------------------------- */

static int failed(const struct cli_dump_out *o, const char *what)
{
	int err = -errno;

	return error_set(err, "%s: cannot %s: %s", o->name, what,
			 strerror(-err));
}

static int write_all(struct cli_dump_out *o, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(o->fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(o, "write");
		bytes += n;
		len -= (size_t)n;
		o->written += (uint64_t)n;
	}
	return 0;
}

/* The folder of a path, to be freed; NULL: no memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/")
			     : strndup(path, (size_t)(slash - path));
}

/* Without a name where that can be, else with one that is not the last. */
static int open_temporary(struct cli_dump_out *o)
{
	char *folder = folder_of(o->path);
	mode_t mask = umask(0);

	(void)umask(mask);
	if (!folder)
		return error_set(-ENOMEM, "no memory for a name");
	o->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	free(folder);
	if (o->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR)
		return failed(o, "write there");
	if (asprintf(&o->temporary, "%s.XXXXXX", o->path) < 0) {
		o->temporary = NULL;
		return error_set(-ENOMEM, "no memory for a name");
	}
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd >= 0)
		return fchmod(o->fd, 0666 & ~mask) ? failed(o, "chmod") : 0;
	free(o->temporary);
	o->temporary = NULL;
	return failed(o, "write there");
}

/* A device or a pipe cannot be replaced. */
static int open_file(struct cli_dump_out *o, const char *word)
{
	struct stat st;

	if (stat(word, &st) == 0 && !S_ISREG(st.st_mode)) {
		o->fd = open(word, O_WRONLY | O_CLOEXEC);
		return o->fd < 0 ? failed(o, "write") : 0;
	}
	o->path = realpath(word, NULL); /* behind a link */
	if (!o->path)
		o->path = strdup(word);
	return o->path ? open_temporary(o)
		       : error_set(-ENOMEM, "no memory for a name");
}

int cli_dump_out_open(struct cli_dump_out *o, const char *word,
		      const struct dump_head *head, uint64_t expected)
{
	uint8_t start[DUMP_START_BYTES];
	bool is_stdout = !word || strcmp(word, "-") == 0;
	int err = 0;

	*o = (struct cli_dump_out){.name = is_stdout ? "standard output" : word,
				   .fd = -1,
				   .block_bytes = DUMP_BLOCK_BYTES};
	cli_progress_start(&o->progress, "dump", expected);
	if (is_stdout && isatty(STDOUT_FILENO)) {
		cli_error("a dump is not for a terminal; name a FILE");
		return CLI_USAGE;
	}
	if (is_stdout)
		o->fd = STDOUT_FILENO;
	else
		err = open_file(o, word);
	o->block = malloc(o->block_bytes);
	if (!err && !o->block)
		err = error_set(-ENOMEM, "no memory for a dump");
	if (err)
		return err;
	dump_start(&o->builder, head, start);
	dump_block_begin(&o->builder, o->block, o->block_bytes);
	return write_all(o, start, sizeof(start));
}

static int flush(struct cli_dump_out *o)
{
	size_t n = dump_block_seal(&o->builder);
	int err = n ? write_all(o, o->block, n) : 0;

	dump_block_begin(&o->builder, o->block, o->block_bytes);
	cli_progress_show(&o->progress, o->builder.counts.pairs, o->written);
	return err;
}

int cli_dump_out_add(struct cli_dump_out *o, const struct dump_pair *pair)
{
	size_t room = dump_block_room(pair->key_bytes, pair->value_bytes);
	int err;

	if (dump_block_add(&o->builder, pair))
		return 0;
	err = flush(o);
	if (err)
		return err;
	if (room > o->block_bytes) {
		free(o->block);
		o->block = malloc(room);
		o->block_bytes = o->block ? room : 0;
		if (!o->block)
			return error_set(-ENOMEM, "no memory for a value");
		dump_block_begin(&o->builder, o->block, o->block_bytes);
	}
	ASSERT(dump_block_add(&o->builder, pair));
	return 0;
}

/* ---- its name ----------------------------------------------------------- */

/* A file without a name gets a temporary one, because a link replaces
 * nothing. */
static int link_temporary(struct cli_dump_out *o)
{
	char self[64];
	char *name;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	if (asprintf(&name, "%s.%d", o->path, (int)getpid()) < 0)
		return error_set(-ENOMEM, "no memory for a name");
	if (linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW)) {
		int err = failed(o, "give it a name");

		free(name);
		return err;
	}
	o->temporary = name;
	return 0;
}

static int sync_folder(struct cli_dump_out *o)
{
	char *folder = folder_of(o->path);
	int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int err = fd < 0 || fsync(fd) ? failed(o, "sync its folder") : 0;

	if (fd >= 0)
		(void)close(fd); /* nothing was written through it */
	free(folder);
	return err;
}

static int publish(struct cli_dump_out *o)
{
	int err = fsync(o->fd) ? failed(o, "sync") : 0;

	if (!err && !o->temporary)
		err = link_temporary(o);
	if (!err && rename(o->temporary, o->path))
		err = failed(o, "rename");
	if (err)
		return err;
	free(o->temporary);
	o->temporary = NULL;
	return sync_folder(o);
}

int cli_dump_out_end(struct cli_dump_out *o)
{
	uint8_t end[DUMP_START_BYTES];
	int err = flush(o);

	if (!err)
		err = write_all(o, end, dump_end(&o->builder, end));
	return err || !o->path ? err : publish(o);
}

void cli_dump_out_close(struct cli_dump_out *o)
{
	(void)cli_progress_end(&o->progress); /* who wants it has it */
	if (o->temporary)
		(void)unlink(o->temporary); /* it has no end */
	if (o->fd >= 0 && o->fd != STDOUT_FILENO)
		(void)close(o->fd); /* synced, or of no use */
	free(o->temporary);
	free(o->path);
	free(o->block);
}

int cli_dump_out_report(struct cli_dump_out *o, const char *what,
			const char *table, bool as_json)
{
	double seconds = cli_progress_end(&o->progress);
	const struct dump_counts *c = &o->builder.counts;

	if (o->fd == STDOUT_FILENO)
		return 0;
	return cli_report_print(
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f}", what,
			  table, "file", o->name, CLI_FIELD(*c, pairs),
			  CLI_FIELD(*c, key_bytes), CLI_FIELD(*c, value_bytes),
			  "file_bytes", (json_int_t)o->written, "seconds",
			  seconds, "pairs_per_s", (double)c->pairs / seconds),
		as_json);
}
