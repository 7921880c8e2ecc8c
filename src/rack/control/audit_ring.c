/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of an audit log, for who asks over HTTP, and files that end
 * when they are large. */
#include "audit_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum {
	TAIL_BYTES = 128 << 10, /* of a file that is there already */
	PATH_BYTES = 512,
};

void audit_ring_add(struct audit_ring *r, const char *text, size_t text_bytes)
{
	char *copy = strndup(text, text_bytes);

	if (!copy)
		return; /* the file has it */
	free(r->line[r->next]);
	r->line[r->next] = copy;
	r->next = (r->next + 1) % CTL_AUDIT_KEPT;
}

void audit_ring_release(struct audit_ring *r)
{
	for (unsigned i = 0; i < CTL_AUDIT_KEPT; i++)
		free(r->line[i]);
}

json_t *audit_ring_json(const struct audit_ring *r)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < CTL_AUDIT_KEPT; i++) {
		const char *text = r->line[(r->next + i) % CTL_AUDIT_KEPT];
		json_t *row = text ? json_loads(text, 0, NULL) : NULL;

		/* Lines of a file that somebody has written into. */
		if (json_is_object(row))
			(void)json_array_append(rows, row);
		json_decref(row);
	}
	return rows;
}

/* The end of a file into text, which has room for it. -errno. */
static ssize_t read_tail(const char *path, char *text, bool *is_whole)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = -1;
	off_t size;

	if (fd < 0)
		return -errno;
	size = lseek(fd, 0, SEEK_END);
	*is_whole = size <= TAIL_BYTES;
	if (size >= 0)
		n = pread(fd, text, TAIL_BYTES,
			  *is_whole ? 0 : size - TAIL_BYTES);
	if (n < 0)
		n = -errno;
	(void)close(fd); /* only read */
	return n;
}

int audit_ring_fill(struct audit_ring *r, const char *path)
{
	char *text = calloc(1, TAIL_BYTES + 1), *line, *rest = text;
	bool is_whole = true;
	ssize_t n = text ? read_tail(path, text, &is_whole) : -ENOMEM;

	if (n > 0 && !is_whole) /* in the middle of a line */
		(void)strsep(&rest, "\n");
	while (n > 0 && (line = strsep(&rest, "\n")))
		if (*line)
			audit_ring_add(r, line, strlen(line));
	free(text);
	return n < 0 ? error_set((int)n, "cannot read the audit log %s: %s",
				 path, strerror((int)-n))
		     : 0;
}

/* PATH.1 becomes PATH.2 and so on, the last one goes. One that is missing is
 * none that could be lost. */
int audit_files_shift(const char *path, unsigned files)
{
	char from[PATH_BYTES], to[PATH_BYTES];

	for (unsigned i = files; i > 0; i--) {
		(void)snprintf(to, sizeof(to), "%s.%u", path, i);
		if (i > 1)
			(void)snprintf(from, sizeof(from), "%s.%u", path,
				       i - 1);
		else
			(void)snprintf(from, sizeof(from), "%s", path);
		if (rename(from, to) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}
